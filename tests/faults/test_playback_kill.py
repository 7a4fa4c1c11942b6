"""A paced playback killed with SIGKILL, driver and JVM, again and again: every event comes out once, as if left alone.

Run as a module, this file is the stream that is killed.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq

import latecomer as lc
from latecomer.spark.playback import playback
from tests.spark.streams import LATENCY_US, expected, make_events

EVENTS = 6_000  # 30 s of arrivals
KILLS = 4
ROOT = Path(__file__).parents[2]


def play(folder: str) -> None:
    """Play the recording at twice its speed, hold, write all lanes, and stop when the end has come through."""
    spark = lc.session("latecomer-faults", memory="1g")
    df = playback(spark, f"{folder}/in", speed=2, end="ended", source="source")
    events = lc.disordered(
        df, time="ts", key="key", source="source", arrival="arrival", order="id", end="ended", shards=2
    )
    result = events.select("id", "ts").reorder(f"{LATENCY_US} us")
    query = result.start(f"{folder}/out", checkpoint=f"{folder}/checkpoint")
    while query.isActive:
        progress = query.lastProgress
        if progress is not None and '"ended": true' in str(progress["sources"][0]["endOffset"]):
            break
        time.sleep(0.1)
    query.stop()
    print("done", flush=True)


def start(folder: Path) -> subprocess.Popen[str]:
    """The stream in a process group of its own, so that its JVM and workers die with it."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.faults.test_playback_kill", str(folder)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )


def batches(folder: Path, log: str) -> int:
    """How many micro-batches stand in Spark's log of offsets or of commits."""
    return len([path for path in (folder / "checkpoint" / log).glob("[0-9]*") if path.name.isdigit()])


def kill_in_the_middle(folder: Path, rng: random.Random) -> bool:
    """Start, wait until a batch more is begun and a random moment more, kill; False if it was done before."""
    process = start(folder)
    goal = batches(folder, "offsets") + rng.choice([1, 2])
    deadline = time.monotonic() + 120
    while batches(folder, "offsets") < goal and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(rng.uniform(0.0, 1.5))
    if process.poll() is not None:
        return False
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return True


def test_a_killed_playback_loses_and_doubles_nothing(tmp_path: Path) -> None:
    events = make_events(EVENTS, seed=12)
    given, late = expected(events)
    (tmp_path / "in").mkdir()
    pq.write_table(events.slice(0, 2_010), tmp_path / "in" / "a.parquet", row_group_size=700)
    pq.write_table(events.slice(2_010), tmp_path / "in" / "b.parquet", row_group_size=700)
    rng = random.Random(5)
    killed, unfinished = 0, 0
    for _ in range(KILLS):
        killed += kill_in_the_middle(tmp_path, rng)
        unfinished += batches(tmp_path, "offsets") > batches(tmp_path, "commits")
    assert killed >= 2
    assert start(tmp_path).communicate(timeout=300)[0] == "done\n"
    assert sorted(_ids(tmp_path, "results")) == sorted(given)
    assert sorted(_ids(tmp_path, "late")) == late
    assert len(given) + len(late) == EVENTS
    print(f"\n{killed} kills, {unfinished} of them within a batch; rows: {len(given)} in time, {len(late)} late")


def _ids(folder: Path, lane: str) -> list[int]:
    ids: list[int] = pq.read_table(folder / "out" / lane, partitioning=None)["id"].to_pylist()
    return ids


if __name__ == "__main__":
    play(sys.argv[1])
