"""A driver that was taken for dead wakes up while its successor runs: no row is read twice, none is lost."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

import latecomer as lc
from tests.faults.stream import checkpoint, logged
from tests.faults.test_kill import start
from tests.spark.streams import expected, make_events, write_in_parts

DONE = "done\n"


def wait_for(folder: Path, goal: int) -> None:
    deadline = time.monotonic() + 240
    while logged(checkpoint(folder, "two", "reorder")) < goal:
        assert time.monotonic() < deadline, "the stream makes no progress"
        time.sleep(0.01)


def test_two_drivers_on_one_checkpoint_give_every_row_once(spark: SparkSession, tmp_path: Path) -> None:
    events = make_events(8_000, seed=13)
    kept = events.filter([key != 3 for key in events["key"].to_pylist()])
    write_in_parts(events, tmp_path / "in", 14)
    first = start(tmp_path, "two", "reorder")
    wait_for(tmp_path, 3)
    os.killpg(first.pid, signal.SIGSTOP)
    second = start(tmp_path, "two", "reorder")
    wait_for(tmp_path, 5)
    os.killpg(first.pid, signal.SIGCONT)
    ends = [each.communicate(timeout=300)[0] for each in (first, second)]
    if not any(end.endswith(DONE) for end in ends):
        assert start(tmp_path, "two", "reorder").communicate(timeout=300)[0].endswith(DONE)
    rows = {lane: sorted(row["id"] for row in read.select("id").collect()) for lane, read in _lanes(spark, tmp_path)}
    every = sorted([*rows["results"], *rows["late"]])
    assert len(every) == len(set(every)), "no row twice"
    given, _ = expected(events)
    wanted = set(kept["id"].to_pylist())
    results = [each for each in given if each in wanted]
    assert rows["results"] == sorted(results[: len(rows["results"])])
    assert not ends[0].endswith(DONE), "the first has stopped"


def _lanes(spark: SparkSession, folder: Path) -> list[tuple[str, DataFrame]]:
    return [(lane, lc.read(spark, folder / "two" / "reorder", lane)) for lane in ("results", "late")]
