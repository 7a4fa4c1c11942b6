"""What a query's progress events say."""

from __future__ import annotations

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
