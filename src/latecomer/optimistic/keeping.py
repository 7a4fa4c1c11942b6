"""Which rows of a micro-batch are stored, in which chunks, and which of them with the state before them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from latecomer.events import Bools, Int64s, take_rows
from latecomer.optimistic.arrangement import STATED, Arrangement
from latecomer.optimistic.history import History, Piece
from latecomer.optimistic.key_states import LAST, LastStates
from latecomer.windows.key_steps import OFTEN, Ran


class Keeping(NamedTuple):
    """The rows of the batch that are stored, piece by piece, and which rows of the batch are stored with a state."""

    chosen: Int64s
    pieces: list[Piece]
    stated: Bools
    every: int


def plan_keeping(arranged: Arrangement, group: Int64s, history: History, from_us: int, every: int) -> Keeping:
    """Choose the rows from a time on; `every`: how many rows of a key may lie between two states."""
    batch = arranged.batch
    chosen = np.flatnonzero(batch.ts_us >= from_us)
    row_bytes = 2 * batch.rows.nbytes // max(1, len(batch)) + 8 * len(arranged.state_columns)
    pieces = list(history.cut(batch.ts_us[chosen], group[chosen], row_bytes)) if len(chosen) else []
    stated = np.zeros(len(batch), dtype=np.bool_)
    stated[chosen] = True
    if every > OFTEN:
        stated[:] = _some_of(arranged, every)
        for piece in pieces:
            places = chosen[piece.places]
            _, first = np.unique(arranged.key[arranged.stored + places], return_index=True)
            stated[places[first]] = True
        stated[batch.ts_us < from_us] = False
    return Keeping(chosen, pieces, stated, every)


def _some_of(arranged: Arrangement, every: int) -> Bools:
    """Of the rows of the batch, one in so many of each key."""
    nth = np.arange(len(arranged.order)) - arranged.starts[arranged.segment]
    new = ~arranged.is_old
    some = np.zeros(len(arranged.batch), dtype=np.bool_)
    some[arranged.order[new] - arranged.stored] = nth[new] % every == 0
    return some


def wanted_states(arranged: Arrangement, keeping: Keeping) -> Int64s:
    """Of the rows that are run, those before which the state is wanted: stored ones, and new ones to be stored so."""
    row = arranged.order[arranged.run_places]
    stated = np.append(np.ones(arranged.stored, dtype=np.bool_), keeping.stated)
    return np.flatnonzero(stated[row])


def store_rows(arranged: Arrangement, ran: Ran, wanted: Int64s, keeping: Keeping, history: History) -> None:
    """Store the rows of the batch that are to be, with the states before them."""
    if len(keeping.chosen) == 0:
        return
    state_of = np.full(arranged.rows.num_rows, -1)
    state_of[arranged.order[arranged.run_places[wanted]]] = np.arange(len(wanted))
    order = keeping.chosen[np.concatenate([piece.places for piece in keeping.pieces])]
    rows, found = take_rows(arranged.batch.rows, order), state_of[arranged.stored + order]
    states = pa.array(found, mask=found < 0) if keeping.every > OFTEN else pa.array(found)
    for name, column in zip(ran.before.schema.names, ran.before.columns, strict=True):
        rows = rows.append_column(name, column.take(states))
    if keeping.every > OFTEN:
        rows = rows.append_column(STATED, pa.array(found >= 0))
    start = 0
    for piece in keeping.pieces:
        history.append(rows.slice(start, len(piece.places)), piece.group)
        start += len(piece.places)


def last_states(arranged: Arrangement, ran: Ran, group: Int64s) -> LastStates:
    """The last states of all keys of the groups of a batch, after it."""
    order, starts, last = arranged.order, arranged.starts, arranged.last
    ends = np.append(starts[1:], len(order)) - 1
    touched = np.zeros(arranged.keys, dtype=np.bool_)
    touched[arranged.key[order[starts]]] = True
    left = np.flatnonzero(~touched[arranged.last_key])
    first_new = order[_last_new(arranged)]
    key = arranged.batch.layout.key
    last_us = arranged.ts_us[order[ends]]
    columns = [*take_rows(arranged.rows.select(list(key)), first_new).columns, pa.array(last_us), *ran.after.columns]
    rows = pa.RecordBatch.from_arrays(columns, names=[*key, LAST, *ran.after.schema.names])
    names = rows.schema.names
    groups = group[first_new - arranged.stored]
    if len(left):
        untouched = take_rows(last.rows.select(names), left)
        rows = pa.concat_batches([untouched, rows.cast(untouched.schema)])
        groups = np.append(last.group[left], groups)
    return LastStates(rows, groups)


def _last_new(arranged: Arrangement) -> Int64s:
    """For each key, the place of its last new row."""
    place = np.where(arranged.is_old, -1, np.arange(len(arranged.order)))
    return np.maximum.reduceat(place, arranged.starts)
