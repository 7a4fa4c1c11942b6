"""A small streaming source that ticks with its own period, so that an idle stream still makes micro-batches.

The offset is the number of periods since 1970: it stands in Spark's offset log, so a repeated batch hears the same
beat. Spark's own `rate` source would make a batch every second.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from latecomer.spark.compat import ReadAllAvailable, ReadLimit, SupportsTriggerAvailableNow, stream_reader
from latecomer.spark.pack import BEAT

FORMAT = "latecomer-heartbeat"


class Heartbeat(DataSource):
    """The data source behind `heartbeat=`."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return f"{BEAT} bigint"

    def streamReader(self, schema: Any) -> DataSourceStreamReader:
        """Spark's call."""
        return stream_reader(_HeartbeatReader(int(self.options["period_us"])))


class _Beat(InputPartition):
    def __init__(self, stamp_us: int) -> None:
        self.stamp_us = stamp_us


class _HeartbeatReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, period_us: int) -> None:
        self._period_us = period_us
        self._last: dict[str, int] | None = None

    def _now(self) -> dict[str, int]:
        return self._last or {"beat": time.time_ns() // 1_000 // self._period_us}

    def prepareForTriggerAvailableNow(self) -> None:
        """Spark's call: no beats after this one, so that the query ends and other sources keep their limits."""
        self._last = self._now()

    def initialOffset(self) -> dict[str, int]:
        """Spark's call."""
        return self._now()

    def getDefaultReadLimit(self) -> ReadLimit:
        """Spark's call."""
        return ReadAllAvailable()

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        """Spark's call."""
        return max(start, self._now(), key=lambda offset: offset["beat"])

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        return [_Beat(end["beat"] * self._period_us)]

    def read(self, partition: InputPartition) -> Iterator[tuple[int]]:
        if isinstance(partition, _Beat):
            yield (partition.stamp_us,)


def heartbeat(spark: SparkSession, period_us: int) -> DataFrame:
    """A stream of one row per beat."""
    spark.dataSource.register(Heartbeat)
    return spark.readStream.format(FORMAT).option("period_us", str(period_us)).load()
