"""The slow twin of time travel against brute force: the application on the sorted stream, and the definitions."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from latecomer.events import NEVER_US
from tests.naive_timetravel import (
    AggregateFunction,
    Anywhere,
    Application,
    Classes,
    Enumerator,
    Event,
    Given,
    Hole,
    Holes,
    NaiveTimeTravel,
    Period,
    Replica,
    Result,
    Rows,
    Trigger,
    chain_app,
    classify,
    consolidated,
    in_order,
    last_given,
)

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
        sizes_us = [size_us for size_us, _, _ in self.aggregates]
        advances_us = [advance_us for _, advance_us, _ in self.aggregates]
        return NaiveTimeTravel(
            self.app, sizes_us, advances_us, self.bound_us, holes, trigger, retract=retract, shifted=shifted
        )


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


@given(setting=settings_of(), holes=KINDS, trigger=TRIGGERS, events=any_events())
@settings(max_examples=250, deadline=None)
def test_any_stream_ends_as_the_sorted_one(
    setting: Setting, holes: Holes, trigger: Trigger, events: list[Event]
) -> None:
    check(setting, holes, trigger, events)


@given(setting=settings_of(), holes=KINDS, trigger=TRIGGERS, seed=st.integers(0, 10**6))
@settings(max_examples=160, deadline=None)
def test_a_dense_stream_ends_as_the_sorted_one(setting: Setting, holes: Holes, trigger: Trigger, seed: int) -> None:
    check(setting, holes, trigger, numbered(dense_events(seed, setting.bound_us)))


@given(setting=settings_of(), trigger=TRIGGERS, every_us=st.integers(1, 8), data=st.data())
@settings(max_examples=100, deadline=None)
def test_a_regular_grid_within_the_bound_is_repaired(
    setting: Setting, trigger: Trigger, every_us: int, data: st.DataObject
) -> None:
    travel = check(setting, Period(every_us), trigger, data.draw(grids(setting.bound_us, every_us)))
    assert travel.late == []


@given(setting=settings_of(), trigger=TRIGGERS, events=any_events().map(numbered))
@settings(max_examples=100, deadline=None)
def test_numbered_events_are_all_accepted_within_the_bound(
    setting: Setting, trigger: Trigger, events: list[Event]
) -> None:
    travel = check(setting, Enumerator(), trigger, events)
    assert {reason for _, reason in travel.late} <= {"too_late"}


@given(setting=settings_of(), trigger=TRIGGERS, events=any_events())
@settings(max_examples=50, deadline=None)
def test_late_is_just_what_is_beyond_the_bound_where_holes_are_anywhere(
    setting: Setting, trigger: Trigger, events: list[Event]
) -> None:
    travel = setting.build(Anywhere(), trigger)
    run(travel, events)
    late = [event for event in events if event.ts_us < mark_before(events, event) - setting.bound_us]
    assert sorted(travel.late) == sorted((event.id, "too_late") for event in late)


@given(setting=settings_of(), holes=KINDS, events=any_events(), seed=st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_held_are_the_events_that_the_definitions_name(
    setting: Setting, holes: Holes, events: list[Event], seed: int
) -> None:
    check_held(setting, holes, events)
    check_held(setting, holes, dense_events(seed, setting.bound_us))


def check_held(setting: Setting, holes: Holes, events: Sequence[Event]) -> None:
    """What is held after each tick, against the definitions."""
    travel = setting.build(holes, "lazy")
    for tick in sorted({event.tick for event in events}):
        travel.tick([event for event in events if event.tick == tick], tick)
        refused = {number for number, _ in travel.late}
        so_far = [event for event in events if event.tick <= tick and event.id not in refused]
        assert travel.held == len(held_by_definition(setting, holes, so_far))


def mark_before(events: Sequence[Event], event: Event) -> int:
    """The largest time of the ticks before an event's."""
    return max((other.ts_us for other in events if other.tick < event.tick), default=NEVER_US)


