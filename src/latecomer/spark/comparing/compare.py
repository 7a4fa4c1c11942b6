"""Run one stream through several ways on Spark.

A row that a way gives has the mark after its micro-batch. Seconds are those of Spark's micro-batches, without the first
two of each query, in which code is compiled; quality does not depend on them.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from latecomer.errors import InputError, must
from latecomer.spark.comparing.judge import Compared, Comparison, Judge, Speed
from latecomer.spark.comparing.recorded import MOST_ON_SPARK
from latecomer.spark.comparing.ways import Asked, Way, start_way
from latecomer.spark.counters import read_counters
from latecomer.spark.session import session

WARM_UP = 2  # micro-batches that do not count in seconds


def compare_ways(
    spark: SparkSession | None, asked: Asked, ways: Sequence[Way], folder: Path, tell: Callable[[str, int], None]
) -> Comparison:
    """Run every way, one after the other, on the same files, in a session of ours if none is given."""
    if asked.stream.batches > MOST_ON_SPARK:
        advice = "give fewer, or a longer trigger; engine python takes more"
        raise InputError(must("batches", f"be at most {MOST_ON_SPARK} on Spark", asked.stream.batches, advice))
    spark = session() if spark is None else spark
    files, judge, found = asked.stream.write(folder / "events"), Judge(asked, ways), Comparison(asked)
    for number, way in enumerate(ways):
        tell(way.text, len(ways))
        kept = Kept()
        query = start_way(way, asked, asked.stream.read(spark, files), str(folder / f"checkpoint-{number}"), kept)
        query.awaitTermination()
        found.ways.append(_judged(judge, way, asked, query, kept))
    return found


class Kept:
    """A sink that keeps what it gets; the same micro-batch again replaces it."""

    def __init__(self) -> None:
        self.rows = dict[int, pa.Table]()

    def __call__(self, rows: DataFrame, batch: int) -> None:
        self.rows[batch] = rows.toArrow()


def _judged(judge: Judge, way: Way, asked: Asked, query: StreamingQuery, kept: Kept) -> Compared:
    speed = _speed(query, asked)
    if way.is_spark:
        return judge.judge(way, kept.rows, None, _state_rows(query), speed)
    counters = [found for event in query.recentProgress if (found := read_counters(event)) is not None]
    return judge.judge(way, kept.rows, counters, max(each["held"] for each in counters), speed)


def _speed(query: StreamingQuery, asked: Asked) -> Speed | None:
    events = [event for event in query.recentProgress if event["numInputRows"]][: asked.stream.batches]
    seconds = [event["durationMs"]["triggerExecution"] / 1_000 for event in events][WARM_UP:]
    if not seconds:
        return None
    rows = int(np.diff(asked.stream.cuts)[WARM_UP - 1 :].sum())
    return Speed(rows / sum(seconds), statistics.median(seconds), max(seconds))


def _state_rows(query: StreamingQuery) -> int:
    """The most that Spark's own query held: groups, in all its state stores."""
    found = [sum(each["numRowsTotal"] for each in event["stateOperators"]) for event in query.recentProgress]
    return max(found, default=0)
