"""The lanes of packed rows and the views of the results: their columns, and their rows as DataFrames."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from latecomer.errors import InputError, must
from latecomer.events import Layout
from latecomer.gives import RESULTS, Gives, View
from latecomer.outputs import ITEM, LATENESS, REASON
from latecomer.spark.compat import arrow_schema
from latecomer.spark.declare import quoted
from latecomer.spark.packed import LANES, view_bit
from latecomer.spark.schema import spark_schema, with_fields
from latecomer.spark.unpack import STAGE, UNPACK_COLUMNS, UnpackPlan, unpacker
from latecomer.spark.windows_after import WindowsAfter

_LATE_FIELDS: dict[str, T.DataType] = {LATENESS: T.LongType(), REASON: T.StringType()}
_QUARANTINE_FIELDS: dict[str, T.DataType] = {REASON: T.StringType()}


@dataclass(frozen=True)
class Lanes:
    """What can be written or read of a query.

    gives: of the last stage. layout: its roles, to merge shards by. inputs: the user's columns of each stage's events,
    by the stage's name. after: the windows that rows get when they leave. items: the stages that quarantine items.
    """

    gives: Gives
    layout: Layout
    inputs: Mapping[str, T.StructType]
    after: WindowsAfter | None = None
    items: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        """The lanes, then the views of the results."""
        return [*LANES, *self.gives.views]

    @property
    def results(self) -> T.StructType:
        """All columns of the results."""
        inner = spark_schema(self.gives.columns)
        return inner if self.after is None else self.after.schema(inner)

    def schema(self, name: str) -> T.StructType:
        """The columns of a lane or view."""
        inner = self._inner(name)
        return inner if self.after is None else self.after.schema(inner)

    def _inner(self, name: str) -> T.StructType:
        """Those that travel through the strategy."""
        view = self.view(name)
        if view is not None:
            return spark_schema(view.columns(self.gives.columns))
        several = {STAGE: T.StringType()} if len(self.inputs) > 1 else {}
        if name == "late":
            return with_fields(_together(self.inputs), {**_LATE_FIELDS, **several})
        first, *further = self.inputs
        inputs = {each: self.inputs[each] for each in (first, *further) if each == first or each not in self.items}
        items = {ITEM: T.StringType()} if self.items else {}
        return with_fields(_together(inputs), {**_QUARANTINE_FIELDS, **items, **several})

    def view(self, name: str) -> View | None:
        """A view of the results by its name; None for other lanes."""
        return self.gives.all_views.get(name)

    def rows(self, packed: DataFrame, name: str) -> DataFrame:
        """The rows of a lane or view, typed again, and finished where something was left to do."""
        finished = self.finished(packed) if name in self.gives.all_views else None
        if finished is not None:
            return self.chosen(finished, name)
        rows = self._rows(packed, name)
        return rows if self.after is None else self.after.rows(rows)

    def bit(self, name: str) -> int | None:
        """The bit of a view in packed rows; None for other lanes."""
        return view_bit(list(self.gives.all_views).index(name)) if name in self.gives.all_views else None

    def plan(self, name: str) -> UnpackPlan:
        """How packed rows become those of a lane or view."""
        schema, view = arrow_schema(self._travelling(name)), self.view(name)
        if view is not None and self.gives.after is not None:
            return UnpackPlan(schema)
        if view is not None:
            return UnpackPlan(schema, view.keep, self.layout if self.gives.in_one_order else None)
        stages = tuple(self.inputs) if len(self.inputs) > 1 else ()
        return UnpackPlan(schema, stages=stages, gaps=bool(stages or self.items))

    def _rows(self, packed: DataFrame, name: str) -> DataFrame:
        plan, bit = self.plan(name), self.bit(name)
        rows = packed.where(f"lane = {int(LANES[lane_of(name)])}")
        rows = rows if bit is None else rows.where(f"views & {bit}L != 0")
        if plan.merged is not None:
            rows = rows.repartition(1)  # blobs cross this shuffle, not rows, and the shards work in parallel up to it
        return rows.select(*UNPACK_COLUMNS).mapInArrow(unpacker(plan), self._travelling(name))

    def _travelling(self, name: str) -> T.StructType:
        """The columns of a lane or view as its rows leave the strategy."""
        after = self.gives.after
        return self._inner(name) if after is None or name not in self.gives.all_views else spark_schema(after.columns)

    def finished(self, packed: DataFrame) -> DataFrame | None:
        """The results of all views, where something is left to do for them; None where there is not."""
        return None if self.gives.after is None else self.gives.after(self._rows(packed, RESULTS))

    def chosen(self, finished: DataFrame, name: str) -> DataFrame:
        """Of finished results those of a view."""
        rows, view = finished, self.gives.all_views[name]
        rows = rows if view.where is None else rows.where(view.where)
        return rows.select(*[quoted(name) for name in view.columns(self.gives.columns).names])


def lane_of(name: str) -> str:
    """The lane that a view is a part of."""
    return name if name in LANES else RESULTS


def rows_in(lane: str) -> Column:
    """How many rows a lane has, retractions included, of packed rows."""
    return F.expr(f"coalesce(sum(if(lane = {int(LANES[lane])}, n, 0L)), 0L) AS `rows in {lane}`")


def _together(inputs: Mapping[str, T.StructType]) -> T.StructType:
    """The columns of all stages' events: a row of one stage has nothing in those of another."""
    fields: dict[str, T.StructField] = {}
    for stage, schema in inputs.items():
        for field in schema.fields:
            known = fields.setdefault(field.name.lower(), field)
            if (known.name, known.dataType) != (field.name, field.dataType):
                first, second = (f"{each.name} {each.dataType.simpleString()}" for each in (known, field))
                advice = "give the later one another name: .alias(...)"
                rule, got = "have one name and type", f"{first} and {second} (stage {stage})"
                raise InputError(must(f"column '{field.name}' of several stages", rule, got, advice))
    return T.StructType(list(fields.values()))
