"""Windows with one latency beside Spark's own with a watermark, on the same micro-batches: the same rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

import latecomer as lc

BATCHES, ROWS, WAIT = 5, 60, "2 seconds"


def _batch(seed: int, number: int) -> pa.Table:
    """Five seconds of events a batch, in milliseconds as Spark's watermark; some up to 20 s late."""
    rng = np.random.default_rng([seed, number])
    late_ms = np.where(rng.random(ROWS) < 0.5, rng.integers(0, 20_000, ROWS), 0)
    ts_us = 1_767_225_600_000_000 + (number * 5_000 + rng.integers(0, 5_000, ROWS) - late_ms) * 1_000
    key = pa.array(rng.integers(0, 4, ROWS), pa.int32())
    return pa.table({"ts": pa.array(ts_us, pa.timestamp("us", "UTC")), "key": key, "id": np.arange(ROWS)})


KINDS: dict[str, tuple[Callable[[lc.Events], lc.Events], Callable[[], Column]]] = {
    "tumbling": (lambda e: e.tumbling("10 seconds"), lambda: F.window("ts", "10 seconds")),
    "hopping": (
        lambda e: e.hopping("20 seconds", "5 seconds", offset="2 seconds"),
        lambda: F.window("ts", "20 seconds", "5 seconds", "2 seconds"),
    ),
}


@pytest.mark.parametrize(("kind", "seed"), [("tumbling", 1), ("hopping", 2)])
def test_a_window_has_every_row_that_spark_keeps(spark: SparkSession, tmp_path: Path, kind: str, seed: int) -> None:
    """After each batch Spark runs one without data, in which it gives what we give at the end of the batch itself."""
    folder, (windows, sparks) = tmp_path / "in", KINDS[kind]
    folder.mkdir()
    pq.write_table(_batch(seed, 0), folder / "0.parquet")
    stream = spark.readStream.schema("ts timestamp, key int, id bigint").parquet(str(folder))
    events = windows(lc.disordered(stream, time="ts", key="key", shards=2))
    result = events.aggregate(lc.count(), lc.sum("id")).tiers(WAIT)
    mine = result.start(tmp_path / "out", checkpoint=tmp_path / "mine")
    theirs = (
        stream.withWatermark("ts", WAIT)
        .groupBy(sparks().alias("window"), "key")
        .agg(F.count("*").alias("count"), F.sum("id").alias("sum"))
        .writeStream.format("memory")
        .queryName(f"beside_{kind}")
        .start()
    )
    try:
        for number in range(BATCHES):
            if number:
                pq.write_table(_batch(seed, number), folder / f"{number}.parquet")
            mine.processAllAvailable()
            theirs.processAllAvailable()
    finally:
        mine.stop()
        theirs.stop()
    found = spark.read.parquet(str(tmp_path / "out" / "results"))
    wanted = spark.table(f"beside_{kind}").select("window.start", "window.end", "key", "count", "sum")
    assert _rows(found.select("window_start", "window_end", "key", "count", "sum_id")) == _rows(wanted)
    assert spark.read.parquet(str(tmp_path / "out" / "late")).count() > 0


def _rows(df: DataFrame) -> list[str]:
    return sorted(str(tuple(row)) for row in df.collect())
