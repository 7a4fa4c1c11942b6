"""Overlapping windows from slices, each slice merged a few times however many windows it is in.

Slices are counted in blocks of as many as a window has. A window is the ending of one block and the beginning of the
next. A block's endings are merged when it is over, from its last slice backwards; its beginning as its slices close.
So a result takes two merges, and a batch reads the endings of the windows it closes, one beginning, and nothing else.
Where nothing is held and all closes at once, as in a replay, blocks go side by side: all their slices of one place are
merged together, in the same order as one by one, so that sums of floats are the same to the last bit.

Invariants
1. `ENDINGS` holds, for each window that begins inside a block that is over, what that block adds to it.
2. `BEGINNING` holds the slices of the current block, merged; `SLICES` holds them one by one.
3. Windows close in order; where nothing is held, time may jump.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pyarrow as pa

from latecomer.chunks import Store
from latecomer.events import Int64s, concat_rows, take_rows
from latecomer.windows.folding import FRESH, SLICE, Folding, at_slice, slices_of
from latecomer.windows.window import Window

SLICES, ENDINGS, BEGINNING = range(3)
RUNS = 3  # a slider's runs in a store


class Slider:
    """Windows that slide over closed slices; all it holds is in three runs of a store."""

    def __init__(self, folding: Folding, window: Window, store: Store, first_run: int) -> None:
        self.folding, self._store = folding, store
        self._slice_us, self.slices, self.step = window.slice_us, window.slices, window.step
        self._first_run = first_run
        self._note = f"slid{first_run}"

    def close(self, table: pa.RecordBatch | None, last_slice: int) -> pa.RecordBatch | None:
        """Take in the slices that have closed, up to one by its number, and give the windows they complete.

        `_lc_slice` is the start of the window then, and a key may stand there twice.
        """
        if table is not None and table.num_rows and self._closes_all(table, last_slice):
            self._store.notes[self._note] = last_slice
            return self._side_by_side(table)
        arrived = {} if table is None else dict(self.by_slice(table))
        slide = _Slide(self, last_slice)
        number = self._store.notes.get(self._note, min(arrived, default=last_slice) - 1) + 1
        while number <= last_slice:
            if not slide.holds_anything():
                number = min(arrived, default=last_slice + 1)
                if number > last_slice:
                    break
            slide.move(number, arrived.pop(number, None))
            number += 1
        slide.keep()
        self._store.notes[self._note] = last_slice
        return concat_rows(slide.given) if slide.given else None

    def _closes_all(self, table: pa.RecordBatch, last_slice: int) -> bool:
        """Whether nothing is held and nothing will be."""
        ends = int(slices_of(table)[-1]) // self._slice_us + self.slices - 1
        return ends <= last_slice and not any(self.holds(what) for what in range(RUNS))

    def _side_by_side(self, table: pa.RecordBatch) -> pa.RecordBatch | None:
        """All windows of a table, all blocks at a time."""
        place = slices_of(table) // self._slice_us % self.slices
        blocks = _moved(table, -place * self._slice_us)
        order = np.argsort(place, kind="stable")
        bounds = np.searchsorted(place[order], np.arange(self.slices + 1))
        parts = [take_rows(blocks, order[start:stop]) for start, stop in pairwise(bounds.tolist())]
        given: list[pa.RecordBatch] = []
        ending: pa.RecordBatch | None = None
        for number in range(self.slices - 1, 0, -1):
            ending = self._merged(parts[number], ending)
            given += self._starting_at(ending, number)
        beginning: pa.RecordBatch | None = None
        for number in range(self.slices):
            beginning = parts[number] if beginning is None else self._merged(beginning, parts[number])
            given += self._starting_at(beginning, number + 1 - self.slices)
        return concat_rows(given) if given else None

    def _merged(self, first: pa.RecordBatch, then: pa.RecordBatch | None) -> pa.RecordBatch:
        parts = [part for part in (first, then) if part is not None and part.num_rows]
        return self.folding.merge(parts) if len(parts) > 1 else (parts or [first])[0]

    def _starting_at(self, blocks: pa.RecordBatch, number: int) -> list[pa.RecordBatch]:
        """Rows of the windows that start so many slices after the start of a block."""
        moved = _moved(blocks, np.full(blocks.num_rows, number * self._slice_us))
        chosen = np.flatnonzero(slices_of(moved) // self._slice_us % self.step == 0)
        if len(chosen) == 0:
            return []
        return [moved if len(chosen) == moved.num_rows else take_rows(moved, chosen)]

    def by_slice(self, table: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The rows of each slice, by its number."""
        numbers = slices_of(table) // self._slice_us
        bounds = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(numbers)]
        for start, stop in pairwise(bounds):
            if start < stop:
                yield int(numbers[start]), table.slice(start, stop - start)

    def take(self, what: int, until_slice: int | None = None) -> list[pa.RecordBatch]:
        """What one of the runs holds, of chunks that begin up to a slice."""
        run, until_us = self._first_run + what, None if until_slice is None else until_slice * self._slice_us
        chosen = [c for c in self._store.chunks if c.run == run and (until_us is None or c.ts_min_us <= until_us)]
        return list(self._store.take(chosen))

    def holds(self, what: int) -> bool:
        """Whether one of the runs holds anything."""
        return any(chunk.run == self._first_run + what for chunk in self._store.chunks)

    def put(self, what: int, tables: list[pa.RecordBatch]) -> None:
        """Keep tables, which follow each other in time."""
        if tables:
            table = concat_rows(tables)
            self._store.append(table, slices_of(table), self._first_run + what, compressed=True)

    def starting(self, table: pa.RecordBatch, number: int) -> pa.RecordBatch:
        """The same rows for the window that starts with a slice."""
        return at_slice(table, number * self._slice_us)


