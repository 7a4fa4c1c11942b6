"""The lanes of packed rows: their columns, and their rows as DataFrames."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from latecomer.contract import CHANGE, FINAL, LATENESS, PANE, REASON, Lane
from latecomer.spark.schema import with_fields
from latecomer.spark.unpack import UNPACK_COLUMNS, DownPlan, unpacker

_CHANGE_FIELDS: dict[str, T.DataType] = {CHANGE: T.ByteType(), PANE: T.StringType(), FINAL: T.BooleanType()}
_LATE_FIELDS: dict[str, T.DataType] = {LATENESS: T.LongType(), REASON: T.StringType()}
_QUARANTINE_FIELDS: dict[str, T.DataType] = {REASON: T.StringType()}


@dataclass(frozen=True)
class LaneSchemas:
    """The user's columns going in and the result's coming out, and how these are finished."""

    user: T.StructType
    down: T.StructType
    plan: DownPlan | None = None

    def of(self, lane: Lane) -> T.StructType:
        """A lane's columns."""
        if lane is Lane.DOWN:
            return self.down
        return with_fields(self.user, _LATE_FIELDS if lane is Lane.LATE else _QUARANTINE_FIELDS)


def lane_rows(packed: DataFrame, lane: Lane, schemas: LaneSchemas, *, changes: bool = False) -> DataFrame:
    """The rows of a lane, typed again."""
    schema = schemas.of(lane)
    columns = tuple(schema.names)
    if changes:
        schema = with_fields(schema, _CHANGE_FIELDS)
    rows = packed.where(F.col("lane") == int(lane)).select(*UNPACK_COLUMNS)
    plan = schemas.plan if lane is Lane.DOWN else None
    if plan is not None and plan.merged:
        rows = rows.repartition(1)  # blobs cross this shuffle, not rows, and the shards work in parallel up to it
    return rows.mapInArrow(unpacker(columns, plan, changes=changes), schema)
