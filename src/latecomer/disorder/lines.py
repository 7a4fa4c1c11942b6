"""Lines of text become columns: CSV with any separator, or one JSON object a line.

The same function parses in a plain process and in Spark's tasks, so both read the same. A line that cannot be read is a
`Bad` with its reason; none is skipped without a word, blank lines excepted. A quoted field must end on its line.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from latecomer.disorder.times import BadTime, read_times
from latecomer.events import Int64s


class Bad(NamedTuple):
    """A line that cannot be read."""

    line: int
    field: str
    reason: str
    text: str


@dataclass(frozen=True)
class TextFormat:
    """How lines are read: `separator` None means JSON; `time` and `arrival` are places in `names`."""

    names: tuple[str, ...]
    separator: str | None
    header: bool
    time: int
    unit: str
    arrival: int | None = None


@dataclass(frozen=True)
class Parsed:
    """What some lines held: text columns, their kinds, event times and line numbers (from 0); and the bad lines.

    cut: how many times were finer than a microsecond.
    """

    columns: list[pa.Array]
    kinds: list[str]
    ts_us: Int64s
    arrival_us: Int64s | None
    line: Int64s
    bad: list[Bad]
    cut: int


def parse_lines(lines: Sequence[bytes], first_line: int, form: TextFormat) -> Parsed:
    """Read the lines of one file that begin with number `first_line`."""
    numbers, kept = _not_blank(lines, first_line, form)
    rows = _parse_json(kept, numbers, form) if form.separator is None else _parse_csv(kept, numbers, form)
    fields = [form.time] if form.arrival is None else [form.time, form.arrival]
    times = [read_times(rows.columns[field], form.unit) for field in fields]
    troubles = {
        place: (field, trouble) for field, read in zip(fields, times, strict=True) for place, trouble in read.bad
    }
    read_us = [read.ts_us for read in times]
    if troubles:
        texts = dict(zip(numbers.tolist(), kept, strict=True))
        bad = [_bad_time(int(rows.numbers[place]), texts, form, *trouble) for place, trouble in troubles.items()]
        read_us = [np.delete(values, list(troubles)) for values in read_us]
        rows = rows.without(list(troubles), bad)
    arrival_us = None if form.arrival is None else read_us[1]
    cut = sum(read.cut for read in times)
    return Parsed(rows.columns, rows.kinds(), read_us[0], arrival_us, rows.numbers, sorted(rows.bad), cut)


def _bad_time(number: int, texts: dict[int, bytes], form: TextFormat, field: int, trouble: BadTime) -> Bad:
    reason = f"{trouble.reason}; got {trouble.text!r}"
    return Bad(number, form.names[field], reason, texts[number].decode(errors="backslashreplace"))


def _not_blank(lines: Sequence[bytes], first_line: int, form: TextFormat) -> tuple[Int64s, list[bytes]]:
    """Without the header, blank lines, carriage returns at the end and a byte order mark at the beginning."""
    numbers, kept = [], []
    separator = b"\n" if form.separator is None else form.separator.encode()
    for number, line in enumerate(lines, start=first_line):
        if number == 0:
            line = line.removeprefix(b"\xef\xbb\xbf")
        text = line.removesuffix(b"\r")
        if (number == 0 and form.header) or (not text.strip(b" \t") and separator not in text):
            continue
        numbers.append(number)
        kept.append(text)
    return np.array(numbers, dtype=np.int64), kept


@dataclass(frozen=True)
class _Rows:
    """Rows as text columns; JSON knows the kind of each value, CSV does not."""

    columns: list[pa.Array]
    numbers: Int64s
    bad: list[Bad]
    row_kinds: list[list[str]] | None = None

    def without(self, places: list[int], bad: list[Bad]) -> _Rows:
        """Leave rows out that turned out to be bad."""
        good = np.delete(np.arange(len(self.numbers)), places)
        columns = [column.take(pa.array(good)) for column in self.columns]
        kinds = None if self.row_kinds is None else [self.row_kinds[place] for place in good]
        return _Rows(columns, self.numbers[good], self.bad + bad, kinds)

    def kinds(self) -> list[str]:
        """The kind of each column."""
        if self.row_kinds is None:
            return [text_kind(column) for column in self.columns]
        seen = [set(kinds) for kinds in zip(*self.row_kinds, strict=True)] or [set() for _ in self.columns]
        return [join_kinds(kinds) for kinds in seen]


def _parse_csv(kept: list[bytes], numbers: Int64s, form: TextFormat) -> _Rows:
    """All lines at once; if any of them is not as it should be, line by line."""
    table = _all_at_once(kept, form)
    if table is None:
        return _one_by_one(kept, numbers, form, _csv_fields)
    columns = [column.combine_chunks() for column in table.columns]
    return _Rows(columns, numbers, [])


def _all_at_once(kept: list[bytes], form: TextFormat) -> pa.Table | None:
    if not kept:
        return pa.table({name: pa.array([], pa.string()) for name in form.names})
    data = b"\n".join(kept)
    if b"\r" in data:  # which Arrow takes for the end of a line
        return None
    try:
        table = pacsv.read_csv(
            io.BytesIO(data),
            pacsv.ReadOptions(use_threads=False, block_size=len(data) + 1, column_names=list(form.names)),
            pacsv.ParseOptions(delimiter=form.separator, ignore_empty_lines=False),
            pacsv.ConvertOptions(column_types=dict.fromkeys(form.names, pa.string()), strings_can_be_null=False),
        )
    except pa.ArrowInvalid:
        return None
    return table if len(table) == len(kept) else None


class _Unreadable(Exception):
    """A line that is no row."""


def _csv_fields(text: str, form: TextFormat) -> tuple[list[str | None], list[str]]:
    try:
        fields = next(csv.reader([text], delimiter=form.separator or ",", strict=True))
    except csv.Error as error:
        raise _Unreadable(f"must be one row of text: {error}") from None
    if len(fields) != len(form.names):
        raise _Unreadable(f"must have {len(form.names)} fields, not {len(fields)}")
    return list(fields), []


_Fields = Callable[[str, TextFormat], tuple[list[str | None], list[str]]]


def _one_by_one(kept: list[bytes], numbers: Int64s, form: TextFormat, fields_of: _Fields) -> _Rows:
    rows: list[list[str | None]] = []
    kinds: list[list[str]] = []
    good, bad = [], []
    for number, line in zip(numbers.tolist(), kept, strict=True):
        try:
            fields, row_kinds = fields_of(_decoded(line), form)
        except _Unreadable as trouble:
            bad.append(Bad(number, "", str(trouble), line.decode(errors="backslashreplace")))
            continue
        rows.append(fields)
        kinds.append(row_kinds)
        good.append(number)
    columns = [pa.array([row[place] for row in rows], pa.string()) for place in range(len(form.names))]
    return _Rows(columns, np.array(good, dtype=np.int64), bad, kinds if form.separator is None else None)


def _decoded(line: bytes) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        raise _Unreadable(f"must be UTF-8 text; byte {error.start + 1} is not") from None


def _parse_json(kept: list[bytes], numbers: Int64s, form: TextFormat) -> _Rows:
    return _one_by_one(kept, numbers, form, _json_fields)


def _json_fields(text: str, form: TextFormat) -> tuple[list[str | None], list[str]]:
    try:
        row = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _Unreadable(f"must be a JSON object: {error}") from None
    if not isinstance(row, dict):
        raise _Unreadable("must be a JSON object")
    unknown = set(row) - set(form.names)
    if unknown:
        raise _Unreadable(f"must have only the fields of the first line; {sorted(unknown)[0]!r} is new")
    pairs = [_json_value(row.get(name)) for name in form.names]
    return [text for text, _ in pairs], [kind for _, kind in pairs]


def _json_value(value: Any) -> tuple[str | None, str]:
    """A JSON value as text, and its kind."""
    if value is None:
        return None, "nothing"
    if isinstance(value, str):
        return value, "text"
    kinds = {bool: "truth", int: "whole", float: "number"}
    kind = kinds.get(type(value), "text")
    if kind == "whole" and abs(value) >= _EXACT:
        kind = "long" if abs(value) < 2**63 else "text"
    return json.dumps(value), kind


KINDS = {
    "nothing": pa.string(),
    "truth": pa.bool_(),
    "whole": pa.int64(),
    "long": pa.int64(),  # whole, with more digits than a double holds
    "number": pa.float64(),
    "text": pa.string(),
}
_WHOLE = r"^-?(0|[1-9][0-9]{0,18})$"
_NUMBER = r"^-?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_EXACT = 10**15  # whole numbers below this are exact as doubles
_DIGITS = 17  # that a double tells apart


def text_kind(column: pa.Array) -> str:
    """The narrowest kind that holds every text of a column as it is; leading zeros and long fractions stay text."""
    filled = column.filter(pc.not_equal(column, "")) if len(column) else column
    if len(filled) == 0:
        return "nothing"
    if pc.all(pc.match_substring_regex(filled, _WHOLE)).as_py():
        return _whole_kind(filled)
    zeros = pc.match_substring_regex(filled, r"^-?0[0-9]")
    number = pc.and_not(pc.match_substring_regex(filled, _NUMBER), zeros)
    if not pc.all(number).as_py():
        return "text"
    digits = pc.replace_substring_regex(pc.replace_substring_regex(filled, r"[eE].*$", ""), r"^[-0.]+|\.", "")
    return "number" if pc.max(pc.utf8_length(digits)).as_py() <= _DIGITS else "text"


def _whole_kind(filled: pa.Array) -> str:
    try:
        values = filled.cast(pa.int64())
    except pa.ArrowInvalid:  # beyond 64 bits
        return "text"
    bounds = pc.min_max(values).as_py()
    return "whole" if bounds["min"] > -_EXACT and bounds["max"] < _EXACT else "long"


def join_kinds(kinds: set[str]) -> str:
    """The narrowest kind that holds several."""
    some = kinds - {"nothing"}
    if not some:
        return "nothing"
    for wider in ({"whole"}, {"whole", "long"}, {"whole", "number"}):
        if some <= wider:
            return max(some, key=list(KINDS).index)
    return some.pop() if len(some) == 1 else "text"


def typed(column: pa.Array, kind: str) -> pa.Array:
    """Text as values of its kind; where that is no text, nothing becomes null."""
    if kind in ("text", "nothing"):
        return column
    empty = pc.equal(column, "")
    return pc.if_else(empty, pa.scalar(None, pa.string()), column).cast(KINDS[kind])
