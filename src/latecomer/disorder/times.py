"""Event times as text or numbers of a unit, read as int64 microseconds since 1970."""

from __future__ import annotations

import re
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from latecomer.durations import instant_us
from latecomer.errors import InputError, must
from latecomer.events import Bools, Int64s

UNITS = ("ps", "ns", "us", "ms", "s", "iso")
_PER_US = {"ps": 1_000_000, "ns": 1_000}
_US = {"us": 1, "ms": 1_000, "s": 1_000_000}
_FINER = re.compile(r"[.,]\d{6}\d*[1-9]")  # digits beyond microseconds
LARGEST_US = 2**58  # the year 11,000 or so: far from where sums would overflow


class BadTime(NamedTuple):
    """A time that cannot be read, and why."""

    text: str
    reason: str


class Times(NamedTuple):
    """A time for every place, 0 where it could not be read, and the places where that is so.

    cut: how many of them were finer than a microsecond.
    """

    ts_us: Int64s
    bad: list[tuple[int, BadTime]]
    cut: int = 0


def check_unit(unit: str, where: str) -> str:
    """One of the units, or an error that lists them."""
    if unit not in UNITS:
        raise InputError(must(where, f"be one of {', '.join(UNITS)}", unit, "'iso' means dates such as 2026-01-31"))
    return unit


def read_times(column: pa.Array, unit: str) -> Times:
    """Read a column of text; whole numbers all at once, everything else value by value."""
    column = column.fill_null("")
    if unit != "iso" and len(column):
        try:
            values = column.cast(pa.int64()).to_numpy(zero_copy_only=False)
        except pa.ArrowInvalid:
            return _one_by_one(column, unit)
        ts_us = from_unit(values, unit)
        if np.abs(ts_us).max() <= LARGEST_US:
            return Times(ts_us, [], _count_finer(values, unit))
    return _one_by_one(column, unit)


def from_unit(values: Int64s, unit: str) -> Int64s:
    """Whole numbers of a unit as microseconds, finer ones rounded down; what is too large stays too large."""
    if unit in _PER_US:
        return values // _PER_US[unit]
    scale = _US[unit]
    most = 2 * LARGEST_US // scale
    return np.clip(values, -most, most) * scale


def _count_finer(values: Int64s, unit: str) -> int:
    """How many whole numbers of a unit are no whole microseconds."""
    return int(np.count_nonzero(values % _PER_US[unit])) if unit in _PER_US else 0


def _one_by_one(column: pa.Array, unit: str) -> Times:
    ts_us, bad, cut = [], [], 0
    for place, text in enumerate(column.to_pylist()):
        try:
            value, finer = _read(text, unit)
            if abs(value) > LARGEST_US:
                raise ValueError("must be a time within 9,000 years of 1970")
            ts_us.append(value)
            cut += finer
        except ValueError as error:
            bad.append((place, BadTime(text, str(error))))
            ts_us.append(0)
    return Times(np.array(ts_us, dtype=np.int64), bad, cut)


def _read(text: str, unit: str) -> tuple[int, bool]:
    """A time in microseconds, and whether it is finer than that."""
    if unit == "iso":
        try:
            return instant_us(datetime.fromisoformat(text.strip()), "time"), _FINER.search(text) is not None
        except (ValueError, OverflowError):
            raise ValueError("must be a date or time such as 2026-01-31 12:00:00") from None
    try:
        number = Decimal(text.strip())
        if not number.is_finite() or abs(number) > Decimal(10) ** 40:
            raise InvalidOperation
    except InvalidOperation:
        raise ValueError(f"must be a number of {unit}") from None
    if unit in _PER_US:
        finer = bool(number % _PER_US[unit])
        return int(number // _PER_US[unit]) - (1 if number < 0 and finer else 0), finer
    scaled = number * _US[unit]
    finer = scaled != int(scaled)
    return int(scaled) - (1 if scaled < 0 and finer else 0), finer


class TimeColumn(NamedTuple):
    """A column's times in microseconds, which rows have a usable one, and how many times were cut to microseconds."""

    ts_us: Int64s
    good: Bools
    cut: int


def column_us(column: pa.Array, unit: str, where: str) -> TimeColumn:
    """A column of timestamps, dates, whole numbers or text as microseconds."""
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _text_us(column.cast(pa.string()), unit)
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        values, unit = _stamps(column)
    elif pa.types.is_integer(kind) and unit != "iso":
        values = _as_int64(column)
    else:
        advice = "name a timestamp, a date, whole numbers of a unit, or text"
        raise InputError(must(where, f"be a time (unit {unit})", str(kind), advice))
    there = np.asarray(pc.is_valid(values))
    numbers = values.fill_null(0).to_numpy(zero_copy_only=False)
    ts_us = from_unit(numbers, unit)
    return TimeColumn(ts_us, there & (np.abs(ts_us) <= LARGEST_US), _count_finer(numbers, unit))


def _stamps(column: pa.Array) -> tuple[pa.Array, str]:
    """Timestamps or dates as whole numbers, and their unit."""
    kind = column.type
    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        return column.cast(pa.int64()), "ns"
    zone = kind.tz if pa.types.is_timestamp(kind) else None
    return column.cast(pa.timestamp("us", zone), safe=False).cast(pa.int64()), "us"


def _as_int64(column: pa.Array) -> pa.Array:
    """Whole numbers; those beyond 64 bits with a sign are no times."""
    if column.type != pa.uint64():
        return column.cast(pa.int64())
    fits = pc.less(column, pa.scalar(2**63, pa.uint64()))
    return pc.if_else(fits, column, pa.scalar(None, pa.uint64())).cast(pa.int64())


def _text_us(column: pa.Array, unit: str) -> TimeColumn:
    times = read_times(column, unit)
    good = np.ones(len(column), dtype=np.bool_)
    good[[place for place, _ in times.bad]] = False
    return TimeColumn(times.ts_us, good, times.cut)
