"""Smart meters: hourly readings of a cumulative register, with holes, late batches and faults (TinTiN, section 7).

Rows are numbered hour by hour and within the hour meter by meter; each meter reads at its own moment of the hour.

Invariants
1. No two rows share a `ts`, and the numbers of the rows follow it. A reading that is not held up arrives
   `TRANSPORT_US` after its time, so that it is never late.
2. Patchy meters lose each reading with a chance of their own (49 to 77 %), silent meters lose one long stretch (24 to
   100 % of the time; what passes the end is lost at the beginning, so that each hour misses the same share), all others
   lose none. Lost readings never come.
3. In an outage a meter keeps its readings; they arrive together, in order of time, when contact is back. Three batches
   in four come after the meter's next on-time reading and fill a hole that it has shown, the others shortly before it;
   all come within two hours after their last reading. The lengths follow a Lomax law (95 % of the late readings are
   less than 3 days late) of at most `LONGEST_HOURS`, so that no lateness passes 40 days. Outages of one meter never
   touch.
4. Lengths and chances are strata of their laws, not draws: rates hold in every run from about a hundred meters on.
5. Without a fault, the register grows each hour by less than the fuse and never falls; each fault is a few steps.

The shares of patchy and silent meters are set to Table 2 of the paper: holes are jumps between successive on-time
readings of a meter (assumption A1), contexts are on-time readings with such a jump in their last 26 hours (line 5 of
Algorithm 1). Both scale with `missing`. The worst tenth of the meters has 55 % of the missing readings, the worst fifth
95 %, and 78 % of the meters miss none. Faults are more frequent than in Table 3, so that a thousand meters show some;
every seventh begins in an outage, so that about a tenth of the alerts depends on late readings.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from latecomer.disorder.chance import Floats, draws, hashes
from latecomer.disorder.presets.model import START_US, TIMES, Preset, check_at_least, check_seed, timestamps
from latecomer.errors import InputError, must
from latecomer.events import Bools, Int64s

HOUR_US = 3_600_000_000
FIRST_US = -(-START_US // HOUR_US) * HOUR_US  # the first full hour
TRANSPORT_US = 2_000_000
LONGEST_HOURS = 40 * 24 - 2
FUSES = np.array([16, 20, 25, 35]) * 3 * 230  # ampere on three phases, as watt-hours per hour

_BATCH_GAP_US = 1_000  # between readings of one late batch
_AFTER_NEXT = 0.75  # of the batches come after the next on-time reading
_PATCHY, _SILENT = 0.965, 0.63  # shares of the meters, as multiples of the share of missing readings
_CHANCE = (0.49, 0.77)  # of a patchy meter to lose a reading
_SILENCE = (0.24, 1.0)  # of the whole time
_TAIL, _SCALE_HOURS = 2.5, 13.5  # the Lomax law of outages
_FAULTY_DAYS = 55  # the time that `faults` refers to


class Stretches(NamedTuple):
    """Hours from start to stop - 1 of one meter each."""

    meter: Int64s
    start: Int64s
    stop: Int64s


class Steps(NamedTuple):
    """Faulty jumps of registers, in watt-hours; a step stays in all later readings."""

    meter: Int64s
    hour: Int64s
    size: Int64s


class Plan(NamedTuple):
    """All that is decided per meter, and not per reading."""

    chance: Floats  # of losing a reading
    silences: Stretches
    outages: Stretches
    fuse: Int64s
    usage: Floats  # watt-hours in a mean hour
    base: Int64s  # the register before the first hour
    steps: Steps


@dataclass(frozen=True)
class Meters(Preset):
    """Hourly readings of many meters; `faults` is the number of faults per meter in 55 days."""

    meters: int = 1_000
    days: int = 55
    seed: int = 0
    missing: float = 0.138
    late: float = 0.0076
    faults: float = 0.03

    def __post_init__(self) -> None:
        check_at_least("meters", self.meters, 1)
        check_at_least("days", self.days, 1)
        check_seed(self.seed)
        for name, most in (("missing", 0.6), ("late", 0.05), ("faults", 5.0)):
            if not 0 <= getattr(self, name) <= most:
                raise InputError(must(name, f"be between 0 and {most}", getattr(self, name), "use the default"))

    @property
    def rows(self) -> int:
        """One for each meter and hour, whether its reading comes or not."""
        return self.meters * self.hours

    @property
    def hours(self) -> int:
        """How many hours there are."""
        return self.days * 24

    @property
    def schema(self) -> pa.Schema:
        """Times, the meter's number, its register in watt-hours, and its fuse in watt-hours per hour."""
        kinds = {"meter": pa.int32(), "reading": pa.int64(), "fuse": pa.int32()}
        return pa.schema([*TIMES, *(pa.field(name, kind, nullable=False) for name, kind in kinds.items())])

    def block(self, start: int, stop: int) -> pa.Table:
        """The readings with these numbers that come at all."""
        plan = plan_of(self)
        numbers = np.arange(start, stop, dtype=np.int64)
        keep = _came(self, plan, start, stop)
        hour, meter = np.divmod(numbers, self.meters)
        ts_us = times_us(self, hour, meter)
        arrival_us = ts_us + TRANSPORT_US
        held, back_us = _held_up(self, plan.outages, start, stop)
        arrival_us[held] = back_us
        reading = _readings(self, plan, hour, meter)
        columns = [timestamps(ts_us[keep]), timestamps(arrival_us[keep]), meter[keep].astype(np.int32), reading[keep]]
        return pa.table([*columns, plan.fuse[meter[keep]].astype(np.int32)], schema=self.schema)


