"""Unpack: the blobs of one lane become typed columns again, those of a view of the results only where it is one.

One task may read all blobs of a micro-batch and give the rows of all shards in one order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from latecomer.codec import rows_from_bytes
from latecomer.events import EventBatch, Layout, concat_rows, take_rows, total_order
from latecomer.gives import Keep
from latecomer.spark.workers import end_task

STAGE = "stage"
UNPACK_COLUMNS = [STAGE, "blob"]
MERGED_ROWS = 100_000

Unpacker = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


@dataclass(frozen=True)
class UnpackPlan:
    """How packed rows of a lane become typed.

    schema: the columns they have then. keep: which rows are wanted, all without it. merged: the roles of columns by
    which the rows of all shards are put in one order. stages: the names of the stages, where rows say theirs. gaps:
    rows may lack columns, which are null then.
    """

    schema: pa.Schema
    keep: Keep | None = None
    merged: Layout | None = None
    stages: tuple[str, ...] = ()
    gaps: bool = False


def unpacker(plan: UnpackPlan) -> Unpacker:
    """The function that `mapInArrow` runs over a lane's packed rows."""

    def unpack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for rows in _pieces(batches, plan, wide=False):
            yield _selected(rows, plan)
        end_task()

    def merge(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        pieces = list(_pieces(batches, plan, wide=True))
        if pieces:
            rows = concat_rows(pieces)
            pieces.clear()
            yield from _merged(rows, plan)
        end_task()

    return unpack if plan.merged is None else merge


def _pieces(batches: Iterator[pa.RecordBatch], plan: UnpackPlan, *, wide: bool) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for place in range(batch.num_rows):
            rows = rows_from_bytes(batch.column("blob")[place].as_buffer(), wide=wide)
            if plan.keep is not None:
                wanted = plan.keep(rows)
                rows = rows if wanted.all() else take_rows(rows, np.flatnonzero(wanted))
            if plan.stages:
                name = plan.stages[batch.column(STAGE)[place].as_py()]
                rows = rows.append_column(STAGE, pa.repeat(pa.scalar(name, pa.string()), rows.num_rows))
            yield rows


def _selected(rows: pa.RecordBatch, plan: UnpackPlan) -> pa.RecordBatch:
    """The columns wanted; where rows have others, null where a row has none."""
    names = plan.schema.names
    if not plan.gaps:
        return rows.select(names)
    there = set(rows.schema.names)
    columns = [
        rows.column(each.name) if each.name in there else pa.nulls(rows.num_rows, each.type) for each in plan.schema
    ]
    return pa.RecordBatch.from_arrays(columns, names=names)


def _merged(rows: pa.RecordBatch, plan: UnpackPlan) -> Iterator[pa.RecordBatch]:
    """The rows in the total order that the machine gave each shard, a piece at a time."""
    assert plan.merged is not None
    positions = total_order(EventBatch(rows, plan.merged))
    rows = rows.select(plan.schema.names)
    for start in range(0, len(positions), MERGED_ROWS):
        yield _narrow(take_rows(rows, positions[start : start + MERGED_ROWS]))


def _narrow(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Text with the small offsets that Spark expects; a piece is far from needing large ones."""
    for place, field in enumerate(rows.schema):
        if field.type in _SMALL:
            small = rows.column(place).cast(_SMALL[field.type])
            rows = rows.set_column(place, field.with_type(small.type), small)
    return rows


_SMALL = {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}
