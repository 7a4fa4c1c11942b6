"""How far rows may be read after each tick: the frontier, and how far it is certain.

Two clocks: the mark is the largest time of all sources, the merge time the least of their latest. Up to the merge time
nothing is missing. The frontier is the running maximum of the merge time, of the mark less the slack, and of the floor
(where the stream idled or ended); after each tick all rows up to it are read.

Invariants
1. The frontier never goes back, also where the slack is raised.
2. A row is read after its own tick, or after the first tick whose frontier has reached it, whichever is later.
3. Frontier and merge time are the same in all shards.

Paper: Maximizing Determinism in Stream Processing Under Latency Constraints, Definitions 2.1 and 3.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from latecomer.events import FOREVER_US, NEVER_US, Bools, Int64s
from latecomer.progress import Timeline
from latecomer.windows.operators import Clocks


class Frontier(NamedTuple):
    """After each tick of a timeline: rows up to `read_us` are read; `ready_us` is the merge time, as it is.

    certain_us: the running maximum of the merge time.
    """

    timeline: Timeline
    read_us: Int64s
    ready_us: Int64s
    certain_us: Int64s

    @classmethod
    def of(cls, timeline: Timeline, slack_us: Int64s, declared: Sequence[str] | None, before: Clocks) -> Frontier:
        """The frontier with the slack in force after each tick, going on from where it and certainty were before.

        declared: the sources that hold the merge time back until they speak; None: no merge time, the slack alone.
        """
        mark_us, floor_us = timeline.mark_us, timeline.floor_us
        merge_us = np.full(len(mark_us), NEVER_US) if declared is None else timeline.merge_us(declared)
        ready_us = np.maximum(merge_us, floor_us)
        never = (mark_us == NEVER_US) | (slack_us == FOREVER_US)
        overtaken_us = np.where(never, NEVER_US, mark_us - np.where(never, 0, slack_us) - 1)
        read_us = np.maximum.accumulate(np.maximum(np.maximum(ready_us, overtaken_us), before.read_us))
        return cls(timeline, read_us, ready_us, np.maximum.accumulate(np.maximum(ready_us, before.certain_us)))

    def after(self, tick: Int64s, values: Int64s) -> Int64s:
        """Of values that hold after each tick of the timeline, those that hold after some ticks."""
        return values[np.maximum(np.searchsorted(self.timeline.tick, tick, side="right") - 1, 0)]

    def before(self, tick: Int64s, values: Int64s) -> Int64s:
        """Of values that hold after each tick of the timeline, those that hold before some ticks."""
        return self.timeline.before(tick, values)

    def clocks(self, tick: int) -> Clocks:
        """What was read, and what was certain, after a tick."""
        ticks = np.array([tick])
        return Clocks(*(int(self.after(ticks, values)[0]) for values in (self.read_us, self.certain_us)))

    def out_of_order(self, ts_us: Int64s, tick: Int64s) -> Bools:
        """Which rows were overtaken: what was read before their tick had passed them."""
        return np.asarray(ts_us < self.before(tick, self.read_us))

    def release_ticks(self, ts_us: Int64s, tick: Int64s) -> Int64s:
        """The tick after which each row is read, for rows that the last frontier has reached."""
        own = ts_us <= self.after(tick, self.read_us)
        reached = np.minimum(np.searchsorted(self.read_us, ts_us, side="left"), len(self.read_us) - 1)
        return np.where(own, tick, self.timeline.tick[reached])

    def slack_ready(self, ts_us: Int64s, release_tick: Int64s) -> Bools:
        """Which rows were read while a source was still behind them."""
        return np.asarray(ts_us > self.after(release_tick, self.ready_us))
