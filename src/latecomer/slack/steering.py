"""A query that holds a deadline: after each micro-batch its counters become observations, and a policy decides.

A stage has an edge for the sources that come to it, of which the one that is furthest ahead waits longest, and one for
the stage before it. All stages run in one micro-batch, so what is not waiting at a gate is counted once, at the last.

Invariants
1. Latency is wall time: from the arrival of the oldest row that was read to the moment when all was written.
2. A micro-batch in which no row was read changes nothing; so a decision, which makes a micro-batch, makes no other.
3. Rows of the stage before wait less than others by as much as they are behind. Where that has just become less, since
   a slack was lowered, rows that are read now have waited while it was more.
4. The speed of event time is that beside arrivals, in which rows wait. How long micro-batches take has no part in it: a
   short one after a long one reads much in little time.
"""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Mapping
from typing import NamedTuple

from latecomer.contract import Seen, Steering
from latecomer.errors import InputError, LatecomerWarning, must
from latecomer.events import FOREVER_US, NEVER_US
from latecomer.slack.controller import Controller, Goal, Policy
from latecomer.slack.latency_graph import GraphEdge, LatencyGraph
from latecomer.slack.observation import MotionMeter, Observation

SLACK, SLACK_READY, RELEASED, PASSED = "slack_us", "slack_ready", "released", "passed_us"
RELEASED_TO, MERGE = "released_us", "merge_us"
OLDEST, FIRST_RELEASE, LONGEST_WAIT, ARRIVED = "oldest_tick", "release_tick", "longest_wait", "arrived_tick"
SOURCES = "sources"
_MARK = "mark_us"
_WARM_UP = 10  # micro-batches: the first ones take longer


class SteeredStage(NamedTuple):
    """A stage with a slack: its name, the one before it if that has a slack too, and the window of its operator."""

    name: str
    before: str | None = None
    window_us: int = 0

    @property
    def edges(self) -> tuple[GraphEdge, ...]:
        """Its inputs."""
        sources = GraphEdge(self.name, SOURCES)
        return (sources,) if self.before is None else (GraphEdge(self.name, self.before), sources)


class _Behind(NamedTuple):
    """How far an input is behind the mark, and was while the rows waited that are read now."""

    now_us: int
    waited_us: int


class SlackSteering(Steering):
    """Sees the counters of all stages that have a slack, and changes it."""

    def __init__(self, policy: Policy, stages: tuple[SteeredStage, ...], deadline_us: int, tick_us: int) -> None:
        self._stages, self._deadline_us, self._tick_us = stages, deadline_us, tick_us
        graph = LatencyGraph(tuple(edge for stage in stages for edge in stage.edges))
        self._controller: Controller = policy.begin(Goal(graph, deadline_us, tick_us))
        self._meters = {stage.name: MotionMeter() for stage in stages}
        self._arrived: dict[str, int] = {}
        self._behind_us: dict[str, int] = {}
        self._written_us: int | None = None
        self._intervals = 0
        self._overheads_us: deque[int] = deque(maxlen=_WARM_UP)
        self._warned = False

    @property
    def counters(self) -> Mapping[str, tuple[str, ...]]:
        rows = (RELEASED, SLACK_READY, RELEASED_TO, OLDEST, FIRST_RELEASE, LONGEST_WAIT)
        own = (*rows, SLACK, MERGE, PASSED, ARRIVED, _MARK)
        return {stage.name: own for stage in self._stages}

    def check_every(self, every_us: int) -> None:
        if every_us >= self._deadline_us:
            rule = f"be below the deadline ({self._deadline_us / 1e6:g} s)"
            advice = "the smallest possible deadline is longer than a micro-batch: let them come more often, or wait"
            raise InputError(must("every", rule, f"{every_us / 1e6:g} s", advice))

    def decide(self, seen: Seen, written_us: int) -> Mapping[str, Mapping[str, int | str]]:
        last = seen[self._stages[-1].name]
        if last[RELEASED] == 0:
            return {}
        lasted_us = 0 if self._written_us is None else written_us - self._written_us
        self._written_us = written_us
        overhead_us = max(0, written_us - last[FIRST_RELEASE] * self._tick_us)
        self._warn(overhead_us)
        observations = [
            observed for stage in self._stages for observed in self._observed(stage, seen, lasted_us, overhead_us)
        ]
        self._intervals += 1
        return {stage: {SLACK: slack_us} for stage, slack_us in self._controller.decide(observations).items()}

    def _observed(self, stage: SteeredStage, seen: Seen, lasted_us: int, overhead_us: int) -> list[Observation]:
        """What was seen of the edges of a stage in the micro-batch that was just written."""
        own, is_last = seen[stage.name], stage is self._stages[-1]
        lag_us = max(0, own[_MARK] - own[MERGE]) if NEVER_US < own[MERGE] < FOREVER_US else 0
        motion = self._meters[stage.name].follow(own[_MARK], lag_us, self._arriving_us(stage.name, own[ARRIVED]))
        return [
            Observation(
                stage=stage.name,
                input=name,
                interval=self._intervals,
                lasted_us=lasted_us,
                clock_us=own[RELEASED_TO],
                slack_us=own[SLACK],
                lag_us=lag_us,
                behind_us=behind.now_us,
                lag_slope=motion.lag_slope,
                speed=motion.speed,
                rows=own[RELEASED],
                slack_ready=own[SLACK_READY],
                latency_us=max(0, own[LONGEST_WAIT] * self._tick_us - round(behind.waited_us / motion.speed))
                + (overhead_us if is_last else 0),
                overhead_us=overhead_us if is_last else 0,
                window_us=stage.window_us,
            )
            for name, behind in self._behind(stage, seen, lag_us).items()
        ]

    def _behind(self, stage: SteeredStage, seen: Seen, lag_us: int) -> dict[str, _Behind]:
        """How far each input of a stage is behind; sources are not, since the one that is furthest ahead counts."""
        found = {SOURCES: _Behind(0, 0)}
        if stage.before is not None:
            now_us = min(max(0, seen[stage.name][_MARK] - seen[stage.before][PASSED]), lag_us)
            found[stage.before] = _Behind(now_us, max(now_us, self._behind_us.get(stage.name, 0)))
            self._behind_us[stage.name] = now_us
        return found

    def _arriving_us(self, stage: str, tick: int) -> int:
        """For how long, in time of arrival, rows came since the micro-batch before."""
        before = self._arrived.get(stage, NEVER_US)
        self._arrived[stage] = max(before, tick)
        return 0 if NEVER_US in (before, tick) else max(0, tick - before) * self._tick_us

    def _warn(self, overhead_us: int) -> None:
        """Say once that micro-batches take longer than the deadline: then no slack can hold it."""
        self._overheads_us.append(overhead_us)
        least_us = min(self._overheads_us)
        if self._warned or len(self._overheads_us) < _WARM_UP or least_us + self._tick_us < self._deadline_us:
            return
        self._warned = True
        text = f"no slack can hold a deadline of {self._deadline_us / 1e6:g} s: micro-batches alone take "
        text += f"{least_us / 1e6:.3g} s from the arrival of a row; the smallest possible deadline is about "
        text += f"{(least_us + self._tick_us) / 1e6:.3g} s (more cores, fewer lanes, or a longer deadline)"
        warnings.warn(text, LatecomerWarning, stacklevel=2)
