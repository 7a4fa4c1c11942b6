"""What reviews of optimistic processing found, and small known cases."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest

import latecomer as lc
from latecomer.events import EVENT_CHANGE, TICK, EventBatch, Layout
from latecomer.optimistic import Optimistic
from latecomer.outputs import Lane, Output, changes_of, consolidate
from latecomer.runner import Between, Runner
from latecomer.testing import check_machine
from latecomer.windows import (
    Fold,
    Group,
    KeyStep,
    Lag,
    Mapped,
    MovingAverage,
    RowNumber,
    RunningCount,
    RunningSum,
    Scan,
)

LAYOUT = Layout("ts", ("key",))
Row = tuple[Any, ...]  # ts, n, tick, and where there are retractions the change


def pushed(step: KeyStep, batches: Sequence[Sequence[Row]], kind: pa.DataType | None = None) -> list[dict[str, Any]]:
    """What stands after micro-batches of rows of one key, in order of time."""
    runner = Runner(Optimistic(step, "1 s"), LAYOUT, between=Between.RESTORE)
    outputs = []
    for rows in batches:
        columns = {
            "ts": pa.array([row[0] for row in rows], pa.int64()),
            "key": pa.array(["a"] * len(rows)),
            "n": pa.array([row[1] for row in rows], kind or pa.float64()),
            TICK: pa.array([row[2] for row in rows], pa.int64()),
            EVENT_CHANGE: pa.array([(*row, 1)[3] for row in rows], pa.int8()),
        }
        outputs += runner.push(EventBatch(pa.RecordBatch.from_pydict(columns), LAYOUT)).outputs
    table = consolidate(outputs)
    return [] if table is None else table.sort_by("ts").to_pylist()


def test_a_sum_beyond_64_bits_stops_the_query_also_when_it_is_compiled() -> None:
    for sign in (1, -1):
        with pytest.raises(lc.InputError, match="stay within 64 bits"):
            pushed(Scan(RunningSum("n")), [[(1, sign * 2**62, 1), (2, sign * 2**62, 1), (3, sign, 1)]], pa.int64())
    fits = pushed(Scan(RunningSum("n")), [[(1, 2**62, 1), (2, 2**62 - 1, 1), (3, -(2**62), 1)]], pa.int64())
    assert [row["running_sum_n"] for row in fits] == [2**62, 2**63 - 1, 2**62 - 1]


def test_equal_rows_stay_in_order_when_their_chunk_is_written_again() -> None:
    batches: list[list[Row]] = [
        [(10, 1.0, 1), *([(20, 5.0, 1)] * 4), (30, 7.0, 1)],
        [(5, 100.0, 2)],
        [(7, 200.0, 3)],
        [(15, 1000.0, 4)],
    ]
    with patch("latecomer.optimistic.history.CHUNK_BYTES", 200):
        found = pushed(Scan(Lag("n", 2)), batches)
    lagged = [row["lag_n"] for row in found if row["ts"] != 20]
    assert lagged == [None, None, 100.0, 200.0, 5.0]
    assert sorted(row["lag_n"] for row in found if row["ts"] == 20) == [1.0, 5.0, 5.0, 1000.0]


def test_a_retraction_takes_back_its_own_zero() -> None:
    found = pushed(Scan(RowNumber()), [[(10, 0.0, 1), (10, -0.0, 2)], [(10, 0.0, 3, -1)]])
    assert [math.copysign(1.0, row["n"]) for row in found] == [-1.0]


def adds(state: float, row: Any) -> tuple[float, list[tuple[float]]]:
    return state + row.n, [(state + row.n,)]


TOTAL = pa.schema([("total", pa.float64())])


@pytest.mark.parametrize("kind", [pa.int64(), pa.float32()])
def test_a_state_that_its_type_does_not_keep_is_refused(kind: pa.DataType) -> None:
    fold = Fold(adds, 0, state=kind, returns=TOTAL)
    with pytest.raises(lc.InputError, match="state of fold adds must be kept as it is by its type"):
        pushed(fold, [[(10, 0.1, 1), (20, 0.2, 1)]])


@pytest.mark.parametrize(
    ("initial", "kind"), [({}, pa.struct([("n", pa.int64())])), ((1,), pa.list_(pa.int64())), ("x", pa.int64())]
)
def test_an_initial_state_that_its_type_does_not_keep_is_refused(initial: Any, kind: pa.DataType) -> None:
    with pytest.raises(lc.InputError, match="state of fold adds must be kept"):
        Fold(adds, initial, state=kind, returns=TOTAL)


def test_an_output_is_not_cut_to_a_whole_number() -> None:
    fold = Fold(adds, 0.0, state=pa.float64(), returns=pa.schema([("total", pa.int64())]))
    with pytest.raises(lc.InputError, match="return values of the types that it says it returns"):
        pushed(fold, [[(10, 0.5, 1)]])


def fussy(state: list[float], row: Any) -> tuple[list[float], list[tuple[float]]]:
    state.append(row.n)
    if row.n < 0:
        raise ValueError("negative")
    return state, [(sum(state),)]


def test_rows_for_which_a_fold_raises_leave_no_trace_however_many_there_are() -> None:
    rows = [(number, 1.0 if number % 3 == 0 else -1.0, 1) for number in range(3_000)]
    found = pushed(Fold(fussy, [], state=pa.list_(pa.float64()), returns=TOTAL), [rows])
    assert [row["total"] for row in found] == [float(number) for number in range(1, 1_001)]


def positive(state: float, row: Any) -> tuple[float, list[tuple[float]]]:
    if row.n < 0:
        raise ValueError("negative")
    return state + row.n, [(state + row.n,)]


@pytest.mark.parametrize("forget", [None, "50 us"])
@pytest.mark.parametrize(
    ("step", "value"),
    [
        (Fold(positive, 0.0, state=pa.float64(), returns=TOTAL), -1.0),
        (Fold(positive, 0.0, state=pa.float64(), returns=TOTAL), 0.0),
        (Scan(RunningCount("n")), None),
    ],
)
def test_a_row_before_which_the_state_is_still_the_first_one_is_not_recomputed(
    step: KeyStep, value: float | None, forget: str | None
) -> None:
    runner = Runner(Optimistic(step, "1 s", forget_after=forget), LAYOUT, between=Between.RESTORE)
    recomputed = []
    for tick, ts_us in enumerate((100, 90, 20)):
        columns = {"ts": [ts_us], "key": ["a"], "n": pa.array([value], pa.float64()), TICK: [tick]}
        recomputed.append(runner.push(EventBatch(pa.RecordBatch.from_pydict(columns), LAYOUT)).counters["recomputed"])
    assert recomputed == [0, 0, 0]


def clocked() -> Fold:
    """A fold that gives something else each time that it is asked."""
    clock = itertools.count()
    return Fold(lambda state, row: (state, [(float(next(clock)),)]), 0.0, state=pa.float64(), returns=TOTAL)


def lucky() -> Fold:
    """A fold that raises in every third call."""
    clock = itertools.count(1)

    def step(state: float, row: Any) -> tuple[float, list[tuple[float]]]:
        if next(clock) % 3 == 0:
            raise ValueError("no luck")
        return state, [(0.0,)]

    return Fold(step, 0.0, state=pa.float64(), returns=TOTAL)


def shaky() -> KeyStep:
    """A map that gives something else each time that it is asked."""
    clock = itertools.count()
    return Mapped(Scan(RunningSum("n")), lambda row: [(float(next(clock)),)], TOTAL)


@pytest.mark.parametrize("make", [clocked, lucky, shaky])
def test_a_function_that_gives_something_else_for_the_same_is_named_with_the_key(make: Any) -> None:
    message = "must give the same outputs for the same state and row; got 'others for key a at 10'"
    with pytest.raises(lc.InputError, match=message):
        pushed(make(), [[(10, 1.0, 1), (20, 1.0, 1)], [(5, 1.0, 2)]])


def test_what_becomes_final_is_what_was_given() -> None:
    runner = Runner(Optimistic(clocked(), "1 ms", barrier=True), LAYOUT)
    for tick, ts_us in enumerate((10, 20, 5_000)):
        columns = {"ts": [ts_us], "key": ["a"], "n": [1.0], TICK: [tick]}
        batch = EventBatch(pa.RecordBatch.from_pydict(columns), LAYOUT)
        if ts_us < 5_000:
            runner.push(batch)
            continue
        with pytest.raises(lc.InputError, match="step <lambda> must give the same outputs for the same state and row"):
            runner.push(batch)


def test_long_numbers_have_a_mean() -> None:
    found = pushed(Scan(MovingAverage("n", 2)), [[(1, 2**60 + 1, 1), (2, 2**60 + 1, 1)]], pa.int64())
    assert [row["moving_average_n"] for row in found] == [float(2**60)] * 2


def test_void_rows_come_before_new_ones_and_are_marked() -> None:
    runner = Runner(Optimistic(Scan(RunningSum("n")), "1 s"), LAYOUT)
    for tick, ts in ((1, [10, 30]), (2, [20])):
        columns = {"ts": ts, "key": ["a"] * len(ts), "n": [1.0] * len(ts), TICK: [tick] * len(ts)}
        outputs = runner.push(EventBatch(pa.RecordBatch.from_pydict(columns), LAYOUT)).outputs
    results = [output.rows for output in outputs if output.lane is Lane.RESULTS]
    assert [changes_of(rows).tolist() for rows in results] == [[-1], [1, 1]]
    assert [rows.column("pane").to_pylist() for rows in results] == [["revised"], ["early", "revised"]]


def test_the_papers_even_and_odd_sequence_in_groups_of_three() -> None:
    found = pushed(Group(3), [[(1, 1.0, 1), (3, 3.0, 1), (4, 4.0, 1)], [(2, 2.0, 2)]])
    assert [[item["n"] for item in row["group"]] for row in found] == [
        [1.0],
        [1.0, 2.0],
        [1.0, 2.0, 3.0],
        [2.0, 3.0, 4.0],
    ]


@pytest.mark.parametrize(
    ("rows", "arrivals", "expected"),
    [
        (1_000, [1, 2, 3], [[1, 2, 3]]),
        (1_000, [2, 1, 3], [[1, 2, 3]]),
        (2, [1, 2, 3], [[1, 2], [2, 3]]),
        (2, [3, 2, 1], [[1, 2], [2, 3]]),
        (3, [1, 2, 3, 4], [[1, 2, 3], [2, 3, 4]]),
        (3, [4, 3, 2, 1], [[1, 2, 3], [2, 3, 4]]),
    ],
)
def test_short_groups_are_undone_as_in_flamestreams_own_tests(
    rows: int, arrivals: list[int], expected: list[list[int]]
) -> None:
    batches = [[(each, float(each), tick)] for tick, each in enumerate(arrivals)]
    found = pushed(Group(rows, "undo"), batches)
    assert [[item["n"] for item in row["group"]] for row in found] == expected


def test_a_short_group_is_void_with_the_next_row_and_final_at_the_end() -> None:
    runner, told = Runner(Optimistic(Group(3, "undo"), "2 us", True), LAYOUT, between=Between.RESTORE), []
    for tick, ts in enumerate([10, 20, 30, 11]):
        columns = {"ts": [ts], "key": ["a" if ts < 30 else "b"], "n": [1.0], TICK: [tick]}
        told.append(groups_of(runner.push(EventBatch(pa.RecordBatch.from_pydict(columns), LAYOUT)).outputs))
    assert told == [
        [(1, 10, 1, False)],
        [(-1, 10, 1, False), (1, 20, 2, False)],
        [(1, 30, 1, False)],
        [],
    ]
    assert groups_of(runner.finish()) == [(None, 20, 2, True), (None, 30, 1, True)]


def groups_of(outputs: Sequence[Output]) -> list[tuple[int | None, int, int, bool]]:
    rows = [row for output in outputs if output.lane is Lane.RESULTS for row in output.rows.to_pylist()]
    return [(row["change"], row["ts"], len(row["group"]), row["final"]) for row in rows]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: lc.running_sum("n").alias(""), "alias must be a name"),
        (lambda: lc.exponential_average("n", True), "weight must be above 0"),
        (lambda: lc.moving_average("n", 1), "be a whole number from 2"),
        (
            lambda: Scan(lc.row_number("n")).output(pa.schema([("ts", pa.int64()), ("n", pa.int64())]), Layout("ts")),
            "no column",
        ),
        (lambda: Group(3, "some"), "partial must be 'keep', 'full' or 'undo'"),
        (lambda: Mapped(Group(3, "undo"), iter, TOTAL), "map must not follow groups that are undone"),
        (
            lambda: Optimistic(Group(3, "undo"), "1 s", goes_on=True),
            "another step must not follow groups that are undone",
        ),
        (lambda: Optimistic(Group(3, "undo"), "1 s", forget_after="1 d"), "forget_after must be left out"),
        (lambda: Optimistic(Scan(RowNumber()), "1 s", forget_after="0 s"), "forget_after must be longer than zero"),
    ],
)
def test_wrong_settings_are_named(make: Any, message: str) -> None:
    with pytest.raises(lc.InputError) as error:
        make()
    assert message in str(error.value)


@pytest.mark.parametrize("step", [Scan(RunningSum("id"), Lag("id")), Scan(MovingAverage("id", 8)), Group(6)])
@pytest.mark.parametrize(("bound", "forget"), [("30 ms", None), ("1 s", "40 ms")])
def test_the_invariants_of_a_machine_hold(step: KeyStep, bound: str, forget: str | None) -> None:
    check_machine(Optimistic(step, bound, forget is not None, forget), runs=6)


@pytest.mark.parametrize("barrier", [False, True])
def test_the_invariants_of_a_machine_hold_for_groups_that_are_undone(barrier: bool) -> None:
    check_machine(Optimistic(Group(5, "undo"), "30 ms", barrier), runs=6)


def test_a_row_is_voided_at_the_position_it_was_given_at_where_order_is_not_among_its_columns() -> None:
    layout = Layout("ts", ("k",), None, ("_lc_order0",))
    names = ("ts", "k", "n", "_lc_order0", TICK, EVENT_CHANGE)
    kinds = (pa.int64(), pa.string(), pa.int64(), pa.int64(), pa.int64(), pa.int8())
    columns = pa.schema(list(zip(names, kinds, strict=True)))
    runner = Runner(Optimistic(Scan(RunningSum("n")), "1 hour", goes_on=True), layout)
    batches = (
        [(10, "a", 1, 1, 0, 1), (10, "a", 1, 2, 0, 1)],  # equal but for their order
        [(10, "a", 1, 1, 1, -1)],  # takes the first back
        [(5, "a", 7, 9, 2, 1)],  # comes before the second
    )
    standing: list[tuple[Any, ...]] = []
    for batch in batches:
        rows = pa.RecordBatch.from_pylist([dict(zip(columns.names, row, strict=True)) for row in batch], schema=columns)
        for output in runner.push(EventBatch(rows, layout)).outputs:
            for row in output.rows.to_pylist():
                change, item = row.pop(EVENT_CHANGE), tuple(row.values())
                if change < 0:
                    standing.remove(item)  # an error where it stands elsewhere
                else:
                    standing.append(item)
    assert sorted(item[:4] for item in standing) == [(5, "a", 7, 7), (10, "a", 1, 8)]


def test_a_third_map_in_a_row_is_refused() -> None:
    returns = pa.schema([("n", pa.int64())])

    def same(row: Any) -> list[tuple[int]]:
        return [(row.n,)]

    twice = Mapped(Mapped(Scan(RunningSum("n")), same, returns), same, returns)
    with pytest.raises(lc.InputError, match=r"map must follow a step, or one other map; got 'two before same'"):
        Mapped(twice, same, returns)
