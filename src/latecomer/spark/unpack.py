"""Unpack: the blobs of one lane become typed columns again.

The lane `results` may need finishing: where times were moved, the windows follow them; and one task may read all blobs
of a micro-batch and give the rows of all shards in one order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from latecomer.codec import rows_from_bytes
from latecomer.contract import CHANGE, FINAL, PANE, TIER
from latecomer.events import (
    EventBatch,
    Layout,
    concat_rows,
    floor_times,
    int64_view,
    take_rows,
    total_order,
)
from latecomer.spark.workers import settle

UNPACK_COLUMNS = [PANE, FINAL, TIER, "blob"]
_GIVEN = pa.scalar(1, pa.int8())
MERGED_ROWS = 100_000

Unpacker = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


@dataclass(frozen=True)
class FinishPlan:
    """How the lane `results` is finished; its rows then have their carried columns still.

    merged: put the rows of all shards in one order.
    window: the column of a window's start and the advance, where it must follow times that may have been moved.
    """

    layout: Layout
    merged: bool
    window: tuple[str, int] | None


def unpacker(names: tuple[str, ...], plan: FinishPlan | None = None, *, changes: bool = False) -> Unpacker:
    """The function that `mapInArrow` runs over a lane's packed rows; `names` are the columns it gives."""

    def unpack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for rows in _pieces(batches, names, plan, wide=False, changes=changes):
            yield rows.select(list(names))
        settle()

    def merge(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        pieces = list(_pieces(batches, names, plan, wide=True, changes=changes))
        if plan is None or not pieces:
            return
        rows = concat_rows(pieces)
        pieces.clear()
        yield from _merged(rows, list(names), plan)
        settle()

    return unpack if plan is None or not plan.merged else merge


def _pieces(
    batches: Iterator[pa.RecordBatch], names: tuple[str, ...], plan: FinishPlan | None, *, wide: bool, changes: bool
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for place in range(batch.num_rows):
            said = {name: batch.column(name)[place] for name in UNPACK_COLUMNS}
            rows = _shown(rows_from_bytes(said.pop("blob").as_buffer(), wide=wide), changes=changes)
            if plan is not None and plan.window is not None:
                rows = _with_windows(rows, plan.layout.time, *plan.window)
            said[CHANGE] = _GIVEN
            for name, value in said.items():
                if name in names and name not in rows.schema.names:
                    rows = rows.append_column(name, pa.repeat(value, rows.num_rows))
            yield rows


def _shown(rows: pa.RecordBatch, *, changes: bool) -> pa.RecordBatch:
    """Of rows that say how they change things: the changes, or what stands."""
    if CHANGE not in rows.schema.names:
        return rows
    change = rows.column(CHANGE).to_numpy()
    shown = change != 0 if changes else change >= 0
    return rows if shown.all() else take_rows(rows, np.flatnonzero(shown))


def _merged(rows: pa.RecordBatch, names: list[str], plan: FinishPlan) -> Iterator[pa.RecordBatch]:
    """The rows in the total order that the machine gave each shard, a piece at a time."""
    said = (CHANGE, *UNPACK_COLUMNS)
    compared = [name for name in rows.schema.names if name not in said]
    positions = total_order(EventBatch(rows.select(compared), plan.layout))
    rows = rows.select(names)
    for start in range(0, len(positions), MERGED_ROWS):
        yield _narrow(take_rows(rows, positions[start : start + MERGED_ROWS]))


def _with_windows(rows: pa.RecordBatch, time: str, window: str, advance_us: int) -> pa.RecordBatch:
    place = rows.schema.get_field_index(window)
    field = rows.schema.field(place)
    start_us = floor_times(int64_view(rows.column(time)), advance_us)
    return rows.set_column(place, field, pa.array(start_us).view(field.type))


def _narrow(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Text with the small offsets that Spark expects; a piece is far from needing large ones."""
    for place, field in enumerate(rows.schema):
        if field.type in _SMALL:
            small = rows.column(place).cast(_SMALL[field.type])
            rows = rows.set_column(place, field.with_type(small.type), small)
    return rows


_SMALL = {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}
