"""Overlapping windows from slices, each slice merged a few times however many windows it is in.

Slices are counted in blocks of as many as a window has. A window is the ending of one block and the beginning of the
next. A block's endings are merged when it is over, from its last slice backwards; its beginning as its slices close.
So a result takes two merges, and a batch reads the chunks with endings of the windows it closes, and one beginning.
Blocks go side by side: their slices of one place are merged together, or all places in a grid (`grid`), in the same
order as one by one, so that sums of floats are the same to the last bit whenever slices close.

Windows of two slices go without blocks: each is its two slices, and only the last closed one is held, in `SLICES`.

Invariants, for windows of more slices
1. `ENDINGS` holds, for each open window that begins inside a block that is over, what that block adds to it.
2. `BEGINNING` holds the closed slices of the current block, merged; `SLICES` holds them one by one.
3. Windows close in order; where nothing is held, time may jump.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from latecomer.chunks import CHUNK_BYTES, Store
from latecomer.codec import narrow
from latecomer.events import NEVER_US, Int64s, concat_rows, take_rows
from latecomer.windows.folding import Folding, moved, slices_of
from latecomer.windows.grid import Grid, as_grid
from latecomer.windows.window import Window

SLICES, ENDINGS, BEGINNING = range(3)
RUNS = 3  # a slider's runs in a store
_FEW = 4  # places that are merged as fast one by one
_MANY = 500  # rows of a window, with which windows are merged faster one by one

Place = int | Int64s  # in a block; one of each row, where rows are of many


class _Front(NamedTuple):
    """The first slice that is open: its block, and its place in that."""

    block: int
    place: int


class _Tables:
    """Tables of windows, by the place of their start in a block; those of many places are by themselves."""

    def __init__(self) -> None:
        self._by_place: dict[int, list[pa.RecordBatch]] = {}
        self._others: list[pa.RecordBatch] = []

    def add(self, place: Place, tables: list[pa.RecordBatch]) -> None:
        """More tables of a place, or of many."""
        (self._by_place.setdefault(place, []) if isinstance(place, int) else self._others).extend(tables)

    def pop(self, place: Place) -> pa.RecordBatch | None:
        """All of one place, together."""
        tables = self._by_place.pop(place, []) if isinstance(place, int) else []
        return concat_rows(tables) if tables else None

    def rest(self) -> list[pa.RecordBatch]:
        """All that was not asked for."""
        return [*(table for tables in self._by_place.values() for table in tables), *self._others]


class Slider:
    """Windows that slide over closed slices; all it holds is in three runs of a store."""

    def __init__(self, folding: Folding, window: Window, store: Store, first_run: int) -> None:
        self._folding, self._store = folding, store
        self._slice_us, self._slices, self._step = window.slice_us, window.slices, window.step
        self._block_us = self._slices * self._slice_us
        self._first_run = first_run
        self._note = f"slid{first_run}"

    def close(self, table: pa.RecordBatch | None, last_slice: int) -> pa.RecordBatch | None:
        """Take in the slices that have closed, up to one by its number, and give the windows they complete.

        `_lc_slice` is the start of the window then. Windows are in any order, and a key may stand in one twice.
        """
        before = self._store.notes.get(self._note, NEVER_US)
        if before == last_slice:
            return None
        self._store.notes[self._note] = last_slice
        if self._slices == 2:
            return self._pairs(table, before, last_slice)
        was, now = (_Front(*divmod(last + 1, self._slices)) for last in (before, last_slice))
        over, current = ([], []) if table is None else self._cut(table, now.block * self._block_us)
        ended = [*self._take(SLICES), *over] if was.block < now.block else []
        endings = self._endings(ended, last_slice, last_slice - before)
        given = list(self._windows([*over, *current], endings, was, now))
        self._put(SLICES, current)
        return concat_rows(given) if given else None

    def _pairs(self, table: pa.RecordBatch | None, before: int, last_slice: int) -> pa.RecordBatch | None:
        """The same for windows of two slices, which need neither endings nor beginnings: only `SLICES` holds any."""
        held = self._take(SLICES) + ([] if table is None else [table])
        if not held:
            return None
        rows = concat_rows(held)
        _, staying = self._cut(rows, last_slice * self._slice_us)
        self._put(SLICES, staying)
        number = slices_of(rows) // self._slice_us
        closing = range(max(before, int(number[0]) - 1), min(last_slice, int(number[-1]) + 1))
        given: list[pa.RecordBatch] = []
        if rows.num_rows > _MANY * len(closing):
            parts = dict(_parts(rows, number))
            for start in closing:
                first = self._of_windows(parts.get(start), 0, closing)
                then = self._of_windows(parts.get(start + 1), 1, closing)
                given += self._together(first[0] if first else None, then)
        else:
            given = [*self._of_windows(rows, 0, closing), *self._of_windows(rows, 1, closing)]
        return concat_rows(given) if given else None

    def _of_windows(self, rows: pa.RecordBatch | None, place: int, closing: range) -> list[pa.RecordBatch]:
        """The rows that windows which close have at one of their places."""
        if rows is None:
            return []
        windows = self._starting(rows, -place)
        for part in windows:
            start = slices_of(part) // self._slice_us
            wanted = (start >= closing.start) & (start < closing.stop)
            if not wanted.all():
                return [take_rows(part, np.flatnonzero(wanted))] if wanted.any() else []
        return windows

    def _endings(self, ended: list[pa.RecordBatch], last_slice: int, closed: int) -> _Tables:
        """What the blocks that are over add to the windows that close now, by place; of open windows it is kept."""
        last_start_us = (last_slice - self._slices + 1) * self._slice_us
        closing = _Tables()
        still_open: list[pa.RecordBatch] = []
        for table in self._held_endings(last_start_us):
            leaving, still_open = self._cut(table, last_start_us + 1)
            for part in leaving:
                for start, rows in _parts(part, slices_of(part) // self._slice_us):
                    closing.add(start % self._slices, [rows])
        fresh: list[pa.RecordBatch] = []
        for place, ending in self._backwards(ended):
            for rows in self._starting(ending, place):
                leaving, staying = self._divided(rows, last_start_us)
                fresh += staying
                closing.add(place, leaving)
        self._keep_endings([*still_open, *reversed(fresh)], closed)
        return closing

    def _held_endings(self, until_us: int) -> list[pa.RecordBatch]:
        """The endings in chunks that begin up to a time, in order of time again."""
        held = self._take(ENDINGS, until_us)
        if not held:
            return []
        table = concat_rows(held)
        start = slices_of(table) // self._slice_us
        return [take_rows(table, np.argsort(narrow(start - start.min()), kind="stable"))]

    def _keep_endings(self, tables: list[pa.RecordBatch], closed: int) -> None:
        """Keep endings in bands of as many windows as will be read together: as many as have closed now, or a chunk's.

        Within a band the windows of a key stand side by side: from one to the next an ending changes seldom, or little,
        so that they take a fraction of the space and of the time to write. Where windows have not the same keys
        that is lost, and nothing else.
        """
        if not tables:
            return
        table = concat_rows(tables)
        starts = np.flatnonzero(np.diff(slices_of(table), prepend=NEVER_US))
        band = max(-(-closed // self._step), len(starts) * CHUNK_BYTES // table.nbytes, 1)
        for first, after in pairwise([*starts[::band].tolist(), table.num_rows]):
            rows = table.slice(first, after - first)
            sizes = np.diff(starts[(starts >= first) & (starts < after)], append=after)
            rank = np.arange(len(rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
            self._put(ENDINGS, [take_rows(rows, np.argsort(rank, kind="stable"))])

    def _windows(
        self, arrived: list[pa.RecordBatch], endings: _Tables, was: _Front, now: _Front
    ) -> Iterator[pa.RecordBatch]:
        """Move on by a place in all blocks, and give the windows that end there."""
        for place, beginning in self._forwards(self._take(BEGINNING), arrived, was, now):
            yield from self._together(endings.pop(place + 1), self._starting(beginning, place + 1 - self._slices))
        yield from endings.rest()

    def _backwards(self, ended: list[pa.RecordBatch]) -> Iterator[tuple[Place, pa.RecordBatch | None]]:
        """What blocks have from a place on, from the last place to the second."""
        if not ended:
            return
        blocks, place = self._by_place(ended)
        parts, last, ending = dict(_parts(blocks, place)), self._slices - 1, None
        grid = self._grid(parts, blocks, last - place, self._slices)
        if grid is not None:
            places = np.arange(1, self._slices)
            rows, which = grid.upto(last - places)
            yield places[which], rows
            return
        for at in range(last, 0, -1):
            ending = self._merged(parts.get(at), ending)
            yield at, ending

    def _forwards(
        self, held: list[pa.RecordBatch], arrived: list[pa.RecordBatch], was: _Front, now: _Front
    ) -> Iterator[tuple[Place, pa.RecordBatch | None]]:
        """What blocks have up to a place, from the first place that is new; of the current block, that is kept.

        In a grid, what is held of the block that was current stands in a column before the first place new to it.
        """
        first, last = (was.place, now.place) if was.block == now.block else (0, self._slices)
        parts: dict[int, pa.RecordBatch] = {}
        if arrived:
            blocks, place = self._by_place(arrived)
            parts = dict(_parts(blocks, place))
            column = [np.full(table.num_rows, was.place - first) for table in held]
            column.append(place - first + (place >= was.place))
            grid = self._grid(parts, concat_rows([*held, blocks]), np.concatenate(column), last - first + 1)
            if grid is not None:
                yield self._forwards_in(grid, np.arange(first, last), was, now)
                return
        beginning: pa.RecordBatch | None = None
        for at in range(first, last):
            if at == now.place:
                beginning = self._without_current(beginning, now)
            if at == was.place and held:
                beginning = concat_rows([*held, *([] if beginning is None else [beginning])])
            beginning = self._merged(beginning, parts.get(at))
            yield at, beginning
        self._without_current(beginning, now)

    def _forwards_in(self, grid: Grid, places: Int64s, was: _Front, now: _Front) -> tuple[Int64s, pa.RecordBatch]:
        current = slices_of(grid.group_columns) >= now.block * self._block_us
        columns = places - places[0] + (places >= was.place)
        if now.place > places[0]:
            beginnings, _ = grid.upto(columns[[now.place - 1 - places[0]]], ~current)
            self._put(BEGINNING, [beginnings] if beginnings.num_rows else [])
        rows, which = grid.upto(columns, current & (places >= now.place)[:, None])
        return places[which], rows

    def _grid(self, parts: dict[int, pa.RecordBatch], rows: pa.RecordBatch, column: Int64s, width: int) -> Grid | None:
        """All of it as a grid, where that is faster: not for few places, nor where slices have the same keys."""
        if width <= _FEW or (len(parts) > 1 and self._folding.alike(*list(parts.values())[:2])):
            return None
        return as_grid(self._folding, rows, column, width)

    def _without_current(self, beginning: pa.RecordBatch | None, now: _Front) -> pa.RecordBatch | None:
        """The beginnings of the blocks that are over; that of the current one is kept."""
        if beginning is None:
            return None
        over, current = self._cut(beginning, now.block * self._block_us)
        self._put(BEGINNING, current)
        return over[0] if over else None

    def _merged(self, first: pa.RecordBatch | None, then: pa.RecordBatch | None) -> pa.RecordBatch | None:
        if first is None or then is None:
            return then if first is None else first
        return self._folding.merge_two(first, then)

    def _together(self, ending: pa.RecordBatch | None, beginning: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
        """The two parts of windows: one table where that is easily made."""
        if ending is None or not beginning:
            return beginning if ending is None else [ending]
        merged = self._folding.merge_alike(ending, beginning[0])
        return [ending, *beginning] if merged is None else [merged]

    def _starting(self, blocks: pa.RecordBatch | None, place: Place) -> list[pa.RecordBatch]:
        """Rows of the windows that start so many slices after the start of a block, if any do."""
        if blocks is None or blocks.num_rows == 0:
            return []
        windows = moved(blocks, place * self._slice_us)
        if self._step == 1:
            return [windows]
        chosen = np.flatnonzero(slices_of(windows) // self._slice_us % self._step == 0)
        if len(chosen) == windows.num_rows:
            return [windows]
        return [take_rows(windows, chosen)] if len(chosen) else []

    def _divided(
        self, windows: pa.RecordBatch, last_start_us: int
    ) -> tuple[list[pa.RecordBatch], list[pa.RecordBatch]]:
        """The rows of windows that start up to a time, and the others, if there are any."""
        closes = slices_of(windows) <= last_start_us
        if closes.all() or not closes.any():
            return ([windows], []) if closes.all() else ([], [windows])
        return [take_rows(windows, np.flatnonzero(closes))], [take_rows(windows, np.flatnonzero(~closes))]

    def _cut(self, table: pa.RecordBatch, from_us: int) -> tuple[list[pa.RecordBatch], list[pa.RecordBatch]]:
        """The rows before a time and those from it on, if there are any."""
        cut = int(np.searchsorted(slices_of(table), from_us))
        parts = table.slice(0, cut), table.slice(cut)
        before, after = ([part] if part.num_rows else [] for part in parts)
        return before, after

    def _by_place(self, tables: list[pa.RecordBatch]) -> tuple[pa.RecordBatch, Int64s]:
        """Rows by the place of their slice in its block, put at the start of that; and the places."""
        table = concat_rows(tables)
        place = slices_of(table) // self._slice_us % self._slices
        blocks = moved(table, -place * self._slice_us)
        if bool((np.diff(place) < 0).any()):
            order = np.argsort(place, kind="stable")
            blocks, place = take_rows(blocks, order), place[order]
        return blocks, place

    def _take(self, what: int, until_us: int | None = None) -> list[pa.RecordBatch]:
        """What one of the runs holds, of chunks that begin up to a time."""
        run = self._first_run + what
        chosen = [c for c in self._store.chunks if c.run == run and (until_us is None or c.ts_min_us <= until_us)]
        return list(self._store.take(chosen))

    def _put(self, what: int, tables: list[pa.RecordBatch]) -> None:
        """Keep tables."""
        if tables:
            table = concat_rows(tables)
            self._store.append(table, slices_of(table), self._first_run + what, compressed=True)


def _parts(table: pa.RecordBatch, numbers: Int64s) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Stretches of rows with the same number, which stand one after the other."""
    bounds = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(numbers)]
    for start, stop in pairwise(bounds):
        yield int(numbers[start]), table.slice(start, stop - start)
