"""Traffic in Dublin: buses and SCATS sensors, and a bus source that lags (Slack-ScaleGate, section 6).

Both sources emit `rate` reports a second, the sensors' half a step behind the buses', so that no two stamps are equal.
Even rows are bus reports, odd rows sensor reports. Sensor reports arrive at once. Delays add up along the bus source:

    arrival(i) = max(ts(i), arrival(i - 1) + delay(i)),   arrival(-1) = the start of the stream

Our reading of "zipf": a delay is a rank of Zipf's law over 1 .. longest, in whole milliseconds, and the 20 s and 50 s
are wall time: the phase of a report is that at arrival(i - 1), when the source turns to it. The mean delay is 3.41 ms
(10 / H(10)) and then 1.44 ms, against 2 ms between reports: after 20 s the lag is 20 x (1 - 2 / 3.41) = 8.3 s, and it
shrinks by 2 / 1.44 - 1 = 0.39 s a second, so that it is gone after 41 s of each cycle of 70 s. Were the phases event
time, the same law would give 14 s. "constant": each report takes 1 ms more than the step, so at 500 a second the lag
grows by a third of wall time and passes 35 s at 105 s.

Invariants
1. Within a phase, with S the running sum of the delays and the clock the arrival before the phase, arrival(i) is
   S(i) + max(clock, max over j <= i of ts(j) - S(j)): exact integers, equal to the recursion.
2. A sensor's flow exceeds `HEAVY_FLOW` only while its area is jammed. There a fifth of the bus reports say congestion,
   elsewhere one in a thousand.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa

from latecomer.disorder.chance import Floats, draws
from latecomer.disorder.presets.model import START_US, TIMES, Preset, check_at_least, check_seed, timestamps
from latecomer.errors import InputError, must
from latecomer.events import Bools, Int64s

HEAVY_FLOW = 600

_MS = 1_000
_SECOND = 1_000_000
_JAM_US, _JAMMED = 30 * _SECOND, 0.03  # how long a jam lasts, and the share of areas that are jammed
_STAY_US = 15 * _SECOND  # a bus then goes on to the next area


class Phase(NamedTuple):
    """A stretch of wall time in which delays follow one law."""

    length_us: int
    exponent: float
    longest_ms: int


PHASES = (Phase(20 * _SECOND, 1.0, 10), Phase(50 * _SECOND, 0.35, 2))


@dataclass(frozen=True)
class Traffic(Preset):
    """Reports of buses and sensors; `policy` says how the bus source lags."""

    seconds: int = 210
    seed: int = 0
    policy: Literal["zipf", "constant"] = "zipf"
    rate: int = 500
    buses: int = 911
    sensors: int = 3_504
    areas: int = 200

    def __post_init__(self) -> None:
        for name in ("seconds", "rate", "buses", "sensors", "areas"):
            check_at_least(name, getattr(self, name), 1)
        check_seed(self.seed)
        if self.policy not in ("zipf", "constant"):
            raise InputError(must("policy", "be 'zipf' or 'constant'", self.policy, "choose one of the two"))
        if _SECOND % (2 * self.rate):
            rule = "divide 500,000, so that stamps are whole microseconds"
            raise InputError(must("rate", rule, self.rate, "use 500 for the paper's rate"))

    @property
    def rows(self) -> int:
        """The reports of both sources."""
        return 2 * self.seconds * self.rate

    @property
    def step_us(self) -> int:
        """The time between two reports of one source."""
        return _SECOND // self.rate

    @property
    def schema(self) -> pa.Schema:
        """Times, the source, its bus or sensor, the area, what a bus says (congestion), what a sensor says (flow)."""
        numbers = [pa.field(name, pa.int32(), nullable=False) for name in ("device", "area", "flow")]
        source = pa.field("source", pa.string(), nullable=False)
        congestion = pa.field("congestion", pa.bool_(), nullable=False)
        return pa.schema([*TIMES, source, *numbers[:2], congestion, numbers[2]])

    def block(self, start: int, stop: int) -> pa.Table:
        """The reports with these numbers."""
        numbers = np.arange(start, stop, dtype=np.int64)
        report, is_sensor = numbers // 2, numbers % 2 == 1
        ts_us = START_US + numbers * (self.step_us // 2)
        arrival_us = np.where(is_sensor, ts_us, bus_arrivals_us(self, (stop + 1) // 2)[report])
        device = report % np.where(is_sensor, self.sensors, self.buses)
        area = np.where(is_sensor, _sensor_areas(self, device), _bus_areas(self, device, ts_us))
        jammed = _jammed(self, area, ts_us)
        columns = [timestamps(ts_us), timestamps(arrival_us), pa.array(np.where(is_sensor, "scats", "bus").tolist())]
        columns += [pa.array(device, pa.int32()), pa.array(area, pa.int32())]
        columns += [pa.array(~is_sensor & _says_congestion(self, numbers, jammed))]
        columns += [pa.array(np.where(is_sensor, _flows(self, numbers, jammed), 0), pa.int32())]
        return pa.table(columns, schema=self.schema)


def bus_arrivals_us(preset: Traffic, count: int) -> Int64s:
    """When the first reports of the bus source arrive."""
    ts_us = START_US + np.arange(count, dtype=np.int64) * preset.step_us
    if preset.policy == "constant":
        return follow(ts_us, np.full(count, preset.step_us + _MS), START_US)
    chances = draws(preset.seed, "traffic/delay", np.arange(count, dtype=np.int64))
    arrivals_us = np.empty(count, dtype=np.int64)
    done, turn, clock_us, end_us = 0, 0, START_US, START_US
    while done < count:
        phase = PHASES[turn % len(PHASES)]
        end_us, turn = end_us + phase.length_us, turn + 1
        piece = slice(done, done + (end_us - clock_us) // _MS + 1)  # no report takes less than 1 ms
        came_us = follow(ts_us[piece], zipf_delays_us(chances[piece], phase), clock_us)
        turned_us = np.concatenate([[clock_us], came_us[:-1]])
        taken = int(np.searchsorted(turned_us, end_us))
        arrivals_us[done : done + taken] = came_us[:taken]
        done, clock_us = done + taken, int(came_us[taken - 1])
    return arrivals_us


def follow(ts_us: Int64s, delays_us: Int64s, clock_us: int) -> Int64s:
    """Arrivals of reports that follow one another, each at least its delay after the one before."""
    spent_us = np.cumsum(delays_us)
    arrivals_us: Int64s = spent_us + np.maximum(np.maximum.accumulate(ts_us - spent_us), clock_us)
    return arrivals_us


def zipf_delays_us(chances: Floats, phase: Phase) -> Int64s:
    """Delays of whole milliseconds, their chance falling with a power of their length."""
    weights = np.arange(1, phase.longest_ms + 1) ** -phase.exponent
    shares = np.cumsum(weights) / weights.sum()
    return (1 + np.searchsorted(shares[:-1], chances, side="right")) * _MS


def _sensor_areas(preset: Traffic, device: Int64s) -> Int64s:
    """The area in which each sensor stands."""
    return (draws(preset.seed, "traffic/sensor", device) * preset.areas).astype(np.int64)


def _bus_areas(preset: Traffic, device: Int64s, ts_us: Int64s) -> Int64s:
    """The area through which each bus drives."""
    first = (draws(preset.seed, "traffic/bus", device) * preset.areas).astype(np.int64)
    moved: Int64s = (first + (ts_us - START_US) // _STAY_US) % preset.areas
    return moved


def _jammed(preset: Traffic, area: Int64s, ts_us: Int64s) -> Bools:
    """Whether an area is jammed at a time."""
    jam = (ts_us - START_US) // _JAM_US * preset.areas + area
    return draws(preset.seed, "traffic/jam", jam) < _JAMMED


def _says_congestion(preset: Traffic, numbers: Int64s, jammed: Bools) -> Bools:
    """Whether a bus in a jam, or out of it, reports congestion."""
    return draws(preset.seed, "traffic/congestion", numbers) < np.where(jammed, 0.2, 0.001)


def _flows(preset: Traffic, numbers: Int64s, jammed: Bools) -> Int64s:
    """Vehicles that a sensor counts: 100 to 599, in a jam 500 more."""
    free = (100 + 500 * draws(preset.seed, "traffic/flow", numbers)).astype(np.int64)
    return free + 500 * jammed
