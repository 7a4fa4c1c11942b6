"""What is expected of one edge in the next intervals, for every wait that its stage could allow.

Models are asked for a few waits, and what they add to the prior mean is drawn in between: it changes slowly. Where an
interval was slower than what was expected at most, the world is not as it was learnt: the difference is added to what
is expected of the following intervals, half as much each time.

Invariants
1. Without models the wait is expected, and the tick and the largest overhead just seen on top, give or take as much as
   overheads vary, and an eighth at least.
2. An interval in which no row was read says nothing of the overhead: the one before still counts.
3. Whatever models say, no less than the overhead just seen is expected above the wait: they know when slow
   times begin, but whether one is over is seen only then.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np

from latecomer.slack.features import ALL, SECOND, Asked, Floats, arriving, ask, samples
from latecomer.slack.landscape import Outlook
from latecomer.slack.models import LEAST_SAMPLES, EdgeModels, Estimate, Regressor, fit_edge
from latecomer.slack.observation import Observation

HORIZON = 2  # intervals: rows that come in the next one may wait into the one after it
_AROUND = (-2, 0, 2)  # intervals by which a pattern may come sooner or later than it was learnt
_ASKED = 11
_UNSURE = 0.12
_FADES = 0.5
_RECENT = 10  # intervals


class EdgeExpectation:
    """The models of an edge, and what was seen of it last."""

    def __init__(self, tick_us: int, z: float, names: Sequence[str] = ALL) -> None:
        self._tick, self._z, self._names = tick_us / SECOND, z, names
        self._models: EdgeModels | None = None
        self._seen: Observation | None = None
        self._overheads_us: deque[int] = deque(maxlen=_RECENT)
        self._at_most_us: float | None = None
        self._slower_us = 0.0

    def fit(self, runs: Sequence[Sequence[Observation]], model: str | Regressor, *, must_suffice: bool) -> None:
        """Learn from runs; where they are too short, stay as before, or say so."""
        found = samples(runs, HORIZON)
        if must_suffice or len(found) >= LEAST_SAMPLES:
            self._models = fit_edge(found, model, self._names)

    def observe(self, seen: Observation) -> None:
        """Go on by an interval."""
        if seen.rows > 0 and self._at_most_us is not None:
            self._slower_us = max(seen.latency_us - self._at_most_us, self._slower_us * _FADES, 0.0)
        if seen.rows == 0 and self._seen is not None:
            seen = seen._replace(overhead_us=self._seen.overhead_us, rows=self._seen.rows)
        self._seen = seen
        self._overheads_us.append(seen.overhead_us)

    def expect(self, at_most_us: float) -> None:
        """Remember what was expected at most of the next interval."""
        self._at_most_us = at_most_us - self._slower_us

    @property
    def known(self) -> bool:
        """Whether anything was seen."""
        return self._seen is not None

    @property
    def last(self) -> Observation:
        """The last observation."""
        assert self._seen is not None, "observe comes first"
        return self._seen

    def outlook(self, waits_us: Floats) -> Outlook:
        """What is known, and what is expected for each wait."""
        few, seen = _few(waits_us), self.last
        above = np.interp(waits_us, few, self._above(few).max(axis=0))
        return Outlook(
            seen.lag_us / seen.speed,
            seen.behind_us / seen.speed,
            seen.lag_slope / seen.speed * HORIZON * seen.lasted_us,
            arriving(seen),
            above * SECOND + self._slower_us,
            np.interp(waits_us, few, self._more_ready(few)),
        )

    def _more_ready(self, waits_us: Floats) -> Floats:
        """The slack-ready rows that a model expects beside those that follow from the lag."""
        asked = self._ask(waits_us)
        if self._models is None:
            return np.zeros(len(waits_us))
        more: Floats = self._models.ready_rows(asked) - asked.ready
        return more

    def _above(self, waits_us: Floats) -> Floats:
        """How far the latency may lie above some waits, a row for each shift of the clock."""
        asked = Asked(*map(np.concatenate, zip(*(self._ask(waits_us, by) for by in _AROUND), strict=True)))
        found = self._estimate(asked)
        seen = self.last.overhead_us / SECOND
        above: Floats = np.maximum(found.mean + self._z * found.sd - asked.wait, seen)
        return above.reshape(len(_AROUND), len(waits_us))

    def _ask(self, waits_us: Floats, shifted: int = 0) -> Asked:
        return ask(self.last, (waits_us * self.last.speed).astype(np.int64), HORIZON, shifted)

    def _estimate(self, asked: Asked) -> Estimate:
        if self._models is not None:
            return self._models.latencies(asked)
        recent = np.array(self._overheads_us) / SECOND
        sd = max(float(recent.std()), _UNSURE * float(recent.max())) + _UNSURE * self._tick
        return Estimate(asked.wait + self._tick + recent.max(), np.full(len(asked.wait), sd))


def _few(waits_us: Floats) -> Floats:
    chosen = np.unique(np.linspace(0, len(waits_us) - 1, min(_ASKED, len(waits_us))).astype(np.int64))
    return waits_us[chosen]
