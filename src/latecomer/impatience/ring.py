"""Payloads that wait: written once, read once, found by their number.

A number's place is its low bits. What lies before the oldest number that may still be wanted is overwritten.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from latecomer._jit import bare_kernel
from latecomer.events import Int64s
from latecomer.impatience.runs import Cells, Packing

TOGETHER = 4096  # so many numbers share one note of when they are no longer wanted


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

    def __init__(self) -> None:
        self._cells: Cells = np.empty(0)
        self._first, self._mask = 0, -1

    def __len__(self) -> int:
        """After so many numbers places repeat."""
        return 1 if self._mask < 0 else len(self._cells)

    def put(self, first: int, cells: Cells, oldest: int) -> None:
        """Keep payloads under the numbers from `first` on; none below `oldest` is wanted any more."""
        if oldest == first and (self._mask < 0 or len(cells) > len(self._cells)):
            self._cells, self._first, self._mask = cells, first, -1
            return
        size = len(cells)
        if self._mask < 0 or first + size - oldest > len(self._cells):
            self._grow(first + size - oldest, oldest, first)
        at = first & self._mask
        before_end = min(size, len(self._cells) - at)
        self._cells[at : at + before_end] = cells[:before_end]
        self._cells[: size - before_end] = cells[before_end:]

    def _grow(self, size: int, oldest: int, stop: int) -> None:
        more = np.empty(max(1024, 1 << (2 * size - 1).bit_length()), dtype=self._cells.dtype)
        numbers = np.arange(oldest, stop)
        more[numbers & (len(more) - 1)] = self._cells[(numbers - self._first) & self._mask]
        self._cells, self._first, self._mask = more, 0, len(more) - 1

    def lessen(self, less: int) -> None:
        """Numbers are counted from later on."""
        if self._mask < 0:
            self._first -= less

    def take(self, numbers: Int64s) -> Cells:
        """The payloads of these numbers."""
        return np.take(self._cells, (numbers - self._first) & self._mask, mode="clip")

    def take_packed(self, keys: Int64s, packing: Packing) -> tuple[Int64s, Cells]:
        """Times and payloads of packed keys."""
        return take_packed(keys, packing, self._cells, self._first, self._mask)


def take_packed(keys: Int64s, packing: Packing, cells: Cells, first: int, mask: int) -> tuple[Int64s, Cells]:
    """Times and payloads of packed keys, where number `first` stands first in `cells`."""
    ts_us, taken = np.empty_like(keys), np.empty(len(keys), dtype=cells.dtype)
    _take_packed(keys, packing, cells, first, mask, ts_us, taken)
    return ts_us, taken


@bare_kernel
def _take_packed(
    keys: Int64s, packing: Packing, cells: Cells, first: int, mask: int, ts_us: Int64s, taken: Cells
) -> None:
    number = (1 << packing.bits) - 1
    for i in range(len(keys)):
        key = keys[i]
        ts_us[i] = (key >> packing.bits) + packing.base_us
        taken[i] = cells[((key & number) - first) & mask]
