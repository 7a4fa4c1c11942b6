"""A recording of events: Parquet files whose rows stand in order of arrival; which row groups it has, and their rows.

A recording is a Parquet file, or a folder of them in the order of their names.

Invariants
1. Arrival never goes back: seen in the statistics before anything is played, else when a row group is read.
2. Opening reads footers only; afterwards a row group is the largest piece that is ever in memory.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from latecomer.errors import InputError, must
from latecomer.events import Int64s

_UNITS = {"milliseconds": "ms", "microseconds": "us", "nanoseconds": "ns"}
BATCH_ROWS = 65_536
KEPT_BYTES = 64 * 2**20  # a row group up to this size is kept for the next piece, as ticks are smaller than groups


class RowGroup(NamedTuple):
    """A row group: its file, its number and first row there, and the bounds of its stamps if they are known."""

    file: str
    number: int
    first: int
    rows: int
    size: int  # in bytes
    low_us: int | None
    high_us: int | None


class Span(NamedTuple):
    """Rows `start` to before `stop` of a row group."""

    group: RowGroup
    start: int
    stop: int


@dataclass(frozen=True)
class Recording:
    """The row groups of a recording, without the empty ones, and its columns."""

    arrival: str
    schema: pa.Schema
    groups: tuple[RowGroup, ...]


def open_recording(path: str, arrival: str) -> Recording:
    """Read what the footers of a recording's files say, and check it."""
    schema: pa.Schema | None = None
    groups: list[RowGroup] = []
    for file in _files(path):
        with open_parquet(file) as parquet:
            found = _schema(parquet)
            if schema is None:
                schema = found
                _check_arrival(schema, arrival)
            elif not found.equals(schema):
                rule = f"have the columns of the first one: {_columns(schema)}"
                raise InputError(must(f"file {file}", rule, _columns(found), "write all files alike"))
            groups += _row_groups(parquet, file, arrival)
    if schema is None or not groups:
        raise InputError(must("recording", "hold at least one row", path, "record something first"))
    check_between(groups, arrival)
    return Recording(arrival, schema, tuple(groups))


def open_parquet(file: str) -> pq.ParquetFile:
    """Open a Parquet file by its path or address."""
    system, place = _locate(file)
    try:
        return pq.ParquetFile(place, filesystem=system, coerce_int96_timestamp_unit="us")
    except (pa.ArrowInvalid, OSError) as error:
        raise InputError(must(f"file {file}", "be Parquet", str(error), "write it anew")) from error


def file_version(file: str) -> tuple[int, int]:
    """Tells a file from another one that takes its place."""
    system, place = _locate(file)
    info = system.get_file_info(place)
    return info.mtime_ns or 0, info.size or 0


def _locate(path: str) -> tuple[fs.FileSystem, str]:
    if not re.match(r"[A-Za-z][A-Za-z0-9+.-]+:/", path):
        return fs.LocalFileSystem(), path
    try:
        system, place = fs.FileSystem.from_uri(path)
        return system, str(place)
    except (pa.ArrowInvalid, OSError) as error:
        raise InputError(must("path", "be a place that pyarrow reads", path, str(error))) from error


def _files(path: str) -> list[str]:
    """The Parquet files of a recording in the order of their names."""
    system, place = _locate(path)
    kind = system.get_file_info(place).type
    if kind == fs.FileType.NotFound:
        raise InputError(must("path", "be a Parquet file or a folder of them", path, "there is nothing there"))
    if kind == fs.FileType.File:
        return [path]
    inside = [info.base_name for info in system.get_file_info(fs.FileSelector(place)) if info.is_file]
    names = sorted(name for name in inside if name.endswith(".parquet") and name[0] not in "._")
    if not names:
        raise InputError(must("path", "hold files named *.parquet", path, "give the folder they stand in"))
    return [f"{path.rstrip('/')}/{name}" for name in names]


def _schema(parquet: pq.ParquetFile) -> pa.Schema:
    """A file's columns; the old INT96 stamps, which have no zone, mean UTC."""
    leaves = [parquet.metadata.schema.column(i) for i in range(parquet.metadata.num_columns)]
    old = {leaf.path for leaf in leaves if leaf.physical_type == "INT96"}
    instant = pa.timestamp("us", "UTC")
    fields = [field.with_type(instant) if field.name in old else field for field in parquet.schema_arrow]
    return pa.schema([field.remove_metadata() for field in fields])


def _columns(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)


def _check_arrival(schema: pa.Schema, arrival: str) -> None:
    if schema.names.count(arrival) != 1:
        raise InputError(must("arrival", "name one column", arrival, f"the columns are {', '.join(schema.names)}"))
    kind = schema.field(arrival).type
    if not (pa.types.is_timestamp(kind) or pa.types.is_int64(kind)):
        rule = f"be a timestamp or int64 microseconds: column '{arrival}'"
        raise InputError(must("arrival", rule, str(kind), "cast it"))


