"""Aggregates that pick a value: the smallest, the largest, that of the first event or the last."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from latecomer.events import Bools, Int64s, value_rank
from latecomer.windows.aggregates import AggregateFunction, States, reduced
from latecomer.windows.grouping import Groups


class _Extreme(AggregateFunction):
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


class _Edge(AggregateFunction):
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
