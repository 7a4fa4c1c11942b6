"""TinTiN's evaluation: the alerts of smart meters by time travel, by discarding what is late, and by waiting for it.

On Spark all paths read the same files in the same micro-batches in one run, round after round; a path's figure is the
median over its micro-batches, those of the first 40 days not counted where there are others: by then windows close on
the path that waits, and everything is held that will be. Before that, on a few meters with many faults, time travel and
Spark's own windows must give the same alerts.

Without Spark, once: every form of time travel against the sorted run, an hour of arrivals at a time; and how soon late
readings are replayed, on fewer meters and a quarter of an hour at a time.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

import latecomer as lc
from latecomer.contract import Settings
from latecomer.disorder.presets import preset
from latecomer.durations import duration_us
from latecomer.errors import InputError, LatecomerError, must
from latecomer.events import Int64s, int64_view
from latecomer.quality import SHARES, classify, logical_latencies, percentiles, responsiveness
from latecomer.spark.session import changed_settings
from latecomer.tiers import Ordered
from latecomer.timetravel import EAGER, LAZY, Period, TimeTravel
from latecomer_lab.files import scratch
from latecomer_lab.operator import batch_seconds, discard
from latecomer_lab.report import Report, Target
from latecomer_lab.timetravel import paths
from latecomer_lab.timetravel.application import EVERY, HOUR_US, SEASON, TIME, application
from latecomer_lab.timetravel.machines import RESULTS, Followed, follow, in_order, pieces

LEAST_BATCHES = 4
FILLING = 3  # batches that do not count if none lies after the bound
WAITING_HOLDS = 1_920  # tuples per meter: 40 days of hours in two windows each
COMPARED_METERS, COMPARED_FAULTS = 50, 2.0  # faults per meter
ANSWERED_METERS = 100
LONG_ENOUGH_US = 7 * 24 * HOUR_US  # after the bound: there must be an alert to compare by then

Tell = Callable[[str], None]
Start = Callable[[DataFrame, str], StreamingQuery]


@dataclass(frozen=True)
class TimeTravelBench:
    """Sizes of the run."""

    meters: int = 1_000
    days: int = 55
    batch: int = 140_000
    rounds: int = 3
    warm: int = 6  # batches go on getting faster for some 40 of them, and a round has eight
    seed: int = 0

    def readings(self, meters: int | None = None, **settings: Any) -> pa.Table:
        """Readings in the order of arrival."""
        size = {"meters": meters or self.meters, "days": self.days, "seed": self.seed}
        return preset("meters", **size, **settings).table().combine_chunks()


def run(settings: TimeTravelBench, tell: Tell) -> Report:
    """Everything: speed on Spark, then the quality of the results."""
    tell("making readings")
    readings = settings.readings()
    batches = len(readings) // settings.batch
    if batches < LEAST_BATCHES:
        rule = f"leave {LEAST_BATCHES} micro-batches or more of {len(readings):,} readings"
        raise InputError(must("--batch", rule, settings.batch, f"e.g. --batch {max(1, len(readings) // 20)}"))
    report = Report("timetravel", {**asdict(settings), "readings": len(readings), "bound": paths.BOUND})
    with scratch() as folder:
        spark = lc.session()
        tell("comparing time travel with Spark's own windows")
        report.settings["alerts_compared"] = _compare(spark, settings, Path(folder))
        times = _speed(spark, settings, readings, batches, Path(folder), tell)
    _add_speed(report, times, len(readings) / batches)
    _add_quality(report, settings, readings, tell)
    _add_answers(report, settings, tell)
    return report


def _paths() -> dict[str, Start]:
    return {
        "time travel": lambda df, at: paths.time_travel(df).start(**discard(at)),
        "discarding": lambda df, at: paths.discarding(df).start(**discard(at)),
        "waiting": paths.start_waiting,
    }


def _speed(
    spark: SparkSession, settings: TimeTravelBench, readings: pa.Table, batches: int, folder: Path, tell: Tell
) -> dict[str, list[float]]:
    """The seconds of the micro-batches that count, by path; the rounds up to 0, which warm the JVM up, do not."""
    files = paths.write_readings(readings, folder / "readings", batches)
    skipped = _uncounted(readings, batches)
    times: dict[str, list[float]] = {}
    starts = _paths()
    for number in range(1 - settings.warm, settings.rounds + 1):
        for name, start in starts.items():
            tell(f"round {number} of {settings.rounds}: {name}")
            query = start(paths.read_stream(spark, files), f"{folder}/{name}-{number}")
            query.awaitTermination()
            if number > 0:
                times.setdefault(name, []).extend(batch_seconds(query)[skipped:])
    return times


def _uncounted(readings: pa.Table, batches: int) -> int:
    """How many batches do not count: those that begin within the bound, or a few if that were all."""
    arrival_us = int64_view(readings["arrival"].combine_chunks())
    begins_us = arrival_us[np.arange(batches) * len(readings) // batches] - arrival_us[0]
    early = int((begins_us < duration_us(paths.BOUND, "bound")).sum())
    return early if early + 2 <= batches else FILLING


def _compare(spark: SparkSession, settings: TimeTravelBench, folder: Path) -> int:
    """Alerts that Spark's own windows have given must be those of time travel; how many those are."""
    beyond_us = settings.days * 24 * HOUR_US - duration_us(paths.BOUND, "bound")
    if beyond_us <= 0:  # none of them would close
        return 0
    meters = min(settings.meters, COMPARED_METERS)
    readings = settings.readings(meters, faults=COMPARED_FAULTS)
    files = paths.write_readings(readings, folder / "compared", LEAST_BATCHES)
    sinks = {"changes": folder / "changes"}
    result = paths.time_travel(paths.read_stream(spark, files))
    result.start(folder / "ours", checkpoint=folder / "c1", sinks=sinks, available_now=True).awaitTermination()
    with changed_settings(spark, paths.sparks_settings()):
        stream = paths.waiting(paths.read_stream(spark, files)).writeStream.trigger(availableNow=True)
        query = stream.option("checkpointLocation", str(folder / "c2")).format("parquet").start(str(folder / "theirs"))
        query.awaitTermination()
    names = list(paths.ALERT_COLUMNS)
    ours = spark.read.parquet(str(folder / "changes")).groupBy(*names).agg(F.sum("change").alias("n")).where("n != 0")
    theirs = spark.read.schema(ours.select(names).schema).parquet(str(folder / "theirs"))
    last = theirs.agg(F.max("window_start")).collect()[0][0]
    if last is None:
        if beyond_us > LONG_ENOUGH_US:
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
    ours = median["time travel"]
    report.targets += [
        Target("throughput against discarding", round(median["discarding"] / ours, 2), 0.6),
        Target("throughput against Spark's own that waits", round(median["waiting"] / ours, 2), 5.0),
    ]


