"""A live run on Spark: two feeds, one of which lags, joined, and a third at a second stage, within one deadline.

All feeds are Spark's own `rate` source. Sensors and cameras report at once. What buses say is behind by a lag that
rises from 0 to `LARGEST_LAG` and falls again in `CYCLE`, so each source is in order by itself.

Invariants
1. The latency of a micro-batch is that of the slowest path: from the arrival of rows, through the waits at both gates,
   to the moment when all lanes are written. How long the micro-batch took is a part of it.
2. The first `WARM_UP` micro-batches that read rows are shown, and not judged: workers start and code is compiled.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

import latecomer as lc
from latecomer.slack import Controller, Goal, Observation, Policy

WARM_UP = 15
CYCLE, LARGEST_LAG = 40, 6  # seconds
_TICK, _AREAS = "100 ms", 50
_NOWHERE = dict.fromkeys(("results", "late", "quarantine"), lc.Discard())
_LONGEST_WARM_UP = 120  # seconds
_TOLD = 10  # seconds

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Live:
    """How long a policy is judged, within which deadline, and how many rows each of three feeds has in a second."""

    seconds: int = 120
    deadline: str = "8 s"
    fixed: str = "1 s"
    rows_per_second: int = 200

    @property
    def policies(self) -> dict[str, Policy]:
        """The tuner, and a fixed slack beside it."""
        return {"tuner": lc.SlackTuner(), f"fixed {self.fixed}": lc.FixedSlack(self.fixed)}


class LiveInterval(NamedTuple):
    """A micro-batch that has read rows; `second`: when it was written, from the first one on."""

    second: float
    latency_us: int
    slack_us: dict[str, int]
    lag_us: int
    rows: int
    slack_ready: int
    violated: bool | None  # None while the query warms up


class LiveRun(NamedTuple):
    """What came of one policy."""

    policy: str
    deadline_us: int
    intervals: list[LiveInterval]

    @property
    def judged(self) -> list[LiveInterval]:
        """The intervals after the warm-up."""
        return [each for each in self.intervals if each.violated is not None]

    @property
    def violated(self) -> float:
        """The share of them that missed the deadline; all where there are none."""
        return sum(each.violated is True for each in self.judged) / len(self.judged) if self.judged else 1.0

    @property
    def certain(self) -> float:
        """The share of rows, of both stages, that were read when every source had come so far."""
        rows = sum(each.rows for each in self.judged)
        return 1.0 - sum(each.slack_ready for each in self.judged) / max(1, rows)


@dataclass
class Watched:
    """A policy whose micro-batches are written down."""

    name: str
    policy: Policy

    def __post_init__(self) -> None:
        self._run = LiveRun(self.name, 0, [])
        self._began: float | None = None

    def begin(self, goal: Goal) -> Controller:
        """The policy's controller, and a pen."""
        self._run = LiveRun(self.name, goal.deadline_us, [])
        return _WatchedController(self.policy.begin(goal), goal, self)

    @property
    def run(self) -> LiveRun:
        """What has come of it so far."""
        return self._run

    def note(self, observations: Sequence[Observation], goal: Goal) -> None:
        """Write a micro-batch down."""
        now, done = time.monotonic(), self._run.intervals
        self._began = now if self._began is None else self._began
        latency_us = round(goal.graph.longest_us({seen.edge: float(seen.latency_us) for seen in observations}))
        by_stage = {seen.stage: seen for seen in observations}
        done.append(
            LiveInterval(
                second=round(now - self._began, 1),
                latency_us=latency_us,
                slack_us={stage: seen.slack_us for stage, seen in by_stage.items()},
                lag_us=max(seen.lag_us for seen in observations),
                rows=sum(seen.rows for seen in by_stage.values()),
                slack_ready=sum(seen.slack_ready for seen in by_stage.values()),
                violated=None if len(done) < WARM_UP else latency_us > goal.deadline_us,
            )
        )


