"""Made runs of a gate with two inputs, for tests of the tuner: the bus lags, the sensors wait for it."""

from __future__ import annotations

from collections.abc import Callable

from latecomer.slack.latency_graph import GraphEdge, LatencyGraph
from latecomer.slack.observation import Observation

SECOND = 1_000_000
TICK = 100_000
BUS, SENSORS = ("gate", "bus"), ("gate", "sensors")
GRAPH = LatencyGraph((GraphEdge(*BUS), GraphEdge(*SENSORS)))
START = 1_760_000_000 * SECOND


def observed(interval: int, slack_us: int, lag_us: int, overhead_us: int, **more: float) -> list[Observation]:
    """Both edges in an interval: 500 rows each, the lag as it is, the wait as it follows from that."""
    speed, slope = more.get("speed", 1.0), more.get("slope", 0.0)
    wait_us = round(min(lag_us, slack_us) / speed)
    clock_us = START + interval * SECOND - min(lag_us, slack_us)
    common = (interval, SECOND, clock_us, slack_us, lag_us)
    ready = 500 if lag_us > slack_us else 0
    return [
        Observation(*BUS, *common, lag_us, slope, speed, 500, 0, TICK + overhead_us, overhead_us),
        Observation(*SENSORS, *common, 0, slope, speed, 500, ready, wait_us + TICK + overhead_us, overhead_us),
    ]


def made_run(
    intervals: int, slack_us: int, overhead_us: Callable[[int], int], lag_us: int = 4 * SECOND
) -> list[Observation]:
    """A run with one slack and one lag."""
    return [seen for number in range(intervals) for seen in observed(number, slack_us, lag_us, overhead_us(number))]
