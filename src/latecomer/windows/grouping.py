"""Rows grouped by the values of some columns, of any type: one sort of integers, then whole groups at a time.

Every column becomes small integers (itself where its range is small, else the number of each distinct value), the
columns of a row are packed into one, and one sort puts equal rows side by side. Null is a value.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from latecomer.events import Int64s, int64_view, sort_times, take_rows

_ROOM = 62  # bits of a packed row
_FEW = 64  # values that tell whether it is worth looking at all
_DENSE = 20  # integers in a range of so many bits are their own numbers


class Groups(NamedTuple):
    """`order`: the positions of rows, group after group, in order within each; `starts`: where groups begin in it."""

    order: Int64s
    starts: Int64s

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def firsts(self) -> Int64s:
        """The position of each group's first row."""
        return self.order[self.starts]

    @property
    def lasts(self) -> Int64s:
        """The position of each group's last row."""
        lasts: Int64s = self.order[self.starts + self.sizes - 1]
        return lasts

    @property
    def sizes(self) -> Int64s:
        """How many rows each group has."""
        sizes: Int64s = np.diff(self.starts, append=len(self.order))
        return sizes

    def reduce(self, how: np.ufunc, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """One value per group."""
        if len(self.order) == 0:
            return values[:0]
        sizes = self.sizes
        if int(sizes.max()) > 2:
            many: npt.NDArray[Any] = how.reduceat(values[self.order], self.starts)
            return many
        reduced: npt.NDArray[Any] = values[self.firsts]  # pairs at most: numpy's reduceat would take them one by one
        pairs = np.flatnonzero(sizes == 2)
        reduced[pairs] = how(reduced[pairs], values[self.order[self.starts[pairs] + 1]])
        return reduced

    def spread(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """One value per row, from one per group."""
        spread = np.empty(len(self.order), dtype=values.dtype)
        spread[self.order] = np.repeat(values, self.sizes)
        return spread


class Pairs(Groups):
    """The rows of two tables of one size, one after the other, each with its counterpart."""

    @classmethod
    @lru_cache(maxsize=2)
    def of(cls, size: int) -> Pairs:
        """Pairs of rows of two tables of this size."""
        order = np.empty(2 * size, dtype=np.int64)
        order[0::2], order[1::2] = np.arange(size), np.arange(size, 2 * size)
        starts = np.arange(0, 2 * size, 2)
        order.flags.writeable = starts.flags.writeable = False  # they are shared
        return cls(order, starts)

    def reduce(self, how: np.ufunc, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        half = len(self)
        reduced: npt.NDArray[Any] = how(values[:half], values[half:])
        return reduced


def group_rows(columns: Sequence[pa.Array | Int64s]) -> Groups:
    """Group rows by columns: in the order of the first one if that is a numpy array, then in any, always the same."""
    size = len(columns[0])
    if size == 0:
        return Groups(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
    packed, used = np.zeros(size, dtype=np.int64), 0
    for column in columns:
        numbers, bits = _numbered(column)
        if used + bits > _ROOM:
            packed, used = _distinct(packed)
            numbers, bits = _distinct(numbers) if used + bits > _ROOM else (numbers, bits)
        packed = (packed << bits) | numbers if used else numbers
        used += bits
    ranked, order = sort_times(packed)
    first_of_group = np.ones(size, dtype=np.bool_)
    first_of_group[1:] = ranked[1:] != ranked[:-1]
    return Groups(order, np.flatnonzero(first_of_group))


class Keys(NamedTuple):
    """The keys of several tables as small numbers, the same in all of them.

    numbers: for each table, the number of each row's key. size: how many keys there are. rows: the key of each number;
    None where there is no key, and all rows have the same.
    """

    numbers: list[Int64s]
    size: int
    rows: pa.RecordBatch | None


def number_keys(tables: Sequence[pa.RecordBatch], key: tuple[str, ...]) -> Keys:
    """Number the keys of the rows of tables; without a key, all rows have zero."""
    sizes = [table.num_rows for table in tables]
    if not key or not sum(sizes):
        return Keys([np.zeros(size, dtype=np.int64) for size in sizes], 1, None)
    columns = [pa.concat_arrays([table.column(name) for table in tables]) for name in key]
    groups = group_rows(columns)
    numbers = groups.spread(np.arange(len(groups)))
    rows = take_rows(pa.RecordBatch.from_arrays(columns, names=list(key)), groups.firsts)
    return Keys(np.split(numbers, np.cumsum(sizes)[:-1]), len(groups), rows)


def _numbered(column: pa.Array | Int64s) -> tuple[Int64s, int]:
    """Whole numbers from zero on that stand for the values, equal for equal ones, and how many bits they need."""
    if isinstance(column, np.ndarray):
        return _shifted(column)
    kind = column.type
    if column.null_count == 0 and (pa.types.is_integer(kind) or pa.types.is_timestamp(kind) or pa.types.is_date(kind)):
        values = int64_view(column) if kind.bit_width == 64 else column.to_numpy(zero_copy_only=False).astype(np.int64)
        if kind != pa.uint64():
            return _shifted(values)
    return _encoded(column)


def _shifted(values: Int64s) -> tuple[Int64s, int]:
    low, high = int(values.min()), int(values.max())
    most = max(_DENSE, _ROOM - 2 * len(values).bit_length())
    if (high - low).bit_length() <= most:
        return values - low, (high - low).bit_length()
    step = _step_of(values, low) if (high - low).bit_length() < 63 else 1
    if step > 1 and ((high - low) // step).bit_length() <= most:
        return (values - low) // step, ((high - low) // step).bit_length()
    return _distinct(values)


def _step_of(values: Int64s, low: int) -> int:
    """What all differences are a multiple of, as those of windows are."""
    step = int(np.gcd.reduce(values[:_FEW] - low))
    return step if step == 1 else int(np.gcd.reduce(values - low))


def _distinct(values: Int64s) -> tuple[Int64s, int]:
    """Ranks of the distinct values."""
    ranked, order = sort_times(values)
    rank = np.zeros(len(values), dtype=np.int64)
    np.cumsum(ranked[1:] != ranked[:-1], out=rank[1:])
    ranks = np.empty_like(rank)
    ranks[order] = rank
    return ranks, int(rank[-1]).bit_length()


def _encoded(column: pa.Array) -> tuple[Int64s, int]:
    column = plain_keys(column)
    encoded = column.dictionary_encode(null_encoding="encode")
    return encoded.indices.to_numpy().astype(np.int64), (len(encoded.dictionary) - 1).bit_length()


def plain_keys(column: pa.Array) -> pa.Array:
    """Values that Arrow can tell apart, equal for equal keys."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    column = normal_keys(column)
    if pa.types.is_nested(column.type):
        return pa.array([None if value is None else repr(value) for value in column.to_pylist()], pa.large_string())
    return column


def normal_keys(column: pa.Array) -> pa.Array:
    """The same keys with one zero and one NaN: as in Spark, 0.0 and -0.0 are one key, and so are all NaNs."""
    if pa.types.is_floating(column.type):
        zero = pc.equal(column, pa.scalar(0, column.type))
        column = pc.if_else(zero, pa.scalar(0, column.type), column)
        return pc.if_else(pc.is_nan(column), pa.scalar(math.nan, column.type), column)
    if pa.types.is_nested(column.type) and _has_floats(column.type):
        return pa.array([_normal(value) for value in column.to_pylist()], column.type)
    return column


def _has_floats(kind: pa.DataType) -> bool:
    inside = (kind.field(place).type for place in range(kind.num_fields))
    return bool(pa.types.is_floating(kind)) or any(_has_floats(each) for each in inside)


def _normal(value: Any) -> Any:
    """A Python value whose floats have one zero and one NaN."""
    if isinstance(value, dict):
        return {name: _normal(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_normal(each) for each in value)
    if isinstance(value, float):
        return math.nan if math.isnan(value) else value + 0.0  # -0.0 + 0.0 is 0.0
    return value
