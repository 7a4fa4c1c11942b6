"""Streams and settings for the slow twin of time travel, and what must hold for all of them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, NamedTuple

from hypothesis import strategies as st

from tests.naive_holes import (
    AggregateFunction,
    Anywhere,
    Application,
    Enumerator,
    Event,
    Given,
    Holes,
    Period,
    Result,
    Rows,
    Trigger,
    chain_app,
    in_order,
)
from tests.naive_timetravel import NaiveTimeTravel, classify, consolidated, last_given

HOUR_US = 3_600_000_000
OFFSETS = st.integers(-35, 8) | st.integers(-3, 3) | st.sampled_from([0, 40, 200])


def digest(rows: Rows) -> int:
    """A number that tells which values there were, and in which order."""
    return hash(tuple(value for _, value in rows))


def sparse(rows: Rows) -> int | None:
    """The same, but some windows have no result, so that a late event may make a result vanish."""
    return None if digest(rows) % 3 == 0 else digest(rows)


def ids(rows: Rows) -> tuple[Any, ...]:
    """All values, in order."""
    return tuple(value for _, value in rows)


class Setting(NamedTuple):
    """An application and the bound of lateness."""

    aggregates: tuple[AggregateFunction, ...]
    bound_us: int

    @property
    def app(self) -> Application:
        """The aggregates one after the other."""
        return chain_app(*self.aggregates)

    @property
    def span_us(self) -> int:
        """The sum of the sizes."""
        return sum(size_us for size_us, _, _ in self.aggregates)

    def build(self, holes: Holes, trigger: Trigger, *, retract: bool = True, shifted: bool = True) -> NaiveTimeTravel:
        """The twin."""
        return NaiveTimeTravel(self.app, self.bound_us, holes, trigger, retract=retract, shifted=shifted)


def run(travel: NaiveTimeTravel, events: Sequence[Event]) -> list[Given]:
    """All ticks, one after the other, and the end."""
    found = []
    for tick in sorted({event.tick for event in events}):
        found += travel.tick([event for event in events if event.tick == tick], tick)
    return found + travel.finish()


def sorted_run(travel: NaiveTimeTravel, events: Sequence[Event]) -> list[Result]:
    """The application on all accepted events in order."""
    refused = {number for number, _ in travel.late}
    return travel.app(in_order(event for event in events if event.id not in refused))


def as_dict(results: Sequence[Result]) -> dict[tuple[int, int], tuple[Any, ...]]:
    """Results by key and start."""
    return {(result.key, result.start_us): result.values for result in results}


def stream(*rows: tuple[int, int], key: int = 0) -> list[Event]:
    """Events of one key from (tick, ts); the number of an event is its place in the order of time."""
    places = {ts_us: place for place, ts_us in enumerate(sorted(ts_us for _, ts_us in rows))}
    return [Event(ts_us, key, tick, 1000 * key + place, places[ts_us]) for place, (tick, ts_us) in enumerate(rows)]


@st.composite
def aggregates_of(draw: st.DrawFn) -> AggregateFunction:
    size_us = draw(st.integers(1, 9))
    return size_us, draw(st.integers(1, size_us)), draw(st.sampled_from([digest, sparse]))


@st.composite
def settings_of(draw: st.DrawFn) -> Setting:
    aggregates = tuple(draw(st.lists(aggregates_of(), min_size=1, max_size=3)))
    return Setting(aggregates, sum(size_us for size_us, _, _ in aggregates) + draw(st.integers(0, 25)))


@st.composite
def any_events(draw: st.DrawFn) -> list[Event]:
    """Events around the mark, now and then far beyond it, with any numbers."""
    drawn = draw(st.lists(st.tuples(st.integers(0, 2), OFFSETS, st.integers(0, 1), st.integers(0, 9)), max_size=30))
    events: list[Event] = []
    tick, mark_us = 0, draw(st.integers(-30, 30))
    for number, (step, offset_us, key, n) in enumerate(drawn):
        if step and events:
            tick, mark_us = tick + 1, max(event.ts_us for event in events)
        events.append(Event(mark_us + offset_us, key, tick, number, n))
    return events


def dense_events(seed: int, bound_us: int) -> list[Event]:
    """Most events follow each other closely; one in three is late, about as much as is allowed at most."""
    rng = random.Random(seed)
    events: list[Event] = []
    for number in range(40):
        mark_us = max((event.ts_us for event in events), default=0)
        late = number > 3 and rng.random() < 0.35
        step_us = -rng.randint(0, bound_us) if late else rng.choice([0, 1, 1, 2, 3, rng.randint(0, 12)])
        events.append(Event(mark_us + step_us, int(rng.random() < 0.2), number, number))
    return events


def numbered(events: Sequence[Event]) -> list[Event]:
    """The events numbered per key in the order of time."""
    found = []
    for key in {event.key for event in events}:
        mine = in_order(event for event in events if event.key == key)
        found += [event._replace(n=n) for n, event in enumerate(mine)]
    return found


@st.composite
def grids(draw: st.DrawFn, bound_us: int, every_us: int) -> list[Event]:
    """Each key has an event every so often; some never come, some late but within the bound."""
    events: list[Event] = []
    for key in range(draw(st.integers(1, 2))):
        first_us = draw(st.integers(0, 3 * every_us))
        delays = draw(st.lists(st.sampled_from([None, 0, 0, 0]) | st.integers(0, bound_us), min_size=1, max_size=16))
        for place, delay_us in enumerate(delays):
            ts_us = first_us + place * every_us
            if delay_us is not None:
                events.append(Event(ts_us, key, (ts_us + delay_us) // every_us, 100 * key + place))
    return events


def counted(before: Event, after: Event) -> int:
    """Some function of two events."""
    return (before.id + 2 * after.id) % 4 - 1


def odd_only(event: Event) -> int | None:
    """Replay odd events a little later, the others never."""
    return event.ts_us + 7 if event.id % 2 else None


TRIGGERS = st.sampled_from(["eager", "lazy", odd_only]) | st.integers(-10, 40).map(
    lambda after_us: lambda event: event.ts_us + after_us
)
KINDS = st.sampled_from([Anywhere(), Anywhere(counted), Anywhere(lambda before, after: 0), Enumerator()]) | st.integers(
    1, 6
).map(Period)


def check(setting: Setting, holes: Holes, trigger: Trigger, events: Sequence[Event]) -> NaiveTimeTravel:
    """All that must hold for any stream; the twin, for more."""
    travel = setting.build(holes, trigger)
    changes = run(travel, events)
    expected = sorted_run(travel, events)
    assert consolidated(changes) == as_dict(expected)
    check_final(changes)
    assert run(setting.build(holes, trigger, shifted=False), events) == changes
    plain = setting.build(holes, trigger, retract=False)
    all_given = run(plain, events)
    assert plain.late == travel.late
    assert as_dict(expected).items() <= last_given(all_given).items()
    classes = classify(all_given, expected)
    assert (classes.exact, classes.omitted) == (len(expected), 0)
    assert sum(classes) == len(all_given)
    return travel


def check_final(changes: Sequence[Given]) -> None:
    """Nothing follows what is final, but for the new result that a void one makes room for."""
    last: dict[tuple[int, int], Given] = {}
    for change in changes:
        before = last.get((change.key, change.start_us))
        replaced = before is not None and before.final and before.change == -1 and change.final and change.change == 1
        assert before is None or not before.final or replaced
        last[change.key, change.start_us] = change
