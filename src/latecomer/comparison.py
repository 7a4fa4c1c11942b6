"""One stream, one windowed query, several ways to live with its disorder: what each gives and costs, on Spark."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, TypedDict, Unpack

import pyarrow as pa
import pyarrow.compute as pc

from latecomer.disorder.hole_choice import choose_holes
from latecomer.disorder.load import load
from latecomer.disorder.presets import Preset
from latecomer.disorder.source import open_source
from latecomer.durations import DEFAULT_TICK, Duration, duration_us
from latecomer.errors import InputError, must
from latecomer.events import Int64s, int64_view
from latecomer.extras import needed_for
from latecomer.outputs import REVISION_COLUMNS
from latecomer.recordings import ARRIVAL, source_config
from latecomer.windows import WINDOW_END, WINDOW_START
from latecomer.windows.grouping import number_keys

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from latecomer.spark.comparing import Asked, Comparison, Pace, RecordedStream, Roles

Data: TypeAlias = "str | PathLike[str] | Preset | pa.Table"
Tell = Callable[[str, int], None]


class Recorded(TypedDict, total=False):
    """What is known of a recorded stream, as in `lc.profile`, and how it is cut into micro-batches.

    trigger: how often the query runs, as in `.trigger(processingTime=...)`. batches: instead of it, into how many.
    """

    time: str
    unit: str
    arrival: str | None
    key: str | Sequence[str] | None
    source: str | None
    tick: Duration
    max_ahead: str | None
    trigger: Duration | None
    batches: int | None


def nobody(_: str, __: int) -> None:
    """Tell nobody."""


def compare(
    data: Data,
    *,
    window: str,
    advance: str | None = None,
    aggregates: Sequence[str] = ("count()",),
    ways: Sequence[str] | None = None,
    every: str | None = None,
    engine: Literal["spark", "python"] = "spark",
    spark: SparkSession | None = None,
    tell: Tell = nobody,
    **recorded: Unpack[Recorded],
) -> Comparison:
    """Run a windowed query in several ways on Spark, and score each against the same query on the sorted stream.

    data: a recorded stream, as a file or a folder, an Arrow table, or `lc.preset(...)`; it must fit into memory.
    window, advance: of the windows. aggregates: `count()`, or `sum`, `min`, `max`, `mean` of a column, as text. ways:
    as they are written in code, `"withWatermark('10 minutes')"`, `"tiers('1 second', '1 hour')"`; without them Spark's
    watermark and every strategy, with waits that fit the stream. every: how often each key reports, for time travel;
    without it, what the stream shows. engine: "spark", in the session `spark` or one of ours; or "python", in this
    process and much sooner: the strategies' own code and a model of Spark's watermark, of which the scores are the same
    and the speed is not measured. tell: called with each way's text and how many there are. recorded: time ("ts"),
    unit, arrival, key, source, tick and max_ahead, as in `lc.profile`; trigger: how often the query runs, which cuts
    the stream into micro-batches, or batches: into how many (24; on Spark at most 90). Delays are no finer than these.
    """
    if engine not in ("spark", "python"):
        raise InputError(must("engine", "be spark or python", engine, "choose one"))
    with needed_for("compare"):
        from latecomer.spark.comparing import compare_ways, read_way, usual_ways
    wanted = [read_way(text) for text in texts_of(ways or (), "ways")]
    asked = ask_of(data, (window, advance, texts_of(aggregates, "aggregates")), recorded)
    wanted = wanted or usual_ways(asked.stream, asked.question, holes_of(asked.stream, every))
    if engine == "python":
        from latecomer.rehearsal import rehearse

        return rehearse(asked, wanted, tell)
    with tempfile.TemporaryDirectory(prefix="latecomer-compare-", ignore_cleanup_errors=True) as folder:
        return compare_ways(spark, asked, wanted, Path(folder), tell)


def texts_of(given: Sequence[str], where: str) -> tuple[str, ...]:
    """Calls as text, of which a single one may stand alone."""
    texts = (given,) if isinstance(given, str) else tuple(given)
    if not all(isinstance(each, str) for each in texts):
        raise InputError(must(where, "be calls as text", texts, 'e.g. ["count()", "max(\'kwh\')"]'))
    return texts


def ask_of(
    data: Data, windows: tuple[str, str | None, tuple[str, ...]], given: Recorded, usual_batches: int = 24
) -> Asked:
    """The question, and the stream that it is asked of; windows: size, advance and aggregates."""
    from latecomer.spark.comparing import LEAST_ROWS, Asked, Question, Roles, recorded

    for name in given:
        if name not in Recorded.__annotations__:
            rule = f"be declared with {', '.join(Recorded.__annotations__)}"
            raise InputError(must("the stream", rule, name, "correct the name"))
    question = Question.read(*windows)
    key, time, max_ahead = given.get("key"), given.get("time", "ts"), given.get("max_ahead")
    rows = _read(data, time, given.get("unit", "us"), given.get("arrival"))
    if rows.table.num_rows < LEAST_ROWS:
        got = f"{rows.table.num_rows} with a time, {rows.left_out} without"
        raise InputError(must("the stream", f"have at least {LEAST_ROWS} rows", got, "record a longer part of it"))
    roles = Roles(time, (key,) if isinstance(key, str) else tuple(key or ()), rows.arrival, given.get("source"))
    chosen = _chosen(rows.table, roles, [each.column for each in question.aggregates])
    ahead_us = None if max_ahead is None else duration_us(max_ahead, "max_ahead", zero=True)
    stream = recorded(chosen, roles, (rows.ts_us, rows.arrival_us), _pace(given, usual_batches), ahead_us)
    return Asked(question, replace(stream, left_out=rows.left_out), max_ahead)


def _pace(given: Recorded, usual: int) -> Pace:
    from latecomer.spark.comparing import Pace

    trigger, batches = given.get("trigger"), given.get("batches")
    if batches is not None and (isinstance(batches, bool) or not isinstance(batches, int)):
        raise InputError(must("batches", "be a whole number", batches, "e.g. 24"))
    trigger_us = None if trigger is None else duration_us(trigger, "trigger")
    return Pace(duration_us(given.get("tick", DEFAULT_TICK), "tick"), batches, trigger_us, usual)


def holes_of(stream: RecordedStream, every: str | None) -> str:
    """What to say of holes, as it is written in a call: the period that is given, or what the stream shows."""
    if every is not None:
        duration_us(every, "every")
        return f"every={every!r}"
    counted, ts_us = stream.counted
    (codes,), _, _ = number_keys([counted], stream.roles.key)
    choice = choose_holes(ts_us, codes, {}) if stream.roles.key else None
    return "holes='anywhere'" if choice is None else choice.code


class _Rows(NamedTuple):
    """All rows that have a time, in microseconds, and the column of their arrival; and how many have none."""

    table: pa.Table
    ts_us: Int64s
    arrival_us: Int64s | None
    arrival: str | None
    left_out: int = 0


def _read(data: Any, time: str, unit: str, arrival: str | None) -> _Rows:
    if isinstance(data, Preset):
        data, arrival = data.table(), ARRIVAL
    if isinstance(data, pa.Table):
        rows = _of_table(data, time, arrival)
    elif isinstance(data, str | PathLike):
        opened = open_source(source_config(Path(data), time, unit, {}, quarantine=True))
        loaded = load(opened if arrival is None else opened.with_arrival(arrival))
        rows = _Rows(loaded.table, loaded.ts_us, loaded.arrival_us, arrival, loaded.bad.table.num_rows)
    else:
        advice = "give a path, an Arrow table, or lc.preset(...)"
        raise InputError(must("data", "be a recorded stream", type(data).__name__, advice))
    return rows


def _of_table(table: pa.Table, time: str, arrival: str | None) -> _Rows:
    names = [time, *([] if arrival is None else [arrival])]
    _check_columns(table, names)
    for name in names:
        if not pa.types.is_timestamp(table.schema.field(name).type):
            got = str(table.schema.field(name).type)
            raise InputError(must(f"column {name!r}", "have timestamps", got, "cast it before"))
    whole = table.filter(reduce(pc.and_, (table[name].is_valid() for name in names)))
    arrival_us = None if arrival is None else _us(whole, arrival)
    return _Rows(whole, _us(whole, time), arrival_us, arrival, len(table) - len(whole))


def _us(table: pa.Table, name: str) -> Int64s:
    column = table[name].combine_chunks()
    return int64_view(column.cast(pa.timestamp("us", column.type.tz), safe=False))


def _chosen(table: pa.Table, roles: Roles, needed: Sequence[str | None]) -> pa.Table:
    """The columns that the question needs."""
    wanted = [roles.time, *roles.key, roles.arrival, roles.source, *needed]
    names = list(dict.fromkeys(name for name in wanted if name is not None))
    _check_columns(table, names)
    for name in roles.key:
        if name in (roles.time, WINDOW_START, WINDOW_END):
            raise InputError(must("key", "be no column of times", name, "name what tells keys apart"))
        if name in REVISION_COLUMNS:
            raise InputError(must("key", "be no column that results have", name, "rename it"))
        if roles.key.count(name) > 1:
            raise InputError(must("key", "name each column once", name, "leave it out"))
    return table.select(names)


def _check_columns(table: pa.Table, names: Sequence[str]) -> None:
    for name in names:
        if table.schema.names.count(name) > 1:
            raise InputError(must("compare", "name columns that are there once", name, "rename one of them"))
        if name not in table.schema.names:
            advice = f"the columns are {', '.join(table.schema.names)}"
            raise InputError(must("compare", "name columns of the stream", name, advice))
