"""What a profile of a stream's disorder says; `profiler.py` computes it, `spark/profiling/` for any size.

Times are int64 microseconds. Lateness is the high-water mark before an event minus its time, 0 if that is negative;
an event is late when it is > 0. A wait of L keeps the events whose lateness is below L. Where arrival is known, the
mark is that before the event's tick, as for the strategies.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from latecomer.durations import duration_text
from latecomer.events import Int64s

QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999}
STEPS = (1, 2, 5)
TARGETS = (0.5, 0.9, 0.99, 0.999, 1.0)  # shares of all events, for which the shortest wait is told


@dataclass(frozen=True)
class Wait:
    """A point of the completeness curve: the share of all events that a wait would keep."""

    wait_us: int
    share: float


@dataclass(frozen=True)
class Clock:
    """How arrival counts: the tick, none if each event comes by itself; and how far ahead of it an event may be."""

    tick_us: int | None = None
    max_ahead_us: int | None = None


EACH_ALONE = Clock()


@dataclass(frozen=True)
class Ahead:
    """Events that are ahead of their arrival.

    set_aside: those further than `max_ahead_us`, which are not measured; events, most_us: the others, and the furthest.
    advised_us: the smallest round limit that sets aside at most one event in 1,000: so many, `advised_aside`.
    """

    max_ahead_us: int | None
    set_aside: int
    events: int
    most_us: int
    advised_us: int
    advised_aside: int


@dataclass(frozen=True)
class SourceProfile:
    """One source: how far it lags behind the others, and its longest silence."""

    name: str | None
    events: int
    late: int
    mean_lateness_us: int
    max_lateness_us: int
    longest_silence_us: int
    silent_at_end_us: int


@dataclass(frozen=True)
class Holes:
    """Readings that a known period makes one expect.

    A gap between two successive times of a key has round(gap / period) - 1 missing readings.
    """

    period_us: int
    missing: int
    gaps: int
    keys_with_gaps: int
    longest_us: int
    filled_late: int
    in_worst_tenth: float


@dataclass(frozen=True)
class HoleChoice:
    """What to say of holes: the column that counts, or the period and its tolerance; without either, anywhere."""

    enumerator: str | None = None
    every_us: int | None = None
    tolerance_us: int = 0

    @property
    def code(self) -> str:
        """As it is written in the query.

        >>> HoleChoice(every_us=3_600_000_000, tolerance_us=60_000_000).code
        "every='1 hour', tolerance='1 minute'"
        >>> HoleChoice(enumerator="n").code, HoleChoice().code
        ("enumerator='n'", "holes='anywhere'")
        """
        if self.enumerator is not None:
            return f"enumerator={self.enumerator!r}"
        if self.every_us is None:
            return "holes='anywhere'"
        every = f"every='{duration_text(self.every_us)}'"
        return f"{every}, tolerance='{duration_text(self.tolerance_us)}'" if self.tolerance_us else every


@dataclass(frozen=True)
class Picture:
    """Event time against arrival as a grid: how many events fall into each cell.

    `across` runs over the order of arrival (`arrival_us` is None) or over the arrival time; `up` over event time.
    """

    columns: int
    rows: int
    first_ts_us: int
    last_ts_us: int
    arrival_us: tuple[int, int] | None
    across: Int64s
    up: Int64s
    count: Int64s


@dataclass(frozen=True)
class Profile:
    """The disorder of one stream.

    completeness: what round waits keep. needed: the shortest waits that keep half of the events, 90 %, ... and all.
    cut: times that were finer than a microsecond, and were cut to it.
    """

    name: str
    events: int
    keys: int | None
    sources: int | None
    late: int
    lateness: dict[str, int]
    runs: int
    interleaved: int
    inversions: int
    distance: int
    completeness: list[Wait]
    needed: list[Wait]
    first_ts_us: int
    last_ts_us: int
    quarantined: int
    cut: int
    tick_us: int | None
    ahead: Ahead | None
    per_source: list[SourceProfile]
    holes: Holes | None
    picture: Picture
    hole_choice: HoleChoice | None = None  # what to say of holes in time travel; None where it is not measured

    @property
    def late_share(self) -> float:
        """Late events as a share of all."""
        return self.late / self.events if self.events else 0.0

    def to_dict(self) -> dict[str, Any]:
        """As it is written; times in microseconds."""
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "picture"}
        fields["late_share"] = self.late_share
        fields["completeness"] = [asdict(point) for point in self.completeness]
        fields["needed"] = [asdict(point) for point in self.needed]
        fields["ahead"] = None if self.ahead is None else asdict(self.ahead)
        fields["per_source"] = [asdict(source) for source in self.per_source]
        fields["holes"] = None if self.holes is None else asdict(self.holes)
        fields["hole_choice"] = None if self.hole_choice is None else asdict(self.hole_choice)
        return fields

    def write(self, path: Path) -> None:
        """Write the numbers as JSON."""
        path.write_text(json.dumps(self.to_dict(), indent=2) + "\n")


def waits(longest_us: int) -> list[int]:
    """The waits of the curve: 1 us (no wait at all), then round ones from 1 ms on, until all is kept.

    >>> waits(3_000)
    [1, 1000, 2000, 5000]
    """
    found = [1]
    for wait in _ladder():
        if found[-1] > longest_us:
            break
        found.append(wait)
    return found


def positions_needed(events: int, late: int) -> list[int]:
    """Where in the sorted lateness of the late events the last one stands that each target keeps; negative: none."""
    return [int(np.ceil(round(target * events, 6))) - 1 - (events - late) for target in TARGETS] if events else []


def shortest_waits(found: list[tuple[int, int]], events: int, late: int) -> list[Wait]:
    """The shortest waits that keep lateness values, each given with how many late events are not later; each once."""
    waits_us = {value + 1: (events - late + upto) / events for value, upto in found}
    return [Wait(wait_us, share) for wait_us, share in waits_us.items()]


def _ladder() -> list[int]:
    ms, s, m, h, d = 1_000, 1_000_000, 60_000_000, 3_600_000_000, 86_400_000_000
    rungs = [step * ten * ms for ten in (1, 10, 100) for step in STEPS]
    rungs += [n * s for n in (1, 2, 5, 10, 20, 30)] + [n * m for n in (1, 2, 5, 10, 20, 30)]
    rungs += [n * h for n in (1, 2, 6, 12)] + [n * d for n in (1, 2, 5, 10, 20, 50, 100, 200, 500)]
    rungs += [n * 365 * d for n in (2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000)]
    return rungs


def quantile(sorted_us: Int64s, share: float) -> int:
    """The smallest value that at least this share does not exceed; 0 of nothing."""
    if len(sorted_us) == 0:
        return 0
    return int(sorted_us[rank(len(sorted_us), share)])


def rank(count: int, share: float) -> int:
    """The position of a quantile in sorted values."""
    return min(count - 1, max(0, int(np.ceil(round(share * count, 6))) - 1))
