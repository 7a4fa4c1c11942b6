"""Partial results as tables: a row per slice and key, with the states of the aggregates.

`_lc_slice` is the start of the slice, less the windows' offset, so that slices are at multiples of their length;
`_lc_fresh` tells what one tier adds (1) from what came with earlier tiers (0).
Tables are sorted by slice; rows of one slice are in any order, always the same for the same input.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from latecomer.codec import widened
from latecomer.events import Int64s, Stretches, concat_rows, int64_view, take_rows
from latecomer.windows.aggregates import AggregateFunction, States
from latecomer.windows.collected import WindowFunction
from latecomer.windows.grouping import Groups, Pairs, group_rows, normal_keys

SLICE, FRESH = "_lc_slice", "_lc_fresh"
_FRESH_FIELD = pa.field(FRESH, pa.int8())


def state_name(aggregate: int, state: int) -> str:
    """The name of a state column."""
    return f"_lc_state{aggregate}_{state}"


def slices_of(table: pa.RecordBatch) -> Int64s:
    """The starts of the slices, a view."""
    return int64_view(table.column(SLICE))


def freshness(table: pa.RecordBatch, fresh: int) -> pa.RecordBatch:
    """The same rows, all fresh or none."""
    place = table.schema.get_field_index(FRESH)
    return table.set_column(place, _FRESH_FIELD, pa.array(np.full(table.num_rows, fresh, dtype=np.int8)))


def moved(table: pa.RecordBatch, by_us: Int64s | int) -> pa.RecordBatch:
    """The same rows in other slices."""
    place = table.schema.get_field_index(SLICE)
    field = table.schema.field(place)
    return table.set_column(place, field, pa.array(slices_of(table) + by_us).view(field.type))


@dataclass(frozen=True)
class Folding:
    """Aggregates per key: how tables of partial results come to be, are merged, and become results."""

    keys: tuple[str, ...]
    aggregates: tuple[AggregateFunction, ...]

    def partials(
        self, rows: pa.RecordBatch, time: str, slices: Stretches, part: Int64s | None = None
    ) -> list[tuple[int, pa.RecordBatch]]:
        """Partial results of events by slice; with `part`, one table for each part of the rows, by number."""
        if part is None:
            return [(0, self.in_parts(rows, time, slices)[0])]
        return split_parts(*self.in_parts(rows, time, slices, part))

    def in_parts(
        self, rows: pa.RecordBatch, time: str, slices: Stretches, part: Int64s | None = None
    ) -> tuple[pa.RecordBatch, Int64s]:
        """Partial results of events by part and slice in one table, and the part of each; without parts, 0."""
        start_us = slices.starts(int64_view(rows.column(time))) - slices.offset_us
        parts = [] if part is None else [part]
        groups = group_rows([*parts, start_us // slices.length_us, *(rows.column(key) for key in self.keys)])
        parts_of = np.zeros(len(groups), dtype=np.int64) if part is None else part[groups.firsts]
        return self.fold(rows, time, start_us, groups), parts_of

    def fold(self, rows: pa.RecordBatch, time: str, start_us: Int64s, groups: Groups) -> pa.RecordBatch:
        """Partial results of groups of events, all fresh; they start when the first event of each does."""
        ts_us, firsts = int64_view(rows.column(time)), groups.firsts
        keys = take_rows(rows.select(list(self.keys)), firsts) if self.keys else None
        starts = pa.array(start_us[firsts]).view(rows.schema.field(time).type)
        fields = [pa.field(SLICE, starts.type), _FRESH_FIELD, *(keys.schema if keys is not None else ())]
        columns = [starts, pa.array(np.ones(len(groups), dtype=np.int8))]
        columns += [normal_keys(column) for column in (keys.columns if keys is not None else ())]
        for number, aggregate in enumerate(self.aggregates):
            states = aggregate.partial(_values(rows, aggregate), ts_us, groups)
            fields += [pa.field(state_name(number, place), state.type) for place, state in enumerate(states)]
            columns += states
        return widened(pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields)))

    def merge(self, tables: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
        """One row per slice, key and whether it is fresh; other columns keep the first row's value."""
        table = concat_rows(tables)
        groups = self.groups(table, (SLICE, FRESH))
        return table if len(groups) == table.num_rows and len(tables) == 1 else self.reduced(table, groups)

    def merge_two(self, one: pa.RecordBatch, other: pa.RecordBatch) -> pa.RecordBatch:
        """The same of two tables that are merged themselves."""
        merged = self.merge_alike(one, other)
        return self.merge([one, other]) if merged is None else merged

    def merge_alike(self, one: pa.RecordBatch, other: pa.RecordBatch) -> pa.RecordBatch | None:
        """The same of two tables that stand for the same row by row, as those of busy slices do; None for others."""
        if not self.alike(one, other):
            return None
        both = [
            pa.concat_arrays(pair) for pair in zip(self._state_columns(one), self._state_columns(other), strict=True)
        ]
        return self._with_states(one.select(self._group_names), both, one.schema, Pairs.of(one.num_rows))

    def alike(self, one: pa.RecordBatch, other: pa.RecordBatch) -> bool:
        """Whether two tables stand for the same row by row."""
        if one.num_rows != other.num_rows:
            return False
        return all(one.column(name).equals(other.column(name)) for name in self._group_names)

    @property
    def _group_names(self) -> list[str]:
        return [SLICE, FRESH, *self.keys]

    def groups(self, table: pa.RecordBatch, by: tuple[str, ...]) -> Groups:
        """Rows of one key and whatever else distinguishes them."""
        others = [int64_view(table.column(name)) if name == SLICE else table.column(name) for name in by]
        return group_rows([*others, *(table.column(key) for key in self.keys)] or [np.zeros(table.num_rows, np.int64)])

    def reduced(self, table: pa.RecordBatch, groups: Groups) -> pa.RecordBatch:
        """A row for each group."""
        return self._with_states(self.group_columns(table, groups), self._state_columns(table), table.schema, groups)

    def group_columns(self, table: pa.RecordBatch, groups: Groups) -> pa.RecordBatch:
        """What groups keep of their first rows: all but the states."""
        return take_rows(table.select(self._group_names), groups.firsts)

    def _with_states(
        self, group_columns: pa.RecordBatch, states: States, schema: pa.Schema, groups: Groups
    ) -> pa.RecordBatch:
        """The columns that groups keep, and the states that they make up together."""
        columns = list(group_columns.columns)
        for own, aggregate in zip(self._by_aggregate(states, schema), self.aggregates, strict=True):
            columns += aggregate.reduce(own, groups)
        return pa.RecordBatch.from_arrays(columns, schema=schema)

    def accumulating(self, table: pa.RecordBatch) -> list[np.ufunc] | None:
        """How each state column is merged, where each is by itself and simply; None otherwise."""
        found: list[np.ufunc] = []
        for aggregate, states in zip(self.aggregates, self._states(table), strict=True):
            how = None if any(state.null_count for state in states) else aggregate.accumulating(states)
            if how is None:
                return None
            found += how
        return found

    def results(self, table: pa.RecordBatch) -> list[pa.Array]:
        """The aggregates' results, a column each."""
        together = zip(self.aggregates, self._states(table), strict=True)
        return [aggregate.result(states) for aggregate, states in together]

    def _states(self, table: pa.RecordBatch) -> list[States]:
        return self._by_aggregate(self._state_columns(table), table.schema)

    def _state_columns(self, table: pa.RecordBatch) -> States:
        return list(table.columns)[2 + len(self.keys) :]

    def _by_aggregate(self, columns: States, schema: pa.Schema) -> list[States]:
        """State columns, as they stand in a table of this schema, of each aggregate."""
        found: list[States] = [[] for _ in self.aggregates]
        for name, column in zip(schema.names[2 + len(self.keys) :], columns, strict=True):
            found[int(name.removeprefix("_lc_state").split("_")[0])].append(column)
        return found


def _values(rows: pa.RecordBatch, aggregate: AggregateFunction) -> pa.Array:
    """The column that an aggregate reads; several as one of structs."""
    if isinstance(aggregate, WindowFunction):
        columns = [rows.column(name) for name in aggregate.columns]
        return pa.StructArray.from_arrays(columns, names=list(aggregate.columns))
    return rows.column(aggregate.column) if aggregate.column is not None else rows.column(0)


def split_parts(table: pa.RecordBatch, part: Int64s) -> list[tuple[int, pa.RecordBatch]]:
    """Tables of the parts, which stand one after the other."""
    places = np.flatnonzero(np.diff(part)) + 1
    bounds = [0, *places.tolist(), len(part)]
    return [(int(part[start]), table.slice(start, stop - start)) for start, stop in pairwise(bounds)]
