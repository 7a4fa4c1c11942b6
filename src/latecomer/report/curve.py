"""The completeness curve as both screens draw it.

1. Across runs the logarithm of the wait; "no wait" has a place of its own, left of the shortest lateness.
2. Up runs the number of nines: 90 %, 99 %, 99.9 % are equally far apart, because the last events cost the most.
   100 % would be infinitely far up; it is the topmost line.
3. The quantiles of the late events lie on the curve: a wait just above their p99 loses at most one late event in 100.
4. Waits too short to keep any late event are left out, but for the longest of them: the curve begins where it rises.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from latecomer.disorder.profile import QUANTILES, Profile, Wait
from latecomer.report.words import MIN, MS, D, H, S, Y, duration, duration_up, share

NO_WAIT_US = 1
_FLAT = 0.99  # a wait that still loses this much of what no wait loses is as good as none
_WORTH_A_TICK = (MS, S, MIN, H, D, Y, 1, 10 * Y, 100 * Y, 10 * D, 100 * D, 10 * MIN, 10 * S, 10 * MS, 100 * MS)
_MORE_TICKS = (10, 100, 1_000 * Y, 10_000 * Y, 100_000 * Y, 6 * H, 30 * MIN, 30 * S)

Tick = tuple[float, str]


class Point(NamedTuple):
    """A point of the curve, and where it is drawn."""

    x: float
    y: float
    wait_us: int
    share: float
    mark: str


class Curve(NamedTuple):
    """The points from left to right, and the frame they stand in."""

    points: list[Point]
    bottom: int
    top: int

    @property
    def left(self) -> float:
        """Where "no wait" stands."""
        return self.points[0].x

    @property
    def right(self) -> float:
        """Where the longest wait stands."""
        return self.points[-1].x

    def y_ticks(self) -> list[Tick]:
        """The lines from the bottom to 100 %."""
        ticks = [(float(nines), share(1 - 10.0**-nines)) for nines in range(self.bottom, min(self.top, 7))]
        if self.bottom == 0:
            ticks.insert(1, (nines_of(0.5, self.top), "50 %"))
        return [*ticks, (float(self.top), "100 %")]

    def x_ticks(self, apart: float) -> list[Tick]:
        """Round waits with at least so much space between them, the roundest first."""
        chosen: list[Tick] = [(self.left, "no wait")]
        for wait_us in (*_WORTH_A_TICK, *_MORE_TICKS):
            x = math.log10(wait_us)
            if self.left < x <= self.right and all(abs(x - other) >= apart for other, _ in chosen):
                chosen.append((x, duration(wait_us)))
        return sorted(chosen)


def nines_of(part: float, top: int) -> float:
    """How many nines a share has; 100 % is the top."""
    return float(top) if part >= 1 else round(-math.log10(1 - part), 9)


def curve(profile: Profile) -> Curve | None:
    """The curve of a profile; None where nothing is late and there is none to draw."""
    waits = _waits(profile)
    if len(waits) < 2 or profile.late == 0:
        return None
    finite = [nines_of(part, 0) for _, part, _ in waits if part < 1] or [0.0]
    bottom = int(finite[0])
    top = max(bottom + 1, math.ceil(max(finite) + 0.3))
    left = math.floor(math.log10(min(wait_us for wait_us, _, _ in waits[1:]))) - 0.5
    points, kept = [], 0.0
    for wait_us, part, mark in waits:
        kept = max(kept, part)
        x = left if wait_us <= NO_WAIT_US else math.log10(wait_us)
        points.append(Point(x, nines_of(kept, top), wait_us, part, mark))
    return Curve(points, bottom, top)


def _waits(profile: Profile) -> list[tuple[int, float, str]]:
    """The measured waits and, between them, the quantiles that are not zero."""
    found = [(point.wait_us, point.share, "") for point in _rising(profile.completeness)]
    quantiles = {**QUANTILES, "max": 1.0}
    for name, part in quantiles.items():
        if profile.lateness.get(name, 0) > NO_WAIT_US:
            later = int(round(profile.late * (1 - part), 6))  # at most so many are later than the quantile
            found.append((profile.lateness[name], 1 - later / profile.events, name))
    return sorted(found, key=lambda wait: wait[:2])


def _rising(points: list[Wait]) -> list[Wait]:
    """The points without a flat beginning."""
    flat = sum(1 - point.share > _FLAT * (1 - points[0].share) for point in points)
    return [*points[:1], *points[max(1, flat - 1) :]]


def handful(profile: Profile) -> list[Wait]:
    """No wait, and the shortest waits that keep half, 90 %, 99 %, 99.9 % and all."""
    return profile.completeness[:1] + [point for point in profile.needed if point.wait_us > NO_WAIT_US]


def keeps(profile: Profile, target: float) -> Wait:
    """The shortest wait that keeps this share of the events."""
    return next(point for point in profile.needed if point.share >= target)


def lost(profile: Profile, part: float) -> int:
    """How many events a wait that keeps this share loses."""
    return round((1 - part) * profile.events)


def wait_words(wait_us: int) -> str:
    """A wait as people say it."""
    return "no wait" if wait_us <= NO_WAIT_US else duration_up(wait_us)


def verdict(profile: Profile) -> str:
    """What the profile means, in a sentence."""
    if profile.events == 0:
        return "There are no events, so there is nothing to say about their order."
    if profile.late == 0:
        only = "A single event cannot be late" if profile.events == 1 else "No event is late"
        return f"{only}: no wait is needed."
    most, all_of_them = keeps(profile, 0.99), keeps(profile, 1.0)
    if most == all_of_them:
        return f"Only a wait of {duration_up(most.wait_us)} keeps 99 % of the events, and it keeps all of them."
    return f"{_keep(most)}; 100 % needs {duration_up(all_of_them.wait_us)}."


def _keep(point: Wait) -> str:
    if point.wait_us <= NO_WAIT_US:
        return f"Without any wait {share(point.share)} of the events are kept"
    return f"A wait of {duration_up(point.wait_us)} keeps {share(point.share)} of the events"
