"""Wait ten seconds for late meter readings, put all in order, write every lane, and show where each row went.

Run it with `.venv/bin/python examples/reorder_late_readings.py`; it writes to a temporary folder.
"""

import tempfile

from pyspark.sql import functions as F

import latecomer as lc

spark = lc.session("reorder-late-readings")
folder = tempfile.mkdtemp(prefix="latecomer-example-")

# A hundred seconds of readings; every seventh comes 20 seconds late, one has no time at all.
numbers = spark.range(0, 1_000, 1, 1)
arrival = F.timestamp_millis(F.lit(1_760_000_000_000) + F.col("id") * 100)
late_by = F.when(F.col("id") % 7 == 0, F.expr("INTERVAL 20 SECONDS")).otherwise(F.expr("INTERVAL 0 SECONDS"))
readings = numbers.select(
    F.when(F.col("id") != 500, arrival - late_by).alias("ts"),
    (F.col("id") % 10).cast("int").alias("meter"),
    (F.col("id") / 1_000).alias("kwh"),
    arrival.alias("received_at"),
)
readings.write.parquet(f"{folder}/readings")

stream = spark.readStream.schema(readings.schema).parquet(f"{folder}/readings")
events = lc.disordered(stream, time="ts", key="meter", arrival="received_at", max_ahead="1 hour")
result = events.where("kwh >= 0").reorder("10 seconds")
query = result.start(f"{folder}/out", checkpoint=f"{folder}/checkpoint", available_now=True)
query.awaitTermination()

for name, value in (lc.read_counters(query) or {}).items():
    print(f"{name:15} {value}")
spark.read.parquet(f"{folder}/out/late").orderBy("ts").show(3, truncate=False)
