"""Clicks per ad and minute: an answer after a second, a better one after ten, the complete one after a minute.

Run it with `.venv/bin/python examples/clicks_in_tiers.py`; it writes to a temporary folder.
"""

import tempfile

from pyspark.sql import functions as F

import latecomer as lc

spark = lc.session("clicks-in-tiers")
folder = tempfile.mkdtemp(prefix="latecomer-example-")

# Five minutes of clicks; every fifth comes 5 seconds late, every eleventh 40 seconds.
received = F.timestamp_millis(F.lit(1_760_000_040_000) + F.col("id") * 100)
late_by = F.when(F.col("id") % 11 == 0, 40).when(F.col("id") % 5 == 0, 5).otherwise(0)
clicks = spark.range(0, 3_000, 1, 1).select(
    F.timestamp_seconds(F.unix_micros(received) / 1_000_000 - late_by).alias("ts"),
    F.concat(F.lit("ad "), F.col("id") % 3).alias("ad"),
    received.alias("received"),
)
clicks.write.parquet(f"{folder}/clicks")

stream = spark.readStream.schema(clicks.schema).parquet(f"{folder}/clicks")
events = lc.disordered(stream, time="ts", key="ad", arrival="received")
result = events.tumbling("1 minute").aggregate(lc.count()).tiers("1 second", "10 seconds", "1 minute")
query = result.start(
    f"{folder}/out",
    checkpoint=f"{folder}/checkpoint",
    sinks={"changes": f"{folder}/changes"},
    available_now=True,
)
query.awaitTermination()

results = spark.read.parquet(f"{folder}/out/results").where("ad = 'ad 0'")
print("How many clicks on ad 0 each tier knew of, minute by minute (NULL: the stream stopped before):")
results.groupBy("window_start").pivot("tier", [1, 2, 3]).sum("count").orderBy("window_start").show()
print("What the second and third tier changed in the first minute:")
changes = spark.read.parquet(f"{folder}/changes").where("ad = 'ad 0'")
columns = ("window_start", "count", "change", "pane", "final", "tier")
changes.orderBy("window_start", "tier", "change").select(*columns).show(5)
