"""Which session every event joins, tick by tick, and which events come too late for all of them.

A session is open until the punctuation has passed its last time and the gap; then it is given, and nothing joins it any
more. An event joins the open sessions that lie no further from it than the gap, or founds one, if that would be open.
Events of one tick come together: one that is too late to found a session may join one through others of its tick.

Stretches (events, or what was folded of them) are numbered; those of one owner are followed in order of tick and start.
Open sessions lie apart, so each is known by the place, among the starts of all its owner's stretches, of one stretch in
it. They are linked in order, and a tree of marks finds the one at or before a place: n stretches take n log n steps.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from latecomer._jit import bare_kernel, kernel
from latecomer.events import Bools, Int64s, order_by

REFUSED = -1

Marks = npt.NDArray[np.bool_]

# Rows of the array of stretches, of that of open sessions by their place, and of that of all sessions; single numbers.
_OWNER, _TICK, _START, _LAST, _FLOOR, _ALONE, _AT = range(7)
_ID, _OPEN_START, _OPEN_LAST, _BEFORE, _AFTER = range(5)
_PARENT, _REACH = range(2)
_COUNT, _LEAVES, _FIRST, _RECENT = range(4)
_NONE = -1  # no place

State = tuple[Int64s, Marks, Int64s, Int64s]  # open sessions, their marks, single numbers, all sessions


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
    by_start = order_by(stretches.owner, stretches.start_us)
    places = order_by(stretches.owner[by_start], stretches.tick[by_start])
    order = by_start[places]
    sorted_rows = np.stack([*(row[order].astype(np.int64) for row in stretches), places])
    found, sessions = np.empty(len(order), dtype=np.int64), np.empty((2, len(order)), dtype=np.int64)
    count = _follow(sorted_rows, gap_us, strict, found, sessions)
    session = np.empty(len(order), dtype=np.int64)
    session[order] = found
    return Joined(session, sessions[_REACH, :count])


@kernel
def _follow(rows: Int64s, gap_us: int, strict: bool, found: Int64s, sessions: Int64s) -> int:
    """Fill in the session of each stretch, and the parent and last time of each session; returns how many there are."""
    size, first, count = rows.shape[1], 0, 0
    while first < size:
        after = first + 1
        while after < size and rows[_OWNER, after] == rows[_OWNER, first]:
            after += 1
        count = _follow_owner(rows[:, first:after], gap_us, strict, found[first:after], sessions, count)
        first = after
    for at in range(size):
        while found[at] >= 0 and sessions[_PARENT, found[at]] != found[at]:
            parent = sessions[_PARENT, found[at]]
            sessions[_PARENT, found[at]] = sessions[_PARENT, parent]  # so that long ways are gone once
            found[at] = parent
    return count


@kernel
def _follow_owner(rows: Int64s, gap_us: int, strict: bool, found: Int64s, sessions: Int64s, count: int) -> int:
    """The same for the stretches of one owner; `count` sessions are known already."""
    size, leaves, first = rows.shape[1], 1, 0
    while leaves < size:
        leaves *= 2
    rows[_AT] -= rows[_AT].min()  # places of an owner follow each other
    opened, marks = np.empty((5, size), dtype=np.int64), np.zeros(2 * leaves, dtype=np.bool_)
    state = (opened, marks, np.array([count, leaves, _NONE, _NONE]), sessions)
    while first < size:
        after = first + 1
        while after < size and rows[_TICK, after] == rows[_TICK, first]:
            after += 1
        _close(state, rows[_FLOOR, first] - gap_us)
        for at in range(first, after):
            found[at] = _insert(state, rows, at, gap_us) if rows[_ALONE, at] else REFUSED
        if not strict:
            _join_through(rows, (first, after), gap_us, found, state)
        first = after
    return int(state[2][_COUNT])


@bare_kernel
def _join_through(rows: Int64s, tick: tuple[int, int], gap_us: int, found: Int64s, state: State) -> None:
    """The stretches of a tick that are too late by themselves: those that lie together join what they touch."""
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
        if _touched(state, rows, first, last_us, gap_us) != _NONE:
            for at in range(first, upto):
                if not rows[_ALONE, at]:
                    found[at] = _insert(state, rows, at, gap_us)
        first = upto


@bare_kernel
def _close(state: State, passed_us: int) -> None:
    """Sessions whose last time is passed are open no more."""
    opened, numbers = state[0], state[2]
    while numbers[_FIRST] != _NONE and opened[_OPEN_LAST, numbers[_FIRST]] <= passed_us:
        _remove(state, numbers[_FIRST])


@bare_kernel
def _insert(state: State, rows: Int64s, at: int, gap_us: int) -> int:
    """Let a stretch join the open sessions near it, which become one, or found one; returns its number."""
    opened, _, numbers, sessions = state
    place = _touched(state, rows, at, rows[_LAST, at], gap_us)
    if place == _NONE:
        place = _found(state, rows, at)
    number, last_us = opened[_ID, place], max(opened[_OPEN_LAST, place], rows[_LAST, at])
    opened[_OPEN_START, place] = min(opened[_OPEN_START, place], rows[_START, at])
    other = opened[_AFTER, place]
    while other != _NONE and opened[_OPEN_START, other] - gap_us <= rows[_LAST, at]:
        sessions[_PARENT, opened[_ID, other]] = number
        last_us = max(last_us, opened[_OPEN_LAST, other])
        _remove(state, other)
        other = opened[_AFTER, place]
    opened[_OPEN_LAST, place] = sessions[_REACH, number] = last_us
    numbers[_RECENT] = place
    return int(number)


@bare_kernel
def _touched(state: State, rows: Int64s, at: int, last_us: int, gap_us: int) -> int:
    """The first open session within the gap of a stretch that ends at a time.

    Of those that begin before it only the nearest can reach it, since they lie apart.
    """
    opened, before = state[0], _nearest(state, rows, at)
    if before != _NONE and opened[_OPEN_LAST, before] >= rows[_START, at] - gap_us:
        return before
    after = _after(state, before)
    return after if after != _NONE and opened[_OPEN_START, after] - gap_us <= last_us else _NONE


@bare_kernel
def _nearest(state: State, rows: Int64s, at: int) -> int:
    """The open session that is the nearest before a stretch, or has it inside; or the one before that one."""
    opened, marks, numbers, _ = state
    recent = numbers[_RECENT]
    if recent != _NONE and opened[_OPEN_START, recent] <= rows[_START, at]:
        after = opened[_AFTER, recent]
        if after == _NONE or opened[_OPEN_START, after] > rows[_START, at]:
            return int(recent)
    return _last(marks, numbers[_LEAVES], rows[_AT, at])


@bare_kernel
def _after(state: State, place: int) -> int:
    return int(state[2][_FIRST] if place == _NONE else state[0][_AFTER, place])


@bare_kernel
def _found(state: State, rows: Int64s, at: int) -> int:
    """Open a session that has a stretch alone; returns its place."""
    opened, marks, numbers, sessions = state
    place, number, before = rows[_AT, at], numbers[_COUNT], _nearest(state, rows, at)
    after = _after(state, before)
    opened[_OPEN_START, place], opened[_OPEN_LAST, place] = rows[_START, at], rows[_LAST, at]
    opened[_ID, place] = sessions[_PARENT, number] = number
    numbers[_COUNT] += 1
    _mark(marks, numbers[_LEAVES], place)
    _link(state, before, place)
    _link(state, place, after)
    return int(place)


@bare_kernel
def _remove(state: State, place: int) -> None:
    opened, marks, numbers, _ = state
    _unmark(marks, numbers[_LEAVES], place)
    _link(state, opened[_BEFORE, place], opened[_AFTER, place])
    if numbers[_RECENT] == place:
        numbers[_RECENT] = _NONE


@bare_kernel
def _link(state: State, before: int, after: int) -> None:
    if after != _NONE:
        state[0][_BEFORE, after] = before
    if before != _NONE:
        state[0][_AFTER, before] = after
    else:
        state[2][_FIRST] = after


# Marks: a tree whose leaves are places; a node is marked if a leaf below it is. The root is 1, the first leaf `leaves`.


@bare_kernel
def _mark(marks: Marks, leaves: int, place: int) -> None:
    node = leaves + place
    while node > 0 and not marks[node]:
        marks[node] = True
        node //= 2


@bare_kernel
def _unmark(marks: Marks, leaves: int, place: int) -> None:
    node = leaves + place
    marks[node] = False
    while node > 1 and not marks[node ^ 1]:
        node //= 2
        marks[node] = False


@bare_kernel
def _last(marks: Marks, leaves: int, place: int) -> int:
    """The last marked place up to one."""
    node = leaves + place
    while not marks[node]:
        while not node & 1:  # the first one below its parent
            node //= 2
        if node == 1:
            return _NONE
        node -= 1
    while node < leaves:
        node = 2 * node + 1
        if not marks[node]:
            node -= 1
    return int(node - leaves)
