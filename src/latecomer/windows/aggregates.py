"""Aggregates: what a window says of its events, in a form that can be merged.

An aggregate keeps a few state columns per group. `prepare` gives the states of single events, `reduce` those of groups
from those of their parts, `result` what the user sees. So a partial result is a reduced preparation, a merge is one
more `reduce`, and events, slices, tiers and windows all go the same way, in any order. Nulls and NaN count as in Spark:
nulls are skipped, NaN is larger than any number. Sums of floats are the same up to rounding, whatever the order.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from latecomer.errors import InputError, must
from latecomer.events import Bools, Int64s, value_rank
from latecomer.windows.grouping import Groups

States = list[pa.Array]
_CHECK = "check the name (case counts)"
_SMALL = 1 << 40  # whole numbers of which a window's slices cannot add up to too much


@dataclass(frozen=True)
class Aggregate(ABC):
    """One column of a window's result, computed from one column of its events."""

    column: str | None = None
    named: str | None = None
    kind: ClassVar[str]

    @property
    def name(self) -> str:
        """The column's name in the result."""
        return self.named or (self.kind if self.column is None else f"{self.kind}_{self.column}")

    def alias(self, name: str) -> Self:
        """The same under another name."""
        if not isinstance(name, str) or not name:
            raise InputError(must("alias", "be a name", name, "give it as text"))
        return replace(self, named=name)

    def check(self, schema: pa.Schema) -> None:
        """Refuse what cannot be computed on these columns."""
        if self.column is None and not self.needs_column:
            return
        if not isinstance(self.column, str):
            raise InputError(must(self.kind, "be given the name of a column", self.column, f"e.g. {self.kind}('kwh')"))
        if self.column not in schema.names:
            raise InputError(
                must(f"column of {self.kind}", f"be one of {', '.join(schema.names)}", self.column, _CHECK)
            )
        kind = schema.field(self.column).type
        if not self.takes(kind):
            raise InputError(must(f"{self.kind}({self.column})", f"be of {self.wanted}", str(kind), "cast it before"))

    wanted: ClassVar[str] = "any type"
    needs_column: ClassVar[bool] = True

    @property
    def mergeable(self) -> bool:
        """Whether partial results can be merged."""
        return True

    def input_type(self, schema: pa.Schema) -> pa.DataType:
        """The type of the column it reads; any, where it reads none."""
        return pa.int64() if self.column is None else schema.field(self.column).type

    def describe(self) -> dict[str, Any]:
        """Kind and settings: stored with the state and compared on restart."""
        return {"kind": self.kind, "column": self.column, "name": self.name}

    def takes(self, kind: pa.DataType) -> bool:
        """Whether values of this type can be aggregated."""
        return True

    @abstractmethod
    def state_types(self, kind: pa.DataType) -> list[pa.DataType]:
        """The types of the state columns, for a column of this type."""

    @abstractmethod
    def result_type(self, kind: pa.DataType) -> pa.DataType:
        """The type of the result."""

    @abstractmethod
    def prepare(self, values: pa.Array, ts_us: Int64s) -> States:
        """The states of single events."""

    @abstractmethod
    def reduce(self, states: States, groups: Groups) -> States:
        """The states of groups, from those of their parts."""

    @abstractmethod
    def result(self, states: States) -> pa.Array:
        """What the user sees."""

    def partial(self, values: pa.Array, ts_us: Int64s, groups: Groups) -> States:
        """The states of groups of events."""
        return self.reduce(self.prepare(values, ts_us), groups)

    def accumulating(self, states: States) -> list[np.ufunc] | None:
        """Where states without nulls are merged each by itself, by adding or taking the smaller or larger: how."""
        return None


def summed(values: pa.Array, groups: Groups) -> pa.Array:
    """Sums per group, null where there is nothing to add."""
    return reduced(np.add, values, groups, 0)