def _row_groups(parquet: pq.ParquetFile, file: str, arrival: str) -> Iterator[RowGroup]:
    """The row groups of a file that have rows."""
    metadata = parquet.metadata
    column = next(i for i in range(metadata.num_columns) if metadata.schema.column(i).path == arrival)
    first = 0
    for number in range(metadata.num_row_groups):
        found = metadata.row_group(number)
        low, high = _bounds(metadata.schema.column(column), found.column(column).statistics)
        if found.num_rows:
            yield RowGroup(file, number, first, found.num_rows, found.total_byte_size, low, high)
        first += found.num_rows


def _bounds(column: pq.ColumnSchema, statistics: pq.Statistics | None) -> tuple[int | None, int | None]:
    """The smallest and largest stamp, unless the statistics are silent or tell of nulls."""
    if column.physical_type != "INT64" or statistics is None or not statistics.has_min_max or statistics.null_count:
        return None, None
    unit = json.loads(column.logical_type.to_json()).get("timeUnit")
    kind = pa.timestamp(_UNITS[unit]) if unit in _UNITS else pa.int64()
    low, high = stamps_us(pa.array([statistics.min_raw, statistics.max_raw], pa.int64()).cast(kind))
    return int(low), int(high)


def stamps_us(column: pa.Array | pa.ChunkedArray) -> Int64s:
    """Timestamps of any unit, or integers, as microseconds; finer ones are cut off as they are for Spark."""
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", column.type.tz), safe=False)
    return np.asarray(column.cast(pa.int64()), dtype=np.int64)


def read_stamps(group: RowGroup, arrival: str) -> Int64s:
    """The arrival stamps of a row group."""
    with open_parquet(group.file) as parquet:
        column = parquet.read_row_group(group.number, columns=[arrival]).column(arrival)
    return checked_stamps(column, group, arrival)


def checked_stamps(column: pa.ChunkedArray, group: RowGroup, arrival: str, skipped: int = 0) -> Int64s:
    """Stamps of a row group from its row `skipped` on, if none is null and none goes back."""
    if column.null_count:
        row = int(np.argmax(column.is_null().to_numpy()))
        raise InputError(_wrong(group, arrival, skipped + row, "not be null", None))
    values = stamps_us(column)
    back = np.flatnonzero(values[1:] < values[:-1])
    if len(back):
        row = int(back[0]) + 1
        raise InputError(_back(group, arrival, skipped + row, (int(values[row]), int(values[row - 1]))))
    return values


def _back(group: RowGroup, arrival: str, row: int, stamps: tuple[int, int]) -> str:
    return _wrong(group, arrival, row, "not go back", "{} after {}".format(*(np.datetime64(us, "us") for us in stamps)))


def _wrong(group: RowGroup, arrival: str, row: int, rule: str, got: str | None) -> str:
    where = f"arrival '{arrival}' in file {group.file}, row {group.first + row} (from 0),"
    return must(where, rule, got, "sort the recording by arrival")


def check_between(groups: Sequence[RowGroup], arrival: str) -> None:
    """Look for a row group that begins before the one before it ends; its stamps are read only to name the row."""
    bounded = [(group, group.low_us, group.high_us) for group in groups]
    known = [(group, low, high) for group, low, high in bounded if low is not None and high is not None]
    for (_, _, high), (group, low, _) in pairwise(known):
        if low < high:
            values = read_stamps(group, arrival)
            row = int(np.argmax(values < high))
            raise InputError(_back(group, arrival, row, (int(values[row]), high)))


def read_span(span: Span, arrival: str) -> Iterator[pa.RecordBatch]:
    """The rows of a span."""
    group = span.group
    if group.size <= KEPT_BYTES:
        table = _kept(group, arrival, file_version(group.file))
        yield from table.slice(span.start, span.stop - span.start).to_batches(max_chunksize=BATCH_ROWS)
        return
    place = 0
    for batch in _read_in_turn(group, arrival, span.stop):
        start, stop = max(span.start - place, 0), min(span.stop - place, batch.num_rows)
        if start < stop:
            yield batch.slice(start, stop - start)
        place += batch.num_rows


@lru_cache(maxsize=1)
def _kept(group: RowGroup, arrival: str, version: tuple[int, int]) -> pa.Table:
    """A whole row group, kept until another one is asked for."""
    with open_parquet(group.file) as parquet:
        table = parquet.read_row_group(group.number)
    checked_stamps(table.column(arrival), group, arrival)
    return table


def _read_in_turn(group: RowGroup, arrival: str, stop: int) -> Iterator[pa.RecordBatch]:
    """A large row group from its first row on, a batch at a time, as far as it is needed."""
    place, last = 0, pa.array([], pa.int64())
    with open_parquet(group.file) as parquet:
        for batch in parquet.iter_batches(BATCH_ROWS, row_groups=[group.number]):
            stamps = batch.column(arrival)
            joined = pa.chunked_array([last.cast(stamps.type), stamps])
            checked_stamps(joined, group, arrival, place - len(last))
            yield batch
            place, last = place + batch.num_rows, stamps.slice(batch.num_rows - 1)
            if place >= stop:
                return
