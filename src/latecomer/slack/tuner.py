"""The tuner: each stage's slack is as large as the deadline allows, by what is expected of the next intervals.

After each interval the controller asks its models for the latency under every slack (the mean and `z` standard
deviations), and for the slack-ready rows. If the deadline would not hold with the slacks in force, it climbs from the
smallest; if it leaves room, `alpha` of the deadline or more, it climbs from those in force.

Invariants
1. Same settings and observations, same decisions: no clock, no chance, no state but what was observed.
2. The climb is in wall time and slacks are event time: a slack is a wait times the speed of event time just seen.
3. Without a model the wait is expected, and a tick and the overhead just seen on top.

Paper: Slack-ScaleGate, section 5.2.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from latecomer.durations import Duration, duration_us
from latecomer.errors import InputError, must
from latecomer.slack.climbing import climb
from latecomer.slack.controller import Goal
from latecomer.slack.expectation import EdgeExpectation
from latecomer.slack.features import ALL, PAPER, Floats
from latecomer.slack.landscape import Landscape
from latecomer.slack.models import LEAST_SAMPLES, Regressor, check_model
from latecomer.slack.observation import Edge, History, Observation

_PLACES, _MOST_PLACES = 120, 2_000
_RECORDED = 20  # intervals after which what was seen is written
_REMEMBERED = 20_000  # observations: what a history is made of, and no query runs out of memory by them


@dataclass(frozen=True)
class SlackTuner:
    """Holds a deadline with as few slack-ready rows as it can.

    history: a Parquet file or a History to learn from; without one the tuner goes by what it sees. model: gaussian,
    linear, isotonic, svm, or an object with fit and predict. z: the deadline must hold for the mean and so many
    standard deviations. alpha: the part of the deadline that must be free before slacks are raised. step: of the climb;
    by default a 120th of the deadline. refit: learn again after so many intervals, from the history and what was seen.
    features, plateaus: "paper" and False are the paper's choices. record: a Parquet file to which all that is seen is
    written now and then, to be the history of a later run.
    """

    history: str | Path | History | None = None
    model: str | Regressor = "gaussian"
    z: float = 2.5
    alpha: float = 0.02
    step: Duration | None = None
    refit: int | None = None
    features: str = "all"
    plateaus: bool = True
    record: str | Path | None = None

    def __post_init__(self) -> None:
        check_model(self.model)
        if not 0.0 < self.alpha < 1.0:
            raise InputError(must("alpha", "lie between 0 and 1, both excluded", self.alpha, "e.g. 0.02"))
        if not 0.0 <= self.z <= 10.0:
            raise InputError(must("z", "lie between 0 and 10", self.z, "e.g. 2.5"))
        if self.features not in ("all", "paper"):
            raise InputError(must("features", "be 'all' or 'paper'", self.features, "leave it out"))
        if self.refit is not None and self.refit < LEAST_SAMPLES:
            advice = "give a larger number, or leave it out"
            raise InputError(must("refit", f"be at least {LEAST_SAMPLES} intervals", self.refit, advice))
        if self.step is not None:
            duration_us(self.step, "step")

    def begin(self, goal: Goal) -> TunerController:
        """A controller for one run of a query."""
        return TunerController(self, goal)

    def waits_us(self, deadline_us: int) -> Floats:
        """The waits that the climb may choose: from none to the deadline, a step apart."""
        step_us = deadline_us / _PLACES if self.step is None else duration_us(self.step, "step")
        if deadline_us / step_us > _MOST_PLACES:
            advice = f"give {deadline_us / _MOST_PLACES / 1e3:g} ms or more, or leave it out"
            raise InputError(must("step", f"be at least a {_MOST_PLACES:,}th of the deadline", self.step, advice))
        return np.arange(0.0, deadline_us + step_us / 2, step_us)


class TunerController:
    """Decides after each interval, and remembers what it saw."""

    def __init__(self, settings: SlackTuner, goal: Goal) -> None:
        self._settings, self._goal = settings, goal
        self._waits_us = settings.waits_us(goal.deadline_us)
        names = ALL if settings.features == "all" else PAPER
        self._edges = {each.edge: EdgeExpectation(goal.tick_us, settings.z, names) for each in goal.graph.edges}
        self._slack_us = dict.fromkeys(goal.graph.stages, goal.deadline_us // 2)
        self._seen: deque[Observation] = deque(maxlen=_REMEMBERED)
        self._past = _as_history(settings.history)
        self._intervals = 0
        goal.check(_least_overheads(self._past))
        if len(self._past):
            self._fit(must_suffice=True)

    def start(self) -> dict[str, int]:
        """The first slack of each stage, in microseconds of event time: half the deadline."""
        return dict(self._slack_us)

    @property
    def seen(self) -> History:
        """What was observed so far, to be written or to be learnt from."""
        return History.of(self._seen)

    def decide(self, observations: Sequence[Observation]) -> dict[str, int]:
        """The slacks that change after an interval, in microseconds of event time."""
        self._observe(observations)
        if not all(edge.known for edge in self._edges.values()):
            return {}
        land = self._landscape()
        deadline_us = self._goal.deadline_us
        in_force = land.latencies_us(land.in_force_us)
        laxity_us = deadline_us - self._goal.graph.longest_us(in_force)
        chosen_us = dict(land.in_force_us)
        if laxity_us <= 0.0 or laxity_us >= self._settings.alpha * deadline_us:
            begin = {stage: self._place(wait_us) if laxity_us > 0.0 else 0 for stage, wait_us in chosen_us.items()}
            places = climb(land, begin, deadline_us, plateaus=self._settings.plateaus)
            chosen_us = {stage: float(self._waits_us[place]) for stage, place in places.items()}
        for edge, after_us in land.latencies_us(chosen_us).items():
            self._edges[edge].expect(max(in_force[edge], after_us))
        return self._change(chosen_us)

    def _landscape(self) -> Landscape:
        outlooks = {edge: each.outlook(self._waits_us) for edge, each in self._edges.items()}
        in_force_us = {stage: slack_us / self._speed(stage) for stage, slack_us in self._slack_us.items()}
        return Landscape(self._goal.graph, self._waits_us, outlooks, in_force_us)

    def _observe(self, observations: Sequence[Observation]) -> None:
        for seen in observations:
            if seen.edge not in self._edges:
                rule = f"be of an edge of the graph: {', '.join(map(str, self._edges))}"
                raise InputError(must("observation", rule, seen.edge, "give the stages and inputs that begin got"))
            self._slack_us[seen.stage] = seen.slack_us
            self._edges[seen.edge].observe(seen)
        self._seen += observations
        self._intervals += 1
        if self._settings.record is not None and self._intervals % _RECORDED == 0:
            self.seen.write(self._settings.record)
        if self._settings.refit is not None and self._intervals % self._settings.refit == 0:
            self._fit(must_suffice=False)

    def _fit(self, *, must_suffice: bool) -> None:
        history = self._past + self.seen
        for edge, expectation in self._edges.items():
            expectation.fit(history.runs_of(edge), self._settings.model, must_suffice=must_suffice)

    def _speed(self, stage: str) -> float:
        return self._edges[self._goal.graph.edges_of(stage)[0].edge].last.speed

    def _place(self, wait_us: float) -> int:
        """The place of the largest wait that is not longer."""
        return max(0, int(np.searchsorted(self._waits_us, wait_us, side="right")) - 1)

    def _change(self, chosen: dict[str, float]) -> dict[str, int]:
        slacks_us = {stage: round(wait_us * self._speed(stage)) for stage, wait_us in chosen.items()}
        changed = {stage: slack_us for stage, slack_us in slacks_us.items() if slack_us != self._slack_us[stage]}
        self._slack_us |= changed
        return changed


def _as_history(history: str | Path | History | None) -> History:
    if history is None:
        return History.of()
    return history if isinstance(history, History) else History.read(history)


def _least_overheads(history: History) -> dict[Edge, int]:
    """The least overhead of each edge that was ever seen."""
    found: dict[Edge, int] = {}
    columns = (history.table[name].to_pylist() for name in ("stage", "input", "rows", "overhead_us"))
    for stage, source, rows, overhead_us in zip(*columns, strict=True):
        if rows > 0:
            found[stage, source] = min(overhead_us, found.get((stage, source), overhead_us))
    return found
