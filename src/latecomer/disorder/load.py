"""Read a whole source into memory, in a plain process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from latecomer.disorder.lines import KINDS, Bad, Parsed, join_kinds, parse_lines, typed
from latecomer.disorder.source import Source, line_blocks
from latecomer.disorder.times import column_us
from latecomer.errors import InputError
from latecomer.events import Bools, Int64s

QUARANTINE_SCHEMA = pa.schema(
    [
        ("file", pa.string()),
        ("line", pa.int64()),
        ("field", pa.string()),
        ("reason", pa.string()),
        ("text", pa.string()),
    ]
)


@dataclass(frozen=True)
class BadRows:
    """The rows of some files that cannot be read; lines count from 1 here, as people count."""

    table: pa.Table

    @classmethod
    def of(cls, rows: Sequence[tuple[str, Bad]]) -> BadRows:
        """From (file, bad line) pairs."""
        columns = [
            [file for file, _ in rows],
            [bad.line + 1 for _, bad in rows],
            *([getattr(bad, name) for _, bad in rows] for name in ("field", "reason", "text")),
        ]
        return cls(pa.table(columns, schema=QUARANTINE_SCHEMA))

    def __len__(self) -> int:
        return len(self.table)


def refuse(file: str, bad: Bad, count: int) -> InputError:
    """The error that names the first bad row and says how many there are."""
    field = f", field {bad.field!r}" if bad.field else ""
    many = "it is the only bad row" if count == 1 else f"{count:,} rows are bad"
    return InputError(f"{file}, line {bad.line + 1}{field}: {bad.reason}; {many}; mend them or quarantine bad rows")


@dataclass(frozen=True)
class Loaded:
    """All rows of a source: their numbers, event times and columns, in file order; and the bad rows."""

    number: Int64s
    ts_us: Int64s
    table: pa.Table
    bad: BadRows


def load(source: Source, columns: Sequence[str] | None = None, *, as_text: bool = False) -> Loaded:
    """Read every row; a bad one is an error, or is set aside where the source says so."""
    wanted = list(source.names if columns is None else columns)
    if source.form is None:
        numbers, times, tables, bad = _load_parquet(source, wanted)
        table = pa.concat_tables(tables)
    else:
        numbers, times, parts, bad = _load_text(source)
        table = _typed_table(parts, source, wanted, as_text=as_text)
    if bad and not source.quarantining:
        raise refuse(*bad[0], len(bad))
    check_rows(sum(map(len, times)), len(bad), source.files)
    return Loaded(np.concatenate(numbers), np.concatenate(times), table, BadRows.of(bad))


def check_rows(rows: int, bad: int, files: tuple[Path, ...]) -> None:
    """No rows at all is an error."""
    if rows == 0:
        also = f", but all {bad:,} are bad" if bad else ""
        raise InputError(f"{files[0]} must have rows{also}; got none; name a file with data")


def _load_text(source: Source) -> tuple[list[Int64s], list[Int64s], list[Parsed], list[tuple[str, Bad]]]:
    assert source.form is not None
    numbers, times, parts, bad = [], [], [], []
    before = 0
    for path in source.files:
        line = 0
        for lines in line_blocks(path):
            part = parse_lines(lines, line, source.form)
            numbers.append(before + part.line)
            times.append(part.ts_us)
            parts.append(part)
            bad += [(str(path), row) for row in part.bad]
            line += len(lines)
        before += line
    return numbers, times, parts, bad


def _typed_table(parts: list[Parsed], source: Source, wanted: list[str], *, as_text: bool) -> pa.Table:
    columns = {}
    for name in wanted:
        place = source.names.index(name)
        kind = "text" if as_text else join_kinds({part.kinds[place] for part in parts})
        chunks = [typed(part.columns[place], kind) for part in parts]
        columns[name] = pa.chunked_array(chunks, KINDS[kind])
    return pa.table(columns)


def _load_parquet(
    source: Source, wanted: list[str]
) -> tuple[list[Int64s], list[Int64s], list[pa.Table], list[tuple[str, Bad]]]:
    numbers, times, tables, bad = [], [], [], []
    before = 0
    for path in source.files:
        table = pq.read_table(path, columns=list(dict.fromkeys([*wanted, source.time])), partitioning=None)
        ts_us, good = column_us(table[source.time].combine_chunks(), source.unit, f"time field {source.time!r}")
        bad += [(str(path), row) for row in bad_times(table, np.flatnonzero(~good), source.time)]
        numbers.append(before + np.flatnonzero(good))
        times.append(ts_us[good])
        tables.append(_only(table.select(wanted), good))
        before += len(table)
    return numbers, times, tables, bad


def _only(table: pa.Table, good: Bools) -> pa.Table:
    return table if bool(good.all()) else table.filter(pa.array(good))


def bad_times(table: pa.Table, places: Int64s, time: str, first: int = 0) -> Iterator[Bad]:
    """Parquet rows without a usable time."""
    for place in places.tolist():
        row = table.slice(place, 1).to_pylist()[0]
        reason = f"must be a time within 9,000 years of 1970; got {row[time]!r}"
        yield Bad(first + place, time, reason, str(row))


def device_column(table: pa.Table, name: str) -> pa.Array:
    """A column's values as text, in one piece."""
    column = table[name].combine_chunks()
    return column if pa.types.is_string(column.type) else pc.cast(column, pa.string())