def held_by_definition(setting: Setting, holes: Holes, accepted: Sequence[Event]) -> set[Event]:
    """All accepted late events, and those on time near a hole or near the key's latest one, but for the old ones."""
    span_us, kept_us = setting.span_us, setting.bound_us + 2 * setting.span_us
    late = {event for event in accepted if event.ts_us < mark_before(accepted, event)}
    held = set(late)
    for key in {event.key for event in accepted}:
        mine = sorted((event for event in accepted if event.key == key and event not in late), key=arrival)
        found = holes_by_definition(holes, mine, [event for event in late if event.key == key], accepted, kept_us)
        for event in mine:
            near = any(
                (hole.before and hole.from_us - span_us < event.ts_us <= hole.from_us)
                or hole.to_us <= event.ts_us < hole.to_us + span_us
                for hole in found
            )
            if near or event.ts_us > mine[-1].ts_us - span_us:
                held.add(event)
    mark_us = max((event.ts_us for event in accepted), default=NEVER_US)
    return {event for event in held if event.ts_us >= mark_us - kept_us}


def arrival(event: Event) -> tuple[int, int, int]:
    """The order in which on-time events are taken."""
    return event.tick, event.ts_us, event.id


def holes_by_definition(
    holes: Holes, mine: Sequence[Event], late: Sequence[Event], accepted: Sequence[Event], kept_us: int
) -> list[Hole]:
    """All holes that a key ever had."""
    found = [Hole(None, event, -1, 0) for event in mine[:1]]
    for before, after in pairwise(mine):
        between = [event for event in late if before.tick < event.tick <= after.tick and holes.beyond(event, before)]
        if before.ts_us < mark_before(accepted, after) - kept_us:
            found.append(Hole(None, after, -1, 0))
        elif between or holes.missing(before, after):
            found.append(Hole(before, after, 1, 0))
    return found


@given(setting=settings_of(), times=st.lists(st.integers(-20, 20), min_size=1, max_size=12))
@settings(max_examples=100, deadline=None)
def test_an_event_affects_and_a_result_needs_what_the_lemmas_say(setting: Setting, times: list[int]) -> None:
    events = [Event(ts_us, 0, 0, number) for number, ts_us in enumerate(times)]
    late, others = events[0], in_order(events[1:])
    with_it, without = as_dict(setting.app(in_order(events))), as_dict(setting.app(others))
    changed = {start_us for _, start_us in dict(with_it.items() ^ without.items())}
    reach_us = setting.span_us - len(setting.aggregates)
    assert all(late.ts_us - setting.span_us < late.ts_us - reach_us <= start_us <= late.ts_us for start_us in changed)
    for (_, start_us), values in with_it.items():
        needed = in_order(event for event in events if start_us <= event.ts_us <= start_us + reach_us)
        assert as_dict(setting.app(needed))[0, start_us] == values


def changes_of(given: Sequence[Given]) -> list[tuple[int, Any, int]]:
    """Start, value and change only."""
    return [(row.start_us, row.values[0], row.change) for row in given]


TUMBLING = Setting(((4, 4, ids),), 10)
SLIDING = Setting(((4, 2, ids),), 20)


def test_an_eager_replay_comes_at_once_and_again_when_the_context_is_complete() -> None:
    travel = SLIDING.build(Anywhere(), "eager")
    assert changes_of(travel.tick(stream((0, 0), (0, 6)), 0)) == [(-2, (0,), 1), (0, (0,), 1)]
    at_once = travel.tick([Event(3, 0, 1, 2)], 1)
    assert changes_of(at_once) == [(0, (0,), -1), (0, (0, 2), 1), (2, (2,), 1)]
    assert changes_of(travel.tick([Event(5, 0, 2, 3)], 2)) == [(2, (2,), -1), (2, (2, 3), 1)]
    live_then_again = travel.tick([Event(9, 0, 3, 4)], 3)
    assert changes_of(live_then_again) == [(4, (1,), 1), (4, (1,), -1), (4, (3, 1), 1)]
    assert [row.replayed for row in live_then_again] == [False, True, True]
    assert travel.duplicates == 2


