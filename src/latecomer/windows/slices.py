"""Slices of windows that wait for their time: partial results in a store, until a punctuation closes them."""

from __future__ import annotations

from operator import attrgetter
from typing import TypeVar

import numpy as np
import pyarrow as pa

from latecomer.chunks import Chunk, Store, small_groups
from latecomer.events import FOREVER_US, NEVER_US, Int64s, Layout
from latecomer.windows.aggregates import AggregateFunction
from latecomer.windows.checks import check_aggregates
from latecomer.windows.folding import SLICE, Folding, slices_of
from latecomer.windows.slide import RUNS as SLIDER_RUNS
from latecomer.windows.slide import Slider
from latecomer.windows.window import WINDOW_END, WINDOW_START, Window

RUNS = 1 + SLIDER_RUNS  # of a store
Numbers = TypeVar("Numbers", int, Int64s)


class Slices:
    """Partial results by slice, in the runs of a store from `first_run` on."""

    def __init__(self, folding: Folding, window: Window, store: Store, first_run: int = 0) -> None:
        self._folding, self._window = folding, window
        self._store, self._run = store, first_run

    def close(self, arrived: list[pa.RecordBatch], punctuation_us: int) -> pa.RecordBatch | None:
        """Take partial results in, tables that are merged themselves, and give those of the slices that are passed."""
        last_us = last_slice_of(punctuation_us, self._window) * self._window.slice_us
        waiting = [chunk for chunk in self._store.chunks if chunk.run == self._run]
        passed = [chunk for chunk in waiting if chunk.ts_min_us <= last_us]
        tables = [*self._store.take(passed), *arrived]
        if not tables:
            return None
        table = tables[0] if len(tables) == 1 else self._folding.merge(tables)
        cut = int(np.searchsorted(slices_of(table), last_us, side="right"))
        self._keep(table.slice(cut))
        self._unite([chunk for chunk in waiting if chunk.ts_min_us > last_us])
        return table.slice(0, cut) if cut else None

    def slide(self, closed: pa.RecordBatch | None, punctuation_us: int) -> pa.RecordBatch | None:
        """The windows that closed slices complete, as what they are made of: `_lc_slice` is the start of the window."""
        if self._window.slices == 1:
            return closed
        slider = Slider(self._folding, self._window, self._store, self._run + 1)
        return slider.close(closed, last_slice_of(punctuation_us, self._window))

    def _unite(self, waiting: list[Chunk]) -> None:
        """Small chunks of sizes of which the store has many become one, whatever their size."""
        many = {chunk.number for group in small_groups(self._store.chunks) for chunk in group}
        for group in small_groups((chunk for chunk in waiting if chunk.number in many), attrgetter("run")):
            self._keep(self._folding.merge(list(self._store.take(group))))

    def _keep(self, table: pa.RecordBatch) -> None:
        if table.num_rows:
            self._store.append(table, slices_of(table), self._run)


def last_slice_of(punctuation_us: Numbers, window: Window) -> Numbers:
    """The number of the last slice that a punctuation, or each of several, has passed."""
    return (punctuation_us + 1 - window.offset_us) // window.slice_us - 1


def passed_windows(punctuation_us: Int64s, window: Window) -> Int64s:
    """The time up to which all windows have been given: each is when it has ended, and its time is its start."""
    ends = (punctuation_us == FOREVER_US) | (punctuation_us == NEVER_US)
    return np.where(ends, punctuation_us, punctuation_us - window.size_us + 1)


def last_passed_us(punctuation_us: int, window: Window) -> int:
    """The start of that slice."""
    return last_slice_of(punctuation_us, window) * window.slice_us + window.offset_us


def most_held_slices(window: Window, ts_us: Int64s, punctuation_us: int) -> int:
    """At most so many partial results of events are held when their punctuation has come so far."""
    last_us = last_passed_us(punctuation_us, window)
    if window.slices == 1:
        return int((ts_us > last_us).sum())
    each = 1 + 2 * (window.slices + 2)
    return each * int((ts_us > last_us - 2 * window.size_us).sum())


def window_results(folding: Folding, window: Window, table: pa.RecordBatch) -> pa.RecordBatch:
    """What the user sees of windows, `_lc_slice` being their start."""
    kind, keys = table.schema.field(SLICE).type, folding.keys
    start_us = slices_of(table) + window.offset_us
    start, end = (pa.array(each).view(kind) for each in (start_us, start_us + window.size_us))
    names = [WINDOW_START, WINDOW_END, *keys, *(aggregate.name for aggregate in folding.aggregates)]
    columns = [start, end, *(table.column(key) for key in keys), *folding.results(table)]
    return pa.RecordBatch.from_arrays(columns, names=names)


def results_schema(columns: pa.Schema, layout: Layout, aggregates: tuple[AggregateFunction, ...]) -> pa.Schema:
    """The columns of the results, for events with these; refuses what cannot be computed."""
    check_aggregates(aggregates, columns, (WINDOW_START, WINDOW_END, *layout.key))
    kind = columns.field(layout.time).type
    fields = [pa.field(name, kind) for name in (WINDOW_START, WINDOW_END)]
    fields += [columns.field(name) for name in layout.key]
    fields += [pa.field(each.name, each.result_type(each.input_type(columns))) for each in aggregates]
    return pa.schema(fields)
