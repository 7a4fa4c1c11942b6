"""How fast rows cross the sharded operator, against the speed of light and against what a user would write.

All paths read the same Parquet files in the same micro-batches in one run. Light is an identity `mapInArrow` as
Spark comes, and `light_tuned` the same with the Arrow settings of our session; the
row-wise path is a `transformWithStateInPandas` that gives each row back; ours runs `.start` with all lanes. A path's
figure is the median over its micro-batches after the first two, over all rounds; a first round is not counted.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle, TimerValues

import latecomer as lc
from latecomer.report.shape import Report, Target
from latecomer.spark.compat import plain_file_manager
from latecomer.spark.session import FILE_MANAGER, changed_settings
from latecomer.spark.shards import shard_keys
from latecomer.spark.stream_files import age_by_name
from latecomer_lab.files import scratch

SCHEMA = "ts timestamp, key int, value double"
START_US = 1_700_000_000_000_000
WARM_UP = 2
SMALL_BATCH, SMALL_BATCHES = 2_000, 30
SPARK_ARROW = {  # Spark's defaults
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
    "spark.sql.execution.arrow.maxBytesPerBatch": str(64 * 2**20),
}


@dataclass(frozen=True)
class OperatorBench:
    """Sizes of the run."""

    rows: int = 8_000_000
    batch: int = 800_000
    keys: int = 20_000
    rounds: int = 2
    seed: int = 0

    @property
    def batches(self) -> int:
        """How many micro-batches there are."""
        return max(1, self.rows // self.batch)


def run(settings: OperatorBench, tell: Callable[[str], None]) -> Report:
    """Measure every path, round after round."""
    spark = lc.session()
    times: dict[str, list[float]] = {}
    with scratch() as folder:
        files = write_files(Path(folder), settings, shards=2)
        paths = _paths(spark, settings)
        for number in range(settings.rounds + 1):  # round 0 warms the JVM up and does not count
            for name in paths if number else ("light", "pass_through"):
                tell(f"round {number} of {settings.rounds}: {name}")
                query = paths[name](read_stream(spark, files), f"{folder}/checkpoint-{number}-{name}")
                query.awaitTermination()
                if number:
                    times.setdefault(name, []).extend(batch_seconds(query)[_skip(name, settings) :])
        times |= _stage_times(spark, Path(folder), settings, tell)
    return _report(settings, times)


def _stage_times(
    spark: SparkSession, folder: Path, settings: OperatorBench, tell: Callable[[str], None]
) -> dict[str, list[float]]:
    """What a stage more costs besides its rows: small micro-batches put in order, and counted by another key or not."""
    small = replace(settings, rows=SMALL_BATCHES * SMALL_BATCH, batch=SMALL_BATCH)
    (folder / "small").mkdir()
    files = write_files(folder / "small", small, shards=2)
    times: dict[str, list[float]] = {}
    for number in range(settings.rounds + 1):
        for name in ("one_stage", "two_stages"):
            tell(f"round {number} of {settings.rounds}: {name}")
            sorted_rows = _ours(read_stream(spark, files), 2).reorder("1 second")
            counted = sorted_rows.by("value").tumbling("1 hour").aggregate(lc.count()).tiers("1 ms")
            result = counted if name == "two_stages" else sorted_rows
            query = result.start(**discard(f"{folder}/checkpoint-{number}-{name}"))
            query.awaitTermination()
            if number:
                times.setdefault(name, []).extend(batch_seconds(query)[WARM_UP:])
    return times


def write_files(
    folder: Path,
    settings: OperatorBench,
    shards: int,
    late: float = 0.1,
    longest_us: int = 2_000_000,
    apart_us: int = 1_000,
    *,
    in_turn: bool = False,
) -> Path:
    """Rows evenly apart, a share of them up to `longest_us` late; several files make up a micro-batch.

    Their keys are drawn, or come in turn.
    """
    target = folder / "events"
    target.mkdir()
    rng = np.random.default_rng(settings.seed)
    size = settings.batch // shards
    for number in range(settings.batches * shards):
        position = np.arange(number * size, (number + 1) * size)
        delay = np.where(rng.random(size) < late, rng.integers(0, longest_us, size), 0)
        columns = {
            "ts": pa.array(START_US + position * apart_us - delay, pa.timestamp("us", "UTC")),
            "key": pa.array(position % settings.keys if in_turn else rng.integers(0, settings.keys, size), pa.int32()),
            "value": pa.array(rng.random(size)),
        }
        pq.write_table(pa.table(columns), target / f"{number:05d}.parquet")
    age_by_name(target)
    return target


def read_stream(spark: SparkSession, files: Path) -> DataFrame:
    """The files as a stream, two of them a micro-batch."""
    return spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 2).parquet(str(files))


Start = Callable[[DataFrame, str], StreamingQuery]


def _paths(spark: SparkSession, settings: OperatorBench) -> dict[str, Start]:
    shards = 2
    one, ten = (f"{int(share * settings.batch)} ms" for share in (0.4, 4.0))
    return {
        "light": lambda df, at: light(df, at, SPARK_ARROW),
        "light_tuned": lambda df, at: light(df, at, tuned(spark)),
        "pass_through": lambda df, at: _ours(df, shards).pass_through().start(**discard(at)),
        "row_wise": lambda df, at: _row_wise(df, at, shard_keys(spark, shards)),
        "hold_1": lambda df, at: _ours(df, shards).reorder(one).start(**discard(at)),
        "hold_10": lambda df, at: _ours(df, shards).reorder(ten).start(**discard(at)),
    }


def _ours(df: DataFrame, shards: int) -> lc.Events:
    return lc.disordered(df, time="ts", key="key", shards=shards)


def discard(checkpoint: str) -> dict[str, Any]:
    """Take what is there, and write the lanes nowhere."""
    sinks = dict.fromkeys(("results", "late", "quarantine"), lc.Discard())
    return {"checkpoint": checkpoint, "sinks": sinks, "available_now": True}


def tuned(spark: SparkSession) -> dict[str, str]:
    """What .start sets for flat rows and a local checkpoint."""
    return {"spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1), FILE_MANAGER: plain_file_manager(spark)}


def light(df: DataFrame, checkpoint: str, settings: dict[str, str]) -> StreamingQuery:
    """The speed of light: rows go to Python and back."""
    with changed_settings(df.sparkSession, settings):
        return to_nowhere(df.mapInArrow(_identity, SCHEMA), checkpoint)


def _identity(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def _row_wise(df: DataFrame, checkpoint: str, keys: tuple[int, ...]) -> StreamingQuery:
    place = F.pmod(F.xxhash64("key"), F.lit(len(keys))).cast("int") + 1
    shard = F.element_at(F.array(*[F.lit(key) for key in keys]), place)
    rows = df.withColumn("shard", shard).groupBy("shard")
    given = rows.transformWithStateInPandas(RowWise(), SCHEMA, "Append", "None")
    with changed_settings(df.sparkSession, tuned(df.sparkSession)):
        return to_nowhere(given, checkpoint)


class RowWise(StatefulProcessor):
    """Gives each row back and counts them, as a user's first processor would."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._count = handle.getValueState("count", "n bigint")

    def handleInputRows(
        self, key: Any, rows: Iterator[pd.DataFrame] | Iterator[Row], timerValues: TimerValues
    ) -> Iterator[pd.DataFrame]:
        """Spark's call."""
        stored = self._count.get()
        count = 0 if stored is None else stored[0]
        for frame in cast("Iterator[pd.DataFrame]", rows):
            count += len(frame)
            yield frame[["ts", "key", "value"]]
        self._count.update((count,))

    def close(self) -> None:
        pass


