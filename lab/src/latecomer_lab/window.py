"""How fast windows are on Spark: ours against Spark's own, on both of its state stores; and how the cost grows.

The question is that of hourly meter readings: per key the largest and the smallest value over windows of two hours, one
every hour; every key has a reading an hour, one in twenty comes up to ten minutes late, and the latency, or Spark's
watermark, is eleven minutes. All paths read the same files in the same micro-batches in one run; a path's figure is
the median over its micro-batches after the first few. What they give is compared, window by window and key by key.
The cost of keys and of overlaps is measured on ours alone: time per event and result row, in rounds in which few and
many take turns; what counts is the median of the rounds' ratios.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

import latecomer as lc
from latecomer.errors import LatecomerError
from latecomer.report.shape import Report, Target
from latecomer.spark.counters import read_counters, total
from latecomer.spark.session import changed_settings
from latecomer_lab.files import scratch
from latecomer_lab.operator import OperatorBench, batch_seconds, discard, read_stream, to_nowhere, write_files

SHARDS = 2
HOUR_US = 3_600_000_000
LATE, LONGEST_US = 0.05, 600_000_000
WAIT = "11 minutes"
PER_HOUR = 20_000
FILLING = 3  # batches that do not count
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_STATE = "org.apache.spark.sql.execution.streaming.state."
KEYS = (1_000, 1_000_000)
OVERLAPS = (1, 60)


@dataclass(frozen=True)
class WindowBench:
    """Sizes of the run."""

    rows: int = 8_000_000
    batch: int = 800_000
    keys: int = 20_000
    rounds: int = 2
    warm: int = 1
    seed: int = 0

    def stream(self, keys: int | None = None) -> OperatorBench:
        """The rows to be read, with so many keys."""
        return OperatorBench(self.rows, self.batch, keys or self.keys, seed=self.seed)


Start = Callable[[DataFrame, str], StreamingQuery]


def run(settings: WindowBench, tell: Callable[[str], None]) -> Report:
    """Measure every path, round after round."""
    spark = lc.session()
    times: dict[str, list[float]] = {}
    report = Report("window", {**asdict(settings), "rows_per_hour": PER_HOUR, "wait": WAIT})
    with scratch() as folder:
        files = _files(Path(folder) / "compared", settings.stream())
        tell("comparing the results of all paths")
        report.settings["windows_compared"] = _compare(spark, files, Path(folder))
        paths = _paths()
        for number in range(1 - settings.warm, settings.rounds + 1):
            for name, start in paths.items():
                tell(f"round {number} of {settings.rounds}: {name}")
                query = start(read_stream(spark, files), f"{folder}/{name}-{number}")
                query.awaitTermination()
                if number > 0:  # those before warm the JVM up
                    times.setdefault(name, []).extend(batch_seconds(query)[FILLING:])
        costs = _costs(spark, settings, Path(folder), files, tell)
    return _finished(report, settings, times, costs)


def _files(folder: Path, stream: OperatorBench) -> Path:
    folder.mkdir()
    return write_files(folder, stream, SHARDS, LATE, LONGEST_US, HOUR_US // PER_HOUR, in_turn=True)


def _ours(df: DataFrame, size: str = "2 hours", advance: str = "1 hour") -> lc.Result:
    events = lc.disordered(df, time="ts", key="key", shards=SHARDS)
    return events.hopping(size, advance).aggregate(lc.max("value"), lc.min("value")).tiers(WAIT)


def _sparks(df: DataFrame) -> DataFrame:
    """The same with Spark's own windows."""
    windows = F.window("ts", "2 hours", "1 hour")
    found = df.withWatermark("ts", WAIT).groupBy(windows, "key").agg(F.max("value"), F.min("value"))
    return found.select("window.start", "window.end", "key", "max(value)", "min(value)")


def _start_sparks(store: str) -> Start:
    def start(df: DataFrame, checkpoint: str) -> StreamingQuery:
        changed = {PROVIDER: _STATE + store, "spark.sql.shuffle.partitions": str(SHARDS)}
        with changed_settings(df.sparkSession, changed):
            return to_nowhere(_sparks(df), checkpoint)

    return start


def _paths() -> dict[str, Start]:
    return {
        "latecomer": lambda df, at: _ours(df).start(**discard(at)),
        "spark, hdfs": _start_sparks("HDFSBackedStateStoreProvider"),
        "spark, rocksdb": _start_sparks("RocksDBStateStoreProvider"),
    }


