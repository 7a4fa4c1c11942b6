"""Every aggregate against an obvious twin, and the law that parts can be merged."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
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
from latecomer.windows.aggregates import AggregateFunction, Count, Mean, States, Stddev, Sum, Variance
from latecomer.windows.checks import check_aggregates
from latecomer.windows.collected import CountDistinct, Custom, Quantile, TopK, WindowFunction, join_lists
from latecomer.windows.extremes import First, Last, Max, Min
from latecomer.windows.grouping import group_rows
from tests.unit.values import (
    NAN,
    NUMBERS,
    SCHEMA,
    VALUES,
    column,
    distinct,
    ints,
    letters,
    most_frequent,
    rank,
    same,
)

Event = tuple[int, Any]  # time and value
Row = tuple[int, int, Any, int]  # group, time, value, part


def rows_of(kind: pa.DataType) -> st.SearchStrategy[list[Row]]:
    value = st.none() | VALUES[kind]
    return st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4), value, st.integers(0, 2)), max_size=30)


def whole(aggregate: AggregateFunction, rows: Sequence[Row], kind: pa.DataType) -> tuple[list[int], States]:
    """Partial results of all rows: the groups, and their states."""
    keys = ints([row[0] for row in rows])
    groups = group_rows([keys])
    values = column([row[2] for row in rows], kind)
    if isinstance(aggregate, WindowFunction):
        values = pa.StructArray.from_arrays([values], names=["x"])
    states = aggregate.partial(values, ints([row[1] for row in rows]), groups)
    return keys[groups.firsts].tolist(), states


def in_parts(aggregate: AggregateFunction, rows: Sequence[Row], kind: pa.DataType) -> tuple[list[int], States]:
    """The same by way of the parts."""
    parts = [whole(aggregate, [row for row in rows if row[3] == part], kind) for part in (2, 0, 1)]
    keys = ints([key for found, _ in parts for key in found])
    groups = group_rows([keys])
    states = [pa.concat_arrays(list(state)) for state in zip(*(states for _, states in parts), strict=True)]
    return keys[groups.firsts].tolist(), aggregate.reduce(states, groups)


def results(aggregate: AggregateFunction, found: tuple[list[int], States]) -> dict[int, Any]:
    keys, states = found
    return dict(zip(keys, same(aggregate.result(states).to_pylist()), strict=True))


def mean(values: list[Any]) -> float | None:
    return sum(values) / len(values) if values else None


def variance(values: list[Any]) -> float | None:
    middle = mean(values)
    if middle is None or len(values) < 2:
        return None
    return float(sum((value - middle) ** 2 for value in values) / (len(values) - 1))


def median(values: list[Any], q: float = 0.5) -> float | None:
    ordered = sorted(values, key=rank)
    if not ordered:
        return None
    place = q * (len(ordered) - 1)
    low, high = ordered[math.floor(place)], ordered[math.ceil(place)]
    return float(low if low == high else (math.ceil(place) - place) * low + (place - math.floor(place)) * high)


def values_of(events: list[Event]) -> list[Any]:
    return [value for _, value in events if value is not None]


def in_order(events: list[Event]) -> list[Any]:
    return [value for _, value in sorted(events, key=lambda event: (event[0], rank(event[1])))]


def joined(values: list[Any]) -> str:
    return " ".join(str(value) for value in values)


def add_value(state: tuple[int, float], value: float | None) -> tuple[int, float]:
    return (state[0] + 1, state[1] + (value or 0))


counted_sum = Custom(
    "x",
    zero=lambda: (0, 0),
    add=add_value,
    merge=lambda left, right: (left[0] + right[0], left[1] + right[1]),
    finish=lambda state: state[1] * state[0],
    returns=pa.float64(),
)
typed_sum = Custom(
    "x",
    zero=lambda: {"n": 0, "total": 0.0},
    add=lambda state, value: {"n": state["n"] + 1, "total": state["total"] + (value or 0)},
    merge=lambda left, right: {name: left[name] + right[name] for name in left},
    finish=lambda state: state["total"] * state["n"],
    returns=pa.float64(),
    state=pa.struct([("n", pa.int64()), ("total", pa.float64())]),
    named="typed",
)
in_time_order = Custom("x", list, lambda state, value: [*state, value], None, joined, pa.string(), named="joined")
joined_window = WindowFunction(["x"], lambda rows: joined(rows.column("x").to_pylist()), pa.string(), named="joined")

ORDERED = list(VALUES)
Twin = Callable[[list[Event]], Any]
TWINS: list[tuple[AggregateFunction, list[pa.DataType], Twin]] = [
    (Count(), ORDERED, len),
    (Count("x"), ORDERED, lambda events: len(values_of(events))),
    (Sum("x"), NUMBERS, lambda events: sum(values_of(events)) if values_of(events) else None),
    (Mean("x"), NUMBERS, lambda events: mean(values_of(events))),
    (Variance("x"), NUMBERS, lambda events: variance(values_of(events))),
    (Stddev("x"), NUMBERS, lambda events: None if (v := variance(values_of(events))) is None else math.sqrt(v)),
    (Min("x"), ORDERED, lambda events: min(values_of(events), key=rank, default=None)),
    (Max("x"), ORDERED, lambda events: max(values_of(events), key=rank, default=None)),
    (First("x"), ORDERED, lambda events: in_order(events)[0]),
    (Last("x"), ORDERED, lambda events: in_order(events)[-1]),
    (CountDistinct("x"), ORDERED, lambda events: len(distinct(values_of(events)))),
    (Quantile("x"), NUMBERS, lambda events: median(values_of(events))),
    (Quantile("x", 0.9), NUMBERS, lambda events: median(values_of(events), 0.9)),
    (TopK("x", 2), ORDERED, lambda events: most_frequent(values_of(events))),
    (counted_sum, [pa.int64()], lambda events: sum(values_of(events)) * len(events)),
    (typed_sum, [pa.int64()], lambda events: sum(values_of(events)) * len(events)),
    (in_time_order, ORDERED, lambda events: joined(in_order(events))),
    (joined_window, ORDERED, lambda events: joined(in_order(events))),
]
IDS = [f"{aggregate.name}-{number}" for number, (aggregate, _, _) in enumerate(TWINS)]


def expect(found: dict[int, Any], wanted: dict[int, Any], aggregate: AggregateFunction) -> None:
    """The same, up to rounding where the mean of a part cannot be exact."""
    if isinstance(aggregate, Variance):
        wanted = {key: pytest.approx(value) if isinstance(value, float) else value for key, value in wanted.items()}
    assert found == wanted


def input_type(aggregate: AggregateFunction, kind: pa.DataType) -> pa.DataType:
    return aggregate.input_type(pa.schema([("x", kind)]))


@pytest.mark.parametrize(("aggregate", "kinds", "twin"), TWINS, ids=IDS)
@settings(max_examples=40)
@given(data=st.data())
def test_aggregate_is_what_its_twin_says(
    aggregate: AggregateFunction, kinds: list[pa.DataType], twin: Twin, data: st.DataObject
) -> None:
    kind = data.draw(st.sampled_from(kinds))
    rows = data.draw(rows_of(kind))
    wanted = {key: same(twin([row[1:3] for row in rows if row[0] == key])) for key in sorted({row[0] for row in rows})}
    keys, states = whole(aggregate, rows, kind)
    expect(results(aggregate, (keys, states)), wanted, aggregate)
    if aggregate.column is not None:
        taken = input_type(aggregate, kind)
        assert [state.type for state in states] == aggregate.state_types(taken)
        assert aggregate.result(states).type == aggregate.result_type(taken)


@pytest.mark.parametrize(("aggregate", "kinds"), [twin[:2] for twin in TWINS if twin[0].mergeable])
@settings(max_examples=40)
@given(data=st.data())
def test_parts_merge_into_the_whole(
    aggregate: AggregateFunction, kinds: list[pa.DataType], data: st.DataObject
) -> None:
    kind = data.draw(st.sampled_from(kinds))
    rows = data.draw(rows_of(kind))
    keys, states = whole(aggregate, rows, kind)
    merged = in_parts(aggregate, rows, kind)
    expect(results(aggregate, merged), results(aggregate, (keys, states)), aggregate)
    again = aggregate.reduce(states, group_rows([np.arange(len(keys))]))
    expect(results(aggregate, (keys, again)), results(aggregate, (keys, states)), aggregate)
    if not isinstance(aggregate, (Variance, Quantile, WindowFunction)):
        wanted = [same(state.to_pylist()) for state in states]
        assert [same(state.to_pylist()) for state in merged[1]] == wanted
        assert [same(state.to_pylist()) for state in again] == wanted


@pytest.mark.parametrize("aggregate", [twin[0] for twin in TWINS], ids=IDS)
def test_nothing_gives_nothing(aggregate: AggregateFunction) -> None:
    keys, states = whole(aggregate, [], pa.int64())
    assert keys == []
    assert len(aggregate.result(states)) == 0
    assert [len(state) for state in aggregate.reduce(states, group_rows([ints([])]))] == [0] * len(states)


def of_one_group(aggregate: AggregateFunction, values: Sequence[Any], kind: pa.DataType) -> Any:
    return results(aggregate, whole(aggregate, [(0, ts, value, 0) for ts, value in enumerate(values)], kind))[0]


def test_nulls_and_nans_count_as_in_spark() -> None:
    nothing: list[Any] = [None, None]
    for aggregate in (Sum("x"), Mean("x"), Variance("x"), Min("x"), Max("x"), First("x"), Last("x"), Quantile("x")):
        assert of_one_group(aggregate, nothing, pa.float64()) is None
    assert of_one_group(Count("x"), nothing, pa.float64()) == 0
    assert of_one_group(CountDistinct("x"), nothing, pa.float64()) == 0
    assert of_one_group(TopK("x"), nothing, pa.float64()) == []
    assert of_one_group(Max("x"), [1.0, NAN, None], pa.float64()) == "NaN"
    assert of_one_group(Min("x"), [NAN, 1.0, None], pa.float64()) == 1.0
    assert of_one_group(Min("x"), [NAN, None], pa.float64()) == "NaN"
    assert of_one_group(Variance("x"), [1.0, None], pa.float64()) is None
    assert of_one_group(First("x"), [None, 1.0], pa.float64()) is None
    assert of_one_group(CountDistinct("x"), [0.0, -0.0, NAN, -NAN, None], pa.float64()) == 2
    assert of_one_group(Quantile("x", 1), [1.0, math.inf, math.inf], pa.float64()) == math.inf


@pytest.mark.parametrize("zeros", [[0.0, -0.0], [-0.0, 0.0], [-0.0, -0.0]])
def test_a_quantile_has_one_zero_in_whatever_order_they_came(zeros: list[float]) -> None:
    found = of_one_group(Quantile("x", 0.0), zeros, pa.float64())
    assert math.copysign(1.0, found) == 1.0


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()])
@pytest.mark.parametrize("values", [[0.0, -0.0], [-0.0, 0.0], [None, -0.0, 0.0, NAN, -0.0], [0.0, None, 0.0, -0.0]])
def test_the_smallest_and_the_largest_zero_do_not_depend_on_the_order(values: list[Any], kind: pa.DataType) -> None:
    rows = [(0, ts, value, ts % 3) for ts, value in enumerate(value for value in values if value is None or value == 0)]
    for make in (whole, in_parts):
        assert str(results(Min("x"), make(Min("x"), rows, kind))) == "{0: -0.0}"
        assert str(results(Max("x"), make(Max("x"), rows, kind))) == "{0: 0.0}"
    assert str(of_one_group(Min("x"), values, kind)) == "-0.0"
    assert str(of_one_group(Max("x"), [-1.0, -0.0, None], kind)) == "-0.0"


def test_huge_values_have_an_infinite_variance_without_a_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert of_one_group(Variance("x"), [1e200, -1e200], pa.float64()) == math.inf
        assert of_one_group(Variance("x"), [math.inf, 1.0], pa.float64()) == "NaN"


def test_ties_of_first_and_last_go_by_value() -> None:
    rows = [(0, 5, value, 0) for value in ("b", "a", "c")]
    assert results(First("x"), whole(First("x"), rows, pa.string())) == {0: "a"}
    assert results(Last("x"), whole(Last("x"), rows, pa.string())) == {0: "c"}


def test_top_k_keeps_what_is_rare_in_each_part() -> None:
    rows = [(0, 0, value, part) for part, values in enumerate(["aab", "ccb", "ddb"]) for value in values]
    assert results(TopK("x", 1), in_parts(TopK("x", 1), rows, pa.string())) == {0: [{"value": "b", "count": 3}]}


@given(
    lists=st.lists(st.none() | st.lists(st.none() | letters, max_size=3), max_size=12),
    skip=st.integers(0, 3),
    data=st.data(),
)
def test_lists_of_a_group_are_joined_in_order(lists: list[list[str] | None], skip: int, data: st.DataObject) -> None:
    chosen = pa.array(lists, pa.list_(pa.string())).slice(skip)
    keys = data.draw(st.lists(st.integers(0, 2), min_size=len(chosen), max_size=len(chosen)))
    groups = group_rows([ints(keys)])
    wanted: dict[int, list[str]] = {key: [] for key in sorted(set(keys))}
    for key, values in zip(keys, lists[skip:], strict=True):
        wanted[key] += values or []
    assert join_lists(chosen, groups).to_pylist() == list(wanted.values())


def test_errors_of_the_users_functions_surface() -> None:
    def fail(*_: object) -> int:
        raise ZeroDivisionError("mine")

    good: dict[str, Any] = {"zero": int, "add": max, "merge": max, "finish": int, "returns": pa.int64()}
    rows = [(0, 0, 1, 0), (0, 0, 2, 1)]
    for name in ("zero", "add", "merge", "finish"):
        custom = Custom("x", **{**good, name: fail})
        with pytest.raises(ZeroDivisionError, match=r"^mine$"):
            results(custom, in_parts(custom, rows, pa.int64()))
    function = WindowFunction(["x"], fail, pa.int64(), named="mine")
    with pytest.raises(ZeroDivisionError, match=r"^mine$"):
        results(function, whole(function, rows, pa.int64()))


def test_a_typed_state_is_arrow_and_never_unpickled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pickle.loads", None)
    rows = [(0, 0, 3, 0), (0, 1, 4, 1), (1, 0, None, 1)]
    assert results(typed_sum, in_parts(typed_sum, rows, pa.int64())) == {0: 14.0, 1: 0.0}
    assert typed_sum.state_types(pa.int64()) == [typed_sum.state]
    assert typed_sum.describe()["state"] == "struct<n: int64, total: double>"
    assert "state" not in counted_sum.describe()
    wrong = Custom("x", list, lambda state, value: [*state, value], None, len, pa.int64(), state=pa.int64(), named="y")
    with pytest.raises(InputError, match=r"state of y must give values of type int64.*change it, or state="):
        whole(wrong, rows, pa.int64())
    with pytest.raises(InputError, match="state must be an Arrow type; got 'bigint'"):
        Custom("x", int, max, max, int, pa.int64(), state="bigint")


@pytest.mark.parametrize("cuts", [[], [2], [1, 3, 5]], ids=len)
def test_a_state_of_text_goes_through_windows_however_they_are_cut(cuts: list[int]) -> None:
    def both(one: str, other: str | None) -> str:
        return "".join(sorted(one + (other or "")))

    letters_of = Custom("x", str, both, both, str.upper, pa.string(), state=pa.string(), named="letters")
    operator = WindowAggregation(Window("4 us", "2 us"), (letters_of,))
    store, found = ChunkStore(), {}
    for start, stop in zip([-1, *cuts], [*cuts, FOREVER_US], strict=True):
        piece = [ts for ts in range(8) if start < ts <= stop]
        rows = pa.RecordBatch.from_pydict({"ts": pa.array(piece, pa.int64()), "x": ["hgfedcba"[ts] for ts in piece]})
        store = ChunkStore.restore(store.snapshot())
        given_rows = operator.build(store, Layout("ts")).push(rows if piece else None, Clocks.both(stop)).rows
        found.update(
            {} if given_rows is None else {row["window_start"]: row["letters"] for row in given_rows.to_pylist()}
        )
    assert found == {-2: "GH", 0: "EFGH", 2: "CDEF", 4: "ABCD", 6: "AB"}


def test_custom_without_merge_cannot_be_merged() -> None:
    assert not in_time_order.mergeable
    with pytest.raises(InputError, match="joined must have a merge"):
        in_parts(in_time_order, [(0, 0, 1, 0), (0, 0, 2, 1)], pa.int64())


def test_window_function_sees_its_columns_in_order_of_time() -> None:
    function = WindowFunction(["b", "a"], lambda rows: pa.scalar(str(rows.to_pydict())), pa.string(), named="seen")
    values = pa.StructArray.from_arrays([pa.array(["y", "x", "z"]), pa.array([2, 2, None])], names=["b", "a"])
    groups = group_rows([ints([0, 0, 0])])
    states = function.partial(values, ints([7, 7, 1]), groups)
    assert function.result(states).to_pylist() == ["{'b': ['z', 'x', 'y'], 'a': [None, 2, 2]}"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Quantile("x", 1.5), "q must be a number from 0 to 1; got 1.5"),
        (lambda: Quantile("x", NAN), "q must be a number"),
        (lambda: TopK("x", 0), "k must be a whole number from 1 on; got 0"),
        (lambda: TopK("x", True), "k must be a whole number"),
        (lambda: WindowFunction("x", len, pa.int64(), named="n"), "columns of window_function must be a list"),
        (lambda: WindowFunction(["x"], len, "int", named="n"), "returns must be an Arrow type"),
        (lambda: WindowFunction(["x"], len, pa.int64()), "window_function must be given a name"),
        (lambda: check_aggregates([Quantile("s")], SCHEMA, []), r"quantile\(s\) must be of a number type"),
        (
            lambda: check_aggregates([CountDistinct("n")], SCHEMA, []),
            r"count_distinct\(n\) must be of a type",
        ),
        (lambda: check_aggregates([TopK("t")], SCHEMA, []), "column of top_k must be one of s, n"),
        (
            lambda: check_aggregates([WindowFunction(["s", "t"], len, pa.int64(), named="l")], SCHEMA, []),
            "columns of window_function must be some of s, n; got 't'",
        ),
    ],
)
def test_what_cannot_be_computed_is_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()
