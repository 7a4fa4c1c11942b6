"""Where rows stand among all others, kept by what is made of them: so a chain of steps has one order.

A position is (time, source, tick of the first row, order, hash of the first row, number among equal rows, and for every
step the number among the outputs of one row). An item's outputs follow it and precede the next item, in every shard.

Paper: Optimistic processing (Kuralenok et al.), section V-A.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from latecomer.events import (
    EVENT_CHANGE_FIELD,
    SOURCE,
    TICK_FIELD,
    Int64s,
    Layout,
    equal_rows,
    int64_view,
    inverse,
    take_rows,
)
from latecomer.optimistic.arrangement import Arrangement
from latecomer.optimistic.changes import Outputs
from latecomer.windows.grouping import group_rows
from latecomer.windows.hashing import hash_rows

HASH = "_lc_hash"
_PLACE = "_lc_at_"


def position_fields(columns: pa.Schema, layout: Layout, *, first: bool) -> tuple[pa.Field, ...]:
    """The columns that a position travels in, for rows with these columns, in the first step or a later one."""
    kinds = [columns.field(name).type for name in layout.order]
    kinds += [pa.int64()] * (3 if first else 1)
    source = () if layout.source is None else (pa.field(SOURCE, columns.field(layout.source).type),)
    return (*source, *(pa.field(f"{_PLACE}{number}", kind) for number, kind in enumerate(kinds)))


def with_hash(rows: pa.RecordBatch, names: Sequence[str]) -> pa.RecordBatch:
    """Rows with a hash of the user's columns, which breaks ties alike in every step."""
    return rows.append_column(HASH, pa.array(hash_rows([rows.column(name) for name in names], rows.num_rows)))


def as_events(arranged: Arrangement, outputs: Outputs, change: int, *, adds: bool, first: bool) -> pa.RecordBatch:
    """Outputs as the events of the next step: with their positions, their ticks, and what they change."""
    layout = arranged.batch.layout
    roots = take_rows(arranged.rows, outputs.row)
    places = [roots.column(name) for name in layout.order]
    if first:
        places.append(pa.array(number_among_equals(arranged)[outputs.row]))
    places.append(pa.array(outputs.child))
    rows = outputs.rows(arranged, adds=adds)
    if layout.source is not None:
        rows = rows.append_column(SOURCE, roots.column(layout.source))
    for number, values in enumerate(places):
        rows = rows.append_column(f"{_PLACE}{number}", values)
    rows = rows.append_column(EVENT_CHANGE_FIELD, pa.array(np.full(rows.num_rows, change, dtype=np.int8)))
    return rows.append_column(TICK_FIELD, roots.column(TICK_FIELD.name))


def first_of_position(arranged: Arrangement) -> Int64s:
    """In a later step, for each row, the first place in the order that has its key and position.

    A row that takes the place of one that was taken back stands where that stood.
    """
    layout, ts_us = arranged.batch.layout, arranged.ts_us
    near = np.flatnonzero(np.isin(ts_us, ts_us[arranged.gone]))
    names = [*([] if layout.source is None else [layout.source]), TICK_FIELD.name, *layout.order]
    columns = (take_rows(arranged.rows.select(names), near)).columns
    groups = group_rows([arranged.segment_of_row[near], ts_us[near], *columns])
    first = inverse(arranged.order)
    first[near] = groups.spread(groups.reduce(np.minimum, first[near]))
    return first


def number_among_equals(arranged: Arrangement) -> Int64s:
    """For each row its number among those of its key that are equal in all else that a position has.

    They follow each other in the total order, so neighbours are compared.
    """
    order, rows, segment = arranged.order, arranged.rows, arranged.segment
    same = segment[1:] == segment[:-1]
    for values in (arranged.ts_us, *(int64_view(rows.column(name)) for name in (TICK_FIELD.name, HASH))):
        same &= values[order][1:] == values[order][:-1]
    layout, near = arranged.batch.layout, np.flatnonzero(same)
    others = rows.select([name for name in (layout.source, *layout.order) if name is not None and name != HASH])
    if len(near) and others.num_columns:  # they need not be among the columns that are hashed
        same[near] = equal_rows(take_rows(others, order[near]), take_rows(others, order[near + 1]))
    first = np.flatnonzero(np.append(True, ~same)[: len(order)])
    numbers = np.empty(len(order), dtype=np.int64)
    numbers[order] = np.arange(len(order)) - np.repeat(first, np.diff(first, append=len(order)))
    return numbers
