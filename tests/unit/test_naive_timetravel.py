"""The slow twin of time travel against brute force: the application on the sorted stream, and the definitions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from latecomer.events import NEVER_US
from tests.naive_holes import (
    Anywhere,
    Enumerator,
    Event,
    Hole,
    Holes,
    Period,
    Trigger,
    in_order,
)
from tests.naive_timetravel import consolidated
from tests.unit.naive_streams import (
    KINDS,
    TRIGGERS,
    Setting,
    any_events,
    as_dict,
    check,
    dense_events,
    digest,
    grids,
    numbered,
    run,
    settings_of,
)


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
@settings(max_examples=100, deadline=None)
def test_eager_no_answer_is_ever_worse_than_what_had_come(
    setting: Setting, holes: Holes, events: list[Event], seed: int
) -> None:
    for each in (events, dense_events(seed, setting.bound_us)):
        travel, given = setting.build(holes, "eager"), []
        for tick in sorted({event.tick for event in each}):
            given += travel.tick([event for event in each if event.tick == tick], tick)
            refused = {number for number, _ in travel.late}
            came = [event for event in each if event.tick <= tick and event.id not in refused]
            closed_us = travel.mark_us - 1 - setting.span_us + len(setting.aggregates)
            right = as_dict(setting.app(in_order(came)))
            assert consolidated(given) == {place: right[place] for place in right if place[1] <= closed_us}


@given(size_us=st.integers(1, 9), data=st.data(), trigger=TRIGGERS, events=any_events())
@settings(max_examples=100, deadline=None)
def test_with_one_window_the_first_answer_has_all_that_had_come_whatever_the_trigger(
    size_us: int, data: st.DataObject, trigger: Trigger, events: list[Event]
) -> None:
    setting = Setting(((size_us, data.draw(st.integers(1, size_us)), digest),), size_us + 20)
    travel = setting.build(Anywhere(), trigger)
    for tick in sorted({event.tick for event in events}):
        given = travel.tick([event for event in events if event.tick == tick], tick)
        refused = {number for number, _ in travel.late}
        came = in_order(event for event in events if event.tick <= tick and event.id not in refused)
        right = as_dict(setting.app(came))
        assert all(right[row.key, row.start_us] == row.values for row in given if not row.replayed)


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
