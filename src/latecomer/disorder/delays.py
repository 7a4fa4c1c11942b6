"""How late an event that is chosen to be late comes: the distributions of delay.

Each is a frozen dataclass; `delays(rows, seed)` gives microseconds for every row, from draws keyed by row number or by
device, so that any part of a stream can be computed anywhere. `units(rows)` are the numbers by which events are
chosen: the row's own number, or, where events suffer together, their device and its turn.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from latecomer.disorder.chance import Floats, Hashes, draws, hashes, normals
from latecomer.errors import InputError, must
from latecomer.events import Int64s

_TRIES = 32  # of the half-normal; then the value is cut off, which happens to one row in 10^15 at three deviations


@dataclass(frozen=True)
class Rows:
    """Some rows of a source: number, event time, and a hash of the device where there is one."""

    number: Int64s
    ts_us: Int64s
    device: Hashes | None
    first_us: int
    last_us: int


@dataclass(frozen=True)
class Delay(ABC):
    """A distribution of delays between a least and a largest one."""

    min_us: int
    max_us: int

    def __post_init__(self) -> None:
        if self.min_us < 0 or self.max_us < self.min_us:
            got = f"{self.min_us} us to {self.max_us} us"
            raise InputError(must("maxDelay", "not be below minDelay, nor minDelay below 0", got, "e.g. 0 and 2000"))

    needs_device = False

    @property
    def width_us(self) -> int:
        """From the least to the largest delay."""
        return self.max_us - self.min_us

    @abstractmethod
    def delays(self, rows: Rows, seed: int) -> Int64s:
        """The delay of each row if it is chosen."""

    def units(self, rows: Rows) -> Int64s | Hashes:
        """What is chosen or not as one."""
        return rows.number

    def chosen(self, rows: Rows, seed: int) -> Floats:
        """A number in [0, 1) per row: it is chosen when the number is below the share of units to delay."""
        return draws(seed, "chosen", self.units(rows))

    def _from(self, fraction: Floats) -> Int64s:
        """Fractions of the way from the least to the largest delay, as delays."""
        delay: Int64s = self.min_us + np.floor(fraction * self.width_us).astype(np.int64)
        return delay


class Uniform(Delay):
    """Every delay in [min, max) alike."""

    def delays(self, rows: Rows, seed: int) -> Int64s:
        return self._from(draws(seed, "delay", rows.number))


class Constant(Delay):
    """Always the largest delay."""

    def delays(self, rows: Rows, seed: int) -> Int64s:
        return np.full(len(rows.number), self.max_us, dtype=np.int64)


def _between(where: str, value: float, least: float, advice: str) -> None:
    if not (np.isfinite(value) and value > least):
        raise InputError(must(where, f"be a number above {least:g}", value, advice))


@dataclass(frozen=True)
class HalfNormal(Delay):
    """The absolute value of a normal distribution around min, cut at max; deviation in shares of max - min."""

    deviation: float = 1 / 3

    def __post_init__(self) -> None:
        super().__post_init__()
        _between("deviation", self.deviation, 0, "e.g. 0.33")

    def delays(self, rows: Rows, seed: int) -> Int64s:
        fraction = np.abs(normals(seed, "delay", rows.number)) * self.deviation
        for attempt in range(1, _TRIES):
            beyond = np.flatnonzero(fraction >= 1.0)
            if len(beyond) == 0:
                break
            fraction[beyond] = np.abs(normals(seed, f"delay/{attempt}", rows.number[beyond])) * self.deviation
        return self._from(np.minimum(fraction, np.nextafter(1.0, 0.0)))


@dataclass(frozen=True)
class Exponential(Delay):
    """Exponential from min on, cut at max; mean in shares of max - min."""

    mean: float = 0.2

    def __post_init__(self) -> None:
        super().__post_init__()
        _between("mean", self.mean, 0, "e.g. 0.2")

    def delays(self, rows: Rows, seed: int) -> Int64s:
        whole = -np.expm1(-1.0 / self.mean)  # what lies below max
        return self._from(-self.mean * np.log1p(-draws(seed, "delay", rows.number) * whole))


@dataclass(frozen=True)
class Pareto(Delay):
    """Pareto (of the second kind) from min on, cut at max; scale in shares of max - min."""

    shape: float = 1.5
    scale: float = 0.01

    def __post_init__(self) -> None:
        super().__post_init__()
        _between("shape", self.shape, 0, "e.g. 1.5")
        _between("scale", self.scale, 0, "e.g. 0.01")

    def delays(self, rows: Rows, seed: int) -> Int64s:
        whole = 1.0 - (1.0 + 1.0 / self.scale) ** -self.shape  # what lies below max
        u = draws(seed, "delay", rows.number) * whole
        return self._from(np.minimum(self.scale * ((1.0 - u) ** (-1.0 / self.shape) - 1.0), 1.0))


@dataclass(frozen=True)
class Zipf(Delay):
    """Ranks 1 to `ranks`, rank k with weight k ** -exponent; rank 1 is min, the last rank max."""

    exponent: float = 1.0
    ranks: int = 1_000

    def __post_init__(self) -> None:
        super().__post_init__()
        _between("exponent", self.exponent, 0, "e.g. 1.0")
        _between("ranks", self.ranks, 1, "e.g. 1000")

    def delays(self, rows: Rows, seed: int) -> Int64s:
        weights = np.cumsum(np.arange(1, self.ranks + 1, dtype=np.float64) ** -self.exponent)
        rank = np.searchsorted(weights / weights[-1], draws(seed, "delay", rows.number), side="right")
        return self._from(rank / (self.ranks - 1))


class Drift(Delay):
    """A clock that falls behind: min at the first event, max at the last. With a device, whole devices drift."""

    def units(self, rows: Rows) -> Int64s | Hashes:
        return rows.number if rows.device is None else rows.device

    def delays(self, rows: Rows, seed: int) -> Int64s:
        span = max(1, rows.last_us - rows.first_us)
        return self._from((rows.ts_us - rows.first_us) / span)


@dataclass(frozen=True)
class Empirical(Delay):
    """As measured: (share, delay in us) pairs, rising in both, straight lines between; cut to [min, max]."""

    shares: tuple[float, ...] = ()
    delays_us: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        rising = all(np.all(np.diff(values) >= 0) for values in (self.shares, self.delays_us))
        if len(self.shares) < 2 or len(self.shares) != len(self.delays_us) or not rising:
            got = f"{len(self.shares)} shares and {len(self.delays_us)} delays"
            raise InputError(must("curve", "be two or more pairs that rise", got, "give a profile with late events"))

    def delays(self, rows: Rows, seed: int) -> Int64s:
        u = draws(seed, "delay", rows.number)
        delay = np.interp(u, self.shares, np.asarray(self.delays_us, dtype=np.float64))
        return np.clip(np.floor(delay).astype(np.int64), self.min_us, self.max_us)


class Batched(Delay):
    """A device's events wait for its next upload and come together: one upload every max - min, min after its time."""

    needs_device = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.width_us < 1:
            raise InputError(must("maxDelay", "be above minDelay for batched uploads", self.max_us, "e.g. 3600000"))

    def _turn(self, rows: Rows) -> tuple[Int64s, Int64s]:
        """Which upload takes each event, and when it is."""
        assert rows.device is not None
        phase_us = (draws(0, "phase", rows.device) * self.width_us).astype(np.int64)
        turn = (rows.ts_us - phase_us) // self.width_us
        return turn, (turn + 1) * self.width_us + phase_us

    def units(self, rows: Rows) -> Int64s | Hashes:
        assert rows.device is not None
        return rows.device ^ hashes(0, "turn", self._turn(rows)[0])

    def delays(self, rows: Rows, seed: int) -> Int64s:
        delay: Int64s = self.min_us + self._turn(rows)[1] - rows.ts_us
        return delay


