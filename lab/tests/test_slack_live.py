"""The bookkeeping of the live run, on progress events as Spark gives them."""

from __future__ import annotations

from typing import Any

from pyspark.sql import Row

from latecomer_lab.slack.live import WARM_UP, live_batches, live_target

DEADLINE_US, BEGAN_S = 6_000_000, 1_700_000_000


def event(batch: int, oldest_s: float, took_ms: int = 2_000, **counted: int) -> dict[str, Any]:
    """A micro-batch that begins at its own second and reads rows of which the oldest came `oldest_s` before."""
    known = {"released": 200, "slack_ready": 50, "slack_us": 1_500_000, "given": 9}
    known |= {"oldest_tick": round((BEGAN_S + batch - oldest_s) * 10), "mark_us": 9_000_000, "merge_us": 6_500_000}
    stamp = f"2023-11-14T22:13:{20 + batch:02}.000Z"  # BEGAN_S is 22:13:20
    metrics = {"latecomer-one-two": Row(**{**known, **counted})}
    return {
        "batchId": batch,
        "timestamp": stamp,
        "durationMs": {"triggerExecution": took_ms},
        "observedMetrics": metrics,
    }


def test_latency_counts_from_the_oldest_arrival_to_the_end_of_the_micro_batch() -> None:
    (found,) = live_batches([event(3, oldest_s=2.5)], DEADLINE_US)
    assert found._asdict() == {
        "batch": 3,
        "second": 0.0,
        "latency_us": 4_500_000,
        "slack_us": 1_500_000,
        "lag_us": 2_500_000,
        "rows": 200,
        "certain": 0.75,
        "results": 9,
        "violated": None,
    }


def test_micro_batches_that_read_nothing_are_not_counted() -> None:
    idle = {**event(1, 1.0), "observedMetrics": {}}
    found = live_batches([event(0, 1.0), idle, event(2, 1.0, released=0), event(4, 1.0)], DEADLINE_US)
    assert [(each.batch, each.second) for each in found] == [(0, 0.0), (4, 4.0)]


def test_the_deadline_is_judged_after_warm_up() -> None:
    oldest = [9.0] * WARM_UP + [4.0, 4.1, 4.0, 1.0]  # two seconds more to the end
    found = live_batches([event(number, each) for number, each in enumerate(oldest)], DEADLINE_US)
    assert [each.violated for each in found[WARM_UP:]] == [False, True, False, False]
    target = live_target(found)
    assert (target.name, target.value, target.target, target.met) == ("live: deadline violated", 0.25, 0.01, False)
    assert live_target(found[-1:]).met


def test_a_run_that_never_warms_up_has_not_held_the_deadline() -> None:
    assert live_target(live_batches([event(0, 1.0)], DEADLINE_US)).value == 1.0
