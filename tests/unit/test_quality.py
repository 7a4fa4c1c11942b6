"""The classes of results, each by hand, and how soon results are right."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from latecomer.errors import InputError
from latecomer.events import FOREVER_US as NEVER
from latecomer.events import NEVER_US, Layout
from latecomer.outputs import consolidate
from latecomer.quality import (
    MARK,
    Classes,
    ResultColumns,
    classify,
    exact_marks,
    exact_rows,
    latest_marks,
    logical_latencies,
    percentiles,
    responsiveness,
)
from latecomer.testing import LAYOUT, random_stream, run_machine
from latecomer.tiers import Ordered
from latecomer.windows import Count, Max, Window, WindowAggregation

COLUMNS = ResultColumns("ts", ("key",))
NOTHING = Classes(0, 0, 0, 0, 0, 0, 0)
TRUTH = [(1, "a"), (2, "b")]


def results(*rows: tuple[Any, ...]) -> pa.Table:
    """Results of one key: time, value and, where it is none, a change; each ten microseconds of the mark later."""
    filled = [(*row, 1)[:3] for row in rows]
    ts_us, values, changes = zip(*filled, strict=True) if filled else ((), (), ())
    return pa.table(
        {
            "ts": pa.array(ts_us, pa.int64()),
            "key": pa.array([7] * len(filled), pa.int64()),
            "value": pa.array(values, pa.string()),
            "change": pa.array(changes, pa.int8()),
            MARK: pa.array(np.arange(len(filled)) * 10),
        }
    )


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([(1, "a"), (2, "b")], {"exact": 2}),
        ([(2, "b"), (1, "a")], {"exact": 2}),
        ([(1, "a")], {"exact": 1, "omitted": 1}),
        ([], {"omitted": 2}),
        ([(1, "a"), (2, "x")], {"exact": 1, "different": 1, "different_left": 1}),
        ([(1, "a"), (2, "x"), (2, "b")], {"exact": 2, "different": 1}),
        ([(1, "a"), (2, "b"), (2, "x")], {"exact": 2, "different": 1, "different_left": 1}),
        ([(1, "a"), (2, "b"), (2, "b")], {"exact": 2, "duplicate": 1}),
        ([(1, "a"), (2, "b"), (2, "x"), (2, "b")], {"exact": 2, "different": 1, "duplicate": 1}),
        ([(1, "a"), (2, "b"), (9, "z")], {"exact": 2, "spurious": 1, "spurious_left": 1}),
        ([(1, "a"), (2, "b"), (9, "z"), (9, "y")], {"exact": 2, "spurious": 2, "spurious_left": 1}),
        ([(1, "a"), (2, "b"), (9, "z"), (9, "z", -1)], {"exact": 2, "spurious": 1}),
        ([(1, "a"), (2, "b"), (2, "b", -1)], {"exact": 2, "omitted": 1}),
        ([(1, "a"), (2, "x"), (2, "x", -1), (2, "b")], {"exact": 2, "different": 1}),
        ([(1, "a"), (2, "x"), (2, "b"), (2, "x", -1)], {"exact": 2, "different": 1}),  # voided after its successor
        ([(1, "a"), (2, "b"), (2, "b", -1), (2, "b")], {"exact": 2, "duplicate": 1}),
        ([(1, "a"), (2, "b", 0)], {"exact": 2}),  # of a tier that agrees with the one before
    ],
)
def test_every_result_has_one_class(given: list[tuple[Any, ...]], expected: dict[str, int]) -> None:
    found = classify(results(*given), results(*TRUTH), COLUMNS)
    assert found == NOTHING._replace(**expected)
    assert found.exact + found.different + found.duplicate + found.spurious == sum(row[2:] != (-1,) for row in given)


def test_tables_without_changes_are_results_only() -> None:
    given = results((1, "a"), (2, "x"), (9, "z")).drop_columns(["change", MARK])
    truth = results(*TRUTH).drop_columns(["change", MARK])
    assert classify(given, truth, COLUMNS)[:5] == (1, 0, 1, 0, 1)
    assert classify(given.to_batches()[0], truth.to_batches()[0], COLUMNS)[:5] == (1, 0, 1, 0, 1)


def test_only_named_values_are_compared_and_those_about_the_result_are_not() -> None:
    truth = pa.table({"ts": [1], "value": [5], "other": [6], "pane": ["on_time"], "final": [False], "tier": [1]})
    given = pa.table({"ts": [1], "value": [5], "other": [7], "pane": ["revised"], "final": [True], "tier": [2]})
    assert classify(given, truth, ResultColumns("ts")).different == 1
    assert classify(given, truth, ResultColumns("ts", values=("value",))).exact == 1
    assert classify(given, truth, ResultColumns("ts", values=())).exact == 1
    assert classify(given, truth, ResultColumns("ts", ("tier",)))[:5] == (0, 1, 0, 0, 1)


def test_values_are_equal_as_spark_groups_them() -> None:
    truth = pa.table({"ts": [1, 2, 3, None], "value": [float("nan"), 0.0, None, 4.0], "tags": [[1.0], [], None, [2.0]]})
    given = pa.table(
        {"ts": [1, 2, 3, None], "value": [float("nan"), -0.0, None, 4.0], "tags": [[1.0], [], None, [2.0]]}
    )
    assert classify(given, truth, ResultColumns("ts")) == NOTHING._replace(exact=4)


def test_numbers_of_another_width_are_the_same_numbers() -> None:
    truth = pa.table({"ts": pa.array([1, 2], pa.timestamp("us", "UTC")), "value": pa.array([5, 6], pa.int32())})
    given = pa.table({"ts": pa.array([1, 2], pa.timestamp("us", "UTC")), "value": pa.array([5, 7], pa.int64())})
    assert classify(given, truth, ResultColumns("ts"))[:3] == (1, 0, 1)


@pytest.mark.parametrize(
    ("given", "truth", "columns", "message"),
    [
        (
            results(),
            results((1, "a"), (1, "b")),
            COLUMNS,
            "the sorted run must have one result at most for each ts, key",
        ),
        (results(), results((1, "a", -1)), COLUMNS, "the sorted run must void no result"),
        (results(), results(), ResultColumns("time"), "columns of results must be in both tables; got 'time'"),
        (results().drop_columns(["value"]), results(), COLUMNS, "must be in both tables; got 'value'"),
        (pa.table({"ts": ["x"]}), pa.table({"ts": [1]}), ResultColumns("ts"), "column 'ts' must have one type"),
    ],
)
def test_tables_that_cannot_be_compared_are_refused(
    given: pa.Table, truth: pa.Table, columns: ResultColumns, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        classify(given, truth, columns)


def test_the_output_of_a_strategy_is_scored_by_its_layout() -> None:
    asked = WindowAggregation(Window("50 ms", "50 ms"), (Count(), Max("ts")))
    stream = random_stream(3, 400)
    columns = ResultColumns.of(Layout("ts", ("key",)), "window_start")
    early, late = (run_machine(Ordered((wait,), asked), stream) for wait in ("1 us", "1 h"))
    truth = consolidate(output for batch in late.outputs for output in batch)
    given = consolidate(output for batch in early.outputs for output in batch)
    assert truth is not None
    assert given is not None
    assert classify(truth, truth, columns) == NOTHING._replace(exact=len(truth))
    found = classify(given, truth, columns)
    assert found.omitted == len(truth) - len(given)
    assert found.different == found.different_left > 0
    assert found.exact + found.different == len(given)
    assert ResultColumns.of(LAYOUT).place == ("ts", "key")


def test_logical_latency_ends_with_the_first_exact_result() -> None:
    given = results((5, "z"), (1, "x"), (1, "a"), (1, "a"))
    assert logical_latencies(given, results(*TRUTH), COLUMNS).tolist() == [19]
    assert logical_latencies(results(), results(*TRUTH), COLUMNS).tolist() == []


def test_responsiveness_ends_with_the_last_result_a_late_event_touches() -> None:
    late = pa.table({"at": [100, 100, 900], "key": [1, 2, 1], MARK: [500, 500, 910]})
    replays = [
        (60, 400),  # before it came
        (60, 510),
        (90, 530),
        (90, 600),
        (50, 505),  # out of its reach
        (101, 505),
    ]
    ts_us, mark_us = zip(*replays, strict=True)
    replayed = pa.table({"ts": ts_us, "key": [1] * len(replays), MARK: mark_us})
    assert responsiveness(late, replayed, COLUMNS, 50, late_time="at").tolist() == [30, NEVER, NEVER]
    assert responsiveness(late, replayed, COLUMNS, 50, late_time="at", first=True).tolist() == [10, NEVER, NEVER]
    assert responsiveness(late, replayed.slice(0, 0), COLUMNS, 50, late_time="at").tolist() == [NEVER] * 3


def test_percentiles_are_values_that_are_there() -> None:
    assert percentiles(np.array([30, 10]), 10) == [1.0, 3.0, 3.0, 3.0, 3.0]
    assert percentiles(np.zeros(0, dtype=np.int64), 10) == [None] * 5


def test_percentiles_go_to_tenths_of_a_per_cent_and_count_what_never_comes() -> None:
    values = np.append(np.arange(1, 999), [NEVER, NEVER])
    assert percentiles(values, 1, (99.7, 99.8, 99.9, 100)) == [997.0, 998.0, inf, inf]


def test_a_result_is_right_for_good_after_it_was_last_wrong() -> None:
    truth = results((1, "a"), (2, "b"), (3, "c"), (4, "d"))
    rows = [(1, "a"), (2, "x"), (2, "b"), (2, "b"), (3, "c"), (3, "c", -1), (3, "c"), (4, "d"), (4, "x")]
    assert exact_marks(results(*rows), truth, COLUMNS).tolist() == [0, 20, 60, NEVER]
    assert exact_marks(results((1, "x"), (1, "a"), (1, "x", -1)), results((1, "a")), COLUMNS).tolist() == [10]
    assert exact_marks(results(), truth, COLUMNS).tolist() == [NEVER] * 4


def test_exact_rows_are_those_of_the_sorted_run() -> None:
    given = results((1, "a"), (2, "x"), (2, "b"), (2, "b", -1), (2, "b"), (9, "z"))
    assert exact_rows(given, results(*TRUTH), COLUMNS).tolist() == [True, False, True, False, True, False]


def test_the_latest_mark_is_that_of_what_an_event_touches() -> None:
    late = pa.table({"at": [100, 100, 40], "key": [1, 2, 1], MARK: [500, 500, 500]})
    touched = pa.table({"ts": [50, 51, 100, 101], "key": [1] * 4, MARK: [900, 600, 550, 800]})
    assert latest_marks(late, touched, COLUMNS, 50, late_time="at").tolist() == [600, NEVER_US, NEVER_US]
