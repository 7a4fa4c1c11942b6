"""One stream, one windowed query, several ways to live with its disorder: what each gives and costs, on Spark."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from latecomer.disorder.load import load
from latecomer.disorder.presets import Preset
from latecomer.disorder.source import open_source
from latecomer.durations import DEFAULT_TICK, Duration, duration_us
from latecomer.errors import InputError, must
from latecomer.events import Int64s, int64_view
from latecomer.extras import needed_for
from latecomer.recordings import ARRIVAL, source_config

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from latecomer.spark.comparing import Comparison

Times = tuple[Int64s, Int64s | None]


def _ignore(_: str, __: int) -> None:
    """Tell nobody."""


def compare(
    data: str | PathLike[str] | Preset | pa.Table,
    *,
    window: str,
    advance: str | None = None,
    aggregates: Sequence[str] = ("count()",),
    ways: Sequence[str] | None = None,
    time: str = "ts",
    unit: str = "us",
    arrival: str | None = None,
    key: str | Sequence[str] | None = None,
    source: str | None = None,
    tick: Duration = DEFAULT_TICK,
    max_ahead: str | None = None,
    every: str | None = None,
    batches: int = 24,
    engine: Literal["spark", "python"] = "spark",
    spark: SparkSession | None = None,
    tell: Callable[[str, int], None] = _ignore,
) -> Comparison:
    """Run a windowed query in several ways on Spark, and score each against the same query on the sorted stream.

    data: a recorded stream, as a file or a folder, an Arrow table, or `lc.preset(...)`; it must fit into memory.
    window, advance: of the windows. aggregates: `count()`, or `sum`, `min`, `max`, `mean` of a column, as text. ways:
    as they are written in code, `"withWatermark('10 minutes')"`, `"tiers('1 second', '1 hour')"`; without them Spark's
    watermark and every strategy, with waits that fit the stream. every: how often each key reports, for time travel.
    time, unit, arrival, key, source, tick, max_ahead: as in `lc.profile`. batches: into how many micro-batches the
    stream is cut. engine: "spark", in the session `spark` or one of ours; or "python", in this process and much sooner:
    the strategies' own code and a model of Spark's watermark, of which the scores are the same and the speed is not
    measured. tell: called with each way's text and how many there are.
    """
    if engine not in ("spark", "python"):
        raise InputError(must("engine", "be spark or python", engine, "choose one"))
    with needed_for("compare"):
        from latecomer.spark.comparing import Asked, Question, Roles, compare_ways, read_way, recorded, usual_ways
    question = Question.read(window, advance, tuple(aggregates))
    wanted = [read_way(text) for text in ways or []]
    names = (key,) if isinstance(key, str) else tuple(key or ())
    table, times, arrival = _table(data, time, unit, arrival)
    roles = Roles(time, names, arrival, source)
    ahead_us = None if max_ahead is None else duration_us(max_ahead, "max_ahead", zero=True)
    needed = [each.column for each in question.aggregates]
    stream = recorded(_chosen(table, roles, needed), roles, times, batches, duration_us(tick, "tick"), ahead_us)
    holes = "holes='anywhere'" if every is None else f"every={every!r}"
    asked, wanted = Asked(question, stream, max_ahead), wanted or usual_ways(stream, question, holes)
    if engine == "python":
        from latecomer.rehearsal import rehearse

        return rehearse(asked, wanted, tell)
    with tempfile.TemporaryDirectory(prefix="latecomer-compare-", ignore_cleanup_errors=True) as folder:
        return compare_ways(spark, asked, wanted, Path(folder), tell)


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
    opened = opened if arrival is None else opened.with_arrival(arrival)
    loaded = load(opened)
    return loaded.table, (loaded.ts_us, loaded.arrival_us), arrival


def _us(table: pa.Table, name: str) -> Int64s:
    column = table[name].combine_chunks()
    if not pa.types.is_timestamp(column.type) or column.null_count:
        raise InputError(must(f"column {name!r}", "have a timestamp in every row", str(column.type), "cast it before"))
    return int64_view(column.cast(pa.timestamp("us", column.type.tz), safe=False))


def _chosen(table: pa.Table, roles: Any, needed: Sequence[str | None]) -> pa.Table:
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
