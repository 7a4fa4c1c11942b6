"""Which rows of a micro-batch are stored, in which chunks, and which of them with the state before them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from latecomer.events import Bools, Int64s, concat_rows, put_rows, take_rows
from latecomer.optimistic.arrangement import STATED, Arrangement, last_times
from latecomer.optimistic.history import Dealt, History
from latecomer.optimistic.key_states import GROUPS, LAST, LastStates
from latecomer.windows.key_steps import OFTEN, Ran, beside


class Keeping(NamedTuple):
    """The rows of the batch that are stored, which are those from `first` on, and how they are dealt into chunks.

    stated: which rows of the batch are stored with a state. some: not all that are stored are.
    """

    first: int
    dealt: Dealt | None
    stated: Bools
    some: bool


def plan_keeping(arranged: Arrangement, history: History, from_us: int, every: int) -> Keeping:
    """Choose the rows from a time on; `every`: how many rows of a key may lie between two states."""
    batch = arranged.batch
    first, some = int(np.searchsorted(batch.ts_us, from_us)), every > OFTEN
    stated = np.zeros(len(batch), dtype=np.bool_)
    if first == len(batch):
        return Keeping(first, None, stated, some)
    state_bytes = arranged.states.nbytes // arranged.states.num_rows
    row_bytes = 2 * batch.rows.nbytes // max(1, len(batch)) + 8 * len(arranged.state_columns) + state_bytes
    dealt = history.deal(batch.ts_us[first:], arranged.new_group[first:], GROUPS, row_bytes)
    stated[first:] = ~np.bool_(some)
    if some:
        stated[first:] = _some_of(arranged, every)[first:] | _first_of_key(arranged, first, dealt)
    return Keeping(first, dealt, stated, some)


def _first_of_key(arranged: Arrangement, first: int, dealt: Dealt) -> Bools:
    """Of the rows of the batch from one on, the first of each key in a piece."""
    piece = np.repeat(np.arange(len(dealt.group)), dealt.sizes)[dealt.place]
    places = np.flatnonzero(arranged.order >= arranged.stored + first)
    row, key = arranged.order[places] - arranged.stored - first, arranged.segment[places]
    is_first, of_row = np.ones(len(row), dtype=np.bool_), piece[row]
    is_first[1:] = (key[1:] != key[:-1]) | (of_row[1:] != of_row[:-1])  # pieces are of stretches of time, in order
    rows = np.empty(len(row), dtype=np.bool_)
    rows[row] = is_first
    return rows


def _some_of(arranged: Arrangement, every: int) -> Bools:
    """Of the rows of the batch, one in so many of each key."""
    row, nth = arranged.order, np.arange(len(arranged.order)) - arranged.starts[arranged.segment]
    if arranged.past is not None:
        new = np.flatnonzero(~arranged.is_old)
        row, nth = row[new] - arranged.stored, nth[new]
    some = np.zeros(len(arranged.batch), dtype=np.bool_)
    some[row] = nth % every == 0
    return some


def wanted_states(arranged: Arrangement, keeping: Keeping) -> Int64s:
    """Of the rows that are run, those before which the state is wanted: stored ones, and new ones to be stored so."""
    if arranged.past is None and keeping.stated.all():
        return arranged.run_places
    row = arranged.order[arranged.run_places]
    stated = np.append(np.ones(arranged.stored, dtype=np.bool_), keeping.stated)
    return np.flatnonzero(stated[row])


def store_rows(arranged: Arrangement, ran: Ran, wanted: Int64s, keeping: Keeping, history: History) -> None:
    """Store the rows of the batch that are to be, with the states before them."""
    if keeping.dealt is None:
        return
    for piece, group in keeping.dealt.pieces(_with_states(arranged, ran, wanted, keeping)):
        history.append(piece, group)


def _with_states(arranged: Arrangement, ran: Ran, wanted: Int64s, keeping: Keeping) -> pa.RecordBatch:
    """The rows that are stored, each with the state before it, or some of them."""
    rows, stated = arranged.batch.rows.slice(keeping.first), keeping.stated[keeping.first :]
    if arranged.past is None and len(wanted) == len(arranged.batch):
        whole = beside(rows, put_rows(ran.before, arranged.order))
        return whole.append_column(STATED, pa.array(stated)) if keeping.some else whole
    state_of = np.full(arranged.rows.num_rows, -1)
    state_of[arranged.order[arranged.run_places[wanted]]] = np.arange(len(wanted))
    found = state_of[arranged.stored + keeping.first :]
    rows = beside(rows, take_rows(ran.before, found) if not keeping.some else _taken(ran.before, found))
    return rows.append_column(STATED, pa.array(found >= 0)) if keeping.some else rows


def _taken(rows: pa.RecordBatch, places: Int64s) -> pa.RecordBatch:
    """Rows at places, null where there is none."""
    index = pa.array(places, mask=places < 0)
    return pa.RecordBatch.from_arrays([column.take(index) for column in rows.columns], schema=rows.schema)


def last_states(arranged: Arrangement, ran: Ran) -> LastStates:
    """The last states of all keys of the groups of a batch, after it."""
    first, last, key = arranged.order[arranged.starts], arranged.last, arranged.batch.layout.key
    number, group = arranged.number, arranged.key_group
    last_us = last_times(last, arranged.last_key, len(group))
    ends = arranged.order[np.append(arranged.starts[1:], len(arranged.order)) - 1]
    last_us[number] = np.maximum(last_us[number], arranged.ts_us[ends])
    states = _after(arranged, ran)
    columns = [*take_rows(arranged.rows.select(list(key)), first).columns, pa.array(last_us[number]), *states.columns]
    rows = pa.RecordBatch.from_arrays(columns, names=[*key, LAST, *states.schema.names])
    touched = np.zeros(len(group), dtype=np.bool_)
    touched[number] = True
    left = np.flatnonzero(~touched[arranged.last_key])
    if len(left) == 0:
        return LastStates(rows, group[number])
    untouched = take_rows(last.rows.select(rows.schema.names), left)
    return LastStates(concat_rows([untouched, rows.cast(untouched.schema)]), np.append(last.group[left], group[number]))


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
