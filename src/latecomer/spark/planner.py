"""The plan of a query: declared events and one strategy or several become pack, a hold for each stage, and unpack."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from latecomer.contract import Settings, Steering
from latecomer.errors import InputError, LatecomerWarning, must
from latecomer.events import EVENT_CHANGE_FIELD, ORDER, SOURCE, TIME, Layout
from latecomer.progress import Measure
from latecomer.spark.compat import arrow_schema, prepare_batch
from latecomer.spark.control import control_stream
from latecomer.spark.counters import Counters
from latecomer.spark.declare import LATEST, MERGED, Declared, Further, Stage, Timing, quoted
from latecomer.spark.explain import Story
from latecomer.spark.frames import FRAME_SCHEMA
from latecomer.spark.further import (
    check_all_taken,
    check_sources,
    check_takes_changes,
    follows_sources,
    further_stage,
    next_stage,
)
from latecomer.spark.heartbeat import heartbeat as heartbeat_stream
from latecomer.spark.hold import HoldPlan
from latecomer.spark.lanes import Lanes
from latecomer.spark.pack import CHANGED, END, KEEP, NOW, SHARD, STAMP, PackPlan, packer
from latecomer.spark.packed import check_counters, packed_schema
from latecomer.spark.processor import HoldProcessor
from latecomer.spark.schema import check_columns, nullable, spark_schema
from latecomer.spark.shards import default_shards, shard_keys
from latecomer.spark.state import FORMAT_VERSION
from latecomer.spark.stored import INPUT, SHARDS, Stored, fingerprint
from latecomer.spark.units import Units
from latecomer.spark.windows_after import WindowsAfter, windows_after
from latecomer.windows import WINDOW_COLUMNS, Window

FOLLOWS = "follows the deadline"  # as it is stored


@dataclass(frozen=True)
class Query:
    """A planned query: its stages, and what it takes to run them."""

    declared: Declared
    stages: tuple[Stage, ...]
    shards: int
    pack: PackPlan
    stored: Stored
    after: WindowsAfter | None = None

    @property
    def counters(self) -> Counters:
        """Those of all stages."""
        return Counters({stage.name: stage.counters for stage in self.stages})

    @property
    def lanes(self) -> Lanes:
        """What can be written."""
        last, items = self.stages[-1], tuple(stage.name for stage in self.stages if stage.gives.items)
        return Lanes(last.gives, last.layout, {stage.name: stage.user for stage in self.stages}, self.after, items)

    def carrying_windows(self) -> Query:
        """The same query with windows that travel with the rows, for a further stage."""
        if self.after is None:
            return self
        declared = self.after.declared
        return _query(declared, (_first_stage(declared, self.stages[0].settings),), None)

    @property
    def stories(self) -> list[Story]:
        """What `explain` tells, stage by stage."""
        return [_story(self.declared, stage, first=stage is self.stages[0]) for stage in self.stages]

    @property
    def controlled(self) -> bool:
        """Whether it has settings that can change while it runs."""
        return self.declared.df.isStreaming and any(stage.settings.controls for stage in self.stages)

    @property
    def steering(self) -> Steering | None:
        """What changes its settings while it runs, if anything does."""
        settings = {stage.name: stage.settings for stage in self.stages}
        return self.stages[-1].settings.steering(settings, self.declared.timing.tick_us)

    def packed(self, control: str | None = None, every_us: int = 0) -> DataFrame:
        """The packed rows; `control`: where control values are, in a stream that has a checkpoint; `every_us`: how
        often micro-batches are to come, 0 where that is not known."""
        if not self.declared.df.isStreaming:
            prepare_batch(self.declared.df.sparkSession)
        check_all_taken(self.stages[-1])
        plan = replace(self.pack, shard_keys=self._keys, controlled=control is not None)
        rows = self._prepared(plan, control, every_us).mapInArrow(packer(plan), FRAME_SCHEMA)
        counters = self.counters.packed
        for hold in self.holds(plan.shard_keys):
            rows = rows.groupBy("shard").transformWithStateInPandas(
                statefulProcessor=HoldProcessor(hold),
                outputStructType=packed_schema(counters, framed=hold.onward is not None),
                outputMode="Append",
                timeMode="None",
            )
        return rows

    @cached_property
    def _keys(self) -> tuple[int, ...]:
        return shard_keys(self.declared.df.sparkSession, self.shards)

    @property
    def together(self) -> bool:
        """Whether all rows must meet in one shard of the first stage."""
        return self.stages[0].gives.by_key and not self.declared.roles.key

    def holds(self, keys: tuple[int, ...]) -> list[HoldPlan]:
        """What the shards of each stage must know, given the shards' keys."""
        declared = self.declared
        timing, stamped = declared.timing, declared.roles.arrival is not None
        per_source = any(follows_sources(stage.settings) for stage in self.stages)
        names = tuple(declared.lacking)
        measure = Measure(timing.idle_ticks, stamped, timing.merged, per_source, names, timing.tick_us)
        common = {"measure": measure, "units": _units(declared), "finishing": not declared.df.isStreaming}
        return hold_plans(self.stages, keys, fingerprint(self.stored), **common)

    def _prepared(self, plan: PackPlan, control: str | None, every_us: int) -> DataFrame:
        """Exactly the columns that pack reads; heartbeats and control values join here."""
        needed = list(plan.columns)
        needed += [END] if plan.ending else []
        needed += [KEEP] if plan.filtering else []
        needed += [CHANGED] if plan.change is not None else []
        needed += [name for name in (plan.stamp, plan.now) if name is not None and name not in needed]
        declared, hashed = self.declared, F.lit(0) if self.together else F.col(SHARD)
        shard = F.pmod(hashed, F.lit(self.shards)).cast("int").alias(SHARD)
        df, spark = declared.df.select(*[quoted(name) for name in needed], shard), declared.df.sparkSession
        if plan.beating and declared.timing.heartbeat_us is not None:
            beats = heartbeat_stream(spark, declared.timing.heartbeat_us, plan.tick_us, every_us)
            df = df.unionByName(beats, allowMissingColumns=True)
        if control is not None:
            df = df.unionByName(control_stream(spark, control), allowMissingColumns=True)
        return df


