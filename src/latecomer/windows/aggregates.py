"""Aggregates: what a window says of its events, in a form that can be merged.

An aggregate keeps a few state columns per group. `prepare` gives the states of single events, `reduce` those of groups
from those of their parts, `result` what the user sees. So a partial result is a reduced preparation, a merge is one
more `reduce`, and events, slices, tiers and windows all go the same way, in any order. Nulls and NaN count as in Spark:
nulls are skipped, NaN is larger than any number. Sums of floats are the same up to rounding, whatever the order; those
of whole numbers and decimals are exact (`exact`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from latecomer.errors import InputError, must
from latecomer.events import Int64s
from latecomer.windows import exact
from latecomer.windows.grouping import Groups

States = list[pa.Array]
_CHECK = "check the name (case counts)"


@dataclass(frozen=True)
class AggregateFunction(ABC):
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
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or exact.is_decimal(kind))


@dataclass(frozen=True)
class Count(AggregateFunction):
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


class _Numeric(AggregateFunction):
    """What adds up."""

    wanted: ClassVar[str] = "a number type (decimals of up to 38 digits)"

    def takes(self, kind: pa.DataType) -> bool:
        return is_number(kind)


@dataclass(frozen=True)
class Sum(_Numeric):
    """The sum: a bigint for whole numbers, a decimal for decimals, else a double; an error where it does not fit."""

    kind: ClassVar[str] = "sum"

    def state_types(self, kind: pa.DataType) -> list[pa.DataType]:
        if pa.types.is_integer(kind):
            return [pa.int64(), pa.int64()]
        return [exact.kept_type(kind) if pa.types.is_decimal(kind) else pa.float64()]

    def result_type(self, kind: pa.DataType) -> pa.DataType:
        if pa.types.is_decimal(kind):
            return exact.sum_type(kind)
        return pa.int64() if pa.types.is_integer(kind) else pa.float64()

    def prepare(self, values: pa.Array, ts_us: Int64s) -> States:
        if pa.types.is_integer(values.type):
            return exact.whole_numbers(values)
        return [values.cast(self.state_types(values.type)[0])]

    def reduce(self, states: States, groups: Groups) -> States:
        if len(states) == 2:
            return exact.add_whole_numbers(states[0], states[1], groups)
        return [_added(states[0], groups)]

    def accumulating(self, states: States) -> list[np.ufunc] | None:
        if len(states) == 2:
            return [np.add, np.add] if exact.can_accumulate(states[0], states[1]) else None
        return None if pa.types.is_decimal(states[0].type) else [np.add]

    def result(self, states: States) -> pa.Array:
        if len(states) == 2:
            return exact.as_bigint(states[0], states[1], self.name)
        return exact.as_sum(states[0], self.name) if pa.types.is_decimal(states[0].type) else states[0]


def _added(sums: pa.Array, groups: Groups) -> pa.Array:
    """Sums per group, of decimals or doubles."""
    return exact.add_decimals(sums, groups) if pa.types.is_decimal(sums.type) else summed(sums, groups)


@dataclass(frozen=True)
class Mean(_Numeric):
    """The mean: a decimal for decimals, else a double."""

    kind: ClassVar[str] = "mean"

    def state_types(self, kind: pa.DataType) -> list[pa.DataType]:
        return [exact.kept_type(kind) if pa.types.is_decimal(kind) else pa.float64(), pa.int64()]

    def result_type(self, kind: pa.DataType) -> pa.DataType:
        return exact.mean_type(kind) if pa.types.is_decimal(kind) else pa.float64()

    def prepare(self, values: pa.Array, ts_us: Int64s) -> States:
        return [values.cast(self.state_types(values.type)[0], safe=False), values.is_valid().cast(pa.int64())]

    def reduce(self, states: States, groups: Groups) -> States:
        return [_added(states[0], groups), summed(states[1], groups)]

    def accumulating(self, states: States) -> list[np.ufunc] | None:
        return None if pa.types.is_decimal(states[0].type) else [np.add, np.add]

    def result(self, states: States) -> pa.Array:
        if pa.types.is_decimal(states[0].type):
            return exact.as_mean(states[0], states[1], self.name)
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
