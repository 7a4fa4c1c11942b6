"""The ways to get the alerts on Spark: time travel, discarding what is late, and Spark's own windows that wait."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

import latecomer as lc
from latecomer.disorder.presets.meters import Meters
from latecomer.spark.session import PARTITIONS, PROVIDER, ROCKSDB, changed_settings
from latecomer.spark.stream_files import age_by_name
from latecomer_lab.operator import to_nowhere
from latecomer_lab.timetravel.application import EVERY, HOURS, KEY, SEASON, TIME, application
from latecomer_lab.timetravel.forms import BOUND
from latecomer_lab.timetravel.machines import COLUMNS
from latecomer_lab.timetravel.readings import days_arriving

SHARDS = 2
SCHEMA = "ts timestamp, arrival timestamp, meter int, reading bigint, fuse int"
ALERT_COLUMNS = ("window_start", KEY, "too_large", "negative", "pattern")


def write_days(meters: Meters, folder: Path, batch_days: int) -> tuple[Path, int]:
    """Readings in the order of arrival as files, two for the days of a micro-batch; and how many there are."""
    folder.mkdir(parents=True)
    days, count, number = days_arriving(meters), 0, 0
    while batch := list(islice(days, batch_days)):
        readings = pa.concat_tables(batch)
        middle = len(readings) // 2
        for half in (readings.slice(0, middle), readings.slice(middle)):
            pq.write_table(half, folder / f"{number:05d}.parquet")
            number += 1
        count += len(readings)
    age_by_name(folder)
    return folder, count


def read_stream(spark: SparkSession, files: Path) -> DataFrame:
    """The files as a stream."""
    return spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 2).parquet(str(files))


def time_travel(df: DataFrame) -> lc.Result:
    """Alerts at once, repaired when late readings come."""
    return _events(df).app(application()).timetravel(BOUND, every=EVERY, periodicity=SEASON)


def discarding(df: DataFrame) -> lc.Result:
    """Alerts of what is not late."""
    with warnings.catch_warnings():  # that it waits for less than a tick is the point
        warnings.simplefilter("ignore", lc.LatecomerWarning)
        return _events(df).app(application()).tiers("1 microsecond")


def _events(df: DataFrame) -> lc.Events:
    return lc.disordered(df, time=TIME, key=KEY, arrival="arrival", shards=SHARDS).select(*COLUMNS)


def waiting(df: DataFrame) -> DataFrame:
    """The same alerts by Spark's own windows, when the watermark has passed them."""
    readings = df.withWatermark(TIME, BOUND).groupBy(F.window(TIME, "2 hours", "1 hour"), KEY)
    hours = readings.agg(
        (F.max_by("reading", TIME) - F.min_by("reading", TIME)).alias("consumption"),
        F.count("*").alias("readings"),
        F.max("fuse").alias("fuse"),
    )
    bit = F.expr(f"shiftleft(1L, {_hour('window.start')})")
    marked = hours.where("readings = 2").select(
        F.window_time("window").alias("at"),
        KEY,
        F.when(F.expr("consumption > fuse"), bit).otherwise(F.lit(0)).alias("large"),
        F.when(F.expr("consumption < 0"), bit).otherwise(F.lit(0)).alias("negative"),
    )
    days = marked.groupBy(F.window("at", f"{HOURS} hours", "1 hour"), KEY)
    # The time of a window is its end less a microsecond, so these windows begin an hour after ours.
    sums = days.agg(F.sum("large").alias("large"), F.sum("negative").alias("negative")).select(
        (F.col("window.start") - F.expr("INTERVAL 1 HOUR")).alias("window_start"), KEY, "large", "negative"
    )
    turned = sums.select("window_start", KEY, _turned("large"), _turned("negative"))
    return turned.select(
        "window_start",
        KEY,
        F.expr("large & 1 > 0").alias("too_large"),
        F.expr("negative & 1 > 0").alias("negative"),
        F.expr("bit_count(large & (shiftleft(1L, length(bin(negative)) - 1) - 1))").cast("bigint").alias("pattern"),
    ).where("too_large OR negative OR pattern > 0")


def _hour(column: str) -> str:
    """The hour of the day, as SQL."""
    return f"CAST(unix_seconds({column}) DIV 3600 % {HOURS} AS INT)"


def _turned(column: str) -> Column:
    """Marks by their distance from the first hour of the window."""
    start = _hour("window_start")
    turned = f"(shiftright({column}, {start}) | shiftleft({column}, {HOURS} - {start})) & {(1 << HOURS) - 1}"
    return F.expr(turned).alias(column)


def start_light(df: DataFrame, checkpoint: str) -> StreamingQuery:
    """The speed of light: rows go to Python and back."""
    return to_nowhere(df.mapInArrow(_identity, SCHEMA), checkpoint)


def _identity(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def sparks_settings() -> dict[str, str]:
    """What a query of Spark's own windows is to be started with."""
    return {PROVIDER: ROCKSDB, PARTITIONS: str(SHARDS)}


def start_waiting(df: DataFrame, checkpoint: str) -> StreamingQuery:
    """Run Spark's own windows over what is there."""
    with changed_settings(df.sparkSession, sparks_settings()):
        return to_nowhere(waiting(df), checkpoint)