def _units(declared: Declared) -> Units | None:
    """The roles whose times are whole numbers, unless the user has said that small ones are meant."""
    roles, timing = declared.roles, declared.timing
    time, arrival = (name if roles.types.get(name or "") == "bigint" else None for name in (roles.time, roles.arrival))
    return Units(time, arrival, timing.tick_us) if timing.from_1970 and (time or arrival) else None


def hold_plans(stages: tuple[Stage, ...], keys: tuple[int, ...], fingerprint: str, **common: Any) -> list[HoldPlan]:
    """What the shards of each stage must know, given the shards' keys; `common` is the same for all stages."""
    counters = Counters({stage.name: stage.counters for stage in stages}).packed
    plans = []
    for number, stage in enumerate(stages):
        further = {"columns": stage.columns, "senders": len(keys)} if number else {}
        last = number + 1 == len(stages)
        plans.append(
            HoldPlan(
                stage.settings.at_work,
                stage.layout,
                f"{fingerprint}/{number}",
                counters,
                tuple(stage.gives.all_views.values()),
                stage=number,
                count_sources=stage.count_sources,
                carried=stage.gives.in_one_order or stage.gives.after is not None,
                onward=None if last else next_stage(stage, stages[number + 1], keys),
                **further,
                **common,
            )
        )
    return plans


def plan_query(asked: Declared | Further, settings: Settings) -> Query:
    """Plan a strategy on declared events, or on the results of the stages before it."""
    timing = asked.root.timing if isinstance(asked, Further) else asked.timing
    if timing.merged and settings.latest_only is not None:
        advice = f"leave progress= out: {settings.latest_only}"
        raise InputError(must(settings.name, "be asked of progress='latest'", "progress='merged'", advice))
    if isinstance(asked, Further):
        further = further_stage(asked, settings)
        check_sources(further, merged=asked.root.timing.merged)
        return _query(asked.root, (*asked.stages, further), None)
    _warn_of_short_wait(asked, settings)
    first = _first_stage(asked, settings)
    check_sources(first, merged=asked.timing.merged)
    bare, after = windows_after(asked) if first.gives.rows else (asked, None)
    return _query(asked, (first,), None) if after is None else _query(bare, (_first_stage(bare, settings),), after)


