"""Read a whole source into memory, in a plain process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from latecomer.disorder.lines import KINDS, Bad, TextFormat, join_kinds, parse_lines, typed
from latecomer.disorder.source import Source, line_blocks, open_parquet
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
class Part:
    """Some rows of a source in file order: numbers, times, columns; and the bad rows among them."""

    number: Int64s
    ts_us: Int64s
    arrival_us: Int64s | None
    columns: dict[str, pa.Array]
    kinds: list[str]
    bad: list[tuple[str, Bad]]
    cut: int


@dataclass(frozen=True)
class Loaded:
    """All rows of a source in file order; the bad rows; and how many times were cut to microseconds."""

    number: Int64s
    ts_us: Int64s
    arrival_us: Int64s | None
    device: pa.Array | None
    table: pa.Table
    bad: BadRows
    cut: int


def load(source: Source, columns: Sequence[str] | None = None, *, as_text: bool = False) -> Loaded:
    """Read every row; a bad one is an error, or is set aside where the source says so."""
    wanted = list(source.names if columns is None else columns)
    parts = list(_text_parts(source) if source.form is not None else _parquet_parts(source, wanted))
    bad = [row for part in parts for row in part.bad]
    if bad and not source.quarantining:
        raise refuse(*bad[0], len(bad))
    check_rows(sum(len(part.ts_us) for part in parts), len(bad), source.files)
    arrivals = [part.arrival_us for part in parts if part.arrival_us is not None]
    return Loaded(
        np.concatenate([part.number for part in parts]),
        np.concatenate([part.ts_us for part in parts]),
        np.concatenate(arrivals) if arrivals else None,
        None if source.device is None else pa.concat_arrays([device_names(part, source.device) for part in parts]),
        pa.table({name: _united(parts, source, name, as_text=as_text) for name in wanted}),
        BadRows.of(bad),
        sum(part.cut for part in parts),
    )


def _united(parts: list[Part], source: Source, name: str, *, as_text: bool) -> pa.ChunkedArray:
    """One column over all parts; text takes the narrowest kind that holds all of it."""
    if source.schema is not None:
        return pa.chunked_array([part.columns[name] for part in parts], source.schema.field(name).type)
    place = source.names.index(name)
    kind = "text" if as_text else join_kinds({part.kinds[place] for part in parts})
    return pa.chunked_array([typed(part.columns[name], kind) for part in parts], KINDS[kind])


def check_rows(rows: int, bad: int, files: tuple[Path, ...]) -> None:
    """No rows at all is an error."""
    if rows == 0:
        also = f", but all {bad:,} are bad" if bad else ""
        raise InputError(f"{files[0]} must have rows{also}; got none; name a file with data")


def text_part(file: str, lines: Sequence[bytes], line: int, before: int, form: TextFormat) -> Part:
    """Lines of a file, from its line `line` on; `before` rows stand in the files before it."""
    parsed = parse_lines(lines, line, form)
    columns = dict(zip(form.names, parsed.columns, strict=True))
    bad = [(file, row) for row in parsed.bad]
    return Part(before + parsed.line, parsed.ts_us, parsed.arrival_us, columns, parsed.kinds, bad, parsed.cut)


def parquet_part(file: str, batch: pa.RecordBatch, line: int, before: int, source: Source) -> Part:
    """Rows of a Parquet file, from its row `line` on."""
    ts_us, good, cut = column_us(batch[source.time], source.unit, f"time field {source.time!r}")
    arrival_us = None
    if source.arrival is not None:
        arrival_us, there, also = column_us(batch[source.arrival], source.unit, f"arrival field {source.arrival!r}")
        cut += also
        bad = [(file, row) for row in _bad_times(batch, good, source.time, line)]
        bad += [(file, row) for row in _bad_times(batch, there | ~good, source.arrival, line)]
        good &= there
    else:
        bad = [(file, row) for row in _bad_times(batch, good, source.time, line)]
    places = np.flatnonzero(good)
    kept = batch if len(places) == len(batch) else batch.take(pa.array(places))
    columns = {name: _of_type(kept[name], source, name) for name in kept.schema.names}
    arrived = None if arrival_us is None else arrival_us[places]
    return Part(before + line + places, ts_us[places], arrived, columns, [], sorted(bad), cut)


def _of_type(column: pa.Array, source: Source, name: str) -> pa.Array:
    """A column in the type of the source's schema, which has stamps in microseconds."""
    assert source.schema is not None
    wanted = source.schema.field(name).type
    return column if column.type == wanted else column.cast(wanted, safe=False)


def _text_parts(source: Source) -> Iterator[Part]:
    assert source.form is not None
    before = 0
    for path in source.files:
        line = 0
        for lines in line_blocks(path):
            yield text_part(str(path), lines, line, before, source.form)
            line += len(lines)
        before += line


def _parquet_parts(source: Source, wanted: list[str]) -> Iterator[Part]:
    before = 0
    needed = [*wanted, source.time, source.arrival, source.device]
    columns = list(dict.fromkeys(name for name in needed if name is not None))
    for path in source.files:
        line = 0
        with open_parquet(path) as file:
            for batch in file.iter_batches(1 << 20, columns=columns):
                yield parquet_part(str(path), batch, line, before, source)
                line += len(batch)
        before += line


def _bad_times(batch: pa.RecordBatch, good: Bools, name: str, first: int) -> Iterator[Bad]:
    """Parquet rows without a usable time."""
    for place in np.flatnonzero(~good).tolist():
        row = batch.slice(place, 1).to_pylist()[0]
        yield Bad(first + place, name, f"must be a time within 9,000 years of 1970; got {row[name]!r}", str(row))


def device_names(part: Part, column: str) -> pa.Array:
    """What a device is known by: its text as it stands in the file."""
    return part.columns[column].cast(pa.string())
