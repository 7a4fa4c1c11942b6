"""Two models for each edge: the largest latency of the horizon, and the slack-ready rows of an interval.

The Gaussian process (`gaussian.py`) learns what is left when the prior mean is taken off: of the latency the wait at
the gate, min(lag, slack); of the rows those that come while the lag exceeds the slack. So it is about right where
nothing was learnt. Linear and isotonic regression and support vectors are the paper's comparison and need scikit-learn;
anything with `fit` and `predict` will do. A model that gives no standard deviation gets that of its residuals.

Invariants
1. Same samples, same model: no chance but a fixed seed.
2. What does not vary among the samples is left out: it can explain nothing, and a value never seen must not count.

Paper: Slack-ScaleGate, section 5.2.1, Equations 7 and 8, Table 1.
"""

from __future__ import annotations

import copy
import inspect
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from latecomer.errors import InputError, must
from latecomer.events import Int64s
from latecomer.extras import needed_for
from latecomer.slack.features import ALL, PAPER, Asked, Floats, Samples
from latecomer.slack.gaussian import GaussianProcess

LEAST_SAMPLES = 30


class Estimate(NamedTuple):
    """What a model expects, and how sure it is."""

    mean: Floats
    sd: Floats


class Regressor(Protocol):
    """What users may bring: scikit-learn's interface. `predict(x, return_std=True)` is used where it exists."""

    def fit(self, x: Floats, y: Floats) -> Any:
        """Learn."""

    def predict(self, x: Floats) -> Any:
        """Expect."""


@runtime_checkable
class SureRegressor(Protocol):
    """A regressor that can say how sure it is."""

    def predict(self, x: Floats, return_std: bool = False) -> Any:
        """Expect; with `return_std` the standard deviation too."""


class Columns(NamedTuple):
    """Which features are used, and their scale."""

    chosen: Int64s
    middle: Floats
    scale: Floats

    @classmethod
    def of(cls, features: Floats, names: Sequence[str]) -> Columns:
        """Those of some names that vary."""
        named = np.isin(ALL, names)
        scale = features.std(axis=0)
        chosen = np.flatnonzero(named & (scale > 1e-9))
        return cls(chosen, features[:, chosen].mean(axis=0), scale[chosen])

    def of_rows(self, features: Floats) -> Floats:
        """Features with mean 0 and standard deviation 1."""
        scaled: Floats = (features[:, self.chosen] - self.middle) / self.scale
        return scaled


class Model:
    """A regressor for one quantity: it sees scaled features, and learns what the prior mean leaves."""

    def __init__(self, regressor: Regressor, names: Sequence[str], *, prior: bool) -> None:
        self._regressor, self._names, self._prior = regressor, names, prior
        self._columns: Columns | None = None
        self._residual_sd = 0.0
        self._gives_sd = "return_std" in inspect.signature(regressor.predict).parameters

    def fit(self, features: Floats, prior: Floats, seen: Floats) -> Model:
        """Learn from samples."""
        self._columns = Columns.of(features, self._names)
        x, y = self._columns.of_rows(features), seen - prior * self._prior
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a length scale at its bound is no news
            self._regressor.fit(x, y)
        left = y - _flat(self._regressor.predict(x))
        self._residual_sd = float(np.sqrt(np.mean(left**2)))
        return self

    def estimate(self, features: Floats, prior: Floats) -> Estimate:
        """What is expected of some questions."""
        assert self._columns is not None, "fit comes first"
        x, regressor = self._columns.of_rows(features), self._regressor
        if not (self._gives_sd and isinstance(regressor, SureRegressor)):
            return Estimate(self.mean(features, prior), np.full(len(x), self._residual_sd))
        mean, sd = regressor.predict(x, return_std=True)
        return Estimate(_flat(mean) + prior * self._prior, _flat(sd))

    def mean(self, features: Floats, prior: Floats) -> Floats:
        """What is expected, without saying how surely."""
        assert self._columns is not None, "fit comes first"
        return _flat(self._regressor.predict(self._columns.of_rows(features))) + prior * self._prior


