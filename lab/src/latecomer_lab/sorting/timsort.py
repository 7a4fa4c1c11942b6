"""Timsort on whole numbers, in place, as CPython describes it in `listsort.txt`.

1. Natural runs are found, descending ones turned round; short ones are extended by binary insertion to `minrun`.
2. Runs on the stack shrink: each is longer than the next two together, and longer than the next.
3. Before a merge, what is in place already is cut off by galloping; the shorter run goes to a spare array.
4. A merge gallops while that pays: `gallop[0]` is how many wins in a row it takes to begin.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from latecomer._jit import kernel
from latecomer.events import Int64s

_MINRUN = 64  # minrun lies between half of this and this
_MIN_GALLOP = 7
_DEPTH = 96  # more runs than can lie on the stack


class Work(NamedTuple):
    """The keys, room for the shorter run of a merge, the stack of runs, and the wins that make a merge gallop."""

    keys: Int64s
    spare: Int64s
    starts: Int64s
    lengths: Int64s
    gallop: Int64s


@kernel
def timsort(keys: Int64s) -> None:
    """Sort in place."""
    n, low, runs = len(keys), 0, 0
    starts, lengths = np.empty(_DEPTH, dtype=np.int64), np.empty(_DEPTH, dtype=np.int64)
    gallop = np.full(1, _MIN_GALLOP, dtype=np.int64)
    work = Work(keys, np.empty(n // 2 + 1, dtype=np.int64), starts, lengths, gallop)
    minrun = _shortest(n)
    while low < n:
        length = _natural_run(keys, low, n)
        if length < minrun:
            forced = min(minrun, n - low)
            _insert_binary(keys, low, low + length, low + forced)
            length = forced
        starts[runs], lengths[runs] = low, length
        runs = _collapse(work, runs + 1)
        low += length
    while runs > 1:
        at = runs - 2
        if at > 0 and lengths[at - 1] < lengths[at + 1]:
            at -= 1
        runs = _merge_at(work, runs, at)


@kernel
def _shortest(n: int) -> int:
    """A length such that n divided by it is a power of two or little less."""
    odd = 0
    while n >= _MINRUN:
        odd |= n & 1
        n >>= 1
    return n + odd


@kernel
def _natural_run(keys: Int64s, low: int, stop: int) -> int:
    """The length of the run that begins here; a strictly descending one is turned round."""
    high = low + 1
    if high >= stop:
        return 1
    if keys[high] >= keys[low]:
        while high < stop and keys[high] >= keys[high - 1]:
            high += 1
        return high - low
    while high < stop and keys[high] < keys[high - 1]:
        high += 1
    i, j = low, high - 1
    while i < j:
        keys[i], keys[j] = keys[j], keys[i]
        i, j = i + 1, j - 1
    return high - low


@kernel
def _insert_binary(keys: Int64s, low: int, start: int, stop: int) -> None:
    """Insert the keys from start to stop into the sorted ones before them."""
    for i in range(start, stop):
        key, left, right = keys[i], low, i
        while left < right:
            middle = (left + right) >> 1
            if key < keys[middle]:
                right = middle
            else:
                left = middle + 1
        for j in range(i, left, -1):
            keys[j] = keys[j - 1]
        keys[left] = key


@kernel
def _collapse(work: Work, runs: int) -> int:
    """Merge until the stack shrinks as it must; how many runs are left."""
    lengths = work.lengths
    while runs > 1:
        at = runs - 2
        third = at > 0 and lengths[at - 1] <= lengths[at] + lengths[at + 1]
        fourth = at > 1 and lengths[at - 2] <= lengths[at - 1] + lengths[at]
        if third or fourth:
            if lengths[at - 1] < lengths[at + 1]:
                at -= 1
        elif lengths[at] > lengths[at + 1]:
            return runs
        runs = _merge_at(work, runs, at)
    return runs


@kernel
def _merge_at(work: Work, runs: int, at: int) -> int:
    """Merge two neighbours on the stack; how many runs are left."""
    keys, starts, lengths = work.keys, work.starts, work.lengths
    low, middle = starts[at], starts[at + 1]
    stop = middle + lengths[at + 1]
    lengths[at] += lengths[at + 1]
    if at == runs - 3:
        starts[at + 1], lengths[at + 1] = starts[at + 2], lengths[at + 2]
    low += gallop_right(keys, low, middle, keys[middle], 0)
    if low < middle:
        stop = middle + gallop_left(keys, middle, stop, keys[middle - 1], stop - middle - 1)
        if stop > middle:
            if middle - low <= stop - middle:
                _merge_low(work, low, middle, stop)
            else:
                _merge_high(work, low, middle, stop)
    return runs - 1


@kernel
def gallop_right(keys: Int64s, start: int, stop: int, key: int, hint: int) -> int:
    """How many of the keys are not above this one; looks near the hint first, in steps that double."""
    n, step, last = stop - start, 1, 0
    if keys[start + hint] <= key:
        while hint + step < n and keys[start + hint + step] <= key:
            last, step = step, 2 * step + 1
        low, high = hint + last + 1, min(hint + step, n)
    else:
        while hint - step >= 0 and keys[start + hint - step] > key:
            last, step = step, 2 * step + 1
        low, high = max(hint - step + 1, 0), hint - last
    while low < high:
        middle = (low + high) >> 1
        if keys[start + middle] <= key:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def gallop_left(keys: Int64s, start: int, stop: int, key: int, hint: int) -> int:
    """How many of the keys are below this one; looks near the hint first, in steps that double."""
    n, step, last = stop - start, 1, 0
    if keys[start + hint] < key:
        while hint + step < n and keys[start + hint + step] < key:
            last, step = step, 2 * step + 1
        low, high = hint + last + 1, min(hint + step, n)
    else:
        while hint - step >= 0 and keys[start + hint - step] >= key:
            last, step = step, 2 * step + 1
        low, high = max(hint - step + 1, 0), hint - last
    while low < high:
        middle = (low + high) >> 1
        if keys[start + middle] < key:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def _copy(source: Int64s, start: int, target: Int64s, to: int, count: int) -> None:
    """Copy a stretch, the first key first."""
    for i in range(count):
        target[to + i] = source[start + i]


@kernel
def _merge_low(work: Work, low: int, middle: int, stop: int) -> None:
    """Merge from the left; the left run waits in the spare array."""
    keys, spare, gallop = work.keys, work.spare, work.gallop
    n = middle - low
    _copy(keys, low, spare, 0, n)
    i, j, k = 0, middle, low
    while i < n and j < stop:
        left = right = 0
        while i < n and j < stop and left < gallop[0] and right < gallop[0]:
            if keys[j] < spare[i]:
                keys[k] = keys[j]
                j, left, right = j + 1, 0, right + 1
            else:
                keys[k] = spare[i]
                i, left, right = i + 1, left + 1, 0
            k += 1
        while i < n and j < stop:
            left = gallop_right(spare, i, n, keys[j], 0)
            _copy(spare, i, keys, k, left)
            i, k = i + left, k + left
            if i == n:
                break
            right = gallop_left(keys, j, stop, spare[i], 0)
            _copy(keys, j, keys, k, right)
            j, k = j + right, k + right
            if left < _MIN_GALLOP and right < _MIN_GALLOP:
                gallop[0] += 2
                break
            gallop[0] = max(1, gallop[0] - 1)
    _copy(spare, i, keys, k, n - i)


@kernel
def _merge_high(work: Work, low: int, middle: int, stop: int) -> None:
    """Merge from the right; the right run waits in the spare array."""
    keys, spare, gallop = work.keys, work.spare, work.gallop
    n = stop - middle
    _copy(keys, middle, spare, 0, n)
    i, j, k = middle - 1, n - 1, stop - 1
    while i >= low and j >= 0:
        left = right = 0
        while i >= low and j >= 0 and left < gallop[0] and right < gallop[0]:
            if spare[j] < keys[i]:
                keys[k] = keys[i]
                i, left, right = i - 1, left + 1, 0
            else:
                keys[k] = spare[j]
                j, left, right = j - 1, 0, right + 1
            k -= 1
        while i >= low and j >= 0:
            left = i + 1 - low - gallop_right(keys, low, i + 1, spare[j], i - low)
            for _ in range(left):
                keys[k] = keys[i]
                i, k = i - 1, k - 1
            if i < low:
                break
            right = j + 1 - gallop_left(spare, 0, j + 1, keys[i], j)
            _copy(spare, j - right + 1, keys, k - right + 1, right)
            j, k = j - right, k - right
            if left < _MIN_GALLOP and right < _MIN_GALLOP:
                gallop[0] += 2
                break
            gallop[0] = max(1, gallop[0] - 1)
    _copy(spare, 0, keys, k - j, j + 1)
