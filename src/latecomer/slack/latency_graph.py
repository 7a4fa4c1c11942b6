"""End-to-end latency as the longest path over the edges of a query: one input of one stage each.

A row that comes by an edge waits at the stage's gate and is worked on there; then it goes on to the stages that take
the results. The latency of an edge is that of the slowest row which comes by it, so a path counts only the waits that a
row on it meets. The paper's Equation 2 takes the latency of a stage over all its inputs: where the slow input of a
second stage is the first one, its path would have the wait of the other inputs too, which is the same lag once more.

Paper: Slack-ScaleGate, section 3, Equations 1 and 2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from latecomer.errors import InputError, must
from latecomer.slack.observation import Edge


@dataclass(frozen=True)
class GraphEdge:
    """An input of a stage: a source, or another stage, and how long rows are on their way from there."""

    stage: str
    input: str
    communication_us: int = 0

    @property
    def edge(self) -> Edge:
        """The stage and the input."""
        return self.stage, self.input


@dataclass(frozen=True)
class LatencyGraph:
    """The edges of a query, in any order; inputs that are no stage are sources."""

    edges: tuple[GraphEdge, ...]

    def __post_init__(self) -> None:
        if not self.edges:
            raise InputError(must("graph", "have an edge", self.edges, "name a stage and its input"))
        if len({each.edge for each in self.edges}) < len(self.edges):
            raise InputError(must("graph", "have each edge once", self.edges, "leave the second one out"))
        if any(each.communication_us < 0 for each in self.edges):
            raise InputError(must("graph", "have no communication below zero", self.edges, "give microseconds"))
        _ = self.stages

    @cached_property
    def stages(self) -> tuple[str, ...]:
        """The stages, each after those whose results it takes."""
        left = {each.stage: set[str]() for each in self.edges}
        for each in self.edges:
            if each.input in left:
                left[each.stage].add(each.input)
        found: list[str] = []
        while left:
            free = [stage for stage, inputs in left.items() if inputs <= set(found)]
            if not free:
                raise InputError(must("graph", "have no cycle", sorted(left), "a stage cannot take its own results"))
            found += free
            left = {stage: inputs for stage, inputs in left.items() if stage not in found}
        return tuple(found)

    @cached_property
    def _inputs(self) -> tuple[tuple[str, tuple[GraphEdge, ...]], ...]:
        """The edges of each stage, in the order of the stages."""
        return tuple((stage, tuple(each for each in self.edges if each.stage == stage)) for stage in self.stages)

    def edges_of(self, stage: str) -> tuple[GraphEdge, ...]:
        """The edges of one stage."""
        return dict(self._inputs)[stage]

    def longest_us(self, latency_us: Mapping[Edge, float]) -> float:
        """The largest sum of latencies and communication times over all paths."""
        reached: dict[str, float] = {}
        for stage, edges in self._inputs:
            reached[stage] = max(
                reached.get(each.input, 0.0) + each.communication_us + latency_us[each.edge] for each in edges
            )
        return max(reached.values())
