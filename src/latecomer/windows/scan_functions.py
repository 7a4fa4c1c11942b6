"""Functions of the rows of a key so far: running sums, counts, extremes, the last value, numbers, averages.

Each gives one value for every row. The state of most is the value after the row before: `Accumulating`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from latecomer._jit import kernel
from latecomer.errors import InputError, must
from latecomer.events import Bools, Int64s, as_bits
from latecomer.windows.key_steps import OFTEN, Work

States = list[pa.Array]
_LEAST, _MOST = -(2**63), 2**63 - 1


class Numbers(NamedTuple):
    """A column for kernels: values, and which of them are there."""

    values: npt.NDArray[Any]
    valid: Bools


class Scanned(NamedTuple):
    """A value for each row, the state before the rows that were wanted, and after each stretch."""

    results: pa.Array
    before: States
    after: States


def check_alias(name: object) -> None:
    """Refuse what is no name."""
    if not isinstance(name, str) or not name:
        raise InputError(must("alias", "be a name", name, "give it as text"))


@dataclass(frozen=True)
class ScanFunction(ABC):
    """One column of results: a value for each row, from the rows of its key up to it."""

    column: str | None = None
    named: str | None = field(default=None, kw_only=True)
    kind: ClassVar[str]
    wanted: ClassVar[str] = "any type"
    needs_column: ClassVar[bool] = True
    begins_with: ClassVar[int | None] = None  # the state of one column that no state is the same as

    @property
    def name(self) -> str:
        """The column's name in the results."""
        return self.named or (self.kind if self.column is None else f"{self.kind}_{self.column}")

    @property
    def every(self) -> int:
        """How many rows may lie between two states that are kept."""
        return OFTEN

    def alias(self, name: str) -> Self:
        """The same under another name."""
        check_alias(name)
        return replace(self, named=name)

    def check(self, columns: pa.Schema) -> None:
        """Refuse what cannot be computed on these columns."""
        if self.column is None and not self.needs_column:
            return
        if not isinstance(self.column, str) or self.column not in columns.names:
            rule = f"be one of {', '.join(columns.names)}"
            raise InputError(must(f"column of {self.kind}", rule, self.column, "check the name (case counts)"))
        kind = columns.field(self.column).type
        if not self.takes(kind):
            raise InputError(must(f"{self.kind}({self.column})", f"be of {self.wanted}", str(kind), "cast it before"))

    def takes(self, kind: pa.DataType) -> bool:
        """Whether it can be computed of values of this type."""
        return True

    def input_type(self, columns: pa.Schema) -> pa.DataType:
        """The type of the column it reads; any, where it reads none."""
        return pa.int64() if self.column is None else columns.field(self.column).type

    def values(self, work: Work) -> pa.Array:
        """The column it reads; numbers, where it reads none."""
        rows = work.rows
        return pa.array(np.zeros(rows.num_rows, np.int64)) if self.column is None else rows.column(self.column)

    @abstractmethod
    def result_type(self, kind: pa.DataType, time: pa.DataType) -> pa.DataType:
        """The type of the results, for a column of this type; `time` is that of the rows' times."""

    @abstractmethod
    def state_types(self, kind: pa.DataType, time: pa.DataType) -> list[pa.DataType]:
        """The types of the columns of its state."""

    @abstractmethod
    def run(self, work: Work, state: States) -> Scanned:
        """Follow the rows."""

    def describe(self) -> dict[str, Any]:
        """Kind and settings: stored with the state and compared on restart."""
        return {"kind": self.kind, "column": self.column, "name": self.name}


class Accumulating(ScanFunction):
    """A function whose state is its last result."""

    def state_types(self, kind: pa.DataType, time: pa.DataType) -> list[pa.DataType]:
        return [self.result_type(kind, time)]

    @abstractmethod
    def accumulate(self, values: pa.Array, starts: Int64s, state: pa.Array) -> pa.Array:
        """The result of each row."""

    def run(self, work: Work, state: States) -> Scanned:
        results = self.accumulate(self.values(work), work.starts, state[0])
        before = value_before(results, state[0], work)
        return Scanned(results, [before], [results.take(pa.array(work.starts[1:] - 1))])


