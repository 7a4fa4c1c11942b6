"""Which columns of results say where each of them belongs and what it says; and their values as small numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from latecomer.errors import InputError, must
from latecomer.events import Int64s, Layout, int64_view
from latecomer.outputs import CHANGE, FINAL, PANE, TIER
from latecomer.windows.grouping import group_rows

MARK = "mark_us"  # the high-water mark at which a result was given, or that a late event met
_ABOUT = (PANE, FINAL, TIER)  # columns that say how a result was given, not what it says

NONE = -1  # the number of no value

Rows: TypeAlias = pa.Table | pa.RecordBatch


@dataclass(frozen=True)
class ResultColumns:
    """The roles of columns of results.

    time, key: a result's place; the sorted run has at most one result in each. Where tiers are compared, or rows that
    may share a time and a key, a column that tells them apart belongs to the key. values: what a result says; left out,
    all other columns but those that tell how it was given. change: +1, or -1 where a result is made void; a table
    without that column has results only. mark: the high-water mark in microseconds.
    """

    time: str
    key: tuple[str, ...] = ()
    values: tuple[str, ...] | None = None
    change: str = CHANGE
    mark: str = MARK

    @classmethod
    def of(cls, layout: Layout, time: str | None = None) -> ResultColumns:
        """Results by the key of their events; their time may have another name, as that of windows has."""
        return cls(layout.time if time is None else time, layout.key)

    @property
    def place(self) -> tuple[str, ...]:
        """What the sorted run has at most one result for."""
        return (self.time, *self.key)

    def values_of(self, rows: Rows) -> tuple[str, ...]:
        """The names of the columns that are compared."""
        if self.values is not None:
            return self.values
        others = {*self.place, self.change, self.mark, *_ABOUT}
        return tuple(name for name in rows.schema.names if name not in others)

    def changes(self, rows: Rows) -> Int64s:
        """A change per row."""
        if self.change not in rows.schema.names:
            return np.ones(rows.num_rows, dtype=np.int64)
        changes: Int64s = column(rows, self.change).to_numpy(zero_copy_only=False).astype(np.int64)
        return changes


class Numbered(NamedTuple):
    """Rows by the numbers of their places and of what they say."""

    place: Int64s
    value: Int64s


def number_results(given: Rows, truth: Rows, columns: ResultColumns) -> tuple[Numbered, Int64s]:
    """What was given, numbered; and by the number of a place the number of what the sorted run says there, or NONE."""
    if (columns.changes(truth) < 0).any():
        raise InputError(must("the sorted run", "void no result", "a change of -1", "consolidate it first"))
    place, true_place = number_both(given, truth, columns.place)
    value, true_value = number_both(given, truth, columns.values_of(truth))
    if len(np.unique(true_place)) < len(true_place):
        rule = f"have one result at most for each {', '.join(columns.place)}"
        raise InputError(must("the sorted run", rule, "several", "add a column to the key that tells them apart"))
    wanted = np.full(max(place.max(initial=NONE), true_place.max(initial=NONE)) + 1, NONE, dtype=np.int64)
    wanted[true_place] = true_value
    return Numbered(place, value), wanted


def number_both(one: Rows, other: Rows, names: tuple[str, ...]) -> tuple[Int64s, Int64s]:
    """A number per row of two tables for the values of these columns."""
    size = one.num_rows
    if not names:
        return np.zeros(size, dtype=np.int64), np.zeros(other.num_rows, dtype=np.int64)
    together = [_joined(column(one, name), column(other, name), name) for name in names]
    groups = group_rows(together)
    numbers = groups.spread(np.arange(len(groups)))
    return numbers[:size], numbers[size:]


def column(rows: Rows, name: str) -> pa.Array:
    """A column in one piece."""
    if name not in rows.schema.names:
        advice = f"the columns are {', '.join(rows.schema.names)}"
        raise InputError(must("columns of results", "be in both tables", name, advice))
    found = rows.column(name)
    return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found


def times_us(rows: Rows, name: str) -> Int64s:
    """A column of times in microseconds; whole numbers are microseconds already."""
    found = column(rows, name)
    if pa.types.is_timestamp(found.type):
        found = found.cast(pa.timestamp("us", found.type.tz))
    return int64_view(found)


def _joined(one: pa.Array, other: pa.Array, name: str) -> pa.Array:
    tables = [pa.table({name: each}) for each in (one, other)]
    try:
        return pa.concat_tables(tables, promote_options="permissive")[name].combine_chunks()
    except pa.ArrowException:
        kinds = f"{one.type} and {other.type}"
        raise InputError(must(f"column {name!r}", "have one type in both tables", kinds, "cast one")) from None
