"""Small tables written as text, for tests that people read: columns two spaces apart, `--` between micro-batches."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pyarrow as pa

from latecomer.errors import InputError, must

CUT = "--"
_APART = re.compile(r"\s*\|\s*|\s{2,}")
_CLOCK = re.compile(r"(\d{1,3}):(\d\d)(?::(\d\d(?:\.\d{1,6})?))?")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_WORDS = {"null": None, "true": True, "false": False}


class Written(NamedTuple):
    """A table, and the positions of the rows before which a new micro-batch begins."""

    table: pa.Table
    cuts: tuple[int, ...]


def read_table(text: str) -> Written:
    """Read a table; a time of day is one of 1970-01-01 in UTC.

    >>> written = read_table('''
    ...     came   ts     meter  kwh
    ...     00:10  00:10  a      1.5
    ...     --
    ...     00:31  00:20  b      null
    ... ''')
    >>> written.cuts, written.table["kwh"].to_pylist(), str(written.table["ts"][1])
    ((1,), [1.5, None], '1970-01-01 00:20:00+00:00')
    """
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    if not lines:
        raise InputError(must("table", "have a line with the names of its columns", text, "e.g. 'came  ts  meter'"))
    names, rows, cuts = _APART.split(lines[0]), list[list[Any]](), list[int]()
    for line in lines[1:]:
        if set(line) == {"-"}:
            cuts += [len(rows)] if rows and len(rows) not in cuts else []
            continue
        cells = _APART.split(line)
        if len(cells) != len(names):
            rule = f"have {len(names)} cells, two spaces or | apart"
            raise InputError(must(f"row {line!r}", rule, len(cells), f"the columns are {', '.join(names)}"))
        rows.append([value_of(cell) for cell in cells])
    columns = zip(*rows, strict=True) if rows else [() for _ in names]
    inside = tuple(cut for cut in cuts if cut < len(rows))  # a line at the end begins no micro-batch
    return Written(
        pa.table([_column(list(values), name) for name, values in zip(names, columns, strict=True)], names), inside
    )


def value_of(cell: str) -> Any:
    """A cell as a value: a time, a number, true, false, null, or text; in quotes it is text whatever it looks like.

    >>> [value_of(cell) for cell in ("3", "0.5", "true", "null", "a b", "'007'")]
    [3, 0.5, True, None, 'a b', '007']
    """
    if len(cell) > 1 and cell[0] == cell[-1] and cell[0] in "'\"":
        return cell[1:-1]
    if cell in _WORDS:
        return _WORDS[cell]
    clock = _CLOCK.fullmatch(cell)
    if clock:
        hours, minutes, seconds = clock.groups()
        return _EPOCH + timedelta(hours=int(hours), minutes=int(minutes), seconds=float(seconds or 0))
    for kind in (int, float, _moment):
        try:
            return kind(cell)
        except ValueError:
            continue
    return cell


def _moment(cell: str) -> datetime:
    found = datetime.fromisoformat(cell)
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found


def _column(values: list[Any], name: str) -> pa.Array:
    try:
        if any(isinstance(value, datetime) for value in values):
            return pa.array(values, pa.timestamp("us", "UTC"))
        if any(isinstance(value, float) for value in values):
            values = [
                float(value) if isinstance(value, int) and not isinstance(value, bool) else value for value in values
            ]
        return pa.array(values)
    except (pa.ArrowException, TypeError) as error:
        raise InputError(must(f"column {name!r}", "have values of one kind", str(error), "write all alike")) from None


def shown(rows: Iterable[dict[str, Any]], names: Sequence[str]) -> str:
    """Rows as such a table."""
    cells = [list(names), *([_cell(row.get(name)) for name in names] for row in rows)]
    widths = [max(len(row[place]) for row in cells) for place in range(len(names))]
    return "\n".join(
        "  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells
    )


def _cell(value: Any) -> str:
    if isinstance(value, datetime):
        moment = value if value.tzinfo else value.replace(tzinfo=UTC)
        since = moment - _EPOCH
        if timedelta(0) <= since < timedelta(days=1):
            return moment.strftime("%H:%M:%S.%f" if since.microseconds else "%H:%M:%S")
        return moment.isoformat()
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str) and value_of(value) != value:
        return f"'{value}'"
    return str(value)
