"""Durations and instants at the edge."""

from datetime import timedelta

import pytest

from latecomer.durations import duration_us, instant_us
from latecomer.errors import InputError


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("10 minutes", 600_000_000),
        ("1 hour 30 minutes", 5_400_000_000),
        ("INTERVAL 5 SECONDS", 5_000_000),
        ("100ms", 100_000),
        ("1.5 s", 1_500_000),
        ("2 days, 1 h", 176_400_000_000),
        ("1 week", 604_800_000_000),
    ],
)
def test_duration_reads_what_spark_users_write(text: str, micros: int) -> None:
    assert duration_us(text, "latency") == micros


def test_duration_reads_a_timedelta() -> None:
    assert duration_us(timedelta(seconds=2), "latency") == 2_000_000


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("10", "latency must be a duration with a unit; got '10'; write a number and a unit"),
        (10, "latency must be a duration with a unit; got 10"),
        ("", "latency must be a duration with a unit"),
        ("0 s", "latency must be longer than zero; got '0 s'"),
        ("-5 minutes", "latency must be longer than zero; got '-5 minutes'"),
        (timedelta(0), "latency must be longer than zero"),
        ("3 fortnights", "latency must use one of the units us, ms, s, min, h, d, week; got '3 fortnights'"),
        ("200 years", "must use one of the units"),
        ("99999 weeks", "must be at most 100 years"),
        ("nan s", "must be a duration with a unit"),
    ],
)
def test_duration_says_what_is_wrong(value: str, message: str) -> None:
    with pytest.raises(InputError) as error:
        duration_us(value, "latency")
    assert message in str(error.value)


def test_zero_is_allowed_where_it_makes_sense() -> None:
    assert duration_us("0 s", "max_ahead", zero=True) == 0
    with pytest.raises(InputError, match="must not be negative"):
        duration_us("-1 s", "max_ahead", zero=True)


def test_instants_without_zone_are_utc() -> None:
    assert instant_us("1970-01-01", "earliest") == 0
    assert instant_us("1970-01-01T01:00:00+01:00", "earliest") == 0
    with pytest.raises(InputError, match="earliest must be a date or time; got 'soon'"):
        instant_us("soon", "earliest")
