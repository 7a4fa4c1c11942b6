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


def progress(name: str = "latecomer-1-1", **counters: int) -> dict[str, Any]:
    """A progress event with some counters."""
    return {"observedMetrics": {name: Row(**{**dict.fromkeys(counters_of({}), 0), **counters})}}


class Named:
    """A result, as far as its counters are looked for."""

    def __init__(self, metric: str) -> None:
        self.metric = metric


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


def test_counters_are_found_by_their_prefix_and_by_the_result_where_there_are_several() -> None:
    one, two = progress("latecomer-1-1", seen=1), progress("latecomer-2-1", seen=2)
    both = {"observedMetrics": {**one["observedMetrics"], **two["observedMetrics"], "mine": Row(seen=5)}}
    first: Any = Named("latecomer-1")
    other: Any = Named("latecomer-3")
    assert (lc.read_counters(one) or {})["seen"] == 1
    assert (lc.read_counters(both, first) or {})["seen"] == 1
    assert (lc.read_counters(two, other) or {})["seen"] == 2, "a query that was started before the result was made anew"
    assert lc.read_counters(both, other) is None
    assert lc.read_counters({"observedMetrics": {"mine": Row(seen=5)}}) is None
    with pytest.raises(lc.InputError, match="progress event must have the counters of one result; got 'those of 2'"):
        lc.read_counters(both)


def test_two_lanes_of_one_result_in_a_query_have_the_same_counters() -> None:
    one, two = progress("latecomer-1-1", seen=4), progress("latecomer-1-2", seen=4)
    both = {"observedMetrics": {**one["observedMetrics"], **two["observedMetrics"]}}
    assert (lc.read_counters(both) or {})["seen"] == 4


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
