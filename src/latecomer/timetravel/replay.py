"""Contexts replayed in shifted time: all those of a batch in one run of the application.

Late events of a key that are replayed at the same moment share a context where theirs overlap. Every context is moved
in time to a slot of its own, beyond the reach of the one before it of the same key, by a multiple of what windows and
seasons repeat in; so one replica can run them all without mixing them. Results are moved back, and those that no
late event of the context touches are left out.

Paper: TinTiN, sections 6.3 and 6.4, Algorithm 1, lines 17 to 30; Lemma 6 holds up to twice the reach.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from latecomer._jit import kernel
from latecomer.chunks import ChunkStore
from latecomer.errors import InputError, must
from latecomer.events import (
    FOREVER_US,
    Bools,
    EventBatch,
    Int64s,
    Layout,
    concat_rows,
    int64_view,
    sort_times,
    take_rows,
)
from latecomer.timetravel.firing import Firing, Waiting
from latecomer.timetravel.numbering import Tables
from latecomer.timetravel.reach import RESULT_TIMES, Reach, shifted
from latecomer.windows.operators import Operator

MOST_EVENTS = 2_000_000  # to be replayed in one run
LAST_SLOT_US = FOREVER_US // 2  # windows of slots up to here close before FOREVER_US


class Contexts(NamedTuple):
    """What is replayed: per context the key, the moment, how far live has come, and its late events in `late_us`.

    Those of context c are `late_us[starts[c]:starts[c + 1]]`, in order.
    """

    key: Int64s
    tick: Int64s
    moment: Int64s
    at_once: Bools
    passed_us: Int64s
    starts: Int64s
    late_us: Int64s

    def __len__(self) -> int:
        return len(self.key)


class Results(NamedTuple):
    """Rows of results, and the context and time of each."""

    rows: pa.RecordBatch
    context: Int64s
    start_us: Int64s


def unite(firing: Firing, waiting: Waiting, reach_us: int) -> Contexts:
    """One context for the late events of a key that are replayed at the end of a tick, as far as theirs overlap."""
    key, late_us = waiting.key[firing.waiting], waiting.ts_us[firing.waiting]
    if len(key) == 0:
        return Contexts(key, key, key, key > 0, key, np.zeros(1, dtype=np.int64), key)
    new = np.ones(len(key), dtype=np.bool_)
    alike = ~firing.at_once[1:] & ~firing.at_once[:-1] & (firing.tick[1:] == firing.tick[:-1]) & (key[1:] == key[:-1])
    new[1:] = ~(alike & (late_us[1:] - late_us[:-1] < 2 * reach_us))
    first = np.flatnonzero(new)
    starts = np.append(first, len(key))
    return Contexts(
        key[first],
        firing.tick[first],
        firing.moment[first],
        firing.at_once[first],
        firing.passed_us[first],
        starts,
        late_us,
    )


class Replica:
    """A second instance of the application, which knows nothing of the first."""

    def __init__(self, operator: Operator, layout: Layout, reach: Reach, *, shifted: bool) -> None:
        self._operator, self._layout, self._reach, self._shifted = operator, layout, reach, shifted
        self._time = operator.layout_after(layout).time

    def run(self, contexts: Contexts, known: EventBatch, known_key: Int64s, arrived: Int64s) -> Results | None:
        """What the application makes of the contexts, of what is known of their keys.

        Events are in the order of keys and times; `arrived` is the moment at which a late event of this batch came,
        -1 for others.
        """
        low_us = contexts.late_us[contexts.starts[:-1]] - self._reach.us + 1
        high_us = contexts.late_us[contexts.starts[1:] - 1] + self._reach.us
        first, stop = np.empty(len(contexts), dtype=np.int64), np.empty(len(contexts), dtype=np.int64)
        find_stretches(known_key, known.ts_us, contexts.key, low_us, first)
        find_stretches(known_key, known.ts_us, contexts.key, high_us, stop)
        found: list[Results] = []
        for chosen in portions(stop - first):
            place, owner = spread_out(first[chosen], stop[chosen])
            context = chosen[owner]
            there = np.flatnonzero(arrived[place] <= contexts.moment[context])
            found += self._replayed(contexts, known.take(place[there]), context[there])
        return _together(found)

    def _replayed(self, contexts: Contexts, rows: EventBatch, context: Int64s) -> list[Results]:
        """The results of some contexts, from their events one after the other, and the context of each."""
        if len(rows) == 0:
            return []
        if not self._shifted:
            return list(self._fresh(contexts, rows, context))
        shift_us, go = self._shifts(contexts, rows, context)
        found: list[Results] = []
        for number in range(int(go.max()) + 1):
            mine = np.flatnonzero(go[context] == number)
            some, of = (rows, context) if len(mine) == len(rows) else (rows.take(mine), context[mine])
            given = self._given(move_rows(some, shift_us[of]))
            if given is not None:
                owner = self._context_of(given, some, of, shift_us)
                found += self._touched(contexts, shifted(given, RESULT_TIMES, -shift_us[owner]), owner)
        return found

    def _shifts(self, contexts: Contexts, rows: EventBatch, context: Int64s) -> tuple[Int64s, Int64s]:
        """By how much each context moves, and in which go it is replayed: slots must not go beyond all times."""
        first = np.flatnonzero(np.diff(context, prepend=-1))
        last = np.append(first[1:], len(context)) - 1
        low_us, high_us = np.zeros(len(contexts), dtype=np.int64), np.full(len(contexts), -1)
        low_us[context[first]], high_us[context[first]] = rows.ts_us[first], rows.ts_us[last]
        _, key = np.unique(contexts.key, return_inverse=True)
        shift_us, go = np.zeros(len(contexts), dtype=np.int64), np.zeros(len(contexts), dtype=np.int64)
        last_us, last_go = (np.zeros(int(key.max()) + 1, dtype=np.int64) for _ in range(2))
        place_slots(key, low_us, high_us, last_us, last_go, self._reach.us, self._reach.step_us, shift_us, go)
        return shift_us, go

    def _given(self, rows: EventBatch) -> pa.RecordBatch | None:
        """What the application makes of events, from the first to the last."""
        _, order = sort_times(rows.ts_us)
        running = self._operator.build(ChunkStore(), self._layout)
        given, _ = running.push(rows.take(order).user_rows, FOREVER_US)
        return given if given is not None and given.num_rows else None

    def _context_of(self, given: pa.RecordBatch, rows: EventBatch, context: Int64s, shift_us: Int64s) -> Int64s:
        """The context that each result is of, by its key and its slot."""
        first = np.flatnonzero(np.diff(context, prepend=-1))
        owner, low_us = context[first], rows.ts_us[first] + shift_us[context[first]]
        tables = Tables({"given": given, "contexts": take_rows(rows.rows, first)}, self._layout.key)
        key, start_us = tables.key("given"), int64_view(given.column(self._time))
        order = np.lexsort((low_us, tables.key("contexts")))
        slot_key, slot_us = tables.key("contexts")[order], low_us[order]
        found = np.empty(given.num_rows, dtype=np.int64)
        find_stretches(slot_key, slot_us, key, start_us + self._reach.us, found)
        place = found - 1
        strange = (place < 0) | (slot_key[np.maximum(place, 0)] != key)
        if strange.any():
            advice = "let steps leave times and keys as they are"
            raise InputError(must("application", "give results near its events", "a result elsewhere", advice))
        contexts_of: Int64s = owner[order][place]
        return contexts_of

    def _touched(self, contexts: Contexts, given: pa.RecordBatch, context: Int64s) -> list[Results]:
        """The results that a late event of the context touches and that the live instance has given, if any."""
        start_us = int64_view(given.column(self._time))
        touched = np.zeros(len(context), dtype=np.bool_)
        find_touched(context, start_us, contexts.starts, contexts.late_us, self._reach.us, touched)
        chosen = np.flatnonzero(touched & (start_us <= contexts.passed_us[context]))
        return [Results(take_rows(given, chosen), context[chosen], start_us[chosen])] if len(chosen) else []

    def _fresh(self, contexts: Contexts, rows: EventBatch, context: Int64s) -> Iterator[Results]:
        """The same, with a new instance of the application for every context and no time moved."""
        first = np.flatnonzero(np.diff(context, prepend=-1))
        for start, stop in zip(first.tolist(), [*first[1:].tolist(), len(context)], strict=True):
            given = self._given(rows.slice(start, stop))
            if given is not None:
                yield from self._touched(contexts, given, np.full(given.num_rows, context[start]))


def _together(parts: list[Results]) -> Results | None:
    if len(parts) <= 1:
        return parts[0] if parts else None
    rows, context, start_us = zip(*parts, strict=True)
    return Results(concat_rows(rows), np.concatenate(context), np.concatenate(start_us))


def portions(sizes: Int64s) -> list[Int64s]:
    """The numbers of contexts with so many events, in portions that fit into memory."""
    portion = (np.cumsum(sizes) - 1) // MOST_EVENTS
    return np.split(np.arange(len(sizes)), np.flatnonzero(np.diff(portion)) + 1) if len(sizes) else []


def spread_out(first: Int64s, stop: Int64s) -> tuple[Int64s, Int64s]:
    """The places of stretches, one stretch after the other, and which of them each is of."""
    sizes = stop - first
    owner = np.repeat(np.arange(len(sizes)), sizes)
    place: Int64s = np.arange(len(owner)) - np.repeat(np.cumsum(sizes) - sizes, sizes) + first[owner]
    return place, owner


@kernel
def find_touched(
    context: Int64s, start_us: Int64s, starts: Int64s, late_us: Int64s, reach_us: int, touched: Bools
) -> None:
    """Whether a late event of its context lies in [start, start + reach)."""
    for i in range(len(context)):
        low, stop = starts[context[i]], starts[context[i] + 1]
        high = stop
        while low < high:
            middle = (low + high) >> 1
            if late_us[middle] < start_us[i]:
                low = middle + 1
            else:
                high = middle
        touched[i] = low < stop and late_us[low] < start_us[i] + reach_us


@kernel
def find_stretches(keys: Int64s, ts_us: Int64s, key: Int64s, from_us: Int64s, found: Int64s) -> None:
    """For each key and time the place of the key's first row from that time on; rows are in the order of both."""
    for i in range(len(key)):
        low, high = 0, len(keys)
        while low < high:
            middle = (low + high) >> 1
            if keys[middle] < key[i] or (keys[middle] == key[i] and ts_us[middle] < from_us[i]):
                low = middle + 1
            else:
                high = middle
        found[i] = low


@kernel
def place_slots(
    key: Int64s,
    low_us: Int64s,
    high_us: Int64s,
    last_us: Int64s,
    last_go: Int64s,
    reach_us: int,
    step_us: int,
    shift_us: Int64s,
    go: Int64s,
) -> None:
    """Find the nearest slot for each context: after the last one of its key, by more than the reach.

    Where slots would go too far, the next go begins.
    """
    for i in range(len(key)):
        if high_us[i] < low_us[i]:
            continue
        shift_us[i] = ((last_us[key[i]] + reach_us - low_us[i]) // step_us + 1) * step_us
        if high_us[i] + shift_us[i] > LAST_SLOT_US:
            last_go[key[i]] += 1
            shift_us[i] = ((reach_us - low_us[i]) // step_us + 1) * step_us
        go[i] = last_go[key[i]]
        last_us[key[i]] = high_us[i] + shift_us[i]


def move_rows(rows: EventBatch, shift_us: Int64s) -> EventBatch:
    """Events at other times."""
    return EventBatch(shifted(rows.rows, (rows.layout.time,), shift_us), rows.layout)
