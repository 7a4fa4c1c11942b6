"""The slow twin of time travel on streams written by hand, the paper's running example among them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.naive_holes import (
    Anywhere,
    Enumerator,
    Event,
    Given,
    Period,
    Result,
    Rows,
    chain_app,
    in_order,
)
from tests.naive_timetravel import Classes, NaiveTimeTravel, Replica, classify, consolidated
from tests.unit.naive_streams import HOUR_US, Setting, as_dict, check, ids, run, stream


def changes_of(given: Sequence[Given]) -> list[tuple[int, Any, int]]:
    """Start, value and change only."""
    return [(row.start_us, row.values[0], row.change) for row in given]


TUMBLING = Setting(((4, 4, ids),), 10)
TWO = Setting(((2, 2, ids), (4, 2, ids)), 30)  # windows of two windows each


def test_a_late_event_belongs_to_the_first_answer_of_windows_that_are_open() -> None:
    for trigger in ("eager", "lazy"):
        travel = Setting(((4, 2, ids),), 20).build(Anywhere(), trigger)
        assert changes_of(travel.tick(stream((0, 0), (0, 6)), 0)) == [(-2, (0,), 1), (0, (0,), 1)]
        travel.tick([Event(5, 0, 1, 2)], 1)
        live = [row for row in travel.tick([Event(9, 0, 2, 3)], 2) if not row.replayed]
        assert changes_of(live) == [(4, (2, 1), 1)]


def test_an_eager_replay_comes_at_once_and_again_when_live_gives_more_that_lacks_the_event() -> None:
    travel = TWO.build(Anywhere(), "eager")
    assert changes_of(travel.tick(stream((0, 0), (0, 2), (0, 9)), 0)) == [
        (-2, ((0,),), 1),
        (0, ((0,), (1,)), 1),
        (2, ((1,),), 1),
    ]
    assert changes_of(travel.tick([Event(7, 0, 1, 3)], 1)) == [(4, ((3,),), 1)]
    live_then_again = travel.tick([Event(11, 0, 2, 4)], 2)
    assert changes_of(live_then_again) == [(6, ((2,),), 1), (6, ((2,),), -1), (6, ((3,), (2,)), 1)]
    assert [row.replayed for row in live_then_again] == [False, True, True]
    assert travel.duplicates == 1  # the result at 2, which is found as it was


def test_a_lazy_replay_waits_for_the_key_and_the_context() -> None:
    travel = TWO.build(Anywhere(), "lazy")
    travel.tick(stream((0, 0), (0, 2), (0, 9)), 0)
    assert travel.tick([Event(7, 0, 1, 3)], 1) == []
    assert travel.tick([Event(9, 0, 2, 4)], 2) == []
    assert [row.replayed for row in travel.tick([Event(11, 1, 3, 5)], 3)] == [False]
    assert changes_of([row for row in travel.tick([Event(11, 0, 4, 6)], 4) if row.replayed]) == [
        (4, ((3,),), 1),
        (6, ((2, 4),), -1),
        (6, ((3,), (2, 4)), 1),
    ]


def test_a_lazy_replay_waits_until_all_contexts_that_overlap_are_complete_and_happens_once() -> None:
    """The events at 1 and 3 are complete when they come, that at 7 is so when the mark is 11."""
    travel = TWO.build(Anywhere(), "lazy")
    events = [(0, 0), (0, 2), (0, 9), (1, 7), (2, 9), (3, 1), (4, 10), (5, 3), (6, 10)]
    assert not any(row.replayed for row in run_ticks(travel, stream(*events)))
    together = [row for row in travel.tick([Event(11, 0, 7, 20)], 7) if row.replayed]
    assert [start_us for start_us, _, change in changes_of(together) if change > 0] == [-2, 0, 2, 4, 6]
    assert travel.replica is not None
    assert len(travel.replica.shifts) == 1


def run_ticks(travel: NaiveTimeTravel, events: Sequence[Event]) -> list[Given]:
    """All ticks of events, but not the end."""
    ticks = sorted({event.tick for event in events})
    return [row for tick in ticks for row in travel.tick([event for event in events if event.tick == tick], tick)]


def test_a_key_that_is_always_behind_is_replayed_within_a_period_of_completion() -> None:
    """Every event of the key comes 20 behind the mark, so that all it touches has been given."""
    setting = Setting(((4, 4, ids),), 1_000)
    for holes, pace_us in ((Period(5), 5), (Anywhere(), 4)):
        travel = setting.build(holes, "lazy")
        given_at: dict[int, int] = {}
        for tick in range(100):
            events = [Event(tick, 1, tick, tick)] + ([Event(tick - 20, 0, tick, 1_000 + tick)] if tick % 5 == 0 else [])
            for row in travel.tick([event for event in events if event.ts_us >= 0], tick):
                if row.key == 0:
                    given_at.setdefault(row.start_us, tick)
        first_at = {(ts_us // 4) * 4: ts_us + 20 for ts_us in range(75, -1, -5)}
        assert given_at == {start_us: at_us + pace_us - 1 for start_us, at_us in first_at.items()}


def test_what_no_trigger_fires_is_replayed_by_force_beyond_the_bound() -> None:
    travel = TUMBLING.build(Anywhere(), lambda event: None)
    travel.tick(stream((0, 0), (0, 5)), 0)
    travel.tick([Event(1, 0, 1, 2)], 1)
    assert all(not row.replayed for row in travel.tick([Event(11, 0, 2, 3)], 2))
    forced = [row for row in travel.tick([Event(12, 1, 3, 4)], 3) if row.replayed]
    assert changes_of(forced) == [(0, (0,), -1), (0, (0, 2), 1)]


def test_a_written_trigger_fires_early_and_again_when_the_context_is_complete() -> None:
    travel = TWO.build(Anywhere(), lambda event: event.ts_us + 3)
    travel.tick(stream((0, 0), (0, 2), (0, 9)), 0)
    assert travel.tick([Event(7, 0, 1, 3)], 1) == []
    assert changes_of(travel.tick([Event(10, 0, 2, 4)], 2)) == [(4, ((3,),), 1)]
    assert changes_of(travel.tick([Event(11, 0, 3, 5)], 3)) == [
        (6, ((2,),), 1),
        (6, ((2,),), -1),
        (6, ((3,), (2,)), 1),
    ]


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
    travel = TWO.build(Anywhere(), "lazy")
    given = [row for row in run(travel, stream((0, 0), (0, 9), (1, 7), (2, 100))) if row.start_us == 6]
    assert changes_of(given) == [(6, ((1,),), 1), (6, ((1,),), -1), (6, ((2,), (1,)), 1)]
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
        travel = NaiveTimeTravel(app, 20, Period(1), "lazy", periodicity_us=periodicity_us)
        assert (consolidated(run(travel, events)) == right) == (periodicity_us == 7)


def test_classes_count_each_result_given() -> None:
    expected = [Result(0, 0, (1,)), Result(0, 2, (2,)), Result(0, 4, (3,))]
    starts_and_values = [(0, 1), (0, 1), (0, 9), (0, 1), (2, 9), (6, 1)]
    given = [Given(0, start_us, (value,), 1, False, False) for start_us, value in starts_and_values]
    assert classify(given, expected) == Classes(exact=1, omitted=1, different=2, duplicate=2, spurious=1)
