"""Models of latency and slack-ready rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from latecomer.errors import InputError
from latecomer.slack.features import ALL, PAPER, Floats, Samples, ask, samples
from latecomer.slack.gaussian import GaussianProcess, Learnt, learn_kernel, log_likelihood
from latecomer.slack.models import MODELS, fit_edge
from latecomer.slack.observation import Observation
from tests import naive_slack
from tests.unit.slack_runs import SECOND, START, made_run, observed

RNG = np.random.default_rng(7)
X = RNG.normal(size=(120, 3))
Y = np.sin(2 * X[:, 0]) + 0.05 * RNG.normal(size=120)


def sensors(runs: list[list[Observation]]) -> list[list[Observation]]:
    return [run[1::2] for run in runs]


def rush_samples() -> Samples:
    """Results take 3 s in the second half of every minute, at five slacks."""
    runs = [made_run(100, slack_us, lambda n: (3 if n % 60 >= 30 else 0) * SECOND + 100_000) for slack_us in SLACKS]
    return samples(sensors(runs), 2)


SLACKS = [2_000_000, 6_000_000]


def test_the_gaussian_process_equals_its_twin() -> None:
    process = GaussianProcess(learn=120, keep=120).fit(X, Y)
    asked = RNG.normal(size=(9, 3))
    mean, sd = process.predict(asked, return_std=True)
    expected = naive_slack.gaussian_process(X, Y, asked, process.learnt.values.tolist())
    np.testing.assert_allclose(mean, expected[0], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(sd, expected[1], rtol=1e-4, atol=1e-7)


def test_the_gradient_of_the_likelihood_is_its_slope() -> None:
    squares = ((X[:40, None] - X[None, :40]) ** 2).reshape(-1, 3)
    at = np.log([0.7, 1.5, 3.0, 1.2, 0.05])
    _, gradient = log_likelihood(squares, Y[:40], Learnt(at))
    for place in range(len(at)):
        step = np.zeros(len(at))
        step[place] = 1e-5
        up, down = (log_likelihood(squares, Y[:40], Learnt(at + way * step))[0] for way in (1, -1))
        assert gradient[place] == pytest.approx((up - down) / 2e-5, rel=1e-3, abs=1e-3)


def test_the_kernel_finds_the_feature_that_matters() -> None:
    lengths = np.exp(learn_kernel(X, Y).values[:-2])
    assert lengths[0] < 2.0
    assert lengths[1:].min() > 3.0 * lengths[0]


def test_the_gaussian_process_is_unsure_far_from_what_it_saw() -> None:
    process = GaussianProcess().fit(X, Y)
    _, sd = process.predict(np.array([[0.0, 0.0, 0.0], [30.0, 30.0, 30.0]]), return_std=True)
    assert sd[1] > 3 * sd[0]
    assert sd[1] == pytest.approx(np.sqrt(process.learnt.variance + process.learnt.noise) * Y.std(), rel=0.01)


def test_same_samples_same_model() -> None:
    found = rush_samples()
    first, second = (fit_edge(found, "gaussian").latencies(found.asked) for _ in range(2))
    assert first.mean.tobytes() == second.mean.tobytes()
    assert first.sd.tobytes() == second.sd.tobytes()


def test_a_rush_is_learnt_by_the_clock() -> None:
    model = fit_edge(rush_samples(), "gaussian")
    calm, rush = (
        model.latencies(ask(seen, np.array([2 * SECOND]), 2)).mean[0]
        for seen in (observed(second, 2 * SECOND, 4 * SECOND, 100_000)[1] for second in (10, 28))
    )
    assert calm == pytest.approx(2.2, abs=0.2)
    assert rush == pytest.approx(5.2, abs=0.6)  # two seconds ahead of it


def test_without_a_sample_like_it_the_prior_mean_holds() -> None:
    model = fit_edge(rush_samples(), "gaussian")
    far = observed(10, 20 * SECOND, 19 * SECOND, 100_000)[1]
    estimate = model.latencies(ask(far, np.array([20 * SECOND]), 2))
    assert estimate.mean[0] == pytest.approx(19.1, abs=4 * estimate.sd[0])


@pytest.mark.parametrize("model", list(MODELS))
def test_every_model_says_what_it_expects_and_how_surely(model: str) -> None:
    found = rush_samples()
    fitted = fit_edge(found, model)
    estimate = fitted.latencies(found.asked)
    assert estimate.mean.shape == estimate.sd.shape == (len(found),)
    assert np.all(estimate.sd >= 0)
    spread = found.latency.std()
    assert np.sqrt(np.mean((estimate.mean - found.latency) ** 2)) < spread
    assert fitted.ready_rows(found.asked).shape == (len(found),)


class Average:
    """A model of a user: the mean of all."""

    def fit(self, x: Floats, y: Floats) -> Average:
        self.mean = float(y.mean())
        return self

    def predict(self, x: Floats) -> Any:
        return [self.mean] * len(x)


def test_a_model_of_your_own_is_copied_and_gets_the_deviation_of_its_residuals() -> None:
    found, mine = rush_samples(), Average()
    fitted = fit_edge(found, mine)
    estimate = fitted.latencies(found.asked)
    assert not hasattr(mine, "mean")
    assert estimate.mean[0] == pytest.approx(found.latency.mean())
    assert estimate.sd[0] == pytest.approx(found.latency.std())
    assert fitted.ready_rows(found.asked)[0] == pytest.approx(found.ready.mean())


def test_wrong_models_are_refused() -> None:
    found = rush_samples()
    with pytest.raises(InputError, match="model must be one of gaussian, linear, isotonic, svm; got 'forest'"):
        fit_edge(found, "forest")
    with pytest.raises(InputError, match="model must have the methods fit and predict; got 7"):
        fit_edge(found, 7)  # type: ignore[arg-type]


def test_features_are_the_papers_six_and_what_the_gate_saw() -> None:
    assert PAPER == ("slack", "hour", "minute", "second", "threads", "window")
    seen = observed(0, 3 * SECOND, 4 * SECOND, 250_000, slope=0.5)[1]._replace(threads=4, window_us=5 * SECOND)
    asked = ask(seen, np.array([SECOND, 9 * SECOND]), 2)
    clock = (START // SECOND + 2) % 86_400
    row = dict(zip(ALL, asked.features[0], strict=True))
    assert row == pytest.approx(
        {
            "slack": 1.0,
            "hour": clock / 3600,
            "minute": clock % 3600 / 60,
            "second": clock % 60,
            "threads": 4,
            "window": 5.0,
            "lag": 5.0,  # 4 s, and half a second for each of the next two
            "lag_slope": 0.5,
            "overhead": 0.25,
        }
    )
    assert asked.wait.tolist() == [1.0, 5.0]


def test_waits_are_in_wall_time() -> None:
    seen = observed(0, 8 * SECOND, 16 * SECOND, 0, speed=4.0)[1]
    asked = ask(seen, np.array([8 * SECOND, 40 * SECOND]), 2)
    assert asked.wait.tolist() == [2.0, 4.0]
    assert asked.features[:, 0].tolist() == [2.0, 10.0]


def test_the_input_that_is_most_behind_waits_for_nothing() -> None:
    bus = observed(0, 3 * SECOND, 4 * SECOND, 0, slope=0.5)[0]
    assert ask(bus, np.array([SECOND, 9 * SECOND]), 2).wait.tolist() == [0.0, 0.0]


def test_samples_are_made_of_intervals_whose_horizon_had_one_slack_that_was_not_lowered() -> None:
    run = made_run(8, SECOND, lambda _: 0)[1::2]
    assert len(samples([run], 2)) == 6
    lowered = [*run[:4], *(seen._replace(slack_us=SECOND // 2) for seen in run[4:])]
    assert len(samples([lowered], 2)) == 4  # not 2 and 3: what follows has two slacks; nor 3: it was lowered
    gap = [seen for seen in run if seen.interval != 4]
    assert len(samples([gap], 2)) == 3
    silent = [seen._replace(rows=0) if seen.interval == 7 else seen for seen in run]
    assert len(samples([silent], 2)) == 5
    assert len(samples([], 2)) == len(samples([[]], 2)) == 0
