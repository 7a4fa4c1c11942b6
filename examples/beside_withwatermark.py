"""One question, asked with Spark's withWatermark and with Latecomer: which readings are in the answers?

The readings are those of `latecomer demo`: 200,000 in four files, a file to a micro-batch. The question is how many
readings each meter had in every ten seconds, waiting 30 seconds for late ones. Spark's query is read in update mode and
the last answer of each window counts, so windows that are still open count too.

Run it with `.venv/bin/python examples/beside_withwatermark.py`; with the name of an SVG file it draws the picture too.
"""

import sys
import tempfile
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import latecomer as lc
from latecomer.spark.counters import total
from latecomer.spark.demo import SCHEMA, Demo, write_readings

ANSWERED, ASIDE, LOST = "in the answers", "set aside, with the reason", "gone without a word"

folder = Path(tempfile.mkdtemp(prefix="latecomer-beside-"))
readings_wanted = Demo()
write_readings(readings_wanted, folder / "readings")
spark = lc.session("beside-withwatermark")


def readings(files: int = 1) -> DataFrame:
    """The stream, so many files to a micro-batch."""
    return spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", files).parquet(str(folder / "readings"))


def with_watermark(df: DataFrame, name: str) -> dict[str, int]:
    """Spark's own way: what is behind the watermark is dropped."""
    counts = df.withWatermark("ts", "30 seconds").groupBy(F.window("ts", "10 seconds"), "meter").count()
    answers: dict[tuple[object, int], int] = {}

    def keep(rows: DataFrame, batch: int) -> None:
        answers.update({(row["window"]["start"], row["meter"]): row["count"] for row in rows.collect()})

    writer = counts.writeStream.outputMode("update").foreachBatch(keep).trigger(availableNow=True)
    writer.option("checkpointLocation", str(folder / name)).start().awaitTermination()
    answered = sum(answers.values())
    return {ANSWERED: answered, ASIDE: 0, LOST: readings_wanted.rows - answered}


def with_latecomer(*latencies: str) -> dict[str, int]:
    """Latecomer's way: what is later than the last latency is in the lane `late`."""
    events = lc.disordered(readings(), time="ts", key="meter", arrival="received_at", max_ahead="1 hour")
    result = events.tumbling("10 seconds").aggregate(lc.count()).tiers(*latencies)
    name = f"latecomer-{len(latencies)}"
    query = result.start(folder / f"{name}-out", checkpoint=folder / name, available_now=True)
    query.awaitTermination()
    counted = total([counters for event in query.recentProgress if (counters := lc.read_counters(event))])
    aside = counted["late"] + counted["quarantined"]
    return {ANSWERED: counted["accepted"], ASIDE: aside, LOST: counted["seen"] - counted["accepted"] - aside}


sane = "ts <= received_at + INTERVAL 1 HOUR"
found = {
    "withWatermark, 30 s": with_watermark(readings(), "spark"),
    "withWatermark, absurd times filtered": with_watermark(readings().where(sane), "spark-filtered"),
    "the same, all in one micro-batch": with_watermark(readings(4).where(sane), "spark-at-once"),
    "Latecomer, 30 s": with_latecomer("30 seconds"),
    "Latecomer, 30 s and 10 min": with_latecomer("30 seconds", "10 minutes"),
}
print(f"{'':38}{ANSWERED:>16}{'set aside':>11}{'gone':>9}")
for way, parts in found.items():
    print(f"{way:38}{parts[ANSWERED]:>16,}{parts[ASIDE]:>11,}{parts[LOST]:>9,}")
if len(sys.argv) > 1:
    from latecomer_lab.beside_picture import draw

    draw(found, Path(sys.argv[1]))
