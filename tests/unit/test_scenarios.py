"""Scenarios: streams and expectations written as small tables."""

from __future__ import annotations

from collections.abc import Callable
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
