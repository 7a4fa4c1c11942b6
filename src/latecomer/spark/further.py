"""Planning a stage that takes the results of another.

Where the stage before names its results as a source (`Settings.results_as`), the further stage knows every source by
itself: the results are one, and the sources that were passed on (`Settings.passes_on`) keep theirs. Its events then
have the columns of both, null where a row has none, and the source's name in a carried column.
"""

from __future__ import annotations

import pyarrow as pa

from latecomer.contract import VERBS, Settings
from latecomer.errors import InputError, must
from latecomer.events import EVENT_CHANGE_FIELD, SOURCE, TICK_FIELD, Layout
from latecomer.gives import Line, Onward
from latecomer.outputs import REVISION_COLUMNS
from latecomer.spark.declare import Further, Stage
from latecomer.spark.onward import AsSources, NextStage
from latecomer.spark.packed import check_counters
from latecomer.spark.schema import check_columns, spark_schema
from latecomer.spark.unpack import STAGE

_SOURCE_FIELD = pa.field(SOURCE, pa.string())


def further_stage(asked: Further, settings: Settings) -> Stage:
    """A stage that takes the results of another."""
    before, feeds = asked.stages[-1], asked.feeds
    if before.settings.steers:
        advice = "name the deadline at the last stage: it holds for the whole query, and steers all of them"
        raise InputError(must(f"stage {before.name}", "have no deadline where a further stage follows", "one", advice))
    time = _time_of_results(before)
    own = _with_passing(before, _own_columns(before), time, asked.key)
    user = spark_schema(own)
    check_columns(user)
    changes, position = before.changes or before.gives.retracts, before.gives.position
    if changes:
        check_takes_changes(settings, f"the retractions of {before.name}")
    if settings.per_source and not feeds:
        advice = "make it the first stage, or put it after one that names its results as a source"
        raise InputError(must(f"stage {settings.name}", "know every source by itself", "a further stage", advice))
    _check_no_stage_column([*asked.stages[0].user.names, *own.names])
    order = tuple(each.name for each in position if each.name != SOURCE)
    layout = Layout(time, asked.key, SOURCE if feeds or len(order) < len(position) else None, order)
    carried = [*([_SOURCE_FIELD] if feeds else []), *position, *([EVENT_CHANGE_FIELD] if changes else []), TICK_FIELD]
    columns = pa.schema([*own, *carried])
    gives = settings.gives(columns, layout)
    check_columns(spark_schema(gives.columns), ours=True)
    check_counters(gives.counters)
    names = [stage.name for stage in asked.stages]
    name = settings.name if settings.name not in names else f"{settings.name}_{len(names) + 1}"
    steps = (*((Line("sources", ", ".join(feeds), "results and passed on"),) if feeds else ()), *asked.steps)
    return Stage(name, settings, layout, columns, user, gives, steps, waits=bool(feeds), feeds=feeds)


def next_stage(before: Stage, stage: Stage, keys: tuple[int, ...]) -> NextStage:
    """What a stage must know of the one that takes its results."""
    together, settings = stage.gives.by_key and not stage.layout.key, before.settings
    sources = None
    if settings.results_as is not None:
        sources = AsSources(settings.results_as, settings.passes_on, before.layout.time, before.layout.source)
    return NextStage(keys, stage.columns, stage.layout.time, stage.layout.key, together, sources)


def follows_sources(settings: Settings) -> bool:
    """Whether sources must be followed one by one for a strategy, or for the stage after it."""
    return settings.per_source or settings.results_as is not None


def _own_columns(before: Stage) -> pa.Schema:
    return pa.schema([each for each in before.gives.columns if each.name not in REVISION_COLUMNS])


def _time_of_results(before: Stage) -> str:
    """The column of the results that has their time."""
    time, changing = before.gives.time, before.settings.onward is Onward.NO
    if changing or time is None or time not in _own_columns(before).names:
        rule = "give results that do not change, with their time, where a further stage takes them"
        got = "results that may change" if changing else "results without their time"
        advice = "choose one latency, or keep the time among the columns; or write it and start a second query"
        raise InputError(must(f"stage {before.name}", rule, got, advice))
    return time


def _with_passing(before: Stage, own: pa.Schema, time: str, key: tuple[str, ...]) -> pa.Schema:
    """The columns of the results, and those of the sources that are passed on."""
    roles = before.layout
    for source in before.settings.passes_on:
        for name in before.feeds[source]:
            field = before.columns.field(name)
            if name not in own.names:
                own = own.append(field)
            elif spark_schema(pa.schema([field])) != spark_schema(pa.schema([own.field(name)])):
                got = f"{own.field(name).type} in the results, {field.type} in source {source!r}"
                raise InputError(must(f"column '{name}'", "have one type in a further stage", got, "rename one before"))
        if time != roles.time and time in before.feeds[source]:
            advice = "the results have their time there: rename it before"
            raise InputError(must(f"columns of source {source!r}", f"not be named {time}", time, advice))
        for name in key:
            if name not in before.feeds[source] and name != time:
                advice = f"source {source!r} has {', '.join(before.feeds[source])}"
                raise InputError(must("by", "name a column of every source", name, advice))
    return own


def check_sources(stage: Stage, *, merged: bool) -> None:
    """Refuse results and sources that cannot go on as a strategy says."""
    settings, name = stage.settings, stage.settings.results_as
    for source in settings.passes_on:
        if source not in stage.feeds:
            advice = f"the sources are {', '.join(stage.feeds) or 'not declared'}"
            raise InputError(must(f"stage {stage.name}", "pass on sources that are declared", source, advice))
    if settings.passes_on and name is None:
        raise InputError(
            must(f"stage {stage.name}", "name its results beside sources that it passes on", None, "name them")
        )
    if name is not None and (name in settings.passes_on or not name.strip()):
        raise InputError(
            must(f"results of stage {stage.name}", "have a name of their own", name, "call them otherwise")
        )
    if settings.passes_on and merged:
        advice = "leave progress='merged' out: strategies that know every source wait for each by itself"
        raise InputError(must(f"stage {stage.name}", "measure the progress of its own sources", "merged", advice))


def check_all_taken(stage: Stage) -> None:
    """Refuse a last stage that passes sources on: nobody takes them."""
    passing = stage.settings.passes_on
    if passing:
        advice = "add a stage that takes them, .by(...), or leave them out of lc.disordered(...)"
        raise InputError(
            must(f"stage {stage.name}", "take all sources where it is the last", ", ".join(passing), advice)
        )


def _check_no_stage_column(names: list[str]) -> None:
    """Lanes of several stages have a column of that name."""
    for name in names:
        if name.lower() == STAGE:
            advice = "the lane `late` of several stages has a column of that name: rename yours before"
            raise InputError(must("columns of several stages", f"not be named {STAGE}", name, advice))


def check_takes_changes(settings: Settings, got: str) -> None:
    """Refuse retractions for a strategy that cannot take them."""
    if not settings.takes_changes:
        takers = ", ".join(each.name for each in VERBS.values() if each.takes_changes)
        advice = f"use a strategy that takes retractions ({takers}), or leave them out"
        raise InputError(must(settings.name, "be fed events only", got, advice))