def _forms() -> dict[str, Settings]:
    chain, every = application(), Period(EVERY)
    return {
        "discarding": Ordered(("1 microsecond",), chain),
        "waiting": Ordered((paths.BOUND,), chain),
        LAZY: TimeTravel(chain, paths.BOUND, every, periodicity=SEASON),
        EAGER: TimeTravel(chain, paths.BOUND, every, EAGER, SEASON),
        "fresh": TimeTravel(chain, paths.BOUND, every, periodicity=SEASON, shifted=False),
    }


def _add_quality(report: Report, settings: TimeTravelBench, readings: pa.Table, tell: Tell) -> None:
    """Classes of results, logical latency, and what is held, in every form."""
    tell("without Spark: the sorted run")
    truth = follow(_forms()["discarding"], pieces(in_order(readings), HOUR_US))
    report.settings["alerts"] = len(truth.given)
    report.results.append(_delays("latency", "sorted", logical_latencies(truth.given, truth.given, RESULTS)))
    for name, form in _forms().items():
        tell(f"without Spark: {name}")
        found = follow(form, pieces(readings, HOUR_US))
        report.settings["late_readings"] = len(found.late)
        report.results.append(_row(name, found, truth.given, settings.meters))
        report.results.append(_delays("latency", name, logical_latencies(found.given, truth.given, RESULTS)))
        if name in (LAZY, EAGER):
            report.targets += _targets(name, report.results[-2])


def _row(name: str, found: Followed, truth: pa.Table, meters: int) -> dict[str, Any]:
    """One form: its classes, counted before replays that change nothing are left out, and what it holds."""
    classes = classify(found.given, truth, RESULTS)._asdict()
    classes["duplicate"] += found.repeated
    held = {} if name == "discarding" else {"held": found.most_held, "less": WAITING_HOLDS * meters / found.most_held}
    rounded = {key: round(value, 1) for key, value in held.items()}
    return {"form": name, **classes, "refused": found.refused, **rounded, "cpu_s": round(found.seconds, 1)}


def _targets(name: str, row: dict[str, Any]) -> list[Target]:
    figures = {"omitted": "omitted", "different in the end": "different_left", "spurious in the end": "spurious_left"}
    return [Target(f"{name}: {words}", row[key], 0, at_least=False) for words, key in figures.items()]


def _add_answers(report: Report, settings: TimeTravelBench, tell: Tell) -> None:
    """How soon late readings are replayed: the last result that each touches, told of every hour and every time."""
    meters, chain = min(settings.meters, ANSWERED_METERS), application(alerts_only=False)
    readings = settings.readings(meters)
    for trigger in (LAZY, EAGER):
        tell(f"without Spark: how soon {trigger} replays")
        form = TimeTravel(chain, paths.BOUND, Period(EVERY), trigger, SEASON, retract=False)
        found = follow(form, pieces(readings, HOUR_US // 4))
        for what, first in (("first answer", True), ("answer", False)):
            late, replayed = found.late, found.replayed
            delays_us = responsiveness(late, replayed, RESULTS, form.reach.us, late_time=TIME, first=first)
            report.results.append(_delays(what, trigger, delays_us))


def _delays(what: str, form: str, delays_us: Int64s) -> dict[str, Any]:
    """Percentiles in hours."""
    hours = percentiles(delays_us, HOUR_US)
    return {"delay": what, "form": form, "count": len(delays_us)} | {
        f"p{share}_h": value for share, value in zip(SHARES, hours, strict=True)
    }
