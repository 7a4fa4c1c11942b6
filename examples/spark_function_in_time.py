"""A query of Spark's own windows, not rewritten, at once and repaired when readings come days late.

Run it with `.venv/bin/python examples/spark_function_in_time.py`; it writes to a temporary folder.
"""

import tempfile

import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import latecomer as lc

folder = tempfile.mkdtemp(prefix="latecomer-example-")

# Five days of hourly readings of 20 meters. Some lose contact and send what they have kept when it is back.
readings = lc.preset("meters", meters=20, days=5, seed=1, faults=3.0, late=0.03).table()
for part in range(4):  # in the order of their arrival, a file a micro-batch
    rows = slice(len(readings) * part // 4, len(readings) * (part + 1) // 4)
    pq.write_table(readings[rows], f"{folder}/{part}.parquet")


def daily(rows: DataFrame) -> DataFrame:
    """What each meter used from hour to hour, and per day the most of it: as one writes it for a batch."""
    two_hours = rows.groupBy("meter", F.window("ts", "2 hours", "1 hour").alias("hours"))
    used = two_hours.agg((F.max("reading") - F.min("reading")).alias("used"))
    days = used.groupBy("meter", F.window(F.window_time("hours"), "1 day").alias("day"))
    return days.agg(F.max("used").alias("most"), F.sum("used").alias("total"))


spark = lc.session("spark-function-in-time")
batch = spark.read.parquet(f"{folder}/*.parquet")
stream = spark.readStream.schema(batch.schema).option("maxFilesPerTrigger", 1).parquet(f"{folder}/*.parquet")
events = lc.disordered(stream, time="ts", key="meter", arrival="arrival")
result = events.app(daily).timetravel("4 days", every="1 hour", trigger="eager")
result.explain()
query = result.start(
    f"{folder}/out",
    checkpoint=f"{folder}/checkpoint",
    sinks={"changes": f"{folder}/changes"},
    available_now=True,
)
query.awaitTermination()

changes = lc.read(spark, f"{folder}/changes")
print("\nDays as they were given, without waiting for late readings, and what replays changed:")
changes.groupBy("pane", "change").count().orderBy("pane", "change").show()
stands, late = lc.consolidate(changes), lc.read(spark, f"{folder}/out", "late")
final = lc.final_through(query)
print(f"Final up to {final:%Y-%m-%d %H:%M}; readings in the lane `late`: {late.count()}")

in_the_end = daily(batch.join(late.select("meter", "ts"), ["meter", "ts"], "left_anti"))
differing = stands.exceptAll(in_the_end).count()
print(f"{stands.count()} days have closed; {differing} of them differ from the function on all readings as a batch.")
