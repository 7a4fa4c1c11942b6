"""The gate by the paper's example, operators behind it, and decisions made of counters."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest

import latecomer as lc
from latecomer.errors import InputError, LatecomerWarning
from latecomer.events import TICK, EventBatch, Layout
from latecomer.outputs import Lane, Output
from latecomer.runner import Runner
from latecomer.slack import Controller, Goal, GraphEdge, History, LatencyGraph, Observation, Slack, SlackGate
from latecomer.slack.steering import SlackSteering, SteeredStage
from latecomer.testing import check_machine
from latecomer.windows import Chain, Join, Pattern, Step, Window, WindowAggregation

LAYOUT = Layout("ts", (), "source")
# Figure 6: rows of two sources as they come, times in tenths of a unit; a slack of 3 units and windows of 4.
FIGURE_6 = ((10, "S1"), (20, "S2"), (55, "S1"), (90, "S1"), (40, "S2"))


def figure_6(slack: str | None, keep: str | None = None) -> tuple[list[tuple[int, int]], Runner]:
    """The pairs of Figure 6, in the order they are found, before the stream is over."""
    join = Join("S1", "S2", "40 us", keep=keep)
    runner, found = Runner(Slack(slack, join, ("S1", "S2")), LAYOUT), []
    for tick, (ts_us, source) in enumerate(FIGURE_6):
        rows = pa.RecordBatch.from_pydict({"ts": [ts_us], "source": [source], TICK: [tick]})
        for output in runner.push(EventBatch(rows, LAYOUT)).outputs:
            found += [(row["S1_ts"], row["S2_ts"]) for row in output.rows.to_pylist()]
    return found, runner


def test_figure_6_a_slack_ready_row_moves_the_window_and_a_pair_is_missed() -> None:
    found, runner = figure_6("30 us")
    assert found == [(10, 20), (55, 20), (55, 40)]
    assert runner.machine.counters()["cut_short"] == 1
    assert runner.machine.counters()["out_of_order"] == 1


def test_figure_6_ready_rows_alone_find_all_pairs() -> None:
    found, runner = figure_6(None)
    left = [output.rows.to_pylist() for output in runner.finish() if output.lane is Lane.RESULTS]
    assert found == [(10, 20), (10, 40)]
    assert [(row["S1_ts"], row["S2_ts"]) for rows in left for row in rows] == [(55, 20), (55, 40)]


def test_figure_6_rows_that_are_kept_find_all_pairs_as_soon() -> None:
    assert sorted(figure_6("30 us", "100 us")[0]) == [(10, 20), (10, 40), (55, 20), (55, 40)]


def test_figure_6_readers_of_the_gate_see_ready_slack_ready_and_late_rows() -> None:
    gate = SlackGate(["S1", "S2"], 2, slack=30)
    for ts, writer in FIGURE_6[:4]:
        gate.insert(ts, writer)
    assert [(read.ts, read.slack_ready) for read in gate.drain(0)] == [(10, False), (20, False), (55, True)]
    gate.insert(*FIGURE_6[4])
    assert [(read.ts, read.out_of_order) for read in gate.drain(0)] == [(40, True)]
    assert [(read.ts, read.slack_ready) for read in gate.drain(1)] == [
        (10, False),
        (20, False),
        (40, False),
        (55, True),
    ]
    gate.set_slack(None)
    assert gate.get(0) is None
    assert len(gate) == 1


@pytest.mark.parametrize("slack", ["0 s", "5 ms", "10 s", None])
def test_windows_patterns_and_chains_behind_the_gate_keep_the_five_invariants(slack: str | None) -> None:
    count = WindowAggregation(Window("10 ms"), (lc.count(), lc.max("ts")))
    check_machine(Slack(slack, count), runs=4)
    check_machine(Slack(slack, WindowAggregation(Window("30 ms", "7 ms"), (lc.count(),))), runs=4)
    check_machine(Slack(slack, Pattern("source", 0, 1, "10 ms")), runs=3)
    schema = pa.schema([("ts", pa.int64()), ("key", pa.int64())])
    thin = Step(lambda rows: rows.select(["ts", "key"]), schema)
    check_machine(Slack(slack, Chain(thin, WindowAggregation(Window("10 ms"), (lc.count(),)))), runs=3)


def test_rows_of_sources_that_a_join_does_not_take_are_late() -> None:
    runner = Runner(Slack("1 s", Join("a", "b", "1 s")), LAYOUT)
    rows = pa.RecordBatch.from_pydict({"ts": [1, 2], "source": ["a", "c"], TICK: [0, 0]})
    outputs: list[Output] = runner.push(EventBatch(rows, LAYOUT)).outputs
    assert [row["reason"] for o in outputs if o.lane is Lane.LATE for row in o.rows.to_pylist()] == ["other_source"]


class Recorded:
    """A policy that remembers what it was shown."""

    def __init__(self) -> None:
        self.seen: list[Sequence[Observation]] = []

    def begin(self, goal: Goal) -> Controller:
        return self

    def start(self) -> dict[str, int]:
        return {}

    def decide(self, observations: Sequence[Observation]) -> dict[str, int]:
        self.seen.append(observations)
        return {observations[0].stage: 7}


def counters(released: int, **others: int) -> dict[str, int]:
    known = {
        "slack_us": 500,
        "slack_ready": 3,
        "released": released,
        "released_us": 8_000_000,
        "oldest_tick": 70,
        "arrived_tick": 85,
        "release_tick": 80,
        "longest_wait": 10,
        "merge_us": 7_500_000,
        "passed_us": 7_900_000,
        "mark_us": 8_500_000,
    }
    return {**known, **others}


def test_counters_become_observations_of_edges_and_decisions_control_values() -> None:
    policy, stages = Recorded(), (SteeredStage("slack"), SteeredStage("slack_2", "slack", 5))
    steering = SlackSteering(policy, stages, 6_000_000, 100_000)
    seen = {"slack": counters(5), "slack_2": counters(4, passed_us=0, mark_us=8_600_000)}
    assert steering.decide(seen, 8_700_000) == {"slack": {"slack_us": 7}}
    first, sources, before = policy.seen[0]
    assert (first.edge, before.edge, sources.edge) == (
        ("slack", "sources"),
        ("slack_2", "slack"),
        ("slack_2", "sources"),
    )
    assert (first.latency_us, first.overhead_us, first.lag_us) == (1_000_000, 0, 1_000_000)
    assert (sources.latency_us, sources.overhead_us) == (1_700_000, 700_000)
    assert before.behind_us == 700_000
    assert steering.decide({"slack": counters(5), "slack_2": counters(0)}, 8_800_000) == {}


def test_micro_batches_that_take_longer_than_the_deadline_are_warned_of_once() -> None:
    steering = SlackSteering(Recorded(), (SteeredStage("slack"),), 1_000_000, 100_000)
    for batch in range(9):
        steering.decide({"slack": counters(5)}, 9_500_000 + batch)
    with pytest.warns(
        LatecomerWarning, match="no slack can hold a deadline of 1 s.*smallest possible deadline is about 1.6 s"
    ):
        steering.decide({"slack": counters(5)}, 9_500_010)
    steering.decide({"slack": counters(5)}, 9_500_020)
    with pytest.raises(InputError, match=r"every must be below the deadline \(1 s\); got '1 s'"):
        steering.check_every(1_000_000)


def observed(slack_us: int, lag_us: int, latency_us: int) -> list[Observation]:
    return [Observation("slack", "sources", 0, 1, 0, slack_us, lag_us, 0, 0.0, 1.0, 5, 0, latency_us, 0)]


def test_policies_go_by_the_slack_in_force() -> None:
    goal = Goal(LatencyGraph((GraphEdge("slack", "sources"),)), 6_000_000, 100_000)
    fixed, largest, tcp = (policy.begin(goal) for policy in (lc.FixedSlack("1 s"), lc.MaxTimestamp(), lc.TcpLike()))
    assert fixed.decide(observed(3_000_000, 0, 1)) == {"slack": 1_000_000}
    assert fixed.decide(observed(1_000_000, 0, 1)) == {}
    assert largest.decide(observed(3_000_000, 700_000, 1)) == {"slack": 700_000}
    assert largest.decide(observed(700_000, 100_000, 1)) == {}
    assert tcp.decide(observed(3_000_000, 0, 50)) == {}
    assert tcp.decide(observed(3_000_000, 0, 60)) == {"slack": 1_500_000}
    assert tcp.decide(observed(1_500_000, 0, 40)) == {"slack": 2_500_000}


def test_what_a_tuner_sees_becomes_a_history(tmp_path: Path) -> None:
    goal = Goal(LatencyGraph((GraphEdge("slack", "sources"),)), 6_000_000, 100_000)
    controller = lc.SlackTuner(record=tmp_path / "seen.parquet").begin(goal)
    for number in range(20):
        controller.decide([each._replace(interval=number) for each in observed(3_000_000, 500_000, 900_000)])
    assert len(History.read(tmp_path / "seen.parquet")) == 20
    with pytest.raises(InputError, match="history must"):
        lc.SlackTuner(history=tmp_path / "seen.parquet").begin(goal)


def test_a_deadline_is_for_the_last_stage_and_its_slack_is_not_stored() -> None:
    assert Slack(deadline="6 s").describe() == Slack(deadline="8 s").describe()
    assert Slack(deadline="6 s").steers
    assert Slack(deadline="6 s", tuner=Recorded()).at_work == Slack(deadline="6 s")
    assert not Slack("6 s").steers


def test_no_slack_cannot_be_set_where_sources_are_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "latecomer").mkdir()
    for merge in (True, False):
        stages = {"slack": {"number": 0, **Slack("1 s", merge=merge).describe()}}
        (tmp_path / "latecomer" / "000000-abc.json").write_text(json.dumps({"number": 0, "stages": stages}))
        control = lc.control(tmp_path)
        if merge:
            control.set(slack=None)
            continue
        with pytest.raises(InputError, match=r"slack must be given where sources are not waited for \(merge=False\)"):
            control.set(slack=None)
        control.set(slack="2 s")
        assert control.values() == {"slack.slack_us": 2_000_000}
    with pytest.raises(InputError, match="slack must be given where sources are not waited for"):
        Slack(merge=False)
    Slack(merge=False, deadline="6 s")
