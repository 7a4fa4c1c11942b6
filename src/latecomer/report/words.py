"""Durations, instants, shares and names as people read them.

A rounded figure never claims more than is true: 99.99999 % is not written as 100 %, and one event is not 0 %.
"""

from __future__ import annotations

import math

import numpy as np

MS, S, MIN, H, D = 1_000, 1_000_000, 60_000_000, 3_600_000_000, 86_400_000_000
Y = 365 * D

_UNITS = (
    ("y", Y, 2 * Y),
    ("d", D, 2 * D),
    ("h", H, 90 * MIN),
    ("min", MIN, 2 * MIN),
    ("s", S, 999_500),
    ("ms", MS, MS),
)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_SMALL_STEPS_US = [step * 10**ten for ten in range(6) for step in (1, 2, 5)]
_STEPS_US = (
    *_SMALL_STEPS_US,
    *(n * S for n in (1, 2, 5, 10, 15, 30)),
    *(n * MIN for n in (1, 2, 5, 10, 15, 30)),
    *(n * H for n in (1, 2, 3, 6, 12)),
    *(n * D for n in (1, 2, 5, 10)),
)
_STEPS_MONTHS = (1, 3, 6, *(12 * step * 10**ten for ten in range(6) for step in (1, 2, 5)))


def duration(us: int) -> str:
    """A duration in the unit that suits it, to three figures.

    >>> [duration(us) for us in (0, 950, 1_500, 61 * S, 92 * MIN, 3_093_120_000_000, 840 * D)]
    ['0 s', '950 us', '1.5 ms', '61 s', '1.53 h', '35.8 d', '2.3 y']
    """
    if us <= 0:
        return "0 s" if us == 0 else f"-{duration(-us)}"
    for unit, size, least in _UNITS:
        if us >= least or us == size:
            return f"{_three_figures(us / size)} {unit}"
    return f"{us} us"


def duration_up(us: int) -> str:
    """A duration to three figures, never shorter than it is: of waits, which keep what they are said to keep.

    >>> [duration_up(us) for us in (1, 950, 1_501, 98 * D, 98 * D + 1, 99 * MIN + 999_999)]
    ['1 us', '950 us', '1.51 ms', '98 d', '98.1 d', '1.66 h']
    """
    for unit, size, least in _UNITS:
        if us >= least or us == size:
            return f"{figures_up(us, size)} {unit}"
    return f"{us} us"


