"""Durations and instants at the edge of the model: text and datetimes in, int64 microseconds inside."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from latecomer.errors import InputError, must

Duration = str | timedelta

DEFAULT_TICK = "100 ms"  # the unit of arrival where nothing else is said

_UNITS_US = {
    "us": ("us", "microsecond", "microseconds"),
    "ms": ("ms", "millisecond", "milliseconds"),
    "s": ("s", "sec", "secs", "second", "seconds"),
    "min": ("min", "mins", "minute", "minutes"),
    "h": ("h", "hour", "hours"),
    "d": ("d", "day", "days"),
    "week": ("w", "week", "weeks"),
}
_SIZE_US = {
    "us": 1,
    "ms": 1_000,
    "s": 1_000_000,
    "min": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
    "week": 604_800_000_000,
}
_MICROSECONDS = {word: _SIZE_US[unit] for unit, words in _UNITS_US.items() for word in words}
_PART = re.compile(r"\s*([+-]?\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*,?")
_LONGEST_US = 36_525 * _SIZE_US["d"]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def duration_us(value: Duration, where: str, *, zero: bool = False) -> int:
    """Read a duration such as `10 minutes`, `1 h 30 min` or a timedelta as microseconds.

    >>> duration_us("1 hour 30 minutes", "latency")
    5400000000
    """
    micros = _timedelta_us(value) if isinstance(value, timedelta) else _text_us(value, where)
    if micros < 0 or (micros == 0 and not zero):
        rule = "not be negative" if zero else "be longer than zero"
        raise InputError(must(where, rule, value, "give a duration such as '10 minutes'"))
    if micros > _LONGEST_US:
        raise InputError(must(where, "be at most 100 years", value, "give a shorter duration"))
    return micros


def signed_duration_us(value: Duration | None, where: str) -> int:
    """Read a duration that may be zero or negative, such as an offset; none is zero.

    >>> signed_duration_us("-3 days", "offset")
    -259200000000
    """
    if value is None:
        return 0
    micros = _timedelta_us(value) if isinstance(value, timedelta) else _text_us(value, where)
    if abs(micros) > _LONGEST_US:
        raise InputError(must(where, "be at most 100 years", value, "give a shorter duration"))
    return micros


def duration_text(us: int) -> str:
    """A duration as people write it, in the longest unit that fits.

    >>> duration_text(5_400_000_000), duration_text(86_400_000_000)
    ('90 minutes', '1 day')
    """
    for unit, word in (("d", "day"), ("h", "hour"), ("min", "minute"), ("s", "second"), ("ms", "ms"), ("us", "us")):
        count, rest = divmod(us, _SIZE_US[unit])
        if rest == 0:
            return f"{count} {word}{'s' if abs(count) != 1 and len(word) > 2 else ''}"
    raise AssertionError("every duration is in whole microseconds")


def instant_us(value: str | datetime, where: str) -> int:
    """Read a date or datetime as microseconds since 1970 UTC; without a zone it means UTC.

    >>> instant_us("1970-01-02", "earliest")
    86400000000
    """
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else value
    except ValueError:
        raise InputError(must(where, "be a date or time", value, "write '2200-01-01'")) from None
    if not isinstance(moment, datetime):
        raise InputError(must(where, "be a date or time", value, "write '2200-01-01'"))
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return _timedelta_us(moment - _EPOCH)


def _timedelta_us(value: timedelta) -> int:
    return value // timedelta(microseconds=1)


def _text_us(value: object, where: str) -> int:
    advice = "write a number and a unit, such as '10 minutes', '500 ms' or '1 h'"
    if not isinstance(value, str):
        raise InputError(must(where, "be a duration with a unit", value, advice))
    return _read(value, where, advice)


@lru_cache(maxsize=1024)  # windows ask for their size again and again
def _read(value: str, where: str, advice: str) -> int:
    text = re.sub(r"^\s*interval\s+", "", value, flags=re.IGNORECASE).strip()
    total, position = 0.0, 0
    while position < len(text):
        part = _PART.match(text, position)
        if part is None:
            raise InputError(must(where, "be a duration with a unit", value, advice))
        unit = part[2] if part[2] in _MICROSECONDS else part[2].lower()
        if unit not in _MICROSECONDS:
            known = ", ".join(_SIZE_US)
            raise InputError(must(where, f"use one of the units {known}", value, advice))
        total += float(part[1]) * _MICROSECONDS[unit]
        position = part.end()
    if not text:
        raise InputError(must(where, "be a duration with a unit", value, advice))
    if abs(total) < _LONGEST_US and abs(total - round(total)) > 1e-3:
        raise InputError(must(where, "be whole microseconds", value, "round it"))
    return round(min(total, 10.0 * _LONGEST_US)) if total > 0 else -round(min(-total, 10.0 * _LONGEST_US))
