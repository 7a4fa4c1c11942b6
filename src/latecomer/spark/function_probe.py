"""A user's function tried on a few rows: which of its columns are times, and whether replays can run it.

It is called with the rows of one key, with those of another, and with both keys together, now and at other times. The
last must give what the first two give, and the same once more, later: so columns that move with the rows are times, all
others stay, and neither keys nor stretches of time that lie apart depend on each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from math import lcm
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T

from latecomer.errors import InputError, must
from latecomer.events import int64_view
from latecomer.spark.compat import arrow_schema
from latecomer.spark.function_call import Function
from latecomer.spark.time_paths import TimePath, moved_value, time_paths, values_at

Rows = list[dict[str, Any]]
_FIRST_US = 1_704_067_200_000_000 + 1_234_567  # 2024-01-01 00:00:01.234567, which is on no grid of windows
_ROWS, _ODD_US = 24, 1_000_003  # of each key; what times of rows differ by besides
_REACHES = 3  # how long the made rows last, by how far results reach: several windows, also where there is no key
_STEPS, _MORE_STEPS = 13, 24  # how many steps later, and what is added to that: another hour of the day
_DAY_US = 86_400_000_000
_MOST = 500  # rows of the user's sample


@dataclass(frozen=True)
class Sample:
    """Rows of two keys, or of one where there is no key, and the time column among them."""

    spark: SparkSession
    schema: T.StructType
    time: str
    parts: tuple[pa.Table, ...]

    def frame(self, *tables: pa.Table) -> DataFrame:
        """Rows as Spark has them."""
        return self.spark.createDataFrame(pa.concat_tables(tables), self.schema)

    def later(self, table: pa.Table, by_us: int) -> pa.Table:
        """The same rows at other times."""
        place = table.schema.get_field_index(self.time)
        field = table.schema.field(place)
        moved = pc.add(table.column(place).cast(pa.int64()), by_us).cast(field.type)
        return table.set_column(place, field, moved)

    @property
    def span_us(self) -> int:
        """From the first time to the last."""
        times = [int64_view(each.column(self.time).combine_chunks()) for each in self.parts]
        return max(int(each.max()) for each in times) - min(int(each.min()) for each in times)


class Probed(NamedTuple):
    """What was seen of a function: the columns of its results, the paths of those that are times, and results.

    step_us: by a multiple of what rows may be moved.
    """

    schema: T.StructType
    times: tuple[TimePath, ...]
    rows: Rows
    step_us: int


def made_sample(spark: SparkSession, schema: T.StructType, time: str, key: Sequence[str], reach_us: int) -> Sample:
    """Rows that are made up: a few in every window, at times that lie on no grid."""
    arrow, apart_us = arrow_schema(schema), max(_REACHES * reach_us // _ROWS, 1)
    zone = UTC if arrow.field(time).type.tz else None
    parts = []
    for which in range(2 if key else 1):
        times = [_FIRST_US + 17 * which + number * apart_us + number * _ODD_US % apart_us for number in range(_ROWS)]
        rows = [
            {each.name: made_value(each.dataType, which if each.name in key else number) for each in schema.fields}
            | {time: datetime(1970, 1, 1, tzinfo=zone) + timedelta(microseconds=at_us)}
            for number, at_us in enumerate(times)
        ]
        parts.append(pa.Table.from_pylist(rows, schema=arrow))
    return Sample(spark, schema, time, tuple(parts))


def users_sample(rows: DataFrame, schema: T.StructType, time: str, key: Sequence[str]) -> Sample:
    """The user's rows, those of two of their keys."""
    missing = [name for name in schema.names if name not in rows.columns]
    if missing or rows.isStreaming:
        got = "a stream" if rows.isStreaming else f"none named {', '.join(missing)}"
        raise InputError(must("sample", "be a batch of rows with the columns of the events", got, "give a few rows"))
    table = rows.select(*schema.names).limit(_MOST).toArrow().cast(arrow_schema(schema))
    table = table.filter(pc.is_valid(table.column(time)))
    parts = [table] if not key else []
    for each in table.select(list(key)).group_by(list(key)).aggregate([]).to_pylist()[:2] if key else ():
        kept = [all(row[name] == each[name] for name in key) for row in table.select(list(key)).to_pylist()]
        parts.append(table.filter(pa.array(kept)))
    if not parts or table.num_rows == 0:
        raise InputError(must("sample", "have rows", "none", "give a few rows of yours"))
    if key and len(parts) < 2:
        rule = f"have rows of two keys among its first {_MOST}: a function must not mix them"
        raise InputError(must("sample", rule, "one", "give a few rows of another one too"))
    return Sample(rows.sparkSession, schema, time, tuple(parts))


def made_value(kind: T.DataType, number: int) -> Any:
    """A value of a type, one of a few."""
    if isinstance(kind, T.StructType):
        return {each.name: made_value(each.dataType, number) for each in kind.fields}
    if isinstance(kind, T.ArrayType):
        return [made_value(kind.elementType, number)]
    if isinstance(kind, T.MapType):
        return [(made_value(kind.keyType, number), made_value(kind.valueType, number))]
    for types, make in _MADE:
        if isinstance(kind, types):
            return make(number)
    return None


_MADE: tuple[tuple[tuple[type[T.DataType], ...], Callable[[int], Any]], ...] = (
    ((T.BooleanType,), lambda number: number % 3 != 0),
    ((T.IntegralType,), lambda number: 1 + number * 7 % 11),
    ((T.FractionalType,), lambda number: float(1 + number * 7 % 11)),
    ((T.StringType, T.CharType, T.VarcharType), lambda number: "abc"[number % 3]),
    ((T.BinaryType,), lambda number: b"abc"[number % 3 :]),
    ((T.DateType,), lambda number: date(2024, 1, 1 + number % 28)),
    ((T.TimestampType,), lambda number: datetime(2024, 1, 1, number % 24, tzinfo=UTC)),
    ((T.TimestampNTZType,), lambda number: datetime(2024, 1, 1, number % 24)),
    ((T.DayTimeIntervalType,), lambda number: timedelta(hours=number)),
)


