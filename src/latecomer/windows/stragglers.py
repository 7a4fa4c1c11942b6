"""Stragglers: events whose slice is closed, while some of the windows that they lie in are still open.

A partial result of such a slice counts in every window that contains the slice and has not been given. It waits beside
the slices, by its own slice, and is added to each of those windows when that closes. Windows close in order, so all
that waits counts from the first open window on; what came in this micro-batch may count only from a later one on.

Windows are numbered by their first slice here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from latecomer.chunks import Chunk, Store, small_groups
from latecomer.events import NEVER_US, Int64s, concat_rows, take_rows
from latecomer.windows.folding import Folding, moved, slices_of
from latecomer.windows.grouping import group_rows
from latecomer.windows.spans import Spans, last_window, over_windows
from latecomer.windows.window import Window


class Came(NamedTuple):
    """Partial results of stragglers, and for each the first window that it counts in."""

    table: pa.RecordBatch
    first: Int64s


class Stragglers:
    """The stragglers of one aggregation, in a run of a store."""

    def __init__(self, folding: Folding, window: Window, store: Store, run: int) -> None:
        self._folding, self._window, self._store, self._run = folding, window, store, run
        self._note = f"open{run}"

    def close(self, came: Came | None, closing: int) -> list[pa.RecordBatch]:
        """Take partial results in, and give what they add to the windows that close, of which `closing` is the last.

        `_lc_slice` is the start of the window in what is given.
        """
        notes, note = self._store.notes, self._note
        first = notes.get(note, NEVER_US)
        notes[note] = max(first, closing + self._window.step)
        parts = [] if came is None else [came]
        given: list[pa.RecordBatch] = []
        if first <= closing:
            held = [Came(table, np.full(table.num_rows, first)) for table in self._held(closing)]
            given = list(self._added([*held, *parts], first, closing))
        self._keep(parts, closing)
        return given

    def _held(self, closing: int) -> Iterator[pa.RecordBatch]:
        """What waits; chunks of which no slice is in a window after those that close are gone then."""
        for chunk in self._chunks():
            yield self._store.read(chunk)
            if len(self._open_after(np.array([chunk.ts_max_us]), closing)) == 0:
                self._store.drop([chunk])

    def _keep(self, parts: list[Came], closing: int) -> None:
        """Keep what counts in windows that are open still; many small chunks become one."""
        for table, _ in parts:
            self._append(table, closing)
        for group in small_groups(self._chunks()):
            self._append(concat_rows(list(self._store.take(group))), closing)

    def _append(self, table: pa.RecordBatch, closing: int) -> None:
        rows = take_rows(table, self._open_after(slices_of(table), closing))
        if rows.num_rows:
            rows = self._folding.merge([rows])
            self._store.append(rows, slices_of(rows), self._run)

    def _chunks(self) -> list[Chunk]:
        return [chunk for chunk in self._store.chunks if chunk.run == self._run]

    def _open_after(self, start_us: Int64s, closing: int) -> Int64s:
        """The places of the slices that are in a window after those that close."""
        return np.flatnonzero(last_window(start_us // self._window.slice_us, self._window) > closing)

    def _added(self, parts: list[Came], open_from: int, closing: int) -> Iterator[pa.RecordBatch]:
        """What partial results add to the windows that close: a row for each window that they count in."""
        if not parts:
            return
        window, table = self._window, concat_rows([part.table for part in parts])
        first = np.maximum(np.concatenate([part.first for part in parts]), open_from)
        last = np.minimum(last_window(slices_of(table) // window.slice_us, window), closing)
        chosen = np.flatnonzero(last >= first)
        if len(chosen) == 0:
            return
        table, first, last = take_rows(table, chosen), first[chosen], last[chosen]
        groups = group_rows([first, last, *(table.column(key) for key in self._folding.keys)])
        table, first, last = self._folding.reduced(table, groups), first[groups.firsts], last[groups.firsts]
        table = moved(table, first * window.slice_us - slices_of(table))
        yield from over_windows(self._folding, window, table, Spans(first, last))
