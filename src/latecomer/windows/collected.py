"""Aggregates that keep values instead of numbers: their states are lists, or whatever the user's functions make.

Invariants
1. A state list holds no nulls of its own; a null list counts as an empty one. WindowFunction keeps rows, nulls and all.
2. Reduced lists of CountDistinct and TopK hold each value once, in the order of the values: the same values give the
   same state, whatever the order in which they came.
3. Events at one time are distinguished by their values, so no result depends on the order of arrival.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import pairwise
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from latecomer.errors import InputError, must
from latecomer.events import TIME, Int64s, value_rank
from latecomer.windows.aggregates import AggregateFunction, States, is_number
from latecomer.windows.grouping import Groups, group_rows, plain_keys


def one_each(values: pa.Array) -> pa.ListArray:
    """A list per value: of that value, or empty for null."""
    return _lists_of(values.drop_null(), values.is_valid().to_numpy(zero_copy_only=False))


def join_lists(lists: pa.ListArray, groups: Groups) -> pa.ListArray:
    """One list per group: its lists one after the other, in the groups' order."""
    lengths = lengths_of(lists)[groups.order]
    ends = _offsets(lengths)
    begins = lists.offsets.to_numpy()[:-1].astype(np.int64)[groups.order]
    positions = np.repeat(begins - ends[:-1], lengths) + np.arange(ends[-1])
    bounds = ends[np.append(groups.starts, len(groups.order))]
    return _lists_of(lists.values.take(pa.array(positions)), np.diff(bounds))


def lengths_of(lists: pa.ListArray) -> Int64s:
    """How many values each list has."""
    lengths: Int64s = lists.value_lengths().fill_null(0).to_numpy().astype(np.int64)
    return lengths


def _offsets(lengths: Int64s) -> Int64s:
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def _lists_of(values: pa.Array, lengths: Int64s) -> pa.ListArray:
    """Lists of these lengths, cut from values."""
    return pa.ListArray.from_arrays(pa.array(_offsets(lengths), pa.int32()), values)


def _owners(lists: pa.ListArray) -> Int64s:
    """For each value of the lists, the number of its list."""
    return np.repeat(np.arange(len(lists)), lengths_of(lists))