def test_a_lazy_replay_waits_for_the_key_and_the_context() -> None:
    travel = TUMBLING.build(Anywhere(), "lazy")
    travel.tick(stream((0, 0), (0, 5)), 0)
    assert travel.tick([Event(1, 0, 1, 2), Event(4, 0, 1, 3)], 1) == []
    assert travel.tick([Event(6, 1, 2, 4)], 2) == []
    assert changes_of(travel.tick([Event(6, 0, 3, 5)], 3)) == [(0, (0,), -1), (0, (0, 2), 1)]
    assert changes_of(travel.tick([Event(8, 0, 4, 6)], 4)) == [
        (4, (1, 5), 1),
        (4, (4,), 1),
        (4, (1, 5), -1),
        (4, (3, 1, 5), 1),
    ]


def test_what_no_trigger_fires_is_replayed_by_force_beyond_the_bound() -> None:
    travel = TUMBLING.build(Anywhere(), lambda event: None)
    travel.tick(stream((0, 0), (0, 5)), 0)
    travel.tick([Event(1, 0, 1, 2)], 1)
    assert all(not row.replayed for row in travel.tick([Event(11, 0, 2, 3)], 2))
    forced = [row for row in travel.tick([Event(12, 1, 3, 4)], 3) if row.replayed]
    assert changes_of(forced) == [(0, (0,), -1), (0, (0, 2), 1)]


def test_a_written_trigger_fires_early_and_again_when_the_context_is_complete() -> None:
    travel = SLIDING.build(Anywhere(), lambda event: event.ts_us + 2)
    travel.tick(stream((0, 0), (0, 6)), 0)
    assert travel.tick([Event(5, 0, 1, 2)], 1) == []
    assert changes_of(travel.tick([Event(7, 0, 2, 3)], 2)) == [(2, (2,), 1)]
    assert changes_of(travel.tick([Event(9, 0, 3, 4)], 3)) == [(4, (1, 3), 1), (4, (1, 3), -1), (4, (2, 1, 3), 1)]


def test_lateness_of_just_the_bound_is_accepted_and_more_is_not() -> None:
    on_time = [Event(0, 0, 0, 0, 0), Event(5, 0, 0, 1, 3), Event(15, 0, 0, 2, 4)]
    travel = TUMBLING.build(Enumerator(), "lazy")
    run(travel, [*on_time, Event(5, 0, 1, 3, 2), Event(4, 0, 1, 4, 1)])
    assert travel.late == [(4, "too_late")]


def test_a_period_refuses_a_time_that_came_and_a_hole_that_is_full() -> None:
    travel = Setting(((4, 4, ids),), 100).build(Period(4), "lazy")
    run(travel, stream((0, 0), (0, 4), (0, 16), (1, 8), (2, 2), (3, 8), (4, 4), (5, 12), (6, 13)))
    assert travel.late == [(4, "no_hole"), (5, "no_hole"), (6, "no_hole"), (8, "no_hole")]


def test_an_enumerator_refuses_numbers_that_run_against_time() -> None:
    events = [Event(0, 0, 0, 0, 5), Event(2, 0, 0, 1, 6), Event(4, 0, 0, 2, 7)]
    travel = Setting(((2, 2, ids),), 20).build(Enumerator(), "lazy")
    run(travel, [*events, Event(3, 0, 1, 3, 9), Event(3, 0, 1, 4, 1)])
    assert travel.late == [(3, "no_hole"), (4, "no_hole")]


def test_a_function_may_count_what_is_missing_at_both_ends_of_a_hole() -> None:
    travel = TUMBLING.build(Anywhere(lambda before, after: 1), "lazy")
    run(travel, stream((0, 0), (0, 4), (0, 8), (1, 4), (2, 4), (3, 4), (4, 8), (5, 8)))
    assert travel.late == [(5, "no_hole")]


def test_results_are_final_once_the_key_has_passed_them_without_a_hole() -> None:
    travel = Setting(((4, 4, ids),), 100).build(Period(2), "lazy")
    given = run(travel, stream((0, 0), (1, 2), (2, 4), (3, 6), (4, 8), (5, 12), (6, 14), (7, 16), (8, 10), (9, 18)))
    assert [(row.start_us, row.change, row.final, row.replayed) for row in given] == [
        (0, 1, True, False),
        (4, 1, True, False),
        (8, 1, False, False),
        (12, 1, True, False),
        (8, -1, True, True),
        (8, 1, True, True),
        (16, 1, False, False),
    ]


