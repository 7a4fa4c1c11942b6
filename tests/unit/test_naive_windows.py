"""Known cases and seeded random trials for the naive windows."""

import random
from collections import Counter

import pytest

from tests.naive_windows import Answer, Event, Punctuation, grid_answers, session_answers

NEVER = -(10**18)


def table(*rows: list[int]) -> Punctuation:
    """Make a punctuation of one row per tier, whose last entry holds after the last tick."""
    return lambda tier, tick: rows[tier][-1 if tick is None else tick]


def brief(answers: list[Answer]) -> list[tuple[int, int, int, str, int | None]]:
    """Return answers with their event values run together as text."""
    return [(a.tier, a.start, a.end, "".join(str(e.value) for e in a.events), a.given_after) for a in answers]


def ev(tick: int, ts: int, value: str, key: object = "k") -> Event:
    """Make an event."""
    return Event(tick, ts, key, value)


def test_grid_side_by_side_windows_and_negative_times() -> None:
    events = [ev(0, 0, "a"), ev(0, 9, "b"), ev(0, 10, "c"), ev(0, -1, "d")]
    answers, late, missed = grid_answers(events, table([NEVER, 9]), 1, 10, 10)
    assert brief(answers) == [(0, -10, 0, "d", 0), (0, 0, 10, "ab", 0), (0, 10, 20, "c", None)]
    assert (late, missed) == ([], 0)


def test_grid_offset_moves_the_windows() -> None:
    answers, _, _ = grid_answers([ev(0, 2, "a"), ev(0, 3, "b")], table([NEVER, NEVER]), 1, 10, 10, 13)
    assert brief(answers) == [(0, -7, 3, "a", None), (0, 3, 13, "b", None)]


def test_grid_window_is_closed_exactly_at_its_end_less_one() -> None:
    events = [ev(0, 1, "a"), ev(1, 2, "b"), ev(2, 3, "c")]
    answers, late, missed = grid_answers(events, table([NEVER, 8, 9, 9]), 1, 10, 10)
    assert brief(answers) == [(0, 0, 10, "ab", 1)]
    assert (late, missed) == ([events[2]], 0)


def test_grid_overlapping_windows_some_missed() -> None:
    events = [ev(0, 7, "a"), ev(1, 7, "b"), ev(2, 7, "c")]
    answers, late, missed = grid_answers(events, table([NEVER, 9, 14, 14]), 1, 10, 5)
    assert brief(answers) == [(0, 0, 10, "a", 0), (0, 5, 15, "ab", 1)]
    assert (late, missed) == ([events[2]], 1)


def test_grid_advance_that_does_not_divide_size() -> None:
    answers, _, _ = grid_answers([ev(0, 6, "a"), ev(0, 8, "b")], table([NEVER, NEVER]), 1, 7, 3)
    assert brief(answers) == [(0, 0, 7, "a", None), (0, 3, 10, "ab", None), (0, 6, 13, "ab", None)]


def test_grid_tiers_and_keys() -> None:
    events = [ev(0, 1, "a", "x"), ev(0, 1, "b", "y"), ev(1, 2, "c", "x")]
    answers, late, _ = grid_answers(events, table([NEVER, 20, 20], [NEVER, 0, 20]), 2, 10, 10)
    assert brief(answers) == [(0, 0, 10, "a", 0), (0, 0, 10, "b", 0), (1, 0, 10, "ac", 1), (1, 0, 10, "b", 1)]
    assert late == []


def test_equal_events_are_counted_each() -> None:
    twice = [ev(0, 1, "a"), ev(0, 1, "a"), ev(1, 1, "a")]
    answers, late, _ = grid_answers(twice, table([NEVER, 9, 9]), 1, 10, 10)
    assert (brief(answers), len(late)) == ([(0, 0, 10, "aa", 0)], 1)
    sessions, late = session_answers(twice, table([NEVER, 9, 9]), 1, 5)
    assert (brief(sessions), len(late)) == ([(0, 1, 6, "aa", 0)], 1)


