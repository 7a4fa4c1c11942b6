"""Times as whole numbers are microseconds: others are told by the years in which they would lie.

Seconds or milliseconds since 1970, read as microseconds, all lie in the first days of 1970: nothing moves on, and all
is held for ever.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from latecomer.errors import InputError, must

# From 1973 on, a date's number of seconds, milliseconds and microseconds have ranges of their own.
_UNITS = {"seconds": (10**8, 10**11, "timestamp_seconds"), "milliseconds": (10**11, 10**14, "timestamp_millis")}


class Units(NamedTuple):
    """The columns that are whole numbers, and how long a tick is."""

    time: str | None
    arrival: str | None
    tick_us: int


def check_units(units: Units, times_us: tuple[int, int], ticks: tuple[int, int]) -> None:
    """Refuse a stream whose first times, or first stamps, the least and the largest, are of another unit."""
    _check("time", units.time, times_us)
    _check("arrival", units.arrival, (ticks[0] * units.tick_us, ticks[1] * units.tick_us))


def _check(role: str, column: str | None, span_us: tuple[int, int]) -> None:
    for unit, (first, end, function) in _UNITS.items():
        if column is not None and first <= span_us[0] and span_us[1] < end:
            date = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=span_us[1])
            advice = (
                f"it looks like {unit}: declare df.withColumn('{column}', {function}('{column}')); "
                "if these times are meant, say so with earliest='1970-01-01'"
            )
            rule = f"be microseconds since 1970: column '{column}'"
            raise InputError(must(f"{role}=", rule, f"{span_us[1]}, which is {date:%Y-%m-%d %H:%M:%S}", advice))
