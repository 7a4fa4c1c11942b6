"""The StatefulProcessor Spark knows, one for all strategies.

It is kept light on purpose: at the start of every query Spark starts a fresh Python only to ask it for its state,
so what a shard does, and the libraries that takes, is imported when the first rows come.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

from pyspark.serializers import CloudPickleSerializer
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle, TimerValues
from pyspark.sql.types import LongType, StringType, StructType

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import Row

    from latecomer.spark.hold import HoldPlan

# As types, not as text: text would be parsed by the JVM, a call each, in every task. Bytes as text: on their way out of
# Spark's state bytes are made text and encoded one by one, ASCII is copied.
_KEY = StructType().add("run", LongType()).add("number", LongType())
_VALUE = StructType().add("size", LongType()).add("data", StringType())


class HoldProcessor(StatefulProcessor):
    """Runs a machine over each shard."""

    def __init__(self, plan: HoldPlan) -> None:
        self._plan = CloudPickleSerializer().dumps(plan)

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Spark's call: name the state."""
        self._state = handle.getMapState("latecomer", _KEY, _VALUE)

    def handleInputRows(
        self, key: Any, rows: Iterator[pd.DataFrame] | Iterator[Row], timerValues: TimerValues
    ) -> Iterator[pd.DataFrame]:
        """Spark's call, once per shard and micro-batch."""
        from latecomer.spark.hold import Shard
        from latecomer.spark.workers import end_task

        plan = CloudPickleSerializer().loads(self._plan)
        yield from Shard(plan, self._state, int(key[0])).run(cast("Iterator[pd.DataFrame]", rows))
        del plan
        end_task()

    def close(self) -> None:
        """Spark's call; nothing is kept outside the state store."""
