"""Simpler ways to choose a slack, to compare the tuner with: the four of the paper's evaluation.

A fixed slack is low (a second) or high (the largest lag). `MaxTimestamp` sets it to the largest delay seen. `TcpLike`
halves it when the latency has risen, and adds a second when it has fallen. All have the interface of the tuner.

Paper: Slack-ScaleGate, section 6; the delay is that of K-slack, the congestion control that of speculative processing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from latecomer.durations import Duration, duration_us
from latecomer.slack.controller import Controller, Goal
from latecomer.slack.observation import Observation


@dataclass(frozen=True)
class FixedSlack:
    """One slack for all stages, for ever."""

    slack: Duration = "1 s"

    def begin(self, goal: Goal) -> Controller:
        """A controller that sets it, and changes nothing after that."""
        return _Fixed({stage: duration_us(self.slack, "slack", zero=True) for stage in goal.graph.stages})


@dataclass(frozen=True)
class MaxTimestamp:
    """The largest delay seen so far."""

    def begin(self, goal: Goal) -> Controller:
        """A controller that only raises."""
        return _LargestDelay(dict.fromkeys(goal.graph.stages, 0))


@dataclass(frozen=True)
class TcpLike:
    """Half the slack when the latency rises, some more when it falls."""

    more: Duration = "1 s"

    def begin(self, goal: Goal) -> Controller:
        """A controller that begins with one addition."""
        more_us = duration_us(self.more, "more")
        return _Congestion(dict.fromkeys(goal.graph.stages, more_us), more_us)


class _Stage(ABC):
    """A slack for each stage."""

    def __init__(self, slack_us: dict[str, int]) -> None:
        self._slack_us = slack_us

    def start(self) -> dict[str, int]:
        return dict(self._slack_us)

    def decide(self, observations: Sequence[Observation]) -> dict[str, int]:
        """What is wanted, where it is not in force: a query may have gone on with another slack."""
        in_force = {seen.stage: seen.slack_us for seen in observations}
        wanted = self._wanted(observations, in_force)
        return {stage: slack_us for stage, slack_us in wanted.items() if slack_us != in_force.get(stage)}

    @abstractmethod
    def _wanted(self, observations: Sequence[Observation], in_force: dict[str, int]) -> dict[str, int]:
        """The slacks that are to be in force."""


class _Fixed(_Stage):
    def _wanted(self, observations: Sequence[Observation], in_force: dict[str, int]) -> dict[str, int]:
        return {stage: self._slack_us[stage] for stage in in_force}


class _LargestDelay(_Stage):
    def _wanted(self, observations: Sequence[Observation], in_force: dict[str, int]) -> dict[str, int]:
        for seen in observations:
            self._slack_us[seen.stage] = max(self._slack_us[seen.stage], seen.lag_us)
        return {stage: self._slack_us[stage] for stage in in_force}


class _Congestion(_Stage):
    def __init__(self, slack_us: dict[str, int], more_us: int) -> None:
        super().__init__(slack_us)
        self._more_us = more_us
        self._latency_us: dict[str, int] = {}

    def _wanted(self, observations: Sequence[Observation], in_force: dict[str, int]) -> dict[str, int]:
        latency_us: dict[str, int] = {}
        for seen in observations:
            latency_us[seen.stage] = max(latency_us.get(seen.stage, 0), seen.latency_us)
        wanted = {}
        for stage, now_us in latency_us.items():
            before_us = self._latency_us.get(stage, now_us)
            if now_us > before_us:
                wanted[stage] = in_force[stage] // 2
            elif now_us < before_us:
                wanted[stage] = in_force[stage] + self._more_us
        self._latency_us |= latency_us
        return wanted
