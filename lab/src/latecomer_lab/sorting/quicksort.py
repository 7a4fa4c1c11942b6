"""Quicksort on whole numbers, in place: ninther, Hoare's partition, insertion at the leaves.

Hoare's partition hardly moves anything in nearly sorted data and its branches are then foreseen, which makes it
adaptive, as the Impatience paper observes (section VI-B).
"""

from __future__ import annotations

import numpy as np

from latecomer._jit import kernel
from latecomer.events import Int64s

_LEAF = 24  # up to this length, by insertion
_LONG = 512  # from this length on, the pivot is the median of three medians


@kernel
def quicksort(keys: Int64s) -> None:
    """Sort in place; the longer part waits, so that the stack stays short."""
    waiting = np.empty(128, dtype=np.int64)
    depth, low, high = 0, 0, len(keys) - 1
    while True:
        while high - low >= _LEAF:
            split = _partition(keys, low, high)
            if split - low < high - split - 1:
                waiting[depth], waiting[depth + 1] = split + 1, high
                high = split
            else:
                waiting[depth], waiting[depth + 1] = low, split
                low = split + 1
            depth += 2
        insertion_sort(keys, low, high + 1)
        if depth == 0:
            return
        depth -= 2
        low, high = waiting[depth], waiting[depth + 1]


@kernel
def insertion_sort(keys: Int64s, start: int, stop: int) -> None:
    """Sort a short stretch."""
    for i in range(start + 1, stop):
        key, j = keys[i], i
        while j > start and keys[j - 1] > key:
            keys[j] = keys[j - 1]
            j -= 1
        keys[j] = key


@kernel
def _partition(keys: Int64s, low: int, high: int) -> int:
    """Part a stretch; the last position of the lower part."""
    pivot = _pivot(keys, low, high)
    i, j = low - 1, high + 1
    while True:
        i += 1
        while keys[i] < pivot:
            i += 1
        j -= 1
        while keys[j] > pivot:
            j -= 1
        if i >= j:
            return j
        keys[i], keys[j] = keys[j], keys[i]


@kernel
def _pivot(keys: Int64s, low: int, high: int) -> int:
    """The median of three keys, or of three such medians."""
    middle = (low + high) >> 1
    if high - low < _LONG:
        return _median(keys[low], keys[middle], keys[high])
    step = (high - low) >> 3
    first = _median(keys[low], keys[low + step], keys[low + 2 * step])
    second = _median(keys[middle - step], keys[middle], keys[middle + step])
    third = _median(keys[high - 2 * step], keys[high - step], keys[high])
    return _median(first, second, third)


@kernel
def _median(one: int, two: int, three: int) -> int:
    """The middle one of three."""
    return max(min(one, two), min(max(one, two), three))
