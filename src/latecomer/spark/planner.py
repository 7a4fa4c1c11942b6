"""The plan of a query: declared events and a strategy become pack, hold and unpack."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from latecomer.contract import Settings
from latecomer.errors import InputError, must
from latecomer.events import ORDER, SOURCE, TIME, Layout
from latecomer.reorder import Reorder
from latecomer.sorter import Late
from latecomer.spark.declare import Declared, quoted
from latecomer.spark.explain import Story
from latecomer.spark.frames import FRAME_SCHEMA, PACKED_SCHEMA
from latecomer.spark.heartbeat import heartbeat as heartbeat_stream
from latecomer.spark.hold import FORMAT_VERSION, HoldPlan
from latecomer.spark.lanes import LaneSchemas
from latecomer.spark.pack import END, KEEP, SHARD, STAMP, PackPlan, packer
from latecomer.spark.processor import HoldProcessor
from latecomer.spark.result import Result
from latecomer.spark.schema import check_columns, nullable
from latecomer.spark.shards import default_shards, shard_keys
from latecomer.spark.stored import Stored, fingerprint
from latecomer.spark.unpack import FinishPlan
from latecomer.tiers import Ordered, Tiers
from latecomer.timetravel import TimeTravel
from latecomer.windows import WINDOW_START, SessionWindow, Window


class Planner:
    """Turns declared events and a strategy into the three steps."""

    def __init__(self, declared: Declared, settings: Settings) -> None:
        self._declared, self._settings = declared, settings
        self._roles, self._timing = declared.roles, declared.timing
        self._df = declared.df
        self._spark = self._df.sparkSession
        self._shards = declared.shards or default_shards(self._spark)
        self._schema = nullable(self._df.schema)
        self._user = T.StructType([self._schema[name] for name in declared.columns])
        check_columns(self._user)
        if isinstance(declared.window, SessionWindow) and not isinstance(settings, Tiers):
            advice = "call .aggregate(...) on it, or leave .session(...) out"
            raise InputError(must("session", "be asked with aggregates", _written(settings), advice))

    def result(self) -> Result:
        """The strategy at work, its lanes to be written or read."""
        layout = self._layout()
        plan = self._pack_plan(layout)
        finish = self._finish_plan(layout)
        frames = self._prepared(plan).mapInArrow(packer(plan), FRAME_SCHEMA)
        stored = self._stored(layout)
        hold = HoldPlan(
            self._machine(finish),
            layout,
            self._timing.idle_ticks,
            fingerprint(stored),
            stamped=self._roles.arrival is not None,
            finishing=not self._df.isStreaming,
        )
        packed = frames.groupBy("shard").transformWithStateInPandas(
            statefulProcessor=HoldProcessor(hold),
            outputStructType=PACKED_SCHEMA,
            outputMode="Append",
            timeMode="None",
        )
        return Result(packed, self._lanes(plan, layout, finish), self._shards, stored, self._story(plan))

    def _lanes(self, plan: PackPlan, layout: Layout, finish: FinishPlan | None) -> LaneSchemas:
        settings, added = self._settings, self._settings.added()
        taken = [name for name in self._declared.columns if name.lower() in added]
        if taken:
            advice = f"{settings.name} adds a column of that name: rename yours before"
            raise InputError(must("columns", f"not be named {', '.join(added)}", taken[0], advice))
        if added:
            self._check_moved()
        packed = to_arrow_schema(T.StructType([self._schema[name] for name in plan.columns]), timezone="UTC")
        results = nullable(from_arrow_schema(settings.output(packed, layout), prefer_timestamp_ntz=True))
        check_columns(results)
        return LaneSchemas(self._user, results, finish, settings.tiers, settings.revises)

    def _check_moved(self) -> None:
        """Times may be moved: a column that still bears the time's name must be the time itself."""
        moved = [self._roles.time] + ([WINDOW_START] if self._declared.window else [])
        for column in self._declared.columns:
            for name in moved:
                if column.lower() == name.lower() and name not in self._declared.intact:
                    rule = f"be the time itself where late='adjust' moves it, or bear a name other than {name}"
                    advice = f"select it as {name!r}, or compute it under another name"
                    raise InputError(must(f"column {column}", rule, "a column computed anew", advice))

    def _finish_plan(self, layout: Layout) -> FinishPlan | None:
        """What is left to do after the machine, if anything."""
        settings = self._settings
        if not isinstance(settings, Reorder):
            return None
        window = None
        declared = self._declared.window
        if settings.late == Late.ADJUST and isinstance(declared, Window) and WINDOW_START in self._declared.intact:
            window = WINDOW_START, declared.advance_us
        if not settings.total and window is None:
            return None
        return FinishPlan(layout, settings.total, window)

    def _machine(self, finish: FinishPlan | None) -> Settings:
        """The strategy as the shards run it: where rows must be finished, they keep their carried columns."""
        settings = self._settings
        return replace(settings, total=True) if isinstance(settings, Reorder) and finish else settings

    def _story(self, plan: PackPlan) -> Story:
        """What `explain` tells; carried copies go by the names of the columns they copy."""
        roles = self._roles
        copied = {TIME: roles.time, SOURCE: roles.source}
        copied.update({f"{ORDER}{number}": name for number, name in enumerate(roles.order)})
        moved = [T.StructField(copied.get(name) or name, self._schema[name].dataType, True) for name in plan.columns]
        return Story(self._declared.read, roles.time, self._declared.steps, tuple(moved), self._settings)

    def _layout(self) -> Layout:
        roles = self._roles
        order = tuple(self._place(name, f"{ORDER}{number}") for number, name in enumerate(roles.order))
        source = None if roles.source is None else self._place(roles.source, SOURCE)
        key = tuple(name for name in roles.key if name in self._declared.intact)
        if self._settings.by_key and key != roles.key:
            missing = next(name for name in roles.key if name not in key)
            rule = "still be there, unchanged, where results are per key"
            raise InputError(must(f"key column {missing}", rule, "not chosen, or computed anew", "select it as it is"))
        return Layout(self._place(roles.time, TIME), key, source, order)

    def _place(self, column: str, carried: str) -> str:
        """Where a role's values stand: in the user's column if it is intact, else in the carried copy."""
        return column if column in self._declared.intact else carried

    def _pack_plan(self, layout: Layout) -> PackPlan:
        timing, roles = self._timing, self._roles
        stamp = None
        if STAMP in self._df.columns:
            stamp = STAMP if roles.arrival is None else self._place(roles.arrival, STAMP)
        names = self._declared.columns
        roles_placed = (layout.time, layout.source, *layout.order)
        carried = tuple(dict.fromkeys(n for n in roles_placed if n is not None and n not in names))
        return PackPlan(
            shard_keys=shard_keys(self._spark, self._shards),
            time=layout.time,
            stamp=stamp,
            source=layout.source,
            columns=names + carried,
            user_columns=names,
            filtering=self._declared.filtered,
            beating=timing.heartbeat_us is not None and self._df.isStreaming,
            ending=roles.end is not None,
            tick_us=timing.tick_us,
            idle_ticks=timing.idle_ticks,
            earliest_us=timing.earliest_us,
            latest_us=timing.latest_us,
            max_ahead_us=timing.max_ahead_us,
        )

    def _prepared(self, plan: PackPlan) -> DataFrame:
        """Exactly the columns that pack reads; heartbeats join here."""
        needed = list(plan.columns)
        needed += [END] if plan.ending else []
        needed += [KEEP] if plan.filtering else []
        needed += [plan.stamp] if plan.stamp is not None and plan.stamp not in needed else []
        together = self._settings.by_key and not self._roles.key
        hashed = F.lit(0) if together else F.col(SHARD)
        shard = F.pmod(hashed, F.lit(self._shards)).cast("int").alias(SHARD)
        df = self._df.select(*[quoted(name) for name in needed], shard)
        if plan.beating and self._timing.heartbeat_us is not None:
            beats = heartbeat_stream(self._spark, self._timing.heartbeat_us)
            df = df.unionByName(beats, allowMissingColumns=True)
        return df

    def _stored(self, layout: Layout) -> Stored:
        roles, timing = self._roles, self._timing
        return {
            "format": FORMAT_VERSION,
            "shards": self._shards,
            "schema": self._user.simpleString(),
            "time": roles.time,
            "key": list(roles.key),
            "source": roles.source,
            "arrival": roles.arrival,
            "order": list(roles.order),
            "end": roles.end,
            "types": roles.types,
            "places": [layout.time, layout.source, *layout.order],
            "tick_us": timing.tick_us,
            "heartbeat_us": timing.heartbeat_us,
            "idle_after_us": timing.idle_after_us,
            "strategy": self._settings.describe(),
        }


def _written(settings: Settings) -> str:
    """How the user asks for a strategy."""
    if isinstance(settings, Ordered):
        return ".tiers(...)" if settings.operator is None else ".app(...).tiers(...)"
    return f".app(...).{settings.name}(...)" if isinstance(settings, TimeTravel) else f".{settings.name}(...)"
