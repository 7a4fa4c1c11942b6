"""Two feeds, one of which lags, joined by plain Spark with both of its policies for watermarks, and by Latecomer.

The feeds are those of the preset `traffic`, in a few areas: sensors report at once, buses come up to 8 s late,
each feed in order by itself. A micro-batch is what came in 3 s. The question: which reports of buses and sensors in one
area are at most a second apart? Spark waits 2 s for late rows (withWatermark), with multipleWatermarkPolicy at min and
at max; Latecomer has a slack of 2 s. "waits": how far the watermark, or what was read, was behind the latest report.
When the files end, the last report still waits at Latecomer's gate: its two pairs are not found yet.
Run it with `.venv/bin/python examples/beside_watermark_policies.py`; it takes some minutes.
"""

import os
import tempfile
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import latecomer as lc

FEEDS, STEPS, STEP_US, AREAS, WITHIN = ("bus", "scats"), 20, 3_000_000, 8, "1 second"

folder = Path(tempfile.mkdtemp(prefix="latecomer-policies-"))
traffic = lc.preset("traffic", seconds=STEPS * STEP_US // 1_000_000).table().filter(pc.field("area") < AREAS)
START_US = pc.min(traffic["ts"].cast("int64")).as_py()
step = pc.divide(pc.subtract(traffic["arrival"].cast("int64"), START_US), STEP_US)
traffic = traffic.append_column("step", pc.min_element_wise(step, STEPS - 1))  # what comes after the end, with the last
for feed in FEEDS:
    (folder / feed).mkdir()
    for number in range(STEPS):
        file = folder / feed / f"{number:04}.parquet"
        rows = traffic.filter((pc.field("source") == feed) & (pc.field("step") == number))
        pq.write_table(rows.drop_columns(["source", "step"]), file)
        os.utime(file, (number, number))  # Spark takes the oldest file first

spark = lc.session("beside-watermark-policies")
schema = spark.read.parquet(str(folder / "bus")).schema


class Found(NamedTuple):
    """What came of a way to join: rows lost, pairs, those of them that are certain, and how far results wait."""

    lost: int
    pairs: int
    certain: int | None
    waits: float


def stream(feed: str) -> DataFrame:
    """A feed, a file to a micro-batch."""
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder / feed))


def joined(bus: DataFrame, scats: DataFrame) -> DataFrame:
    """The question, as Spark asks it."""
    near = f"b.ts BETWEEN s.ts - INTERVAL {WITHIN} AND s.ts + INTERVAL {WITHIN}"
    return bus.alias("b").join(scats.alias("s"), F.expr(f"b.area = s.area AND {near}"))


def with_policy(policy: str) -> Found:
    """Spark's own way."""
    spark.conf.set("spark.sql.streaming.multipleWatermarkPolicy", policy)
    pairs = joined(*(stream(feed).withWatermark("ts", "2 seconds") for feed in FEEDS))
    counts: dict[int, int] = {}
    writer = pairs.writeStream.foreachBatch(lambda rows, batch: counts.update({batch: rows.count()}))
    query = writer.option("checkpointLocation", str(folder / policy)).trigger(availableNow=True).start()
    query.awaitTermination()
    lost = sum(each["numRowsDroppedByWatermark"] for event in query.recentProgress for each in event["stateOperators"])
    marks = [datetime.fromisoformat(event["eventTime"]["watermark"]).timestamp() for event in query.recentProgress]
    ends = [(START_US + (number + 1) * STEP_US) / 1e6 for number in range(STEPS)]
    waits = max(end - mark for end, mark in zip(ends, marks[1:], strict=False))  # a batch's is that of the one before
    return Found(lost, sum(counts.values()), None, waits)


def with_latecomer(slack: str) -> Found:
    """Latecomer's way."""
    events = lc.disordered({feed: stream(feed) for feed in FEEDS}, time="ts", key="area", arrival="arrival")
    certain: dict[int, int] = {}
    sink = lambda rows, batch: certain.update({batch: rows.where("final").count()})  # noqa: E731
    result = events.join(*FEEDS, within=WITHIN, keep="1 minute").slack(slack)
    query = result.start(folder / "out", checkpoint=folder / "slack", sinks={"results": sink}, available_now=True)
    query.awaitTermination()
    batches = [counted for event in query.recentProgress if (counted := lc.read_counters(event))]
    lost = sum(each["late"] + each["dropped"] for each in batches)
    waits = max(each["mark_us"] - each["punctuation_us"] for each in batches) / 1e6
    return Found(lost, sum(each["given"] for each in batches), sum(certain.values()), waits)


wanted = joined(*(spark.read.parquet(str(folder / feed)) for feed in FEEDS)).count()
print(f"{traffic.num_rows:,} reports, {wanted:,} pairs in the sorted run")
print(f"{'':28}{'rows lost':>10}{'pairs found':>13}{'of all':>9}{'certain':>10}{'waits':>8}")
ways = {"withWatermark, policy min": "min", "withWatermark, policy max": "max", "Latecomer, slack 2 s": None}
for way, policy in ways.items():
    found = with_latecomer("2 s") if policy is None else with_policy(policy)
    certain = "" if found.certain is None else f"{found.certain / found.pairs:.0%}"
    line = f"{way:28}{found.lost:>10,}{found.pairs:>13,}{found.pairs / wanted:>9.2%}"
    print(f"{line}{certain:>10}{found.waits:>6.1f} s", flush=True)
