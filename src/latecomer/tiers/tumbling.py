"""Tiers over windows that do not overlap: a window is one slice, and an event is in one of them.

An event goes to the first tier that has not given the answer of its window. Each tier folds its events into partial
results, a row per window and key. When its punctuation has passed a window, its partial results are united with those
of the tiers before, which gives the tier's answer, and go on to the next tier. So the rows that are not fresh in a
window that closes are what the tiers before have said of it.

Invariants
1. A tier's answer for a window has every event of it that came before the tier's punctuation had passed its end.
2. A partial result waits in one tier at a time: it moves on when its window closes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from latecomer.chunks import ChunkStore
from latecomer.contract import Machine, check_held
from latecomer.events import FOREVER_US, EventBatch, Int64s, Layout, concat_rows, take_rows
from latecomer.lateness import due_times
from latecomer.outputs import Output, refused
from latecomer.progress import Timeline
from latecomer.tiers.latencies import punctuations_before, tier_answer, tiers_of
from latecomer.windows import Window
from latecomer.windows.folding import FRESH, SLICE, Folding, freshness, slices_of
from latecomer.windows.grouping import group_rows
from latecomer.windows.slices import Slices, passed_windows, window_results

if TYPE_CHECKING:
    from latecomer.tiers.tiers import Tiers


class TumblingTiers(Machine):
    """Tiers over windows of one slice."""

    def __init__(self, settings: Tiers, window: Window, store: ChunkStore, layout: Layout) -> None:
        super().__init__(store, layout)
        self._settings = settings
        self._latencies_us = settings.latencies_us
        self._window = window
        self._folding = Folding(layout.key, settings.aggregates)

    def push(self, batch: EventBatch, timeline: Timeline) -> Iterator[Output]:
        before_us = punctuations_before(batch, timeline, self._latencies_us)
        tier, late = np.zeros(len(batch), dtype=np.int64), np.flatnonzero(batch.ts_us <= before_us[0])
        if len(late):  # the others are in time for every tier
            due_us = due_times(batch.ts_us[late], self._window.cut, self._settings.lateness)
            tier[late] = tiers_of(due_us, [punctuation_us[late] for punctuation_us in before_us])
        too_late = tier == len(before_us)
        if too_late.any():
            yield from refused(batch, too_late, before_us[-1], timeline)
            batch, tier = batch.filter(~too_late), tier[~too_late]
        came: dict[int, pa.RecordBatch] = {}
        if len(batch):
            came = dict(self._folding.partials(batch.rows, self.layout.time, self._window.cut, tier))
        yield from self._close(came, [timeline.punctuation(latency_us) for latency_us in self._latencies_us])
        check_held(self.held, self._settings.max_held, "partial results")

    def punctuation(self, timeline: Timeline) -> int:
        return self._settings.punctuation(timeline)

    def passed(self, timeline: Timeline) -> Int64s:
        return passed_windows(timeline.punctuations(self._latencies_us[-1]), self._window)

    def finish(self) -> Iterator[Output]:
        yield from self._close({}, [FOREVER_US] * len(self._latencies_us))

    def _close(self, came: dict[int, pa.RecordBatch], punctuations_us: list[int]) -> Iterator[Output]:
        """Tier by tier, close the windows that are passed; what they hold moves on to the next tier."""
        moved: pa.RecordBatch | None = None
        for tier, punctuation_us in enumerate(punctuations_us):
            arrived = [table for table in (came.get(tier), moved) if table is not None]
            closed = Slices(self._folding, self._window, self.store, tier).close(arrived, punctuation_us)
            moved = None
            if closed is not None:
                moved = self._known(closed)
                yield from self._answers(tier, _both(closed, moved))

    def _known(self, closed: pa.RecordBatch) -> pa.RecordBatch:
        """What closed windows hold, as the next tier knows it; all fresh or none, it is merged already."""
        fresh = closed.column(FRESH).to_numpy()
        known = freshness(closed, 0)
        return known if bool((fresh == fresh[0]).all()) else self._folding.merge([known])

    def _answers(self, tier: int, windows: pa.RecordBatch) -> Iterator[Output]:
        """The answer of a tier for windows that close."""
        folding, place = self._folding, (tier, len(self._latencies_us))
        groups = folding.groups(windows, (SLICE,))
        fresh = windows.column(FRESH).to_numpy() == 1
        if bool(fresh.all()):
            yield from tier_answer(place, window_results(folding, self._window, folding.reduced(windows, groups)))
            return
        number = groups.spread(np.arange(len(groups)))
        now, _ = self._results(windows, number, np.flatnonzero(fresh))
        yield from tier_answer(place, now, *self._results(windows, number, np.flatnonzero(~fresh)))

    def _results(self, windows: pa.RecordBatch, number: Int64s, chosen: Int64s) -> tuple[pa.RecordBatch, Int64s]:
        """What the user sees of the windows that some rows make up, and the numbers of those."""
        groups = group_rows([number[chosen]])
        table = self._folding.reduced(take_rows(windows, chosen), groups)
        return window_results(self._folding, self._window, table), number[chosen][groups.firsts]


def _both(closed: pa.RecordBatch, now: pa.RecordBatch) -> pa.RecordBatch:
    """What the tiers before said of windows, as not fresh, and what is to be said now, as fresh.

    Two whole versions, not one and what was added: the next tier computes from `now` what it has to void, and sums of
    floats must come out the same to the bit.
    """
    known = np.flatnonzero(closed.column(FRESH).to_numpy() == 0)
    if len(known) == 0:
        return freshness(now, 1)
    both = concat_rows([take_rows(closed, known), freshness(now, 1)])
    return take_rows(both, np.argsort(slices_of(both), kind="stable"))