def test_session_distance_of_exactly_gap_joins() -> None:
    events = [ev(0, 0, "a"), ev(0, 5, "b"), ev(0, 11, "c"), ev(0, 3, "d", "other")]
    answers, late = session_answers(events, table([NEVER, NEVER]), 1, 5)
    assert brief(answers) == [(0, 0, 10, "ab", None), (0, 3, 8, "d", None), (0, 11, 16, "c", None)]
    assert late == []


def test_session_bridge_joins_two_open_sessions() -> None:
    events = [ev(0, 0, "a"), ev(0, 10, "b"), ev(1, 5, "c")]
    answers, _ = session_answers(events, table([NEVER, 4, 15]), 1, 5)
    assert brief(answers) == [(0, 0, 15, "abc", 1)]


def test_session_closed_is_not_joined_and_is_closed_exactly_at_its_end() -> None:
    events = [ev(0, 0, "a"), ev(1, 1, "b"), ev(1, 0, "c"), ev(2, 1, "d")]
    answers, late = session_answers(events, table([NEVER, 5, 6, 6]), 1, 5)
    assert brief(answers) == [(0, 0, 5, "a", 0), (0, 0, 6, "bc", 1)]
    assert late == [events[3]]


def test_session_takes_old_events_through_a_chain_only() -> None:
    events = [ev(0, 20, "a"), ev(1, 5, "b"), ev(1, 10, "c"), ev(1, 15, "d"), ev(1, -1, "e")]
    answers, late = session_answers(events, table([NEVER, 24, 24]), 1, 5)
    assert brief(answers) == [(0, 5, 25, "abcd", None)]
    assert late == [events[4]]


def test_session_old_event_is_late_if_its_link_comes_a_tick_after() -> None:
    one_tick, late_in_one = session_answers([ev(0, 0, "a"), ev(0, 5, "b")], table([5, 5]), 1, 5)
    two_ticks, late_in_two = session_answers([ev(0, 0, "a"), ev(1, 5, "b")], table([5, 5, 5]), 1, 5)
    assert (brief(one_tick), len(late_in_one)) == ([(0, 0, 10, "ab", None)], 0)
    assert (brief(two_ticks), len(late_in_two)) == ([(0, 5, 10, "b", None)], 1)


def test_session_tiers_split_what_the_last_joins() -> None:
    events = [ev(0, 0, "a"), ev(1, 4, "b")]
    answers, _ = session_answers(events, table([NEVER, 6, 9], [NEVER, 0, 9]), 2, 5)
    assert brief(answers) == [(0, 0, 5, "a", 0), (0, 4, 9, "b", 1), (1, 0, 9, "ab", 1)]


def test_empty_stream_and_unlawful_input() -> None:
    assert grid_answers([], table([0]), 1, 10, 5) == ([], [], 0)
    assert session_answers([], table([0]), 1, 5) == ([], [])
    for rows in ([[3, 2]], [[0, 0], [1, 1]]):
        with pytest.raises(ValueError, match="punctuation"):
            session_answers([ev(0, 0, "a")], table(*rows), len(rows), 5)
    with pytest.raises(ValueError, match="order of tick"):
        grid_answers([ev(1, 0, "a"), ev(0, 0, "b")], table([0, 0, 0]), 1, 10, 5)


def random_stream(rng: random.Random) -> tuple[list[Event], Punctuation, int, int]:
    """Make a crowded stream with a lawful punctuation, a number of tiers and a gap."""
    tick_count, tiers, gap = rng.randint(2, 6), rng.randint(1, 3), rng.randint(0, 6)
    ticks = sorted(rng.randrange(tick_count) for _ in range(rng.randint(0, 24)))
    events = [Event(t, 6 * t + rng.randint(-16, 10), rng.choice("xy"), n) for n, t in enumerate(ticks)]
    rows: list[list[int]] = []
    for tier in range(tiers):
        first = rng.choice([NEVER, -30])
        row = sorted([first, *(6 * t - 6 * tier + rng.randint(-12, 12) for t in range(tick_count))])
        rows.append([min(own, above) for own, above in zip(row, rows[-1], strict=True)] if rows else row)
    return events, table(*rows), tiers, gap


