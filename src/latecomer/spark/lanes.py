"""The lanes of packed rows: their columns, and their rows as DataFrames."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from latecomer.contract import CHANGE, FINAL, LATENESS, PANE, REASON, TIER, Lane
from latecomer.spark.frames import LANES
from latecomer.spark.schema import with_fields
from latecomer.spark.unpack import FinishPlan, unpacker

_CHANGE_FIELD: dict[str, T.DataType] = {CHANGE: T.ByteType()}
_PANE_FIELDS: dict[str, T.DataType] = {PANE: T.StringType(), FINAL: T.BooleanType()}
_LATE_FIELDS: dict[str, T.DataType] = {LATENESS: T.LongType(), REASON: T.StringType()}
_TIER_FIELD: dict[str, T.DataType] = {TIER: T.IntegerType()}
_QUARANTINE_FIELDS: dict[str, T.DataType] = {REASON: T.StringType()}


class View(NamedTuple):
    """A part of a lane's rows: all of them, those of one tier, or the changes."""

    lane: Lane
    changes: bool = False
    tier: int | None = None


@dataclass(frozen=True)
class LaneSchemas:
    """The user's columns going in and the result's coming out, how these are finished, whether and how they change."""

    user: T.StructType
    results: T.StructType
    plan: FinishPlan | None = None
    tiers: int = 0
    revises: bool = False

    def of(self, view: View) -> T.StructType:
        """The columns of a view."""
        if view.lane is not Lane.RESULTS:
            return with_fields(self.user, _LATE_FIELDS if view.lane is Lane.LATE else _QUARANTINE_FIELDS)
        fields = _CHANGE_FIELD if view.changes else {}
        if self.tiers:
            fields = {**(_TIER_FIELD if view.tier is None else {}), **fields}
        return with_fields(self.results, {**fields, **(_PANE_FIELDS if self.revises or view.changes else {})})

    @property
    def views(self) -> dict[str, View]:
        """What can be written: the lanes; of results that may change the changes, and every tier."""
        lanes = {name: View(lane) for name, lane in LANES.items()}
        if not self.revises:
            return lanes
        tiers = {f"tier_{tier}": View(Lane.RESULTS, tier=tier) for tier in range(1, self.tiers + 1)}
        return {**lanes, **tiers, "changes": View(Lane.RESULTS, changes=True)}


def lane_rows(packed: DataFrame, view: View, schemas: LaneSchemas) -> DataFrame:
    """The rows of a view, typed again."""
    schema = schemas.of(view)
    tier = "" if view.tier is None else f" AND tier = {view.tier}"
    rows = packed.where(f"lane = {int(view.lane)}{tier}")
    plan = schemas.plan if view.lane is Lane.RESULTS else None
    if plan is not None and plan.merged:
        rows = rows.repartition(1)  # blobs cross this shuffle, not rows, and the shards work in parallel up to it
    return rows.mapInArrow(unpacker(tuple(schema.names), plan, changes=view.changes), schema)
