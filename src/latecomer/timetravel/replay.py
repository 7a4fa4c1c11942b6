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
    EventBatch,
    Int64s,
    Layout,
    concat_rows,
    int64_view,
    sort_times,
    take_rows,
    total_order,
)
from latecomer.timetravel.contexts import Contexts
from latecomer.timetravel.key_history import Accepted, MicroBatch
from latecomer.timetravel.reach import RESULT_TIMES, Reach
from latecomer.timetravel.tables import ROLE, GroupedTimes, Tables, group_starts, places_from, shift_times, spread_out
from latecomer.windows.operators import Operator, results_in_order

MOST_EVENTS = 2_000_000  # to be replayed in one run
LAST_SLOT_US = FOREVER_US // 2  # windows of slots up to here close before FOREVER_US


class HeldEvents(NamedTuple):
    """Events in the order of keys and events; `arrived` is the moment of late ones of this batch, -1 for others."""

    events: EventBatch
    times: GroupedTimes
    arrived: Int64s


def held_events(batch: MicroBatch, accepted: Accepted | None, keys: Int64s) -> HeldEvents:
    """All events that are held of some keys: contexts, recent and new ones, and late ones that were accepted."""
    tables, wanted = batch.tables, np.zeros(batch.tables.count, dtype=np.bool_)
    wanted[keys] = True
    stored = [name for name in ("contexts", "recent", "on_time") if tables.get(name) is not None]
    chosen = [np.flatnonzero(wanted[tables.key(name)]) for name in stored]
    parts = [take_rows(tables.get(name), rows) for name, rows in zip(stored, chosen, strict=True)]
    numbers = [tables.key(name)[rows] for name, rows in zip(stored, chosen, strict=True)]
    arrived = [np.full(len(rows), -1) for rows in chosen]
    if accepted is not None:
        rows = np.flatnonzero(wanted[accepted.key])
        parts.append(accepted.events.take(rows).rows)
        numbers.append(accepted.key[rows])
        arrived.append(accepted.moment[rows])
    events, number = EventBatch(concat_rows(parts), batch.layout).without(ROLE), np.concatenate(numbers)
    order = total_order(events)
    order = order[sort_times(number[order])[1]]
    events = events.take(order)
    times = GroupedTimes(events.ts_us, group_starts(number[order], tables.count))
    return HeldEvents(events, times, np.concatenate(arrived)[order])


class Results(NamedTuple):
    """Rows of results, and the context and time of each."""

    rows: pa.RecordBatch
    context: Int64s
    start_us: Int64s


class Slots(NamedTuple):
    """Per context by how much it moves in time, and in which run of the replica it is replayed."""

    shift_us: Int64s
    run: Int64s


