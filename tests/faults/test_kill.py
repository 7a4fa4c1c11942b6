"""Streams killed with SIGKILL, driver and JVM, again and again, end like ones that were left alone.

A query of every strategy runs in one process, so one kill hits all of them, each in another moment of its micro-batch.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import latecomer as lc
from tests.faults.stream import CHANGED, OPTIMISTIC, PLAYBACK, SLACK, STRATEGIES, checkpoint, ended, logged, run
from tests.spark.streams import expected, make_events, write_in_parts

KILLS = int(os.environ.get("KILLS", "4"))
FIRST, MORE, LAST = 8, 6, 4  # files, of which more come before each kill: no query can be done before the last one
BATCHES = FIRST + MORE * KILLS + LAST
_STAGES = [0, *(FIRST + MORE * number for number in range(KILLS + 1)), BATCHES]
PER_FILE = 500  # events: 25 whole ticks
EVENTS = PER_FILE * BATCHES
PLAYED, PACE = 24_000, "0.05"  # events, two minutes of arrivals, played in forty: no machine is too slow to kill it
NAMES = (*STRATEGIES, CHANGED, PLAYBACK)
ROOT = Path(__file__).parents[2]


def start(folder: Path, out: str, *names: str, speed: str = "max", files: int = 1) -> subprocess.Popen[str]:
    """The streams in a process group of their own, so that their JVM and workers die with it."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.faults.stream", str(folder), out, speed, str(files), *names],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )


def kill(process: subprocess.Popen[str]) -> None:
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def kill_somewhere(folder: Path, rng: random.Random, *, early: bool) -> None:
    """Start, wait for some commits of all queries together and a random moment more, kill; or while they begin."""

    def commits() -> int:
        return sum(logged(checkpoint(folder, "killed", name)) for name in NAMES)

    process = start(folder, "killed", *rng.sample(NAMES, len(NAMES)), speed=PACE)
    if not early:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        goal, deadline = commits() + rng.choice([0, 3, 6]), time.monotonic() + 240
        while commits() < goal and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
    time.sleep(rng.uniform(0.0, 15.0 if early else 2.5))
    assert process.poll() is None, "done, or failed, before it could be killed"
    kill(process)


def lanes(folder: Path, out: str, name: str) -> dict[str, pa.Table]:
    """Every lane's rows in an order of their own. A kill may shift where Spark cuts batches, never what comes out."""
    tables = {lane.name: pq.read_table(lane, partitioning=None) for lane in (folder / out / name).iterdir()}
    if name == OPTIMISTIC:  # changes are net per micro-batch, and so hang on where those are cut; what stands does not
        tables["results"] = tables["changes"] = _standing(tables["changes"])
    return {lane: table.sort_by([(name, "ascending") for name in table.column_names]) for lane, table in tables.items()}


def _standing(changes: pa.Table) -> pa.Table:
    """What changes add up to."""
    said = [name for name in changes.column_names if name not in ("change", "pane", "final")]
    summed = changes.group_by(said).aggregate([("change", "sum")])
    counts = summed["change_sum"].to_pylist()
    assert set(counts) <= {0, 1}
    return summed.filter(pa.array([count == 1 for count in counts])).drop_columns(["change_sum"])


