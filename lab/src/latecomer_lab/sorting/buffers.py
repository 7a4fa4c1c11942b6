"""What all competitors share: events as two arrays, packed keys, and the merge into a sorted buffer.

The general way to make a sorting algorithm incremental (Impatience paper, section VI-B): new events wait unsorted; a
punctuation sorts them, merges them into the sorted buffer and gives the head of the result. The sorted buffer has two
sides: a merge reads one and writes the other, and what is due goes straight to the output, so that each event is
written once per merge. `take_in_from_end` is what the paper does not do: it merges in place, backwards, and stops once
the new events are placed, so that it reads no more of the buffer than they overtake.

Packed keys: (time - earliest time) << bits | position. They are unique, so that any sorting algorithm gives the
stable order, and they take 8 bytes where an event takes 24; payloads are moved once, when the order is known.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from latecomer._jit import kernel
from latecomer.errors import InputError, must
from latecomer.events import NEVER_US, Int64s

Records = npt.NDArray[Any]

# Places in `Sides.state`.
SIDE, HELD, MARK, START = range(4)


class Events(NamedTuple):
    """Times and one payload each."""

    ts_us: Int64s
    payload: Records


class Block(NamedTuple):
    """Sorted times, where each stood in the order of arrival, and the payloads in that order."""

    ts_us: Int64s
    order: Int64s
    payload: Records


class Sides(NamedTuple):
    """The sorted buffer: two sides of equal room; the state says which one holds how many from where, and the mark."""

    first: Events
    second: Events
    state: Int64s


def nothing(dtype: npt.DTypeLike) -> Events:
    """No events."""
    return Events(np.empty(0, dtype=np.int64), np.empty(0, dtype=dtype))


def new_sides(dtype: npt.DTypeLike) -> Sides:
    """An empty buffer."""
    return Sides(nothing(dtype), nothing(dtype), np.array([0, 0, NEVER_US, 0], dtype=np.int64))


def with_room(sides: Sides, more: int) -> Sides:
    """The same buffer, with twice the room that more events need."""
    held, room_now = int(sides.state[HELD]), len(sides.first.ts_us)
    if 2 * (held + more) <= room_now:
        return sides
    size = max(2 * room_now, 2 * (held + more), 1_024)
    dtype = sides.first.payload.dtype
    new = [Events(np.empty(size, dtype=np.int64), np.empty(size, dtype=dtype)) for _ in range(2)]
    source = sides.second if sides.state[SIDE] else sides.first
    target, start = new[int(sides.state[SIDE])], int(sides.state[START])
    target.ts_us[:held] = source.ts_us[start : start + held]
    target.payload[:held] = source.payload[start : start + held]
    sides.state[START] = 0
    return Sides(new[0], new[1], sides.state)


def joined(parts: list[Events]) -> Events:
    """Events one after another."""
    if len(parts) == 1:
        return parts[0]
    return Events(np.concatenate([part.ts_us for part in parts]), np.concatenate([part.payload for part in parts]))


def pack(ts_us: Int64s) -> tuple[Int64s, int, int]:
    """Keys, the earliest time and the bits of a position."""
    keys = np.empty(len(ts_us), dtype=np.int64)
    base, bits = pack_into(ts_us, keys)
    if bits < 0:
        advice = "sort fewer events at once"
        raise InputError(must("packed keys", "fit into 63 bits", f"{len(ts_us)} events", advice))
    return keys, base, bits


@kernel
def pack_into(ts_us: Int64s, keys: Int64s) -> tuple[int, int]:
    """Pack times; bits are -1 where times lie too far apart."""
    if len(ts_us) == 0:
        return 0, 0
    base = last = ts_us[0]
    for t in ts_us:
        base, last = min(base, t), max(last, t)
    bits = 0
    while (1 << bits) < len(ts_us):
        bits += 1
    if (last - base) >> (63 - bits):
        return base, -1
    for i in range(len(ts_us)):
        keys[i] = ((ts_us[i] - base) << bits) | i
    return base, bits


@kernel
def unpack_into(keys: Int64s, base: int, bits: int, ts_us: Int64s, order: Int64s) -> None:
    """Take sorted keys apart; `order` may be the keys themselves."""
    mask = (1 << bits) - 1
    for i in range(len(keys)):
        key = keys[i]
        ts_us[i] = (key >> bits) + base
        order[i] = key & mask


@kernel
def gather(order: Int64s, source: Records, target: Records) -> None:
    """Put payloads in order."""
    for i in range(len(order)):
        target[i] = source[order[i]]


@kernel
def first_after(ts_us: Int64s, bound_us: int) -> int:
    """How many of these sorted times are not after a bound."""
    low, high = 0, len(ts_us)
    while low < high:
        middle = (low + high) >> 1
        if ts_us[middle] <= bound_us:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def room(array: Any, size: int) -> Any:
    """The same array, grown."""
    grown = np.empty(size, dtype=array.dtype)
    for i in range(len(array)):
        grown[i] = array[i]
    return grown


@kernel
def _with_output_room(out: Events, filled: int, more: int) -> Events:
    if filled + more <= len(out.ts_us):
        return out
    size = max(filled + more, 2 * len(out.ts_us)) if filled else more
    return Events(room(out.ts_us[:filled], size), room(out.payload[:filled], size))


@kernel
def take_in(sides: Sides, block: Block, punctuation_us: int, out: Events, filled: int) -> tuple[Events, int]:
    """Merge a block into the buffer; what is due goes to the output, which grows where it must."""
    side, held = sides.state[SIDE], sides.state[HELD]
    source, target = (sides.second, sides.first) if side else (sides.first, sides.second)
    due_old, new = first_after(source.ts_us[:held], punctuation_us), first_after(block.ts_us, punctuation_us)
    due, rest = due_old + new, held - due_old + len(block.ts_us) - new
    out = _with_output_room(out, filled, due)
    _merge(source, (0, due_old), block, (0, new), out, filled)
    _merge(source, (due_old, held), block, (new, len(block.ts_us)), target, 0)
    sides.state[SIDE], sides.state[HELD] = 1 - side, rest
    return out, filled + due


@kernel
def _merge(old: Events, old_span: tuple[int, int], block: Block, span: tuple[int, int], target: Events, k: int) -> None:
    """Merge a stretch of the buffer and one of the block; where times are equal the buffer's came first."""
    i, old_stop = old_span
    j, stop = span
    while i < old_stop and j < stop:
        if block.ts_us[j] < old.ts_us[i]:
            target.ts_us[k], target.payload[k] = block.ts_us[j], block.payload[block.order[j]]
            j += 1
        else:
            target.ts_us[k], target.payload[k] = old.ts_us[i], old.payload[i]
            i += 1
        k += 1
    while i < old_stop:
        target.ts_us[k], target.payload[k] = old.ts_us[i], old.payload[i]
        i, k = i + 1, k + 1
    while j < stop:
        target.ts_us[k], target.payload[k] = block.ts_us[j], block.payload[block.order[j]]
        j, k = j + 1, k + 1