def _query(declared: Declared, stages: tuple[Stage, ...], after: WindowsAfter | None) -> Query:
    shards = declared.shards or default_shards(declared.df.sparkSession)
    return Query(declared, stages, shards, _pack_plan(declared, stages[0]), _stored(declared, stages, shards), after)


def _warn_of_short_wait(declared: Declared, settings: Settings) -> None:
    """Say that time moves in ticks where a strategy is to wait for less than one."""
    wait_us, tick_us = settings.shortest_wait_us, declared.timing.tick_us
    if wait_us is not None and wait_us < tick_us and declared.roles.arrival is not None:
        text = (
            f"{settings.name} waits {wait_us} us, less than a tick of {tick_us} us, within which rows count as come at "
        )
        text += f"once; write tick='{wait_us} us' in lc.disordered(...), or wait longer"
        warnings.warn(text, LatecomerWarning, stacklevel=4)


def _first_stage(declared: Declared, settings: Settings) -> Stage:
    schema = nullable(declared.df.schema)
    user = T.StructType([schema[name] for name in declared.columns])
    check_columns(user)
    layout = _layout(declared)
    names = declared.columns + _carried(declared, layout)
    columns = arrow_schema(T.StructType([schema[name] for name in names]))
    if declared.roles.change is not None:
        check_takes_changes(settings, f"change={declared.roles.change!r}")
        columns = columns.append(EVENT_CHANGE_FIELD)
    gives = settings.gives(columns, layout)
    if gives.by_key:
        _check_key(declared, layout)
    if gives.moves_times:
        _check_moved(declared)
    check_columns(spark_schema(gives.columns.remove_metadata()), ours=True)
    check_counters(gives.counters)
    if declared.count_sources and layout.source not in user.names:
        advice = "keep it among the columns, or leave count_sources out"
        raise InputError(must("count_sources=True", "find the source's column", "it was dropped or changed", advice))
    waits, counted = declared.timing.merged or settings.per_source, declared.count_sources
    name, feeds = settings.name, declared.feeds
    return Stage(name, settings, layout, columns, user, gives, declared.steps, counted, waits, feeds)


def _check_moved(declared: Declared) -> None:
    """Times may be moved: a column that still bears the time's name must be the time itself."""
    moved = [declared.roles.time, *(WINDOW_COLUMNS if declared.window else ())]
    for column in declared.columns:
        for name in moved:
            if column.lower() == name.lower() and name not in declared.intact:
                rule = f"be the time itself where rows are moved in time, or bear a name other than {name}"
                advice = f"select it as {name!r}, or compute it under another name"
                raise InputError(must(f"column {column}", rule, "a column computed anew", advice))


def _check_key(declared: Declared, layout: Layout) -> None:
    if layout.key != declared.roles.key:
        missing = next(name for name in declared.roles.key if name not in layout.key)
        rule = "still be there, unchanged, where results are per key"
        raise InputError(must(f"key column {missing}", rule, "not chosen, or computed anew", "select it as it is"))


def _layout(declared: Declared) -> Layout:
    roles, intact = declared.roles, declared.intact
    order = tuple(_place(declared, name, f"{ORDER}{number}") for number, name in enumerate(roles.order))
    source = None if roles.source is None else _place(declared, roles.source, SOURCE)
    key = tuple(name for name in roles.key if name in intact)
    windows = isinstance(declared.window, Window) and declared.time_as is None
    window = [name if windows and name in intact else None for name in WINDOW_COLUMNS]
    return Layout(declared.time_as or _place(declared, roles.time, TIME), key, source, order, *window)


