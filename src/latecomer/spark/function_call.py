"""A user's function called for a micro-batch: once, with every slot of rows at times of its own.

Slots are moved apart in time by a multiple of what windows repeat in, further than any window reaches. Results are
moved back by the slot that their time lies in. Of each slot those count whose windows were to be given; what stood
before is taken off, what stands now is added, and what is left are the changes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from latecomer.errors import InputError, must
from latecomer.outputs import CHANGE, PANE, Pane
from latecomer.spark.declare import quoted
from latecomer.spark.schema import spark_schema
from latecomer.spark.time_paths import TimePath, time_at, with_times_moved
from latecomer.timetravel.engine_rows import BEFORE, HIGH, LIVE, LOW, PLACE, ROLES, SLOT, SLOT_FIELDS

Function = Callable[[DataFrame], DataFrame]

_ZONE = "spark.sql.session.timeZone"
_UTC = ("UTC", "Z", "GMT", "Etc/UTC", "Etc/GMT", "UCT", "Etc/UCT", "+00:00", "Universal", "Zulu")
_FIRST, _LAST, _NUMBER = "_lc_first", "_lc_last", "_lc_number"
_TIMES_APART = 4  # reaches between slots: none of them can touch another


class CalledWith(NamedTuple):
    """The columns of the rows that a function is called with, and those that are the time and the key."""

    columns: pa.Schema
    time: str
    key: tuple[str, ...]


@dataclass(frozen=True)
class FunctionCall:
    """What is left to do after a machine that gives rows for a function.

    results: the columns of its results. times: those that move with the rows, `at` being the one that says which
    windows they are of. apart_us: how far apart rows cannot touch each other, and what shifts are a multiple of.
    """

    function: Function
    events: CalledWith
    results: T.StructType
    times: tuple[TimePath, ...]
    at: TimePath
    apart_us: tuple[int, int]

    @property
    def columns(self) -> pa.Schema:
        """Those of the rows that it is given."""
        return pa.schema([*self.events.columns, *SLOT_FIELDS])

    def __call__(self, rows: DataFrame) -> DataFrame:
        """The changes of a micro-batch."""
        check_utc(rows.sparkSession)
        ts_us, (reach_us, step_us) = micros(F.col(quoted(self.events.time))), self.apart_us
        bounds = [F.max(LOW).alias(LOW), F.max(HIGH).alias(HIGH), F.min(ts_us).alias(_FIRST), F.max(ts_us).alias(_LAST)]
        slots = rows.groupBy(SLOT).agg(*bounds).collect()  # reads everything, as Spark's state wants it
        if not slots:
            return self._nothing(rows.sparkSession)
        first_us, last_us = min(each[_FIRST] for each in slots), max(each[_LAST] for each in slots)
        width_us = -(-(last_us - first_us + _TIMES_APART * reach_us) // step_us) * step_us
        given = self.function(self._in_slots(rows, width_us))
        slot = F.floor((micros(time_at(self.at)) - (first_us - 2 * reach_us)) / width_us).cast("bigint")
        return self._changes(given.withColumn(SLOT, slot), slots, width_us)

    def _nothing(self, spark: SparkSession) -> DataFrame:
        schema = T.StructType(list(self.results.fields)).add(CHANGE, T.ByteType()).add(PANE, T.StringType())
        return spark.createDataFrame([], schema)

    def _in_slots(self, rows: DataFrame, width_us: int) -> DataFrame:
        """The rows as the function sees them: of a key together, in order, each slot at times of its own."""
        columns, time, key = self.events
        kind = spark_schema(columns)[time].dataType
        moved = moved_time(F.col(quoted(time)), F.col(SLOT) * F.lit(width_us), kind)
        keys = [F.col(quoted(name)) for name in key]
        together = rows.repartition(*keys) if keys else rows.repartition(1)
        names = [moved.alias(name) if name == time else F.col(quoted(name)) for name in columns.names]
        return together.sortWithinPartitions(SLOT, PLACE).select(*names)

    def _changes(self, given: DataFrame, slots: Sequence[Row], width_us: int) -> DataFrame:
        """Results moved back to their times, as far as they count, and what they add up to."""
        names = self.results.names
        moved = with_times_moved(self.results, self.times, -F.col(SLOT) * F.lit(width_us), moved_time)
        at_us = micros(time_at(self.at)) - F.col(SLOT) * F.lit(width_us)
        counts = [(F.col(SLOT) == each[SLOT]) & (at_us > each[LOW]) & (at_us <= each[HIGH]) for each in slots]
        role = F.col(SLOT) % F.lit(len(ROLES))
        change = F.when(role == BEFORE, -1).otherwise(1)
        pane = F.when(role == LIVE, str(Pane.ON_TIME)).otherwise(str(Pane.REVISED))
        rows = given.where(reduce(Column.__or__, counts)).select(*moved, change.alias(CHANGE), pane.alias(PANE))
        summed = rows.groupBy(*map(quoted, names)).agg(F.sum(CHANGE).alias(_NUMBER), F.max(PANE).alias(PANE))
        one = F.array_repeat(F.signum(_NUMBER).cast("tinyint"), F.abs(_NUMBER).cast("int"))
        changes = summed.where(f"{_NUMBER} != 0").select(*map(quoted, names), F.explode(one).alias(CHANGE), PANE)
        return self._in_order(changes)

    def _in_order(self, changes: DataFrame) -> DataFrame:
        """All changes of a key together, or where results do not say it of a window; what is void comes first."""
        key, at = self.events.key, time_at(self.at)
        said = bool(key) and set(key) <= set(self.results.names)
        together = changes.repartition(*[F.col(quoted(name)) for name in key] if said else [at])
        return together.sortWithinPartitions(at, CHANGE)


def check_utc(spark: SparkSession) -> None:
    """Refuse a session whose clock changes: hours and days would not be the same at other times."""
    zone = spark.conf.get(_ZONE) or ""
    if zone not in _UTC:
        advice = f"run spark.conf.set('{_ZONE}', 'UTC') before"
        raise InputError(must("time zone of the session", "be UTC where a function of yours is replayed", zone, advice))


def micros(time: Column) -> Column:
    """A time in microseconds since 1970; the session is in UTC."""
    return F.unix_micros(time.cast("timestamp"))


def moved_time(time: Column, by_us: Column, kind: T.DataType) -> Column:
    """A time, or a date, so much later."""
    if isinstance(kind, T.DateType):
        return F.date_add(time, (by_us / F.lit(86_400_000_000)).cast("int"))
    return F.timestamp_micros(micros(time) + by_us).cast(kind)
