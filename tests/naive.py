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


def merged_mark_before(events: Sequence[Event], ends: Sequence[tuple[int, int]], tick: int, idle: int | None) -> int:
    """Tick by tick the least of the latest times of the sources that speak, the largest of all where none does."""
    mark = NEVER_US
    for now in range(min((event.tick for event in events), default=tick), tick):
        known = [event for event in events if event.tick <= now]
        speaking = []
        for source in {event.source for event in known}:
            own = [event for event in known if event.source == source]
            idles = idle is not None and now - max(event.tick for event in own) >= idle
            if not idles and not has_ended(own, [at for at, ending in ends if ending == source and at <= now]):
                speaking.append(max(event.ts_us for event in own))
        mark = max(mark, min(speaking) if speaking else max(event.ts_us for event in known))
    return mark


def has_ended(own: Sequence[Event], ends: Sequence[int]) -> bool:
    """Whether a source has ended and given no later time since."""
    before = [event.ts_us for event in own if event.tick <= max(ends, default=FOREVER_US)]
    return bool(ends) and max((event.ts_us for event in own), default=NEVER_US) == max(before, default=NEVER_US)


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


def hold(
    events: Sequence[Event],
    latency_us: int,
    idle_ticks: int | None = None,
    *,
    merged: bool = False,
    ends: Sequence[tuple[int, int]] = (),
) -> tuple[list[int], list[int]]:
    """Ids in the order in which a hold-until-punctuation gives them, and the ids that are too late."""
    given: list[int] = []
    late: list[int] = []
    held: list[Event] = []
    all_ended = {event.source for event in events} <= {source for _, source in ends}
    for tick in [*sorted({event.tick for event in events}), FOREVER_US]:
        over = tick == FOREVER_US or (all_ended and all(at < tick for at, _ in ends))
        if over:
            punctuation = FOREVER_US
        else:
            mark = merged_mark_before(events, ends, tick, idle_ticks) if merged else mark_before(events, tick)
            punctuation = NEVER_US if mark == NEVER_US else mark - latency_us
            punctuation = max(punctuation, floor_before(events, tick, idle_ticks))
        given += total_order([event for event in held if event.ts_us <= punctuation])
        held = [event for event in held if event.ts_us > punctuation]
        arriving = [event for event in events if event.tick == tick]
        late += [event.id for event in arriving if event.ts_us <= punctuation]
        held += [event for event in arriving if event.ts_us > punctuation]
    return given, sorted(late)


def inversions(times: Sequence[int]) -> list[tuple[int, int]]:
    """All pairs of positions i < j with times[i] > times[j]."""
    return [(i, j) for i, j in itertools.combinations(range(len(times)), 2) if times[i] > times[j]]


def distance(times: Sequence[int]) -> int:
    """The largest distance between the positions of an inversion."""
    return max((j - i for i, j in inversions(times)), default=0)


def runs(times: Sequence[int]) -> int:
    """How many maximal non-descending stretches there are."""
    return len(times) and 1 + sum(later < earlier for earlier, later in itertools.pairwise(times))


def patience(times: Sequence[int]) -> list[list[int]]:
    """The sorted runs of Patience sort's partition phase (Impatience, III-B), by linear search."""
    found: list[list[int]] = []
    for time in times:
        run = next((run for run in found if run[-1] <= time), None)
        if run is None:
            found.append([time])
        else:
            run.append(time)
    return found


class Impatience:
    """Impatience sort from the paper's text (III-B, III-D), with lists; an event is (time, place of arrival)."""

    def __init__(self) -> None:
        self.runs: list[list[tuple[int, int]]] = []
        self.floor = NEVER_US

    def push(self, event: tuple[int, int]) -> bool:
        """Append to the first run whose last event is not after it, or open a new one; False if it is too late."""
        if event[0] <= self.floor:
            return False
        run = next((run for run in self.runs if run[-1] <= event), None)
        if run is None:
            self.runs.append([event])
        else:
            run.append(event)
        return True

    def punctuate(self, floor: int) -> list[tuple[int, int]]:
        """Cut the heads, merge them, remove the runs that are empty."""
        heads = [[event for event in run if event[0] <= floor] for run in self.runs]
        self.runs = [rest for run in self.runs if (rest := [event for event in run if event[0] > floor])]
        self.floor = max(self.floor, floor)
        return sorted(itertools.chain(*heads))


def lateness(times: Sequence[int]) -> list[int]:
    """How far each event is behind the largest time before it."""
    return [max(0, max(times[:place], default=time) - time) for place, time in enumerate(times)]


def arrivals(times: Sequence[int], delays: Sequence[int]) -> list[int]:
    """The poster's steps 1 and 2 as we read them: delay in-order records, let late ones come at the maximum."""
    found, highest = [], NEVER_US
    for time, delay in zip(times, delays, strict=True):
        highest = max(highest, time)
        found.append(time + delay if time >= highest else highest)
    return found


class Keyed(NamedTuple):
    """An event with a key and a value."""

    ts_us: int
    tick: int
    key: int
    value: int


def windows_of(ts_us: int, size_us: int, advance_us: int) -> list[int]:
    """The starts of all windows [k * advance, k * advance + size) that a time lies in."""
    last = ts_us // advance_us * advance_us
    return [start for start in range(last, ts_us - size_us, -advance_us) if start <= ts_us < start + size_us]


def tier_of(events: Sequence[Keyed], event: Keyed, latencies_us: Sequence[int]) -> int:
    """The first tier whose latency an event keeps; one past the last if it keeps none."""
    mark_us = max((other.ts_us for other in events if other.tick < event.tick), default=NEVER_US)
    return sum(event.ts_us <= mark_us - latency_us for latency_us in latencies_us if mark_us > NEVER_US)


def tiers(
    events: Sequence[Keyed], latencies_us: Sequence[int], size_us: int, advance_us: int
) -> list[dict[tuple[int, int], list[int]]]:
    """For each tier the values of each window and key, of all events that the tiers up to it have."""
    found: list[dict[tuple[int, int], list[int]]] = [{} for _ in latencies_us]
    for event in events:
        for tier in range(tier_of(events, event, latencies_us), len(latencies_us)):
            for start in windows_of(event.ts_us, size_us, advance_us):
                found[tier].setdefault((start, event.key), []).append(event.value)
    return found
