"""What the slow twin of time travel is made of: events, results, windows one by one, and holes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from latecomer.events import NEVER_US
from tests.naive import windows_of

UNKNOWN = -1


class Event(NamedTuple):
    """One event; `n` is its number where events are numbered, `value` what is aggregated instead of its id."""

    ts_us: int
    key: int
    tick: int
    id: int
    n: int = 0
    value: int | None = None


class Result(NamedTuple):
    """What an application gives for a key and the start of a window."""

    key: int
    start_us: int
    values: tuple[Any, ...]


class Given(NamedTuple):
    """A result that is given (change +1) or void (-1)."""

    key: int
    start_us: int
    values: tuple[Any, ...]
    change: int
    final: bool
    replayed: bool


Rows = list[tuple[int, Any]]
AggregateFunction = tuple[int, int, Callable[[Rows], Any]]
Trigger = str | Callable[[Event], int | None]


def in_order(events: Iterable[Event]) -> list[Event]:
    """Events by (ts, id)."""
    return sorted(events, key=lambda event: (event.ts_us, event.id))


def starts_in(low_us: int, high_us: int, advance_us: int) -> list[int]:
    """The starts of windows in (low, high]."""
    return list(range((low_us // advance_us + 1) * advance_us, high_us + 1, advance_us))


def windowed(rows: Rows, aggregate: AggregateFunction) -> Rows:
    """One aggregate: (start, value) of each window that has a row; a value of None is no result."""
    size_us, advance_us, function = aggregate
    windows: dict[int, Rows] = {}
    for row in rows:
        for start_us in windows_of(row[0], size_us, advance_us):
            windows.setdefault(start_us, []).append(row)
    found = [(start_us, function(windows[start_us])) for start_us in sorted(windows)]
    return [(start_us, value) for start_us, value in found if value is not None]


@dataclass(frozen=True)
class Application:
    """Aggregates (size, advance, function of the (ts, value) of a window), each fed with the results of the last.

    takes: which events are looked at.
    """

    aggregates: tuple[AggregateFunction, ...]
    takes: Callable[[Event], bool] = lambda event: True

    @property
    def sizes_us(self) -> list[int]:
        """The sizes of the windows."""
        return [size_us for size_us, _, _ in self.aggregates]

    @property
    def advances_us(self) -> list[int]:
        """How far apart windows begin."""
        return [advance_us for _, advance_us, _ in self.aggregates]

    def __call__(self, events: Sequence[Event]) -> list[Result]:
        results = []
        for key in sorted({event.key for event in events}):
            rows = self.rows([event for event in events if event.key == key])
            for aggregate in self.aggregates:
                rows = windowed(rows, aggregate)
            results += [Result(key, start_us, (value,)) for start_us, value in rows]
        return results

    def rows(self, events: Sequence[Event]) -> Rows:
        """What the first windows see of events."""
        taken = [event for event in events if self.takes(event)]
        return [(event.ts_us, event.id if event.value is None else event.value) for event in taken]


def chain_app(*aggregates: AggregateFunction) -> Application:
    """Aggregates one after the other."""
    return Application(aggregates)


class Live:
    """The application at work: windows of the first aggregate are open until the input has passed them.

    An event counts in those of its windows that are open when it comes.
    """

    def __init__(self, app: Application) -> None:
        self._app = app
        self._open: dict[tuple[int, int], list[Event]] = {}
        self._closed: dict[int, Rows] = {}
        self._read_us = NEVER_US

    def take(self, event: Event) -> list[int]:
        """Take an event in; the starts of its first windows that are closed."""
        size_us, advance_us, _ = self._app.aggregates[0]
        missed = []
        for start_us in windows_of(event.ts_us, size_us, advance_us):
            if start_us + size_us - 1 <= self._read_us:
                missed.append(start_us)
            elif self._app.takes(event):
                self._open.setdefault((event.key, start_us), []).append(event)
        return missed

    def results(self, read_us: int) -> list[Result]:
        """The input has come so far: all results that need no more of it, but for some that were given before."""
        self._read_us = read_us
        size_us, _, function = self._app.aggregates[0]
        for key, start_us in sorted(place for place in self._open if place[1] + size_us - 1 <= read_us):
            value = function(self._app.rows(in_order(self._open.pop((key, start_us)))))
            if value is not None:
                self._closed.setdefault(key, []).append((start_us, value))
        found = []
        for key in sorted(self._closed):
            rows = sorted(self._closed[key], key=lambda row: row[0])
            for aggregate in self._app.aggregates[1:]:
                rows = windowed(rows, aggregate)
            found += [Result(key, start_us, (value,)) for start_us, value in rows]
        return found

    def forget(self, passed_us: int) -> None:
        """Results that start up to a time will not be asked for any more: others need none of these rows."""
        self._closed = {key: [row for row in rows if row[0] > passed_us] for key, rows in self._closed.items()}


@dataclass
class Hole:
    """Between two on-time events of a key that follow each other, or before its first one."""

    before: Event | None
    after: Event
    missing: int
    filled: int

    @property
    def from_us(self) -> int:
        """Where it begins."""
        return NEVER_US if self.before is None else self.before.ts_us

    @property
    def to_us(self) -> int:
        """Where it ends."""
        return self.after.ts_us

    @property
    def full(self) -> bool:
        """Whether all that is missing has come."""
        return self.missing != UNKNOWN and self.filled >= self.missing


class Holes(ABC):
    """Where events may be missing. By default both ends of a hole belong to it, and the same event may come twice."""

    @property
    def pace_us(self) -> int:
        """How often a key has an event; 0 if that is not known."""
        return 0

    @abstractmethod
    def missing(self, before: Event, after: Event) -> int:
        """How many events are missing between two that follow each other; -1: nobody knows."""

    def beyond(self, event: Event, latest: Event) -> bool:
        """Whether a late event comes after the key's latest on-time event."""
        return event.ts_us >= latest.ts_us

    def inside(self, event: Event, hole: Hole) -> bool:
        """Whether a late event may be one of those missing in a hole."""
        return hole.from_us <= event.ts_us <= hole.to_us

    def touches(self, hole: Hole, start_us: int, end_us: int) -> bool:
        """Whether a hole has a time in [start, end)."""
        return hole.from_us < end_us and start_us <= hole.to_us

    def same(self, event: Event, other: Event) -> bool:
        """Whether a late event has come before."""
        return False