def test_a_live_result_that_lacks_a_late_event_is_not_final_however_far_the_mark_jumps() -> None:
    travel = TUMBLING.build(Anywhere(), "lazy")
    given = [row for row in run(travel, stream((0, 0), (0, 6), (1, 5), (2, 100))) if row.start_us == 4]
    assert changes_of(given) == [(4, (1,), 1), (4, (1,), -1), (4, (2, 1), 1)]
    assert [row.final for row in given] == [False, True, True]


@pytest.mark.parametrize("trigger", ["eager", "lazy"])
def test_a_key_whose_first_event_is_late_is_repaired(trigger: str) -> None:
    events = [Event(50, 1, 0, 0), Event(45, 0, 1, 1), Event(47, 0, 2, 2), Event(51, 0, 3, 3), Event(46, 0, 4, 4)]
    for holes in (Period(2), Anywhere()):
        assert check(TUMBLING, holes, trigger, events).late == []


def test_holes_closer_than_two_contexts_are_replayed_as_one_but_not_what_lies_between() -> None:
    span_us, every_us = 4, 1
    setting = Setting(((span_us, 1, ids),), 100)
    on_time = [(0, ts_us) for ts_us in range(-9, 30) if ts_us not in (3, 9)]
    events = stream(*on_time, (1, 3), (1, 9), (2, 30))
    for trigger, replays in (("lazy", 1), ("eager", 2)):
        check(setting, Period(every_us), trigger, events)
        travel = setting.build(Period(every_us), trigger, retract=False)
        given = run(travel, events)
        assert [row.start_us for row in given if row.replayed] == [0, 1, 2, 3, 6, 7, 8, 9]
        assert travel.replica is not None
        assert len(travel.replica.shifts) == replays


def test_a_dead_key_is_replayed_by_force_and_forgotten() -> None:
    setting = Setting(((4, 4, ids),), 20)
    dead = [Event(ts_us, 0, ts_us, ts_us) for ts_us in range(4)] + [Event(6, 0, 9, 6)]
    others = [Event(ts_us, 1, ts_us, 100 + ts_us) for ts_us in range(8, 60)]
    travel = setting.build(Period(1), "lazy")
    given = run(travel, dead + others)
    assert [row.start_us for row in given if row.key == 0 and row.replayed] == [4]
    only_others = setting.build(Period(1), "lazy")
    run(only_others, others)
    assert travel.held == only_others.held == 4
    back = [Event(58, 0, 61, 200), Event(59, 0, 62, 201), Event(60, 0, 63, 202), Event(57, 0, 64, 203)]
    assert check(setting, Period(1), "lazy", dead + others + back).late == []


def difference(rows: Rows) -> int | None:
    """The consumption between two readings."""
    return rows[1][1] - rows[0][1] if len(rows) == 2 else None


def alert(rows: Rows) -> int | None:
    """How many large values there are before a negative one, if any."""
    values = [value for _, value in rows]
    negative = [place for place, value in enumerate(values) if value < 0]
    return sum(value > 5 for value in values[: negative[-1]]) or None if negative else None


METERS = Setting(((2 * HOUR_US, HOUR_US, difference), (4 * HOUR_US, HOUR_US, alert)), 40 * 24 * HOUR_US)
READINGS = [0, 1, 2, 11, 6, 7, 16, 25, 20, 21, *range(22, 28)]


def reading(hour: int, tick: int) -> Event:
    """A reading of the running example."""
    return Event(hour * HOUR_US, 0, tick, hour, value=READINGS[hour])


