"""A slow and obvious account of which events belong to which windows, to check faster code against."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

Punctuation = Callable[[int, int | None], int]


@dataclass(frozen=True)
class Event:
    """One thing that happened at `ts` and arrived at `tick`."""

    tick: int
    ts: int
    key: Any
    value: Any


@dataclass(frozen=True)
class Answer:
    """The events one tier counted in one window of one key, and the tick after which it said so."""

    tier: int
    start: int
    end: int
    key: Any
    events: tuple[Event, ...]
    given_after: int | None


def grid_answers(
    events: Sequence[Event], punctuation: Punctuation, tiers: int, size: int, advance: int, offset: int = 0
) -> tuple[list[Answer], list[Event], int]:
    """Return the answers for windows on a grid, the late events and the number of missed (event, window) pairs."""
    if not 0 < advance <= size:
        raise ValueError("advance must be at least 1 and at most size")
    ticks = _checked_ticks(events, punctuation, tiers)
    answers: list[Answer] = []
    late: list[Event] = []
    missed = 0
    for tier in range(tiers):
        counted: dict[tuple[int, object], list[Event]] = {}
        for event in events:
            starts = _window_starts(event.ts, size, advance, offset)
            in_time = [start for start in starts if punctuation(tier, event.tick) < start + size - 1]
            for start in in_time:
                counted.setdefault((start, event.key), []).append(event)
            if tier == tiers - 1 and in_time:
                missed += len(starts) - len(in_time)
            elif tier == tiers - 1:
                late.append(event)
        for (start, key), members in counted.items():
            given_after = _given_after(punctuation, tier, ticks, start + size - 1)
            answers.append(Answer(tier, start, start + size, key, tuple(members), given_after))
    return sorted(answers, key=_answer_order), late, missed


def session_answers(
    events: Sequence[Event], punctuation: Punctuation, tiers: int, gap: int
) -> tuple[list[Answer], list[Event]]:
    """Return the sessions of every tier and key, and the events that the last tier did not accept."""
    if gap < 0:
        raise ValueError("gap must not be negative")
    ticks = _checked_ticks(events, punctuation, tiers)
    keys = list(dict.fromkeys(event.key for event in events))
    answers: list[Answer] = []
    accepted_by_last_tier: set[int] = set()
    for tier in range(tiers):
        for key in keys:
            for members in _sessions_of_key(events, punctuation, tier, key, ticks, gap):
                start = min(events[place].ts for place in members)
                end = max(events[place].ts for place in members) + gap
                given_after = _given_after(punctuation, tier, ticks, end)
                session_events = tuple(events[place] for place in sorted(members))
                answers.append(Answer(tier, start, end, key, session_events, given_after))
                if tier == tiers - 1:
                    accepted_by_last_tier.update(members)
    late = [event for place, event in enumerate(events) if place not in accepted_by_last_tier]
    return sorted(answers, key=_answer_order), late


def _sessions_of_key(
    events: Sequence[Event], punctuation: Punctuation, tier: int, key: object, ticks: list[int], gap: int
) -> list[list[int]]:
    """Return the sessions of one key in one tier, each as the places of its events in the list."""
    closed: list[list[int]] = []
    opened: list[list[int]] = []
    for tick in ticks:
        promise = punctuation(tier, tick)
        still_open: list[list[int]] = []
        for session in opened:
            last = max(events[place].ts for place in session)
            (closed if last + gap <= promise else still_open).append(session)
        arrived = [place for place, event in enumerate(events) if event.tick == tick and event.key == key]
        on_time = [[place] for place in arrived if events[place].ts + gap > promise]
        waiting = [place for place in arrived if events[place].ts + gap <= promise]
        opened = _joined(events, still_open + on_time, gap)
        while touching := [place for place in waiting if any(_near(events, [place], group, gap) for group in opened)]:
            waiting.remove(touching[0])
            opened = _joined(events, [*opened, [touching[0]]], gap)
    return closed + opened


def _joined(events: Sequence[Event], groups: list[list[int]], gap: int) -> list[list[int]]:
    """Join all groups that lie at most `gap` apart, adding one after the other."""
    joined: list[list[int]] = []
    for group in groups:
        touching = [other for other in joined if _near(events, other, group, gap)]
        apart = [other for other in joined if not _near(events, other, group, gap)]
        joined = [*apart, [*group, *(place for other in touching for place in other)]]
    return joined


def _near(events: Sequence[Event], one: list[int], other: list[int], gap: int) -> bool:
    """Say whether the spans from least to greatest `ts` of two groups lie at most `gap` apart."""
    one_times = [events[place].ts for place in one]
    other_times = [events[place].ts for place in other]
    return min(other_times) - max(one_times) <= gap and min(one_times) - max(other_times) <= gap


def _window_starts(ts: int, size: int, advance: int, offset: int) -> list[int]:
    """Return the starts of all grid windows that contain `ts`."""
    too_early = (ts - size - offset) // advance * advance + offset
    return [start for start in range(too_early, ts + 1, advance) if start <= ts < start + size]


def _given_after(punctuation: Punctuation, tier: int, ticks: list[int], needed: int) -> int | None:
    """Return the first tick after which the punctuation is at least `needed`, or None if there is none."""
    for tick, following in zip(ticks, [*ticks[1:], None], strict=True):
        if punctuation(tier, following) >= needed:
            return tick
    return None


def _checked_ticks(events: Sequence[Event], punctuation: Punctuation, tiers: int) -> list[int]:
    """Return the ticks that occur in the stream, having checked that the stream and its punctuation are lawful."""
    ticks = sorted({event.tick for event in events})
    moments: list[int | None] = [*ticks, None]
    table = [[punctuation(tier, moment) for moment in moments] for tier in range(tiers)]
    if tiers < 1 or [event.tick for event in events] != sorted(event.tick for event in events):
        raise ValueError("there must be at least one tier, and events must be in order of tick")
    if any(row != sorted(row) for row in table) or any(list(at) != sorted(at)[::-1] for at in zip(*table, strict=True)):
        raise ValueError("punctuation must not decrease with ticks nor increase with tiers")
    return ticks


def _answer_order(answer: Answer) -> tuple[int, int, int, str]:
    """Return what answers are sorted by."""
    return answer.tier, answer.start, answer.end, repr(answer.key)
