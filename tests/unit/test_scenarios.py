"""Scenarios: streams and expectations written as small tables."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import pyarrow as pa
import pytest

import latecomer as lc
from latecomer.errors import InputError
from latecomer.testing import Scenario, run_chain
from latecomer.testing.tables import read_table, shown
from tests.scenarios import LATE, READINGS, expect_late_reading, expect_tiers, readings


def test_changes_are_expected_batch_by_batch() -> None:
    expect_late_reading(
        readings().run(lambda events: events.tumbling("15 minutes").aggregate(lc.sum("kwh")).optimistic("1 hour"))
    )


def test_tiers_are_expected_one_by_one() -> None:
    expect_tiers(
        readings().run(lambda events: events.tumbling("15 minutes").aggregate(lc.count()).tiers("5 minutes", "1 hour"))
    )


def test_what_is_too_late_is_in_its_lane() -> None:
    run = readings().run(lambda events: events.reorder("5 minutes"))
    run.expect("late", LATE)
    run.expect_nothing("quarantine")
    run.expect("results", "ts     kwh\n00:10  1\n00:20  2\n00:40  8", ordered=True)
    assert run.counters["late"] == 1


def test_a_difference_shows_both_tables() -> None:
    run = readings().run(lambda events: events.reorder("5 minutes"))
    with pytest.raises(AssertionError) as caught:
        run.expect("late", "ts     reason\n00:13  too_late")
    assert str(caught.value) == (
        "late must be\nts        reason\n00:13:00  too_late\n\nit is\nts        reason\n00:12:00  too_late"
    )
    with pytest.raises(AssertionError, match="late has no column amount; it has came, ts"):
        run.expect("late", "amount\n3")
    with pytest.raises(AssertionError, match="late must be empty; it has"):
        run.expect_nothing("late")
    with pytest.raises(InputError, match="batch must be from 0 to 2, or 'end'; got 4"):
        run.rows("late", 4)


def test_shards_change_nothing() -> None:
    expect_tiers(
        readings().run(
            lambda events: events.tumbling("15 minutes").aggregate(lc.count()).tiers("5 minutes", "1 hour"), shards=3
        )
    )


def test_arrival_must_be_told_and_nothing_that_is_not_known() -> None:
    with pytest.raises(InputError, match="arrival must name the column that says when a row came"):
        Scenario(READINGS, time="ts", key="meter")
    unknown: Any = {"sources": ["a"]}
    with pytest.raises(InputError, match=r"rows in memory must be declared with time, key.*; got 'sources'"):
        run_chain(lambda events: events.reorder("1 s"), [{"ts": 1}], time="ts", **unknown)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "table must have a line with the names of its columns"),
        ("a  b\n1", "row '1' must have 2 cells"),
        ("a  b\n1  x\n2  3", "column 'b' must have values of one kind"),
    ],
)
def test_a_table_that_cannot_be_read_is_named(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_table(text)


def test_tables_take_bars_dates_and_fractions() -> None:
    written = read_table("at | n\n2026-01-05T09:00:00 | 1\n00:00:01.25 | 2.5")
    assert written.table.schema.field("n").type == pa.float64()
    assert shown(written.table.to_pylist(), ["at", "n"]) == (
        "at                         n\n2026-01-05T09:00:00+00:00  1.0\n00:00:01.250000            2.5"
    )


def test_the_seeded_generator_is_a_fixture(disorder: Callable[..., pa.Table]) -> None:
    assert disorder("meters", meters=20, days=3, seed=4).equals(disorder("meters", meters=20, days=3, seed=4))
    assert disorder().num_rows == 1_000


def test_a_scenario_is_a_fixture(scenario: Callable[..., Scenario]) -> None:
    assert scenario(READINGS, time="ts", arrival="came", key="meter").cuts == (2, 3)


def test_text_in_quotes_naive_times_rounding_and_nan_are_compared_by_what_they_mean() -> None:
    moment = datetime(1970, 1, 1, 0, 10)
    table = pa.table(
        {
            "came": pa.array([moment]),
            "ts": pa.array([moment]),
            "code": ["007"],
            "sum": [0.1 + 0.2],
            "odd": [float("nan")],
        }
    )
    run = Scenario(table, time="ts", arrival="came").run(lambda events: events.reorder("5 minutes"))
    run.expect("results", "ts | code  | sum | odd\n00:10 | '007' | 0.3 | nan")
    with pytest.raises(AssertionError, match="results must be\ncode\n7"):
        run.expect("results", "code\n7")


def test_columns_of_an_empty_lane_are_checked_too() -> None:
    run = readings().run(lambda events: events.reorder("1 day"))
    with pytest.raises(AssertionError, match="late has no column nonsense"):
        run.expect("late", "nonsense  ts")
    with pytest.raises(InputError, match="rows must be those of results, late, quarantine"):
        run.expect_nothing("lates")


def test_lines_of_dashes_at_the_end_or_twice_begin_no_micro_batch() -> None:
    assert read_table("a\n--\n1\n--\n--\n2\n--").cuts == (1,)


@pytest.mark.parametrize("name", ["synthetic", "meters", "traffic", "cloudlog"])
def test_every_preset_is_small_as_a_fixture(disorder: Callable[..., pa.Table], name: str) -> None:
    assert 0 < disorder(name, seed=1).num_rows < 10_000