def _compare(spark: SparkSession, files: Path, folder: Path) -> int:
    """Windows that ours and Spark's have both given must be equal; how many those are."""
    ours, theirs = folder / "ours", folder / "theirs"
    query = _ours(read_stream(spark, files)).start(ours, checkpoint=folder / "c1", available_now=True)
    query.awaitTermination()
    with changed_settings(spark, {"spark.sql.shuffle.partitions": str(SHARDS)}):
        writer = _sparks(read_stream(spark, files)).writeStream.option("checkpointLocation", str(folder / "c2"))
        writer.trigger(availableNow=True).format("parquet").start(str(theirs)).awaitTermination()
    names = ("start", "end", "key", "largest", "smallest")
    mine = spark.read.parquet(str(ours / "results")).drop("tier", "pane", "final", "batch").toDF(*names)
    other = spark.read.parquet(str(theirs)).toDF(*names)
    last = min(frame.agg(F.max("start")).collect()[0][0] for frame in (mine, other))
    mine, other = (frame.where(F.col("start") <= last) for frame in (mine, other))
    differing = mine.exceptAll(other).count() + other.exceptAll(mine).count()
    if differing:
        raise LatecomerError(f"{differing} windows differ from Spark's own; the bench is void")
    return mine.count()


def _costs(
    spark: SparkSession, settings: WindowBench, folder: Path, files: Path, tell: Callable[[str], None]
) -> dict[str, list[float]]:
    """Microseconds per event and result row, by round: with few and many keys, and windows of few and many advances."""
    paths: dict[str, tuple[Path, str]] = {}
    for keys in KEYS:
        paths[f"{keys} keys"] = _files(folder / f"keys-{keys}", settings.stream(keys)), "2 hours"
    for overlap in OVERLAPS:
        paths[f"{overlap} advances"] = files, f"{overlap} hours"
    found: dict[str, list[float]] = {name: [] for name in paths}
    for number in range(1 - settings.warm, settings.rounds + 1):
        for name, (path, size) in paths.items():
            tell(f"round {number} of {settings.rounds}: cost of {name}")
            cost = _cost(_ours(read_stream(spark, path), size), f"{folder}/cost-{name}-{number}")
            if number > 0:
                found[name].append(cost)
    return found


def ratio(many: list[float], few: list[float]) -> float:
    """The median over rounds of what many cost against what few cost in the same round."""
    return statistics.median(one / other for one, other in zip(many, few, strict=True))


def _cost(result: lc.Result, checkpoint: str) -> float:
    query = result.start(**discard(checkpoint))
    query.awaitTermination()
    counted = [read_counters(progress) for progress in query.recentProgress if progress["numInputRows"]]
    rows = total([each for each in counted[FILLING:] if each is not None])
    return 1e6 * sum(batch_seconds(query)[FILLING:]) / max(1, rows["seen"] + rows["given"])


def _finished(
    report: Report, settings: WindowBench, times: dict[str, list[float]], costs: dict[str, list[float]]
) -> Report:
    median = {name: statistics.median(values) for name, values in times.items()}
    for name, values in times.items():
        spread = f"{min(values):.2f}-{max(values):.2f} s"
        rate = round(settings.batch / median[name])
        report.results.append({"path": name, "batch_s": round(median[name], 3), "rows_per_s": rate, "spread": spread})
    for name, values in costs.items():
        spread = f"{min(values):.3f}-{max(values):.3f} us"
        report.results.append({"cost of": name, "us_per_row": round(statistics.median(values), 3), "spread": spread})
    ours = median["latecomer"]
    faster = min(median["spark, hdfs"], median["spark, rocksdb"])
    few, many = (costs[f"{keys} keys"] for keys in KEYS)
    short, long = (costs[f"{overlap} advances"] for overlap in OVERLAPS)
    of_keys, of_overlaps = round(ratio(many, few), 2), round(ratio(long, short), 2)
    report.targets = [
        Target("against the faster of Spark's own", round(faster / ours, 2), 2.0),
        Target("against Spark's own on RocksDB", round(median["spark, rocksdb"] / ours, 2), 6.0),
        Target(f"cost with {KEYS[1]:,} keys against {KEYS[0]:,}", of_keys, 2.0, at_least=False),
        Target(f"cost of {OVERLAPS[1]} advances against {OVERLAPS[0]}", of_overlaps, 1.5, at_least=False),
    ]
    return report
