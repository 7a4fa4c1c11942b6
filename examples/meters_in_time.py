"""Alerts on smart meters at once, repaired when readings come days late.

Run it with `.venv/bin/python examples/meters_in_time.py`; it writes to a temporary folder.
"""

import tempfile

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import functions as F

import latecomer as lc

folder = tempfile.mkdtemp(prefix="latecomer-example-")

# Ten days of hourly readings of 50 meters. Some lose contact and send what they have kept when it is back.
readings = lc.preset("meters", meters=50, days=10, seed=1, faults=3.0, late=0.03).table()
pq.write_table(readings, f"{folder}/readings.parquet")

# Written for readings in order: what a meter used from one hour to the next, and whether that can be.
time = ("window_start", pa.timestamp("us", "UTC"))
used = pa.schema([time, ("meter", pa.int32()), ("used", pa.int64()), ("fuse", pa.int32())])


def consumption(rows: pa.RecordBatch) -> pa.RecordBatch:
    """What was used, where both readings are there."""
    rows = rows.filter(pc.equal(rows["count"], 2))
    difference = pc.subtract(rows["last_reading"], rows["first_reading"])
    return pa.RecordBatch.from_arrays([rows["window_start"], rows["meter"], difference, rows["fuse"]], schema=used)


def impossible(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Days in which a meter ran backwards, or used more in an hour than its fuse lets through."""
    return rows.filter(pc.or_(pc.less(rows["least"], 0), pc.greater(rows["most"], rows["fuse"])))


day = pa.schema([time, ("window_end", time[1]), ("meter", pa.int32())])
numbers = pa.schema([("least", pa.int64()), ("most", pa.int64()), ("fuse", pa.int32())])
hourly = (lc.first("reading"), lc.last("reading"), lc.count(), lc.max("fuse").alias("fuse"))
daily = (lc.min("used").alias("least"), lc.max("used").alias("most"), lc.max("fuse").alias("fuse"))
chain = lc.Chain(
    lc.WindowAggregation(lc.Window("2 hours", "1 hour"), hourly),
    lc.Step(consumption, used),
    lc.WindowAggregation(lc.Window("1 day"), daily),
    lc.Step(impossible, pa.schema([*day, *numbers])),
)

spark = lc.session("meters-in-time")
stream = spark.readStream.schema(spark.read.parquet(f"{folder}/readings.parquet").schema).parquet(f"{folder}/*.parquet")
events = lc.disordered(stream, time="ts", key="meter", arrival="arrival")
result = events.app(chain).timetravel("7 days", every="1 hour")
result.explain()
query = result.start(
    f"{folder}/out",
    checkpoint=f"{folder}/checkpoint",
    sinks={"changes": f"{folder}/changes"},
    available_now=True,
)
query.awaitTermination()

alerts = spark.read.parquet(f"{folder}/changes").withColumn("day", F.to_date("window_start"))
columns = ("day", "meter", "least", "most", "fuse", "change")
print("\nAlerts as they were given, without waiting for late readings:")
alerts.where("pane = 'on_time'").orderBy("day", "meter").select(*columns).show(8)
print("What replays changed: alerts that late readings brought (1), and others in place of void ones (-1, 1):")
alerts.where("pane = 'revised'").orderBy("day", "meter", "change").select(*columns).show()
