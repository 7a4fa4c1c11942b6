"""Patience sort on whole numbers, in place: deal onto runs by binary search, merge neighbours two at a time.

This is the algorithm that Impatience sort is built on, without Huffman merge and speculative run selection
(Impatience paper, section III-B).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from latecomer._jit import kernel
from latecomer.events import Int64s
from latecomer_lab.sorting.buffers import room

_FEW = 16  # room for so many runs at first

Int32s = npt.NDArray[np.int32]


@kernel
def patience(keys: Int64s) -> None:
    """Sort in place."""
    run = np.empty(len(keys), dtype=np.int32)
    sizes = _deal(keys, run)
    runs, flipped = len(sizes), True
    if runs < 2:
        return
    stops = np.zeros(runs + 1, dtype=np.int64)
    for i in range(runs - 1):
        stops[i + 2] = stops[i + 1] + sizes[i]
    spare = np.empty_like(keys)
    for i in range(len(keys)):
        at = stops[run[i] + 1]
        spare[at] = keys[i]
        stops[run[i] + 1] = at + 1
    while runs > 1:
        runs = _merge_neighbours(spare, keys, stops, runs) if flipped else _merge_neighbours(keys, spare, stops, runs)
        flipped = not flipped
    if flipped:
        for i in range(len(keys)):
            keys[i] = spare[i]


@kernel
def _deal(keys: Int64s, run: Int32s) -> Int64s:
    """Number each key's run, the first whose tail is not above it; how many keys each run has."""
    tails, sizes, count = np.empty(_FEW, dtype=np.int64), np.empty(_FEW, dtype=np.int64), 0
    for i in range(len(keys)):
        key, low, high = keys[i], 0, count
        while low < high:
            middle = (low + high) >> 1
            if tails[middle] <= key:
                high = middle
            else:
                low = middle + 1
        if low == count:
            if count == len(tails):
                tails, sizes = room(tails, 2 * count), room(sizes, 2 * count)
            sizes[low] = 0
            count += 1
        tails[low], run[i] = key, low
        sizes[low] += 1
    return sizes[:count]


@kernel
def _merge_neighbours(source: Int64s, target: Int64s, stops: Int64s, runs: int) -> int:
    """Merge runs 0 and 1, 2 and 3, and so on; run i ends at stops[i + 1]. How many are left."""
    left = 0
    for i in range(0, runs - 1, 2):
        merge_keys(source, target, stops[i], stops[i + 1], stops[i + 2])
        left += 1
        stops[left] = stops[i + 2]
    if runs & 1:
        for at in range(stops[left], stops[runs]):
            target[at] = source[at]
        left += 1
        stops[left] = stops[runs]
    return left


@kernel
def merge_keys(source: Int64s, target: Int64s, start: int, middle: int, stop: int) -> None:
    """Merge two sorted neighbours into the same place of another array."""
    i, j, k = start, middle, start
    while i < middle and j < stop:
        one, two = source[i], source[j]
        first = one <= two
        target[k] = one if first else two
        i, j, k = i + first, j + (not first), k + 1
    rest = i if i < middle else j
    for at in range(rest, middle if i < middle else stop):
        target[k] = source[at]
        k += 1
