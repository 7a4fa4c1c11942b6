"""Windows at once on Spark: the changes of every micro-batch over a restart, final windows, and refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import latecomer as lc
from tests.spark.test_optimistic import BATCHES, counters, stream_of, write_batches

BACK = [("09:20", "ann", -30, -1), ("12:10", "bob", 4, 1)]
LATE = [("14:30", "ann", 1, 1), ("09:59", "ann", 5, 1), ("13:00", "bob", 9, -1)]


def hours(spark: SparkSession, folder: Path) -> lc.Events:
    return lc.disordered(stream_of(spark, folder), time="at", key="account", change="sign").tumbling("1 hour")


def test_windows_come_with_their_micro_batch_and_a_restart_changes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    batches = [*BATCHES[:2], BACK, LATE]
    for begun, upto in ((0, 2), (2, 4)):
        write_batches(tmp_path / "in", batches[begun:upto], begun)
        asked = hours(spark, tmp_path / "in").aggregate(lc.sum("amount").alias("sum"), lc.count())
        query = asked.optimistic("2 hours", barrier=True).start(
            str(tmp_path / "out"),
            checkpoint=str(tmp_path / "checkpoint"),
            sinks={"changes": str(tmp_path / "changes"), "final": str(tmp_path / "final")},
            available_now=True,
        )
        query.awaitTermination()
    rows = lc.read(spark, str(tmp_path / "changes")).collect()
    found = sorted((r.batch, r.change, r.window_start.strftime("%H"), r.account, r["sum"], r["count"]) for r in rows)
    assert found == [
        (0, 1, "09", "ann", 50, 3),
        (0, 1, "09", "bob", 50, 1),
        (1, -1, "09", "ann", 50, 3),
        (1, -1, "09", "bob", 50, 1),
        (1, 1, "09", "ann", 550, 4),
        (1, 1, "09", "bob", 40, 2),
        (2, -1, "09", "ann", 550, 4),
        (2, 1, "09", "ann", 580, 3),
        (2, 1, "12", "bob", 4, 1),
        (3, 1, "14", "ann", 1, 1),
    ]
    final = lc.read(spark, str(tmp_path / "final")).collect()
    assert sorted((r.batch, r.account, r["sum"]) for r in final) == [(2, "ann", 580), (2, "bob", 40)]
    late = lc.read(spark, str(tmp_path / "out"), "late").collect()
    assert [(r.at.strftime("%H:%M"), r.reason) for r in late] == [("09:59", "too_late")]
    assert counters(query)["held"] == 5  # two windows, their rows, and a retraction that waits
    assert counters(query.recentProgress[-2])["voided"] == 1


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda events: events.aggregate(lc.count()), "aggregate must be asked of windows"),
        (lambda events: hourly(events).scan, "scan must be asked of rows; got 'windows of them'"),
        (lambda events: hourly(events).optimistic("soon"), "bound must be a duration"),
        (lambda events: hourly(events).optimistic("1 h", barrier=1), "barrier must be True or False"),
        (lambda events: hourly(events).optimistic("1 h", forget_after="1 d"), "forget_after must be asked of steps"),
        (lambda events: hourly(events).optimistic("1 h", max_held=0), "max_held must be a whole number"),
        (lambda events: hourly(events).optimistic("1 h").by("account").pass_through(), "results that may change"),
        (
            lambda events: events.session("1 h").aggregate(lc.count()).optimistic("1 h"),
            "optimistic_sessions must be fed events only",
        ),
    ],
)
def test_wrong_questions_are_named(spark: SparkSession, tmp_path: Path, ask: Any, message: str) -> None:
    write_batches(tmp_path / "in", BATCHES[:1])
    events = lc.disordered(stream_of(spark, tmp_path / "in"), time="at", key="account", change="sign")
    with pytest.raises((lc.InputError, AttributeError)) as error:
        ask(events)
    assert message in str(error.value)


def hourly(events: lc.Events) -> Any:
    return events.tumbling("1 hour").aggregate(lc.count())
