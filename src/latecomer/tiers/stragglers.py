"""Stragglers: events whose slice a tier has closed, while some of the windows that they lie in are still open in it.

A partial result of such a slice counts in every window that contains the slice and has not been given. It waits beside
the slices, by its own slice, and is added to each of those windows when that closes. Windows close in order, so all
that waits counts from the first open window on; what came in this micro-batch may count only from a later one on.

Windows are numbered by their first slice here.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import numpy as np
import pyarrow as pa

from latecomer.chunks import Chunk, Store, small_groups
from latecomer.events import NEVER_US, Int64s, concat_rows, take_rows
from latecomer.windows import Window
from latecomer.windows.folding import Folding, moved, slices_of

_MOST_ROWS = 1 << 21  # that are made at a time where rows are repeated for the windows they are in


def last_closed(last_slice: Int64s, window: Window) -> Int64s:
    """The last window that is closed when a slice is; a window after the other is `step` slices further on."""
    return (last_slice - window.slices + 1) // window.step * window.step


def last_window(slices: Int64s, window: Window) -> Int64s:
    """The last window that each slice is in."""
    return slices // window.step * window.step


def first_window(slices: Int64s, window: Window) -> Int64s:
    """The first window that each slice is in."""
    return last_closed(slices - 1, window) + window.step


class Stragglers:
    """The stragglers of one tier, in a run of a store."""

    def __init__(self, folding: Folding, window: Window, store: Store, run: int) -> None:
        self._folding, self._window, self._store, self._run = folding, window, store, run
        self._note = f"open{run}"

    def close(self, came: list[tuple[int, pa.RecordBatch]], closing: int) -> list[pa.RecordBatch]:
        """Take partial results in, with the first window each counts in, and give what they add to windows that close.

        closing: the last window that closes. `_lc_slice` is the start of the window in what is given.
        """
        notes, note = self._store.notes, self._note
        first = notes.get(note, NEVER_US)
        notes[note] = max(first, closing + self._window.step)
        given: list[pa.RecordBatch] = []
        if first <= closing:
            held = ((first, table) for table in self._held(closing))
            for start, table in chain(held, came):
                given += self._added(table, max(first, start), closing)
        self._keep([table for _, table in came], closing)
        return given

    def _held(self, closing: int) -> Iterator[pa.RecordBatch]:
        """What waits; chunks of which no slice is in a window after those that close are gone then."""
        for chunk in self._chunks():
            yield self._store.read(chunk)
            if self._slices_still_open(np.array([chunk.ts_max_us]), closing).size == 0:
                self._store.drop([chunk])

    def _keep(self, tables: list[pa.RecordBatch], closing: int) -> None:
        """Keep what counts in windows that are open still; many small chunks become one."""
        for table in tables:
            self._append(take_rows(table, self._slices_still_open(slices_of(table), closing)))
        for group in small_groups(self._chunks()):
            table = concat_rows(list(self._store.take(group)))
            self._append(self._folding.merge([take_rows(table, self._slices_still_open(slices_of(table), closing))]))

    def _append(self, table: pa.RecordBatch) -> None:
        if table.num_rows:
            self._store.append(table, slices_of(table), self._run)

    def _chunks(self) -> list[Chunk]:
        return [chunk for chunk in self._store.chunks if chunk.run == self._run]

    def _slices_still_open(self, start_us: Int64s, closing: int) -> Int64s:
        """The places of the slices that are in a window after those that close."""
        return np.flatnonzero(last_window(start_us // self._window.slice_us, self._window) > closing)

    def _added(self, table: pa.RecordBatch, first: int, closing: int) -> Iterator[pa.RecordBatch]:
        """What partial results add to the windows from one on, up to those that close."""
        window = self._window
        last = np.minimum(last_window(slices_of(table) // window.slice_us, window), closing)
        chosen = np.flatnonzero(last >= first)
        if len(chosen) == 0:
            return
        table, last = take_rows(table, chosen), last[chosen]
        table = self._folding.merge([moved(table, last * window.slice_us - slices_of(table))])
        last = slices_of(table) // window.slice_us
        band = max(1, _MOST_ROWS // table.num_rows) * window.step
        upto = int(last.max())  # at the end of the stream no window is the last that closes
        for start in range(first, upto + 1, band):
            yield from self._repeated(table, last, start, min(upto, start + band - window.step))

    def _repeated(self, table: pa.RecordBatch, last: Int64s, first: int, upto: int) -> Iterator[pa.RecordBatch]:
        """Rows for each of some windows, of partial results that count up to a last one."""
        window = self._window
        counts = np.maximum((np.minimum(last, upto) - first) // window.step + 1, 0)
        if not counts.any():
            return
        row = np.repeat(np.arange(len(last)), counts)
        number = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
        start = first + number * window.step
        rows = moved(take_rows(table, row), (start - last[row]) * window.slice_us)
        yield self._folding.merge([rows])
