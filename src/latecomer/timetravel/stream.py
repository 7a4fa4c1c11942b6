"""A replica that is a stream, as in the paper: fed with one context after the other, for ever.

The machine has no need of it: its replica is finished in every micro-batch. Where the application runs on its own and
gives a result only when later events come, this is how to replay contexts through it: every context is moved beyond the
one before it, a map remembers by how much, and sample rows flush out what is still inside.

Invariants
1. Times only grow; contexts are more than the reach apart, so no result depends on two of them.
2. Results come in order. When one comes, the contexts before its own have given all they had: the map forgets them.
3. What the flushing rows themselves give is never seen.

Paper: TinTiN, section 6.4 and Algorithm 1, lines 15 to 30, assumption A4.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from latecomer.chunks import ChunkStore
from latecomer.durations import Duration, duration_us
from latecomer.errors import InputError, must
from latecomer.events import EventBatch, Int64s, Layout, concat_rows, int64_view, take_rows
from latecomer.timetravel.reach import RESULT_TIMES, reach_of, shifted
from latecomer.timetravel.replay import move_rows
from latecomer.windows.operators import Operator


class Slot(NamedTuple):
    """Where a context landed: its first and last time there, by how much it was moved, and its late events."""

    low_us: int
    high_us: int
    shift_us: int
    late_us: Int64s  # as they were; none for rows that flush


class StreamReplica:
    """Runs contexts through one instance of an application.

    flush: sample rows, in order, that make the application give at least one result. map_limit: with more contexts than
    that in the map it is flushed.
    """

    def __init__(
        self,
        operator: Operator,
        layout: Layout,
        flush: pa.RecordBatch,
        *,
        map_limit: int = 1_000,
        periodicity: Duration | None = None,
    ) -> None:
        self._reach = reach_of(operator, 1 if periodicity is None else duration_us(periodicity, "periodicity"))
        if flush.num_rows == 0:
            raise InputError(must("flush", "have rows", "none", "give rows that make the application give a result"))
        if map_limit < 1:
            raise InputError(must("map_limit", "be above zero", map_limit, "leave it out"))
        self._flush = EventBatch(flush, layout)
        self._layout, self._map_limit = layout, map_limit
        self._running = operator.build(ChunkStore(), layout)
        self._time = operator.layout_after(layout).time
        self._last_us = 0
        self.slots: list[Slot] = []

    def replay(self, context: pa.RecordBatch, late_us: Int64s) -> pa.RecordBatch | None:
        """Feed a context, in order, and its late events' times; gives results, of this or earlier ones, that came."""
        given = [self._feed(EventBatch(context, self._layout), np.sort(late_us))]
        if len(self.slots) > self._map_limit:
            given.append(self.flush())
        found = [rows for rows in given if rows is not None]
        return concat_rows(found) if found else None

    def flush(self) -> pa.RecordBatch | None:
        """Feed the sample rows, so that everything fed before them comes out; gives it, and forgets the map."""
        given = self._feed(self._flush, np.zeros(0, dtype=np.int64))
        self.slots = []
        return given

    def _feed(self, events: EventBatch, late_us: Int64s) -> pa.RecordBatch | None:
        ts_us = events.ts_us
        steps = (self._last_us + self._reach.us - int(ts_us[0])) // self._reach.step_us + 1
        shift_us = steps * self._reach.step_us
        self._last_us = int(ts_us[-1]) + shift_us
        self.slots.append(Slot(int(ts_us[0]) + shift_us, self._last_us, shift_us, late_us))
        moved = move_rows(events, np.full(len(events), shift_us))
        given, _ = self._running.push(moved.user_rows, self._last_us - 1)
        return None if given is None or given.num_rows == 0 else self._restored(given)

    def _restored(self, given: pa.RecordBatch) -> pa.RecordBatch | None:
        """Results at their own times, of those that a late event touches."""
        start_us = int64_view(given.column(self._time))
        low_us = np.array([slot.low_us for slot in self.slots])
        place = np.searchsorted(low_us, start_us + self._reach.us) - 1
        own_us = start_us - np.array([slot.shift_us for slot in self.slots])[place]
        touched = [
            self._touches(self.slots[at], start) for at, start in zip(place.tolist(), own_us.tolist(), strict=True)
        ]
        self.slots = self.slots[int(place.max()) :]
        chosen = np.flatnonzero(touched)
        if len(chosen) == 0:
            return None
        return shifted(take_rows(given, chosen), RESULT_TIMES, (own_us - start_us)[chosen])

    def _touches(self, slot: Slot, start_us: int) -> bool:
        late_us = slot.late_us
        first = int(np.searchsorted(late_us, start_us))
        return first < len(late_us) and int(late_us[first]) < start_us + self._reach.us
