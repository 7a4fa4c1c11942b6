"""Tiers over windows that overlap: an event counts, in each tier, in those of its windows that the tier has not given.

Each tier folds events into partial results, a row per slice and key. When its punctuation has passed a slice, its
partial results go into the windows that slide over it (`Slices`), and on to the next tier. An event that comes when its
slice is closed in a tier but the last of its windows is not is a straggler there (`Stragglers`); it goes into the slice
of the first tier that has it open, too. What a tier says of a window waits in the next tier, which says what changes.

Invariants
1. A tier's answer for a window has every event of it that came before the tier's punctuation had passed its end.
2. Of a slice, a tier holds the partial result only until it is closed, then the sliding windows and the next tier do.
3. An event whose windows are all given by the last tier is too late; of one that missed some of them there, `missed`
   counts how many.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from latecomer.chunks import ChunkStore, small_groups
from latecomer.contract import Machine, check_held
from latecomer.events import (
    FOREVER_US,
    Bools,
    EventBatch,
    Int64s,
    Layout,
    concat_rows,
    int64_view,
    sort_times,
    take_rows,
)
from latecomer.lateness import BY_EVENT
from latecomer.outputs import Output, refused
from latecomer.progress import Timeline
from latecomer.tiers.latencies import punctuations_before, tier_answer, tiers_of
from latecomer.windows import WINDOW_START, Window
from latecomer.windows.folding import SLICE, Folding, split_parts
from latecomer.windows.grouping import group_rows
from latecomer.windows.slices import RUNS, Slices, last_slice_of, passed_windows, window_results
from latecomer.windows.spans import first_window, last_closed, last_window
from latecomer.windows.stragglers import Came, Stragglers

if TYPE_CHECKING:
    from latecomer.tiers.tiers import Tiers

MISSED = "missed_windows"
_LATE, _SAID = RUNS, RUNS + 1  # runs of a tier: its stragglers, and what the tier before has said
_TIER_RUNS = RUNS + 2
_NONE: list[Came | None] = [None]


def most_held_overlapping(window: Window, tiers: int, accepted_ts_us: Int64s, punctuation_us: int) -> int:
    """Of each event a tier may hold a slice, a straggler, what slides, and what the tier before says of its windows."""
    each = tiers * (3 * window.slices + 6)
    first_us = last_slice_of(punctuation_us, window) * window.slice_us + window.offset_us - 2 * window.size_us
    return each * int((accepted_ts_us > first_us).sum())


class OverlappingTiers(Machine):
    """Tiers over windows of several slices."""

    def __init__(self, settings: Tiers, window: Window, store: ChunkStore, layout: Layout) -> None:
        super().__init__(store, layout)
        self._settings, self._window = settings, window
        self._latencies_us = settings.latencies_us
        self._folding = Folding(layout.key, settings.aggregates)
        self._missed = 0

    def push(self, batch: EventBatch, timeline: Timeline) -> Iterator[Output]:
        self._missed = 0
        before_us = punctuations_before(batch, timeline, self._latencies_us)
        places = np.flatnonzero(batch.ts_us <= before_us[0])  # the others are in time for every tier
        tier, stragglers = np.zeros(len(batch), dtype=np.int64), _NONE * len(before_us)
        if len(places):
            late, passed_us = batch.take(places), [punctuation_us[places] for punctuation_us in before_us]
            tier[places], too_late, stragglers = self._judged(late, passed_us)
            if too_late.any():
                yield from refused(late, too_late, passed_us[-1], timeline)
        came = self._fold(batch, tier < len(before_us), tier)
        punctuations_us = [timeline.punctuation(latency_us) for latency_us in self._latencies_us]
        yield from self._close({} if came is None else dict(split_parts(*came)), stragglers, punctuations_us)
        check_held(self.held, self._settings.max_held, "partial results")

    def counters(self) -> dict[str, int]:
        return {MISSED: self._missed}

    def punctuation(self, timeline: Timeline) -> int:
        return self._settings.punctuation(timeline)

    def passed(self, timeline: Timeline) -> Int64s:
        return passed_windows(timeline.punctuations(self._latencies_us[-1]), self._window)

    def finish(self) -> Iterator[Output]:
        tiers = len(self._latencies_us)
        yield from self._close({}, _NONE * tiers, [FOREVER_US] * tiers)

    def _judged(self, late: EventBatch, before_us: list[Int64s]) -> tuple[Int64s, Bools, list[Came | None]]:
        """Of late events the first tier with their slice open, which are too late, and each tier's stragglers."""
        if self._settings.lateness == BY_EVENT:
            tier = tiers_of(late.ts_us, before_us)
            return tier, tier == len(before_us), _NONE * len(before_us)
        closed = [last_slice_of(punctuation_us, self._window) for punctuation_us in before_us]
        slices = (late.ts_us - self._window.offset_us) // self._window.slice_us
        too_late = ~self._open(slices, closed[-1])
        self._count_missed(slices[~too_late], closed[-1][~too_late])
        return tiers_of(slices, closed), too_late, [self._straggling(late, slices, each) for each in closed]

    def _open(self, slices: Int64s, closed: Int64s) -> Bools:
        """Whether the last window of each slice is open when slices are closed up to another."""
        return np.asarray(last_window(slices, self._window) > last_closed(closed, self._window))

    def _count_missed(self, slices: Int64s, closed: Int64s) -> None:
        """Windows of accepted events that the last tier had given."""
        missed = last_closed(closed, self._window) - first_window(slices, self._window)
        self._missed = int((np.maximum(missed, -self._window.step) // self._window.step + 1).sum())

    def _fold(self, batch: EventBatch, chosen: Bools, part: Int64s) -> tuple[pa.RecordBatch, Int64s] | None:
        """Partial results of chosen events, and the part that each is of."""
        if not chosen.any():
            return None
        rows = batch.filter(chosen).rows
        return self._folding.in_parts(rows, self.layout.time, self._window.cut, part[chosen])

    def _straggling(self, batch: EventBatch, slices: Int64s, closed: Int64s) -> Came | None:
        """The stragglers of a tier, with the first window that they count in."""
        chosen = (slices <= closed) & self._open(slices, closed)
        found = self._fold(batch, chosen, last_closed(closed, self._window) + self._window.step)
        return None if found is None else Came(*found)

    def _close(
        self, came: dict[int, pa.RecordBatch], stragglers: list[Came | None], punctuations_us: list[int]
    ) -> Iterator[Output]:
        """Tier by tier, close slices, which move on to the next tier, and give the windows that are passed."""
        moved: pa.RecordBatch | None = None
        said: pa.RecordBatch | None = None
        for tier, punctuation_us in enumerate(punctuations_us):
            slices = Slices(self._folding, self._window, self.store, _TIER_RUNS * tier)
            arrived = [table for table in (came.get(tier), moved) if table is not None]
            moved = slices.close(arrived, punctuation_us)
            windows = slices.slide(moved, punctuation_us)
            closing = last_closed(last_slice_of(punctuation_us, self._window), self._window)
            late = Stragglers(self._folding, self._window, self.store, _TIER_RUNS * tier + _LATE)
            tables = [*([] if windows is None else [windows]), *late.close(stragglers[tier], closing)]
            old = self._said(tier, said, closing)
            said = self._results(concat_rows(tables)) if tables else None
            if said is not None:
                standing = None if old is None else self._matched(old, said)
                yield from tier_answer((tier, len(punctuations_us)), said, old, standing)

    def _said(self, tier: int, said: pa.RecordBatch | None, closing: int) -> pa.RecordBatch | None:
        """What the tier before has said of the windows that close; of others it waits."""
        run, last_us = _TIER_RUNS * tier + _SAID, closing * self._window.slice_us + self._window.offset_us
        waiting = [chunk for chunk in self.store.chunks if chunk.run == run]
        passed = {chunk for chunk in waiting if chunk.ts_min_us <= last_us}
        passed.update(chunk for group in small_groups(waiting) for chunk in group)  # many small ones become one
        tables = [*self.store.take(sorted(passed)), *([] if said is None else [said])]
        if not tables:
            return None
        table = concat_rows(tables)
        start_us, order = sort_times(int64_view(table.column(WINDOW_START)))
        table, cut = take_rows(table, order), int(np.searchsorted(start_us, last_us, side="right"))
        if cut < table.num_rows:
            self.store.append(table.slice(cut), start_us[cut:], run, compressed=True)
        return table.slice(0, cut) if cut else None

    def _results(self, windows: pa.RecordBatch) -> pa.RecordBatch:
        """What the user sees of windows."""
        groups = self._folding.groups(windows, (SLICE,))
        return window_results(self._folding, self._window, self._folding.reduced(windows, groups))

    def _matched(self, old: pa.RecordBatch, now: pa.RecordBatch) -> Int64s:
        """For each old result the place of the one that is now of the same window and key."""
        names = (WINDOW_START, *self._folding.keys)
        start, *keys = (pa.concat_arrays([old.column(name), now.column(name)]) for name in names)
        groups = group_rows([int64_view(start), *keys])
        number = groups.spread(np.arange(len(groups)))
        place = np.empty(len(groups), dtype=np.int64)
        place[number[old.num_rows :]] = np.arange(now.num_rows)
        found: Int64s = place[number[: old.num_rows]]
        return found