@dataclass(frozen=True)
class Outage(Delay):
    """A source falls silent for a time in [min, max], then sends what it kept, in order, `catch_up` times as fast.

    Time is cut into turns a little longer than the longest outage and its catching up; a device that is chosen for a
    turn has one outage in it.
    """

    catch_up: float = 10.0
    needs_device = True

    def __post_init__(self) -> None:
        super().__post_init__()
        _between("catch_up", self.catch_up, 1, "e.g. 10")
        if self.max_us < 1:
            raise InputError(must("maxDelay", "be above 0 for outages", self.max_us, "e.g. 60000"))

    @property
    def turn_us(self) -> int:
        """How long a turn is."""
        return int(1.25 * self.max_us * self.catch_up / (self.catch_up - 1)) + 1

    def units(self, rows: Rows) -> Int64s | Hashes:
        assert rows.device is not None
        return rows.device ^ hashes(0, "turn", rows.ts_us // self.turn_us)

    def delays(self, rows: Rows, seed: int) -> Int64s:
        unit = self.units(rows)
        length = self._from(draws(seed, "length", unit))
        busy_us = np.ceil(length * self.catch_up / (self.catch_up - 1)).astype(np.int64)  # until it has caught up
        start = (draws(seed, "start", unit) * (self.turn_us - busy_us)).astype(np.int64)
        since = rows.ts_us % self.turn_us - start
        arrival = length + np.floor(since / self.catch_up).astype(np.int64)
        return np.where((since >= 0) & (since < busy_us), np.maximum(arrival - since, 0), 0)
