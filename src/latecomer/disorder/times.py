"""Event times as text or numbers of a unit, read as int64 microseconds since 1970."""

from __future__ import annotations

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
LARGEST_US = 2**58  # the year 11,000 or so: far from where sums would overflow


class BadTime(NamedTuple):
    """A time that cannot be read, and why."""

    text: str
    reason: str


class Times(NamedTuple):
    """A time for every place, 0 where it could not be read, and the places where that is so."""

    ts_us: Int64s
    bad: list[tuple[int, BadTime]]


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
            ts_us = from_unit(column.cast(pa.int64()).to_numpy(zero_copy_only=False), unit)
        except pa.ArrowInvalid:
            return _one_by_one(column, unit)
        if np.abs(ts_us).max() <= LARGEST_US:
            return Times(ts_us, [])
    return _one_by_one(column, unit)


def from_unit(values: Int64s, unit: str) -> Int64s:
    """Whole numbers of a unit as microseconds, finer ones rounded down; what is too large stays too large."""
    if unit in _PER_US:
        return values // _PER_US[unit]
    scale = _US[unit]
    most = 2 * LARGEST_US // scale
    return np.clip(values, -most, most) * scale


def _one_by_one(column: pa.Array, unit: str) -> Times:
    ts_us, bad = [], []
    for place, text in enumerate(column.to_pylist()):
        try:
            value = _read(text, unit)
            if abs(value) > LARGEST_US:
                raise ValueError("must be a time within 9,000 years of 1970")
            ts_us.append(value)
        except ValueError as error:
            bad.append((place, BadTime(text, str(error))))
            ts_us.append(0)
    return Times(np.array(ts_us, dtype=np.int64), bad)


def _read(text: str, unit: str) -> int:
    if unit == "iso":
        try:
            return instant_us(datetime.fromisoformat(text.strip()), "time")
        except (ValueError, OverflowError):
            raise ValueError("must be a date or time such as 2026-01-31 12:00:00") from None
    try:
        number = Decimal(text.strip())
        if not number.is_finite() or abs(number) > Decimal(10) ** 40:
            raise InvalidOperation
    except InvalidOperation:
        raise ValueError(f"must be a number of {unit}") from None
    if unit in _PER_US:
        return int(number // _PER_US[unit]) - (1 if number < 0 and number % _PER_US[unit] else 0)
    scaled = number * _US[unit]
    return int(scaled) - (1 if scaled < 0 and scaled != int(scaled) else 0)


def column_us(column: pa.Array, unit: str, where: str) -> tuple[Int64s, Bools]:
    """A column (timestamp, date, whole numbers or text) as microseconds, and which rows have a usable one."""
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _text_us(column.cast(pa.string()), unit)
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        zone = kind.tz if pa.types.is_timestamp(kind) else None
        values, unit = column.cast(pa.timestamp("us", zone), safe=False).cast(pa.int64()), "us"
    elif pa.types.is_integer(kind) and unit != "iso":
        values = _as_int64(column)
    else:
        advice = "name a timestamp, a date, whole numbers of a unit, or text"
        raise InputError(must(where, f"be a time (unit {unit})", str(kind), advice))
    there = np.asarray(pc.is_valid(values))
    ts_us = from_unit(values.fill_null(0).to_numpy(zero_copy_only=False), unit)
    return ts_us, there & (np.abs(ts_us) <= LARGEST_US)


def _as_int64(column: pa.Array) -> pa.Array:
    """Whole numbers; those beyond 64 bits with a sign are no times."""
    if column.type != pa.uint64():
        return column.cast(pa.int64())
    fits = pc.less(column, pa.scalar(2**63, pa.uint64()))
    return pc.if_else(fits, column, pa.scalar(None, pa.uint64())).cast(pa.int64())


def _text_us(column: pa.Array, unit: str) -> tuple[Int64s, Bools]:
    times = read_times(column, unit)
    good = np.ones(len(column), dtype=np.bool_)
    good[[place for place, _ in times.bad]] = False
    return times.ts_us, good