def _plain_type(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _by_value(values: pa.Array, owners: Int64s) -> Groups:
    """Group the values of each owner, in order of owner and value."""
    encoded = values.dictionary_encode()
    ranks = value_rank(encoded.dictionary)[encoded.indices.to_numpy()]
    return group_rows([owners * (len(encoded.dictionary) + 1) + ranks])


def _in_time_order(owners: Int64s, ts_us: Int64s, columns: Iterable[pa.Array]) -> Int64s:
    """The positions of rows by owner, then time, then their values, column by column."""
    positions = np.lexsort((ts_us, owners))
    same = (np.diff(owners[positions]) == 0) & (np.diff(ts_us[positions]) == 0)
    if not same.any():
        return positions
    tied = positions[np.append(same, False) | np.append(False, same)]
    ranks = [_ranks_at(column, tied) for column in columns]
    return np.lexsort((*reversed(ranks), ts_us, owners))


def _ranks_at(column: pa.Array, chosen: Int64s) -> Int64s:
    """Ranks of the chosen values, zero for the others."""
    ranks = np.zeros(len(column), dtype=np.int64)
    ranks[chosen] = value_rank(column.take(pa.array(chosen)))
    return ranks


class _Distinct(AggregateFunction):
    """What tells values apart."""

    wanted: ClassVar[str] = "a type that is not nested"

    def takes(self, kind: pa.DataType) -> bool:
        return not pa.types.is_nested(kind)


@dataclass(frozen=True)
class CountDistinct(_Distinct):
    """How many different values; exact, so it keeps each of them."""

    column: str = field()
    named: str | None = field(default=None, kw_only=True)
    kind: ClassVar[str] = "count_distinct"

    def state_types(self, kind: pa.DataType) -> list[pa.DataType]:
        return [pa.list_(_plain_type(kind))]

    def result_type(self, kind: pa.DataType) -> pa.DataType:
        return pa.int64()

    def prepare(self, values: pa.Array, ts_us: Int64s) -> States:
        return [one_each(plain_keys(values))]

    def reduce(self, states: States, groups: Groups) -> States:
        lists = join_lists(states[0], groups)
        owners = _owners(lists)
        firsts = _by_value(lists.values, owners).firsts
        distinct = lists.values.take(pa.array(firsts))
        return [_lists_of(distinct, np.bincount(owners[firsts], minlength=len(lists)))]

    def result(self, states: States) -> pa.Array:
        return pa.array(lengths_of(states[0]))


@dataclass(frozen=True)
class Quantile(AggregateFunction):
    """The value below which the share `q` of the values lies, as Spark's `percentile`; exact, so it keeps them all."""

    column: str = field()
    named: str | None = field(default=None, kw_only=True)
    q: float = 0.5
    kind: ClassVar[str] = "quantile"
    wanted: ClassVar[str] = "a number type"

    def __post_init__(self) -> None:
        if isinstance(self.q, bool) or not isinstance(self.q, Real) or not 0 <= self.q <= 1:
            raise InputError(must("q", "be a number from 0 to 1", self.q, "write 0.5 for the median"))

    def takes(self, kind: pa.DataType) -> bool:
        return is_number(kind)

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "q": float(self.q)}

    def state_types(self, kind: pa.DataType) -> list[pa.DataType]:
        return [pa.list_(pa.float64())]

    def result_type(self, kind: pa.DataType) -> pa.DataType:
        return pa.float64()

    def prepare(self, values: pa.Array, ts_us: Int64s) -> States:
        return [one_each(pc.add(values.cast(pa.float64(), safe=False), 0.0))]  # one zero: no order tells them apart

    def reduce(self, states: States, groups: Groups) -> States:
        return [join_lists(states[0], groups)]

    def result(self, states: States) -> pa.Array:
        lengths, values = lengths_of(states[0]), states[0].flatten().to_numpy()
        known = lengths > 0
        values = values[np.lexsort((values, _owners(states[0])))]
        place = self.q * (lengths[known] - 1)
        below, above = np.floor(place), np.ceil(place)
        begins = _offsets(lengths)[:-1][known]
        low, high = (values[begins + near.astype(np.int64)] for near in (below, above))
        quantiles = np.zeros(len(lengths))
        with np.errstate(invalid="ignore"):
            quantiles[known] = np.where(low == high, low, (above - place) * low + (place - below) * high)
        return pa.array(quantiles, mask=~known)


@dataclass(frozen=True)
class TopK(_Distinct):
    """The `k` most frequent values with their counts; of equally frequent ones the smallest. It keeps all counts."""

    column: str = field()
    named: str | None = field(default=None, kw_only=True)
    k: int = 5
    kind: ClassVar[str] = "top_k"

    def __post_init__(self) -> None:
        if isinstance(self.k, bool) or not isinstance(self.k, Integral) or self.k < 1:
            raise InputError(must("k", "be a whole number from 1 on", self.k, "write 5 for the five most frequent"))

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "k": int(self.k)}

    def state_types(self, kind: pa.DataType) -> list[pa.DataType]:
        return [pa.list_(_plain_type(kind)), pa.list_(pa.int64())]

    def result_type(self, kind: pa.DataType) -> pa.DataType:
        return pa.list_(pa.struct([("value", _plain_type(kind)), ("count", pa.int64())]))

    def prepare(self, values: pa.Array, ts_us: Int64s) -> States:
        lists = one_each(plain_keys(values))
        return [lists, _lists_of(pa.array(np.ones(len(lists.values), dtype=np.int64)), lengths_of(lists))]

    def reduce(self, states: States, groups: Groups) -> States:
        lists, counts = (join_lists(state, groups) for state in states)
        owners = _owners(lists)
        same = _by_value(lists.values, owners)
        distinct = lists.values.take(pa.array(same.firsts))
        lengths = np.bincount(owners[same.firsts], minlength=len(lists))
        merged = same.reduce(np.add, counts.values.to_numpy())
        return [_lists_of(distinct, lengths), _lists_of(pa.array(merged), lengths)]

    def result(self, states: States) -> pa.Array:
        values, counts = states[0].flatten(), states[1].flatten()
        lengths, owners = lengths_of(states[0]), _owners(states[0])
        falling = np.lexsort((-counts.to_numpy(), owners))
        place = np.arange(len(owners)) - np.repeat(_offsets(lengths)[:-1], lengths)
        top = pa.array(falling[place < self.k])
        fields = list(self.result_type(values.type).value_type)
        rows = pa.StructArray.from_arrays([values.take(top), counts.take(top)], fields=fields)
        return _lists_of(rows, np.minimum(lengths, self.k))