def reduced(how: np.ufunc, values: pa.Array, groups: Groups, neutral: float) -> pa.Array:
    """One value per group, null where all of them are."""
    if values.null_count == 0:
        return pa.array(groups.reduce(how, values.to_numpy()), values.type)
    valid = groups.reduce(np.add, values.is_valid().to_numpy(zero_copy_only=False).astype(np.int64))
    filled = values.fill_null(pa.scalar(neutral, values.type)).to_numpy()
    return pa.array(groups.reduce(how, filled), values.type, mask=valid == 0)


def is_number(kind: pa.DataType) -> bool:
    """Whether values can be added up."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


@dataclass(frozen=True)
class Count(Aggregate):
    """How many events; with a column, how many that have it."""

    kind: ClassVar[str] = "count"
    needs_column: ClassVar[bool] = False

    def state_types(self, kind: pa.DataType) -> list[pa.DataType]:
        return [pa.int64()]

    def result_type(self, kind: pa.DataType) -> pa.DataType:
        return pa.int64()

    def prepare(self, values: pa.Array, ts_us: Int64s) -> States:
        if self.column is None or values.null_count == 0:
            return [pa.array(np.ones(len(ts_us), dtype=np.int64))]
        return [values.is_valid().cast(pa.int64())]

    def partial(self, values: pa.Array, ts_us: Int64s, groups: Groups) -> States:
        if self.column is None or values.null_count == 0:
            return [pa.array(groups.sizes)]
        return super().partial(values, ts_us, groups)

    def reduce(self, states: States, groups: Groups) -> States:
        return [summed(states[0], groups)]

    def accumulating(self, states: States) -> list[np.ufunc] | None:
        return [np.add]

    def result(self, states: States) -> pa.Array:
        return states[0]


class _Numeric(Aggregate):
    """What adds up."""

    wanted: ClassVar[str] = "a number type (cast decimals to double)"

    def takes(self, kind: pa.DataType) -> bool:
        return is_number(kind)


@dataclass(frozen=True)
class Sum(_Numeric):
    """The sum: a bigint for whole numbers, else a double."""

    kind: ClassVar[str] = "sum"

    def state_types(self, kind: pa.DataType) -> list[pa.DataType]:
        return [self.result_type(kind)]

    def result_type(self, kind: pa.DataType) -> pa.DataType:
        return pa.int64() if pa.types.is_integer(kind) else pa.float64()

    def prepare(self, values: pa.Array, ts_us: Int64s) -> States:
        return [values.cast(self.result_type(values.type))]

    def reduce(self, states: States, groups: Groups) -> States:
        if pa.types.is_integer(states[0].type):
            _check_overflow(states[0], groups, self.name)
        return [summed(states[0], groups)]

    def accumulating(self, states: States) -> list[np.ufunc] | None:
        return None if pa.types.is_integer(states[0].type) and _largest(states[0]) > _SMALL else [np.add]

    def result(self, states: States) -> pa.Array:
        return states[0]


def _largest(values: pa.Array) -> int:
    """How far from zero whole numbers are, at most."""
    found = pc.min_max(values)
    low, high = found["min"].as_py() or 0, found["max"].as_py() or 0
    return max(-low, high)


def _check_overflow(values: pa.Array, groups: Groups, name: str) -> None:
    """Stop where a sum leaves the range of a bigint, as Spark does."""
    largest = _largest(values)
    if largest * len(values) < 2**63 or largest * int(groups.sizes.max()) < 2**63:
        return
    exact = groups.reduce(np.add, values.fill_null(0).to_numpy().astype(object))
    if not -(2**63) <= min(exact) <= max(exact) < 2**63:
        raise InputError(must(name, "fit into a bigint", max(exact, key=abs), "cast the column to double before"))


@dataclass(frozen=True)
class Mean(_Numeric):
    """The mean, a double."""

    kind: ClassVar[str] = "mean"

    def state_types(self, kind: pa.DataType) -> list[pa.DataType]:
        return [pa.float64(), pa.int64()]

    def result_type(self, kind: pa.DataType) -> pa.DataType:
        return pa.float64()

    def prepare(self, values: pa.Array, ts_us: Int64s) -> States:
        return [values.cast(pa.float64(), safe=False), values.is_valid().cast(pa.int64())]

    def reduce(self, states: States, groups: Groups) -> States:
        return [summed(state, groups) for state in states]

    def accumulating(self, states: States) -> list[np.ufunc] | None:
        return [np.add, np.add]

    def result(self, states: States) -> pa.Array:
        return pc.divide(states[0], pc.if_else(pc.equal(states[1], 0), None, states[1]).cast(pa.float64()))


@dataclass(frozen=True)
class Variance(_Numeric):
    """The sample variance; null for fewer than two values."""

    kind: ClassVar[str] = "variance"

    def state_types(self, kind: pa.DataType) -> list[pa.DataType]:
        return [pa.int64(), pa.float64(), pa.float64()]

    def result_type(self, kind: pa.DataType) -> pa.DataType:
        return pa.float64()

    def prepare(self, values: pa.Array, ts_us: Int64s) -> States:
        number = values.cast(pa.float64(), safe=False).fill_null(0.0)
        return [values.is_valid().cast(pa.int64()), number, pa.array(np.zeros(len(values)))]

    def reduce(self, states: States, groups: Groups) -> States:
        """Counts, means, and sums of squares around the mean of each group."""
        counts, means, squares = (state.to_numpy() for state in states)
        count = groups.reduce(np.add, counts)
        with np.errstate(invalid="ignore", over="ignore"):  # infinite values have no variance: NaN, as in Spark
            total = groups.reduce(np.add, counts * means)
            mean = np.divide(total, count, out=np.zeros(len(count)), where=count > 0)
            around = groups.reduce(np.add, squares + counts * (means - groups.spread(mean)) ** 2)
        return [pa.array(count), pa.array(mean), pa.array(around)]

    def result(self, states: States) -> pa.Array:
        counts, _, squares = (state.to_numpy(zero_copy_only=False) for state in states)
        known = counts > 1
        return pa.array(np.divide(squares, counts - 1, out=np.zeros(len(counts)), where=known), mask=~known)


@dataclass(frozen=True)
class Stddev(Variance):
    """The sample standard deviation; null for fewer than two values."""

    kind: ClassVar[str] = "stddev"

    def result(self, states: States) -> pa.Array:
        return pc.sqrt(super().result(states))


class _Extreme(Aggregate):
    """The smallest or the largest value."""

    wanted: ClassVar[str] = "a type whose values have an order"
    _floats: ClassVar[np.ufunc]
    _others: ClassVar[np.ufunc]
    _neutral_float: ClassVar[float]
    _sign: ClassVar[int]

    def takes(self, kind: pa.DataType) -> bool:
        return not pa.types.is_nested(kind)

    def state_types(self, kind: pa.DataType) -> list[pa.DataType]:
        return [kind]

    def result_type(self, kind: pa.DataType) -> pa.DataType:
        return kind

    def prepare(self, values: pa.Array, ts_us: Int64s) -> States:
        return [values]

    def reduce(self, states: States, groups: Groups) -> States:
        values = states[0]
        if pa.types.is_floating(values.type):
            found = reduced(self._floats, values, groups, self._neutral_float)
            return [_with_signs(found, values, groups, self._sign)]
        if pa.types.is_integer(values.type) and values.null_count == 0:
            return [reduced(self._others, values, groups, 0)]
        return [_extreme_of_ranks(values, groups, self._sign)]

    def accumulating(self, states: States) -> list[np.ufunc] | None:
        return [self._others] if pa.types.is_integer(states[0].type) else None

    def result(self, states: States) -> pa.Array:
        return states[0]


def _with_signs(found: pa.Array, values: pa.Array, groups: Groups, sign: int) -> pa.Array:
    """Extremes whose zeros have the sign they must: -0.0 is below 0.0, in whatever order they came."""
    if found.null_count == 0 and not (found.to_numpy() == 0).any():
        return found
    zero = pc.equal(found, pa.scalar(0, found.type)).fill_null(False)
    numbers = values.fill_null(pa.scalar(math.nan, values.type)).to_numpy()
    wanted = (numbers == 0) & (np.signbit(numbers) == (sign > 0))
    has_wanted = pa.array(groups.reduce(np.add, wanted.astype(np.int64)) > 0)
    lower, upper = (pa.scalar(number, found.type) for number in (-0.0, 0.0))
    own, other = (lower, upper) if sign > 0 else (upper, lower)
    return pc.if_else(zero, pc.if_else(has_wanted, own, other), found)


def _extreme_of_ranks(values: pa.Array, groups: Groups, sign: int) -> pa.Array:
    """The value of the smallest rank (largest, with sign -1) in each group; nulls only where there is nothing else."""
    ranks = sign * value_rank(values)
    if values.null_count:
        ranks[~values.is_valid().to_numpy(zero_copy_only=False)] = len(values) + 1
    return values.take(pa.array(_positions_of(ranks, groups)))


def _positions_of(ranks: Int64s, groups: Groups) -> Int64s:
    """In each group the position of a row of the smallest rank."""
    if len(ranks) == 0:
        return ranks
    low = int(ranks.min())
    holder = np.zeros(int(ranks.max()) - low + 1, dtype=np.int64)
    holder[ranks - low] = np.arange(len(ranks))
    positions: Int64s = holder[groups.reduce(np.minimum, ranks) - low]
    return positions


@dataclass(frozen=True)
class Min(_Extreme):
    """The smallest value."""

    kind: ClassVar[str] = "min"
    _floats, _others = np.fmin, np.minimum
    _neutral_float, _sign = float("nan"), 1


@dataclass(frozen=True)
class Max(_Extreme):
    """The largest value."""

    kind: ClassVar[str] = "max"
    _floats, _others = np.maximum, np.maximum
    _neutral_float, _sign = float("-inf"), -1


class _Edge(Aggregate):
    """The value of the first or the last event; of events at one time, the smallest or the largest value."""

    _sign: ClassVar[int]

    def state_types(self, kind: pa.DataType) -> list[pa.DataType]:
        return [pa.int64(), kind]

    def result_type(self, kind: pa.DataType) -> pa.DataType:
        return kind

    def prepare(self, values: pa.Array, ts_us: Int64s) -> States:
        return [pa.array(ts_us), values]

    def reduce(self, states: States, groups: Groups) -> States:
        positions = groups.order if len(groups) == len(groups.order) else self._nearest(states, groups)
        return [state.take(pa.array(positions)) for state in states]

    def _nearest(self, states: States, groups: Groups) -> Int64s:
        """In each group the position of the event."""
        ts_us = self._sign * states[0].to_numpy()
        nearest = groups.spread(groups.reduce(np.minimum, ts_us)) == ts_us
        alone = int(nearest.sum()) == len(groups)
        return groups.order[nearest[groups.order]] if alone else self._of_ties(nearest, states[1], groups)

    def _of_ties(self, nearest: Bools, values: pa.Array, groups: Groups) -> Int64s:
        """The positions of the smallest or the largest of the values that are nearest."""
        ranks = np.full(len(nearest), len(nearest) + 1)
        chosen = np.flatnonzero(nearest)
        ranks[chosen] = self._sign * value_rank(values.take(pa.array(chosen)))
        return groups.order[_first_of(ranks, groups)]

    def result(self, states: States) -> pa.Array:
        return states[1]


def _first_of(ranks: Int64s, groups: Groups) -> Int64s:
    """In each group the place in `order` of the first row of the smallest rank."""
    smallest = groups.spread(groups.reduce(np.minimum, ranks)) == ranks
    places = np.where(smallest[groups.order], np.arange(len(ranks)), len(ranks))
    first: Int64s = np.minimum.reduceat(places, groups.starts) if len(places) else places
    return first


@dataclass(frozen=True)
class First(_Edge):
    """The value of the earliest event."""

    kind: ClassVar[str] = "first"
    _sign = 1


@dataclass(frozen=True)
class Last(_Edge):
    """The value of the latest event."""

    kind: ClassVar[str] = "last"
    _sign = -1
