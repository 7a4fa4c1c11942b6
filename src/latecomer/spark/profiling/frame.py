"""Profile a stream of any size on Spark; the numbers equal those of `disorder/profiler.py`.

The rows are sorted by arrival once and cached in blocks that follow one another; the driver sees a few numbers of each.

- runs, lateness, completeness: per block, given the high-water mark of the blocks before it.
- inversions: those inside a block, those between blocks and between ranges of time (from a table of counts), and those
  between blocks inside one range of time (a second shuffle, by time).
- distance: of the pairs of blocks that can hold the farthest inversion, the staircases are brought together.
- interleaved: greedy patience is a chain, so one task deals the times, in order, keeping only the tails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from latecomer.disorder.profile import EACH_ALONE, Clock, Profile, Wait
from latecomer.disorder.profiler import Recorded, Unmeasured, kept_share, make_picture, profile_recorded
from latecomer.disorder.times import check_unit, column_us
from latecomer.durations import Duration, duration_us
from latecomer.errors import InputError, must
from latecomer.spark.compat import arrow_type
from latecomer.spark.profiling.blocks import Blocks, sorted_blocks
from latecomer.spark.profiling.inversions import count_inversions, farthest, interleaved
from latecomer.spark.profiling.lateness import exact_quantiles, walk
from latecomer.spark.profiling.sources import key_holes, per_source
from latecomer.spark.session import small_rows

Names = str | Sequence[str]


def profile_frame(
    df: DataFrame,
    *,
    time: str,
    unit: str = "us",
    arrival: str | None = None,
    order: Names | None = None,
    key: str | None = None,
    source: str | None = None,
    period: Duration | None = None,
    clock: Clock = EACH_ALONE,
    name: str = "stream",
) -> Profile:
    """Measure the disorder of a batch DataFrame; see `latecomer.recordings.profile` for the arguments."""
    roles = {"time": time, "arrival": arrival, "key": key, "source": source}
    _check(df, roles, order)
    period_us = None if period is None else duration_us(period, "period")
    check_unit(unit, "unit")
    places = {f"order{place}": column for place, column in enumerate(_list(order))}
    rows = _as_rows(df, {**roles, **places}, unit)
    blocks = sorted_blocks(rows, clock=clock)
    try:
        return profile_blocks(blocks, name, period_us)
    finally:
        blocks.close()


def profile_blocks(blocks: Blocks, name: str, period_us: int | None) -> Profile:
    """Measure rows that are sorted already."""
    if blocks.events == 0:
        nothing, none = np.zeros(0, dtype=np.int64), pa.array([], pa.string())
        key, source = (none if there else None for there in (blocks.has_key, blocks.has_source))
        empty = Recorded(nothing, key=key, source=source)
        unmeasured = Unmeasured(blocks.without_time, blocks.cut)
        found = profile_recorded(empty, name=name, period_us=period_us, clock=blocks.clock, unmeasured=unmeasured)
        return replace(found, ahead=blocks.ahead)
    with small_rows(blocks.rows.sparkSession):
        return _measured(blocks, name, period_us)


def _measured(blocks: Blocks, name: str, period_us: int | None) -> Profile:
    walked = walk(blocks)
    late = int(walked.lost[0])
    waits = [
        Wait(wait, kept_share(int(lost), blocks.events)) for wait, lost in zip(walked.waits, walked.lost, strict=True)
    ]
    sources = per_source(blocks) if blocks.has_source else None
    holes = None if period_us is None else key_holes(blocks, period_us)
    keys = blocks.rows.select("key").distinct().count() if blocks.has_key else None
    quantiles, needed = exact_quantiles(blocks, walked)
    return Profile(
        name=name,
        events=blocks.events,
        keys=keys,
        sources=None if sources is None else len(sources),
        late=late,
        lateness=quantiles,
        runs=blocks.runs(),
        interleaved=interleaved(blocks),
        inversions=count_inversions(blocks),
        distance=farthest(blocks),
        completeness=waits,
        needed=needed,
        first_ts_us=blocks.span[0],
        last_ts_us=blocks.span[1],
        quarantined=blocks.without_time,
        cut=blocks.cut,
        tick_us=blocks.tick_us,
        ahead=blocks.ahead,
        per_source=sources or [],
        holes=holes,
        picture=make_picture(walked.cells, blocks.span, blocks.wide),
    )


def _check(df: DataFrame, roles: dict[str, str | None], order: Names | None) -> None:
    if not isinstance(df, DataFrame):
        advice = "give one, or the path of files"
        raise InputError(must("profile", "be given a Spark DataFrame or a path", type(df).__name__, advice))
    if df.isStreaming:
        raise InputError(must("profile", "be given a batch DataFrame", "a stream", "write it to files first"))
    names = [*((role, column) for role, column in roles.items()), *(("order", column) for column in _list(order))]
    for role, column in names:
        if column is not None and column not in df.columns:
            raise InputError(must(f"{role}=", "name a column", column, f"the columns are {', '.join(df.columns)}"))
    if roles["arrival"] is None and not _list(order):
        advice = "give arrival= or order= (a DataFrame has no order of its own)"
        raise InputError(must("profile", "know the order of arrival", None, advice))


def _list(names: Names | None) -> list[str]:
    return [] if names is None else [names] if isinstance(names, str) else list(names)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _as_rows(df: DataFrame, roles: dict[str, str | None], unit: str) -> DataFrame:
    """The columns that matter, times as microseconds, in the form of `blocks.py`."""
    given = {role: column for role, column in roles.items() if column is not None}
    texts = ("key", "source")
    columns = [
        (F.col(_quoted(column)).cast("string") if role in texts else F.col(_quoted(column))).alias(role)
        for role, column in given.items()
    ]
    picked = df.select(*columns)
    others = ", ".join(
        f"{field.name} {field.dataType.simpleString()}"
        for field in picked.schema
        if field.name not in ("time", "arrival")
    )
    arriving = ", arrival_us bigint" if "arrival" in given else ""
    converter = _converter({role: f"{role}= column {column!r}" for role, column in given.items()}, unit)
    for role in ("time", "arrival"):
        if role in given:
            check_time(df.schema[given[role]].dataType, f"{role}= column {given[role]!r}", unit)
    return picked.mapInArrow(converter, f"ts_us bigint{arriving}, cut bigint" + (f", {others}" if others else ""))


def check_time(kind: T.DataType, where: str, unit: str) -> None:
    """Refuse a column that cannot be a time before any work is done."""
    column_us(pa.array([], arrow_type(kind)), unit, where)


def _converter(where: dict[str, str], unit: str) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def convert(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            columns = dict(zip(batch.schema.names, batch.columns, strict=True))
            usable = np.ones(len(batch), dtype=np.bool_)
            times, cut = {}, np.zeros(len(batch), dtype=np.int64)
            for role, name in (("time", "ts_us"), ("arrival", "arrival_us")):
                if role in columns:
                    times[name], good, finer = column_us(columns.pop(role), unit, where[role])
                    usable &= good
                    cut[:1] += finer
            times["ts_us"] = pa.array(times["ts_us"], mask=~usable)
            yield pa.RecordBatch.from_pydict({**times, "cut": cut, **columns})

    return convert