@dataclass(frozen=True)
class Custom(AggregateFunction):
    """The user's own aggregate in plain Python.

    `zero()` is the state of nothing, `add(state, value)` the state after one more event, in order of time; a null
    value is None. `merge(state, state)` is the state of two parts, in any order; without it there are no partial
    results to merge. `finish(state)` is the result, of type `returns`. With `state`, an Arrow type, states are kept as
    values of that type (a struct is a dict, a list a list); without it they are pickled, and must be picklable.
    """

    column: str = field()
    named: str | None = field(default=None, kw_only=True)
    zero: Callable[[], Any] = field()
    add: Callable[[Any, Any], Any] = field()
    merge: Callable[[Any, Any], Any] | None = field()
    finish: Callable[[Any], Any] = field()
    returns: pa.DataType = field()
    state: pa.DataType | None = field(default=None, kw_only=True)
    kind: ClassVar[str] = "custom"

    def __post_init__(self) -> None:
        _check_type(self.returns, "returns")
        if self.state is not None:
            _check_type(self.state, "state")
        for name, function in (("zero", self.zero), ("add", self.add), ("finish", self.finish)):
            _check_callable(function, name)
        if self.merge is not None:
            _check_callable(self.merge, "merge")

    @property
    def mergeable(self) -> bool:
        """Whether partial results can be merged."""
        return self.merge is not None

    def describe(self) -> dict[str, Any]:
        typed = {} if self.state is None else {"state": str(self.state)}
        return {**super().describe(), "returns": str(self.returns), **typed}

    def state_types(self, kind: pa.DataType) -> list[pa.DataType]:
        return [pa.large_binary() if self.state is None else self.state]

    def result_type(self, kind: pa.DataType) -> pa.DataType:
        return self.returns

    def prepare(self, values: pa.Array, ts_us: Int64s) -> States:
        return [self._kept([self.add(self.zero(), value) for value in values.to_pylist()], self.state)]

    def partial(self, values: pa.Array, ts_us: Int64s, groups: Groups) -> States:
        owners = groups.spread(np.arange(len(groups)))
        ordered = values.take(pa.array(_in_time_order(owners, ts_us, [values]))).to_pylist()
        return [self._kept([reduce(self.add, part, self.zero()) for part in _cut(ordered, groups.sizes)], self.state)]

    def reduce(self, states: States, groups: Groups) -> States:
        if len(groups) == len(groups.order):
            return [states[0].take(pa.array(groups.order))]
        if self.merge is None:
            raise InputError(must(self.name, "have a merge", None, "give merge=, or use it where nothing is merged"))
        ordered = self._read(states[0].take(pa.array(groups.order)))
        merged = [reduce(self.merge, part) for part in _cut(ordered, groups.sizes)]
        return [self._kept(merged, states[0].type)]  # text may have become wide on its way

    def result(self, states: States) -> pa.Array:
        return _array_of(
            [self.finish(state) for state in self._read(states[0])], self.returns, f"finish of {self.name}"
        )

    def _kept(self, states: list[Any], kind: pa.DataType | None) -> pa.Array:
        if self.state is None:
            pickled = [pickle.dumps(state, pickle.HIGHEST_PROTOCOL) for state in states]
            return pa.array(pickled, pa.large_binary())
        return _array_of(states, kind or self.state, f"state of {self.name}", "state=")

    def _read(self, states: pa.Array) -> list[Any]:
        found: list[Any] = states.to_pylist()
        return found if self.state is not None else [pickle.loads(state) for state in found]