class _Slide:
    """One batch's move: what is held is read when it is needed, and what is left is kept at the end."""

    def __init__(self, slider: Slider, last_slice: int) -> None:
        self._slider = slider
        self.given: list[pa.RecordBatch] = []
        self._slices: list[pa.RecordBatch] = []
        self._more_endings = slider.holds(ENDINGS)
        self._endings: dict[int, pa.RecordBatch] = {}
        if self._more_endings:
            last_start = last_slice - slider.slices + 1
            for table in slider.take(ENDINGS, last_start):
                self._add_endings(table)
            self._more_endings = slider.holds(ENDINGS)
        self._beginning = _one(slider.take(BEGINNING))

    def _add_endings(self, table: pa.RecordBatch) -> None:
        for number, rows in self._slider.by_slice(table):
            held = self._endings.get(number)
            self._endings[number] = rows if held is None else concat_rows([held, rows])

    def holds_anything(self) -> bool:
        """Whether a window that is still open has events."""
        return self._beginning is not None or self._more_endings or bool(self._endings)

    def move(self, number: int, rows: pa.RecordBatch | None) -> None:
        """Close one slice and the window that ends with it."""
        slider = self._slider
        if rows is not None:
            known = [] if self._beginning is None else [self._beginning]
            self._beginning = slider.folding.merge([*known, rows], (FRESH,))
            self._slices.append(rows)
        start = number - slider.slices + 1
        ending = self._endings.pop(start, None)
        parts = [part for part in (ending, self._beginning) if part is not None]
        if start % slider.step == 0 and parts:
            self.given.append(slider.starting(slider.folding.merge(parts, (FRESH,)), start))
        if (number + 1) % slider.slices == 0:
            self._turn(number)

    def _turn(self, last: int) -> None:
        """A block is over: merge its endings."""
        slider, ending = self._slider, None
        tables = [*slider.take(SLICES), *self._slices]
        slices = dict(slider.by_slice(concat_rows(tables))) if tables else {}
        for number in range(last, last - slider.slices + 1, -1):
            rows = slices.get(number)
            if rows is not None:
                ending = slider.folding.merge([rows] if ending is None else [rows, ending], (FRESH,))
            if ending is not None and number % slider.step == 0:
                self._endings[number] = slider.starting(ending, number)
        self._slices, self._beginning = [], None

    def keep(self) -> None:
        """Put back what is left."""
        slider = self._slider
        slider.put(ENDINGS, [self._endings[number] for number in sorted(self._endings)])
        slider.put(SLICES, self._slices)
        if self._beginning is not None:
            slider.put(BEGINNING, [slider.starting(self._beginning, 0)])


def _moved(table: pa.RecordBatch, by_us: Int64s) -> pa.RecordBatch:
    """The same rows in other slices."""
    place = table.schema.get_field_index(SLICE)
    field = table.schema.field(place)
    return table.set_column(place, field, pa.array(slices_of(table) + by_us).view(field.type))


def _one(tables: list[pa.RecordBatch]) -> pa.RecordBatch | None:
    return concat_rows(tables) if tables else None
