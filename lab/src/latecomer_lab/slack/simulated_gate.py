"""The gate in simulated time, by arrays: rows that have come wait until the frontier has passed them.

After each tick: the mark is the largest time of all sources, the merge time the least of their latest ones, and the
frontier the running maximum of the merge time and of the mark less the slack less 1 us. A row is read in the first
tick, its own or a later one, after which the frontier is not below its time.

Invariants
1. The order of reading is (tick, time, source). Each row is read once, none is refused.
2. `slack_ready`: its time lies above the merge time when it is read. `out_of_order`: it lies below the frontier that
   stood before its own tick.
3. To advance in one step or in many gives the same, as long as the slack of each tick is the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from latecomer.events import NEVER_US, Bools, Int64s


class Rows(NamedTuple):
    """Rows on their way: the number of the report, its time, when and in which tick it comes, its source there."""

    number: Int64s
    ts_us: Int64s
    arrival_us: Int64s
    tick: Int64s
    source: Int64s

    def take(self, chosen: Bools | Int64s) -> Rows:
        """Some of them."""
        return Rows(*(column[chosen] for column in self))

    @classmethod
    def join(cls, pieces: Sequence[Rows]) -> Rows:
        """All of them."""
        return cls(*(np.concatenate(columns) for columns in zip(*pieces, strict=True)))

    @classmethod
    def none(cls) -> Rows:
        """No rows."""
        return cls(*(np.empty(0, dtype=np.int64) for _ in cls._fields))


class Read(NamedTuple):
    """Rows that were read, and in which tick."""

    rows: Rows
    tick: Int64s
    slack_ready: Bools
    out_of_order: Bools

    def in_order(self) -> Int64s:
        """The numbers of the reports in the order in which they were read."""
        return self.rows.number[np.lexsort((self.rows.source, self.rows.ts_us, self.tick))]


class Clocks(NamedTuple):
    """After each tick: the mark, the merge time, the frontier, and the latest time of each source."""

    mark_us: Int64s
    merge_us: Int64s
    frontier_us: Int64s
    latest_us: Int64s  # a row for each source


class SimulatedGate:
    """A gate that has seen all ticks up to one."""

    def __init__(self, sources: int) -> None:
        self._held = Rows.none()
        self._before_us = Rows.none().ts_us  # the frontier before the own tick of each row that is held
        self._latest_us = np.full(sources, NEVER_US)
        self._frontier_us = NEVER_US
        self._next_tick = 0

    def advance(self, arrived: Rows, slack_us: Int64s) -> tuple[Read, Clocks]:
        """Go on by as many ticks as there are slacks, with the rows that came in them."""
        clocks = self._clocks(arrived, slack_us)
        place = arrived.tick - self._next_tick
        stood_us = np.concatenate([[self._frontier_us], clocks.frontier_us])
        rows = Rows.join((self._held, arrived))
        before_us = np.concatenate([self._before_us, stood_us[place]])
        step = np.maximum(rows.tick - self._next_tick, np.searchsorted(clocks.frontier_us, rows.ts_us))
        leaving = step < len(slack_us)
        self._held, self._before_us = rows.take(~leaving), before_us[~leaving]
        left, step, before_us = rows.take(leaving), step[leaving], before_us[leaving]
        read = Read(left, step + self._next_tick, left.ts_us > clocks.merge_us[step], left.ts_us < before_us)
        self._next_tick += len(slack_us)
        self._frontier_us = int(clocks.frontier_us[-1])
        self._latest_us = clocks.latest_us[:, -1].copy()
        return read, clocks

    @property
    def held(self) -> int:
        """How many rows wait."""
        return len(self._held.tick)

    def _clocks(self, arrived: Rows, slack_us: Int64s) -> Clocks:
        latest_us = np.full((len(self._latest_us), len(slack_us)), NEVER_US)
        np.maximum.at(latest_us, (arrived.source, arrived.tick - self._next_tick), arrived.ts_us)
        latest_us = np.maximum(np.maximum.accumulate(latest_us, axis=1), self._latest_us[:, None])
        mark_us, merge_us = latest_us.max(axis=0), latest_us.min(axis=0)
        reached_us = np.maximum(np.maximum(merge_us, mark_us - slack_us - 1), self._frontier_us)
        return Clocks(mark_us, merge_us, np.maximum.accumulate(reached_us), latest_us)