def to_nowhere(df: DataFrame, checkpoint: str) -> StreamingQuery:
    """Run a plain stream over what is there."""
    writer = df.writeStream.format("noop").option("checkpointLocation", checkpoint)
    return writer.trigger(availableNow=True).start()


def batch_seconds(query: StreamingQuery) -> list[float]:
    """How long each micro-batch with rows took."""
    return [
        progress["durationMs"]["triggerExecution"] / 1_000
        for progress in query.recentProgress
        if progress["numInputRows"]
    ]


def _skip(name: str, settings: OperatorBench) -> int:
    """Batches that do not count: the first two, and for the holding paths those that fill what is held."""
    return settings.batches // 2 if name.startswith("hold") else WARM_UP


def _report(settings: OperatorBench, times: dict[str, list[float]]) -> Report:
    report = Report("operator", asdict(settings))
    median = {name: statistics.median(values) for name, values in times.items()}
    for name, values in times.items():
        rate = (SMALL_BATCH if name.endswith(("_stage", "_stages")) else settings.batch) / median[name]
        spread = f"{min(values):.2f}-{max(values):.2f} s"
        row = {"path": name, "batch_s": round(median[name], 3), "rows_per_s": round(rate), "spread": spread}
        report.results.append(row)
    light = median["light"] / median["pass_through"]
    tuned = median["light_tuned"] / median["pass_through"]
    rows = median["row_wise"] / median["pass_through"]
    held = median["hold_10"] / median["hold_1"]
    stage = median["two_stages"] - median["one_stage"]
    report.settings["pass_through_to_light_tuned"] = round(tuned, 3)
    report.targets = [
        Target("pass-through against identity mapInArrow", round(light, 3), 0.4),
        Target("pass-through against row-wise", round(rows, 2), 2.5),
        Target("batch time when holding ten times as much", round(held, 3), 1.3, at_least=False),
        Target("seconds a micro-batch for a stage more", round(stage, 3), 0.35, at_least=False),
    ]
    return report
