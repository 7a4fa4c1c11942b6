"""Slow and obvious twins of the kernels, written from the definitions."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

from latecomer.events import FOREVER_US, NEVER_US


class Event(NamedTuple):
    """One event, fields in the order of the total order but for the id."""

    ts_us: int
    source: int
    tick: int
    id: int


def total_order(events: Sequence[Event]) -> list[int]:
    """Ids by (ts, source, tick, id)."""
    return [event.id for event in sorted(events)]


def mark_before(events: Sequence[Event], tick: int) -> int:
    """Largest ts over all ticks before this one."""
    return max((event.ts_us for event in events if event.tick < tick), default=NEVER_US)


def floor_before(events: Sequence[Event], tick: int, idle_ticks: int | None) -> int:
    """The mark at the end of the last silence longer than `idle_ticks` that lies before this tick."""
    if idle_ticks is None:
        return NEVER_US
    ticks = sorted({event.tick for event in events if event.tick < tick} | {tick})
    floor = NEVER_US
    for earlier, later in itertools.pairwise(ticks):
        if later - earlier > idle_ticks:
            floor = max(floor, mark_before(events, earlier + 1))
    return floor


def rises(events: Sequence[Event]) -> dict[int, list[tuple[int, int]]]:
    """Per source the (tick, ts) at which its latest time rises, tick by tick."""
    found: dict[int, list[tuple[int, int]]] = {}
    for source in {event.source for event in events}:
        latest = NEVER_US
        for tick in sorted({event.tick for event in events if event.source == source}):
            most = max(event.ts_us for event in events if (event.source, event.tick) == (source, tick))
            if most > latest:
                latest = most
                found.setdefault(source, []).append((tick, most))
    return found


def hold(events: Sequence[Event], latency_us: int, idle_ticks: int | None = None) -> tuple[list[int], list[int]]:
    """Ids in the order in which a hold-until-punctuation gives them, and the ids that are too late."""
    given: list[int] = []
    late: list[int] = []
    held: list[Event] = []
    for tick in [*sorted({event.tick for event in events}), FOREVER_US]:
        mark = mark_before(events, tick)
        punctuation = NEVER_US if mark == NEVER_US else mark - latency_us
        punctuation = max(punctuation, floor_before(events, tick, idle_ticks))
        if tick == FOREVER_US:
            punctuation = FOREVER_US
        given += total_order([event for event in held if event.ts_us <= punctuation])
        held = [event for event in held if event.ts_us > punctuation]
        arriving = [event for event in events if event.tick == tick]
        late += [event.id for event in arriving if event.ts_us <= punctuation]
        held += [event for event in arriving if event.ts_us > punctuation]
    return given, sorted(late)
