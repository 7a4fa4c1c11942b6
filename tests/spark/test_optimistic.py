"""Optimistic processing on Spark: the changes of every micro-batch, final rows, lanes, restarts and refusals."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import latecomer as lc

SCHEMA = "at timestamp, account string, amount bigint, sign int"
BATCHES = [
    [("09:00", "ann", 100, 1), ("09:05", "bob", 50, 1), ("09:20", "ann", -30, 1), ("09:30", "ann", -20, 1)],
    [("09:10", "ann", 500, 1), ("09:40", "bob", -10, 1)],
    [("12:00", "ann", 1, 1), ("09:45", "bob", 7, 1)],
    [("08:00", "ann", 3, 1), ("12:30", "bob", 2, 1)],
]


def write_batches(folder: Path, batches: list[list[tuple[str, str, int, int]]], first: int = 0) -> None:
    folder.mkdir(exist_ok=True)
    for number, rows in enumerate(batches, first):
        named = (dict(zip(("at", "account", "amount", "sign"), row, strict=True)) for row in rows)
        lines = [json.dumps({**row, "at": f"2026-01-05 {row['at']}:00"}) for row in named]
        file = Path(folder, f"{number:03}.json")
        file.write_text("\n".join(lines))
        os.utime(file, (1_700_000_000 + number, 1_700_000_000 + number))  # Spark reads the oldest first


def stream_of(spark: SparkSession, folder: Path) -> DataFrame:
    return spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(folder))


def counters(progress: Any) -> dict[str, int]:
    found = lc.read_counters(progress)
    assert found is not None
    return found


class Seen:
    """What a sink was given, micro-batch by micro-batch."""

    def __init__(self) -> None:
        self.batches: dict[int, list[tuple[Any, ...]]] = {}

    def __call__(self, rows: DataFrame, batch: int) -> None:
        self.batches[batch] = [
            (r.change, r.at.strftime("%H:%M"), r.account, r.balance, r.final) for r in rows.collect()
        ]


def test_changes_come_with_their_micro_batch_and_final_rows_once(spark: SparkSession, tmp_path: Path) -> None:
    write_batches(tmp_path / "in", BATCHES)
    events = lc.disordered(stream_of(spark, tmp_path / "in").drop("sign"), time="at", key="account")
    result = events.scan(lc.running_sum("amount").alias("balance")).optimistic("2 hours", barrier=True)
    changes = Seen()
    query = result.start(
        str(tmp_path / "out"),
        checkpoint=str(tmp_path / "checkpoint"),
        sinks={"changes": changes, "final": str(tmp_path / "final")},
        available_now=True,
    )
    query.awaitTermination()
    assert sorted(changes.batches[1]) == [
        (-1, "09:20", "ann", 70, False),
        (-1, "09:30", "ann", 50, False),
        (1, "09:10", "ann", 600, False),
        (1, "09:20", "ann", 570, False),
        (1, "09:30", "ann", 550, False),
        (1, "09:40", "bob", 40, False),
    ]
    for batch in changes.batches.values():  # what is void comes first
        assert [row[0] for row in batch] == sorted(row[0] for row in batch) or len({row[2] for row in batch}) > 1
    assert (1, "09:45", "bob", 47, True) in changes.batches[2]
    final = lc.read(spark, str(tmp_path / "final")).collect()
    found = sorted((row.at.strftime("%H:%M"), row.account, row.balance) for row in final)
    assert found == [
        ("09:00", "ann", 100),
        ("09:05", "bob", 50),
        ("09:10", "ann", 600),
        ("09:20", "ann", 570),
        ("09:30", "ann", 550),
        ("09:40", "bob", 40),
        ("09:45", "bob", 47),
    ]
    late = lc.read(spark, str(tmp_path / "out"), "late").collect()
    assert [(row.at.strftime("%H:%M"), row.reason) for row in late] == [("08:00", "too_late")]
    counted = [counters(progress) for progress in query.recentProgress]
    assert [sum(each.get(name, 0) for each in counted) for name in ("voided", "recomputed")] == [2, 2]
    assert sum(each["accepted"] + each["late"] for each in counted) == sum(each["seen"] for each in counted) == 10
    assert counters(query)["held"] == 2


@pytest.mark.parametrize("as_files", [False, True])
def test_results_may_be_left_out_where_changes_are_written(spark: SparkSession, tmp_path: Path, as_files: bool) -> None:
    write_batches(tmp_path / "in", BATCHES)
    events = lc.disordered(stream_of(spark, tmp_path / "in").drop("sign"), time="at", key="account")
    result = events.scan(lc.running_sum("amount").alias("balance")).optimistic("2 hours")
    seen = Seen()
    sinks = {"results": None, "changes": str(tmp_path / "changes") if as_files else seen}
    query = result.start(tmp_path / "out", checkpoint=tmp_path / "checkpoint", sinks=sinks, available_now=True)
    query.awaitTermination()
    assert not (tmp_path / "out" / "results").exists()
    given = sum(map(len, seen.batches.values()))
    assert (lc.read(spark, tmp_path / "changes").count() if as_files else given) == 13
    assert lc.read(spark, tmp_path / "out", "late").count() == 1


def test_a_restart_changes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    consolidated = []
    for name, stops in (("once", [4]), ("restarted", [2, 4])):
        folder, begun = tmp_path / name, 0
        for upto in stops:
            folder.mkdir(exist_ok=True)
            write_batches(folder / "in", BATCHES[begun:upto], begun)
            begun = upto
            events = lc.disordered(stream_of(spark, folder / "in").drop("sign"), time="at", key="account")
            asked = events.scan(lc.row_number(), lc.lag("amount", rows=2), lc.session_id("30 minutes"))
            query = asked.optimistic("2 hours").start(
                str(folder / "out"),
                checkpoint=str(folder / "checkpoint"),
                sinks={"changes": str(folder / "changes")},
                available_now=True,
            )
            query.awaitTermination()
        rows = lc.read(spark, str(folder / "changes")).drop("batch").collect()
        consolidated.append(sorted(str(row.asDict()) for row in rows))
    assert consolidated[0] == consolidated[1]


def steps(state: dict[str, int], row: Any) -> tuple[dict[str, int], list[tuple[int, str]]]:
    if row.amount == -30:
        raise ValueError("cannot be")
    state["n"] += 1
    return state, [(state["n"], f"{row.account} {row.amount}")]


def test_the_users_fold_runs_on_spark_and_what_it_cannot_use_is_quarantined(
    spark: SparkSession, tmp_path: Path
) -> None:
    write_batches(tmp_path / "in", BATCHES)
    events = lc.disordered(stream_of(spark, tmp_path / "in").drop("sign"), time="at", key="account")
    kept, returns = pa.struct([("n", pa.int64())]), pa.schema([("n", pa.int64()), ("said", pa.string())])
    result = events.scan(lc.Fold(steps, {"n": 0}, state=kept, returns=returns)).optimistic("2 hours", barrier=True)
    query = result.start(
        str(tmp_path / "out"),
        checkpoint=str(tmp_path / "checkpoint"),
        sinks={"final": str(tmp_path / "final")},
        available_now=True,
    )
    query.awaitTermination()
    found = [(row.n, row.said) for row in lc.read(spark, str(tmp_path / "final")).orderBy("at").collect()]
    assert found == [(1, "ann 100"), (1, "bob 50"), (2, "ann 500"), (3, "ann -20"), (2, "bob -10"), (3, "bob 7")]
    (row,) = lc.read(spark, str(tmp_path / "out"), "quarantine").collect()
    assert (row.amount, row.reason) == (-30, "ValueError: cannot be")


def test_retractions_void_what_they_are_equal_to(spark: SparkSession, tmp_path: Path) -> None:
    write_batches(tmp_path / "in", [*BATCHES[:2], [("09:20", "ann", -30, -1), ("11:00", "ann", 9, -1)]])
    events = lc.disordered(stream_of(spark, tmp_path / "in"), time="at", key="account", change="sign")
    result = events.scan(lc.running_sum("amount").alias("balance")).optimistic("2 hours")
    query = result.start(
        str(tmp_path / "out"),
        checkpoint=str(tmp_path / "checkpoint"),
        sinks={"changes": str(tmp_path / "changes")},
        available_now=True,
    )
    query.awaitTermination()
    changes = lc.read(spark, str(tmp_path / "changes")).groupBy("at", "account", "balance")
    stands = changes.sum("change").where("`sum(change)` > 0").orderBy("at").collect()
    assert [row.balance for row in stands] == [100, 50, 600, 580, 40]
    assert counters(query)["held"] == 6  # five rows and a retraction that waits


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda events: events.scan(), "scan must be given a function at least"),
        (lambda events: events.scan(lc.count()), "scan must be given functions of the rows so far"),
        (lambda events: events.scan(lc.lag("nowhere")).optimistic("1 h"), "column of lag must be one of"),
        (lambda events: events.scan(lc.running_sum("account")).optimistic("1 h"), "be of whole or floating numbers"),
        (lambda events: events.scan(lc.lag("amount", rows=0)), "rows of lag must be a whole number from 1"),
        (lambda events: events.scan(lc.row_number()).optimistic("soon"), "bound must be a duration"),
        (lambda events: events.scan(lc.row_number()).optimistic("1 h", barrier=1), "barrier must be True or False"),
        (lambda events: events.scan(lc.row_number().alias("amount")).optimistic("1 h"), "a name of its own"),
        (lambda events: events.tumbling("1 h").scan(lc.row_number()), "scan must be asked of events without a window"),
        (lambda events: events.group(1), "rows of group must be a whole number from 2"),
        (
            lambda events: events.group(3, partial="undo").by("amount").scan(lc.row_number()).optimistic("1 h"),
            "another step must not follow groups that are undone",
        ),
        (lambda events: events.scan(lc.row_number()).start, "start must be called on a result"),
        (lambda events: events.optimistic("1 h"), "optimistic must be asked of"),
    ],
)
def test_wrong_questions_are_named(spark: SparkSession, tmp_path: Path, ask: Any, message: str) -> None:
    write_batches(tmp_path / "in", BATCHES)
    events = lc.disordered(stream_of(spark, tmp_path / "in").drop("sign"), time="at", key="account")
    with pytest.raises((lc.InputError, AttributeError)) as error:
        ask(events)
    assert message in str(error.value)
