"""A small streaming source that beats with its own period, so that an idle stream still makes micro-batches.

The offset is the number of periods for which the query has run, from start to start, by a clock that is never set: time
in which the query was down, or did not ask its sources, is no silence of theirs. It stands in Spark's offset log, so a
repeated batch hears the same beat. Spark's own `rate` source would make a batch every second, by the wall clock.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from latecomer.spark.compat import ReadAllAvailable, ReadLimit, SupportsTriggerAvailableNow, stream_reader

FORMAT = "latecomer-heartbeat"
BEAT = "_lc_beat"
MOST_AT_ONCE = 3  # periods that count between two times that Spark asks: a process that stood still asked nobody


def most_at_once(period_us: int, every_us: int) -> int:
    """The same for a query that asks every so often: then as many as it is to wait, and what has begun.

    >>> most_at_once(10_000_000, 0), most_at_once(10_000_000, 600_000_000)
    (3, 61)
    """
    return max(MOST_AT_ONCE, every_us // period_us + 1)


class Heartbeat(DataSource):
    """The data source behind `heartbeat=`."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return f"{BEAT} bigint"

    def streamReader(self, schema: Any) -> DataSourceStreamReader:
        """Spark's call."""
        period_us, tick_us, most = (int(self.options[name]) for name in ("period_us", "tick_us", "most"))
        return stream_reader(HeartbeatReader(period_us, tick_us, most=most))


class _Beat(InputPartition):
    def __init__(self, ran_ticks: int) -> None:
        self.ran_ticks = ran_ticks


class HeartbeatReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Counts the periods for which it is asked, at most `most` at once; `clock`: nanoseconds that never go back."""

    def __init__(
        self, period_us: int, tick_us: int, clock: Callable[[], int] = time.monotonic_ns, most: int = MOST_AT_ONCE
    ) -> None:
        self._period_us, self._tick_us, self._clock, self._most = period_us, tick_us, clock, most
        self._counted_ns: int | None = None  # up to when time has been counted
        self._given = 0
        self._over = False

    def prepareForTriggerAvailableNow(self) -> None:
        """Spark's call: no beats after this one, so that the query ends and other sources keep their limits."""
        self._over = True

    def initialOffset(self) -> dict[str, int]:
        """Spark's call."""
        return {"beat": 0}

    def getDefaultReadLimit(self) -> ReadLimit:
        """Spark's call."""
        return ReadAllAvailable()

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        """Spark's call."""
        self._given = max(start["beat"], self._given) + (0 if self._over else self._periods())
        return {"beat": self._given}

    def _periods(self) -> int:
        """The whole periods since time was last counted; what has begun of the next counts later."""
        now_ns, period_ns = self._clock(), self._period_us * 1_000
        since_ns = now_ns if self._counted_ns is None else self._counted_ns
        passed = (now_ns - since_ns) // period_ns
        self._counted_ns = since_ns + passed * period_ns
        return min(passed, self._most)

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        before, after = (offset["beat"] * self._period_us // self._tick_us for offset in (start, end))
        return [_Beat(max(0, after - before))]  # before 4.2 a run with `availableNow` does not know where it began

    def read(self, partition: InputPartition) -> Iterator[tuple[int]]:
        if isinstance(partition, _Beat):
            yield (partition.ran_ticks,)


def heartbeat(spark: SparkSession, period_us: int, tick_us: int, every_us: int) -> DataFrame:
    """A stream of one row per beat: for how many ticks the query, which asks every so often, has run since the last."""
    spark.dataSource.register(Heartbeat)
    options = {"period_us": period_us, "tick_us": tick_us, "most": most_at_once(period_us, every_us)}
    return spark.readStream.format(FORMAT).options(**{name: str(value) for name, value in options.items()}).load()
