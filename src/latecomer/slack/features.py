"""What the models see: the paper's six features, and three that say what the gate has just seen.

A sample pairs what was known after one interval with what came in the next ones, the horizon: the largest latency, and
the slack-ready rows of an interval. The clock is that of the last row read, moved on to the end of the horizon; so is
the lag. Waits are told in wall time: a slack, or a lag, by the speed of event time. Seconds everywhere.

Paper: Slack-ScaleGate, section 5.2.1 (SLT, hour, minute, second, threads, window).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from latecomer.events import Int64s
from latecomer.slack.observation import Observation

Floats = npt.NDArray[np.float64]

SECOND = 1e6
PAPER = ("slack", "hour", "minute", "second", "threads", "window")
ALL = (*PAPER, "lag", "lag_slope", "overhead")


class Asked(NamedTuple):
    """Questions for a model: a row of features each, how long a row would wait, and how many would be slack-ready."""

    features: Floats
    wait: Floats
    ready: Floats

    def take(self, chosen: Int64s) -> Asked:
        """Some of them."""
        return Asked(self.features[chosen], self.wait[chosen], self.ready[chosen])


class Samples(NamedTuple):
    """Questions and what came: the largest latency of the horizon, and the slack-ready rows of an interval."""

    asked: Asked
    latency: Floats
    ready: Floats

    def __len__(self) -> int:
        return len(self.latency)

    def take(self, chosen: Int64s) -> Samples:
        """Some of them."""
        return Samples(self.asked.take(chosen), self.latency[chosen], self.ready[chosen])


def ask(seen: Observation, slacks_us: Int64s, horizon: int, shifted: int = 0) -> Asked:
    """The questions after an interval: what if the slack were one of these? `shifted`: the clock, by some intervals."""
    ahead = horizon * seen.lasted_us / SECOND
    slack, slope = slacks_us / (SECOND * seen.speed), seen.lag_slope / seen.speed
    lag, behind = (each / (SECOND * seen.speed) for each in (seen.lag_us, seen.behind_us))
    later = max(0.0, lag + slope * ahead)
    grows, ahead_of_merge = max(0.0, later - lag), lag > behind
    features = np.empty((len(slacks_us), len(ALL)))
    features[:, 0] = slack
    clock = _clock(seen, ahead + shifted * seen.lasted_us / SECOND)
    features[:, 1:] = [*clock, seen.threads, seen.window_us / SECOND, lag + grows, slope, seen.overhead_us / SECOND]
    until_ready = lag - behind + grows if ahead_of_merge else 0.0  # the slowest input never waits for itself
    wait = np.maximum(0.0, np.minimum(until_ready, slack - behind))
    exceeds = np.clip((lag + grows - slack) / max(abs(later - lag), 1e-3), 0.0, 1.0)  # the part of the horizon
    return Asked(features, wait, exceeds * arriving(seen) * ahead_of_merge)


def _clock(seen: Observation, ahead: float) -> tuple[float, float, float]:
    """The time of day that is asked about: in hours, the minutes of its hour, and the seconds of its minute.

    It is that of the last row read, moved on by what that had waited and by the horizon.
    """
    waited_us = min(seen.lag_us, seen.slack_us)
    clock = ((seen.clock_us + waited_us) / SECOND + ahead * seen.speed) % 86_400.0
    return clock / 3_600, clock % 3_600 / 60, clock % 60


def arriving(seen: Observation) -> float:
    """How many rows come in an interval: as many as are read, if the lag that grows meanwhile is taken off."""
    grows = seen.lag_slope / seen.speed if seen.lag_us <= seen.slack_us else 0.0
    return seen.rows / max(1.0 - grows, 0.2)


def samples(runs: Sequence[Sequence[Observation]], horizon: int) -> Samples:
    """All samples of one edge: intervals whose horizon was seen, with one slack that was not lowered just before."""
    asked, latency, ready = [], [], []
    for run in runs:
        for place in range(len(run) - horizon):
            now, then = run[place], run[place + 1 : place + 1 + horizon]
            if _usable(now, then):
                asked.append(ask(now, np.array([then[0].slack_us]), horizon))
                latency.append(max(each.latency_us for each in then) / SECOND)
                ready.append(sum(each.slack_ready for each in then) / horizon)
    joined = Asked(*(np.concatenate(part) for part in zip(*asked, strict=True))) if asked else _nothing()
    return Samples(joined, np.array(latency), np.array(ready))


def _usable(now: Observation, then: Sequence[Observation]) -> bool:
    slack_us = then[0].slack_us
    return (
        now.slack_us <= slack_us
        and now.rows > 0
        and all(each.slack_us == slack_us and each.rows > 0 for each in then)
        and then[-1].interval - now.interval == len(then)
    )


def _nothing() -> Asked:
    return Asked(np.empty((0, len(ALL))), np.empty(0), np.empty(0))
