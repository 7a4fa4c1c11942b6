"""How fast `reorder` is on Spark, against the speed of light; and what steps before the sort bring there.

The stream is that of `bench operator` with one row in a hundred up to 48 hours late, and the latency is half a
micro-batch, so half a batch is held and most of the late rows go to the lane `late`. Light is an identity
`mapInArrow` as Spark comes, `light_tuned` the same with the Arrow settings that `.start` uses. The plans write the
lane `results` alone, and do a step either after the sort or before it (Figure 9 of the Impatience paper, on Spark).
"""

from __future__ import annotations

import statistics
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

import latecomer as lc
from latecomer.report.shape import Report, Target
from latecomer.spark.counters import read_counters, total, unaccounted
from latecomer.spark.session import settings_for_start
from latecomer_lab.files import scratch
from latecomer_lab.operator import (
    SPARK_ARROW,
    OperatorBench,
    batch_seconds,
    discard,
    light,
    read_stream,
    to_nowhere,
    tuned,
    write_files,
)

SHARDS = 2
LATE, LONGEST_US = 0.01, 48 * 3_600_000_000
FILLING = 3  # batches that do not count: what is held grows in them


@dataclass(frozen=True)
class ReorderBench:
    """Sizes of the run."""

    rows: int = 8_000_000
    batch: int = 800_000
    rounds: int = 2
    warm: int = 3
    seed: int = 0

    @property
    def latency(self) -> str:
        """Rows come a millisecond apart: this holds half a batch."""
        return f"{self.batch // 2} ms"


Start = Callable[[DataFrame, str], StreamingQuery]


def run(settings: ReorderBench, tell: Callable[[str], None]) -> Report:
    """Measure every path, round after round."""
    spark = lc.session()
    stream = OperatorBench(settings.rows, settings.batch, seed=settings.seed)
    paths, times = {**_paths(settings), **_plans(settings)}, dict[str, list[float]]()
    counted: dict[str, int] = {}
    with scratch() as folder:
        files = write_files(Path(folder), stream, SHARDS, LATE, LONGEST_US)
        for number in range(1 - settings.warm, settings.rounds + 1):
            counts = number > 0  # the rounds up to 0 warm the JVM up, which goes on compiling for about 30 batches
            for name in paths if counts else ("light", "reorder"):
                tell(f"round {number} of {settings.rounds}: {name}")
                query = paths[name](read_stream(spark, files), f"{folder}/checkpoint-{number}-{name}")
                query.awaitTermination()
                if counts:
                    times.setdefault(name, []).extend(batch_seconds(query)[FILLING:])
                if name == "reorder":
                    batches = [read_counters(progress) for progress in query.recentProgress]
                    counted = total([batch for batch in batches if batch is not None])
    return _report(settings, times, counted)


def _paths(settings: ReorderBench) -> dict[str, Start]:
    return {
        "light": lambda df, at: light(df, at, SPARK_ARROW),
        "light_tuned": lambda df, at: light(df, at, tuned(df.sparkSession)),
        "reorder": lambda df, at: _declared(df).reorder(settings.latency).start(**discard(at)),
    }


def _plans(settings: ReorderBench) -> dict[str, Start]:
    """Each step after the sort and before it."""
    wait, minute = settings.latency, F.window("ts", "1 minute").start.alias("window_start")
    plans: dict[str, Callable[[lc.Events], DataFrame]] = {
        "sort, then filter": lambda events: events.reorder(wait).results.where("value < 0.1"),
        "filter, then sort": lambda events: events.where("value < 0.1").reorder(wait).results,
        "sort, then select": lambda events: events.reorder(wait).results.select("ts"),
        "select, then sort": lambda events: events.select("ts").reorder(wait).results,
        "sort, then window": lambda events: events.reorder(wait).results.select(minute, "key", "value"),
        "window, then sort": lambda events: (
            events.tumbling("1 minute").select("window_start", "key", "value").reorder(wait).results
        ),
    }
    return {name: _start(plan) for name, plan in plans.items()}


def _start(plan: Callable[[lc.Events], DataFrame]) -> Start:
    def start(df: DataFrame, checkpoint: str) -> StreamingQuery:
        with settings_for_start(df.sparkSession, SHARDS, flat=True, local=True), warnings.catch_warnings():
            warnings.simplefilter("ignore", lc.LatecomerWarning)
            return to_nowhere(plan(_declared(df)), checkpoint)

    return start


def _declared(df: DataFrame) -> lc.Events:
    return lc.disordered(df, time="ts", key="key", shards=SHARDS)


def _report(settings: ReorderBench, times: dict[str, list[float]], counted: dict[str, int]) -> Report:
    report = Report("reorder", {**asdict(settings), "latency": settings.latency})
    median = {name: statistics.median(values) for name, values in times.items()}
    for name, values in times.items():
        spread = f"{min(values):.2f}-{max(values):.2f} s"
        rate = round(settings.batch / median[name])
        report.results.append({"path": name, "batch_s": round(median[name], 3), "rows_per_s": rate, "spread": spread})
    gains = {}
    for step in ("filter", "select", "window"):
        gains[step] = round(median[f"sort, then {step}"] / median[f"{step}, then sort"], 2)
    report.settings["end_to_end_gain_of_a_step_before_the_sort"] = gains
    report.settings["reorder_to_light_tuned"] = round(median["light_tuned"] / median["reorder"], 3)
    report.settings["counters"] = {name: counted[name] for name in ("seen", "late", "given", "held", "runs")}
    report.targets = [
        Target("reorder against identity mapInArrow", round(median["light"] / median["reorder"], 3), 0.4),
        Target("rows that left through no door", unaccounted(counted), 0, at_least=False),
    ]
    return report
