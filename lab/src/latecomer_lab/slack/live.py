"""A live run on Spark: two feeds, one of which lags, joined within a deadline; the time of micro-batches counts.

Both feeds are Spark's own `rate` source. Sensors report at once. What buses say is behind by a lag that rises from 0 to
`LARGEST_LAG` seconds and falls again, in `CYCLE` seconds, so each source is in order by itself.

Invariants
1. The latency of a micro-batch counts from the arrival of the oldest row that was read in it, at the beginning of its
   tick, to the end of the micro-batch, when all is written and committed.
2. The first `WARM_UP` micro-batches that read rows are shown, and not judged: workers start and code is compiled.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

import latecomer as lc
from latecomer.durations import duration_us
from latecomer_lab.report import Target

WARM_UP = 15
CYCLE, LARGEST_LAG = 40, 4  # seconds
_TICK_US, _AREAS, _A_SECOND = 100_000, 20, 100
_ALLOWED = 0.01
_NOWHERE = dict.fromkeys(("results", "late", "quarantine"), lc.Discard())
_LONGEST_WARM_UP = 180  # seconds


class LiveBatch(NamedTuple):
    """A micro-batch that has read rows; `second` is its end, from the end of the first one."""

    batch: int
    second: float
    latency_us: int
    slack_us: int
    lag_us: int
    rows: int
    certain: float  # the share of rows that were read when every source had come so far
    results: int
    violated: bool | None  # None while the query warms up


def live_batches(progress: Iterable[Mapping[str, Any]], deadline_us: int) -> list[LiveBatch]:
    """The micro-batches in a query's progress events that have read rows."""
    counts = [(event, counted) for event in progress if (counted := lc.read_counters(event)) and counted["released"]]
    ends_us = [_done_us(event) for event, _ in counts]
    return [
        LiveBatch(
            batch=event["batchId"],
            second=round((end_us - ends_us[0]) / 1e6, 1),
            latency_us=(latency_us := end_us - counted["oldest_tick"] * _TICK_US),
            slack_us=counted["slack_us"],
            lag_us=max(0, counted["mark_us"] - counted["merge_us"]),
            rows=counted["released"],
            certain=round(1.0 - counted["slack_ready"] / counted["released"], 4),
            results=counted["given"],
            violated=None if place < WARM_UP else latency_us > deadline_us,
        )
        for place, ((event, counted), end_us) in enumerate(zip(counts, ends_us, strict=True))
    ]


def _done_us(event: Mapping[str, Any]) -> int:
    """When a micro-batch was over."""
    began = datetime.fromisoformat(event["timestamp"]).timestamp()
    return round(began * 1e6) + int(event["durationMs"]["triggerExecution"]) * 1_000


def live_target(batches: Iterable[LiveBatch]) -> Target:
    """The share of micro-batches that missed the deadline, after warm-up; all of them where none came."""
    judged = [each.violated for each in batches if each.violated is not None]
    share = sum(judged) / len(judged) if judged else 1.0
    return Target("live: deadline violated", round(share, 4), _ALLOWED, at_least=False)


def run_live(seconds: int = 60, deadline: str = "8 s") -> list[LiveBatch]:
    """Run the query for so many seconds after it has warmed up, which takes three minutes at most."""
    events = lc.disordered(two_feeds(), time="ts", key="area", arrival="received", tick=f"{_TICK_US} us")
    result = events.join("bus", "scats", within="2 s", keep="1 minute").slack(deadline=deadline)
    with tempfile.TemporaryDirectory(prefix="latecomer-live-", ignore_cleanup_errors=True) as folder:
        query = result.start(sinks=_NOWHERE, checkpoint=f"{folder}/checkpoint", every="1 second")
        try:
            seen = _watched(query, seconds)
        finally:
            query.stop()
    return live_batches(seen, duration_us(deadline, "deadline"))


def _watched(query: StreamingQuery, seconds: int) -> list[Mapping[str, Any]]:
    """The progress events of a query, of which Spark itself keeps the last hundred."""
    seen: dict[int, Mapping[str, Any]] = {}
    ends, warm = time.monotonic() + _LONGEST_WARM_UP, False
    while time.monotonic() < ends:
        if not query.isActive:
            raise RuntimeError(f"the live query has ended: {query.exception()}")
        time.sleep(0.5)
        seen |= {event["batchId"]: event for event in query.recentProgress if event["numInputRows"] > 0}
        if not warm and len(seen) > WARM_UP:
            ends, warm = time.monotonic() + seconds, True
    return list(seen.values())


def two_feeds() -> dict[str, DataFrame]:
    """Buses, which lag, and sensors."""
    place = f"(unix_micros(received) / 1e6 - {time.time()}) % {CYCLE} / {CYCLE}"
    lag = f"{2 * LARGEST_LAG} * least({place}, 1 - {place})"
    return {"bus": _reports(lag).withColumnRenamed("value", "bus"), "scats": _reports("0")}


def _reports(lag: str) -> DataFrame:
    rows = lc.session("latecomer-live").readStream.format("rate").option("rowsPerSecond", _A_SECOND).load()
    rows = rows.withColumnRenamed("timestamp", "received").withColumn("area", F.expr(f"cast(value % {_AREAS} AS int)"))
    return rows.withColumn("ts", F.expr(f"timestamp_micros(unix_micros(received) - cast(1e6 * {lag} AS bigint))"))
