"""Folds of users that are compiled: what Python gives, bit for bit, and which are not."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest

from latecomer.events import TICK, EventBatch
from latecomer.optimistic import Optimistic
from latecomer.runner import Between, Runner
from latecomer.windows import Fold
from latecomer.windows.fold_compiler import kernels
from tests.compiled_folds import LAYOUT, Both, compiling, function_of, outcome, work_of

MOST = 2**63 - 1
NUMBER = pa.schema([("value", pa.float64())])
WHOLE = pa.schema([("value", pa.int64())])
INTS = [0, 1, -1, 2, -2, 3, -3, 7, 10, -10, 2**31, 2**53, 2**53 + 1, -(2**53) - 1, 3037000500, MOST, -MOST, -MOST - 1]
FLOATS = [0.0, -0.0, 1.0, -1.0, 0.1, 2.5, -7.25, 5e-324, 1e308, -1e308, 2.0**53, 2.0**63, math.inf, -math.inf, math.nan]


def step_of(body: str, **names: Any) -> Callable[..., Any]:
    return function_of("def step(state, row):\n" + "".join(f"    {line}\n" for line in body.splitlines()), **names)


OPERATIONS = [
    "i + j, [(i - j, x + y, x < y)]",
    "i * j, [(i, x * y, i < x)]",
    "i // j, [(i % j, x - y, i == x)]",
    "i, [(int(x), i / j, x <= j)]",
    "i & j, [(i | j, x / y, i != j)]",
    "i ^ j, [(0, x // y, x == y)]",
    "-i, [(abs(j), x % y, not x)]",
    "min(i, j), [(max(i, j, 3), max(x, y), 1 < i <= j)]",
    "i, [(math.floor(x), min(x, i), x > y or i > j)]",
    "i, [(math.ceil(y), math.sqrt(abs(x)), math.isnan(x) and math.isinf(y))]",
    "i, [(i if x else j, i if i > j else x, bool(y))]",
    "i, [((x > y) + i, -x, math.isfinite(x))]",
    "i, [(+i, i + x, x >= i)]",
    "i, [(i, max(i, x) - j, i in (1, -2))]",
    "i, [(i, max(0, x) * y, True)]",
    "i, [(i, float(i), x != j)]",
]
# whole numbers that leave 64 bits on the way
GROWN = [
    "0, [(0, 0.0, i + j > 5)]",
    "0, [(0, 0.0, i - j > 5)]",
    "0, [(0, float(i * j), i * j > 5)]",
    "0, [(0, 0.0, -i > j)]",
    "0, [(0, abs(i) / 3, abs(i) > j)]",
    "0, [((i + j) - j, i * j / 7, (i * j) // 3 > 5)]",
]


def chosen_of(results: list[str]) -> Callable[..., Any]:
    """A function that returns one of these, by the row."""
    lines = ["i, j, x, y = row.i, row.j, row.x, row.y"]
    for number, result in enumerate(results):
        lines.append(f"if row.op == {number}:\n        return {result}")
    return step_of("\n".join([*lines, "raise ValueError(row.op)"]), math=math)


class OneRow(NamedTuple):
    op: int
    i: int
    j: int
    x: float
    y: float


THREE = pa.schema([("whole", pa.int64()), ("number", pa.float64()), ("flag", pa.bool_())])


def fits(step: Callable[..., Any], row: Any) -> bool:
    """Whether what a function gives for a row can be kept, or it raises."""
    try:
        state, outputs = step(0, row)
    except (ArithmeticError, ValueError):
        return True
    numbers = [state, outputs[0][0], outputs[0][1] if type(outputs[0][1]) is int else 0]
    return all(-MOST - 1 <= each <= MOST for each in numbers) and abs(numbers[2]) <= 2**53


@pytest.mark.parametrize("results", [OPERATIONS, GROWN])
def test_every_operator_gives_what_python_gives(results: list[str]) -> None:
    step = chosen_of(results)
    floats = [FLOATS[place % len(FLOATS)] for place in range(len(INTS))]
    places = [(op, a, b) for op in range(len(results)) for a in range(len(INTS)) for b in range(len(INTS))]
    every = [OneRow(op, INTS[a], INTS[b], floats[a], floats[b]) for op, a, b in places]
    rows = [row for row in every if fits(step, row)]
    columns = {name: pa.array([getattr(row, name) for row in rows]) for name in OneRow._fields}
    fold = Fold(step, 0, state=pa.int64(), returns=THREE)
    both, size = Both(fold), len(rows)
    assert size > 0.8 * len(every)
    _, _, (owner, failed, _) = both.same(work_of(fold, columns, [1] * size, range(0, size, 3)))
    assert both.calls == 1
    assert both.left < size / 2
    assert len(owner) == size - len(failed)


class Balance(NamedTuple):
    cents: int
    refused: int


class Debounce(NamedTuple):
    on: bool
    same: int


LIMIT, ALPHA = -500, 0.3


def ewma(state: float | None, row: Any) -> tuple[float, list[Any]]:
    """An exponential average that begins with the first number."""
    average = row.x if state is None else ALPHA * row.x + (1 - ALPHA) * state
    return average, [(average,)]


def balance(state: Balance, row: Any) -> tuple[Balance, list[Any]]:
    """A running balance that does not go below a limit."""
    after = state.cents + row.i
    if after < LIMIT:
        return state._replace(refused=state.refused + 1), []
    return Balance(after, state.refused), [{"value": after}]


def debounce(state: Debounce, row: Any) -> tuple[Any, list[Any]]:
    """A switch that changes when three rows in a row say so."""
    if row.f == state.on:
        return (state.on, 0), []
    if state.same + 1 < 3:
        return (state.on, state.same + 1), []
    return (row.f, 0), [(1 if row.f else 0,)]


def counter(state: tuple[Any, int], row: Any) -> tuple[Any, list[Any]]:
    """What a counter has counted, which starts anew at times."""
    last, total = state
    if last is not None:
        total += row.i - last if row.i >= last else row.i
    return (row.i, total), [(total,)]


def bucket(state: float, row: Any) -> tuple[float, list[Any]]:
    """Tokens that come back, of which a row takes one; rows of a kind start anew."""
    tokens = min(10, state + 0.5)
    out = []
    if row.k == "reset":
        tokens = 10
    if tokens < 1:
        out.append((tokens,))
        raise ValueError("no tokens")
    if row.x is not None and row.x > 1:
        out.append((row.x,))
    return tokens - 1, out


KNOWN: dict[str, tuple[Any, Any, pa.DataType, pa.Schema]] = {
    "ewma": (ewma, None, pa.float64(), NUMBER),
    "balance": (balance, Balance(0, 0), pa.struct([("cents", pa.int64()), ("refused", pa.int32())]), WHOLE),
    "debounce": (debounce, Debounce(False, 0), pa.struct([("on", pa.bool_()), ("same", pa.int8())]), WHOLE),
    "counter": (counter, (None, 0), pa.struct([("last", pa.int64()), ("total", pa.int64())]), WHOLE),
    "bucket": (bucket, 10, pa.float64(), NUMBER),
}


def random_columns(rng: np.random.Generator, size: int, *, wild: bool) -> dict[str, pa.Array]:
    """Plain numbers, or with a few that are not."""
    ints, floats = rng.integers(-300, 400, size), rng.normal(size=size)
    if wild:
        some = rng.random(size) < 0.02
        ints, floats = np.where(some, rng.choice(INTS, size), ints), np.where(some, rng.choice(FLOATS, size), floats)
    return {
        "i": pa.array(ints),
        "x": pa.array(floats, mask=(rng.random(size) < 0.1) if wild else None),
        "f": pa.array(rng.random(size) < 0.5),
        "k": pa.array(rng.choice(["take", "reset"], size, p=[0.95, 0.05])),
    }


@pytest.mark.parametrize("name", KNOWN)
def test_a_well_known_fold_gives_what_python_gives(name: str) -> None:
    step, initial, state, returns = KNOWN[name]
    fold, rng = Fold(step, initial, state=state, returns=returns), np.random.default_rng(5)
    both = Both(fold)
    for wild in (False, True):
        sizes = rng.integers(1, 40, 60).tolist()
        wanted = np.flatnonzero(rng.random(sum(sizes)) < 0.3).tolist()
        first = work_of(fold, random_columns(rng, sum(sizes), wild=wild), sizes, wanted)
        both.same(first)
        with compiling(10**12):
            after = fold.run(first, LAYOUT).after
        both.same(work_of(fold, random_columns(rng, sum(sizes), wild=wild), sizes, wanted, after))
    assert both.calls == 4
    assert both.left < 120 or name == "bucket"


def test_states_and_changes_are_stored_as_the_same_bytes() -> None:
    rng, stored = np.random.default_rng(3), []
    columns = [random_columns(rng, 400, wild=True) | {"i": pa.array(rng.integers(0, 9, 400))} for _ in range(3)]
    times = [rng.integers(number * 300, number * 300 + 900, 400) for number in range(3)]
    for after in (10**12, 0):
        step, initial, state, returns = KNOWN["counter"]
        fold = Fold(step, initial, state=state, returns=returns)
        runner, found = Runner(Optimistic(fold, "1 ms", barrier=True), LAYOUT, between=Between.REBUILD), []
        with compiling(after):
            for number, each in enumerate(columns):
                keys, tick = pa.array([f"k{place % 9}" for place in range(400)]), pa.array([number + 1] * 400)
                rows = pa.RecordBatch.from_pydict({"ts": pa.array(times[number]), "key": keys, **each, TICK: tick})
                outputs = runner.push(EventBatch(rows, LAYOUT)).outputs
                found.append([(output.lane, output.rows.to_pydict()) for output in outputs])
        stored.append((repr(found), runner.machine.snapshot()))
    assert stored[0] == stored[1]


NOT_COMPILED: dict[str, str] = {
    "a text as output": "return state, [(str(row.i),)]",
    "another function": "return helper(state), [(state,)]",
    "a list": "return state + LIST[0], [(state,)]",
    "a loop": "for _ in range(2):\n    state += 1\nreturn state, [(state,)]",
    "try and except": "try:\n    state = 9 // row.i\nexcept ArithmeticError:\n    state = 0\nreturn state, [(state,)]",
    "a generator": "yield state\nyield [(state,)]",
    "a list that has two names": "out = []\nother = out\nother.append((state,))\nreturn state + 1, out",
    "two kinds of state": "return (state + 1 if row.i > 0 else True), [(state,)]",
    "a name that is not always there": "if row.i > 0:\n    more = 1\nreturn state + more, [(state,)]",
    "a global that it changes": "global TOTAL\nTOTAL += 1\nreturn TOTAL, [(state,)]",
    "a global that no row names": "if row.i is None:\n    global TOTAL\nTOTAL = 5\nreturn state, [(TOTAL,)]",
    "powers": "return state, [(row.i ** 2,)]",
    "rounding": "return round(row.x) if row.x == row.x else 0, [(state,)]",
    "a fraction as a whole number": "return row.x * 2, [(state,)]",
    "time": "return state + row.ts.hour, [(state,)]",
    "a comprehension": "return state, [(each,) for each in (1, 2)]",
    "outputs of another width": "return state, [(1, 2)]",
}


@pytest.mark.parametrize("what", NOT_COMPILED)
def test_what_cannot_be_compiled_runs_as_python(what: str) -> None:
    columns = random_columns(np.random.default_rng(1), 30, wild=False)

    def fold() -> Fold:
        step = step_of(NOT_COMPILED[what], LIST=[3], TOTAL=0, helper=lambda state: state + 2)
        return Fold(step, 0, state=pa.int64(), returns=WHOLE)

    one, other = fold(), fold()  # a function that changes a global is no other after one run
    with compiling(10**12):
        python = outcome(one, work_of(one, columns, [10, 20], [0, 15]))
    both = Both(other)
    with compiling(0), both._counting():
        assert outcome(other, work_of(other, columns, [10, 20], [0, 15])) == python
    assert both.calls == 0


def test_a_number_from_outside_is_read_when_rows_come() -> None:
    names = step_of("return state + ADDED, [(state,)]", ADDED=1)
    fold = Fold(names, 0, state=pa.int64(), returns=WHOLE)
    both, work = Both(fold), work_of(fold, random_columns(np.random.default_rng(1), 3, wild=False), [3])
    found = []
    for value in (1, 5, 2**60, "text", 2):
        names.__globals__["ADDED"] = value
        found.append(both.same(work)[2][1])
    assert both.calls == 4
    assert found == [[], [], [], [0, 1, 2], []]


def made_with(share: float) -> Callable[..., Any]:
    def scaled(state: float, row: Any) -> tuple[float, list[Any]]:
        return state * share + row.i, [(state,)]

    return scaled


def test_a_function_of_a_function_and_a_lambda_are_compiled() -> None:
    inner = Fold(made_with(0.5), 0.0, state=pa.float64(), returns=NUMBER)
    short = Fold(lambda state, row: (state + row.i, [(state,)]), 0.0, state=pa.float64(), returns=NUMBER)
    for fold in (inner, short):
        both = Both(fold)
        both.same(work_of(fold, random_columns(np.random.default_rng(1), 9, wild=False), [9]))
        assert both.calls == 1


def test_a_source_that_is_not_that_of_the_function_is_not_believed() -> None:
    step = step_of("return state + row.i, [(state,)]")
    fold = Fold(step, 0, state=pa.int64(), returns=WHOLE)
    object.__setattr__(fold, "source", "def step(state, row):\n    return state - row.i, [(state,)]\n")
    both = Both(fold)
    both.same(work_of(fold, random_columns(np.random.default_rng(1), 9, wild=False), [9]))
    assert both.calls == 0


def test_a_fold_travels_with_its_source() -> None:
    fold = Fold(counter, (None, 0), state=KNOWN["counter"][2], returns=WHOLE)
    assert pickle.loads(pickle.dumps(fold)).source == fold.source is not None


def test_a_fold_is_compiled_when_it_has_followed_many_rows() -> None:
    fold = Fold(step_of("return state + row.i, [(state + 1,)]"), 0, state=pa.int64(), returns=WHOLE)
    work, both = work_of(fold, random_columns(np.random.default_rng(1), 600, wild=False), [600]), Both(fold)
    with compiling(1500), both._counting():
        calls = [(fold.run(work, LAYOUT), both.calls)[1] for _ in range(4)]
    assert calls == [0, 0, 1, 2]


def test_explain_says_how_a_fold_runs() -> None:
    columns = pa.schema([("ts", pa.timestamp("us")), ("key", pa.string()), ("i", pa.int64())])
    for result, said in (
        ("[(state,)]", "compiled when many rows have come"),
        ("[(2 ** row.i,)]", "as Python: the operator Pow"),
    ):
        fold = Fold(step_of(f"return state + row.i, {result}"), 0, state=pa.int64(), returns=WHOLE)
        line = Optimistic(fold, "1 hour").gives(columns, LAYOUT).explained.lines[0]
        assert line.effect == f"per key, in order of {{time}}, {said}"


def test_compilation_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("latecomer._jit.COMPILED", False)
    assert not kernels.worth_a_kernel(counter, 10**9)


def test_text_that_is_none_is_the_same_error() -> None:
    fold = Fold(step_of("return state + row.i, [(state,)]"), 0, state=pa.int64(), returns=WHOLE)
    broken = pa.StringArray.from_buffers(1, pa.py_buffer(np.array([0, 2], np.int32)), pa.py_buffer(b"\xff\xfe"))
    work = work_of(fold, {"i": pa.array([1]), "name": broken}, [1])
    for after in (10**12, 0):
        with compiling(after), pytest.raises(UnicodeDecodeError):
            fold.run(work, LAYOUT)


def test_a_time_that_python_does_not_reach_is_the_same_error() -> None:
    fold = Fold(step_of("return state + row.i, [(state,)]"), 0, state=pa.int64(), returns=WHOLE)
    columns = random_columns(np.random.default_rng(1), 3, wild=False)
    columns["far"] = pa.array([0, 1, 2**62], pa.timestamp("us"))
    work = work_of(fold, columns, [3])
    for after in (10**12, 0):
        with compiling(after), pytest.raises((OverflowError, ValueError)):
            fold.run(work, LAYOUT)
