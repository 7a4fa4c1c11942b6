"""Rows that take back others: each voids the last row that is equal to it, or waits until one comes.

Equal are rows with the same values, time, source and order; the tick may be another. Ticks are followed one by one: in
each, rows come before retractions. So what is voided does not depend on the micro-batches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from latecomer.chunks import Store
from latecomer.events import (
    EVENT_CHANGE,
    FOREVER_US,
    TICK,
    Bools,
    EventBatch,
    Int64s,
    Layout,
    as_bits_or_null,
    concat_rows,
    int64_view,
    take_rows,
)
from latecomer.optimistic.history import Past
from latecomer.outputs import Output, late
from latecomer.windows.grouping import group_rows

UNMATCHED = "unmatched"


class Waiting:
    """Retractions that wait for their row, in a store."""

    def __init__(self, store: Store, layout: Layout) -> None:
        self._store, self._layout = store, layout

    @property
    def rows(self) -> int:
        """How many wait."""
        return self._store.rows

    def take(self) -> pa.RecordBatch | None:
        """Those that wait, which are to be put back."""
        parts = list(self._store.take(self._store.chunks))
        return concat_rows(parts) if parts else None

    def put(self, rows: pa.RecordBatch | None) -> None:
        """Let retractions wait."""
        if rows is not None and rows.num_rows:
            self._store.append(rows, int64_view(rows.column(self._layout.time)))

    def unmatched(self, passed_us: int, mark_us: int) -> Iterator[Output]:
        """Those whose row did not come up to a time."""
        for chunk in self._store.chunks:
            if chunk.ts_min_us <= passed_us:
                (rows,) = self._store.take([chunk])
                waiting = EventBatch(rows, self._layout)
                over = waiting.ts_us <= passed_us
                lost = waiting.filter(over)
                yield late(lost, np.maximum(mark_us - lost.ts_us, 0), UNMATCHED)
                if not over.all():
                    self.put(waiting.filter(~over).rows)


class Matched(NamedTuple):
    """What is left of a batch, which stored rows are void, and retractions that wait for their row."""

    batch: EventBatch
    gone: Bools
    waiting: pa.RecordBatch | None


class Voided(NamedTuple):
    """Rows in the ticks in which they are void, `FOREVER_US` where they are not: those stored, and those of a batch.

    rows: of the batch, without retractions. waiting: retractions that wait for their row.
    """

    stored: Int64s
    new: Int64s
    rows: pa.RecordBatch
    waiting: pa.RecordBatch


def match_retractions(
    batch: EventBatch, past: Past | None, waiting: pa.RecordBatch | None, *, same_tick: bool = False
) -> Matched:
    """Let retractions void rows: those of a batch, which has the change of each row, and those that wait.

    same_tick: a retraction has the tick of its row, as in the later steps of a chain.
    """
    found = void_ticks(batch, past, waiting, same_tick=same_tick)
    left = EventBatch(found.rows, batch.layout).filter(found.new == FOREVER_US)
    return Matched(left, found.stored < FOREVER_US, found.waiting)


def void_ticks(
    batch: EventBatch, past: Past | None, waiting: pa.RecordBatch | None, *, same_tick: bool = False
) -> Voided:
    """When rows are void: in the tick of their retraction, or in their own where that has waited for them."""
    names = [name for name in batch.rows.schema.names if name != EVENT_CHANGE]
    stored = [] if past is None else [past.rows.select(names)]
    rows = concat_rows([*stored, batch.rows.select(names), *([] if waiting is None else [waiting])])
    size = 0 if past is None else past.rows.num_rows
    change = np.full(rows.num_rows, -1, dtype=np.int64)
    change[:size], change[size : size + len(batch)] = 1, batch.change
    compared = [name for name in names if same_tick or name != TICK]
    row, retraction = _pairs(rows, compared, batch.layout.time, change)
    tick, void = int64_view(rows.column(TICK)), np.full(len(change), FOREVER_US)
    void[row] = void[retraction] = np.maximum(tick[row], tick[retraction])
    plus = size + np.flatnonzero(batch.change > 0)
    left = np.flatnonzero((change < 0) & (void == FOREVER_US))
    return Voided(void[:size], void[plus], take_rows(rows, plus), take_rows(rows, left))


def _pairs(rows: pa.RecordBatch, compared: Sequence[str], time: str, change: Int64s) -> tuple[Int64s, Int64s]:
    """The rows that are void, and the retraction that voids each."""
    ts_us, tick = int64_view(rows.column(time)), int64_view(rows.column(TICK))
    near = np.flatnonzero(np.isin(ts_us, ts_us[change < 0]))
    columns = (rows.column(name).take(pa.array(near)) for name in compared)
    groups = group_rows([_bits(column) for column in columns])
    total, sizes = groups.reduce(np.add, change[near]), groups.sizes
    pairs = (sizes == 2) & (total == 0)  # whichever came first
    found = [near[groups.order[np.repeat(pairs, sizes)]]]
    for number in np.flatnonzero(~pairs & (np.abs(total) < sizes)):
        equals = np.sort(near[groups.order[groups.starts[number] :][: sizes[number]]])
        found.append(_cancelled(equals[np.lexsort((-change[equals], tick[equals]))], change))
    one, other = np.concatenate(found).reshape(-1, 2).T
    swapped = change[one] < 0
    return np.where(swapped, other, one), np.where(swapped, one, other)


def _bits(column: pa.Array) -> pa.Array:
    """Floats by their bits: 0.0 does not take back -0.0."""
    return as_bits_or_null(column) if pa.types.is_floating(column.type) else column


def _cancelled(equals: Int64s, change: Int64s) -> Int64s:
    """Of equal rows in the order in which they came, those that are void, each with the retraction that voids it."""
    standing: list[int] = []
    waiting: list[int] = []
    cancelled: list[int] = []
    for row in equals.tolist():
        mine, other = (standing, waiting) if change[row] > 0 else (waiting, standing)
        if not other:
            mine.append(row)
            continue
        cancelled += [row, other.pop(0 if change[row] > 0 else -1)]
    return np.array(cancelled, dtype=np.int64)
