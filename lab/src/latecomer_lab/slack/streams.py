"""The streams of the experiments: reports of Dublin's buses and SCATS sensors, and how long results take.

911 buses report every 20 s and 3,504 sensors every 60 s, both speeded up to 500 reports a second. In `zipf` and
`constant` the delays of the bus source add up (see `latecomer.disorder.presets.traffic`); in `rush` it is 4 s behind,
and results take 0.4 s, but 3.3 s in 30 of every 120 s. `graph` is `zipf` with a third source that is on time and joins
at a second stage. In `fast` event time passes four times as fast in the middle third of `zipf`.

A seed is a day: the time of day of each moment is the same for all, the chances are not. `moved_us` moves the clock
against the pattern.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from latecomer.disorder.chance import draws, normals
from latecomer.disorder.presets.model import START_US
from latecomer.disorder.presets.traffic import HEAVY_FLOW, Traffic
from latecomer.events import Bools, Int64s, int64_view
from latecomer.slack.latency_graph import GraphEdge, LatencyGraph

SECOND_US = 1_000_000
DAY_US = 86_400 * SECOND_US
TICK_US = 100_000
BUS, SCATS, CAMERA = "bus", "scats", "camera"
FIRST, SECOND_STAGE = "first", "second"
_RUSH_LAG_US, _JITTER_US = 4 * SECOND_US, 20_000
_TIMES_FASTER = 4
MOVED_US = 17 * SECOND_US


class Reports(NamedTuple):
    """Reports in order of arrival; `says`: a bus says congestion, a sensor heavy flow."""

    ts_us: Int64s
    arrival_us: Int64s
    source: Int64s  # its number among the sources of the scenario
    area: Int64s
    says: Bools

    def take(self, chosen: Bools | Int64s) -> Reports:
        """Some of them."""
        ts_us, arrival_us, source, area, says = self
        return Reports(ts_us[chosen], arrival_us[chosen], source[chosen], area[chosen], says[chosen])


class Overhead(NamedTuple):
    """How long results take once their rows are read: a time with noise, longer in rushes, and a bit for each row."""

    usual_us: int = 50_000
    rush_us: int = 50_000
    noise: float = 0.02
    row_us: float = 5.0
    rush_begins_us: int = 60 * SECOND_US
    rush_lasts_us: int = 30 * SECOND_US
    every_us: int = 120 * SECOND_US

    def of_ticks(self, ticks: Int64s, rows: Int64s, seed: int) -> Int64s:
        """For rows read in each of some ticks, counted from the start of the stream."""
        into_us = (ticks * TICK_US) % self.every_us - self.rush_begins_us
        rush = (into_us >= 0) & (into_us < self.rush_lasts_us)
        usual_us = np.where(rush, self.rush_us, self.usual_us)
        noise = np.maximum(-3.0, np.minimum(3.0, normals(seed, "slack/overhead", ticks)))
        found: Int64s = (usual_us * (1.0 + self.noise * noise) + self.row_us * rows).astype(np.int64)
        return found


@dataclass(frozen=True)
class Scenario:
    """One stream on one day, the stages that it goes through, and the deadline of its results."""

    name: str
    seed: int
    seconds: int
    deadline_us: int
    reports: Reports
    sources: tuple[str, ...]
    graph: LatencyGraph
    overhead: Overhead
    start_us: int

    @property
    def ticks(self) -> int:
        """How many ticks it has."""
        return self.seconds * SECOND_US // TICK_US


ONE_STAGE = LatencyGraph((GraphEdge(FIRST, BUS), GraphEdge(FIRST, SCATS)))
TWO_STAGES = LatencyGraph(
    (
        GraphEdge(FIRST, BUS),
        GraphEdge(FIRST, SCATS),
        GraphEdge(SECOND_STAGE, FIRST, communication_us=20_000),
        GraphEdge(SECOND_STAGE, CAMERA),
    )
)
NAMES = ("zipf", "constant", "rush", "graph")
_SECONDS = {"zipf": 210, "constant": 210, "rush": 480, "graph": 210, "fast": 210}
_DEADLINE_S = {"zipf": 6, "constant": 35, "rush": 6, "graph": 6, "fast": 6}


def scenario(name: str, seed: int, seconds: int | None = None, moved_us: int = 0) -> Scenario:
    """A scenario by its name, on the day of a seed."""
    seconds = seconds or _SECONDS[name]
    reports = _reports(Traffic(seconds=seconds, seed=seed, policy="constant" if name == "constant" else "zipf"))
    if name == "rush":
        reports = _behind(reports, seed)
    if name == "fast":
        reports = _faster_in_between(reports, seconds)
    if name == "graph":
        reports = _with_cameras(reports)
    shift_us = seed * DAY_US + moved_us
    moved = reports._replace(ts_us=reports.ts_us + shift_us, arrival_us=reports.arrival_us + shift_us)
    overhead = Overhead(400_000, 3_300_000) if name == "rush" else Overhead()
    return Scenario(
        name,
        seed,
        seconds,
        _DEADLINE_S[name] * SECOND_US,
        moved,
        (BUS, SCATS, CAMERA)[: 3 if name == "graph" else 2],
        TWO_STAGES if name == "graph" else ONE_STAGE,
        overhead,
        START_US + shift_us,
    )


def _reports(traffic: Traffic) -> Reports:
    table = traffic.block(0, traffic.rows)
    ts_us, arrival_us = (int64_view(table[name].combine_chunks()).copy() for name in ("ts", "arrival"))
    is_sensor = np.arange(traffic.rows) % 2 == 1
    says = np.where(is_sensor, table["flow"].to_numpy() > HEAVY_FLOW, table["congestion"].to_numpy())
    area = table["area"].to_numpy().astype(np.int64)
    return _by_arrival(Reports(ts_us, arrival_us, is_sensor.astype(np.int64), area, says))


def _by_arrival(reports: Reports) -> Reports:
    return reports.take(np.argsort(reports.arrival_us, kind="stable"))


def _behind(reports: Reports, seed: int) -> Reports:
    """The bus source some seconds behind, in order."""
    bus = reports.source == 0
    jitter_us = (_JITTER_US * draws(seed, "slack/jitter", reports.ts_us)).astype(np.int64)
    arrival_us = reports.ts_us.copy()
    in_order = np.argsort(reports.ts_us[bus], kind="stable")
    late_us = (reports.ts_us + _RUSH_LAG_US + jitter_us)[bus]
    late_us[in_order] = np.maximum.accumulate(late_us[in_order])
    arrival_us[bus] = late_us
    return _by_arrival(reports._replace(arrival_us=arrival_us))


def _with_cameras(reports: Reports) -> Reports:
    """A third source, as fast as the sensors and on time."""
    sensors = reports.take(reports.source == 1)
    apart_us = 500
    cameras = sensors._replace(
        ts_us=sensors.ts_us + apart_us,
        arrival_us=sensors.arrival_us + apart_us,
        source=np.full(len(sensors.source), 2),
        says=np.zeros(len(sensors.says), dtype=np.bool_),
    )
    return _by_arrival(Reports(*(np.concatenate(both) for both in zip(reports, cameras, strict=True))))


def _faster_in_between(reports: Reports, seconds: int) -> Reports:
    """Event times that pass four times as fast in the middle third of the arrivals; delays stay what they were."""
    third_us = seconds * SECOND_US // 3
    past_us = reports.ts_us - START_US
    more_us = np.clip(past_us - third_us, 0, third_us) * (_TIMES_FASTER - 1)
    return reports._replace(ts_us=reports.ts_us + more_us)
