"""Exact sums and means: whole numbers against Python's integers, decimals against its decimals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_UP, Decimal, localcontext
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from latecomer.chunks import ChunkStore
from latecomer.errors import InputError
from latecomer.events import FOREVER_US, Layout
from latecomer.windows import Clocks, Window, WindowAggregation
from latecomer.windows.aggregates import AggregateFunction, Mean, Stddev, Sum
from latecomer.windows.collected import Quantile
from latecomer.windows.extremes import First, Last, Max, Min
from latecomer.windows.grouping import group_rows
from tests.unit.values import column, ints

KINDS = {
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.int32(): st.integers(-(2**31), 2**31 - 1),
    pa.uint64(): st.integers(0, 2**64 - 1),
}
DECIMALS = [pa.decimal128(p, s) for p, s in ((6, 2), (18, 0), (28, 10), (29, 3), (38, 0), (38, 36))]
Row = tuple[int, Any, int]  # group, value, part


def digits(kind: pa.DataType) -> st.SearchStrategy[Decimal]:
    most = 10**kind.precision - 1
    return st.integers(-most, most).map(lambda number: exactly(number, kind.scale))


def exactly(number: int, scale: int) -> Decimal:
    return Decimal((number < 0, tuple(map(int, str(abs(number)))), -scale))


def in_parts(aggregate: AggregateFunction, rows: Sequence[Row], kind: pa.DataType) -> dict[int, Any]:
    """The results of groups, by way of parts."""
    keys, states = [], []
    for part in sorted({row[2] for row in rows}):
        own = [row for row in rows if row[2] == part]
        groups = group_rows([ints([row[0] for row in own])])
        keys += ints([row[0] for row in own])[groups.firsts].tolist()
        states.append(aggregate.partial(column([row[1] for row in own], kind), ints([0] * len(own)), groups))
    groups = group_rows([ints(keys)])
    together = [pa.concat_arrays(list(state)) for state in zip(*states, strict=True)]
    assert [state.type for state in together] == aggregate.state_types(kind)
    found = aggregate.result(aggregate.reduce(together, groups))
    assert found.type == aggregate.result_type(kind)
    return dict(zip(ints(keys)[groups.firsts].tolist(), found.to_pylist(), strict=True))


def cuts_of(rows: Sequence[Row]) -> list[list[Row]]:
    """The same rows as one part, as they are, and each by itself."""
    return [[(*row[:2], 0) for row in rows], list(rows), [(*row[:2], place) for place, row in enumerate(rows)]]


def rows_of(values: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Row]]:
    row = st.tuples(st.integers(0, 2), st.none() | values, st.integers(0, 3))
    return st.lists(row, min_size=1, max_size=30)


def per_group(rows: Sequence[Row], how: Callable[[list[Any]], Any]) -> dict[int, Any]:
    known = {key: [row[1] for row in rows if row[0] == key and row[1] is not None] for key, _, _ in rows}
    return {key: how(values) if values else None for key, values in known.items()}


def asked(aggregate: AggregateFunction, rows: Sequence[Row], kind: pa.DataType) -> Any:
    """The results, or the error."""
    try:
        return in_parts(aggregate, rows, kind)
    except InputError as error:
        return str(error).partition(";")[0]


@pytest.mark.parametrize("kind", KINDS, ids=str)
@settings(max_examples=60)
@given(data=st.data())
def test_sums_of_whole_numbers_are_pythons_however_they_are_cut(kind: pa.DataType, data: st.DataObject) -> None:
    rows = data.draw(rows_of(KINDS[kind]))
    wanted = per_group(rows, sum)
    fits = all(total is None or -(2**63) <= total < 2**63 for total in wanted.values())
    for cut in cuts_of(rows):
        assert asked(Sum("x"), cut, kind) == (wanted if fits else "sum_x must fit into a bigint")


def test_a_partial_sum_may_leave_the_range_that_the_whole_keeps() -> None:
    rows = [(0, 2**62, 0), (0, 2**62, 0), (0, 2**62, 1), (0, -(2**62), 2), (0, -(2**62), 2), (0, 5, 3)]
    for cut in cuts_of(rows):
        assert in_parts(Sum("x"), cut, pa.int64()) == {0: 2**62 + 5}
    with pytest.raises(InputError, match=f"^sum_x must fit into a bigint; got {-(2**63) - 1}; cast the column"):
        in_parts(Sum("x"), [(0, -(2**63), 0), (0, -1, 1)], pa.int64())


@pytest.mark.parametrize("cuts", [[], [2], [1, 7, 8], list(range(25))], ids=len)
def test_hopping_sums_do_not_depend_on_where_the_stream_is_cut(cuts: list[int]) -> None:
    rows = list(enumerate([2**62, 2**62, 1, -(2**62), -(2**62), -(2**62), -(2**62), -(2**62), 2**62, 2**62] * 2))
    wanted = {start: sum(v for t, v in rows if start <= t < start + 10) for start in range(-5, 20, 5)}
    operator = WindowAggregation(Window("10 us", "5 us"), (Sum("x"),))
    assert windows_of(operator, rows, pa.int64(), cuts) == wanted


def windows_of(
    operator: WindowAggregation, rows: Sequence[tuple[int, Any]], kind: pa.DataType, cuts: list[int]
) -> dict[int, Any]:
    store, found = ChunkStore(), {}
    for start, stop in zip([-1, *cuts], [*cuts, FOREVER_US], strict=True):
        piece = [row for row in rows if start < row[0] <= stop]
        columns = [pa.array([row[0] for row in piece], pa.int64()), pa.array([row[1] for row in piece], kind)]
        batch = pa.RecordBatch.from_arrays(columns, names=["ts", "x"]) if piece else None
        store = ChunkStore.restore(store.snapshot())
        given_rows = operator.build(store, Layout("ts")).push(batch, Clocks.both(stop)).rows
        if given_rows is not None:
            found.update({row["window_start"]: row["sum_x"] for row in given_rows.to_pylist()})
    return found


@pytest.mark.parametrize("kind", DECIMALS, ids=str)
@settings(max_examples=60)
@given(data=st.data())
def test_sums_of_decimals_are_pythons_however_they_are_cut(kind: pa.DataType, data: st.DataObject) -> None:
    rows = data.draw(rows_of(digits(kind)))
    with localcontext(prec=100):
        wanted = per_group(rows, sum)
        fits = all(
            v is None or abs(v) < Decimal(10) ** (min(38, kind.precision + 10) - kind.scale) for v in wanted.values()
        )
    for cut in cuts_of(rows):
        assert asked(Sum("x"), cut, kind) == (wanted if fits else f"sum_x must fit into {Sum('x').result_type(kind)}")


@pytest.mark.parametrize("kind", DECIMALS, ids=str)
@settings(max_examples=60)
@given(data=st.data())
def test_means_of_decimals_are_rounded_as_spark_does(kind: pa.DataType, data: st.DataObject) -> None:
    rows = data.draw(rows_of(digits(kind)))
    taken = Mean("x").result_type(kind)

    def mean(values: list[Decimal]) -> Decimal:
        quotient = (sum(values, Decimal(0)) / len(values)).quantize(Decimal(1).scaleb(-39), ROUND_HALF_UP)
        return quotient.quantize(Decimal(1).scaleb(-taken.scale), ROUND_HALF_UP)

    with localcontext(prec=200):
        wanted = per_group(rows, mean)
        fits = all(v is None or abs(v) < Decimal(10) ** (taken.precision - taken.scale) for v in wanted.values())
    for cut in cuts_of(rows):
        assert asked(Mean("x"), cut, kind) == (wanted if fits else f"mean_x must fit into {taken}")


def test_sums_and_means_of_decimals_have_sparks_types() -> None:
    def taken(precision: int, scale: int) -> tuple[str, str]:
        kind = pa.decimal128(precision, scale)
        return str(Sum("x").result_type(kind)), str(Mean("x").result_type(kind))

    assert taken(6, 2) == ("decimal128(16, 2)", "decimal128(10, 6)")
    assert taken(30, 2) == ("decimal128(38, 2)", "decimal128(34, 6)")
    assert taken(38, 36) == ("decimal128(38, 36)", "decimal128(38, 38)")


def test_hopping_sums_of_decimals_do_not_depend_on_where_the_stream_is_cut() -> None:
    kind = pa.decimal128(9, 2)
    rows = [(ts, exactly((ts * 7_919) % 10_007 - 5_000, 2)) for ts in range(40)]
    wanted = {start: sum(v for t, v in rows if start <= t < start + 10) for start in range(-9, 40)}
    operator = WindowAggregation(Window("10 us", "1 us"), (Sum("x"),))
    for cuts in ([], [4, 5], list(range(50))):
        assert windows_of(operator, rows, kind, cuts) == wanted


def test_decimals_go_into_every_aggregate_of_numbers_and_values() -> None:
    kind, values = pa.decimal128(38, 2), [exactly(n, 2) for n in (150, -275, 10**37, 150)]
    rows = [(0, value, place % 2) for place, value in enumerate(values)]
    assert in_parts(Min("x"), rows, kind) == {0: exactly(-275, 2)}
    assert in_parts(Max("x"), rows, kind) == {0: exactly(10**37, 2)}
    assert in_parts(First("x"), rows, kind) == {0: exactly(-275, 2)}
    assert in_parts(Last("x"), rows, kind) == {0: exactly(10**37, 2)}
    assert in_parts(Quantile("x"), rows, kind) == {0: 1.5}
    assert in_parts(Stddev("x"), [(0, exactly(n, 2), 0) for n in (100, 300)], kind)[0] == pytest.approx(np.sqrt(2))


def test_a_decimal_that_spark_does_not_have_is_refused() -> None:
    schema = pa.schema([("x", pa.decimal256(60, 2))])
    with pytest.raises(InputError, match=r"be of a number type \(decimals of up to 38 digits\); got"):
        Sum("x").check(schema)