class EdgeModels(NamedTuple):
    """The two models of one edge."""

    latency: Model
    ready: Model

    def latencies(self, asked: Asked) -> Estimate:
        """The largest latency of the horizon, in seconds."""
        return self.latency.estimate(asked.features, asked.wait)

    def ready_rows(self, asked: Asked) -> Floats:
        """The slack-ready rows of an interval."""
        return self.ready.mean(asked.features, asked.ready)


def fit_edge(samples: Samples, model: str | Regressor, names: Sequence[str] = ALL) -> EdgeModels:
    """Both models of an edge, from its samples."""
    if len(samples) < LEAST_SAMPLES:
        rule = f"have at least {LEAST_SAMPLES} samples of each edge"
        advice = "record a longer run, with a fixed slack or several, or begin without a history"
        raise InputError(must("history", rule, len(samples), advice))
    asked = samples.asked
    latency, ready = (_new(model, names) for _ in range(2))
    return EdgeModels(
        latency.fit(asked.features, asked.wait, samples.latency), ready.fit(asked.features, asked.ready, samples.ready)
    )


def _new(model: str | Regressor, names: Sequence[str]) -> Model:
    """A model that has learnt nothing. Only the Gaussian process with all features has a prior mean."""
    check_model(model)
    if isinstance(model, str):
        return Model(MODELS[model](), names, prior=model == "gaussian" and tuple(names) != PAPER)
    return Model(copy.deepcopy(model), names, prior=False)


def check_model(model: object) -> None:
    """Refuse what is no model."""
    if isinstance(model, str):
        if model not in MODELS:
            raise InputError(must("model", f"be one of {', '.join(MODELS)}", model, "or bring an object of your own"))
    elif not (callable(getattr(model, "fit", None)) and callable(getattr(model, "predict", None))):
        advice = f"choose one of {', '.join(MODELS)}, or bring an object like those of scikit-learn"
        raise InputError(must("model", "have the methods fit and predict", model, advice))


def _flat(values: Any) -> Floats:
    return np.asarray(values, dtype=np.float64).ravel()


class BestIsotonic:
    """Isotonic regression on the one feature that explains most."""

    def __init__(self) -> None:
        self._column, self._curve = 0, None

    def fit(self, x: Floats, y: Floats) -> BestIsotonic:
        """Try all features."""
        with needed_for("model='isotonic'"):
            from sklearn.isotonic import IsotonicRegression

        least = np.inf
        for column in range(x.shape[1]):
            curve: Any = IsotonicRegression(increasing="auto", out_of_bounds="clip").fit(x[:, column], y)
            error = float(np.sum((curve.predict(x[:, column]) - y) ** 2))
            if error < least:
                least, self._column, self._curve = error, column, curve
        return self

    def predict(self, x: Floats) -> Any:
        """The value of the curve."""
        return np.zeros(len(x)) if self._curve is None else self._curve.predict(x[:, self._column])


def _linear() -> Regressor:
    with needed_for("model='linear'"):
        from sklearn.linear_model import LinearRegression

    made: Regressor = LinearRegression()
    return made


class SupportVectors:
    """Support vector regression of a target with mean 0 and standard deviation 1."""

    def fit(self, x: Floats, y: Floats) -> SupportVectors:
        """Learn."""
        with needed_for("model='svm'"):
            from sklearn.svm import SVR

        self._middle, self._scale = float(y.mean()), float(y.std()) or 1.0
        self._svr: Any = SVR(C=10.0, epsilon=0.05).fit(x, (y - self._middle) / self._scale)
        return self

    def predict(self, x: Floats) -> Any:
        """The value."""
        return self._svr.predict(x) * self._scale + self._middle


MODELS: dict[str, Callable[[], Regressor]] = {
    "gaussian": GaussianProcess,
    "linear": _linear,
    "isotonic": BestIsotonic,
    "svm": SupportVectors,
}