def value_before(values: pa.Array, state: pa.Array, work: Work) -> pa.Array:
    """The value of the row before each wanted one; before the first of a stretch, that of the state."""
    bits, known = as_bits(values), as_bits(state)
    if len(work.wanted) == len(values) and bits is not None and known is not None:  # before every row
        moved = np.empty(len(values), dtype=bits.to_numpy().dtype)
        moved[1:] = bits.to_numpy()[:-1]
        moved[work.starts[:-1]] = known.to_numpy()
        return pa.array(moved).view(values.type)
    together = pa.concat_arrays([values, state])
    stretch = np.searchsorted(work.starts, work.wanted, side="right") - 1
    is_first = work.starts[stretch] == work.wanted
    return together.take(pa.array(np.where(is_first, len(values) + stretch, work.wanted - 1)))


def numbers_of(column: pa.Array, kind: type[np.generic]) -> Numbers:
    """A flat column for kernels, nulls as zeros that are not there."""
    if pa.types.is_temporal(column.type):
        column = column.view(pa.int64() if column.type.bit_width == 64 else pa.int32())
    valid: Bools = column.is_valid().to_numpy(zero_copy_only=False)
    values = column.fill_null(0) if column.null_count else column
    return Numbers(values.to_numpy(zero_copy_only=False).astype(kind), valid)


def room_for(like: Numbers) -> Numbers:
    """Numbers as many as others, to be filled."""
    return Numbers(np.empty_like(like.values), np.empty_like(like.valid))


def as_column(numbers: Numbers, kind: pa.DataType) -> pa.Array:
    """Numbers as a column of a type, which is flat."""
    plain = pa.array(numbers.values, mask=None if numbers.valid.all() else ~numbers.valid)
    if pa.types.is_temporal(kind):
        return plain.cast(pa.int64() if kind.bit_width == 64 else pa.int32()).view(kind)
    return plain if plain.type == kind else plain.cast(kind)


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind)) and kind != pa.uint64()


def _kernel_type(kind: pa.DataType) -> type[np.generic]:
    return np.float64 if pa.types.is_floating(kind) else np.int64


class RunningSum(Accumulating):
    """The sum of the values so far; null while there is none. Whole numbers are added exactly."""

    kind: ClassVar[str] = "running_sum"
    wanted: ClassVar[str] = "whole or floating numbers"

    def takes(self, kind: pa.DataType) -> bool:
        return _is_number(kind)

    def result_type(self, kind: pa.DataType, time: pa.DataType) -> pa.DataType:
        return pa.float64() if pa.types.is_floating(kind) else pa.int64()

    def accumulate(self, values: pa.Array, starts: Int64s, state: pa.Array) -> pa.Array:
        rows, before = (numbers_of(each, _kernel_type(state.type)) for each in (values, state))
        sums = room_for(rows)
        if add_up(rows, starts, before, sums, not pa.types.is_floating(state.type)):
            rule = "stay within 64 bits"
            raise InputError(must(self.name, rule, "a larger sum", "cast the column to double before"))
        return as_column(sums, state.type)


@dataclass(frozen=True)
class RunningCount(Accumulating):
    """How many rows so far; with a column, those that have a value there."""

    kind: ClassVar[str] = "running_count"
    needs_column: ClassVar[bool] = False
    begins_with: ClassVar[int | None] = 0

    def result_type(self, kind: pa.DataType, time: pa.DataType) -> pa.DataType:
        return pa.int64()

    def accumulate(self, values: pa.Array, starts: Int64s, state: pa.Array) -> pa.Array:
        ones = values.is_valid().to_numpy(zero_copy_only=False).astype(np.int64)
        rows = Numbers(ones, np.ones(len(ones), np.bool_))
        counts = room_for(rows)
        add_up(rows, starts, numbers_of(state, np.int64), counts, True)
        return as_column(counts, state.type)


class RowNumber(RunningCount):
    """The number of the row among those of its key, from 1 on."""

    kind: ClassVar[str] = "row_number"

    def check(self, columns: pa.Schema) -> None:
        if self.column is not None:
            raise InputError(must(self.kind, "be given no column", self.column, "e.g. lc.running_count('n')"))


@dataclass(frozen=True)
class Extreme(Accumulating):
    """The smallest or largest value so far, as Spark compares: NaN is larger than any number, nulls are passed over."""

    largest: ClassVar[bool]
    wanted: ClassVar[str] = "numbers, times or dates"

    def takes(self, kind: pa.DataType) -> bool:
        return _is_number(kind) or bool(pa.types.is_temporal(kind))

    def result_type(self, kind: pa.DataType, time: pa.DataType) -> pa.DataType:
        return kind

    def accumulate(self, values: pa.Array, starts: Int64s, state: pa.Array) -> pa.Array:
        rows, before = (numbers_of(each, _kernel_type(state.type)) for each in (values, state))
        found = room_for(rows)
        follow_extreme(rows, starts, before, found, self.largest)
        return as_column(found, state.type)


