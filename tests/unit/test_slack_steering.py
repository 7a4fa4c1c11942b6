"""What a steered query makes of counters: speeds that do not depend on how long micro-batches take."""

from __future__ import annotations

from collections.abc import Sequence

from latecomer.events import NEVER_US
from latecomer.slack import Controller, Goal, Observation
from latecomer.slack.steering import SlackSteering, SteeredStage

TICK_US, SECOND_US = 100_000, 1_000_000


class Remembering:
    """A policy that changes nothing, and its controller."""

    def __init__(self) -> None:
        self.seen: list[Observation] = []

    def begin(self, goal: Goal) -> Controller:
        return self

    def start(self) -> dict[str, int]:
        return {}

    def decide(self, observations: Sequence[Observation]) -> dict[str, int]:
        self.seen += observations
        return {}


def counted(second: float, speed: float = 1.0, lag_us: int = 0) -> dict[str, int]:
    """The counters of a micro-batch that has read all that came up to a second."""
    mark_us = round(second * speed * SECOND_US)
    tick = round(second * SECOND_US) // TICK_US
    rows = {"released": 5, "slack_ready": 0, "released_us": mark_us, "oldest_tick": tick - 3, "release_tick": tick - 3}
    clocks = {"mark_us": mark_us, "merge_us": mark_us - lag_us, "passed_us": mark_us, "arrived_tick": tick}
    return {**rows, **clocks, "longest_wait": 0, "slack_us": 0}


def observed(*batches: tuple[float, dict[str, int]]) -> list[Observation]:
    """What is observed of micro-batches, each written at a second."""
    policy = Remembering()
    steering = SlackSteering(policy, (SteeredStage("slack"),), 6 * SECOND_US, TICK_US)
    for written, own in batches:
        steering.decide({"slack": own}, round(written * SECOND_US))
    return policy.seen


def test_a_short_micro_batch_after_a_long_one_is_no_haste_of_event_time() -> None:
    seen = observed((20, counted(10)), (21, counted(20)), (24, counted(21)))
    assert [each.speed for each in seen] == [1.0, 1.0, 1.0]
    assert [each.lasted_us for each in seen] == [0, SECOND_US, 3 * SECOND_US]


def test_event_time_that_runs_faster_than_arrivals_is_seen_and_so_is_a_growing_lag() -> None:
    seen = observed((11, counted(10, 4.0)), (14, counted(12, 4.0, lag_us=2 * SECOND_US)))
    assert (seen[-1].speed, seen[-1].lag_slope) == (4.0, 1.0)


def test_a_micro_batch_in_which_nothing_arrived_says_nothing_of_the_speed() -> None:
    quiet = {**counted(12, 4.0), "arrived_tick": NEVER_US}
    seen = observed((11, counted(10, 4.0)), (13, counted(12, 4.0)), (14, quiet), (15, counted(13, 4.0)))
    assert [each.speed for each in seen] == [1.0, 4.0, 4.0, 4.0]


def test_one_micro_batch_that_ends_in_the_middle_of_a_second_is_no_other_speed() -> None:
    halfway = {**counted(13), "mark_us": 12_500_000}
    seen = observed((11, counted(10)), (12, counted(11)), (13, counted(12)), (14, halfway), (15, counted(14)))
    assert [each.speed for each in seen] == [1.0, 1.0, 1.0, 1.0, 1.0]
    seen = observed((11, counted(10)), *((second + 1, counted(second, 4.0)) for second in range(11, 15)))
    assert [each.speed for each in seen][-2:] == [4.0, 4.0]


def test_a_slack_that_is_lowered_makes_no_row_wait_twice() -> None:
    """Both gates let go at once what has waited 4 s; rows of the first stage have not waited at the second."""
    policy = Remembering()
    stages = (SteeredStage("slack"), SteeredStage("slack_2", "slack"))
    steering = SlackSteering(policy, stages, 6 * SECOND_US, TICK_US)
    for second, behind_s in ((10, 4), (11, 0)):
        own = {**counted(second, lag_us=4 * SECOND_US), "longest_wait": 40}
        steering.decide(
            {"slack": {**own, "passed_us": own["mark_us"] - behind_s * SECOND_US}, "slack_2": own},
            (second + 1) * SECOND_US,
        )
    lowered = {seen.edge: seen for seen in policy.seen[-3:]}
    assert lowered["slack_2", "slack"].behind_us == 0
    assert lowered["slack_2", "slack"].latency_us == lowered["slack_2", "slack"].overhead_us
    assert lowered["slack_2", "sources"].latency_us == 4 * SECOND_US + lowered["slack_2", "sources"].overhead_us
