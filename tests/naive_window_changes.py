"""The slow and obvious twin of windows that are given at once: everything is kept, and aggregated anew.

1. After each tick T = mark - bound - 1 us. A window is final when T has passed its last time: its end - 1 us, or, since
   a row exactly `gap` after a session still joins it, the last row + gap.
2. A row counts in those of its windows that are not final when it comes; it is too late when all are. In a tick rows
   come before retractions; a retraction takes the last equal row out of all windows that are not final then.
3. What stands after a micro-batch is the aggregate of the rows that count, per window and key; changes are the
   difference with what stood, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.naive_optimistic import Bits, Event, bits, equals

NEVER, FOREVER = float("-inf"), float("inf")
Place = tuple[int, int, Any]  # start and end of a window, and the key
Result = tuple[Place, Any]
Aggregate = Callable[[Sequence[Event]], Any]


@dataclass
class Counted:
    """A row that came in time, and the windows in which it counts."""

    event: Event
    windows: set[tuple[int, int]] = field(default_factory=set)
    void: bool = False


class FixedWindows:
    """Windows of a size, one every `advance`, fed with micro-batches."""

    def __init__(self, size: int, advance: int, offset: int, bound_us: int, aggregate: Aggregate) -> None:
        self._size, self._advance, self._offset = size, advance, offset
        self._bound_us, self._aggregate = bound_us, aggregate
        self._rows: list[Counted] = []
        self._waiting: list[Event] = []
        self._mark_us = self.punctuation_us = NEVER
        self._closed_tick: int | None = None
        self.late: list[tuple[Event, str]] = []
        self.missed = self.recomputed = 0
        self.standing: dict[Place, Any] = {}
        self._released: set[Place] = set()

    def push(self, batch: Sequence[Event]) -> tuple[list[Result], list[Result]]:
        """Take a micro-batch, which closes its last tick: what is void, and what is new."""
        before = self._members()
        for tick, events in ticks(batch, self._closed_tick):
            self._take(events)
            self._closed_tick = tick
        stood, self.standing = self.standing, self._stands()
        self.recomputed += sum(repr(rows) != repr(self._members().get(place)) for place, rows in before.items())
        return net(stood, self.standing)

    def barrier(self) -> list[Result]:
        """The windows that have become final since the last call."""
        final = [place for place in self.standing if self._last_of(place) <= self.punctuation_us]
        fresh = [(place, self.standing[place]) for place in final if place not in self._released]
        self._released.update(final)
        return in_order(fresh)

    def finish(self) -> list[Result]:
        """Nothing more comes: what waits is unmatched, and all that stands is final."""
        self._punctuate(FOREVER)
        return self.barrier()

    def _take(self, events: Sequence[Event]) -> None:
        """Events of one tick: first what came, then retractions, then time moves on."""
        in_time = [event for event in events if self._open_windows(event)]
        self.late += [(event, "too_late") for event in events if not self._open_windows(event)]
        self.missed += sum(len(self._windows(event)) - len(self._open_windows(event)) for event in in_time)
        self._rows += [Counted(event, self._open_windows(event)) for event in in_time if event.change > 0]
        self._waiting += [event for event in in_time if event.change < 0]
        for retraction in list(self._waiting):
            row = self._equal_to(retraction)
            if row is not None:
                self._waiting.remove(retraction)
                row.windows -= self._open_windows(row.event)
                row.void = True
        self._mark_us = max(self._mark_us, *(event.ts_us for event in events))
        self._punctuate(self._mark_us - self._bound_us - 1)

    def _equal_to(self, retraction: Event) -> Counted | None:
        """The last row that a retraction takes back."""
        alike = [row for row in self._rows if not row.void and equals(row.event) == equals(retraction)]
        return max(alike, key=lambda row: row.event.tick, default=None)

    def _punctuate(self, time_us: float) -> None:
        self.punctuation_us = time_us
        self.late += [(event, "unmatched") for event in self._waiting if not self._open_windows(event)]
        self._waiting = [event for event in self._waiting if self._open_windows(event)]

    def _windows(self, event: Event) -> set[tuple[int, int]]:
        """All windows that an event lies in."""
        last = (event.ts_us - self._offset) // self._advance * self._advance + self._offset
        starts = range(last, event.ts_us - self._size, -self._advance)
        return {(start, start + self._size) for start in starts}

    def _open_windows(self, event: Event) -> set[tuple[int, int]]:
        return {window for window in self._windows(event) if window[1] - 1 > self.punctuation_us}

    def _last_of(self, place: Place) -> int:
        return place[1] - 1

    def _stands(self) -> dict[Place, Any]:
        return {place: self._aggregate(events) for place, events in self._members().items()}

    def _members(self) -> dict[Place, list[Event]]:
        """The rows of each window, in order."""
        members: dict[Place, list[Event]] = {}
        for row in sorted(self._rows, key=lambda row: in_time(row.event)):
            for window in row.windows:
                members.setdefault((*window, row.event.key), []).append(row.event)
        return members


class Sessions:
    """Sessions, which last until nothing comes for a gap, fed with micro-batches of events that are not taken back."""

    def __init__(self, gap: int, bound_us: int, aggregate: Aggregate) -> None:
        self._gap, self._bound_us, self._aggregate = gap, bound_us, aggregate
        self._closed: list[list[Event]] = []
        self._open: list[list[Event]] = []
        self._mark_us = self.punctuation_us = NEVER
        self._closed_tick: int | None = None
        self.late: list[tuple[Event, str]] = []
        self.standing: dict[Place, Any] = {}
        self._released = 0

    def push(self, batch: Sequence[Event]) -> tuple[list[Result], list[Result]]:
        """Take a micro-batch, which closes its last tick: what is void, and what is new."""
        for tick, events in ticks(batch, self._closed_tick):
            self._take(events)
            self._closed_tick = tick
        stood, self.standing = self.standing, dict(self._result(each) for each in [*self._closed, *self._open])
        return net(stood, self.standing)

    def barrier(self) -> list[Result]:
        """The sessions that have become final since the last call."""
        fresh = self._closed[self._released :]
        self._released = len(self._closed)
        return in_order(self._result(each) for each in fresh)

    def finish(self) -> list[Result]:
        """Nothing more comes: all that stands is final."""
        self._close(FOREVER)
        return self.barrier()

    def _take(self, events: Sequence[Event]) -> None:
        """Events of one tick join what is open, together; those that are left and would be final alone are too late."""
        alone = [event for event in events if event.ts_us + self._gap > self.punctuation_us]
        waiting = [event for event in events if event.ts_us + self._gap <= self.punctuation_us]
        for event in alone:
            self._join(event)
        while near := [event for event in waiting if any(self._near(event, each) for each in self._open)]:
            waiting.remove(near[0])
            self._join(near[0])
        self.late += [(event, "too_late") for event in waiting]
        self._mark_us = max(self._mark_us, *(event.ts_us for event in events))
        self._close(self._mark_us - self._bound_us - 1)

    def _join(self, event: Event) -> None:
        near = [each for each in self._open if self._near(event, each)]
        apart = [each for each in self._open if not self._near(event, each)]
        self._open = [*apart, [event, *(each for session in near for each in session)]]

    def _near(self, event: Event, session: Sequence[Event]) -> bool:
        times = [each.ts_us for each in session]
        return event.key == session[0].key and min(times) - self._gap <= event.ts_us <= max(times) + self._gap

    def _close(self, time_us: float) -> None:
        self.punctuation_us = time_us
        final = [each for each in self._open if max(row.ts_us for row in each) + self._gap <= time_us]
        self._open = [each for each in self._open if each not in final]
        self._closed += final

    def _result(self, session: Sequence[Event]) -> Result:
        times = [event.ts_us for event in session]
        place = (min(times), max(times) + self._gap, session[0].key)
        return place, self._aggregate(sorted(session, key=in_time))


def ticks(batch: Iterable[Event], closed: int | None) -> list[tuple[int, list[Event]]]:
    """The events of a micro-batch tick by tick; what came in a closed tick joins the first open one."""
    opened = [event if closed is None else event._replace(tick=max(event.tick, closed + 1)) for event in batch]
    found = sorted({event.tick for event in opened})
    return [(tick, [event for event in opened if event.tick == tick]) for tick in found]


def in_time(event: Event) -> tuple[Any, ...]:
    """What orders events of one key."""
    return event.ts_us, event.source, event.tick, event.order


def in_order(results: Iterable[Result]) -> list[Result]:
    """Results as windows end; then by key."""
    return sorted(results, key=lambda result: (result[0][1], result[0][0], repr(result[0][2])))


def net(stood: dict[Place, Any], stands: dict[Place, Any]) -> tuple[list[Result], list[Result]]:
    """What stood and is void, and what stands instead or anew."""
    differs = {place for place in {*stood, *stands} if _bits(stood, place) != _bits(stands, place)}
    void, new = ([(place, table[place]) for place in differs if place in table] for table in (stood, stands))
    return in_order(void), in_order(new)


def _bits(table: dict[Place, Any], place: Place) -> Bits | None:
    return bits(table[place]) if place in table else None
