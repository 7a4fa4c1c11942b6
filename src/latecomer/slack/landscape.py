"""What is expected of a whole query for every choice of slacks: latency from end to end, and slack-ready rows.

Each edge brings what it expects above the wait, by the slack of its stage. The waits themselves follow from how far
each input will be behind: a source as far as its lag will have grown, a stage as far as its own frontier will be. So a
stage that waits longer lets the next one lag more, and is not raised beyond what that can bear.

Invariants
1. The lag of a stage is how far the input that is most behind is behind the mark. Where that is no edge of its own (all
   sources of a stage may be one), it is the lag that was seen, and what it grows.
2. A row waits until the input that is most behind has come as far, or until the slack lets it pass, whichever is first.
   So rows of the input that is most behind do not wait.
3. Everything is in microseconds of wall time.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from latecomer.slack.climbing import Expected
from latecomer.slack.features import Floats
from latecomer.slack.latency_graph import LatencyGraph
from latecomer.slack.observation import Edge

_LEAST_CHANGE_US = 1e3


class Outlook(NamedTuple):
    """What is known of an edge, and what its models say for each wait that can be chosen.

    change: by how much the lag will have changed at the end of the horizon. rows: those that come in an interval.
    above: the latency without the wait. more_ready: slack-ready rows beside those that follow from the lag.
    """

    lag_us: float
    behind_us: float
    change_us: float
    rows: float
    above_us: Floats
    more_ready: Floats


class Forecast(NamedTuple):
    """For each edge the wait, and the slack-ready rows, that follow from the lag."""

    wait_us: dict[Edge, float]
    ready: dict[Edge, float]


@dataclass(frozen=True)
class Landscape:
    """The outlooks of all edges, the waits that can be chosen, and for each stage the one in force."""

    graph: LatencyGraph
    waits_us: Floats
    outlooks: Mapping[Edge, Outlook]
    in_force_us: Mapping[str, float]

    @property
    def top(self) -> int:
        """The place of the longest wait."""
        return len(self.waits_us) - 1

    def at(self, places: Mapping[str, int]) -> Expected:
        """What is expected where each stage allows one of the waits."""
        found = self._forecast({stage: float(self.waits_us[place]) for stage, place in places.items()})
        latency_us, ready = {}, 0.0
        for edge, each in self.outlooks.items():
            place = places[edge[0]]
            latency_us[edge] = found.wait_us[edge] + each.above_us[place]
            ready += max(0.0, found.ready[edge] + each.more_ready[place])
        return Expected(self.graph.longest_us(latency_us), ready)

    def latencies_us(self, waits_us: Mapping[str, float]) -> dict[Edge, float]:
        """The latency of each edge, where each stage allows any wait."""
        found = self._forecast(waits_us)
        return {
            edge: found.wait_us[edge] + float(np.interp(waits_us[edge[0]], self.waits_us, each.above_us))
            for edge, each in self.outlooks.items()
        }

    def _forecast(self, waits_us: Mapping[str, float]) -> Forecast:
        found, later_us = Forecast({}, {}), dict[str, float]()
        for stage in self.graph.stages:
            edges = {each.edge: self.outlooks[each.edge] for each in self.graph.edges_of(stage)}
            behind_us = {edge: _behind_us(edge, each, later_us) for edge, each in edges.items()}
            lag_us, allowed_us = max(_hidden_lag_us(edges.values()), *behind_us.values()), waits_us[stage]
            for edge, each in edges.items():
                until_ready_us = lag_us - behind_us[edge]
                found.wait_us[edge] = max(0.0, min(until_ready_us, allowed_us - behind_us[edge]))
                part = _part(lag_us - allowed_us, each.change_us) if until_ready_us > 0.0 else 0.0
                found.ready[edge] = each.rows * part
            now_us = min(max(each.lag_us for each in edges.values()), self.in_force_us[stage])
            later_us[stage] = min(lag_us, allowed_us) - now_us
        return found


def _behind_us(edge: Edge, outlook: Outlook, later_us: Mapping[str, float]) -> float:
    """How far an input will be behind: a stage as much further as its results come later, a source as its lag grows."""
    if edge[1] in later_us:
        return max(0.0, outlook.behind_us + later_us[edge[1]])
    return outlook.behind_us + (max(0.0, outlook.change_us) if outlook.behind_us >= outlook.lag_us else 0.0)


def _hidden_lag_us(outlooks: Collection[Outlook]) -> float:
    """How far a source will be behind that is no edge of its own; 0 where the lag is that of an edge."""
    lag_us = max(each.lag_us for each in outlooks)
    if max(each.behind_us for each in outlooks) >= lag_us:
        return 0.0
    return lag_us + max(0.0, *(each.change_us for each in outlooks))


def _part(exceeds_us: float, change_us: float) -> float:
    """The part of the horizon in which the lag exceeds the slack, if it moves evenly to where it is at its highest."""
    return min(1.0, max(0.0, exceeds_us / max(abs(change_us), _LEAST_CHANGE_US)))
