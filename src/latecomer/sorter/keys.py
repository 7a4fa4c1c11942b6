"""Times as packed keys, and keys put in order by numpy's vectorised sort."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from latecomer._jit import bare_kernel
from latecomer.events import Int64s
from latecomer.sorter.runs import Packing

ROW = 4_096  # so many keys at once are sorted fastest, being near
LOOK = 64  # times are looked over in pieces of so many
SPREAD_FROM = 500_000  # so many keys are spread over stretches of time before they are sorted
_MOST_STRETCHES = 11  # bits; more than so many places at once cannot be written to without missing the cache
MOST_MOVES = 2  # where stitching moves a key more often on average, sorting all of them is faster


class Span(NamedTuple):
    """What one look at times finds: smallest, largest, how many descents, how far below the largest so far.

    The last is found for pieces of a few events, each as late as its latest, so it may be a little too much.
    """

    low_us: int
    high_us: int
    descents: int
    depth_us: int

    def joined(self, other: Span) -> Span:
        """Of two pieces together."""
        low_us, high_us = min(self.low_us, other.low_us), max(self.high_us, other.high_us)
        depth_us = max(self.depth_us, other.depth_us, self.high_us - other.low_us)
        return Span(low_us, high_us, self.descents + other.descents, depth_us)

    def local(self, count: int) -> bool:
        """Whether no event stands more than about a row from its place, if they come at an even rate."""
        return count > 2 * ROW and self.depth_us * count < ROW * (self.high_us - self.low_us)


class Stretches(NamedTuple):
    """Time from a moment on, cut into stretches of 1 << shift."""

    low_us: int
    shift: int


def look_over(ts_us: Int64s) -> Span:
    """Look at times once; there is at least one."""
    low_us, high_us, descents, depth_us = _look_over(ts_us)
    return Span(int(low_us), int(high_us), int(descents), int(depth_us))


@bare_kernel
def _look_over(ts_us: Int64s) -> tuple[int, int, int, int]:
    low, high, descents, depth = ts_us[0], ts_us[0], 0, 0
    for start in range(0, len(ts_us), LOOK):
        stop = min(len(ts_us), start + LOOK)
        piece_low, piece_high = ts_us[start], ts_us[start]
        for i in range(start, stop):
            piece_low = min(piece_low, ts_us[i])
            piece_high = max(piece_high, ts_us[i])
        for i in range(max(start, 1), stop):
            descents += ts_us[i] < ts_us[i - 1]
        low, high = min(low, piece_low), max(high, piece_high)
        depth = max(depth, high - piece_low)
    return low, high, descents, depth


def pack_keys(ts_us: Int64s, first: int, packing: Packing) -> Int64s:
    """Times, numbered from `first` on, as packed keys."""
    keys = np.empty_like(ts_us)
    _pack_keys(ts_us, first, packing, keys)
    return keys


@bare_kernel
def _pack_keys(ts_us: Int64s, first: int, packing: Packing, keys: Int64s) -> None:
    for i in range(len(ts_us)):
        keys[i] = ((ts_us[i] - packing.base_us) << packing.bits) | (first + i)


def spread_keys(ts_us: Int64s, first: int, packing: Packing, span: Span) -> Int64s:
    """Times, numbered from `first` on, as packed keys in order: by stretches of time, each of which is sorted then."""
    width = (span.high_us - span.low_us).bit_length()
    shift = max(0, width - min(_MOST_STRETCHES, (len(ts_us) // ROW).bit_length()))
    stretches = Stretches(span.low_us, shift)
    stops = np.zeros((span.high_us - span.low_us >> shift) + 1, dtype=np.int64)
    _count_stretches(ts_us, stretches, stops)
    stops = np.cumsum(stops)
    starts = np.concatenate([[0], stops[:-1]])
    keys = np.empty_like(ts_us)
    _spread(ts_us, first, packing, stretches, starts.copy(), keys)
    for start, stop in zip(starts.tolist(), stops.tolist(), strict=True):
        keys[start:stop].sort()
    return keys


@bare_kernel
def _count_stretches(ts_us: Int64s, stretches: Stretches, counts: Int64s) -> None:
    for i in range(len(ts_us)):
        counts[np.uint64((ts_us[i] - stretches.low_us) >> stretches.shift)] += 1


@bare_kernel
def _spread(ts_us: Int64s, first: int, packing: Packing, stretches: Stretches, places: Int64s, keys: Int64s) -> None:
    for i in range(len(ts_us)):
        stretch = np.uint64((ts_us[i] - stretches.low_us) >> stretches.shift)
        keys[np.uint64(places[stretch])] = ((ts_us[i] - packing.base_us) << packing.bits) | (first + i)
        places[stretch] += 1


def sort_keys(keys: Int64s, local: bool) -> None:
    """Put keys in order, in place. Where disorder is `local`, row by row, which are stitched together then."""
    if local:
        whole = len(keys) // ROW * ROW
        keys[:whole].reshape(-1, ROW).sort(axis=1)
        keys[whole:].sort()
        if _stitch(keys, np.empty(ROW, dtype=np.int64)):
            return
    keys.sort()


@bare_kernel
def _stitch(keys: Int64s, spare: Int64s) -> bool:
    """Merge rows that are in order, each with what stands before it; gives up where that moves too many keys."""
    moves, most = 0, MOST_MOVES * len(keys)
    for middle in range(ROW, len(keys), ROW):
        stop = min(len(keys), middle + ROW)
        while stop > middle and keys[stop - 1] > keys[middle - 1]:
            stop -= 1
        right = stop - middle
        for i in range(right):
            spare[i] = keys[middle + i]
        left = middle - 1
        to = stop - 1
        while right > 0:
            if left >= 0 and keys[left] > spare[right - 1]:
                keys[to] = keys[left]
                left -= 1
            else:
                keys[to] = spare[right - 1]
                right -= 1
            to -= 1
        moves += stop - 1 - to
        if moves > most:
            return False
    return True
