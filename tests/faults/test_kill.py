"""A stream killed with SIGKILL, driver and JVM, again and again, ends like one that was left alone."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import latecomer as lc
from tests.spark.streams import make_events, write_in_parts

BATCHES = 14
ROOT = Path(__file__).parents[2]


def start(folder: Path, out: str, strategy: str) -> subprocess.Popen[str]:
    """The stream in a process group of its own, so that its JVM and workers die with it."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.faults.stream", str(folder), out, strategy],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )


def commits(folder: Path, out: str) -> int:
    """How many micro-batches have been committed."""
    return len([p for p in (folder / f"{out}-checkpoint" / "commits").glob("[0-9]*") if p.name.isdigit()])


def kill(process: subprocess.Popen[str]) -> None:
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def kill_somewhere(folder: Path, out: str, strategy: str, rng: random.Random) -> bool:
    """Start, wait for one or two commits and a random moment more, kill; False if it was done before."""
    process = start(folder, out, strategy)
    goal = commits(folder, out) + rng.choice([0, 1, 2])
    moment = rng.uniform(0.0, 2.5)
    deadline = time.monotonic() + 120
    while commits(folder, out) < goal and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(moment if goal else 6 * moment)
    if process.poll() is not None:
        return False
    kill(process)
    return True


def lanes(folder: Path, out: str) -> dict[str, pa.Table]:
    """Every lane's rows in an order of their own. A kill may shift where Spark cuts batches, never what comes out."""
    tables = {lane.name: pq.read_table(lane, partitioning=None) for lane in (folder / out).iterdir()}
    return {lane: table.sort_by([(name, "ascending") for name in table.column_names]) for lane, table in tables.items()}


def survive(folder: Path, strategy: str, kills: int) -> int:
    """Run a stream until it is done, killed so often on its way; gives how often it was."""
    rng = random.Random(3)
    killed = sum(kill_somewhere(folder, "killed", strategy, rng) for _ in range(kills))
    assert killed >= kills - 1
    assert start(folder, "killed", strategy).communicate(timeout=300)[0] == "done\n"
    return killed


def compare(folder: Path) -> dict[str, int]:
    """Both runs gave the same rows; gives how many in each lane."""
    whole, survived = lanes(folder, "whole"), lanes(folder, "killed")
    assert set(whole) == set(survived) >= {"results", "late", "quarantine"}
    for lane in whole:
        assert whole[lane].equals(survived[lane]), lane
    return {lane: len(table) for lane, table in whole.items()}


@pytest.mark.parametrize(("strategy", "kills"), [("reorder", 5), ("tiers", 3), ("timetravel", 3), ("stages", 3)])
def test_kills_at_random_moments_change_nothing(tmp_path: Path, strategy: str, kills: int) -> None:
    events = make_events(20_000, seed=11)
    events = events.set_column(1, "ts", _some_absurd(events["ts"]))
    write_in_parts(events, tmp_path / "in", BATCHES)
    undisturbed = start(tmp_path, "whole", strategy)
    assert undisturbed.communicate(timeout=300)[0] == "done\n"

    killed = survive(tmp_path, strategy, kills)
    rows = compare(tmp_path)
    assert rows["late"] > 100
    assert rows["quarantine"] == 20_000 // 500 - _filtered(events)
    print(f"\n{killed} kills; rows: {rows}")


def test_a_latency_that_was_changed_stays_changed_after_kills(tmp_path: Path) -> None:
    events = make_events(12_000, seed=12)
    write_in_parts(events.slice(0, 6_000), tmp_path / "in", 3)
    for out in ("whole", "killed"):
        assert start(tmp_path, out, "reorder").communicate(timeout=300)[0] == "done\n"
    before = lanes(tmp_path, "whole")["results"]
    for out in ("whole", "killed"):
        lc.control(tmp_path / f"{out}-checkpoint").set(latency="300 ms")
    write_in_parts(events.slice(6_000), tmp_path / "in", 7, first=3)
    assert start(tmp_path, "whole", "reorder").communicate(timeout=300)[0] == "done\n"
    killed = survive(tmp_path, "reorder", 3)
    rows = compare(tmp_path)
    late = lanes(tmp_path, "whole")["late"]["lateness_us"].to_pylist()
    assert min(late) < 1_000_000, "later than the new latency, not than the old one"
    assert rows["results"] > len(before)
    print(f"\n{killed} kills; rows: {rows}")


def _some_absurd(times: pa.ChunkedArray) -> pa.Array:
    values = times.cast(pa.int64()).to_pylist()
    return pa.array([None if i % 500 == 0 else v for i, v in enumerate(values)], pa.timestamp("us", "UTC"))


def _filtered(events: pa.Table) -> int:
    """Absurd rows that the stream's own `where` drops."""
    keys = events["key"].to_pylist()
    return sum(1 for position in range(0, len(keys), 500) if keys[position] == 3)
