"""Scenarios on Spark: the expectations are those of runs without it."""

from __future__ import annotations

from pyspark.sql import SparkSession

import latecomer as lc
from tests.scenarios import LATE, expect_late_reading, readings


def sums(events: lc.Events) -> lc.Result:
    """As a user writes a question, for tests and for production."""
    return events.tumbling("15 minutes").aggregate(lc.sum("kwh")).optimistic("1 hour")


def test_a_scenario_gives_on_spark_what_it_gives_without(spark: SparkSession) -> None:
    expect_late_reading(readings().run(sums, spark=spark))
    run = readings().run(lambda events: events.reorder("5 minutes"), spark=spark)
    run.expect("late", LATE)
    assert run.counters["late"] == 1