def hours(given: Sequence[Given]) -> list[tuple[int, int]]:
    """Hour and value of alerts."""
    return [(row.start_us // HOUR_US, row.values[0]) for row in given]


def test_the_running_example() -> None:
    """Figures 1, 2 and 4, with values of our own."""
    expected = METERS.app([reading(hour, 0) for hour in range(16)])
    assert [(result.start_us // HOUR_US, result.values[0]) for result in expected] == [
        (0, 1),
        (1, 1),
        (2, 1),
        (4, 2),
        (5, 2),
        (6, 1),
    ]
    travel = METERS.build(Period(HOUR_US), "eager", retract=False)
    given = [row for hour in range(16) if hour not in (4, 5) for row in travel.tick([reading(hour, hour)], hour)]
    assert hours(given) == [(4, 1), (5, 1), (6, 1)]
    assert classify(given, expected) == Classes(exact=1, omitted=3, different=2, duplicate=0, spurious=0)
    given += travel.tick([reading(4, 20)], 20)
    assert hours(given)[3:] == [(0, 1), (1, 1), (2, 1), (4, 1)]
    given += travel.tick([reading(5, 21)], 21)
    assert hours(given)[7:] == [(0, 1), (1, 1), (2, 1), (4, 2), (5, 2)]
    assert classify(given, expected) == Classes(exact=6, omitted=0, different=3, duplicate=3, spurious=0)
    assert travel.finish() == []


def test_midnight_is_shifted_to_14_where_a_context_of_one_event_was_replayed_before() -> None:
    """Figure 4: the first context would begin at 07:00, a span and a step after 0."""
    travel = METERS.build(Period(HOUR_US), "eager")
    for hour in (hour for hour in range(16) if hour not in (4, 5)):
        travel.tick([reading(hour, hour)], hour)
    travel.tick([Event(-20 * HOUR_US, 0, 18, 100, value=0)], 18)
    assert hours(travel.tick([reading(4, 20)], 20)) == [(0, 1), (1, 1), (2, 1)]
    assert travel.replica is not None
    assert travel.replica.shifts == [27 * HOUR_US, 14 * HOUR_US]
    assert Replica(METERS.app, HOUR_US, METERS.span_us).shift(0, 0) == 7 * HOUR_US
    assert Replica(METERS.app, 14 * HOUR_US, METERS.span_us).shift(0, 0) == 14 * HOUR_US


@pytest.mark.parametrize("trigger", ["eager", "lazy"])
def test_an_outage_of_days_is_repaired(trigger: str) -> None:
    """A meter is silent for three days; most of its readings come in one batch, before the next one on time."""
    setting = METERS._replace(aggregates=((2 * HOUR_US, HOUR_US, ids), (4 * HOUR_US, HOUR_US, ids)))
    events = [Event(hour * HOUR_US, 1, hour, 1000 + hour) for hour in range(100)]
    for hour in range(100):
        if not 10 <= hour < 82:
            events.append(Event(hour * HOUR_US, 0, hour, hour))
        elif hour % 7:
            events.append(Event(hour * HOUR_US, 0, 82 if hour % 2 else 90, hour))
    assert check(setting, Period(HOUR_US), trigger, events).late == []


def test_a_seasonal_application_needs_its_periodicity() -> None:
    def seasonal(rows: Rows) -> tuple[Any, ...]:
        return tuple((ts_us % 7, value) for ts_us, value in rows)

    events = stream(*((0, ts_us) for ts_us in range(20) if ts_us not in (9, 10)), (1, 9), (2, 20), (3, 10), (4, 21))
    app = chain_app((4, 2, seasonal))
    right = as_dict(app(in_order(events)))
    for periodicity_us in (7, 1):
        travel = NaiveTimeTravel(app, [4], [2], 20, Period(1), "lazy", periodicity_us=periodicity_us)
        assert (consolidated(run(travel, events)) == right) == (periodicity_us == 7)


def test_classes_count_each_result_given() -> None:
    expected = [Result(0, 0, (1,)), Result(0, 2, (2,)), Result(0, 4, (3,))]
    starts_and_values = [(0, 1), (0, 1), (0, 9), (0, 1), (2, 9), (6, 1)]
    given = [Given(0, start_us, (value,), 1, False, False) for start_us, value in starts_and_values]
    assert classify(given, expected) == Classes(exact=1, omitted=1, different=2, duplicate=2, spurious=1)
