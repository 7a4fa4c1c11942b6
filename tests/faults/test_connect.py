"""The same calls over Spark Connect, in a process of their own, whose workers and server lack the package at first."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql.connect.group import GroupedData

from tests.faults.test_ship import LACKS
from tests.faults.workers import run_without_package
from tests.spark.streams import LATENCY_US, SCHEMA, expected, make_events, write_in_parts

PROGRAM = f"""
import sys
from pathlib import Path
from pyspark.sql import SparkSession
import latecomer as lc

folder = sys.argv[1]
spark = SparkSession.builder.remote("local[2]").config("spark.ui.enabled", "false").getOrCreate()

def reordered(df):
    events = lc.disordered(df, time="ts", key="key", source="source", arrival="arrival", order="id", shards=2)
    return events.where("id >= 0").reorder("{LATENCY_US} us")

batch = reordered(spark.read.schema("{SCHEMA}").parquet(folder + "/in"))
stream = reordered(spark.readStream.schema("{SCHEMA}").option("maxFilesPerTrigger", 1).parquet(folder + "/in"))

def start():
    return stream.start(folder + "/out", checkpoint=folder + "/checkpoint", available_now=True)

def refused():
    try:
        start()
    except lc.LatecomerError as error:
        print("refused:", error)

refused()
if Path(folder, "checkpoint").exists() or not hasattr(spark.range(1).groupBy("id"), "transformWithStateInPandas"):
    sys.exit()
lc.ship(spark)
print(batch.write(folder + "/batch")["given"])
refused()
Path(folder, "old", "latecomer").symlink_to(Path(lc.__file__).parent)
query = start()
query.awaitTermination()
assert query.exception() is None, query.exception()
seen = [counters for progress in query.recentProgress if (counters := lc.read_counters(progress))]
assert sum(batch["seen"] for batch in seen) == 600, seen
feeds = spark.read.schema("{SCHEMA}").parquet(folder + "/in").drop("source")
both = lc.disordered(
    {{"one": feeds, "two": feeds.drop("value")}}, time="ts", key="key", arrival="arrival", progress="merged", shards=2
)
counted = both.pass_through().write(sinks=dict.fromkeys(("results", "late", "quarantine"), lc.Discard()))
assert counted["given"] == 1_200, counted
assert lc.read_sources(counted).unseen == ()
print(seen[-1]["held"])
"""
SERVER = "Python of the Spark Connect server must be able to import latecomer for a stream; got "


def test_batches_and_streams_over_connect_give_what_the_twin_gives(tmp_path: Path) -> None:
    events = make_events(600, seed=5)
    given, late = expected(events)
    write_in_parts(events, tmp_path / "in", 2)
    lacking, *more = run_without_package(PROGRAM, tmp_path)
    if not hasattr(GroupedData, "transformWithStateInPandas"):
        assert "Spark Connect must have transformWithStateInPandas, as it does from 4.1 on" in lacking
        assert more == []
        return
    assert lacking.startswith(f"refused: {LACKS}")
    in_batch, server, held = more
    assert int(in_batch) == len(given)
    assert server.startswith(f"refused: {SERVER}")
    assert sorted(pq.read_table(tmp_path / "out" / "late")["id"].to_pylist()) == late
    results = sorted(pq.read_table(tmp_path / "out" / "results")["id"].to_pylist())
    assert results == sorted(given[: len(given) - int(held)])