def numbers(answers: list[Answer]) -> list[tuple[int, int, int, object, int | None, list[object]]]:
    """Return answers in a form that forgets the order of their events."""
    return [
        (a.tier, a.start, a.end, a.key, a.given_after, sorted((e.value for e in a.events), key=repr)) for a in answers
    ]


def test_sessions_do_not_depend_on_order_within_a_tick() -> None:
    rng, changed, rescued = random.Random(1), 0, 0
    for _ in range(400):
        events, punctuation, tiers, gap = random_stream(rng)
        shuffled = sorted(rng.sample(events, len(events)), key=lambda event: event.tick)
        answers, late = session_answers(events, punctuation, tiers, gap)
        other_answers, other_late = session_answers(shuffled, punctuation, tiers, gap)
        assert numbers(answers) == numbers(other_answers)
        assert {e.value for e in late} == {e.value for e in other_late}
        changed += shuffled != events
        rescued += any(e.ts + gap <= punctuation(a.tier, e.tick) for a in answers for e in a.events)
    assert min(changed, rescued) > 50


def test_sessions_of_a_tier_lie_within_sessions_of_the_next() -> None:
    rng, split, fewer, with_late = random.Random(2), 0, 0, 0
    for _ in range(400):
        events, punctuation, tiers, gap = random_stream(rng)
        answers, late = session_answers(events, punctuation, tiers, gap)
        for tier in range(tiers):
            own = [a for a in answers if a.tier == tier]
            uses = Counter(e.value for a in own for e in a.events)
            assert all(count == 1 for count in uses.values())
            assert len({(a.key, a.end) for a in own}) == len(own)
        assert sum(len(a.events) for a in answers if a.tier == tiers - 1) + len(late) == len(events)
        for tier in range(tiers - 1):
            nexts = [a for a in answers if a.tier == tier + 1]
            own = [a for a in answers if a.tier == tier]
            for inner in own:
                outer = [a for a in nexts if set(inner.events) <= set(a.events)]
                assert len(outer) == 1
                assert outer[0].start <= inner.start
                assert inner.end <= outer[0].end
                if outer[0].given_after is not None:
                    assert inner.given_after is not None
                    assert inner.given_after <= outer[0].given_after
            split += len(own) > len(nexts)
            fewer += sum(len(a.events) for a in own) < sum(len(a.events) for a in nexts)
        with_late += bool(late)
    assert min(split, fewer, with_late) > 10


def test_grid_tiers_only_add_events_and_every_pair_is_counted_once() -> None:
    rng, with_missed = random.Random(3), 0
    for _ in range(400):
        events, punctuation, tiers, _ = random_stream(rng)
        size = rng.randint(1, 12)
        advance, offset = rng.randint(1, size), rng.randint(-20, 20)
        answers, late, missed = grid_answers(events, punctuation, tiers, size, advance, offset)
        found = {(a.tier, a.start, a.key): set(a.events) for a in answers}
        assert len(found) == len(answers)
        for (tier, start, key), members in found.items():
            assert tier == tiers - 1 or members <= found[tier + 1, start, key]
        last_pairs = sum(len(members) for (tier, _, _), members in found.items() if tier == tiers - 1)
        in_time = [e for e in events if e not in late]
        starts = [k * advance + offset for k in range(-90, 90)]
        pairs = sum(start <= e.ts < start + size for e in in_time for start in starts)
        assert last_pairs + missed == pairs
        with_missed += missed > 0
    assert with_missed > 50
