"""Longest paths and climbs against trying everything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from latecomer.errors import InputError
from latecomer.slack.climbing import Expected, climb
from latecomer.slack.latency_graph import GraphEdge, LatencyGraph
from tests import naive_slack

STAGES = ("a", "b", "c", "d")


@st.composite
def graphs(draw: st.DrawFn) -> LatencyGraph:
    """Stages that take sources and earlier stages, in any order of edges."""
    edges = []
    for place, stage in enumerate(STAGES[: draw(st.integers(1, 4))]):
        inputs = draw(st.lists(st.sampled_from([*STAGES[:place], "x", "y"]), min_size=1, max_size=4, unique=True))
        edges += [GraphEdge(stage, each, draw(st.integers(0, 50))) for each in inputs]
    return LatencyGraph(tuple(draw(st.permutations(edges))))


@given(graphs(), st.data())
def test_the_longest_path_is_the_longest_of_all(graph: LatencyGraph, data: st.DataObject) -> None:
    latency_us = {edge.edge: float(data.draw(st.integers(0, 1_000))) for edge in graph.edges}
    assert graph.longest_us(latency_us) == naive_slack.longest_path(graph, latency_us)


def test_a_wait_for_the_stage_before_counts_once() -> None:
    graph = LatencyGraph((GraphEdge("a", "x"), GraphEdge("b", "a", 20), GraphEdge("b", "y")))
    assert graph.longest_us({("a", "x"): 6_000.0, ("b", "a"): 100.0, ("b", "y"): 6_100.0}) == 6_120.0


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ((), "graph must have an edge"),
        ((GraphEdge("a", "b"), GraphEdge("b", "a")), "graph must have no cycle; got .'a', 'b'."),
        ((GraphEdge("a", "a"),), "graph must have no cycle"),
        ((GraphEdge("a", "x"), GraphEdge("a", "x", 5)), "graph must have each edge once"),
        ((GraphEdge("a", "x", -1),), "graph must have no communication below zero"),
    ],
)
def test_wrong_graphs_are_refused(edges: tuple[GraphEdge, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        LatencyGraph(edges)


@dataclass(frozen=True)
class Tables:
    """Latency and slack-ready rows of each stage by place; latencies add up in a chain, else the largest counts."""

    latency: Mapping[str, list[int]]
    ready: Mapping[str, list[int]]
    chain: bool

    @property
    def top(self) -> int:
        return len(next(iter(self.latency.values()))) - 1

    def at(self, places: Mapping[str, int]) -> Expected:
        latencies = [self.latency[stage][place] for stage, place in places.items()]
        total = sum(latencies) if self.chain else max(latencies)
        return Expected(total, sum(self.ready[stage][place] for stage, place in places.items()))


@st.composite
def tables(draw: st.DrawFn, *, chain: bool) -> Tables:
    """Each step makes a stage slower (in a chain all by as much) and gains less than the one before."""
    latency, ready = {}, {}
    size = draw(st.integers(1, 5))
    for stage in STAGES[: draw(st.integers(1, 3))]:
        slower = [10] * size if chain else draw(st.lists(st.integers(1, 20), min_size=size, max_size=size))
        latency[stage] = list(accumulate(slower, initial=draw(st.integers(0, 30))))
        gains = sorted(draw(st.lists(st.integers(0, 30), min_size=size, max_size=size)), reverse=True)
        ready[stage] = list(accumulate((-gain for gain in gains), initial=200))
    return Tables(latency, ready, chain)


@given(st.booleans().flatmap(lambda chain: tables(chain=chain)), st.integers(1, 150))
def test_a_climb_reaches_the_fewest_rows_that_hold_the_deadline(land: Tables, deadline: int) -> None:
    stages = list(land.latency)
    reached = climb(land, dict.fromkeys(stages, 0), deadline)
    best = naive_slack.best_places(land, stages, deadline)
    if best is None:
        assert reached == dict.fromkeys(stages, 0)
    else:
        assert land.at(reached).ready == best[1]
        assert land.at(reached).latency < deadline
        for stage in stages:  # and it climbed on while the deadline held
            higher = {**reached, stage: reached[stage] + 1}
            assert reached[stage] == land.top or land.at(higher).latency >= deadline


@given(tables(chain=True), st.integers(1, 150))
def test_the_papers_climb_stops_on_a_plateau(land: Tables, deadline: int) -> None:
    stages = list(land.latency)
    begin = dict.fromkeys(stages, 0)
    reached = climb(land, begin, deadline, plateaus=False)
    on = climb(land, begin, deadline)
    assert land.at(reached).ready >= land.at(on).ready
    assert all(reached[stage] <= on[stage] for stage in stages)
    flat = Tables(land.latency, {stage: [5] * (land.top + 1) for stage in stages}, chain=True)
    assert climb(flat, begin, deadline, plateaus=False) == begin


def test_of_equal_raises_the_smaller_slack_is_raised() -> None:
    flat = Tables({stage: [0, 1, 2, 3] for stage in "ab"}, {stage: [0, 0, 0, 0] for stage in "ab"}, chain=True)
    assert climb(flat, {"a": 0, "b": 0}, 5) == {"a": 2, "b": 2}