@dataclass(frozen=True)
class Period(Holes):
    """Events that come every so often, each up to a tolerance before or after its turn."""

    every_us: int
    tolerance_us: int = 0

    @property
    def pace_us(self) -> int:
        """The period."""
        return self.every_us

    def missing(self, before: Event, after: Event) -> int:
        """The least number of whole periods that the gap may be, less one."""
        periods = 1
        while periods * self.every_us + 2 * self.tolerance_us < after.ts_us - before.ts_us:
            periods += 1
        return periods - 1

    def beyond(self, event: Event, latest: Event) -> bool:
        return event.ts_us > latest.ts_us

    def inside(self, event: Event, hole: Hole) -> bool:
        return hole.from_us < event.ts_us < hole.to_us

    def touches(self, hole: Hole, start_us: int, end_us: int) -> bool:
        return max(hole.from_us + 1, start_us) < min(hole.to_us, end_us)

    def same(self, event: Event, other: Event) -> bool:
        return event.ts_us == other.ts_us


@dataclass(frozen=True)
class Enumerator(Holes):
    """Events that are numbered; numbers that run against time are refused, as their surroundings are not held."""

    def missing(self, before: Event, after: Event) -> int:
        return max(UNKNOWN, after.n - before.n - 1)

    def beyond(self, event: Event, latest: Event) -> bool:
        return (event.ts_us, event.n) > (latest.ts_us, latest.n)

    def inside(self, event: Event, hole: Hole) -> bool:
        if not super().inside(event, hole):
            return False
        if hole.before is None:
            return event.n < hole.after.n
        return hole.before.n < event.n < hole.after.n or hole.after.n <= hole.before.n

    def same(self, event: Event, other: Event) -> bool:
        return (event.ts_us, event.n) == (other.ts_us, other.n)


@dataclass(frozen=True)
class Anywhere(Holes):
    """A user's function says how many are missing; without one, any number between any two."""

    function: Callable[[Event, Event], int] = lambda before, after: UNKNOWN

    def missing(self, before: Event, after: Event) -> int:
        return self.function(before, after)
