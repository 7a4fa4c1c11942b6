"""Rows that take back others: each voids the last row that is equal to it, or waits until one comes.

Equal are rows with the same values, time, source and order; the tick may be another. Ticks are followed one by one: in
each, rows come before retractions. So what is voided does not depend on the micro-batches.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from latecomer.events import (
    EVENT_CHANGE,
    TICK,
    Bools,
    EventBatch,
    Int64s,
    as_bits_or_null,
    concat_rows,
    int64_view,
    take_rows,
)
from latecomer.optimistic.history import Past
from latecomer.windows.grouping import group_rows


class Matched(NamedTuple):
    """What is left of a batch, which stored rows are void, and retractions that wait for their row."""

    batch: EventBatch
    gone: Bools
    waiting: pa.RecordBatch | None


def match_retractions(
    batch: EventBatch, past: Past | None, waiting: pa.RecordBatch | None, *, same_tick: bool = False
) -> Matched:
    """Let retractions void rows: those of a batch, which has the change of each row, and those that wait.

    same_tick: a retraction has the tick of its row, as in the later steps of a chain.
    """
    names = [name for name in batch.rows.schema.names if name != EVENT_CHANGE]
    stored = [] if past is None else [past.rows.select(names)]
    rows = concat_rows([*stored, batch.rows.select(names), *([] if waiting is None else [waiting])])
    size = 0 if past is None else past.rows.num_rows
    change = np.full(rows.num_rows, -1, dtype=np.int64)
    change[:size], change[size : size + len(batch)] = 1, batch.change
    left = np.ones(len(change), dtype=np.bool_)
    compared = [name for name in names if same_tick or name != TICK]
    left[_void(rows, compared, batch.layout.time, change)] = False
    plus = np.flatnonzero(left[size : size + len(batch)] & (batch.change > 0))
    kept = EventBatch(take_rows(batch.rows.select(names), plus), batch.layout)
    return Matched(kept, ~left[:size], take_rows(rows, np.flatnonzero(left & (change < 0))))


def _void(rows: pa.RecordBatch, compared: Sequence[str], time: str, change: Int64s) -> Int64s:
    """The rows that are void and the retractions that void them."""
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
    return np.concatenate(found)


def _bits(column: pa.Array) -> pa.Array:
    """Floats by their bits: 0.0 does not take back -0.0."""
    return as_bits_or_null(column) if pa.types.is_floating(column.type) else column


def _cancelled(equals: Int64s, change: Int64s) -> Int64s:
    """Of equal rows in the order in which they came, those that are void and the retractions that void them."""
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
