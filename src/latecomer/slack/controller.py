"""What the tuner and the simpler policies share: a goal, settings that users write, and a controller that runs.

A controller is asked once after each interval, a micro-batch in Spark, on the driver. It knows no engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from latecomer.durations import DEFAULT_TICK, duration_us
from latecomer.errors import InputError, must
from latecomer.slack.latency_graph import LatencyGraph
from latecomer.slack.observation import Edge, Observation


class Goal(NamedTuple):
    """What a controller is to hold: the edges of a query, the deadline of its results, and the tick of its gates."""

    graph: LatencyGraph
    deadline_us: int
    tick_us: int = duration_us(DEFAULT_TICK, "tick")

    def check(self, overhead_us: dict[Edge, int] | None = None) -> None:
        """Refuse a deadline that no slack can hold: a row waits for its tick to end, and is then worked on."""
        shortest = {each.edge: self.tick_us + (overhead_us or {}).get(each.edge, 0) for each in self.graph.edges}
        smallest_us = self.graph.longest_us(shortest)
        if self.deadline_us <= smallest_us:
            rule = f"be above the smallest possible latency, {smallest_us / 1e6:g} s (tick and processing)"
            advice = "give a longer deadline, or make ticks and micro-batches shorter"
            raise InputError(must("deadline", rule, f"{self.deadline_us / 1e6:g} s", advice))


class Controller(Protocol):
    """What decides while a query runs."""

    def start(self) -> dict[str, int]:
        """The first slack of each stage, in microseconds of event time."""

    def decide(self, observations: Sequence[Observation]) -> dict[str, int]:
        """The slacks that change after an interval, in microseconds of event time; nothing where none does."""


class Policy(Protocol):
    """What users write: settings that begin a controller."""

    def begin(self, goal: Goal) -> Controller:
        """A controller for one run of a query."""
