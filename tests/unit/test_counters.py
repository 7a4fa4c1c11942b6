"""What a query's progress events say."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from pyspark.sql import Row

import latecomer as lc
from latecomer.events import FOREVER_US, NEVER_US
from latecomer.spark.packed import counters_of


def progress(**counters: int) -> dict[str, Any]:
    """A progress event with some counters."""
    return {"observedMetrics": {"latecomer": Row(**{**dict.fromkeys(counters_of({}), 0), **counters})}}


@pytest.mark.parametrize(
    ("event", "through"),
    [
        (None, None),
        ({"observedMetrics": {}}, None),
        (progress(punctuation_us=NEVER_US), None),
        (progress(punctuation_us=-1), datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)),
        (progress(punctuation_us=1_700_000_000_000_001), datetime(2023, 11, 14, 22, 13, 20, 1, tzinfo=UTC)),
        (progress(punctuation_us=FOREVER_US), datetime.max.replace(tzinfo=UTC)),
    ],
)
def test_a_progress_event_says_through_when_answers_are_final(event: Any, through: datetime | None) -> None:
    assert lc.final_through(event) == through


@dataclass
class Query:
    """A query as far as its counters go."""

    recentProgress: list[dict[str, Any]]


def test_a_query_that_waits_still_says_what_it_holds_and_how_far_it_is() -> None:
    waiting: dict[str, Any] = {"observedMetrics": {}}
    query = Query([progress(held=5, punctuation_us=1), progress(held=3, punctuation_us=2), waiting, waiting])
    counters = lc.read_counters(query)
    assert counters is not None
    assert (counters["held"], counters["punctuation_us"]) == (3, 2)
    assert lc.final_through(query) == datetime(1970, 1, 1, microsecond=2, tzinfo=UTC)
    assert lc.read_counters(Query([waiting])) is None
    assert lc.final_through(Query([])) is None
