"""Table 1: how well four models predict the latency and the slack-ready rows of the next two seconds.

The error is the root of the mean squared error divided by the range of what was seen. A random half of the samples
trains, the other half tests, as in the paper; halves of the same days only interpolate, so there are two more tests:
other days, and other days on which the pattern is 17 s away from where it was on the clock.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from latecomer.slack.expectation import HORIZON
from latecomer.slack.features import ALL, PAPER, Floats, Samples, samples
from latecomer.slack.models import MODELS, EdgeModels, fit_edge
from latecomer.slack.observation import Edge, History
from latecomer_lab.slack.calibration import FIRST_DAY, calibrate
from latecomer_lab.slack.streams import FIRST, MOVED_US, SCATS

EDGE: Edge = (FIRST, SCATS)  # the input that waits
HALVES, OTHER_DAYS, MOVED = "random halves", "other days", "other days, pattern moved 17 s"
_LATER_DAY, _MOVED_DAY = 200, 300


class Score(NamedTuple):
    """The errors of a model on one kind of test, in per cent, and how long both its fits took, in processor time."""

    scenario: str
    model: str
    features: str
    tested_on: str
    latency_error: float
    ready_error: float
    seconds_a_fit: float
    samples: int


def score_models(name: str, history: History, seed: int, *, seconds: int | None = None) -> list[Score]:
    """All models on a scenario, whose history trains them."""
    train, test = _halves(samples(history.runs_of(EDGE), HORIZON), seed)
    tests = {HALVES: test}
    for what, day, moved_us in ((OTHER_DAYS, _LATER_DAY, 0), (MOVED, _MOVED_DAY, MOVED_US)):
        other = calibrate(name, seed + FIRST_DAY + day, seconds=seconds, moved_us=moved_us)
        tests[what] = samples(other.runs_of(EDGE), HORIZON)
    found = []
    for model, features in [*((each, ALL) for each in MODELS), ("gaussian", PAPER)]:
        began = time.process_time()
        fitted = fit_edge(train, model, features)
        took = (time.process_time() - began) / len(fitted)
        for tested_on, of in tests.items():
            known = "all" if features == ALL else "paper"
            found.append(Score(name, model, known, tested_on, *errors(fitted, of), round(took, 3), len(train)))
    return found


def _halves(every: Samples, seed: int) -> tuple[Samples, Samples]:
    order = np.random.default_rng(seed).permutation(len(every))
    half = len(every) // 2
    return every.take(np.sort(order[:half])), every.take(np.sort(order[half:]))


def errors(fitted: EdgeModels, of: Samples) -> tuple[float, float]:
    """The errors of latency and slack-ready rows in per cent of their ranges."""
    latency = fitted.latencies(of.asked).mean
    ready = np.maximum(0.0, fitted.ready_rows(of.asked))
    return _error(latency, of.latency), _error(ready, of.ready)


def _error(expected: Floats, seen: Floats) -> float:
    spread = float(np.ptp(seen)) or 1.0
    return round(100.0 * float(np.sqrt(np.mean((expected - seen) ** 2))) / spread, 2)


def of_table(scores: Sequence[Score], tested_on: str, features: str = "all") -> dict[str, Score]:
    """The scores of one test by model."""
    return {each.model: each for each in scores if (each.tested_on, each.features) == (tested_on, features)}
