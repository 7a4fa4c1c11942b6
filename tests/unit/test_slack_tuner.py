"""The tuner as a query meets it: after each interval it says which slacks change."""

from __future__ import annotations

import pytest

from latecomer.errors import InputError
from latecomer.slack.controller import Controller, Goal
from latecomer.slack.latency_graph import GraphEdge, LatencyGraph
from latecomer.slack.observation import History, Observation
from latecomer.slack.policies import FixedSlack, MaxTimestamp, TcpLike
from latecomer.slack.tuner import SlackTuner
from tests.unit.slack_runs import GRAPH, SECOND, TICK, made_run, observed

GOAL = Goal(GRAPH, 6 * SECOND)


def rush(interval: int) -> int:
    """Results take 3 s in the second half of every minute."""
    return 3 * SECOND if interval % 60 >= 30 else 100_000


SLACKS = (2, 6)
HISTORY = History.of(*(made_run(64, slack * SECOND, rush) for slack in SLACKS))


def follow(controller: Controller, intervals: int, *, lag_us: int = 4 * SECOND, speed: float = 1.0) -> list[int]:
    """The slack of each interval where results take what `rush` says."""
    slack_us, found = controller.start()["gate"], []
    for interval in range(intervals):
        found.append(slack_us)
        seen = observed(interval, slack_us, lag_us, rush(interval), speed=speed)
        slack_us = controller.decide(seen).get("gate", slack_us)
    return found


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"alpha": 0.0}, "alpha must lie between 0 and 1, both excluded; got 0.0"),
        ({"alpha": 1.0}, "alpha must lie between 0 and 1, both excluded; got 1.0"),
        ({"z": -1.0}, "z must lie between 0 and 10; got -1.0"),
        ({"model": "forest"}, "model must be one of gaussian, linear, isotonic, svm; got 'forest'"),
        ({"features": "six"}, "features must be 'all' or 'paper'; got 'six'"),
        ({"refit": 5}, "refit must be at least 30 intervals; got 5"),
        ({"step": "0 s"}, "step must be longer than zero"),
    ],
)
def test_wrong_settings_are_refused(settings: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        SlackTuner(**settings)  # type: ignore[arg-type]


def test_a_deadline_below_the_smallest_possible_latency_is_refused_and_that_is_named() -> None:
    with pytest.raises(
        InputError, match=r"deadline must be above the smallest possible latency, 0\.1 s .*; got '0\.1 s'"
    ):
        SlackTuner().begin(Goal(GRAPH, TICK))
    with pytest.raises(InputError, match=r"the smallest possible latency, 0\.2 s"):
        SlackTuner(HISTORY).begin(Goal(GRAPH, 200_000))
    chain = LatencyGraph((GraphEdge("a", "x"), GraphEdge("b", "a", 50_000)))
    with pytest.raises(InputError, match=r"the smallest possible latency, 1\.75 s"):
        Goal(chain, SECOND, TICK).check({("a", "x"): SECOND, ("b", "a"): 500_000})


def test_a_step_that_is_too_small_is_refused() -> None:
    with pytest.raises(InputError, match="step must be at least a 2,000th of the deadline; got '1 ms'; give 3 ms"):
        SlackTuner(step="1 ms").begin(GOAL)


def test_without_a_history_the_slack_leaves_room_for_what_was_just_seen() -> None:
    slack_us = follow(SlackTuner().begin(GOAL), 60, lag_us=9 * SECOND)
    assert slack_us[0] == 3 * SECOND
    assert 5.5 * SECOND <= slack_us[10] <= 5.8 * SECOND
    assert 1.5 * SECOND <= slack_us[45] <= 2.9 * SECOND


def test_a_lag_below_the_deadline_lets_the_slack_be_as_large_as_it_may() -> None:
    assert follow(SlackTuner().begin(GOAL), 20, lag_us=SECOND)[-1] == 6 * SECOND


def test_sources_that_are_one_edge_lag_all_the_same() -> None:
    goal = Goal(LatencyGraph((GraphEdge("gate", "sources"),)), 6 * SECOND)
    for lag_s, least_s, most_s in ((1, 6.0, 6.0), (9, 1.5, 2.4)):
        controller, slack_us = SlackTuner().begin(goal), 3 * SECOND
        for interval in range(20):
            (_, seen) = observed(interval, slack_us, lag_s * SECOND, 3 * SECOND)
            slack_us = controller.decide([seen._replace(input="sources", behind_us=0)]).get("gate", slack_us)
        assert least_s * SECOND <= slack_us <= most_s * SECOND


def test_the_tuner_is_ahead_of_a_rush_that_it_has_learnt() -> None:
    slack_us = follow(SlackTuner(HISTORY).begin(GOAL), 60)
    assert min(slack_us[5:25]) > 4 * SECOND  # the lag: no row is slack-ready
    assert max(slack_us[29:59]) + 3 * SECOND + TICK < 6 * SECOND  # from the second before it on


def test_same_observations_same_decisions() -> None:
    assert follow(SlackTuner(HISTORY).begin(GOAL), 40) == follow(SlackTuner(HISTORY).begin(GOAL), 40)


def test_slack_follows_the_speed_of_event_time() -> None:
    usual, fast = (
        follow(SlackTuner().begin(GOAL), 20, lag_us=round(speed * 30 * SECOND), speed=speed)[-1] for speed in (1.0, 4.0)
    )
    assert fast == 4 * usual


def test_an_interval_slower_than_expected_makes_the_next_ones_careful() -> None:
    controller = SlackTuner(History.of(*(made_run(64, slack * SECOND, lambda _: 100_000) for slack in SLACKS))).begin(
        GOAL
    )
    slack_us = controller.start()["gate"]
    for interval in range(10):
        slack_us = controller.decide(observed(interval, slack_us, 9 * SECOND, 100_000)).get("gate", slack_us)
    before_us = slack_us
    slower = [
        seen._replace(latency_us=seen.latency_us + SECOND) for seen in observed(10, slack_us, 9 * SECOND, 100_000)
    ]
    after_us = controller.decide(slower)["gate"]
    assert before_us - 1.5 * SECOND <= after_us <= before_us - 0.8 * SECOND


def test_nothing_changes_where_the_deadline_holds_with_little_room() -> None:
    controller = SlackTuner(alpha=0.5).begin(GOAL)
    assert controller.decide(observed(0, 3_500_000, 9 * SECOND, 100_000)) == {}


def test_where_no_slack_holds_the_deadline_it_is_none() -> None:
    assert SlackTuner().begin(GOAL).decide(observed(0, 3 * SECOND, 9 * SECOND, 7 * SECOND)) == {"gate": 0}


def test_what_was_seen_can_be_learnt_from_later() -> None:
    controller = SlackTuner().begin(GOAL)
    follow(controller, 40)
    assert len(controller.seen) == 80
    assert len(controller.seen.runs_of(("gate", "sensors"))[0]) == 40
    SlackTuner(HISTORY + controller.seen).begin(GOAL)


def test_a_tuner_that_fits_again_learns_what_it_sees() -> None:
    first, again = (follow(SlackTuner(refit=refit).begin(GOAL), 150) for refit in (None, 120))
    assert first[:120] == again[:120]
    assert again[148] != first[148]


def test_an_interval_without_rows_keeps_the_overhead_that_was_seen() -> None:
    controller = SlackTuner().begin(GOAL)
    controller.decide(observed(0, 3 * SECOND, 9 * SECOND, SECOND))
    silent = [
        seen._replace(rows=0, latency_us=0, overhead_us=0) for seen in observed(1, 4 * SECOND, 9 * SECOND, SECOND)
    ]
    assert controller.decide(silent).get("gate", 4 * SECOND) < 5 * SECOND


def chain_observed(interval: int, first_us: int, second_us: int, lag_us: int) -> list[Observation]:
    """A lagging source at a first stage, whose results are joined with a third source at a second one."""
    one = [seen._replace(stage="first") for seen in observed(interval, first_us, lag_us, 50_000)]
    behind_us = min(lag_us, first_us) + 150_000
    two = observed(interval, second_us, behind_us, 50_000)
    return [*one, two[0]._replace(stage="second", input="first"), two[1]._replace(stage="second", input="cameras")]


def test_a_stage_is_not_raised_beyond_what_the_next_one_can_bear() -> None:
    edges = (GraphEdge("first", "bus"), GraphEdge("first", "sensors"))
    graph = LatencyGraph((*edges, GraphEdge("second", "first", 20_000), GraphEdge("second", "cameras")))
    controller = SlackTuner().begin(Goal(graph, 6 * SECOND))
    slack_us = controller.start()
    for interval in range(30):
        seen = chain_observed(interval, slack_us["first"], slack_us["second"], 9 * SECOND)
        slack_us |= controller.decide(seen)
    assert 5 * SECOND < slack_us["first"] < 5.8 * SECOND
    assert (
        slack_us["second"] > slack_us["first"] + 150_000
    )  # the cameras wait for the first stage, and none is slack-ready


def test_policies_decide_as_the_paper_says() -> None:
    assert FixedSlack("2 s").begin(GOAL).start() == {"gate": 2 * SECOND}
    assert FixedSlack().begin(GOAL).decide(observed(0, SECOND, 9 * SECOND, 0)) == {}
    most = MaxTimestamp().begin(GOAL)
    assert most.start() == {"gate": 0}
    in_force, chosen = 0, []
    for interval, lag_us in enumerate((5, 3, 8, 8)):
        chosen.append(most.decide(observed(interval, in_force, lag_us, 0)).get("gate"))
        in_force = chosen[-1] or in_force
    assert chosen == [5, None, 8, None]


def test_a_policy_says_again_what_is_not_in_force() -> None:
    most = MaxTimestamp().begin(GOAL)
    assert [most.decide(observed(n, 0, 5, 0)) for n in range(2)] == [{"gate": 5}, {"gate": 5}]


def test_tcp_like_halves_when_the_latency_rises_and_adds_a_second_when_it_falls() -> None:
    tcp = TcpLike().begin(GOAL)
    assert tcp.start() == {"gate": SECOND}
    in_force, changes = SECOND, []
    for interval, overhead_us in enumerate((500, 100, 100, 100)):
        changes.append(tcp.decide(observed(interval, in_force, 9 * SECOND, overhead_us)))
        in_force = changes[-1].get("gate", in_force)
    assert changes == [{}, {"gate": 2 * SECOND}, {"gate": SECOND}, {"gate": 2 * SECOND}]
