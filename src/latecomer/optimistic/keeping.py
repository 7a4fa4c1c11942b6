"""Which rows of a micro-batch are stored, in which chunks, and which of them with the state before them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from latecomer.events import NEVER_US, Bools, Int64s, concat_rows, take_rows
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
    state_bytes = arranged.states.nbytes // arranged.states.num_rows
    row_bytes = 2 * batch.rows.nbytes // max(1, len(batch)) + 8 * len(arranged.state_columns) + state_bytes
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
    """The last states of all keys of the groups of a batch, after it; group: of each row, stored ones first."""
    first, last, key = arranged.order[arranged.starts], arranged.last, arranged.batch.layout.key
    number = arranged.key[first]
    last_us = np.full(arranged.keys, NEVER_US)
    last_us[arranged.last_key] = last.last_us
    ends = arranged.order[np.append(arranged.starts[1:], len(arranged.order)) - 1]
    last_us[number] = np.maximum(last_us[number], arranged.ts_us[ends])
    states = _after(arranged, ran)
    columns = [*take_rows(arranged.rows.select(list(key)), first).columns, pa.array(last_us[number]), *states.columns]
    rows = pa.RecordBatch.from_arrays(columns, names=[*key, LAST, *states.schema.names])
    touched = np.zeros(arranged.keys, dtype=np.bool_)
    touched[number] = True
    left = np.flatnonzero(~touched[arranged.last_key])
    if len(left) == 0:
        return LastStates(rows, group[first])
    untouched = take_rows(last.rows.select(rows.schema.names), left)
    return LastStates(concat_rows([untouched, rows.cast(untouched.schema)]), np.append(last.group[left], group[first]))


def _after(arranged: Arrangement, ran: Ran) -> pa.RecordBatch:
    """The state after the last row of each key that has rows; where all that is run was voided, that before it."""
    has_rows = np.zeros(len(arranged.starts), dtype=np.bool_)
    has_rows[arranged.segment[arranged.run_places]] = True
    if has_rows.all():
        return ran.after
    segment = np.flatnonzero(has_rows)
    place = arranged.begin.state.copy()
    place[segment] = arranged.states.num_rows + np.arange(len(segment))
    return take_rows(concat_rows([arranged.states, ran.after.cast(arranged.states.schema)]), place)
