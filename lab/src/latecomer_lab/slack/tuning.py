"""Figures 12 and 13, `rush` and the graph: the tuner beside the four policies, the best fixed slack and other tuners.

The tuner has learnt from nine other days (`calibration.py`). "static high" is the largest lag of the day, which nobody
knows before; "paper's tuner" has its features, goes by the mean and stops where no step is better; "by operator" takes
the latency of a stage over all its inputs (Equation 2), which counts the same lag twice where stages follow each other.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from latecomer.events import Int64s
from latecomer.slack.controller import Controller, Goal, Policy
from latecomer.slack.latency_graph import LatencyGraph
from latecomer.slack.observation import Edge, History, Observation
from latecomer.slack.policies import FixedSlack, MaxTimestamp, TcpLike
from latecomer.slack.tuner import SlackTuner
from latecomer_lab.slack.best_fixed import HELD, best_fixed
from latecomer_lab.slack.joined import find_events
from latecomer_lab.slack.simulation import Intervals, Run, simulate
from latecomer_lab.slack.streams import SECOND_US, Scenario, scenario

TUNER, BEST = "tuner", "best fixed"
LOW, HIGH, MAX, TCP = "static low", "static high", "max timestamp", "TCP-like"
POLICIES = (LOW, HIGH, MAX, TCP)
UNTAUGHT, LETTER, MEAN, BY_OPERATOR = "tuner, no history", "paper's tuner", "tuner, mean only", "tuner, by operator"
OTHERS = (UNTAUGHT, LETTER, MEAN)


class Tuned(NamedTuple):
    """What came of one policy on one day."""

    policy: str
    violated: float  # share of the intervals
    events: int
    decision_ms: float  # the median
    intervals: Intervals
    slack_us: dict[str, Int64s]  # by stage, of each interval

    @property
    def slack_ready(self) -> int:
        """Slack-ready rows in all."""
        return int(self.intervals.slack_ready.sum())

    @property
    def holds(self) -> bool:
        """Whether the deadline was held."""
        return self.violated <= HELD


class Day(NamedTuple):
    """All policies of one scenario on one day."""

    scenario: str
    seed: int
    deadline_us: int
    events_at_most: int
    tuned: dict[str, Tuned]

    def times_best(self, policy: str) -> float:
        """Slack-ready rows against those of the best fixed slack."""
        return self.tuned[policy].slack_ready / max(1, self.tuned[BEST].slack_ready)

    def times_policies(self, policy: str) -> float:
        """Slack-ready rows against the fewest of the four policies that hold the deadline."""
        fewest = min(each.slack_ready for each in self._holding())
        return self.tuned[policy].slack_ready / max(1, fewest)

    def times_events(self, policy: str) -> float:
        """Events against the most of the four policies that hold the deadline."""
        return self.tuned[policy].events / max(1, *(each.events for each in self._holding()))

    def _holding(self) -> list[Tuned]:
        return [self.tuned[each] for each in POLICIES if self.tuned[each].holds]


def run_day(name: str, seed: int, history: History, *, others: bool, seconds: int | None = None) -> Day:
    """All policies on one day; with `others`, other tuners too."""
    day = scenario(name, seed, seconds)
    tuned = {BEST: _tuned(BEST, best_fixed(day).run, 0.0)}
    for policy, settings in _policies(day, history, others=others).items():
        timed = Timed(settings)
        run = simulate(day, timed)
        tuned[policy] = _tuned(policy, run, timed.median_ms)
    return Day(name, seed, day.deadline_us, events_at_most(day), tuned)


def _tuned(policy: str, run: Run, decision_ms: float) -> Tuned:
    events = find_events(run.scenario.reports, run.order)
    return Tuned(policy, run.violated, events, decision_ms, run.intervals, run.slack_us)


def _policies(day: Scenario, history: History, *, others: bool) -> dict[str, Policy]:
    tuner = SlackTuner(history)
    found: dict[str, Policy] = {
        LOW: FixedSlack("1 s"),
        HIGH: FixedSlack(f"{largest_lag_us(day)} us"),
        MAX: MaxTimestamp(),
        TCP: TcpLike(),
        TUNER: tuner,
    }
    if others:
        found |= {
            UNTAUGHT: SlackTuner(),
            LETTER: replace(tuner, features="paper", z=0.0, plateaus=False),
            MEAN: replace(tuner, z=0.0),
        }
        if len(day.graph.stages) > 1:
            found[BY_OPERATOR] = ByOperator(tuner)
    return found


def largest_lag_us(day: Scenario) -> int:
    """How far a report of the bus source ever is behind the sensors."""
    reports = day.reports
    in_time = reports.arrival_us < day.start_us + day.seconds * SECOND_US
    bus = (reports.source == 0) & in_time
    return int((reports.arrival_us - reports.ts_us)[bus].max()) + SECOND_US // 10


def events_at_most(day: Scenario) -> int:
    """The events of the sorted stream, of the reports that came in time."""
    came = day.reports.arrival_us < day.start_us + day.seconds * SECOND_US
    order = np.lexsort((day.reports.source, day.reports.ts_us))
    return find_events(day.reports, order[came[order]])


@dataclass
class Timed:
    """A policy that measures how long its decisions take."""

    policy: Policy

    def __post_init__(self) -> None:
        self._took: list[float] = []

    def begin(self, goal: Goal) -> Controller:
        """The policy's controller, with a clock."""
        return _TimedController(self.policy.begin(goal), self._took)

    @property
    def median_ms(self) -> float:
        """The median of all decisions, in processor time."""
        return round(1e3 * float(np.median(self._took)), 2)


@dataclass
class _TimedController:
    controller: Controller
    took: list[float]

    def start(self) -> dict[str, int]:
        return self.controller.start()

    def decide(self, observations: Sequence[Observation]) -> dict[str, int]:
        began = time.process_time()
        found = self.controller.decide(observations)
        self.took.append(time.process_time() - began)
        return found


class OperatorGraph(LatencyGraph):
    """Equation 2 by the letter: every edge of a stage has the latency of its slowest one."""

    def longest_us(self, latency_us: Mapping[Edge, float]) -> float:
        """The longest path, by stages."""
        slowest: dict[str, float] = {}
        for (stage, _), each_us in latency_us.items():
            slowest[stage] = max(slowest.get(stage, 0.0), each_us)
        return super().longest_us({edge: slowest[edge[0]] for edge in latency_us})


@dataclass(frozen=True)
class ByOperator:
    """A tuner that takes latencies by stage."""

    tuner: SlackTuner

    def begin(self, goal: Goal) -> Controller:
        """The tuner's controller on another graph."""
        return self.tuner.begin(goal._replace(graph=OperatorGraph(goal.graph.edges)))
