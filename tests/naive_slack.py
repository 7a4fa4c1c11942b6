"""Slow, obvious twins of what the slack tuner computes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from latecomer.slack.climbing import Land
from latecomer.slack.features import Floats
from latecomer.slack.latency_graph import GraphEdge, LatencyGraph


def gaussian_process(x: Floats, y: Floats, asked: Floats, learnt: Sequence[float]) -> tuple[list[float], list[float]]:
    """Means and standard deviations by the textbook, pair by pair."""
    *logs, variance, noise = learnt
    lengths, variance, noise = [math.exp(each) for each in logs], math.exp(variance), math.exp(noise) + 1e-5

    def kernel(one: Floats, other: Floats) -> float:
        r = math.sqrt(sum(((a - b) / length) ** 2 for a, b, length in zip(one, other, lengths, strict=True)))
        return variance * (1 + math.sqrt(3) * r) * math.exp(-math.sqrt(3) * r)

    middle, scale = float(np.mean(y)), float(np.std(y))
    covariance = np.array([[kernel(one, other) for other in x] for one in x]) + (noise + 1e-8) * np.eye(len(x))
    means, deviations = [], []
    for question in asked:
        near = np.array([kernel(question, each) for each in x])
        means.append(float(near @ np.linalg.solve(covariance, (y - middle) / scale)) * scale + middle)
        left = variance - float(near @ np.linalg.solve(covariance, near)) + noise
        deviations.append(math.sqrt(left) * scale)
    return means, deviations


def longest_path(graph: LatencyGraph, latency_us: Mapping[tuple[str, str], float]) -> float:
    """The largest sum over all paths, each of which is followed from its source to its end."""

    def along(edge: GraphEdge) -> float:
        onward = [along(after) for after in graph.edges if after.input == edge.stage]
        return edge.communication_us + latency_us[edge.edge] + max(onward, default=0.0)

    return max(along(edge) for edge in graph.edges)


def best_places(land: Land, stages: Sequence[str], deadline: float) -> tuple[dict[str, int], float] | None:
    """The places with the fewest slack-ready rows of all that hold the deadline, by trying all."""
    found = []
    for choice in itertools.product(range(land.top + 1), repeat=len(stages)):
        places = dict(zip(stages, choice, strict=True))
        expected = land.at(places)
        if expected.latency < deadline:
            found.append((expected.ready, sum(choice), choice))
    if not found:
        return None
    ready, _, choice = min(found)
    return dict(zip(stages, choice, strict=True)), ready


Reports = Sequence[tuple[int, int, int]]  # time, tick, source; the order is that of arrival


def gate(rows: Reports, sources: int, slack_at: Callable[[int], int], ticks: int) -> list[tuple[int, int, bool, bool]]:
    """Rows as they are read: their number, the tick, slack-ready, out of order. One tick and one row at a time."""
    never = -(2**62)
    latest, frontier, held, given = [never] * sources, never, list[int](), []
    stood: dict[int, int] = {}
    for tick in range(ticks):
        for number, (ts, own, source) in enumerate(rows):
            if own == tick:
                held.append(number)
                stood[number] = frontier
                latest[source] = max(latest[source], ts)
        frontier = max(frontier, min(latest), max(latest) - slack_at(tick) - 1)
        leaving = sorted((n for n in held if rows[n][0] <= frontier), key=lambda n: (rows[n][0], rows[n][2], n))
        given += [(n, tick, rows[n][0] > min(latest), rows[n][0] < stood[n]) for n in leaving]
        held = [n for n in held if rows[n][0] > frontier]
    return given


def events(rows: Sequence[tuple[int, int, int, bool]], window: int) -> int:
    """Pairs that the paper's join finds in rows of (time, area, source, says), as they are read.

    An area's window ends at its latest row and holds what is at most `window` older; a late row is compared with it.
    """
    kept: dict[int, list[tuple[int, int, bool]]] = {}
    latest: dict[int, int] = {}
    found = 0
    for ts, area, source, says in rows:
        latest[area] = max(ts, latest.get(area, ts))
        own = [row for row in kept.get(area, []) if row[0] >= latest[area] - window]
        found += sum(says and row[2] and row[1] != source and abs(row[0] - ts) <= window for row in own)
        kept[area] = [*own, (ts, source, says)]
    return found