def probe(function: Function, name: str, sample: Sample, reach_us: int, step_us: int) -> Probed:
    """Call a function with a sample, and refuse it if replays cannot run it."""
    apart = [_called(function, sample.frame(part)) for part in sample.parts]
    if any(isinstance(kind, T.DateType) for _, kind in time_paths(apart[0].schema)):
        step_us = lcm(step_us, _DAY_US)  # dates move by whole days
    steps = -(-(sample.span_us + 4 * reach_us) // step_us)
    by_us = (_STEPS + -(-max(steps - _STEPS, 0) // _MORE_STEPS) * _MORE_STEPS) * step_us
    moved = [sample.later(part, by_us) for part in sample.parts]
    together = _called(function, sample.frame(*sample.parts, *moved))
    schema, rows = together.schema, [row for each in apart for row in each.rows]
    if not rows:
        advice = "give app(..., sample=a few rows of yours) for which it gives some, of two keys"
        raise InputError(must(name, "give results for rows that are made up", "none", advice))
    times: tuple[TimePath, ...] = ()
    try:
        times = _moving(schema, rows, together.rows, by_us)
        _compare([*rows, *_later(rows, times, by_us)], together.rows)
    except _Differ as found:
        if _by_rounding([*rows, *_later(rows, times, by_us)], together.rows):
            rule = f"give the same to the last bit when rows come in another order: {found}"
            advice = "cast what is added to a decimal, or round it before it is added"
            raise InputError(must(name, rule, "floats that differ by rounding", advice)) from None
        raise _refusal(function, name, (sample, moved, apart, by_us), str(found)) from None
    return Probed(schema, times, rows, step_us)


class _Called(NamedTuple):
    schema: T.StructType
    rows: Rows


class _Differ(Exception):
    """Results are others than they should be: the column."""


def _called(function: Function, rows: DataFrame) -> _Called:
    given = function(rows)
    return _Called(given.schema, given.toArrow().to_pylist())


def _moving(schema: T.StructType, rows: Rows, together: Rows, by_us: int) -> tuple[TimePath, ...]:
    """The times that move with the rows; those that do neither that nor stay refuse the function."""
    found = []
    for path, _ in time_paths(schema):
        before, after = (Counter(each for row in some for each in values_at(row, path)) for some in (rows, together))
        later = Counter(each for row in _later(rows, [path], by_us) for each in values_at(row, path))
        if after == before + later:
            found.append(path)
        elif after != before + before:
            raise _Differ(".".join(path))
    return tuple(path for path in found if any(True for row in rows for _ in values_at(row, path)))


def _later(rows: Rows, times: Sequence[TimePath], by_us: int) -> Rows:
    for path in times:
        rows = [moved_value(row, path, by_us) for row in rows]
    return rows


def _compare(wanted: Rows, given: Rows) -> None:
    """Refuse results that are not those wanted, in any order; names the first column that differs."""
    if Counter(map(_text, wanted)) == Counter(map(_text, given)):
        return
    for name in wanted[0]:
        if Counter(_text(row[name]) for row in wanted) != Counter(_text(row[name]) for row in given):
            raise _Differ(name)
    raise _Differ(next(iter(wanted[0])))


def _by_rounding(wanted: Rows, given: Rows) -> bool:
    """Whether floats alone differ, in their last digits."""
    one, other = (Counter(repr(_rounded(row)) for row in rows) for rows in (wanted, given))
    return one == other


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _rounded(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_rounded(each) for each in value]
    return float(f"{value:.10g}") if isinstance(value, float) else value


def _text(value: Any) -> str:
    return repr(value.normalize() if isinstance(value, Decimal) else value)


_Tried = tuple[Sample, Sequence[pa.Table], Sequence[_Called], int]


def _refusal(function: Function, name: str, tried: _Tried, column: str) -> InputError:
    """Why a function cannot be replayed: what it makes of fewer rows tells."""
    sample, moved, apart, by_us = tried
    try:
        _compare([row for each in apart for row in each.rows], _called(function, sample.frame(*sample.parts)).rows)
    except _Differ as found:
        rule = "give for each key what the rows of that key say"
        return InputError(must(name, rule, f"other values of {found} for two keys together", "group by the key too"))
    alone, rows = _called(function, sample.frame(moved[0])).rows, apart[0].rows
    try:
        if rows:
            times = [path for path, _ in time_paths(apart[0].schema) if _moves(rows, alone, path, by_us)]
            _compare(_later(rows, times, by_us), alone)
    except _Differ as found:
        rule = f"give the same at other times, but for columns that are times: {found}"
        advice = "say what it repeats in (periodicity='1 day'), or compute it before the function or after it"
        return InputError(must(name, rule, "other values", advice))
    rule = "give for a stretch of time what rows in reach of its windows say"
    advice = "group by a window, and declare those that are not F.window: app(..., windows=[lc.Window('1 hour')])"
    return InputError(must(name, rule, f"values of {column} that depend on rows further away", advice))


def _moves(rows: Rows, alone: Rows, path: TimePath, by_us: int) -> bool:
    before, after = (Counter(each for row in some for each in values_at(row, path)) for some in (rows, alone))
    return after != before and bool(_later(rows, [path], by_us))
