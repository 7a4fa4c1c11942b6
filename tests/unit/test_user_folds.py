"""Folds of users: what they may see, keep and return."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest

import latecomer as lc
from latecomer.events import Layout
from latecomer.windows import Fold
from latecomer.windows.key_steps import Ran, Work

LAYOUT = Layout("ts", ("key",))
TOTAL = pa.schema([("total", pa.float64())])
PAIR = pa.struct([("total", pa.float64()), ("rows", pa.int64())])


class Pair(NamedTuple):
    total: float
    rows: int


def work_of(
    fold: Fold, values: Sequence[Sequence[Any]], kind: pa.DataType | None = None, wanted: Sequence[int] = ()
) -> Work:
    """Stretches of rows with these values, from no state."""
    sizes = [len(each) for each in values]
    flat = [value for each in values for value in each]
    columns = {
        "ts": pa.array(range(len(flat)), pa.int64()),
        "key": pa.array([f"k{number}" for number, size in enumerate(sizes) for _ in range(size)]),
        "n": pa.array(flat, kind or pa.float64()),
    }
    rows = pa.RecordBatch.from_pydict(columns)
    states = fold.state(rows.schema, LAYOUT)
    none = pa.RecordBatch.from_arrays([pa.nulls(len(sizes), each.type) for each in states], schema=states)
    return Work(rows, np.append(0, np.cumsum(sizes)).astype(np.int64), none, np.array(wanted, dtype=np.int64), "ts")


def ran_on(fold: Fold, values: Sequence[Sequence[Any]], **others: Any) -> Ran:
    return fold.run(work_of(fold, values, **others), LAYOUT)


def states_of(states: pa.RecordBatch) -> list[Any]:
    return [None if each is None else each["state"] for each in states.column(0).to_pylist()]


def running(state: Any, row: Any) -> tuple[Any, list[Any]]:
    total, count = state
    return (total + row.n, count + 1), [(total + row.n,)]


def named(state: Pair, row: Any) -> tuple[Pair, list[Any]]:
    state = Pair(state.total + row.n, state.rows + 1)
    return state, [(state.total,)]


@pytest.mark.parametrize(("step", "initial"), [(running, (0, 0)), (named, Pair(0.0, 0))])
def test_a_state_may_be_a_tuple_of_the_fields_of_a_struct(step: Callable[..., Any], initial: Any) -> None:
    fold = Fold(step, initial, state=PAIR, returns=TOTAL)
    ran = ran_on(fold, [[1.0, 2.0, 3.0], [5.0]], wanted=[0, 2, 3])
    assert ran.outputs.column("total").to_pylist() == [1.0, 3.0, 6.0, 5.0]
    assert states_of(ran.before) == [
        {"total": 0.0, "rows": 0},
        {"total": 3.0, "rows": 2},
        {"total": 0.0, "rows": 0},
    ]
    assert states_of(ran.after) == [{"total": 6.0, "rows": 3}, {"total": 5.0, "rows": 1}]
    again = work_of(fold, [[1.0], [1.0]])._replace(state=ran.after)
    assert fold.run(again, LAYOUT).outputs.column("total").to_pylist() == [7.0, 6.0]


def test_a_named_tuple_is_named_as_its_struct() -> None:
    other = pa.struct([("rows", pa.float64()), ("total", pa.int64())])
    with pytest.raises(lc.InputError, match="name the fields of the struct as those of the tuple"):
        Fold(named, Pair(0.0, 0), state=other, returns=TOTAL)


@pytest.mark.parametrize("wrong", [(1.0,), None])
def test_a_tuple_of_another_length_is_refused(wrong: Any) -> None:
    fold = Fold(lambda state, row: (wrong, []), (0.0, 0), state=PAIR, returns=TOTAL)
    with pytest.raises(lc.InputError, match="return a tuple of 2 values, as the first state is one"):
        ran_on(fold, [[1.0]])


SHAPES: dict[str, Callable[[float], Any]] = {
    "tuples": lambda value: [(value,), (-value,)],
    "lists": lambda value: [[value], [-value]],
    "dicts": lambda value: [{"total": value}, {"total": -value}],
    "a tuple of tuples": lambda value: ((value,), (-value,)),
    "a generator": lambda value: (each for each in ((value,), (-value,))),
    "a tuple, then a list": lambda value: [(value,), [-value]],
    "tuples, later dicts": lambda value: [(value,), (-value,)] if value < 3 else [{"total": value}, {"total": -value}],
    "numbers of numpy": lambda value: [(np.float64(value),), (np.float32(-value),)],
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("initial", [0.0, [0.0]])
def test_outputs_may_have_any_shape(shape: str, initial: Any) -> None:
    def step(state: Any, row: Any) -> tuple[Any, Any]:
        return state, SHAPES[shape](row.n)

    kind = pa.float64() if initial == 0.0 else pa.list_(pa.float64())
    ran = ran_on(Fold(step, initial, state=kind, returns=TOTAL), [[1.0, 2.0], [3.0, 4.0]])
    found = ran.outputs.column("total").to_pylist()
    assert found == [1.0, -1.0, 2.0, -2.0, 3.0, -3.0, 4.0, -4.0]
    assert ran.owner.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert not len(ran.failed)


WRONG_OUTPUTS: dict[str, tuple[Any, str]] = {
    "too many values": ([(1.0, 2.0)], "an output must be a dict or a tuple with total"),
    "no tuple": ([1.0], "an output must be a dict or a tuple with total"),
    "another column": ([{"sum": 1.0}], "an output must have the columns total"),
    "no outputs": (5, "TypeError"),
}


@pytest.mark.parametrize("wrong", WRONG_OUTPUTS)
@pytest.mark.parametrize("at", [0, 2, 3])
def test_a_row_whose_outputs_have_no_shape_is_passed_over(wrong: str, at: int) -> None:
    outputs, reason = WRONG_OUTPUTS[wrong]

    def step(state: float, row: Any) -> tuple[float, Any]:
        return state + row.n, outputs if row.ts == at else [(state + row.n,)]

    ran = ran_on(Fold(step, 0.0, state=pa.float64(), returns=TOTAL), [[1.0, 2.0], [4.0, 8.0]])
    expected = {0: [2.0, 4.0, 12.0], 2: [1.0, 3.0, 8.0], 3: [1.0, 3.0, 4.0]}[at]
    assert ran.outputs.column("total").to_pylist() == expected
    assert ran.failed.tolist() == [at]
    assert ran.reasons[0].count(reason) == 1


def test_outputs_that_are_used_again_stand_as_they_were() -> None:
    given: list[Any] = []
    shared: dict[str, float] = {}

    def step(state: float, row: Any) -> tuple[float, Any]:
        given.clear()
        shared["total"] = row.n
        given.append((row.n,) if row.n < 3 else shared)
        return state, given

    ran = ran_on(Fold(step, 0.0, state=pa.float64(), returns=TOTAL), [[1.0], [2.0], [3.0, 4.0], [5.0]])
    assert ran.outputs.column("total").to_pylist() == [1.0, 2.0, 3.0, 4.0, 5.0]


def test_what_a_generator_raises_half_way_is_not_given() -> None:
    def step(state: float, row: Any) -> tuple[float, Iterator[Any]]:
        def halves() -> Iterator[Any]:
            yield (row.n,)
            if row.n < 0:
                raise ValueError("negative")

        return state, halves()

    ran = ran_on(Fold(step, 0.0, state=pa.float64(), returns=TOTAL), [[1.0, -1.0, 2.0]])
    assert ran.outputs.column("total").to_pylist() == [1.0, 2.0]
    assert ran.reasons == ["ValueError: negative"]


def test_a_number_of_another_kind_becomes_one_of_its_type_before_the_function_sees_it_again() -> None:
    seen = []

    def step(state: Any, row: Any) -> tuple[Any, list[Any]]:
        seen.append(state)
        return int(state) + 1, []

    ran_on(Fold(step, 0, state=pa.float64(), returns=TOTAL), [[1.0, 1.0], [1.0]])
    assert [repr(each) for each in seen] == ["0.0", "1.0", "0.0"]


def test_rows_that_a_function_changes_come_back_as_they_were() -> None:
    def step(state: list[float], row: Any) -> tuple[Any, list[Any]]:
        row.n.append(len(state))
        state.append(sum(row.n))
        if row.ts == 2:
            raise ValueError("no")
        return state, [(sum(state),)]

    fold = Fold(step, [], state=pa.list_(pa.float64()), returns=TOTAL)
    ran = ran_on(fold, [[[1.0], [2.0], [3.0], [4.0]]], kind=pa.list_(pa.float64()))
    assert ran.outputs.column("total").to_pylist() == [1.0, 4.0, 10.0]
    assert ran.failed.tolist() == [2]


def test_a_state_that_two_keys_share_is_kept_as_it_was() -> None:
    shared: list[float] = []

    def step(state: list[float], row: Any) -> tuple[Any, list[Any]]:
        shared.append(row.n)
        return shared, []

    ran = ran_on(Fold(step, [], state=pa.list_(pa.float64()), returns=TOTAL), [[1.0], [2.0]])
    assert states_of(ran.after) == [[1.0], [1.0, 2.0]]


def test_no_rows_give_nothing() -> None:
    for initial, kind in ((0.0, pa.float64()), ([], pa.list_(pa.float64()))):
        ran = ran_on(Fold(lambda state, row: (state, []), initial, state=kind, returns=TOTAL), [])
        assert (ran.outputs.num_rows, ran.before.num_rows, ran.after.num_rows) == (0, 0, 0)