@dataclass
class _WatchedController:
    controller: Controller
    goal: Goal
    watched: Watched

    def start(self) -> dict[str, int]:
        return self.controller.start()

    def decide(self, observations: Sequence[Observation]) -> dict[str, int]:
        self.watched.note(observations, self.goal)
        return self.controller.decide(observations)


def run_live(live: Live, tell: Tell) -> list[LiveRun]:
    """Run the query with each policy; the warm-up of each takes two minutes at most."""
    return [_run(live, Watched(name, policy), tell) for name, policy in live.policies.items()]


def _run(live: Live, watched: Watched, tell: Tell) -> LiveRun:
    with tempfile.TemporaryDirectory(prefix="latecomer-live-", ignore_cleanup_errors=True) as folder:
        result = _asked(live, watched)
        query = result.start(sinks=_NOWHERE, checkpoint=f"{folder}/checkpoint", every="1 second")
        try:
            _watch(query, live, watched, tell)
        finally:
            query.stop()
    return watched.run


def _asked(live: Live, policy: Policy) -> lc.Result:
    """Pairs of buses and sensors, and at a second stage those with cameras."""
    events = lc.disordered(three_feeds(live), time="ts", key="area", arrival="received", tick=_TICK, shards=2)
    pairs = events.join("bus", "scats", within="1 s", keep="30 s", name="pairs").slack("1 s")
    return (
        pairs.by("area").join("pairs", "camera", within="1 s", keep="30 s").slack(deadline=live.deadline, tuner=policy)
    )


def _watch(query: StreamingQuery, live: Live, watched: Watched, tell: Tell) -> None:
    """Wait until a query has warmed up, and for some seconds more."""
    ends, warm, told = time.monotonic() + _LONGEST_WARM_UP, False, 0.0
    while (now := time.monotonic()) < ends:
        if not query.isActive:
            raise RuntimeError(f"the live query has ended: {query.exception()}")
        done = len(watched.run.intervals)
        if not warm and done > WARM_UP:
            ends, warm = now + live.seconds, True
        if now - told >= _TOLD:
            left = f"{ends - now:.0f} s to go" if warm else "warming up"
            tell(f"live, {watched.name}: {done} micro-batches, {left}")
            told = now
        time.sleep(0.5)


def three_feeds(live: Live) -> dict[str, DataFrame]:
    """Buses, which lag, sensors and cameras."""
    place = f"(unix_micros(received) / 1e6 - {time.time()}) % {CYCLE} / {CYCLE}"
    lag = f"{2 * LARGEST_LAG} * least({place}, 1 - {place})"
    return {name: _reports(live, name, lag if name == "bus" else "0") for name in ("bus", "scats", "camera")}


def _reports(live: Live, name: str, lag: str) -> DataFrame:
    rows = lc.session("latecomer-live").readStream.format("rate").option("rowsPerSecond", live.rows_per_second).load()
    rows = rows.withColumnRenamed("timestamp", "received").withColumn("area", F.expr(f"cast(value % {_AREAS} AS int)"))
    behind = F.expr(f"timestamp_micros(unix_micros(received) - cast(1e6 * {lag} AS bigint))")
    return rows.withColumn("ts", behind).withColumnRenamed("value", f"{name}_number")


def live_rows(live: Live, runs: Sequence[LiveRun]) -> list[dict[str, Any]]:
    """What the report has of them: a row for each policy, micro-batch by micro-batch."""
    return [
        {
            "figure": "live",
            "policy": run.policy,
            "deadline_s": run.deadline_us / 1e6,
            "rows_per_second": 3 * live.rows_per_second,
            "micro_batches": len(run.judged),
            "violated_percent": round(100 * run.violated, 2),
            "certain_percent": round(100 * run.certain, 2),
            "seconds": [each.second for each in run.intervals],
            "latency_s": [round(each.latency_us / 1e6, 3) for each in run.intervals],
            "lag_s": [round(each.lag_us / 1e6, 3) for each in run.intervals],
            "slack_s": {
                stage: [round(each.slack_us[stage] / 1e6, 3) for each in run.intervals]
                for stage in (run.intervals[0].slack_us if run.intervals else ())
            },
        }
        for run in runs
    ]
