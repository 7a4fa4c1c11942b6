"""Aggregates over windows of a stream in order; rows that come behind count in the windows that are still open.

Invariants
1. A window is given once, when what has been read passes its last time.
2. A row that comes behind what has been read counts in those of its windows that are open then. A row whose windows are
   all given counts nowhere: `takes_from` says which those are, and who pushes rows keeps them apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from latecomer.chunks import Store
from latecomer.errors import InputError, must
from latecomer.events import FOREVER_US, NEVER_US, Int64s, Layout, concat_rows, int64_view, order_by, take_rows
from latecomer.windows.aggregates import AggregateFunction
from latecomer.windows.checks import as_aggregates
from latecomer.windows.folding import SLICE, Folding, slices_of
from latecomer.windows.operators import Behind, Clocks, Operator, OrderedRows, Running, Stretch
from latecomer.windows.slices import (
    RUNS,
    Slices,
    last_slice_of,
    most_held_slices,
    passed_windows,
    results_schema,
    window_results,
)
from latecomer.windows.spans import last_closed, last_window
from latecomer.windows.stragglers import Came, Stragglers
from latecomer.windows.window import WINDOW_START, Window

_STRAGGLERS = RUNS  # the run after those of the slices
_CLOSED = "closed_slice"


@dataclass(frozen=True)
class WindowAggregation(Operator):
    """Aggregates per key and window; the time of a result is the start of its window."""

    window: Window
    aggregates: tuple[AggregateFunction, ...]

    @property
    def sees_ties(self) -> bool:
        return False

    def __post_init__(self) -> None:
        if not isinstance(self.window, Window):
            advice = "e.g. lc.Window('1 hour'); sessions can be asked with .session(gap).aggregate(...).tiers(...)"
            raise InputError(must("window of WindowAggregation", "be a Window", self.window, advice))
        self.window.check_slices()
        object.__setattr__(self, "aggregates", as_aggregates(self.aggregates))

    @property
    def in_part(self) -> bool:
        return self.window.advance_us < self.window.size_us

    @property
    def reach_us(self) -> int:
        return self.window.size_us

    def build(self, store: Store, layout: Layout) -> Running:
        return _Aggregating(self, store, layout)

    def output(self, columns: pa.Schema, layout: Layout) -> pa.Schema:
        return results_schema(columns, layout, self.aggregates)

    def layout_after(self, layout: Layout) -> Layout:
        return Layout(WINDOW_START, layout.key)

    def most_held(self, ts_us: Int64s, punctuation_us: int) -> int:
        return most_held_slices(self.window, ts_us, punctuation_us)

    def results_at(self, ts_us: Int64s, punctuation_us: int) -> tuple[Int64s, int]:
        """Each row lies in the last window that has begun, and in those that began an advance earlier each."""
        back_us = np.arange(0, self.window.size_us, self.window.advance_us)
        starts = (self.window.steps.starts(ts_us)[:, None] - back_us[None, :]).ravel()
        return starts, int(self.passed(np.array([punctuation_us]))[0])

    def takes_from(self, read_us: int) -> int:
        """The start of the first window that is open: its last time has not been read."""
        if read_us in (NEVER_US, FOREVER_US):
            return read_us
        last_given = self.window.steps.starts(np.array([read_us - self.window.size_us + 1]))
        return int(last_given[0]) + self.window.advance_us

    def passed(self, came_us: Int64s) -> Int64s:
        """A window has come when its last time has, and its own time is its start."""
        return passed_windows(came_us, self.window)

    def shown(self) -> str:
        return f"{', '.join(aggregate.name for aggregate in self.aggregates)} over {self.window.shown()}"

    def describe(self) -> dict[str, Any]:
        return {
            "operator": "aggregation",
            "window": self.window.describe(),
            "aggregates": [aggregate.describe() for aggregate in self.aggregates],
        }


class _Aggregating(Running):
    def __init__(self, operator: WindowAggregation, store: Store, layout: Layout) -> None:
        self._operator, self._window, self._store = operator, operator.window, store
        self._folding = Folding(layout.key, operator.aggregates)
        self._slices = Slices(self._folding, operator.window, store)
        self._stragglers = Stragglers(self._folding, operator.window, store, _STRAGGLERS)
        self._time = layout.time

    def push(self, rows: pa.RecordBatch | None, clocks: Clocks) -> OrderedRows:
        closed = self._store.notes.get(_CLOSED, NEVER_US)
        arrived, behind = self._folded(rows, closed)
        return self._given(arrived, None if behind is None else self._came(behind, closed), clocks)

    def push_with_behind(self, rows: pa.RecordBatch | None, behind: Behind, clocks: Clocks) -> OrderedRows:
        """A row that came behind counts in the windows that were open then: in all, if its slice was."""
        closed = last_slice_of(behind.read_us, self._window)
        slices = (int64_view(behind.rows.column(self._time)) - self._window.offset_us) // self._window.slice_us
        in_time = take_rows(behind.rows, np.flatnonzero(slices > closed))
        together = [part for part in (rows, in_time) if part is not None and part.num_rows]
        arrived, _ = self._folded(concat_rows(together) if together else None, NEVER_US)
        first_open = last_closed(closed, self._window) + self._window.step
        late = np.flatnonzero((slices <= closed) & (last_window(slices, self._window) >= first_open))
        came = None
        if len(late):
            part = take_rows(behind.rows, late)
            came = Came(*self._folding.in_parts(part, self._time, self._window.cut, first_open[late]))
        return self._given(arrived, came, clocks)

    def _came(self, behind: pa.RecordBatch, closed: int) -> Came:
        """Partial results of slices that are closed, with the first window that is open."""
        first_open = last_closed(closed, self._window) + self._window.step
        return Came(behind, np.full(behind.num_rows, first_open))

    def _given(self, arrived: list[pa.RecordBatch], came: Came | None, clocks: Clocks) -> OrderedRows:
        """The windows that close, of partial results of slices that are open and of others."""
        closing = self._store.notes[_CLOSED] = last_slice_of(clocks.read_us, self._window)
        windows = self._slices.slide(self._slices.close(arrived, clocks.read_us), clocks.read_us)
        tables = [*([] if windows is None else [windows]), *self._late_parts(came, closing)]
        after = self._operator.clocks_after(clocks)
        if not tables:
            return OrderedRows(None, after)
        together = concat_rows(tables)
        merged = self._folding.reduced(together, self._folding.groups(together, (SLICE,)))
        return OrderedRows(window_results(self._folding, self._window, merged), after)

    def push_stretches(self, stretches: Sequence[Stretch]) -> Iterator[OrderedRows]:
        """Stretches that no slice closes between are one push: the same windows are open to all their rows."""
        waiting: list[pa.RecordBatch] = []
        for number, (rows, clocks) in enumerate(stretches, start=1):
            waiting += [] if rows is None else [rows]
            closes = last_slice_of(clocks.read_us, self._window) > self._store.notes.get(_CLOSED, NEVER_US)
            if closes or number == len(stretches):
                yield self.push(self._by_time(waiting), clocks)
                waiting = []
            else:
                yield OrderedRows(None, self._operator.clocks_after(clocks))

    def _by_time(self, parts: list[pa.RecordBatch]) -> pa.RecordBatch | None:
        if len(parts) < 2:
            return parts[0] if parts else None
        rows = concat_rows(parts)
        return take_rows(rows, order_by(int64_view(rows.column(self._time))))

    def _folded(self, rows: pa.RecordBatch | None, closed: int) -> tuple[list[pa.RecordBatch], pa.RecordBatch | None]:
        """Partial results of the slices that are open, and those of slices that are closed."""
        if rows is None or rows.num_rows == 0:
            return [], None
        (_, table), *_ = self._folding.partials(rows, self._time, self._window.cut)
        cut = int(np.searchsorted(slices_of(table) // self._window.slice_us, closed, side="right"))
        return [table.slice(cut)] if cut < table.num_rows else [], table.slice(0, cut) if cut else None

    def _late_parts(self, came: Came | None, closing: int) -> list[pa.RecordBatch]:
        """What partial results of closed slices, these and those that wait, add to the windows that close now."""
        waiting = any(chunk.run == _STRAGGLERS for chunk in self._store.chunks)
        return self._stragglers.close(came, last_closed(closing, self._window)) if waiting or came is not None else []
