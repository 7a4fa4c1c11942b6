"""Unpack: the blobs of one lane become typed columns again.

The lane `down` may need finishing: where times were moved, the windows follow them; and one task may read all blobs
of a micro-batch and give the rows of all shards in one order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from latecomer.codec import rows_from_bytes
from latecomer.contract import CHANGE, FINAL, PANE, TIER
from latecomer.events import (
    CARRIED_PREFIX,
    EventBatch,
    Layout,
    concat_rows,
    floor_times,
    int64_view,
    take_rows,
    total_order,
)

UNPACK_COLUMNS = ["pane", "final", "tier", "blob"]
MERGED_ROWS = 100_000

Unpacker = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


@dataclass(frozen=True)
class DownPlan:
    """How the lane `down` is finished; its rows then have their carried columns still.

    merged: put the rows of all shards in one order.
    window: the column of a window's start and the advance, where it must follow times that may have been moved.
    """

    layout: Layout
    merged: bool
    window: tuple[str, int] | None


def unpacker(columns: tuple[str, ...], plan: DownPlan | None = None, *, changes: bool = False) -> Unpacker:
    """The function that `mapInArrow` runs over a lane's packed rows."""
    names = [*columns, *((CHANGE, PANE, FINAL) if changes else ())]

    def unpack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for rows in _pieces(batches, plan, wide=False, changes=changes):
            yield rows.select(names)

    def merge(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        pieces = list(_pieces(batches, plan, wide=True, changes=changes))
        if plan is None or not pieces:
            return
        rows = concat_rows(pieces)
        pieces.clear()
        yield from _merged(rows, columns, names, plan)

    return unpack if plan is None or not plan.merged else merge


def _pieces(
    batches: Iterator[pa.RecordBatch], plan: DownPlan | None, *, wide: bool, changes: bool
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        panes, finals, tiers, blobs = (batch.column(name) for name in UNPACK_COLUMNS)
        for pane, final, tier, blob in zip(panes, finals, tiers, blobs, strict=True):
            rows = _shown(rows_from_bytes(blob.as_buffer(), wide=wide), changes=changes)
            if tier.as_py():
                rows = rows.append_column(TIER, pa.repeat(tier, rows.num_rows))
            if plan is not None and plan.window is not None:
                rows = _with_windows(rows, plan.layout.time, *plan.window)
            yield _with_changes(rows, pane, final) if changes else rows


def _shown(rows: pa.RecordBatch, *, changes: bool) -> pa.RecordBatch:
    """Of rows that say how they change things: the changes, or what stands."""
    if CHANGE not in rows.schema.names:
        return rows
    change = rows.column(CHANGE)
    return rows.filter(pc.not_equal(change, 0) if changes else pc.greater_equal(change, 0))


def _merged(
    rows: pa.RecordBatch, columns: tuple[str, ...], names: list[str], plan: DownPlan
) -> Iterator[pa.RecordBatch]:
    """The rows in the total order that the machine gave each shard, a piece at a time."""
    compared = [name for name in rows.schema.names if name in columns or name.startswith(CARRIED_PREFIX)]
    positions = total_order(EventBatch(rows.select(compared), plan.layout))
    rows = rows.select(names)
    for start in range(0, len(positions), MERGED_ROWS):
        yield _narrow(take_rows(rows, positions[start : start + MERGED_ROWS]))


def _with_windows(rows: pa.RecordBatch, time: str, window: str, advance_us: int) -> pa.RecordBatch:
    place = rows.schema.get_field_index(window)
    field = rows.schema.field(place)
    start_us = floor_times(int64_view(rows.column(time)), advance_us)
    return rows.set_column(place, field, pa.array(start_us).view(field.type))


def _with_changes(rows: pa.RecordBatch, pane: pa.Scalar, final: pa.Scalar) -> pa.RecordBatch:
    count = rows.num_rows
    if CHANGE not in rows.schema.names:
        rows = rows.append_column(CHANGE, pa.repeat(pa.scalar(1, pa.int8()), count))
    return rows.append_column(PANE, pa.repeat(pane, count)).append_column(FINAL, pa.repeat(final, count))


def _narrow(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Text with the small offsets that Spark expects; a piece is far from needing large ones."""
    for place, field in enumerate(rows.schema):
        if field.type in _SMALL:
            small = rows.column(place).cast(_SMALL[field.type])
            rows = rows.set_column(place, field.with_type(small.type), small)
    return rows


_SMALL = {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}
