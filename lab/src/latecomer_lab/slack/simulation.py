"""A scenario from beginning to end: stages with a gate each, and a controller that may change their slack every second.

Rows of a stage's gate are written when the tick in which they are read is over and the overhead has passed; then they
go on to the next stage as one more source. The latency of an edge counts from the arrival at its own gate, that of the
whole from the arrival of the report. Both are the largest of an interval and belong to the interval in which a row is
read. What was seen in an interval is known when it ends, and a slack that is decided then holds from the next tick on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from latecomer.events import Int64s
from latecomer.slack.controller import Goal, Policy
from latecomer.slack.observation import Motion, MotionMeter, Observation
from latecomer_lab.slack.simulated_gate import Clocks, Read, Rows, SimulatedGate
from latecomer_lab.slack.streams import SECOND_US, TICK_US, Reports, Scenario

INTERVAL_US = SECOND_US
_TICKS = INTERVAL_US // TICK_US


class Passed(NamedTuple):
    """What a stage read in one stretch of ticks, and when it was written."""

    first_tick: int
    read: Read
    clocks: Clocks
    written_us: Int64s
    overhead_us: Int64s


class Stage:
    """A gate and what comes after it."""

    def __init__(self, scenario: Scenario, name: str) -> None:
        self.name, self.start_us = name, scenario.start_us
        self._scenario = scenario
        edges = scenario.graph.edges_of(name)
        self.inputs = [edge.input for edge in edges]
        self._communication_us = {edge.input: edge.communication_us for edge in edges}
        self._gate = SimulatedGate(len(edges))
        self._coming: list[Rows] = []
        self.meter = MotionMeter()
        self._seed = scenario.seed * 31 + scenario.graph.stages.index(name)

    def expect(self, rows: Rows, source: str) -> None:
        """Rows that will come to the gate, from one of its inputs, when they arrive."""
        arrival_us = rows.arrival_us + self._communication_us[source]
        tick = (arrival_us - self._scenario.start_us) // TICK_US
        number = np.full(len(tick), self.inputs.index(source))
        order = np.argsort(tick, kind="stable")
        self._coming.append(Rows(rows.number, rows.ts_us, arrival_us, tick, number).take(order))

    def advance(self, first_tick: int, slack_us: Int64s) -> Passed:
        """Go on by some ticks."""
        read, clocks = self._gate.advance(self._arrived(first_tick + len(slack_us)), slack_us)
        rows = np.bincount(read.tick - first_tick, minlength=len(slack_us))
        ticks = np.arange(first_tick, first_tick + len(slack_us))
        overhead_us = self._scenario.overhead.of_ticks(ticks, rows, self._seed)
        read_us = self._scenario.start_us + (read.tick + 1) * TICK_US
        return Passed(first_tick, read, clocks, read_us + overhead_us[read.tick - first_tick], overhead_us)

    def _arrived(self, end_tick: int) -> Rows:
        """Rows that come before a tick, and do so no longer."""
        arrived, left = [Rows.none()], []
        for rows in self._coming:
            now = int(np.searchsorted(rows.tick, end_tick))
            arrived.append(Rows(*(column[:now] for column in rows)))
            if now < len(rows.tick):
                left.append(Rows(*(column[now:] for column in rows)))
        self._coming = left
        return Rows.join(arrived)


class Intervals(NamedTuple):
    """What came of some intervals: the largest latency from end to end, and rows of all stages."""

    latency_us: Int64s
    slack_ready: Int64s
    out_of_order: Int64s
    rows: Int64s

    @classmethod
    def join(cls, pieces: Sequence[Intervals]) -> Intervals:
        """One after the other."""
        return cls(*(np.concatenate(columns) for columns in zip(*pieces, strict=True)))


@dataclass(frozen=True)
class Run:
    """What came of a scenario: by interval, what was observed, and the order in which the first stage read."""

    scenario: Scenario
    intervals: Intervals
    slack_us: dict[str, Int64s]
    observations: list[Observation]
    order: Int64s

    @property
    def violated(self) -> float:
        """The share of intervals with a latency above the deadline."""
        return float(np.mean(self.intervals.latency_us > self.scenario.deadline_us))

    @property
    def slack_ready(self) -> int:
        """Slack-ready rows in all."""
        return int(self.intervals.slack_ready.sum())


class World:
    """The stages, fed with the reports."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.stages = [Stage(scenario, name) for name in scenario.graph.stages]
        reports = scenario.reports
        for number, source in enumerate(scenario.sources):
            chosen = np.flatnonzero(reports.source == number)
            rows = _rows(reports, chosen)
            for stage in self.stages:
                if source in stage.inputs:
                    stage.expect(rows, source)

    def advance(self, first_tick: int, slack_us: dict[str, Int64s]) -> dict[str, Passed]:
        """All stages, by some ticks."""
        found = {}
        for stage in self.stages:
            passed = stage.advance(first_tick, slack_us[stage.name])
            found[stage.name] = passed
            onward = passed.read.rows._replace(arrival_us=passed.written_us)
            for later in self.stages:
                if stage.name in later.inputs:
                    later.expect(onward, stage.name)
        return found

    def intervals(self, passed: dict[str, Passed]) -> Intervals:
        """What came of the ticks that a stretch has."""
        stages = self.scenario.graph.stages
        last = passed[stages[-1]]
        latency_us = last.written_us - self.scenario.reports.arrival_us[last.read.rows.number]
        count, first = len(last.clocks.mark_us) // _TICKS, last.first_tick
        largest_us = np.zeros(count, dtype=np.int64)
        np.maximum.at(largest_us, (last.read.tick - first) // _TICKS, latency_us)
        ready, late, rows = np.zeros((3, count), dtype=np.int64)
        for each in passed.values():
            place = (each.read.tick - first) // _TICKS
            ready += np.bincount(place[each.read.slack_ready], minlength=count)
            late += np.bincount(place[each.read.out_of_order], minlength=count)
            rows += np.bincount(place, minlength=count)
        return Intervals(largest_us, ready, late, rows)


def _rows(reports: Reports, chosen: Int64s) -> Rows:
    arrival_us = reports.arrival_us[chosen]
    return Rows(chosen, reports.ts_us[chosen], arrival_us, np.zeros_like(chosen), np.zeros_like(chosen))


def simulate(scenario: Scenario, policy: Policy) -> Run:
    """Run a scenario with a policy, which decides after each second."""
    world, controller = World(scenario), policy.begin(Goal(scenario.graph, scenario.deadline_us, TICK_US))
    slack_us = controller.start()
    found, slacks, observations, order = [], [], list[Observation](), []
    for interval in range(scenario.seconds):
        in_force = {name: np.full(_TICKS, value) for name, value in slack_us.items()}
        passed = world.advance(interval * _TICKS, in_force)
        seen = [one for stage in world.stages for one in _observed(stage, passed[stage.name], interval, slack_us)]
        found.append(world.intervals(passed))
        slacks.append(slack_us)
        order.append(passed[scenario.graph.stages[0]].read.in_order())
        observations += seen
        slack_us = {**slack_us, **controller.decide(seen)}
    by_stage = {name: np.array([each[name] for each in slacks]) for name in slack_us}
    return Run(scenario, Intervals.join(found), by_stage, observations, np.concatenate(order))


def simulate_fixed(scenario: Scenario, slack_us: dict[str, int]) -> Run:
    """Run a scenario with fixed slacks, all at once; nothing is observed on the way."""
    world = World(scenario)
    passed = world.advance(0, {name: np.full(scenario.ticks, value) for name, value in slack_us.items()})
    order = passed[scenario.graph.stages[0]].read.in_order()
    by_stage = {name: np.full(scenario.seconds, value) for name, value in slack_us.items()}
    return Run(scenario, world.intervals(passed), by_stage, [], order)


def _observed(stage: Stage, passed: Passed, interval: int, slack_us: dict[str, int]) -> list[Observation]:
    clocks = passed.clocks
    mark_us, merge_us = int(clocks.mark_us[-1]), int(clocks.merge_us[-1])
    lag_us = mark_us - max(merge_us, stage.start_us)
    motion = stage.meter.follow(mark_us, lag_us, INTERVAL_US)
    clock_us = int(passed.read.rows.ts_us.max(initial=clocks.frontier_us[-1]))
    common = _Common(interval, clock_us, slack_us[stage.name], mark_us, lag_us, motion)
    return [_edge(stage, source, passed, common) for source in range(len(stage.inputs))]


class _Common(NamedTuple):
    interval: int
    clock_us: int
    slack_us: int
    mark_us: int
    lag_us: int
    motion: Motion


def _edge(stage: Stage, source: int, passed: Passed, common: _Common) -> Observation:
    own = passed.read.rows.source == source
    latency_us = passed.written_us[own] - passed.read.rows.arrival_us[own]
    latest_us = int(passed.clocks.latest_us[source, -1])
    return Observation(
        stage.name,
        stage.inputs[source],
        common.interval,
        INTERVAL_US,
        common.clock_us,
        common.slack_us,
        common.lag_us,
        common.mark_us - max(latest_us, stage.start_us),
        common.motion.lag_slope,
        common.motion.speed,
        int(own.sum()),
        int(passed.read.slack_ready[own].sum()),
        int(latency_us.max(initial=0)),
        int(passed.overhead_us.max(initial=0)) if own.any() else 0,
    )
