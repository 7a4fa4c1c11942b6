"""Windows of one size that are given at once, also such that overlap: every window by itself.

A row counts in those of its windows that have not been given finally when it comes; it is too late when all have. Rows
are folded into partial results of their windows, which are added to what stands. Where rows can be taken back, or an
aggregate has no partial form, the rows themselves are held (`window_rows`) and touched windows are folded anew.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from latecomer.chunks import ChunkStore
from latecomer.codec import widened
from latecomer.events import EVENT_CHANGE, EventBatch, Int64s, Layout, concat_rows, take_rows
from latecomer.optimistic.history import Past
from latecomer.optimistic.key_states import groups_of
from latecomer.optimistic.standing import Touched, WindowsAtOnce
from latecomer.optimistic.window_rows import WindowRows
from latecomer.outputs import Output, refused
from latecomer.progress import Timeline
from latecomer.windows import Window
from latecomer.windows.folding import SLICE, Folding, slices_of
from latecomer.windows.grouping import group_rows, number_keys
from latecomer.windows.slices import window_results
from latecomer.windows.spans import Spans, fold_spans, spans_of

if TYPE_CHECKING:
    from latecomer.optimistic.windows import OptimisticWindows

MISSED = "missed_windows"


class FixedWindowsAtOnce(WindowsAtOnce):
    """Gives windows of one size at once."""

    def __init__(self, settings: OptimisticWindows, window: Window, store: ChunkStore, layout: Layout) -> None:
        folding = Folding(layout.key, settings.aggregates)
        super().__init__(settings, store, layout, folding, SLICE)
        self._window, self._rows = window, WindowRows(store, window, layout, settings.wait_us + settings.length_us)
        self._in_parts = all(aggregate.mergeable for aggregate in settings.aggregates)

    def _touch(self, batch: EventBatch, timeline: Timeline) -> Generator[Output, None, Touched | None]:
        batch = EventBatch(widened(batch.rows), self.layout).sorted()  # so sums of floats are added in one order
        passed_us = timeline.punctuations(self._settings.wait_us)
        before_us = timeline.before(batch.tick, passed_us)
        spans, missed = spans_of(batch.ts_us, before_us, self._window)
        too_late = spans.first > spans.last
        if too_late.any():
            yield from refused(batch, too_late, before_us, timeline)
        self._counts[MISSED] = int(missed[~too_late].sum())
        batch, spans = batch.filter(~too_late), spans.take(np.flatnonzero(~too_late))
        if len(batch) == 0:
            return None
        if self._in_parts and EVENT_CHANGE not in batch.rows.schema.names:
            return self._added(batch, spans)
        return self._anew(batch, spans, timeline, passed_us)

    def _added(self, batch: EventBatch, spans: Spans) -> Touched:
        """Rows are added to the partial results of their windows."""
        came = self._fold(batch.rows, spans)
        group = groups_of(came, self.layout.key)
        past = self._load(came, group)
        if past is None:
            return Touched(None, _NONE, came, group, _NONE)
        old, successor = self._standing_of(came, came, past)
        both = concat_rows([take_rows(past.rows, old), came])
        number = np.append(successor, np.arange(came.num_rows))
        return Touched(past, old, self._folding.reduced(both, group_rows([number])), group, successor)

    def _anew(self, batch: EventBatch, spans: Spans, timeline: Timeline, passed_us: Int64s) -> Touched | None:
        """The windows that rows come to, or leave, are folded anew."""
        found = self._rows.take(batch, spans, lambda tick: timeline.before(tick, passed_us), int(passed_us[-1]))
        if found is None:
            return None
        keys_only = Folding(self.layout.key, ())
        touched = fold_spans(keys_only, self._window, found.touching.rows, self.layout.time, found.touching.spans)
        computed = self._fold(found.counting.rows, found.counting.spans)
        past = self._load(touched, groups_of(touched, self.layout.key))
        (of_touched, of_computed), size, _ = number_keys([touched, computed], self._names)
        wanted = np.zeros(size, dtype=np.bool_)
        wanted[of_touched] = True
        now = take_rows(computed, np.flatnonzero(wanted[of_computed]))
        old, successor = (_NONE, _NONE) if past is None else self._standing_of(touched, now, past)
        return Touched(past, old, now, groups_of(now, self.layout.key), successor)

    def _fold(self, rows: pa.RecordBatch, spans: Spans) -> pa.RecordBatch:
        return fold_spans(self._folding, self._window, rows, self.layout.time, spans)

    def _load(self, touched: pa.RecordBatch, group: Int64s) -> Past | None:
        """What stands, of the chunks that may have one of these windows."""
        return self._standing.load_near(group, slices_of(touched), slices_of(touched))

    def _standing_of(self, touched: pa.RecordBatch, now: pa.RecordBatch, past: Past) -> tuple[Int64s, Int64s]:
        """The places of those stored that are touched, and of those that stand now instead."""
        (of_touched, of_now, of_past), size, _ = number_keys([touched, now, past.rows], self._names)
        wanted, place = np.zeros(size, dtype=np.bool_), np.full(size, -1)
        wanted[of_touched], place[of_now] = True, np.arange(now.num_rows)
        old = np.flatnonzero(wanted[of_past])
        return old, place[of_past[old]]

    @property
    def _names(self) -> tuple[str, ...]:
        return (SLICE, *self.layout.key)

    def _pass(self, passed_us: int, mark_us: int) -> Iterator[Output]:
        return self._rows.expire(passed_us, mark_us)

    def _results(self, table: pa.RecordBatch) -> pa.RecordBatch:
        return window_results(self._folding, self._window, table)


_NONE: Int64s = np.zeros(0, dtype=np.int64)