def _place(declared: Declared, column: str, carried: str) -> str:
    """Where a role's values stand: in the user's column if it is intact, else in the carried copy."""
    return column if column in declared.intact else carried


def _carried(declared: Declared, layout: Layout) -> tuple[str, ...]:
    """The carried columns that must travel."""
    placed = (layout.time, layout.source, *layout.order)
    return tuple(dict.fromkeys(name for name in placed if name is not None and name not in declared.columns))


def _pack_plan(declared: Declared, stage: Stage) -> PackPlan:
    """What pack must know but the shards' keys, which Spark is asked for when the query runs."""
    timing, roles, names = declared.timing, declared.roles, declared.columns
    stamp = None if roles.arrival is None else _place(declared, roles.arrival, STAMP)
    return PackPlan(
        shard_keys=(),
        time=stage.layout.time,
        stamp=stamp,
        source=stage.layout.source,
        columns=names + _carried(declared, stage.layout),
        user_columns=names,
        filtering=declared.filtered,
        beating=timing.heartbeat_us is not None and declared.df.isStreaming,
        controlled=False,
        ending=roles.end is not None,
        tick_us=timing.tick_us,
        idle_ticks=timing.idle_ticks,
        earliest_us=timing.earliest_us,
        latest_us=timing.latest_us,
        max_ahead_us=timing.max_ahead_us,
        change=None if roles.change is None else CHANGED,
        now=NOW if NOW in declared.df.columns else None,
    )


def _story(declared: Declared, stage: Stage, *, first: bool) -> Story:
    """What `explain` tells of a stage; carried copies go by the names of the columns they copy."""
    roles = declared.roles
    copied: dict[str, str | None] = {}
    if first:
        copied = {declared.time_as or TIME: roles.time, SOURCE: roles.source}
        copied.update({f"{ORDER}{number}": name for number, name in enumerate(roles.order)})
    moved = [
        T.StructField(copied.get(each.name) or each.name, each.dataType, True)
        for each in spark_schema(stage.columns).fields
        if first or each.name in stage.user.names
    ]
    read = declared.read if first else stage.user
    time = roles.time if first else stage.layout.time
    controls = tuple(stage.settings.controls) if declared.df.isStreaming else ()
    return Story(stage.name, read, time, stage.steps, tuple(moved), stage.gives, controls)


def _stored(declared: Declared, stages: tuple[Stage, ...], shards: int) -> Stored:
    roles, timing, layout = declared.roles, declared.timing, stages[0].layout
    return {
        "format": FORMAT_VERSION,
        SHARDS: shards,
        "schema": stages[0].user.simpleString(),
        "time": roles.time,
        "key": list(roles.key),
        "source": roles.source,
        "arrival": roles.arrival,
        "order": list(roles.order),
        "end": roles.end,
        "change": roles.change,
        "types": roles.types,
        "places": [layout.time, layout.source, *layout.order],
        "progress": MERGED if timing.merged else LATEST,
        **({"sources": sorted(declared.lacking)} if declared.lacking else {}),
        "tick_us": timing.tick_us,
        **_silence(timing),
        INPUT: {
            "steps": list(declared.exact),
            "max_ahead_us": timing.max_ahead_us,
            "earliest_us": timing.earliest_us,
            "latest_us": timing.latest_us,
        },
        "stages": {
            stage.name: {
                "number": number,
                "key": list(stage.layout.key),
                **_as_sources(stage),
                **stage.settings.describe(),
            }
            for number, stage in enumerate(stages)
        },
    }


def _silence(timing: Timing) -> dict[str, int | str | None]:
    """How silence is measured: values that a user has named stay, those that follow from a deadline change with it."""
    named = {"idle_after_us": timing.idle_after_us, "heartbeat_us": timing.heartbeat_us}
    return {name: FOLLOWS if name in timing.implied else value for name, value in named.items()}


def _as_sources(stage: Stage) -> dict[str, Any]:
    """What a stage says of its results, and of what it passes on, as sources."""
    name, passing = stage.settings.results_as, stage.settings.passes_on
    return {} if name is None else {"results_as": name, "passes_on": list(passing)}
