"""The counters of a query: how many rows went through which door, in Spark's own progress events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from latecomer.events import FOREVER_US, NEVER_US
from latecomer.spark.frames import COUNTERS, LARGEST, SUMMED

METRIC = "latecomer"


def counter_columns(names: Iterable[str] = COUNTERS) -> list[Column]:
    """The aggregates that turn packed rows into these counters."""
    return [F.expr(_aggregate(name)) for name in names]


def _aggregate(name: str) -> str:
    if name in LARGEST:
        return f"coalesce(max({name}), {NEVER_US}L) AS {name}"
    return f"coalesce(sum({name}), 0L) AS {name}"


def observed(packed: DataFrame) -> DataFrame:
    """Let the counters ride along."""
    first, *rest = counter_columns()
    return packed.observe(METRIC, first, *rest)


def read_counters(progress: Any) -> dict[str, int] | None:
    """The counters in one of a query's progress events; None where a batch brought none.

    Classic Spark gives a Row of counters; Connect a Row of two fields, `values` and `schema`.
    """
    row = None if progress is None else progress["observedMetrics"].get(METRIC)
    if row is None:
        return None
    values = row.asDict()
    if "schema" in values:
        names = [column["name"] for column in values["schema"]["fields"]]
        values = dict(zip(names, values["values"], strict=True))
    return {name: int(values[name]) for name in COUNTERS}


def final_through(progress: Any) -> datetime | None:
    """The time up to which the answers of a query are final, as one of its progress events says; None before any is.

    Results made of events up to this time only, of whatever key, will not change any more; the largest time there is
    when all sources have ended.
    """
    counters = read_counters(progress)
    if counters is None or counters["punctuation_us"] == NEVER_US:
        return None
    if counters["punctuation_us"] == FOREVER_US:
        return datetime.max.replace(tzinfo=UTC)
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=counters["punctuation_us"])


def total(counters: list[dict[str, int]]) -> dict[str, int]:
    """The counters of several batches together; what is held and the progress are those of the last."""
    if not counters:
        return dict.fromkeys(COUNTERS, 0)
    together = {name: sum(batch[name] for batch in counters) for name in SUMMED}
    together.update({name: counters[-1][name] for name in ("held", "runs")})
    together.update({name: counters[-1][name] for name in LARGEST})
    return together


def unaccounted(counters: Mapping[str, int]) -> int:
    """Rows seen that left through no door: always 0."""
    doors = ("filtered", "quarantined", "late", "dropped", "accepted")
    return counters["seen"] - sum(counters[door] for door in doors)
