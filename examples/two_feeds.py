"""Two live feeds, one of which lags: jams within a deadline, and how many were given before certainty.

Buses and road sensors report at once, but what buses say comes through a slow line: its lag rises from 0 to 4 seconds
and falls again, in 40 seconds. Congestion is where a bus stands and a sensor near it, within 2 seconds, counts many
cars. Results are to be written 8 seconds after the reports came. Micro-batches are part of that, the slack gets what
they leave. Where the machine is so busy that they take longer than the deadline, the slack goes down to 0, and after
ten of them a warning says which deadline is possible.

Run it with `.venv/bin/python examples/two_feeds.py`. It runs for 70 seconds after its first micro-batch, which takes
longer than others and leaves a backlog to the second, and writes to a temporary folder.
"""

import tempfile
import time
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import latecomer as lc

SECONDS, CYCLE, LARGEST_LAG, AREAS, TICK = 70, 40, 4, 20, 0.1

folder = tempfile.mkdtemp(prefix="latecomer-feeds-")
spark = lc.session("two-feeds")


def reports(a_second: int, lag: str) -> DataFrame:
    """Spark's own live source. A report comes when it says; what it tells of happened `lag` seconds before."""
    rows = spark.readStream.format("rate").option("rowsPerSecond", a_second).load()
    rows = rows.withColumnRenamed("timestamp", "received").withColumn("area", F.expr(f"cast(value % {AREAS} AS int)"))
    return rows.withColumn("ts", F.expr(f"timestamp_micros(unix_micros(received) - cast(1e6 * {lag} AS bigint))"))


def congested(pairs: pa.RecordBatch) -> pa.Array:
    """Where a bus stands in heavy traffic."""
    return pc.and_(pc.less(pairs["bus_speed"], 10), pc.greater(pairs["scats_flow"], 600))


place = f"(unix_micros(received) / 1e6 - {time.time()}) % {CYCLE} / {CYCLE}"  # in the cycle: 0 to 1
bus = reports(100, f"{2 * LARGEST_LAG} * least({place}, 1 - {place})")
bus = bus.select("ts", "received", "area", F.expr("cast(hash(value) & 63 AS int) AS speed"))
scats = reports(100, "0").select("ts", "received", "area", F.expr("cast(hash(value, 1) & 1023 AS int) AS flow"))

events = lc.disordered({"bus": bus, "scats": scats}, time="ts", key="area", arrival="received")
jams = events.join("bus", "scats", within="2 s", when=congested, keep="1 minute")
result = jams.slack(deadline="8 s")

query = result.start(f"{folder}/jams", checkpoint=f"{folder}/checkpoint", every="1 second")
print(f"{'latency':>9}{'bus behind':>12}{'slack':>9}{'reports read':>14}{'before certainty':>18}{'jams':>8}")
ends, shown, read, early, found = None, -1, 0, 0, 0
while query.isActive and (ends is None or time.time() < ends):
    time.sleep(0.5)
    for event in query.recentProgress:
        counted = lc.read_counters(event)
        if event["batchId"] <= shown or counted is None or counted["released"] == 0:
            continue
        done = datetime.fromisoformat(event["timestamp"]).timestamp() + event["durationMs"]["triggerExecution"] / 1e3
        latency = done - counted["oldest_tick"] * TICK  # of the report that came first of those read
        waits_for = lc.read_sources(event).waits_for
        behind = (waits_for.behind_us or 0) / 1e6 if waits_for else 0.0
        line = f"{latency:>7.1f} s{behind:>10.1f} s{counted['slack_us'] / 1e6:>7.1f} s{counted['released']:>14,}"
        print(f"{line}{counted['slack_ready']:>18,}{counted['given']:>8,}", flush=True)
        ends = ends or time.time() + SECONDS
        shown, found = event["batchId"], found + counted["given"]
        read, early = read + counted["released"], early + counted["slack_ready"]
query.stop()

print(f"\n{read:,} reports read, {early / max(read, 1):.1%} of them before certainty; {found:,} jams\n")
result.explain(query)
