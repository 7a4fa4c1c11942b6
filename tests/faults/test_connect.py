"""The same calls over Spark Connect, in a process of their own with its own JVM."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql.connect.group import GroupedData

from tests.faults.turns import connect_port
from tests.spark.streams import LATENCY_US, SCHEMA, expected, make_events, write_in_parts

PROGRAM = f"""
import sys
from pyspark.sql import SparkSession
import latecomer as lc

folder = sys.argv[1]
spark = SparkSession.builder.remote("local[2]").config("spark.ui.enabled", "false").getOrCreate()
df = spark.readStream.schema("{SCHEMA}").option("maxFilesPerTrigger", 1).parquet(folder + "/in")
events = lc.disordered(df, time="ts", key="key", source="source", arrival="arrival", order="id", shards=2)
result = events.where("id >= 0").reorder("{LATENCY_US} us")
query = result.start(folder + "/out", checkpoint=folder + "/checkpoint", available_now=True)
query.awaitTermination()
assert query.exception() is None, query.exception()
seen = [counters for progress in query.recentProgress if (counters := lc.read_counters(progress))]
assert sum(batch["seen"] for batch in seen) == 600, seen
print("held", seen[-1]["held"])
"""


def test_a_stream_over_connect_gives_what_the_twin_gives(tmp_path: Path) -> None:
    events = make_events(600, seed=5)
    given, late = expected(events)
    write_in_parts(events, tmp_path / "in", 2)
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    with connect_port():
        run = subprocess.run(
            [sys.executable, "-c", PROGRAM, str(tmp_path)],
            env=environment,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
    if not hasattr(GroupedData, "transformWithStateInPandas"):
        assert "Spark Connect must have transformWithStateInPandas, as it does from 4.1 on" in run.stderr
        assert not (tmp_path / "checkpoint").exists()
        return
    assert run.returncode == 0, run.stderr[-4_000:]
    held = int(run.stdout.split("held")[1])
    assert sorted(pq.read_table(tmp_path / "out" / "late")["id"].to_pylist()) == late
    assert sorted(pq.read_table(tmp_path / "out" / "results")["id"].to_pylist()) == sorted(given[: len(given) - held])