class Replica:
    """A second instance of the application, which knows nothing of the first."""

    def __init__(self, operator: Operator, layout: Layout, reach: Reach, *, shifted: bool) -> None:
        self._operator, self._layout, self._reach, self._shifted = operator, layout, reach, shifted
        self._time = operator.layout_after(layout).time

    def run(self, contexts: Contexts, held: HeldEvents) -> Results | None:
        """What the application makes of the contexts, from what is held of their keys."""
        low_us, high_us = contexts.results.hulls()
        first = places_from(held.times, contexts.key, low_us + 1)
        stop = places_from(held.times, contexts.key, high_us + self._reach.us)
        found: list[Results] = []
        for chosen in portions(stop - first):
            place, owner = spread_out(first[chosen], stop[chosen])
            context = chosen[owner]
            there = np.flatnonzero(held.arrived[place] <= contexts.moment[context])
            found += self._replayed(contexts, held.events.take(place[there]), context[there])
        return _together(found)

    def _replayed(self, contexts: Contexts, rows: EventBatch, context: Int64s) -> list[Results]:
        """The results of some contexts, from their events one after the other, and the context of each."""
        if len(rows) == 0:
            return []
        if not self._shifted:
            return list(self._fresh(contexts, rows, context))
        slots = self._slots(contexts, rows, context)
        found: list[Results] = []
        for number in range(int(slots.run.max()) + 1):
            mine = np.flatnonzero(slots.run[context] == number)
            some, of = (rows, context) if len(mine) == len(rows) else (rows.take(mine), context[mine])
            moved = EventBatch(shift_times(some.rows, (some.layout.time,), slots.shift_us[of]), some.layout)
            given = self._given(moved)
            if given is not None:
                owner = self._context_of(given, some, of, slots.shift_us)
                found += self._touched(contexts, shift_times(given, RESULT_TIMES, -slots.shift_us[owner]), owner)
        return found

    def _slots(self, contexts: Contexts, rows: EventBatch, context: Int64s) -> Slots:
        """By how much each context moves, and in which run it is replayed."""
        first = np.flatnonzero(np.diff(context, prepend=-1))
        last = np.append(first[1:], len(context)) - 1
        low_us, high_us = np.zeros(len(contexts), dtype=np.int64), np.full(len(contexts), -1)
        low_us[context[first]], high_us[context[first]] = rows.ts_us[first], rows.ts_us[last]
        _, key = np.unique(contexts.key, return_inverse=True)
        slots = Slots(*np.zeros((2, len(contexts)), dtype=np.int64))
        last_slots = LastSlots(*np.zeros((2, int(key.max()) + 1), dtype=np.int64))
        place_slots(Spans(key, low_us, high_us), last_slots, self._reach.us, self._reach.step_us, slots)
        return slots

    def _given(self, rows: EventBatch) -> pa.RecordBatch | None:
        """What the application makes of events, from the first to the last."""
        _, order = sort_times(rows.ts_us)
        running = self._operator.build(ChunkStore(), self._layout)
        given = results_in_order(running, rows.take(order).user_rows, FOREVER_US)
        return given if given is not None and given.num_rows else None

    def _context_of(self, given: pa.RecordBatch, rows: EventBatch, context: Int64s, shift_us: Int64s) -> Int64s:
        """The context that each result is of, by its key and its slot."""
        first = np.flatnonzero(np.diff(context, prepend=-1))
        owner, low_us = context[first], rows.ts_us[first] + shift_us[context[first]]
        tables = Tables({"given": given, "contexts": take_rows(rows.rows, first)}, self._layout.key)
        key, start_us = tables.key("given"), int64_view(given.column(self._time))
        order = np.lexsort((low_us, tables.key("contexts")))
        slot_key = tables.key("contexts")[order]
        slots = GroupedTimes(low_us[order], group_starts(slot_key, tables.count))
        place = places_from(slots, key, start_us + self._reach.us) - 1
        strange = (place < 0) | (slot_key[np.maximum(place, 0)] != key)
        if strange.any():
            advice = "let steps leave times and keys as they are"
            raise InputError(must("application", "give results near its events", "a result elsewhere", advice))
        contexts_of: Int64s = owner[order][place]
        return contexts_of

    def _touched(self, contexts: Contexts, given: pa.RecordBatch, context: Int64s) -> list[Results]:
        """The results that the context is replayed for, if any."""
        start_us = int64_view(given.column(self._time))
        chosen = np.flatnonzero(contexts.results.contain(context, start_us))
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


class Spans(NamedTuple):
    """Per context the number of its key, and the times of its first and last event; without events, high < low."""

    key: Int64s
    low_us: Int64s
    high_us: Int64s


class LastSlots(NamedTuple):
    """Per key where its last slot ends, and in which run."""

    end_us: Int64s
    run: Int64s


@kernel
def place_slots(spans: Spans, last: LastSlots, reach_us: int, step_us: int, slots: Slots) -> None:
    """Find the nearest slot for each context: after the last one of its key, by more than the reach.

    Where slots would go beyond all times, the next run begins.
    """
    for i in range(len(spans.key)):
        key, low_us, high_us = spans.key[i], spans.low_us[i], spans.high_us[i]
        if high_us < low_us:
            continue
        shift_us = ((last.end_us[key] + reach_us - low_us) // step_us + 1) * step_us
        if high_us + shift_us > LAST_SLOT_US:
            last.run[key] += 1
            shift_us = ((reach_us - low_us) // step_us + 1) * step_us
        slots.shift_us[i], slots.run[i] = shift_us, last.run[key]
        last.end_us[key] = high_us + shift_us
