"""Hit the target: which share of units to delay so that the asked share of events comes late.

`late(share)` is exact but dear (a sort of the whole stream), and it need not rise all the way: when nearly everything
is delayed alike, little is late. So a bracket is looked for from below, by the secant, and closed by false position;
only where the end of the range is too low is the range searched for its highest point, the reachable maximum. All
steps depend on counts alone, so the answer is the same wherever the counting is done.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

Late = Callable[[float], int]

WANTED = 0.001  # of all events: a search ends this near to the target,
CONTENT = 0.0025  # or this near after some evaluations (units of many events move the count in steps)
SOME = 4
MOST = 32  # evaluations of one search
GRID = 8


class Reach(StrEnum):
    """How near a search came, and why not nearer."""

    HIT = "hit"  # within half a per cent of the events
    BELOW_OWN = "below own"  # fewer than are late without any delay
    MAXIMUM = "maximum"  # no share makes so many late
    COARSE = "coarse"  # units of many events jump over the target


@dataclass(frozen=True)
class Found:
    """The share of units to delay, how many events are late with it, and the nearest counts around the target."""

    share: float
    late: int
    reach: Reach
    around: tuple[int, int]


@dataclass
class Search:
    """One search for a number of late events."""

    late: Late
    events: int
    target: int
    seen: dict[float, int] = field(default_factory=dict)

    def at(self, share: float) -> int:
        """How many events are late when this share of units is delayed."""
        if share not in self.seen:
            self.seen[share] = self.late(share)
        return self.seen[share]

    def done(self) -> bool:
        """Whether the target is met, or there were enough tries."""
        off = min(abs(late - self.target) for late in self.seen.values())
        near = CONTENT if len(self.seen) > SOME else WANTED
        return len(self.seen) >= MOST or off <= min(near * self.events, self.target / 20)

    def best(self) -> tuple[float, int]:
        """The nearest so far; of equals the smallest share."""
        return min(self.seen.items(), key=lambda pair: (abs(pair[1] - self.target), pair[0]))


def hit(late: Late, events: int, target: int, own: int) -> Found:
    """Find the share of units to delay; `own` events are late without any delay.

    >>> hit(lambda share: round(900 * share), events=1_000, target=450, own=0)
    Found(share=0.5, late=450, reach=<Reach.HIT: 'hit'>, around=(450, 450))
    >>> hit(lambda share: round(900 * share), events=1_000, target=1_000, own=0).late
    900
    """
    search = Search(late, events, target, {0.0: own})
    low = 0.0
    if search.at(low) < target and not search.done():
        high = _rise(search)
        if search.at(high) < target and not search.done():
            high = _highest(search)
        _close(search, low, high)
    share, found = search.best()
    counts = sorted(search.seen.values())
    around = (
        max((n for n in counts if n <= target), default=found),
        min((n for n in counts if n >= target), default=found),
    )
    return Found(share, found, _reach(search, found, own), around)


def _reach(search: Search, found: int, own: int) -> Reach:
    if abs(found - search.target) <= search.events / 200:
        return Reach.HIT
    if search.target < own:
        return Reach.BELOW_OWN
    return Reach.MAXIMUM if max(search.seen.values()) < search.target else Reach.COARSE


def _rise(search: Search) -> float:
    """From below, the first share tried that reaches the target, or 1."""
    own = search.at(0.0)
    share = min(1.0, (search.target - own) / max(1, search.events - own))
    while share < 1.0 and search.at(share) < search.target and not search.done():
        gained = search.at(share) - own
        ahead = share * (search.target - own) / gained if gained > 0 else 1.0
        share = min(1.0, max(1.05 * ahead, 1.2 * share))
    return share


def _highest(search: Search) -> float:
    """The share with the most late events: on a grid, then where there is the most room for more."""
    for step in range(1, GRID):
        search.at(step / GRID)
    while not search.done() and max(search.seen.values()) < search.target:
        shares = sorted(search.seen)
        top = max(range(len(shares)), key=lambda place: (search.at(shares[place]), -place))
        below, above = shares[:top][::-1], shares[top + 1 :]
        rooms = [
            (_room(search, shares[top], below, above, rising=True), below),
            (_room(search, shares[top], above, below, rising=False), above),
        ]
        room, side = max((room for room in rooms if room[1]), key=lambda room: room[0])
        if room <= WANTED * search.events:
            break
        search.at((shares[top] + side[0]) / 2)
    return max(sorted(search.seen), key=search.at)


def _room(search: Search, top: float, side: list[float], other: list[float], *, rising: bool) -> float:
    """By how much the curve may rise between its top and the next share on a side.

    Where it bends downwards it is below the line through the top and the other side, and below that through the next
    two shares; behind an edge the latter says nothing. Up to an edge it rises smoothly: there it says all.
    """
    if not side:
        return 0.0
    way, rooms = abs(side[0] - top), [float(search.events)]
    if other:
        rooms.append(way * (search.at(top) - search.at(other[0])) / abs(top - other[0]))
    if len(side) > 1:
        slope = (search.at(side[0]) - search.at(side[1])) / abs(side[0] - side[1])
        most = search.at(side[0]) + slope * way
        rooms += [max(0.0, most - search.at(top))] if most >= search.at(top) or rising else []
    return min(rooms)


def _close(search: Search, low: float, high: float) -> None:
    """Close the bracket by false position, by halves where that stalls."""
    shares = [share for share in search.seen if low <= share <= high and search.at(share) < search.target]
    low = max(shares, default=low)
    stalled = 0
    while not search.done() and search.at(low) < search.target < search.at(high) and high - low > 1e-12:
        rise = search.at(high) - search.at(low)
        way = (search.target - search.at(low)) / rise if stalled < 2 else 0.5
        middle = low + (high - low) * min(0.95, max(0.05, way))
        below = search.at(middle) < search.target
        stalled = stalled + 1 if stalled < 2 else 0
        low, high = (middle, high) if below else (low, middle)