def test_kills_at_random_moments_change_nothing(spark: SparkSession, tmp_path: Path) -> None:
    events, played = _absurd(make_events(EVENTS, seed=11)), make_events(PLAYED, seed=12)
    parts = [events.slice(start * PER_FILE, (stop - start) * PER_FILE) for start, stop in pairwise(_STAGES)]
    _prepare(spark, tmp_path, parts[0], played)

    rng, hit, within = random.Random(3), Counter[str](), Counter[str]()
    for number in range(KILLS):
        write_in_parts(parts[1 + number], tmp_path / "in", MORE, first=_STAGES[1 + number])
        kill_somewhere(tmp_path, rng, early=number % 4 == 1)
        for name in NAMES:
            state = checkpoint(tmp_path, "killed", name)
            begun, done = (logged(state, log) for log in ("offsets", "commits"))
            hit[name] += begun > 0 and not (name == PLAYBACK and ended(state))
            within[name] += begun > done
    write_in_parts(parts[-1], tmp_path / "in", LAST, first=_STAGES[-2])
    assert start(tmp_path, "killed", *NAMES, files=3).communicate(timeout=1_200)[0].endswith("done\n")
    for name in (*STRATEGIES, CHANGED):
        run(spark, tmp_path, "whole", name, files=10)
    for name in (*STRATEGIES, CHANGED):
        rows = _compare(tmp_path, name)
        print(f"\n{name}: {hit[name]} kills on its way, {within[name]} within a batch; rows: {rows}", end="")
        assert rows["late"] > 100
        assert rows["quarantine"] == _quarantined(events)
    assert min(hit.values()) >= KILLS // 2
    assert within.total() >= KILLS, "kills must not only come between micro-batches"
    _assert_changed(tmp_path)
    _assert_played(tmp_path, played)


def _prepare(spark: SparkSession, folder: Path, first: pa.Table, played: pa.Table) -> None:
    """A recording; and queries that have begun with one latency or slack, and have been given another."""
    (folder / "recording").mkdir()
    pq.write_table(played.slice(0, 2_010), folder / "recording" / "a.parquet", row_group_size=700)
    pq.write_table(played.slice(2_010), folder / "recording" / "b.parquet", row_group_size=700)
    write_in_parts(first, folder / "in", FIRST)
    for out in ("whole", "killed"):
        run(spark, folder, out, CHANGED, SLACK)
        lc.control(checkpoint(folder, out, CHANGED)).set(latency="300 ms")
        lc.control(checkpoint(folder, out, SLACK)).set(slack="1 ms")


def _compare(folder: Path, name: str) -> dict[str, int]:
    """Both runs gave the same rows; gives how many in each lane."""
    whole, survived = lanes(folder, "whole", name), lanes(folder, "killed", name)
    assert set(whole) == set(survived) >= {"results", "late", "quarantine"}
    for lane in whole:
        assert whole[lane].equals(survived[lane]), f"{lane} of {name}: {_difference(whole[lane], survived[lane])}"
    return {lane: len(table) for lane, table in whole.items()}


def _difference(whole: pa.Table, survived: pa.Table) -> str:
    """How many rows one has and the other has not, and the first of them."""
    rows = [Counter(map(str, table.to_pylist())) for table in (whole, survived)]
    lost, added = rows[0] - rows[1], rows[1] - rows[0]
    return f"lost {lost.total()}: {[*lost][:3]}, added {added.total()}: {[*added][:3]}"


def _assert_changed(folder: Path) -> None:
    """The latency and the slack that were set hold, after all kills."""
    late = lanes(folder, "killed", CHANGED)["late"]["lateness_us"].to_pylist()
    assert min(late) < 1_000_000, "later than the new latency, not than the old one"
    assert lc.control(checkpoint(folder, "killed", SLACK)).values() == {"slack.slack_us": 1_000}
    certain = lanes(folder, "killed", SLACK)["results"]["final"].to_pylist()
    assert set(certain) == {True, False}, "pairs that every source had passed, and pairs that came before"


def _assert_played(folder: Path, played: pa.Table) -> None:
    """Every event that was played came out once, as the slow twin says."""
    given, late = expected(played)
    found = lanes(folder, "killed", PLAYBACK)
    assert sorted(found["results"]["id"].to_pylist()) == sorted(given)
    assert sorted(found["late"]["id"].to_pylist()) == late
    assert len(given) + len(late) == PLAYED


def _absurd(events: pa.Table) -> pa.Table:
    """Every 500th event has no time."""
    values = events["ts"].cast(pa.int64()).to_pylist()
    times = pa.array([None if i % 500 == 0 else v for i, v in enumerate(values)], pa.timestamp("us", "UTC"))
    return events.set_column(events.schema.get_field_index("ts"), "ts", times)


def _quarantined(events: pa.Table) -> int:
    """Events without a time that the streams' own `where` leaves."""
    keys = events["key"].to_pylist()
    return sum(1 for position in range(0, len(keys), 500) if keys[position] != 3)