@kernel
def take_in_from_end(sides: Sides, block: Block, punctuation_us: int, out: Events, filled: int) -> tuple[Events, int]:
    """As `take_in`, on one side and in place."""
    start, held, buffer = sides.state[START], sides.state[HELD], sides.first
    due_old = first_after(buffer.ts_us[start : start + held], punctuation_us)
    new = first_after(block.ts_us, punctuation_us)
    out = _with_output_room(out, filled, due_old + new)
    _merge(buffer, (start, start + due_old), block, (0, new), out, filled)
    start, held, more = start + due_old, held - due_old, len(block.ts_us) - new
    if start + held + more > len(buffer.ts_us):
        for i in range(held):
            buffer.ts_us[i], buffer.payload[i] = buffer.ts_us[start + i], buffer.payload[start + i]
        start = 0
    _insert_from_end(buffer, start, start + held, block, new)
    sides.state[START], sides.state[HELD] = start, held + more
    return out, filled + due_old + new


@kernel
def _insert_from_end(buffer: Events, start: int, stop: int, block: Block, first: int) -> None:
    """Merge the block from position `first` on into the buffer, the latest event first."""
    i, j = stop - 1, len(block.ts_us) - 1
    while j >= first:
        k = i + 1 + j - first
        if i >= start and buffer.ts_us[i] > block.ts_us[j]:
            buffer.ts_us[k], buffer.payload[k] = buffer.ts_us[i], buffer.payload[i]
            i -= 1
        else:
            buffer.ts_us[k], buffer.payload[k] = block.ts_us[j], block.payload[block.order[j]]
            j -= 1
