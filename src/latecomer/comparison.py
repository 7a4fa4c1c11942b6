"""One stream, one windowed query, several ways to live with its disorder: what each gives and costs, on Spark."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict, Unpack

import pyarrow as pa

from latecomer.disorder.hole_choice import choose_holes
from latecomer.disorder.load import load
from latecomer.disorder.presets import Preset
from latecomer.disorder.source import open_source
from latecomer.durations import DEFAULT_TICK, Duration, duration_us
from latecomer.errors import InputError, must
from latecomer.events import Int64s, int64_view
from latecomer.extras import needed_for
from latecomer.recordings import ARRIVAL, source_config
from latecomer.windows.grouping import number_keys

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from latecomer.spark.comparing import Asked, Comparison, RecordedStream, Roles

Times = tuple[Int64s, Int64s | None]
Data: TypeAlias = "str | PathLike[str] | Preset | pa.Table"
Tell = Callable[[str, int], None]


class Recorded(TypedDict, total=False):
    """What is known of a recorded stream, as in `lc.profile`; `batches`: into how many micro-batches it is cut [24]."""

    time: str
    unit: str
    arrival: str | None
    key: str | Sequence[str] | None
    source: str | None
    tick: Duration
    max_ahead: str | None
    batches: int


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
    unit, arrival, key, source, tick and max_ahead, as in `lc.profile`; batches: into how many micro-batches the stream
    is cut (24).
    """
    if engine not in ("spark", "python"):
        raise InputError(must("engine", "be spark or python", engine, "choose one"))
    with needed_for("compare"):
        from latecomer.spark.comparing import compare_ways, read_way, usual_ways
    wanted = [read_way(text) for text in ways or []]
    asked = ask_of(data, (window, advance, tuple(aggregates)), recorded)
    wanted = wanted or usual_ways(asked.stream, asked.question, holes_of(asked.stream, every))
    if engine == "python":
        from latecomer.rehearsal import rehearse

        return rehearse(asked, wanted, tell)
    with tempfile.TemporaryDirectory(prefix="latecomer-compare-", ignore_cleanup_errors=True) as folder:
        return compare_ways(spark, asked, wanted, Path(folder), tell)


def ask_of(data: Data, windows: tuple[str, str | None, tuple[str, ...]], given: Recorded) -> Asked:
    """The question, and the stream that it is asked of; windows: size, advance and aggregates."""
    from latecomer.spark.comparing import Asked, Question, Roles, recorded

    question = Question.read(*windows)
    key, time, max_ahead = given.get("key"), given.get("time", "ts"), given.get("max_ahead")
    table, times, arrival = _table(data, time, given.get("unit", "us"), given.get("arrival"))
    roles = Roles(time, (key,) if isinstance(key, str) else tuple(key or ()), arrival, given.get("source"))
    chosen = _chosen(table, roles, [each.column for each in question.aggregates])
    ahead_us = None if max_ahead is None else duration_us(max_ahead, "max_ahead", zero=True)
    tick_us = duration_us(given.get("tick", DEFAULT_TICK), "tick")
    return Asked(question, recorded(chosen, roles, times, given.get("batches", 24), tick_us, ahead_us), max_ahead)


def holes_of(stream: RecordedStream, every: str | None) -> str:
    """What to say of holes, as it is written in a call: the period that is given, or what the stream shows."""
    if every is not None:
        duration_us(every, "every")
        return f"every={every!r}"
    counted, ts_us = stream.counted
    (codes,), _, _ = number_keys([counted], stream.roles.key)
    choice = choose_holes(ts_us, codes, {}) if stream.roles.key else None
    return "holes='anywhere'" if choice is None else choice.code


def _table(data: Any, time: str, unit: str, arrival: str | None) -> tuple[pa.Table, Times, str | None]:
    """All rows, their times in microseconds, and the column of their arrival."""
    if isinstance(data, Preset):
        data, arrival = data.table(), ARRIVAL
    if isinstance(data, pa.Table):
        _check_columns(data, [time, *([] if arrival is None else [arrival])])
        return data, (_us(data, time), None if arrival is None else _us(data, arrival)), arrival
    if not isinstance(data, str | PathLike):
        advice = "give a path, an Arrow table, or lc.preset(...)"
        raise InputError(must("data", "be a recorded stream", type(data).__name__, advice))
    opened = open_source(source_config(Path(data), time, unit, {}, quarantine=False))
    loaded = load(opened if arrival is None else opened.with_arrival(arrival))
    return loaded.table, (loaded.ts_us, loaded.arrival_us), arrival


def _us(table: pa.Table, name: str) -> Int64s:
    column = table[name].combine_chunks()
    if not pa.types.is_timestamp(column.type) or column.null_count:
        raise InputError(must(f"column {name!r}", "have a timestamp in every row", str(column.type), "cast it before"))
    return int64_view(column.cast(pa.timestamp("us", column.type.tz), safe=False))


def _chosen(table: pa.Table, roles: Roles, needed: Sequence[str | None]) -> pa.Table:
    """The columns that the question needs."""
    wanted = [roles.time, *roles.key, roles.arrival, roles.source, *needed]
    names = list(dict.fromkeys(name for name in wanted if name is not None))
    _check_columns(table, names)
    return table.select(names)


def _check_columns(table: pa.Table, names: Sequence[str]) -> None:
    for name in names:
        if name not in table.schema.names:
            advice = f"the columns are {', '.join(table.schema.names)}"
            raise InputError(must("compare", "name columns of the stream", name, advice))
