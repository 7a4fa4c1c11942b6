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
from latecomer.optimistic.key_states import groups_of
from latecomer.optimistic.standing import Touched, WindowsAtOnce
from latecomer.optimistic.window_rows import Changed, Counting, WindowRows
from latecomer.outputs import Output, refused
from latecomer.progress import Timeline
from latecomer.windows import Window
from latecomer.windows.folding import SLICE, Folding, slices_of
from latecomer.windows.grouping import group_rows, number_keys
from latecomer.windows.slices import window_results
from latecomer.windows.spans import fold_spans, spans_of

if TYPE_CHECKING:
    from latecomer.optimistic.windows import OptimisticWindows

MISSED = "missed_windows"
Tables = list[pa.RecordBatch]


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
            return self._stand([self._fold(Counting(batch.rows, spans))], [], [])
        before, in_parts = (lambda tick: timeline.before(tick, passed_us)), self._in_parts
        changed = self._rows.take(batch, spans, before, int(passed_us[-1]), in_parts=in_parts)
        return self._stand(*self._changed(changed))

    def _changed(self, changed: Changed) -> tuple[Tables, Tables, Tables]:
        """Windows that rows are added to, those that are folded anew, and those that have no rows any more."""
        came = [self._fold(changed.came)] if changed.came.rows.num_rows and self._in_parts else []
        if changed.anew.rows.num_rows == 0:
            return came, [], []
        anew = self._fold(changed.anew, Folding(self.layout.key, ()))
        computed = [self._fold(changed.counting)] if changed.counting.rows.num_rows else []
        numbers, size, _ = number_keys([anew, *came, *computed], self._names)
        is_anew, has_rows = np.zeros(size, dtype=np.bool_), np.zeros(size, dtype=np.bool_)
        is_anew[numbers[0]] = True
        of_came, of_computed = numbers[1 : 1 + len(came)], numbers[1 + len(came) :]
        for number in of_computed:
            has_rows[number] = True
        added = [take_rows(table, np.flatnonzero(~is_anew[n])) for table, n in zip(came, of_came, strict=True)]
        again = [take_rows(table, np.flatnonzero(is_anew[n])) for table, n in zip(computed, of_computed, strict=True)]
        return added, again, [take_rows(anew, np.flatnonzero(~has_rows[numbers[0]]))]

    def _stand(self, added: Tables, again: Tables, gone: Tables) -> Touched | None:
        """Windows against what stands of them: rows are added to some, some are in its place, some are no more."""
        asked = [table.select(self._names) for table in (*added, *again, *gone)]
        if sum(table.num_rows for table in asked) == 0:
            return None
        windows = concat_rows(asked)
        group, start_us = groups_of(windows, self.layout.key), slices_of(windows)
        past = self._standing.load_near(group, start_us, start_us)
        size = sum(table.num_rows for table in (*added, *again))
        if past is None:
            return Touched(None, _NONE, concat_rows([*added, *again]), group, _NONE)
        (own, stored), count, _ = number_keys([windows, past.rows], self._names)
        place = np.full(count, -1)
        place[own] = np.arange(len(own))
        old = np.flatnonzero(place[stored] >= 0)
        at = place[stored[old]]
        grows = at < sum(table.num_rows for table in added)
        parts = concat_rows([take_rows(past.rows, old[grows]), *added, *again])
        now = self._folding.reduced(parts, group_rows([np.append(at[grows], np.arange(size))]))
        return Touched(past, old, now, group[:size], np.where(at < size, at, -1))

    def _fold(self, counting: Counting, folding: Folding | None = None) -> pa.RecordBatch:
        folding = self._folding if folding is None else folding
        return fold_spans(folding, self._window, counting.rows, self.layout.time, counting.spans)

    @property
    def _names(self) -> tuple[str, ...]:
        return (SLICE, *self.layout.key)

    def _pass(self, passed_us: int, mark_us: int) -> Iterator[Output]:
        return self._rows.expire(passed_us, mark_us)

    def _results(self, table: pa.RecordBatch) -> pa.RecordBatch:
        return window_results(self._folding, self._window, table)


_NONE: Int64s = np.zeros(0, dtype=np.int64)
