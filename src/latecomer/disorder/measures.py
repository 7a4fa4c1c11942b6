"""The four measures of disorder of the Impatience paper, section II, exactly; and lateness.

All take event times in the order of arrival. Equal times are no inversion, a run breaks on strict descent.

1. inversions: pairs of positions i < j with ts[i] > ts[j].
2. distance: the largest j - i over the inversions, 0 if there are none.
3. runs: how many non-descending stretches follow one another.
4. interleaved: the fewest non-descending sequences that the stream can be dealt into, by greedy patience.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from latecomer._jit import kernel
from latecomer.events import NEVER_US, Int64s
from latecomer.search import lower_bound_descending

_BASE = 32  # up to this length, inversions are counted by insertion
_ALONE = 1 << 16  # up to this length, one thread is enough


class Measures(NamedTuple):
    """How far a stream is from sorted."""

    inversions: int
    distance: int
    runs: int
    interleaved: int


def measure(ts_us: Int64s) -> Measures:
    """All four measures of a stream in its order of arrival.

    >>> import numpy as np
    >>> measure(np.array([2, 6, 5, 1, 4, 3, 7, 8]))
    Measures(inversions=9, distance=4, runs=4, interleaved=4)
    """
    times = np.ascontiguousarray(ts_us, dtype=np.int64)
    with ThreadPoolExecutor(2) as pool:  # kernels let go of the lock
        dealt = pool.submit(interleaved, times)
        inversions = count_inversions(times)
        return Measures(inversions, distance(times), runs(times), dealt.result())


def runs(ts_us: Int64s) -> int:
    """How many non-descending stretches there are."""
    return int(np.count_nonzero(ts_us[1:] < ts_us[:-1])) + 1 if len(ts_us) else 0


def lateness(ts_us: Int64s, tick: Int64s | None = None) -> Int64s:
    """How far each event is behind the high-water mark when it, or its tick, comes; 0 for one that is not late."""
    return Marks().lateness(ts_us, tick)


class Marks:
    """The high-water mark of a stream that comes in pieces: so far, and before the tick that is open."""

    def __init__(self, mark_us: int = NEVER_US, tick: int | None = None, before_us: int = NEVER_US) -> None:
        self.mark_us, self.tick, self.before_us = mark_us, tick, before_us

    def lateness(self, ts_us: Int64s, tick: Int64s | None = None) -> Int64s:
        """The lateness of the next events; with ticks as strategies see it, against the mark before their tick."""
        if len(ts_us) == 0:
            return np.zeros(0, dtype=np.int64)
        marks = np.maximum(np.maximum.accumulate(ts_us), self.mark_us)
        compared = marks if tick is None else self._before_ticks(marks, tick)
        self.mark_us = int(marks[-1])
        late: Int64s = np.maximum(compared - ts_us, 0)
        return late

    def _before_ticks(self, marks: Int64s, tick: Int64s) -> Int64s:
        starts = np.flatnonzero(np.diff(tick, prepend=tick[0] - 1))
        before = np.where(starts > 0, marks[starts - 1], self.before_us if tick[0] == self.tick else self.mark_us)
        self.tick, self.before_us = int(tick[-1]), int(before[-1])
        return np.repeat(before, np.diff(starts, append=len(tick)))


def distance(ts_us: Int64s) -> int:
    """The largest distance between the two positions of an inversion."""
    if len(ts_us) == 0:
        return 0
    return int(_distance(ts_us, np.maximum.accumulate(ts_us)))


@kernel
def _distance(ts_us: Int64s, marks: Int64s) -> int:
    """Walk both staircases: the latest j whose smallest time to come is below the mark at i."""
    best, i, smallest = 0, len(ts_us) - 1, ts_us[-1]
    for j in range(len(ts_us) - 1, -1, -1):
        smallest = min(smallest, ts_us[j])
        while i >= 0 and marks[i] > smallest:
            i -= 1
        best = max(best, j - (i + 1))
    return best


def interleaved(ts_us: Int64s) -> int:
    """The fewest non-descending sequences that interleave to this stream (Proposition 3.1)."""
    return Dealer().deal(ts_us)


class Dealer:
    """Deals a stream that comes in pieces onto sorted runs, first fit, keeping only their last times."""

    def __init__(self) -> None:
        self._tails = np.empty(64, dtype=np.int64)
        self._count = 0

    def deal(self, ts_us: Int64s) -> int:
        """Deal a piece; how many runs there are after it."""
        self._tails, self._count = _deal(np.ascontiguousarray(ts_us), self._tails, self._count)
        return self._count


@kernel
def _deal(ts_us: Int64s, tails: Int64s, count: int) -> tuple[Int64s, int]:
    """Tails descend strictly; each event goes to the first run whose tail is not above it."""
    last = 0
    for t in ts_us:
        if not (last < count and tails[last] <= t and (last == 0 or tails[last - 1] > t)):
            last = lower_bound_descending(tails, 0, count, t)
            if last == count:
                if count == len(tails):
                    more = np.empty(2 * count, dtype=np.int64)
                    more[:count] = tails
                    tails = more
                count += 1
        tails[last] = t
    return tails, count


def count_inversions(ts_us: Int64s) -> int:
    """Pairs of positions out of order, by a merge sort that uses two threads."""
    times = np.array(ts_us, dtype=np.int64)
    spare = np.empty_like(times)
    if len(times) <= _ALONE:
        return int(_sort_and_count(times, spare))
    half = len(times) // 2
    with ThreadPoolExecutor(2) as pool:
        left = pool.submit(_sort_and_count, times[:half], spare[:half])
        right = int(_sort_and_count(times[half:], spare[half:]))
        return left.result() + right + int(_count_across(times, half))


@kernel
def _insert(times: Int64s, start: int, stop: int) -> int:
    """Sort a short stretch by insertion; the number of steps is the number of inversions."""
    inversions = 0
    for i in range(start + 1, stop):
        t, j = times[i], i
        while j > start and times[j - 1] > t:
            times[j] = times[j - 1]
            j -= 1
        times[j] = t
        inversions += i - j
    return inversions


@kernel
def _merge(source: Int64s, target: Int64s, start: int, middle: int, stop: int) -> int:
    """Merge two sorted neighbours; each event taken from the right passes all that are left on the left."""
    if middle >= stop or source[middle - 1] <= source[middle]:
        target[start:stop] = source[start:stop]
        return 0
    i, j, inversions = start, middle, 0
    for k in range(start, stop):
        if j >= stop or (i < middle and source[i] <= source[j]):
            target[k] = source[i]
            i += 1
        else:
            target[k] = source[j]
            j += 1
            inversions += middle - i
    return inversions


@kernel
def _sort_and_count(times: Int64s, spare: Int64s) -> int:
    """Sort in place, bottom up; the number of inversions there were."""
    n, inversions, swapped = len(times), 0, False
    for start in range(0, n, _BASE):
        inversions += _insert(times, start, min(start + _BASE, n))
    width = _BASE
    source, target = times, spare
    while width < n:
        for start in range(0, n, 2 * width):
            inversions += _merge(source, target, start, min(start + width, n), min(start + 2 * width, n))
        source, target, swapped = target, source, not swapped
        width *= 2
    if swapped:
        times[:] = source
    return inversions


@kernel
def _count_across(times: Int64s, half: int) -> int:
    """Inversions between two sorted halves."""
    i, inversions = 0, 0
    for j in range(half, len(times)):
        while i < half and times[i] <= times[j]:
            i += 1
        inversions += half - i
    return inversions