def figures_up(us: int, size: int) -> str:
    """How many times a size, to three figures, rounded up."""
    decimals = 0 if us >= 100 * size else 1 if us >= 10 * size else 2
    return _three_figures(-(-us * 10**decimals // size) / 10**decimals)


def setting(us: int) -> str:
    """A duration as it is written in a query, rounded up.

    >>> setting(98 * D), setting(1_500), setting(90 * S)
    ('98 days', '1.5 ms', '90 seconds')
    """
    names = (("days", D), ("hours", H), ("minutes", MIN), ("seconds", S), ("ms", MS))
    for unit, size in names:
        if us >= 2 * size or us == size:
            return f"{figures_up(us, size).replace(',', '')} {unit}"
    return f"{us} us" if us < MS else f"{figures_up(us, MS)} ms"


def _three_figures(value: float) -> str:
    decimals = 0 if value >= 100 else 1 if value >= 10 else 2
    text = f"{value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if decimals else text


def number(value: int) -> str:
    """A count with its thousands apart; beyond a quadrillion, its magnitude.

    >>> number(73_004_914_227_284), number(2 * 10**18)
    ('73,004,914,227,284', '2.00e18')
    """
    return f"{value:,}" if abs(value) < 10**15 else f"{value:.2e}".replace("e+", "e")


def short_number(value: int) -> str:
    """A round count for an axis.

    >>> short_number(500), short_number(150_000), short_number(2_000_000)
    ('500', '150 k', '2 M')
    """
    for letter, size in (("T", 10**12), ("G", 10**9), ("M", 10**6), ("k", 1_000)):
        if value >= size:
            return f"{value / size:,.6g} {letter}"
    return str(value)


def share(part: float) -> str:
    """A share in per cent, with decimals enough to tell it from none and from all.

    >>> [share(part) for part in (0.0, 0.423, 0.9994, 0.99999999, 1.0)]
    ['0 %', '42.3 %', '99.94 %', '>99.9999 %', '100 %']
    """
    percent = 100 * part
    apart = min(percent, 100 - percent)
    if apart <= 0:
        return "0 %" if percent <= 0 else "100 %"
    if apart < 0.0001:
        return "<0.0001 %" if percent < 50 else ">99.9999 %"
    text = f"{percent:.{max(1, 1 - math.floor(math.log10(apart)))}f}"
    exact = abs(percent - float(text)) < 1e-9
    return f"{text.rstrip('0').rstrip('.') if exact else text} %"


def counted(value: int, thing: str) -> str:
    """A count and what is counted.

    >>> counted(1, "event"), counted(1_200, "key")
    ('1 event', '1,200 keys')
    """
    return f"{number(value)} {thing}{'' if value == 1 else 's'}"


def label(text: str | None) -> str:
    r"""A name from outside on one line, without what a terminal or a page could stumble over.

    >>> label(None), label("a\x1b[31m\n")
    ('(no name)', 'a?[31m?')
    """
    if not text:
        return "(no name)" if text is None else "(empty)"
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def instant(us: int) -> str:
    """An instant in UTC, to the second, or as exactly as it is.

    >>> instant(86_400_000_000), instant(1_500)
    ('1970-01-02 00:00:00', '1970-01-01 00:00:00.001500')
    """
    return str(np.datetime64(us, "us")).replace("T", " ").removesuffix(".000000")


def span(first_us: int, last_us: int) -> str:
    """A stretch of time: from, to, and how long."""
    if first_us == last_us:
        return f"{instant(first_us)} UTC"
    first, last = instant(first_us), instant(last_us)
    if last_us - first_us >= MIN:
        first, last = first.split(".")[0], last.split(".")[0]
    return f"{first} to {last} UTC ({duration(last_us - first_us)})"


def time_ticks(first_us: int, last_us: int, most: int) -> list[tuple[int, str]]:
    """Round instants for an axis, at most so many.

    >>> [text for _, text in time_ticks(0, D + H, 3)]
    ['1 Jan', '12:00', '2 Jan']
    """
    if first_us == last_us:
        return [(first_us, instant(first_us))]
    for step in _STEPS_US:
        start = -(-first_us // step) * step
        if (last_us - start) // step < most:
            return [(us, _clock(us, step)) for us in range(start, last_us + 1, step)]
    return _month_ticks(first_us, last_us, most)


def _clock(us: int, step: int) -> str:
    day, time = str(np.datetime64(us, "us")).split("T")
    if step >= D or us % D == 0:
        return f"{int(day[-2:])} {_MONTHS[int(day[-5:-3]) - 1]}"
    if step >= MIN:
        return time[:5]
    return time[:8] if step >= S else time.rstrip("0").rstrip(".")


def _month_ticks(first_us: int, last_us: int, most: int) -> list[tuple[int, str]]:
    first, last = (int(np.datetime64(us, "us").astype("M8[M]").astype(int)) + 1970 * 12 for us in (first_us, last_us))
    for step in _STEPS_MONTHS:
        months = range(-(-(first + 1) // step) * step, last + 1, step)
        if len(months) <= most:
            break
    return [(_month_us(month), _month(month, step)) for month in months]


def _month_us(month: int) -> int:
    return int(np.datetime64(month - 1970 * 12, "M").astype("M8[us]").astype(int))


def _month(month: int, step: int) -> str:
    year, rest = divmod(month, 12)
    return str(year) if step >= 12 else f"{_MONTHS[rest]} {year}"


def number_ticks(last: int, most: int) -> list[tuple[int, str]]:
    """Round counts from 0 for an axis, at most so many.

    >>> number_ticks(200_000, 5)
    [(0, '0'), (50000, '50 k'), (100000, '100 k'), (150000, '150 k'), (200000, '200 k')]
    """
    step = next(step * 10**ten for ten in range(40) for step in (1, 2, 5) if last // (step * 10**ten) < most)
    return [(value, short_number(value)) for value in range(0, last + 1, step)]
