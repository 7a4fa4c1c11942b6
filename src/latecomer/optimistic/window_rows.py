"""The rows of windows that may change still: held where rows can be taken back, or an aggregate has no partial form.

A row is stored with the first window that it counts in; it counts in all its later ones. A retraction takes it out of
those that are open then: in windows that had been given finally it stays, and none of them is asked for again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from latecomer.chunks import Store
from latecomer.events import (
    FOREVER_US,
    NEVER_US,
    Bools,
    EventBatch,
    Int64s,
    Layout,
    concat_rows,
    int64_view,
    take_rows,
    total_order,
)
from latecomer.optimistic.history import History, Past
from latecomer.optimistic.key_states import groups_of
from latecomer.optimistic.retractions import Voided, Waiting, void_ticks
from latecomer.outputs import Output
from latecomer.windows.grouping import number_keys
from latecomer.windows.spans import Spans, last_window, open_from
from latecomer.windows.window import Window

_FIRST = "_lc_first"
Before = Callable[[Int64s], Int64s]


class Counting(NamedTuple):
    """Rows, and the windows that they count in."""

    rows: pa.RecordBatch
    spans: Spans

    def take(self, chosen: Int64s) -> Counting:
        """Some of them."""
        return Counting(take_rows(self.rows, chosen), self.spans.take(chosen))


class Changed(NamedTuple):
    """Rows that come to windows; those whose windows are to be folded anew; and all rows that count in these."""

    came: Counting
    anew: Counting
    counting: Counting


def rows_due(punctuation_us: int, window: Window) -> int:
    """The last time of which all windows are final when a punctuation has come so far."""
    if punctuation_us in (NEVER_US, FOREVER_US):
        return punctuation_us
    return open_from(punctuation_us, window) * window.slice_us + window.offset_us - 1


class WindowRows:
    """Stored rows, and retractions that wait for theirs."""

    def __init__(self, store: Store, window: Window, layout: Layout, held_us: int) -> None:
        self._window, self._layout = window, layout
        self._history = History(store.part(1, 3), layout.time, held_us)
        self._waiting = Waiting(store.part(2, 3), layout)

    def take(self, batch: EventBatch, spans: Spans, before: Before, passed_us: int, *, in_parts: bool) -> Changed:
        """Take rows and retractions in; before: the punctuations before ticks of the micro-batch.

        in_parts: what comes to windows can be added to them; only those that lose a row must be folded anew.
        """
        group = groups_of(batch.rows, self._layout.key)
        asking = np.flatnonzero(batch.change < 0) if in_parts else np.arange(len(batch))
        past = self._load(group[asking], spans.take(asking)) if len(asking) else None
        found = void_ticks(batch, past, self._waiting.take())
        self._waiting.put(found.waiting)
        plus = np.flatnonzero(batch.change > 0)
        self._store(past, found, group[plus], spans.first[plus], passed_us)
        rows, is_new = self._together(past, found, spans.take(plus))
        return self._changed(rows, is_new, self._lost_from(rows.spans, found, before), in_parts=in_parts)

    def expire(self, punctuation_us: int, mark_us: int) -> Iterator[Output]:
        """Hold no longer what no open window has; gives retractions whose row did not come."""
        due_us = rows_due(punctuation_us, self._window)
        yield from self._waiting.unmatched(due_us, mark_us)
        self._history.expire(due_us)

    def _load(self, group: Int64s, spans: Spans) -> Past | None:
        """What is stored of the windows of rows, whose keys are of these groups."""
        first_us, last_us = (each * self._window.slice_us + self._window.offset_us for each in spans)
        return self._history.load_near(group, first_us, last_us + (self._window.size_us - 1))

    def _store(self, past: Past | None, found: Voided, group: Int64s, first: Int64s, passed_us: int) -> None:
        """Store the new rows that are not void, and no longer those that are."""
        due_us, gone = rows_due(passed_us, self._window), np.flatnonzero(found.stored < FOREVER_US)
        if past is not None and len(gone):
            self._history.remove(past, gone, due_us)
        left = np.flatnonzero(found.new == FOREVER_US)
        rows = take_rows(found.rows.append_column(_FIRST, pa.array(first)), left)
        self._history.put(rows, group[left], due_us)

    def _together(self, past: Past | None, found: Voided, spans: Spans) -> tuple[Counting, Bools]:
        """Stored rows and new ones, with the windows in which they count until they are void; and which are new."""
        if past is None:
            return Counting(found.rows, spans), np.ones(found.rows.num_rows, dtype=np.bool_)
        rows = past.rows.select(found.rows.schema.names)
        slices = (int64_view(rows.column(self._layout.time)) - self._window.offset_us) // self._window.slice_us
        first = np.append(int64_view(past.rows.column(_FIRST)), spans.first)
        last = np.append(last_window(slices, self._window), spans.last)
        return Counting(concat_rows([rows, found.rows]), Spans(first, last)), np.arange(len(first)) >= len(slices)

    def _lost_from(self, spans: Spans, found: Voided, before: Before) -> Int64s:
        """For each row the first window in which it does not count: those after its own, or that were open then."""
        lost, tick = spans.last + self._window.step, np.append(found.stored, found.new)
        void = np.flatnonzero(tick < FOREVER_US)
        lost[void] = np.minimum(lost[void], open_from(before(tick[void]), self._window))
        return lost

    def _changed(self, rows: Counting, is_new: Bools, lost: Int64s, *, in_parts: bool) -> Changed:
        """Which windows change, given the first in which each row does not count."""
        (first, last), table = rows.spans, rows.rows
        counted, left = Spans(first, lost - self._window.step), Spans(np.maximum(first, lost), last)
        came = Counting(table, counted).take(np.flatnonzero(is_new & (counted.last >= first)))
        anew = Counting(table, left).take(np.flatnonzero(~is_new & (left.last >= left.first)))
        if not in_parts:
            both = (np.append(*each) for each in zip(anew.spans, came.spans, strict=True))
            anew = Counting(concat_rows([anew.rows, came.rows]), Spans(*both))
        if anew.rows.num_rows == 0:
            return Changed(came, anew, anew)
        counting = Counting(table, counted).take(self._near(table, counted, anew))
        return Changed(came, anew, counting.take(total_order(EventBatch(counting.rows, self._layout))))

    def _near(self, rows: pa.RecordBatch, counted: Spans, anew: Counting) -> Int64s:
        """The rows that count in windows of their key from the first of those that are folded anew to the last."""
        (key, of_anew), size, _ = number_keys([rows, anew.rows], self._layout.key)
        least, most = np.full(size, FOREVER_US), np.full(size, NEVER_US)
        np.minimum.at(least, of_anew, anew.spans.first)
        np.maximum.at(most, of_anew, anew.spans.last)
        counts = counted.last >= np.maximum(counted.first, least[key])
        return np.flatnonzero(counts & (counted.first <= most[key]))
