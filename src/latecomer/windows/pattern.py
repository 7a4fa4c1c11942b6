"""A pattern in a stream in order: one thing, and then another within a time, per key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from latecomer.chunks import Store
from latecomer.codec import widened
from latecomer.durations import Duration, duration_us
from latecomer.errors import InputError, must
from latecomer.events import FOREVER_US, Bools, Int64s, Layout, concat_rows, int64_view, take_rows
from latecomer.windows.checks import scalar_of
from latecomer.windows.grouping import group_rows
from latecomer.windows.operators import Clocks, Operator, OrderedRows, Running

FIRST_TIME, THEN_TIME = "first_time", "then_time"
_TIME, _FIRST, _THEN = "_lc_time", "_lc_first", "_lc_then"


@dataclass(frozen=True)
class Pattern(Operator):
    """`column` has the value `first`, and after that, at most `within` later, the value `then`, in rows of one key.

    Each row with `then` gives a result if there is a `first` for it: the nearest one before it in the total order.
    """

    column: str
    first: Any
    then: Any
    within: Duration

    def __post_init__(self) -> None:
        duration_us(self.within, "within")

    @property
    def reach_us(self) -> int:
        return duration_us(self.within, "within")

    def build(self, store: Store, layout: Layout) -> Running:
        return _Matching(self, store, layout)

    def output(self, columns: pa.Schema, layout: Layout) -> pa.Schema:
        if self.column not in columns.names:
            rule = f"be one of {', '.join(columns.names)}"
            raise InputError(must("column of pattern", rule, self.column, "check the name"))
        for value in (self.first, self.then):
            scalar_of(value, columns.field(self.column).type, f"value of {self.column}")
        times = [pa.field(name, columns.field(layout.time).type) for name in (FIRST_TIME, THEN_TIME)]
        return pa.schema([*(columns.field(name) for name in layout.key), *times])

    def most_held(self, ts_us: Int64s, punctuation_us: int) -> int:
        return int((ts_us > punctuation_us - duration_us(self.within, "within")).sum())

    def layout_after(self, layout: Layout) -> Layout:
        return Layout(THEN_TIME, layout.key)

    def describe(self) -> dict[str, Any]:
        within_us = duration_us(self.within, "within")
        values = [repr(self.first), repr(self.then)]
        return {"operator": "pattern", "column": self.column, "values": values, "within_us": within_us}


class _Matching(Running):
    """Keeps, per key, the time of the last `first`, as long as a `then` may follow it."""

    def __init__(self, operator: Pattern, store: Store, layout: Layout) -> None:
        self._operator, self._store, self._layout = operator, store, layout
        self._within_us = duration_us(operator.within, "within")

    def push(self, rows: pa.RecordBatch | None, clocks: Clocks) -> OrderedRows:
        parts = list(self._store.take(self._store.chunks))
        if rows is not None and rows.num_rows:
            parts.append(self._thinned(rows))
        table = concat_rows(parts) if parts else None
        if table is None or table.num_rows == 0:
            return OrderedRows(None, clocks)
        groups = group_rows([table.column(key) for key in self._layout.key] or [np.zeros(table.num_rows, np.int64)])
        table = take_rows(table, groups.order)
        ts_us, is_first, is_then = (self._column(table, name) for name in (_TIME, _FIRST, _THEN))
        group = np.repeat(groups.starts, groups.sizes)
        before = _first_before(is_first > 0, group)
        found = np.flatnonzero((is_then > 0) & (before >= 0) & (ts_us - ts_us[before] <= self._within_us))
        self._keep(table, group, is_first > 0, clocks.read_us)
        return OrderedRows(self._results(table, found, before[found]), clocks)

    def _column(self, table: pa.RecordBatch, name: str) -> Int64s:
        return int64_view(table.column(name))

    def _thinned(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The rows that matter: key, time, whether it is a `first`, whether it is a `then`."""
        column = rows.column(self._operator.column)
        flags = []
        for value in (self._operator.first, self._operator.then):
            equal = pc.equal(column, scalar_of(value, column.type, f"value of {self._operator.column}"))
            flags.append(equal.fill_null(False).cast(pa.int64()))
        columns = [*(rows.column(key) for key in self._layout.key), rows.column(self._layout.time), *flags]
        names = [*self._layout.key, _TIME, _FIRST, _THEN]
        thin = widened(pa.RecordBatch.from_arrays(columns, names=names))
        return take_rows(thin, np.flatnonzero(int64_view(flags[0]) | int64_view(flags[1])))

    def _keep(self, table: pa.RecordBatch, group: Int64s, is_first: Bools, punctuation_us: int) -> None:
        """Keep the last `first` of each key, if a later row may still follow it in time."""
        places = np.flatnonzero(is_first)
        last = places[np.append(group[places][1:] != group[places][:-1], True)] if len(places) else places
        ts_us = self._column(table, _TIME)[last]
        open_still = ts_us + self._within_us > punctuation_us
        last = last[open_still][np.argsort(ts_us[open_still], kind="stable")]
        if len(last) and punctuation_us < FOREVER_US:
            started = take_rows(table, last)
            place = started.schema.get_field_index(_THEN)
            started = started.set_column(place, _THEN, pa.array(np.zeros(len(last), dtype=np.int64)))
            self._store.append(started, self._column(started, _TIME))

    def _results(self, table: pa.RecordBatch, found: Int64s, before: Int64s) -> pa.RecordBatch | None:
        """A row per match, in order of time."""
        if len(found) == 0:
            return None
        order = np.argsort(self._column(table, _TIME)[found], kind="stable")
        found, before = found[order], before[order]
        keys = take_rows(table.select(list(self._layout.key)), found).columns if self._layout.key else []
        time = table.select([_TIME])
        times = [take_rows(time, places).column(0) for places in (before, found)]
        return pa.RecordBatch.from_arrays([*keys, *times], names=[*self._layout.key, FIRST_TIME, THEN_TIME])


def _first_before(is_first: Bools, group_start: Int64s) -> Int64s:
    """For each row the place of the nearest `first` before it in its group; -1 where there is none."""
    places = np.where(is_first, np.arange(len(is_first)), -1)
    nearest: Int64s = np.maximum.accumulate(np.concatenate([[-1], places[:-1]]))
    nearest[nearest < group_start] = -1
    return nearest