def times_us(preset: Meters, hour: Int64s, meter: Int64s) -> Int64s:
    """When meters read: each at its own moment of every hour."""
    return FIRST_US + hour * HOUR_US + meter * (HOUR_US // preset.meters)


@lru_cache(maxsize=4)
def plan_of(preset: Meters) -> Plan:
    """Decide what each meter is like, when it is cut off, and when it fails."""
    seed, every = preset.seed, np.arange(preset.meters, dtype=np.int64)
    order = np.argsort(hashes(seed, "meters/order", every), kind="stable")
    patchy = round(preset.meters * preset.missing * _PATCHY)
    silent = patchy + round(preset.meters * preset.missing * _SILENT)
    chance = np.zeros(preset.meters)
    chance[order[:patchy]] = _strata(patchy, *_CHANCE)
    outages = _outages(preset, np.concatenate([order[:patchy], order[silent:]]), chance)
    fuse = FUSES[_below(seed, "meters/fuse", every, len(FUSES))]
    usage = fuse * (0.02 + 0.13 * draws(seed, "meters/usage", every))
    base = 1_000_000 + _below(seed, "meters/base", every, 50_000_000)
    steps = _steps(preset, fuse, outages)
    return Plan(chance, _silences(preset, order[patchy:silent]), outages, fuse, usage, base, steps)


def _strata(count: int, low: float, high: float) -> Floats:
    """Values spread evenly between two bounds."""
    return low + (high - low) * (np.arange(count) + 0.5) / max(count, 1)


def _below(seed: int, purpose: str, numbers: Int64s, bound: int | Int64s) -> Int64s:
    """A whole number from 0 to bound - 1 for each number."""
    return (draws(seed, purpose, numbers) * bound).astype(np.int64)


def _silences(preset: Meters, meter: Int64s) -> Stretches:
    """One long stretch without readings for each of these meters; what passes the end is lost at the beginning."""
    start = _below(preset.seed, "meters/silence", meter, preset.hours)
    stop = start + np.ceil(_strata(len(meter), *_SILENCE) * preset.hours).astype(np.int64)
    return Stretches(
        np.concatenate([meter, meter]),
        np.concatenate([start, np.zeros_like(start)]),
        np.concatenate([np.minimum(stop, preset.hours), np.maximum(stop - preset.hours, 0)]),
    )


def _outages(preset: Meters, able: Int64s, chance: Floats) -> Stretches:
    """As many outages, on the meters that are able to speak, as give the wanted share of late readings."""
    if len(able) == 0:
        return Stretches(able, able, able)
    wanted = preset.late * (1 - preset.missing) * preset.rows / (1 - float(chance[able].mean()))
    wanted /= 1 - 2 * preset.late  # those that touch others will be dropped
    length = _lengths(round(wanted / float(_lengths(10_000, preset.hours).mean())), preset.hours)
    numbers = np.arange(len(length), dtype=np.int64)
    meter = able[_below(preset.seed, "meters/outage", numbers, len(able))]
    start = 1 + _below(preset.seed, "meters/outage start", numbers, preset.hours - 1 - length)
    order = np.lexsort((start, meter))
    return _apart(Stretches(meter[order], start[order], start[order] + length[order]))


def _lengths(count: int, hours: int) -> Int64s:
    """Strata of the law of outages, in hours, each leaving room for an hour before and after."""
    law = _SCALE_HOURS * ((1 - _strata(count, 0, 1)) ** (-1 / _TAIL) - 1)
    return np.minimum(1 + law.astype(np.int64), min(LONGEST_HOURS, hours - 2))


def _apart(stretches: Stretches) -> Stretches:
    """Drop each stretch that touches an earlier one of its meter (those come sorted)."""
    keep, last_meter, free = [], -1, 0
    for i, (meter, start, stop) in enumerate(zip(*(column.tolist() for column in stretches), strict=True)):
        if meter != last_meter or start > free:
            keep.append(i)
            last_meter, free = meter, stop
    return Stretches(*(column[np.array(keep, dtype=np.int64)] for column in stretches))


def _steps(preset: Meters, fuse: Int64s, outages: Stretches) -> Steps:
    """Faults in turn: a spurt of large values, a step back, and large values with a step back within a day."""
    seed = preset.seed
    fault = np.arange(round(preset.faults * preset.meters * preset.days / _FAULTY_DAYS), dtype=np.int64)
    meter, hour = _fault_places(preset, fault, outages)
    large = np.where(fault % 3 == 1, 0, 1 + _below(seed, "meters/large", fault, 4))
    gap = 1 + _below(seed, "meters/gap", fault, 4)
    size = (fuse[meter] * (1.2 + draws(seed, "meters/size", fault))).astype(np.int64)
    which, position = _unroll(large)
    back = np.flatnonzero(fault % 3)
    return Steps(
        np.concatenate([meter[which], meter[back]]),
        np.concatenate([hour[which] + position * gap[which], (hour + large * gap)[back]]),
        np.concatenate([size[which], -(np.maximum(large, 1) * size)[back]]),
    )


def _fault_places(preset: Meters, fault: Int64s, outages: Stretches) -> tuple[Int64s, Int64s]:
    """A meter and a first hour for each fault; every seventh falls into an outage."""
    seed = preset.seed
    meter = _below(seed, "meters/fault", fault, preset.meters)
    hour = 1 + _below(seed, "meters/fault hour", fault, preset.hours - 1)
    if len(outages.meter) == 0:
        return meter, hour
    pick = _below(seed, "meters/fault outage", fault, len(outages.meter))
    start, stop = outages.start[pick], outages.stop[pick]
    inside = start + _below(seed, "meters/fault inside", fault, stop - start)
    cut_off = fault % 7 == 0
    return np.where(cut_off, outages.meter[pick], meter), np.where(cut_off, inside, hour)


def _unroll(counts: Int64s) -> tuple[Int64s, Int64s]:
    """Number the items of groups of these sizes: the group of each, and its position in the group."""
    which = np.repeat(np.arange(len(counts), dtype=np.int64), counts)
    position = np.arange(len(which), dtype=np.int64) - (np.cumsum(counts) - counts)[which]
    return which, position


def _first_hour(preset: Meters, start: int, meter: Int64s) -> Int64s:
    """The first hour in which a meter's row has at least this number."""
    return -(-(start - meter) // preset.meters)


def _numbers_in(preset: Meters, stretches: Stretches, start: int, stop: int) -> tuple[Int64s, Int64s, Int64s]:
    """The rows of a block that lie in stretches: their positions in the block, their stretches, their hours."""
    low = np.maximum(stretches.start, _first_hour(preset, start, stretches.meter))
    high = np.minimum(stretches.stop, _first_hour(preset, stop, stretches.meter))
    which, position = _unroll(np.maximum(high - low, 0))
    hour = low[which] + position
    return hour * preset.meters + stretches.meter[which] - start, which, hour


def _came(preset: Meters, plan: Plan, start: int, stop: int) -> Bools:
    """Which rows of a block come, late or not."""
    came = np.ones(stop - start, dtype=np.bool_)
    came[_numbers_in(preset, plan.silences, start, stop)[0]] = False
    patchy = np.flatnonzero(plan.chance)
    always = Stretches(patchy, np.zeros_like(patchy), np.full_like(patchy, preset.hours))
    rows, which, _ = _numbers_in(preset, always, start, stop)
    came[rows] = draws(preset.seed, "meters/lost", rows + start) >= plan.chance[patchy[which]]
    return came


def _held_up(preset: Meters, outages: Stretches, start: int, stop: int) -> tuple[Int64s, Int64s]:
    """The rows of a block that are held up by an outage, and when they arrive."""
    rows, which, hour = _numbers_in(preset, outages, start, stop)
    last = outages.stop - 1
    numbers = outages.meter * preset.hours + last
    after_next = draws(preset.seed, "meters/after", numbers) < _AFTER_NEXT
    wait = 0.05 + 0.9 * draws(preset.seed, "meters/back", numbers) + after_next
    back_us = times_us(preset, last, outages.meter) + (wait * HOUR_US).astype(np.int64)
    return rows, back_us[which] + (hour - outages.start[which]) * _BATCH_GAP_US


def _week() -> Floats:
    """The share of a mean hour that each hour of the week uses: a peak in the evening, more at the weekend."""
    hour = np.arange(7 * 24)
    shape = 1 + 0.35 * np.cos((hour % 24 - 19) * np.pi / 12) + 0.2 * np.cos((hour % 24 - 8) * np.pi / 6)
    shape *= np.where(hour // 24 >= 5, 1.15, 1.0)
    weights: Floats = shape / shape.mean()
    return weights


_WEEK = _week()
_USED = np.cumsum(_WEEK)


def _readings(preset: Meters, plan: Plan, hour: Int64s, meter: Int64s) -> Int64s:
    """Registers: use up to the hour in closed form, a jitter below the least use of an hour, and faulty steps."""
    numbers = hour * preset.meters + meter
    weeks, hour_of_week = np.divmod(hour, len(_WEEK))
    used = plan.usage[meter] * (weeks * len(_WEEK) + _USED[hour_of_week])
    jitter = 0.9 * float(_WEEK.min()) * plan.usage[meter] * draws(preset.seed, "meters/jitter", numbers)
    reading: Int64s = plan.base[meter] + used.astype(np.int64) + jitter.astype(np.int64)
    _add_steps(preset, plan.steps, reading, int(numbers[0]) if len(numbers) else 0)
    return reading


def _add_steps(preset: Meters, steps: Steps, reading: Int64s, start: int) -> None:
    """Add each step to all readings of its meter in the block from its hour on."""
    hour = np.maximum(steps.hour, _first_hour(preset, start, steps.meter))
    rows = hour * preset.meters + steps.meter - start
    for row, size in zip(rows.tolist(), steps.size.tolist(), strict=True):
        reading[row :: preset.meters] += size
