"""A small disordered stream through the operator: meter readings, some late, some absurd, one meter silent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from latecomer.spark.counters import read_counters, total
from latecomer.spark.disordered import disordered
from latecomer.spark.session import session
from latecomer.spark.stream_files import age_by_name

SCHEMA = "ts timestamp, meter int, kwh double, received_at timestamp"
START_US = 1_760_000_000_000_000
LATENCY = "30 seconds"
BATCHES = 4


@dataclass(frozen=True)
class Demo:
    """Sizes of the run."""

    rows: int = 200_000
    seed: int = 7


@dataclass(frozen=True)
class DemoRun:
    """What went through which door, batch by batch."""

    batches: list[dict[str, int]]
    in_order: bool
    written: dict[str, int]

    @property
    def total(self) -> dict[str, int]:
        """All batches together."""
        return total(self.batches)


def run(settings: Demo, folder: Path, tell: Callable[[str], None]) -> DemoRun:
    """Write the readings, stream them through, and read every lane back."""
    tell("writing readings")
    write_readings(settings, folder / "readings")
    tell("starting Spark")
    spark = session()
    tell("streaming")
    readings = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder / "readings"))
    events = disordered(readings, time="ts", key="meter", arrival="received_at", max_ahead="1 hour")
    query = (
        events.where("kwh >= 0")
        .reorder(LATENCY)
        .start(str(folder / "out"), checkpoint=str(folder / "checkpoint"), available_now=True)
    )
    query.awaitTermination()
    batches = [counters for progress in query.recentProgress if (counters := read_counters(progress))]
    tell("reading the lanes back")
    return DemoRun(batches, _in_order(spark, folder), _written(spark, folder))


def write_readings(settings: Demo, folder: Path) -> None:
    """Readings in arrival order: one in ten some seconds late, one in a hundred minutes, a few without sense."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(settings.seed)
    count = settings.rows
    arrival_us = START_US + np.arange(count) * 1_000
    dice = rng.random(count)
    delay_us = np.where(dice < 0.10, rng.integers(0, 20_000_000, count), 0)
    delay_us = np.where(dice < 0.01, rng.integers(0, 600_000_000, count), delay_us)
    ts_us = np.where(dice > 0.9998, arrival_us + 400 * 86_400_000_000, arrival_us - delay_us)
    kwh = np.where(rng.random(count) < 0.02, -1.0, rng.gamma(2.0, 0.2, count).round(3))
    columns = {
        "ts": pa.array(ts_us, pa.timestamp("us", "UTC"), mask=(dice > 0.9996) & (dice <= 0.9998)),
        "meter": pa.array(rng.integers(0, 500, count), pa.int32()),
        "kwh": pa.array(kwh),
        "received_at": pa.array(arrival_us, pa.timestamp("us", "UTC")),
    }
    readings = pa.table(columns)
    size = -(-count // BATCHES)
    for number in range(BATCHES):
        pq.write_table(readings.slice(number * size, size), folder / f"{number}.parquet")
    age_by_name(folder)


def _in_order(spark: SparkSession, folder: Path) -> bool:
    """Whether, per shard, each result's time is at or after the one before."""
    last: dict[int, int] = {}
    for path in sorted((folder / "out" / "results").glob("batch=*"), key=lambda p: int(p.name.split("=")[1])):
        for shard, part in enumerate(sorted(path.rglob("part-*.parquet"))):
            ts_us = pq.read_table(part, columns=["ts"])["ts"].cast(pa.int64()).to_numpy()
            if len(ts_us) and (np.any(np.diff(ts_us) < 0) or ts_us[0] < last.get(shard, ts_us[0])):
                return False
            if len(ts_us):
                last[shard] = int(ts_us[-1])
    return True


def _written(spark: SparkSession, folder: Path) -> dict[str, int]:
    lanes = ("results", "late", "quarantine")
    return {lane: spark.read.parquet(str(folder / "out" / lane)).count() for lane in lanes}
