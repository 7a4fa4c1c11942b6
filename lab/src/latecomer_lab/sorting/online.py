"""Competitors as objects with `push` and `finish`, like the sorter: online with two buffers, or offline.

The loop over the punctuations of a push is compiled for the scalar sorts and Python for those of libraries.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np

from latecomer._jit import kernel
from latecomer.events import FOREVER_US, Int64s
from latecomer_lab.sorting.buffers import (
    MARK,
    Block,
    Events,
    Records,
    Sides,
    gather,
    joined,
    new_sides,
    nothing,
    pack,
    pack_into,
    take_in,
    take_in_from_end,
    unpack_into,
    with_room,
)
from latecomer_lab.sorting.patience import patience
from latecomer_lab.sorting.quicksort import quicksort
from latecomer_lab.sorting.timsort import timsort

QUICKSORT, TIMSORT, PATIENCE = range(3)

Sort = Callable[[Int64s], tuple[Int64s, Int64s]]  # times to sorted times and where each stood, stable


class Offline:
    """Keeps what comes and sorts it at the end."""

    def __init__(self, sort: Sort) -> None:
        self._sort = sort
        self._parts: list[Events] = []

    def push(self, ts_us: Int64s, payload: Records) -> Events:
        """Take events in; nothing leaves."""
        self._parts.append(Events(ts_us, payload))
        return nothing(payload.dtype)

    def finish(self) -> Events:
        """Sort all; the payload is moved once."""
        arrived = joined(self._parts)
        ts_us, order = self._sort(arrived.ts_us)
        payload = np.empty_like(arrived.payload)
        gather(order, arrived.payload, payload)
        return Events(ts_us, payload)


class Buffered(ABC):
    """What the online forms share: a sorted buffer, and events that wait for the next punctuation."""

    def __init__(self, latency_us: int, every: int, from_end: bool) -> None:
        self._latency_us = latency_us
        self._every = every
        self._from_end = from_end
        self._take_in = take_in_from_end if from_end else take_in
        self._waiting: Events | None = None
        self._sides: Sides | None = None

    def push(self, ts_us: Int64s, payload: Records) -> Events:
        """Take events in; what left."""
        came = Events(ts_us, payload)
        if self._waiting is not None and len(self._waiting.ts_us):
            came = joined([self._waiting, came])
        whole = len(came.ts_us) // self._every * self._every
        self._waiting = Events(came.ts_us[whole:], came.payload[whole:])
        self._sides = with_room(self._sides or new_sides(payload.dtype), whole)
        return self._take_in_all(self._sides, Events(came.ts_us[:whole], came.payload[:whole]))

    def finish(self) -> Events:
        """All that is left."""
        assert self._sides is not None
        assert self._waiting is not None
        sides, last = with_room(self._sides, len(self._waiting.ts_us)), self._waiting
        block = Block(*self._sorted(last.ts_us), last.payload)
        return trimmed(self._take_in(sides, block, FOREVER_US, nothing(last.payload.dtype), 0))

    @abstractmethod
    def _sorted(self, ts_us: Int64s) -> tuple[Int64s, Int64s]:
        """Times in order, and where each stood."""

    @abstractmethod
    def _take_in_all(self, sides: Sides, came: Events) -> Events:
        """Sort and merge whole blocks; what left."""


class Compiled(Buffered):
    """A scalar sort on packed keys; a push is one compiled loop."""

    def __init__(self, latency_us: int, every: int, which: int, *, from_end: bool = False) -> None:
        super().__init__(latency_us, every, from_end)
        self._which = which

    def _sorted(self, ts_us: Int64s) -> tuple[Int64s, Int64s]:
        return sort_packed(ts_us, self._which)

    def _take_in_all(self, sides: Sides, came: Events) -> Events:
        each = (self._every, self._latency_us)
        return trimmed(_take_in_all(sides, came, each, self._which, self._from_end))


class Called(Buffered):
    """A library's sort, called once per punctuation."""

    def __init__(self, latency_us: int, every: int, sort: Sort, *, from_end: bool = False) -> None:
        super().__init__(latency_us, every, from_end)
        self._sort = sort

    def _sorted(self, ts_us: Int64s) -> tuple[Int64s, Int64s]:
        return self._sort(ts_us)

    def _take_in_all(self, sides: Sides, came: Events) -> Events:
        out, filled = nothing(came.payload.dtype), 0
        for start in range(0, len(came.ts_us), self._every):
            stop = start + self._every
            block = Block(*self._sort(came.ts_us[start:stop]), came.payload[start:stop])
            sides.state[MARK] = max(sides.state[MARK], block.ts_us[-1])
            out, filled = self._take_in(sides, block, sides.state[MARK] - self._latency_us, out, filled)
        return trimmed((out, filled))


def trimmed(found: tuple[Events, int]) -> Events:
    """Output without the room behind it."""
    (ts_us, payload), filled = found
    return Events(ts_us[:filled], payload[:filled])


def sort_packed(ts_us: Int64s, which: int) -> tuple[Int64s, Int64s]:
    """Sort times by one of the scalar sorts: the sorted times and where each stood."""
    keys, base, bits = pack(ts_us)
    sort_keys(keys, which)
    return unpacked(keys, base, bits)


def unpacked(keys: Int64s, base: int, bits: int) -> tuple[Int64s, Int64s]:
    """Sorted keys as times and positions."""
    ts_us = np.empty_like(keys)
    unpack_into(keys, base, bits, ts_us, keys)
    return ts_us, keys


@kernel
def sort_keys(keys: Int64s, which: int) -> None:
    """Sort whole numbers in place."""
    if which == QUICKSORT:
        quicksort(keys)
    elif which == TIMSORT:
        timsort(keys)
    else:
        patience(keys)


@kernel
def _take_in_all(sides: Sides, came: Events, each: tuple[int, int], which: int, from_end: bool) -> tuple[Events, int]:
    """Sort and merge block after block, each of so many events and with this latency; what left, and how much."""
    every, latency_us = each
    out, filled = Events(np.empty(every, np.int64), np.empty(every, came.payload.dtype)), 0
    keys, ts_us = np.empty(every, np.int64), np.empty(every, np.int64)
    for start in range(0, len(came.ts_us), every):
        arrived = came.ts_us[start : start + every]
        base, bits = pack_into(arrived, keys)
        if bits < 0:
            raise OverflowError("times lie too far apart to be packed")
        sort_keys(keys, which)
        unpack_into(keys, base, bits, ts_us, keys)
        sides.state[MARK] = max(sides.state[MARK], ts_us[every - 1])
        block = Block(ts_us, keys, came.payload[start : start + every])
        punctuation_us = sides.state[MARK] - latency_us
        if from_end:
            out, filled = take_in_from_end(sides, block, punctuation_us, out, filled)
        else:
            out, filled = take_in(sides, block, punctuation_us, out, filled)
    return out, filled
