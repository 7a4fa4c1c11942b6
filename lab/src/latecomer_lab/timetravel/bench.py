"""`latecomer bench timetravel`: the alerts of smart meters on Spark by time travel, by discarding and by waiting.

All paths read the same files in the same micro-batches in one run, round after round; a path's figure is the median
over its micro-batches, those of the first 40 days not counted where there are others: by then windows close on the path
that waits, and everything is held that will be. Before that, on a few meters with many faults, time travel and Spark's
own windows must give the same alerts. Light is an identity `mapInArrow` of the same rows.
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
from latecomer.disorder.presets.meters import Meters
from latecomer.errors import InputError, LatecomerError, must
from latecomer.report.shape import Report, Target
from latecomer.spark.session import changed_settings
from latecomer_lab.files import scratch
from latecomer_lab.operator import batch_seconds, discard
from latecomer_lab.timetravel import paths
from latecomer_lab.timetravel.forms import BOUND, BOUND_US, DAY_US

LEAST_BATCHES = 4
FILLING = 3  # batches that do not count if none lies after the bound
COMPARED_METERS, COMPARED_FAULTS = 50, 2.0  # faults per meter
LONG_ENOUGH_US = 7 * DAY_US  # after the bound: there must be an alert to compare by then
TRAVEL, DISCARDING, WAITING, LIGHT = "time travel", "discarding", "waiting", "light"

Tell = Callable[[str], None]
Start = Callable[[DataFrame, str], StreamingQuery]


@dataclass(frozen=True)
class TimeTravelBench:
    """Sizes of the run; a micro-batch has the readings of some days."""

    meters: int = 1_000
    days: int = 55
    batch_days: int = 7
    rounds: int = 3
    warm: int = 6  # batches go on getting faster for some 40 of them, and a round has eight
    seed: int = 0

    def __post_init__(self) -> None:
        if self.batches < LEAST_BATCHES:
            rule = f"leave {LEAST_BATCHES} micro-batches or more of {self.days} days"
            raise InputError(must("--batch-days", rule, self.batch_days, f"e.g. {max(1, self.days // 8)}"))

    @property
    def batches(self) -> int:
        """How many micro-batches there are."""
        return -(-self.days // self.batch_days)

    @property
    def stream(self) -> Meters:
        """The readings."""
        return Meters(self.meters, self.days, self.seed)

    @property
    def uncounted(self) -> int:
        """How many batches do not count: those that begin within the bound, or a few if that were all."""
        early = -(-BOUND_US // (self.batch_days * DAY_US))
        return early if early + 2 <= self.batches else FILLING


def run(settings: TimeTravelBench, tell: Tell) -> Report:
    """Every path, round after round."""
    report = Report("timetravel", {**asdict(settings), "bound": BOUND})
    with scratch() as name:
        folder, spark = Path(name), lc.session()
        tell("comparing time travel with Spark's own windows")
        report.settings["alerts_compared"] = _compare(spark, settings, folder)
        tell("making readings")
        files, readings = paths.write_days(settings.stream, folder / "readings", settings.batch_days)
        times = _speed(spark, settings, files, folder, tell)
    report.settings["readings"] = readings
    _add_speed(report, times, readings / settings.batches)
    return report


def _paths() -> dict[str, Start]:
    return {
        TRAVEL: lambda df, at: paths.time_travel(df).start(**discard(at)),
        DISCARDING: lambda df, at: paths.discarding(df).start(**discard(at)),
        WAITING: paths.start_waiting,
        LIGHT: paths.start_light,
    }


def _speed(
    spark: SparkSession, settings: TimeTravelBench, files: Path, folder: Path, tell: Tell
) -> dict[str, list[float]]:
    """The seconds of the micro-batches that count, by path; the rounds up to 0, which warm the JVM up, do not."""
    times: dict[str, list[float]] = {}
    for number in range(1 - settings.warm, settings.rounds + 1):
        for name, start in _paths().items():
            tell(f"round {number} of {settings.rounds}: {name}")
            query = start(paths.read_stream(spark, files), f"{folder}/{name}-{number}")
            query.awaitTermination()
            if number > 0:
                times.setdefault(name, []).extend(batch_seconds(query)[settings.uncounted :])
    return times


def _compare(spark: SparkSession, settings: TimeTravelBench, folder: Path) -> int:
    """Alerts that Spark's own windows have given must be those of time travel; how many those are."""
    beyond_us = settings.days * DAY_US - BOUND_US
    if beyond_us <= 0:  # none of them would close
        return 0
    meters = Meters(min(settings.meters, COMPARED_METERS), settings.days, settings.seed, faults=COMPARED_FAULTS)
    files, _ = paths.write_days(meters, folder / "compared", -(-settings.days // LEAST_BATCHES))
    sinks = {"changes": folder / "changes"}
    result = paths.time_travel(paths.read_stream(spark, files))
    result.start(folder / "ours", checkpoint=folder / "c1", sinks=sinks, available_now=True).awaitTermination()
    with changed_settings(spark, paths.sparks_settings()):
        stream = paths.waiting(paths.read_stream(spark, files)).writeStream.trigger(availableNow=True)
        query = stream.option("checkpointLocation", str(folder / "c2")).format("parquet").start(str(folder / "theirs"))
        query.awaitTermination()
    return _count_equal(spark, folder, long_enough=beyond_us > LONG_ENOUGH_US)


def _count_equal(spark: SparkSession, folder: Path, *, long_enough: bool) -> int:
    names = list(paths.ALERT_COLUMNS)
    ours = spark.read.parquet(str(folder / "changes")).groupBy(*names).agg(F.sum("change").alias("n")).where("n != 0")
    theirs = spark.read.schema(ours.select(names).schema).parquet(str(folder / "theirs"))
    last = theirs.agg(F.max("window_start")).collect()[0][0]
    if last is None:
        if long_enough:
            raise LatecomerError("Spark's own windows gave no alert to compare; the bench is void")
        return 0  # the stream is hardly longer than they wait
    mine, other = ours.where(F.col("window_start") <= last).select(names), theirs.select(names)
    differing = mine.exceptAll(other).count() + other.exceptAll(mine).count()
    if differing:
        raise LatecomerError(f"{differing} alerts differ from those of Spark's own windows; the bench is void")
    return mine.count()


def _add_speed(report: Report, times: dict[str, list[float]], batch: float) -> None:
    median = {name: statistics.median(values) for name, values in times.items()}
    for name, values in times.items():
        spread = f"{min(values):.2f}-{max(values):.2f} s"
        rate = round(batch / median[name])
        report.results.append({"path": name, "batch_s": round(median[name], 3), "rows_per_s": rate, "spread": spread})
    ours = median[TRAVEL]
    report.targets += [
        Target("throughput against discarding", round(median[DISCARDING] / ours, 2), 0.7),
        Target("throughput against Spark's own that waits", round(median[WAITING] / ours, 2), 5.0),
    ]