class RunningMin(Extreme):
    """The smallest value so far."""

    kind: ClassVar[str] = "running_min"
    largest: ClassVar[bool] = False


class RunningMax(Extreme):
    """The largest value so far."""

    kind: ClassVar[str] = "running_max"
    largest: ClassVar[bool] = True


class LastValue(Accumulating):
    """The last value that is not null."""

    kind: ClassVar[str] = "last_value"

    def result_type(self, kind: pa.DataType, time: pa.DataType) -> pa.DataType:
        return kind

    def accumulate(self, values: pa.Array, starts: Int64s, state: pa.Array) -> pa.Array:
        places = np.empty(len(values), dtype=np.int64)
        last_places(values.is_valid().to_numpy(zero_copy_only=False), starts, places)
        return pa.concat_arrays([values, state]).take(pa.array(places))


@dataclass(frozen=True)
class ExponentialAverage(Accumulating):
    """`weight` of the value and the rest of the average before it; a null changes nothing."""

    weight: float = 0.5
    kind: ClassVar[str] = "exponential_average"
    wanted: ClassVar[str] = "whole or floating numbers"

    def __post_init__(self) -> None:
        number = isinstance(self.weight, int | float) and not isinstance(self.weight, bool)
        if not (number and 0.0 < self.weight <= 1.0):
            raise InputError(must("weight", "be above 0 and at most 1", self.weight, "e.g. 0.1"))

    def takes(self, kind: pa.DataType) -> bool:
        return _is_number(kind)

    def result_type(self, kind: pa.DataType, time: pa.DataType) -> pa.DataType:
        return pa.float64()

    def accumulate(self, values: pa.Array, starts: Int64s, state: pa.Array) -> pa.Array:
        rows, before = (numbers_of(each, np.float64) for each in (values, state))
        found = room_for(rows)
        average(rows, starts, before, found, float(self.weight))
        return as_column(found, state.type)

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "weight": self.weight}


@kernel
def add_up(rows: Numbers, starts: Int64s, state: Numbers, sums: Numbers, whole: bool) -> bool:
    """Running sums; says whether one of whole numbers has gone beyond 64 bits.

    That is asked before adding: compiled code may take it that a sum of integers is never beyond.
    """
    beyond = False
    for stretch in range(len(starts) - 1):
        total, known = state.values[stretch], state.valid[stretch]
        for i in range(starts[stretch], starts[stretch + 1]):
            if rows.valid[i]:
                value = rows.values[i]
                if whole and known:
                    beyond |= total > _MOST - value if value > 0 else total < _LEAST - value
                total, known = total + value if known else value, True
            sums.values[i], sums.valid[i] = total, known
    return beyond


@kernel
def follow_extreme(rows: Numbers, starts: Int64s, state: Numbers, found: Numbers, largest: bool) -> None:
    """The smallest or largest value so far."""
    for stretch in range(len(starts) - 1):
        best, known = state.values[stretch], state.valid[stretch]
        for i in range(starts[stretch], starts[stretch + 1]):
            if rows.valid[i]:
                value = rows.values[i]
                is_above = value > best or (value != value and best == best)
                is_below = value < best or (best != best and value == value)
                if not known or (is_above if largest else is_below):
                    best, known = value, True
            found.values[i], found.valid[i] = best, known


@kernel
def last_places(valid: Bools, starts: Int64s, places: Int64s) -> None:
    """The place of the last value that is there; before the first one, that of the state, which come after the rows."""
    for stretch in range(len(starts) - 1):
        last = len(valid) + stretch
        for i in range(starts[stretch], starts[stretch + 1]):
            if valid[i]:
                last = i
            places[i] = last


@kernel
def average(rows: Numbers, starts: Int64s, state: Numbers, found: Numbers, weight: float) -> None:
    """The exponential average after each row."""
    for stretch in range(len(starts) - 1):
        mean, known = state.values[stretch], state.valid[stretch]
        for i in range(starts[stretch], starts[stretch + 1]):
            if rows.valid[i]:
                mean = weight * rows.values[i] + (1.0 - weight) * mean if known else rows.values[i]
                known = True
            found.values[i], found.valid[i] = mean, known
