"""The rows that a query of the engine's own is to be called with, and in which slot of time each is.

A slot is a copy of some rows at times of its own, so that one call of the query serves all slots. LIVE has what newly
closed windows need. BEFORE and AFTER have the contexts of late events that begin to count now, without and with them:
whatever lies at the edge of a context is the same in both, so the difference is what the late events change. `low` and
`high` say which results of a slot count: those with a time in (low, high].
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from latecomer.events import FOREVER_US, NEVER_US, Bools, EventBatch, Int64s, sort_times, take_rows, total_order
from latecomer.outputs import Lane, Output
from latecomer.timetravel.intervals import grouped_intervals

if TYPE_CHECKING:
    from latecomer.timetravel.engine_query import EngineQuery

SLOT, PLACE, LOW, HIGH = "_lc_slot", "_lc_place", "_lc_low", "_lc_high"
SLOT_FIELDS = (
    pa.field(SLOT, pa.int32()),
    pa.field(PLACE, pa.int64()),
    pa.field(LOW, pa.int64()),
    pa.field(HIGH, pa.int64()),
)
LIVE, BEFORE, AFTER = ROLES = range(3)  # of slots; the slots of the end of a stream come after those of its last events


class Closed(NamedTuple):
    """Up to which time results were given before a micro-batch, and are given with it."""

    before_us: int
    after_us: int


class Counting(NamedTuple):
    """The events that count, with the numbers of their keys, and which of them begin to count for given results."""

    events: EventBatch
    key: Int64s
    new: Bools


def slot_rows(counting: Counting, query: EngineQuery, reach_us: int, closed: Closed, step: int) -> Iterator[Output]:
    """The rows of the slots of one step of a micro-batch."""
    ts_us = counting.events.ts_us
    live, context = _live(ts_us, query, closed), _context(counting, query, reach_us, closed)
    chosen = np.flatnonzero(live | context)
    events = counting.events.take(chosen)
    order = total_order(events)
    order = order[sort_times(counting.key[chosen][order])[1]]
    rows, chosen = take_rows(events.user_rows, order), chosen[order]
    for role, there, low_us, high_us in (
        (LIVE, live, closed.before_us, closed.after_us),
        (BEFORE, context & ~counting.new, NEVER_US, closed.before_us),
        (AFTER, context, NEVER_US, closed.before_us),
    ):
        places = np.flatnonzero(there[chosen])
        if len(places):
            yield _slot(take_rows(rows, places), places, step * len(ROLES) + role, (low_us, high_us))


def _slot(rows: pa.RecordBatch, places: Int64s, slot: int, bounds: tuple[int, int]) -> Output:
    columns = [np.full(len(places), slot, dtype=np.int32), places, *(np.full(len(places), each) for each in bounds)]
    for each, column in zip(SLOT_FIELDS, columns, strict=True):
        rows = rows.append_column(each, pa.array(column))
    return Output(Lane.RESULTS, rows)


def _live(ts_us: Int64s, query: EngineQuery, closed: Closed) -> Bools:
    """Which events the results depend on that are given now for the first time."""
    first_us, last_us = NEVER_US, FOREVER_US
    if closed.before_us != NEVER_US:
        first_us = _on_grid(query, closed.before_us) + query.grid.length_us
    if closed.after_us != FOREVER_US:
        last_us = NEVER_US if closed.after_us == NEVER_US else _on_grid(query, closed.after_us)
    if first_us > last_us or closed.before_us == closed.after_us:
        return np.zeros(len(ts_us), dtype=np.bool_)
    return (ts_us >= first_us - query.before_us) & (ts_us < last_us + query.after_us)


def _on_grid(query: EngineQuery, us: int) -> int:
    return int(query.grid.starts(np.array([us]))[0])


def _context(counting: Counting, query: EngineQuery, reach_us: int, closed: Closed) -> Bools:
    """Which events lie within reach of one of their key that begins to count, as far as given results read them."""
    new, ts_us = np.flatnonzero(counting.new), counting.events.ts_us
    if len(new) == 0:
        return np.zeros(len(ts_us), dtype=np.bool_)
    key, late_us = counting.key[new], ts_us[new]
    keys = int(counting.key.max()) + 1
    near = grouped_intervals(key, late_us - reach_us, late_us + (reach_us - 1), keys).contain(counting.key, ts_us)
    return near & (ts_us < closed.before_us + query.after_us)
