"""Whole numbers that are no microseconds."""

from __future__ import annotations

import pytest

import latecomer as lc
from latecomer.spark.units import Units, check_units

NOW = 1_763_000_000  # seconds
UNITS = Units("ts", "came", 100_000)


@pytest.mark.parametrize(
    ("number", "looks"),
    [
        (1, r"1970-01-01 00:29:23'; it looks like seconds: .*timestamp_seconds\('ts'\)"),
        (1_000, r"1970-01-21 09:43:20'; it looks like milliseconds: .*timestamp_millis\('ts'\)"),
    ],
)
def test_another_unit_is_named_with_the_cast(number: int, looks: str) -> None:
    times = (NOW - 90) * number, NOW * number
    with pytest.raises(lc.InputError, match=rf"^time= must be microseconds since 1970: column 'ts'; got '.*{looks}"):
        check_units(UNITS, times, (0, 1))
    ticks = times[0] // UNITS.tick_us, times[1] // UNITS.tick_us
    with pytest.raises(lc.InputError, match=r"^arrival= must be microseconds since 1970: column 'came'; got"):
        check_units(UNITS, (0, 1), ticks)
    check_units(Units(None, None, 100_000), times, ticks)


@pytest.mark.parametrize("times", [(0, 5), (0, NOW), (-NOW, NOW), (NOW * 10**6, NOW * 10**6 + 9), (NOW, NOW * 10**6)])
def test_microseconds_and_small_numbers_are_taken(times: tuple[int, int]) -> None:
    check_units(UNITS, times, (times[0] // UNITS.tick_us, times[1] // UNITS.tick_us))
