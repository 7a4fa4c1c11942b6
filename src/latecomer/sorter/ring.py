"""Payloads that wait: written once, read once, found by their number.

A number's place is its low bits. What lies before the oldest number that may still be wanted is overwritten.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from latecomer._jit import bare_kernel
from latecomer.events import Int64s
from latecomer.sorter.runs import Cells, Packing

TOGETHER = 4096  # so many numbers share one note of when they are no longer wanted


class Fresh(NamedTuple):
    """The payloads of a batch that has just come, and the first of their numbers."""

    cells: Cells
    first: int


class Waiting(NamedTuple):
    """Payloads that wait: that of a number stands at (number - first) & mask."""

    cells: Cells
    first: int
    mask: int


class Numbers:
    """Numbers events in the order of their arrival, and knows which may still be held."""

    def __init__(self) -> None:
        self.next = 0
        self._notes: deque[tuple[int, int]] = deque()  # first number of a stretch, the largest time in it

    def take(self, count: int, until_us: int) -> int:
        """Number some events, all of which leave when the punctuation passes `until_us`; gives the first number."""
        first = self.next
        self.next += count
        if self._notes and first - self._notes[-1][0] < TOGETHER:
            start, before_us = self._notes.pop()
            self._notes.append((start, max(before_us, until_us)))
        else:
            self._notes.append((first, until_us))
        return first

    def oldest(self, floor_us: int) -> int:
        """The oldest number that may still be held."""
        while self._notes and self._notes[0][1] <= floor_us:
            self._notes.popleft()
        return self._notes[0][0] if self._notes else self.next

    def lessen(self, less: int) -> None:
        """Count all numbers from later on."""
        self.next -= less
        self._notes = deque((first - less, until_us) for first, until_us in self._notes)


class Ring:
    """Payloads by number. The first ones to come are not even copied: they are read where they are."""

    def __init__(self, dtype: npt.DTypeLike) -> None:
        self._waiting = Waiting(np.empty(0, dtype=dtype), 0, -1)

    def __len__(self) -> int:
        """After so many numbers places repeat."""
        return 1 if self._waiting.mask < 0 else len(self._waiting.cells)

    def put(self, first: int, cells: Cells, oldest: int) -> None:
        """Keep payloads under the numbers from `first` on; none below `oldest` is wanted any more."""
        if oldest > first:  # all of them came too late
            return
        if oldest == first and (self._waiting.mask < 0 or len(cells) > len(self._waiting.cells)):
            self._waiting = Waiting(cells, first, -1)
            return
        size = len(cells)
        self._reserve(first + size - oldest, oldest, first)
        room, _, mask = self._waiting
        at = first & mask
        before_end = min(size, len(room) - at)
        room[at : at + before_end] = cells[:before_end]
        room[: size - before_end] = cells[before_end:]

    def put_some(self, keys: Int64s, packing: Packing, first: int, cells: Cells, oldest: int) -> None:
        """As `put`, of a batch the payloads with these keys only."""
        if 2 * len(keys) > len(cells):
            self.put(first, cells, oldest)
        elif len(keys):
            self._reserve(first + len(cells) - oldest, oldest, first)
            _put_some(keys, packing, first, cells, self._waiting.cells)

    def _reserve(self, size: int, oldest: int, stop: int) -> None:
        """Make room for so many from the oldest on; there are some already, up to `stop`."""
        cells, first, mask = self._waiting
        if mask >= 0 and size <= len(cells):
            return
        more = np.empty(max(1024, 1 << (2 * size - 1).bit_length()), dtype=cells.dtype)
        if mask < 0:
            stop = min(stop, first + len(cells))  # later ones have all left
        if oldest < stop:
            numbers = np.arange(oldest, stop)
            more[numbers & (len(more) - 1)] = cells[(numbers - first) & mask]
        self._waiting = Waiting(more, 0, len(more) - 1)

    def lessen(self, less: int) -> None:
        """Numbers are counted from later on."""
        if self._waiting.mask < 0:
            self._waiting = self._waiting._replace(first=self._waiting.first - less)

    def take(self, numbers: Int64s) -> Cells:
        """The payloads of these numbers."""
        cells, first, mask = self._waiting
        return np.take(cells, (numbers - first) & mask, mode="clip")

    def take_packed(
        self, pieces: tuple[Int64s, Int64s], packing: Packing, fresh: Fresh | None = None
    ) -> tuple[Int64s, Cells]:
        """Times and payloads of packed keys, in two pieces; those of a fresh batch are read where they are."""
        size = len(pieces[0]) + len(pieces[1])
        ts_us, taken = np.empty(size, dtype=np.int64), np.empty(size, dtype=self._waiting.cells.dtype)
        at = 0
        for keys in filter(len, pieces):
            to_us, to = ts_us[at:], taken[at:]
            if fresh is None:
                _take_waiting(keys, packing, self._waiting, to_us, to)
            else:
                _take_either(keys, packing, self._waiting, fresh, to_us, to)
            at += len(keys)
        return ts_us, taken


@bare_kernel
def _take_waiting(keys: Int64s, packing: Packing, waiting: Waiting, ts_us: Int64s, taken: Cells) -> None:
    """Times and payloads of packed keys, all of which have waited."""
    number_bits = (1 << packing.bits) - 1
    for i in range(len(keys)):
        key = keys[i]
        ts_us[i] = (key >> packing.bits) + packing.base_us
        number = key & number_bits
        taken[i] = waiting.cells[np.uint64((number - waiting.first) & waiting.mask)]


@bare_kernel
def _take_either(keys: Int64s, packing: Packing, waiting: Waiting, fresh: Fresh, ts_us: Int64s, taken: Cells) -> None:
    """As `_take_waiting`; the payloads of a fresh batch are read where they are."""
    number_bits = (1 << packing.bits) - 1
    for i in range(len(keys)):
        key = keys[i]
        ts_us[i] = (key >> packing.bits) + packing.base_us
        number = key & number_bits
        if number >= fresh.first:
            taken[i] = fresh.cells[np.uint64(number - fresh.first)]
        else:
            taken[i] = waiting.cells[np.uint64((number - waiting.first) & waiting.mask)]


@bare_kernel
def _put_some(keys: Int64s, packing: Packing, first: int, cells: Cells, ring: Cells) -> None:
    number_bits, mask = (1 << packing.bits) - 1, len(ring) - 1
    for i in range(len(keys)):
        number = keys[i] & number_bits
        ring[np.uint64(number & mask)] = cells[np.uint64(number - first)]
