"""A binary heap that sorts a stream: push each event, at a punctuation pop what is due.

1. A node is two numbers, the event's time and its turn: the arrival number above the slot of the payload. Nodes are
   compared by both, so that equal times leave in order of arrival. Payloads stay in their slots until they leave.
2. A pop walks the path of smaller children to a leaf and lets the last node rise from there (Floyd's way): the last
   node nearly always belongs near the leaves.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from latecomer._jit import kernel
from latecomer.events import FOREVER_US, NEVER_US, Int64s
from latecomer_lab.sorting.buffers import Events, Records, room

_SLOT_BITS = 28  # 268 million events held, 34 billion in all
_SLOT_MASK = (1 << _SLOT_BITS) - 1


class Heap(NamedTuple):
    """Nodes (time and turn, one after the other), free slots, payloads by slot; counts are held, arrived, mark."""

    nodes: Int64s
    free: Int64s
    payload: Records
    counts: Int64s


class HeapSorter:
    """Sorts a stream with a heap; without `every` nothing leaves before the end."""

    def __init__(self, latency_us: int, every: int | None) -> None:
        self._latency_us = latency_us
        self._every = every or FOREVER_US
        self._heap: Heap | None = None

    def push(self, ts_us: Int64s, payload: Records) -> Events:
        """Take events in; what left."""
        heap = self._with_room(len(ts_us), payload)
        return Events(*_push(heap, ts_us, payload, self._every, self._latency_us))

    def finish(self) -> Events:
        """All that is left."""
        assert self._heap is not None
        held = int(self._heap.counts[0])
        out = Events(np.empty(held, dtype=np.int64), np.empty(held, dtype=self._heap.payload.dtype))
        _pop_all(self._heap, out.ts_us, out.payload)
        return out

    def _with_room(self, more: int, payload: Records) -> Heap:
        heap = self._heap
        if heap is None:
            counts = np.array([0, 0, NEVER_US], dtype=np.int64)
            nothing = np.empty(0, dtype=np.int64)
            heap = Heap(nothing, nothing, payload[:0], counts)
        needed = int(heap.counts[0]) + more
        if needed > len(heap.free):
            heap = _grown(heap, max(needed, 2 * len(heap.free)))
        self._heap = heap
        return heap


def _grown(heap: Heap, size: int) -> Heap:
    """The same heap with more room; new slots are free, those in use keep their numbers."""
    before, held = len(heap.free), int(heap.counts[0])
    nodes, free = np.empty(2 * size, dtype=np.int64), np.empty(size, dtype=np.int64)
    payload = np.empty(size, dtype=heap.payload.dtype)
    nodes[: 2 * held] = heap.nodes[: 2 * held]
    free[:before] = heap.free
    free[before:] = np.arange(before, size)
    payload[:before] = heap.payload
    return Heap(nodes, free, payload, heap.counts)


@kernel
def _push(heap: Heap, ts_us: Int64s, payload: Records, every: int, latency_us: int) -> tuple[Int64s, Records]:
    """Push event by event; after each `every` of them pop what is due. `free[held:]` are the free slots."""
    held, arrived, mark = heap.counts
    out_ts, out_payload, filled = np.empty(len(ts_us) + 64, np.int64), np.empty(len(ts_us) + 64, payload.dtype), 0
    for i in range(len(ts_us)):
        slot = heap.free[held]
        heap.payload[slot] = payload[i]
        _rise(heap.nodes, held, ts_us[i], (arrived << _SLOT_BITS) | slot)
        held, arrived, mark = held + 1, arrived + 1, max(mark, ts_us[i])
        if arrived % every == 0:
            while held > 0 and heap.nodes[0] <= mark - latency_us:
                if filled == len(out_ts):
                    out_ts, out_payload = room(out_ts, 2 * filled), room(out_payload, 2 * filled)
                held = _pop(heap, held, out_ts, out_payload, filled)
                filled += 1
    heap.counts[0], heap.counts[1], heap.counts[2] = held, arrived, mark
    return out_ts[:filled], out_payload[:filled]


@kernel
def _pop_all(heap: Heap, out_ts: Int64s, out_payload: Records) -> None:
    """Empty the heap."""
    held = heap.counts[0]
    for filled in range(len(out_ts)):
        held = _pop(heap, held, out_ts, out_payload, filled)
    heap.counts[0] = held


@kernel
def _rise(nodes: Int64s, at: int, ts: int, turn: int) -> None:
    """Put a node where it belongs on the way from a place to the root."""
    while at > 0:
        parent = (at - 1) >> 1
        above = nodes[2 * parent]
        if above < ts or (above == ts and nodes[2 * parent + 1] < turn):
            break
        nodes[2 * at], nodes[2 * at + 1] = above, nodes[2 * parent + 1]
        at = parent
    nodes[2 * at], nodes[2 * at + 1] = ts, turn


@kernel
def _pop(heap: Heap, held: int, out_ts: Int64s, out_payload: Records, filled: int) -> int:
    """Take the root away; how many nodes are left."""
    nodes, last = heap.nodes, held - 1
    slot = nodes[1] & _SLOT_MASK
    out_ts[filled] = nodes[0]
    out_payload[filled] = heap.payload[slot]
    heap.free[last] = slot
    at, child = 0, 1
    while child < last:
        left, right = nodes[2 * child], nodes[2 * child + 2]
        other = child + 1 < last and (right < left or (right == left and nodes[2 * child + 3] < nodes[2 * child + 1]))
        child += other
        nodes[2 * at], nodes[2 * at + 1] = nodes[2 * child], nodes[2 * child + 1]
        at, child = child, 2 * child + 1
    _rise(nodes, at, nodes[2 * last], nodes[2 * last + 1])
    return last
