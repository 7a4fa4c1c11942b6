"""Which session every event joins, tick by tick, and which events come too late for all of them.

A session is open until the punctuation has passed its last time and the gap; then it is given, and nothing joins it any
more. An event joins the open sessions that lie no further from it than the gap, or founds one, if that would be open.
Events of one tick come together: one that is too late to found a session may join one through others of its tick.

Stretches (events, or what was folded of them) are numbered; those of one owner are followed in order of tick and start.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from latecomer._jit import kernel
from latecomer.events import Bools, Int64s, order_by

REFUSED = -1

# Rows of the array of stretches, and of that of open sessions.
_OWNER, _TICK, _START, _LAST, _FLOOR, _ALONE = range(6)
_ID, _OPEN_START, _OPEN_LAST = range(3)
_HEAD, _TAIL, _COUNT = range(3)
_PARENT, _REACH = range(2)


class Stretch(NamedTuple):
    """Stretches of time with an owner and the tick they came in.

    floor_us: the last punctuation before that tick. alone: whether each would be an open session by itself.
    """

    owner: Int64s
    tick: Int64s
    start_us: Int64s
    last_us: Int64s
    floor_us: Int64s
    alone: Bools


class Joined(NamedTuple):
    """For each stretch the number of its session, REFUSED if none takes it; for each session its last time."""

    session: Int64s
    last_us: Int64s


def join_sessions(stretches: Stretch, gap_us: int, *, strict: bool) -> Joined:
    """Follow stretches as they come. strict: those that would not be open by themselves are refused."""
    order = order_by(stretches.owner, stretches.tick, stretches.start_us)
    sorted_rows = np.stack([row[order].astype(np.int64) for row in stretches])
    found, sessions = np.empty(len(order), dtype=np.int64), np.empty((2, len(order)), dtype=np.int64)
    count = _follow(sorted_rows, gap_us, strict, found, sessions)
    session = np.empty(len(order), dtype=np.int64)
    session[order] = found
    return Joined(session, sessions[_REACH, :count])


@kernel
def _follow(rows: Int64s, gap_us: int, strict: bool, found: Int64s, sessions: Int64s) -> int:
    """Fill in the session of each stretch, and the parent and last time of each session; returns how many there are."""
    size = rows.shape[1]
    opened = np.empty((3, size), dtype=np.int64)
    bounds = np.zeros(3, dtype=np.int64)
    first = 0
    while first < size:
        if first == 0 or rows[_OWNER, first] != rows[_OWNER, first - 1]:
            bounds[_HEAD] = bounds[_TAIL] = 0
        after = first + 1
        while after < size and rows[_OWNER, after] == rows[_OWNER, first] and rows[_TICK, after] == rows[_TICK, first]:
            after += 1
        while bounds[_HEAD] < bounds[_TAIL] and opened[_OPEN_LAST, bounds[_HEAD]] + gap_us <= rows[_FLOOR, first]:
            bounds[_HEAD] += 1
        for at in range(first, after):
            found[at] = -1
            if rows[_ALONE, at]:
                found[at] = _insert(opened, bounds, sessions, rows[_START, at], rows[_LAST, at], gap_us)
        if not strict:
            _join_through(rows, (first, after), gap_us, found, (opened, bounds, sessions))
        first = after
    for at in range(size):
        while found[at] >= 0 and sessions[_PARENT, found[at]] != found[at]:
            parent = sessions[_PARENT, found[at]]
            sessions[_PARENT, found[at]] = sessions[_PARENT, parent]  # so that long ways are gone once
            found[at] = parent
    return int(bounds[_COUNT])


@kernel
def _join_through(
    rows: Int64s, tick: tuple[int, int], gap_us: int, found: Int64s, state: tuple[Int64s, Int64s, Int64s]
) -> None:
    """The stretches of a tick that are too late by themselves: those that lie together join what they touch."""
    opened, bounds, sessions = state
    first, after = tick
    while first < after:
        if rows[_ALONE, first]:
            first += 1
            continue
        last_us, upto = rows[_LAST, first], first + 1
        while upto < after and (rows[_ALONE, upto] or rows[_START, upto] - last_us <= gap_us):
            if not rows[_ALONE, upto]:
                last_us = max(last_us, rows[_LAST, upto])
            upto += 1
        place = _place(opened, bounds, rows[_START, first] - gap_us)
        if place < bounds[_TAIL] and opened[_OPEN_START, place] - gap_us <= last_us:
            for at in range(first, upto):
                if not rows[_ALONE, at]:
                    found[at] = _insert(opened, bounds, sessions, rows[_START, at], rows[_LAST, at], gap_us)
        first = upto


@kernel
def _place(opened: Int64s, bounds: Int64s, time_us: int) -> int:
    """The first open session whose last time is not before a time; they are in order, and lie apart."""
    low, high = bounds[_HEAD], bounds[_TAIL]
    while low < high:
        middle = (low + high) // 2
        if opened[_OPEN_LAST, middle] < time_us:
            low = middle + 1
        else:
            high = middle
    return int(low)


@kernel
def _insert(opened: Int64s, bounds: Int64s, sessions: Int64s, start_us: int, last_us: int, gap_us: int) -> int:
    """Let a stretch join the open sessions near it, which become one, or found one; returns its number."""
    place = _place(opened, bounds, start_us - gap_us)
    after = place
    while after < bounds[_TAIL] and opened[_OPEN_START, after] - gap_us <= last_us:
        after += 1
    if after == place:
        for at in range(bounds[_TAIL], place, -1):
            for row in range(3):
                opened[row, at] = opened[row, at - 1]
        number = bounds[_COUNT]
        opened[_ID, place], opened[_OPEN_START, place], opened[_OPEN_LAST, place] = number, start_us, last_us
        sessions[_PARENT, number], sessions[_REACH, number] = number, last_us
        bounds[_TAIL] += 1
        bounds[_COUNT] += 1
        return int(number)
    number = opened[_ID, place]
    opened[_OPEN_START, place] = min(opened[_OPEN_START, place], start_us)
    opened[_OPEN_LAST, place] = max(opened[_OPEN_LAST, after - 1], last_us)
    sessions[_REACH, number] = opened[_OPEN_LAST, place]
    for at in range(place + 1, after):
        sessions[_PARENT, opened[_ID, at]] = number
    gone = after - place - 1
    if gone:
        for at in range(after, bounds[_TAIL]):
            for row in range(3):
                opened[row, at - gone] = opened[row, at]
        bounds[_TAIL] -= gone
    return int(number)
