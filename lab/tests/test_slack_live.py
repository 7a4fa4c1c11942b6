"""The bookkeeping of the live run, on what a steered query observes."""

from __future__ import annotations

from latecomer.slack import FixedSlack, Goal, GraphEdge, LatencyGraph, Observation
from latecomer_lab.slack.live import WARM_UP, Live, LiveRun, Watched, live_rows
from latecomer_lab.slack.targets import live_targets

SECOND_US = 1_000_000
EDGES = (GraphEdge("one", "sources"), GraphEdge("two", "one"), GraphEdge("two", "sources"))
GOAL = Goal(LatencyGraph(EDGES), 6 * SECOND_US, 100_000)


def seen(stage: str, source: str, latency_s: float, slack_ready: int = 0) -> Observation:
    latency_us = round(latency_s * SECOND_US)
    return Observation(stage, source, 0, SECOND_US, 0, 2, 7, 0, 0.0, 1.0, 50, slack_ready, latency_us, 0)


def watched(*latencies: tuple[float, float, float]) -> LiveRun:
    """A run of micro-batches with these latencies of the edges."""
    policy = Watched("tuner", FixedSlack("1 s"))
    controller = policy.begin(GOAL)
    for first, before, sources in latencies:
        edges = [seen("one", "sources", first, 10), seen("two", "one", before), seen("two", "sources", sources)]
        assert controller.decide(edges) == {"one": SECOND_US, "two": SECOND_US}
    return policy.run


def test_latency_is_that_of_the_slowest_path() -> None:
    first, second = watched((2.0, 3.0, 4.0), (0.5, 1.0, 4.0)).intervals
    assert (first.latency_us, second.latency_us) == (5 * SECOND_US, 4 * SECOND_US)
    assert (first.rows, first.slack_ready, first.slack_us, first.violated) == (100, 10, {"one": 2, "two": 2}, None)


def test_the_deadline_is_judged_after_warm_up() -> None:
    found = watched(*[(9.0, 1.0, 1.0)] * WARM_UP, (3.0, 3.0, 1.0), (3.0, 3.1, 1.0), (1.0, 1.0, 1.0), (1.0, 1.0, 1.0))
    assert [each.violated for each in found.judged] == [False, True, False, False]
    assert (found.violated, round(found.certain, 3)) == (0.25, 0.9)
    (row,) = live_rows(Live(rows_per_second=100), [found])
    assert (row["violated_percent"], row["certain_percent"], row["rows_per_second"]) == (25.0, 90.0, 300)
    assert len(row["latency_s"]) == len(row["slack_s"]["two"]) == WARM_UP + 4
    (target,) = live_targets([row, {**row, "policy": "fixed 1 s"}])
    assert (target.value, target.target, target.met) == (25.0, 1.0, False)


def test_a_run_that_never_warms_up_has_not_held_the_deadline() -> None:
    (row,) = live_rows(Live(), [watched((1.0, 1.0, 1.0))])
    assert (row["micro_batches"], row["violated_percent"]) == (0, 100.0)
    assert live_rows(Live(), [LiveRun("tuner", 6, [])])[0]["slack_s"] == {}