def _check_type(kind: object, where: str) -> None:
    if not isinstance(kind, pa.DataType):
        raise InputError(must(where, "be an Arrow type", kind, "write pa.float64()"))


def _cut(rows: Sequence[Any], sizes: Int64s) -> Iterable[Sequence[Any]]:
    """Stretches of these sizes."""
    return (rows[start:stop] for start, stop in pairwise(_offsets(sizes).tolist()))


def _array_of(results: Sequence[Any], kind: pa.DataType, where: str, setting: str = "returns=") -> pa.Array:
    """An array of Python or Arrow values."""
    values = [value.as_py() if isinstance(value, pa.Scalar) else value for value in results]
    try:
        return pa.array(values, kind)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, TypeError, OverflowError) as error:
        raise InputError(must(where, f"give values of type {kind}", str(error), f"change it, or {setting}")) from error


def _check_callable(function: object, name: str) -> None:
    if not callable(function):
        raise InputError(must(name, "be a function", function, "e.g. zero=lambda: 0"))


@dataclass(frozen=True)
class WindowFunction(AggregateFunction):
    """The user's own function on the rows of a window, in order of time: `function(rows)` is a value of type `returns`.

    It needs several columns, so `values` is a struct array with the fields `columns`, and `rows` a record batch.
    """

    column: None = field(default=None, init=False)
    named: str | None = field(default=None, kw_only=True)
    columns: Sequence[str] = field()
    function: Callable[[pa.RecordBatch], Any] = field()
    returns: pa.DataType = field()
    kind: ClassVar[str] = "window_function"

    def __post_init__(self) -> None:
        if isinstance(self.columns, str) or not self.columns:
            rule = "be a list of one name or more"
            raise InputError(must("columns of window_function", rule, self.columns, "write ['kwh', 'meter']"))
        if self.named is None:
            raise InputError(must("window_function", "be given a name for its result", "none", "write named='share'"))
        _check_type(self.returns, "returns")
        _check_callable(self.function, "function of window_function")

    def check(self, schema: pa.Schema) -> None:
        missing = [name for name in self.columns if name not in schema.names]
        if missing:
            rule = f"be some of {', '.join(schema.names)}"
            raise InputError(must("columns of window_function", rule, missing[0], "check the name (case counts)"))

    def input_type(self, schema: pa.Schema) -> pa.DataType:
        """Structs of the columns."""
        return pa.struct([(name, schema.field(name).type) for name in self.columns])

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "columns": list(self.columns), "returns": str(self.returns)}

    def state_types(self, kind: pa.DataType) -> list[pa.DataType]:
        return [pa.list_(pa.struct([pa.field(TIME, pa.int64()), *kind]))]

    def result_type(self, kind: pa.DataType) -> pa.DataType:
        return self.returns

    def prepare(self, values: pa.Array, ts_us: Int64s) -> States:
        fields = list(self.state_types(values.type)[0].value_type)
        return [one_each(pa.StructArray.from_arrays([pa.array(ts_us), *values.flatten()], fields=fields))]

    def reduce(self, states: States, groups: Groups) -> States:
        return [join_lists(states[0], groups)]

    def result(self, states: States) -> pa.Array:
        ts_us, *columns = states[0].flatten().flatten()
        _, *fields = states[0].type.value_type
        order = pa.array(_in_time_order(_owners(states[0]), ts_us.to_numpy(), columns))
        rows = pa.RecordBatch.from_arrays([column.take(order) for column in columns], schema=pa.schema(fields))
        bounds = pairwise(_offsets(lengths_of(states[0])).tolist())
        results = [self.function(rows.slice(start, stop - start)) for start, stop in bounds]
        return _array_of(results, self.returns, self.name)
