"""`latecomer bench optimistic --spark`: whole queries, against what they are measured by.

All paths read the same files, in order of time, in the same micro-batches in one run, and take turns in every round. A
path's figure is the median over its micro-batches after the first few, of all rounds. The running sum of a user who
writes `transformWithStateInPandas` by key gets three micro-batches, since it takes half a minute for one.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

import pandas as pd
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle, TimerValues

import latecomer as lc
from latecomer.report.shape import Report, Target
from latecomer.spark.session import changed_settings
from latecomer.windows import RunningSum, Scan
from latecomer_lab.files import scratch
from latecomer_lab.operator import OperatorBench, batch_seconds, discard, read_stream, to_nowhere, tuned, write_files
from latecomer_lab.optimistic.sorted_fold import SortedFold

SHARDS, FILLING = 2, 3
SMALL_ROWS, SMALL_BATCHES = 2_000, 30
USER_BATCHES = 3
WAIT = "10 seconds"
WAIT_SMALL = "1 second"


@dataclass(frozen=True)
class SparkBench:
    """Rows in a micro-batch, micro-batches, keys, rounds, and rounds before them that do not count."""

    batch: int = 800_000
    batches: int = 8
    keys: int = 20_000
    rounds: int = 2
    warm: int = 1
    seed: int = 0


Start = Callable[[DataFrame, str], StreamingQuery]


def run(settings: SparkBench, tell: Callable[[str], None]) -> Report:
    """Measure every path, round after round."""
    spark, report = lc.session(), Report("optimistic on spark", asdict(settings))
    with scratch() as name:
        folder = Path(name)
        large = OperatorBench(settings.batch * settings.batches, settings.batch, settings.keys, seed=settings.seed)
        small = OperatorBench(SMALL_ROWS * SMALL_BATCHES, SMALL_ROWS, settings.keys, seed=settings.seed)
        times = _measure(spark, folder / "large", large, settings, _large_paths(), tell)
        times |= _measure(spark, folder / "small", small, settings, _small_paths(), tell)
        tell("transformWithStateInPandas by key")
        few = OperatorBench(settings.batch * USER_BATCHES, settings.batch, settings.keys, seed=settings.seed)
        query = _by_key(read_stream(spark, _files(folder / "few", few)), f"{folder}/by-key")
        query.awaitTermination()
        times[BY_KEY] = batch_seconds(query)[1:]
    return _finished(report, settings, times)


def _files(folder: Path, stream: OperatorBench) -> Path:
    folder.mkdir()
    return write_files(folder, stream, SHARDS, late=0.0)


def _measure(
    spark: SparkSession,
    folder: Path,
    stream: OperatorBench,
    settings: SparkBench,
    paths: dict[str, Start],
    tell: Callable[[str], None],
) -> dict[str, list[float]]:
    """The seconds of the micro-batches of each path."""
    files, times = _files(folder, stream), {name: list[float]() for name in paths}
    for number in range(1 - settings.warm, settings.rounds + 1):
        for name, start in paths.items():
            tell(f"round {number} of {settings.rounds}: {name}")
            query = start(read_stream(spark, files), f"{folder}/{name}-{number}")
            query.awaitTermination()
            if number > 0:  # those before warm the JVM up
                times[name] += batch_seconds(query)[FILLING:]
    return times


PLAIN, AT_ONCE, THREE, BY_KEY = "fold without history", "optimistic", "three steps", "transformWithStateInPandas"
SORTED, BARRIER = "reorder, then fold", "optimistic, with barrier"
SMALL_PASS, SMALL_AT_ONCE = "small batches: pass through", "small batches: changes"
SMALL_SORTED, SMALL_BARRIER = "small batches: reorder, then fold", "small batches: final"


def _events(df: DataFrame) -> lc.Events:
    return lc.disordered(df, time="ts", key="key", shards=SHARDS)


def _sums(df: DataFrame) -> Any:
    return _events(df).scan(lc.running_sum("value"))


def _fold(df: DataFrame, wait: str | None) -> lc.Result:
    return _events(df).apply(SortedFold(Scan(RunningSum("value")), wait))


def _three_steps(df: DataFrame) -> lc.Result:
    """Running sums by three keys, one after the other."""
    keyed = df.withColumn("area", F.col("key") % 1_000).withColumn("city", F.col("key") % 50)
    first = _events(keyed).scan(lc.running_sum("value").alias("one"))
    second = first.by("area").scan(lc.running_sum("one").alias("two"))
    return second.by("city").scan(lc.running_sum("two").alias("three")).optimistic("1 hour")


def _large_paths() -> dict[str, Start]:
    return {
        PLAIN: lambda df, at: _fold(df, None).start(**discard(at)),
        AT_ONCE: lambda df, at: _sums(df).optimistic("1 hour").start(**discard(at)),
        THREE: lambda df, at: _three_steps(df).start(**discard(at)),
        SORTED: lambda df, at: _fold(df, WAIT).start(**discard(at)),
        BARRIER: lambda df, at: _with_barrier(df, WAIT).start(**_final(at)),
    }


def _small_paths() -> dict[str, Start]:
    return {
        SMALL_PASS: lambda df, at: _events(df).pass_through().start(**discard(at)),
        SMALL_AT_ONCE: lambda df, at: _sums(df).optimistic("1 hour").start(**_with(at, "changes")),
        SMALL_SORTED: lambda df, at: _fold(df, WAIT_SMALL).start(**discard(at)),
        SMALL_BARRIER: lambda df, at: _with_barrier(df, WAIT_SMALL).start(**_final(at)),
    }


def _with_barrier(df: DataFrame, wait: str) -> lc.Result:
    result: lc.Result = _sums(df).optimistic(wait, barrier=True)
    return result


def _with(checkpoint: str, view: str) -> dict[str, Any]:
    """Take what is there, and write the lanes nowhere, with a view in place of the results."""
    given = discard(checkpoint)
    return {**given, "sinks": {**given["sinks"], "results": None, view: lc.Discard()}}


def _final(checkpoint: str) -> dict[str, Any]:
    return _with(checkpoint, "final")


def _by_key(df: DataFrame, checkpoint: str) -> StreamingQuery:
    """What a user writes: the running sum in a processor of each key, in order within a micro-batch."""
    schema = "ts timestamp, key int, value double, total double"
    given = df.groupBy("key").transformWithStateInPandas(RunningSums(), schema, "Append", "None")
    changed = {**tuned(df.sparkSession), "spark.sql.shuffle.partitions": str(SHARDS)}
    with changed_settings(df.sparkSession, changed):
        return to_nowhere(given, checkpoint)


class RunningSums(StatefulProcessor):
    """The running sum of one key; nothing is repaired."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._total = handle.getValueState("total", "total double")

    def handleInputRows(
        self, key: Any, rows: Iterator[pd.DataFrame] | Iterator[Row], timerValues: TimerValues
    ) -> Iterator[pd.DataFrame]:
        """Spark's call."""
        stored = self._total.get()
        frame = pd.concat(list(cast("Iterator[pd.DataFrame]", rows))).sort_values("ts")
        frame["total"] = frame["value"].cumsum() + (0.0 if stored is None else stored[0])
        self._total.update((float(frame["total"].iloc[-1]),))
        yield frame[["ts", "key", "value", "total"]]

    def close(self) -> None:
        pass


def _finished(report: Report, settings: SparkBench, times: dict[str, list[float]]) -> Report:
    median = {name: statistics.median(values) for name, values in times.items()}
    for name, values in times.items():
        rows = SMALL_ROWS if name.startswith("small") else settings.batch
        spread = f"{min(values):.2f}-{max(values):.2f} s"
        rate = round(rows / median[name])
        report.results.append({"path": name, "batch_s": round(median[name], 3), "rows_per_s": rate, "spread": spread})

    def most(name: str, one: str, other: str, times: float) -> Target:
        return Target(name, round(median[one] / median[other], 3), times, at_least=False)

    report.targets = [
        most("whole query in order against no history", AT_ONCE, PLAIN, 1.2),
        most("three steps against one", THREE, AT_ONCE, 2.5),
        Target("against transformWithStateInPandas by key", round(median[BY_KEY] / median[AT_ONCE], 1), 10.0),
        most("changes against pass through, small batches", SMALL_AT_ONCE, SMALL_PASS, 1.3),
        most("final against reorder, then fold, small batches", SMALL_BARRIER, SMALL_SORTED, 1.1),
        most("final against reorder, then fold", BARRIER, SORTED, 1.1),
    ]
    return report
