"""New rows put in order among those that are stored: what must be run, from which states, and what was run before.

All rows of a key that got a late one, and the new rows of all keys, are put in the order (key, total order). A key is
run from its first new row on: with the state before the next stored row, which is the one after the row before; where
that row has none, from the last row before it that has; where no stored row follows, with the key's last state.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from latecomer.events import (
    FOREVER_US,
    NEVER_US,
    Bools,
    EventBatch,
    Int64s,
    concat_rows,
    int64_view,
    inverse,
    order_by,
    take_rows,
    total_order,
    users_columns,
)
from latecomer.optimistic.batch_keys import BatchKeys, LastKeys
from latecomer.optimistic.history import Past
from latecomer.optimistic.key_states import LastStates, groups_of
from latecomer.windows.grouping import number_keys
from latecomer.windows.key_steps import KeyStep, Work

STATED = "_lc_stated"  # of a stored row: whether it has its state
_NO = FOREVER_US  # no place


def last_times(last: LastStates, number: Int64s, keys: int) -> Int64s:
    """The time of the last row of each key; number: of the keys of the last states."""
    last_us = np.full(keys, NEVER_US)
    last_us[number] = last.last_us
    return last_us


class Begin(NamedTuple):
    """For each key, where in the order its run begins, and the number of its state among all.

    old, old_state: the same for its stored rows, `_NO` where none follows a new one.
    """

    place: Int64s
    state: Int64s
    old: Int64s
    old_state: Int64s


@dataclass(frozen=True)
class Arrangement:
    """Rows in the order (key, total order): those stored, of keys that got a late row, and the new ones."""

    rows: pa.RecordBatch  # stored ones first
    past: Past | None
    last: LastStates
    state_columns: pa.Schema
    batch: EventBatch
    gone: Bools  # which rows are void
    rank: Int64s  # the place of each row in the total order
    order: Int64s  # the rows key by key, in the total order within each
    starts: Int64s  # where in the order the rows of a key begin
    number: Int64s  # of each of these keys
    last_key: Int64s  # the number of the key of each last state
    key_group: Int64s  # the group of each key, by its number

    @classmethod
    def of_new(
        cls, batch: EventBatch, keys: BatchKeys, last: LastStates, last_keys: LastKeys, states: pa.Schema
    ) -> Arrangement:
        """A sorted batch none of whose rows comes behind stored ones."""
        order, starts = keys.rows
        none, rank, number = np.zeros(len(batch), dtype=np.bool_), np.arange(len(batch)), np.arange(len(starts))
        return cls(batch.rows, None, last, states, batch, none, rank, order, starts, number, *last_keys)

    @classmethod
    def of(cls, batch: EventBatch, past: Past | None, gone: Bools, last: LastStates, states: pa.Schema) -> Arrangement:
        """Put a sorted batch among stored rows, some of them gone, without those of keys that stay as they were."""
        if past is None:
            keys = BatchKeys.of(batch)
            return cls.of_new(batch, keys, last, keys.with_last(last), states)
        (new, known, stored), size, distinct = number_keys([batch.rows, last.rows, past.rows], batch.layout.key)
        touched = np.zeros(size, dtype=np.bool_)
        touched[new[batch.ts_us <= last_times(last, known, size)[new]]] = True
        touched[stored[gone]] = True
        chosen = np.flatnonzero(touched[stored])
        past = past.take(chosen)
        rows = concat_rows([past.rows.select(batch.rows.schema.names), batch.rows])
        gone = np.append(gone[chosen], np.zeros(len(batch), dtype=np.bool_))
        group = np.zeros(1, dtype=np.int64) if distinct is None else groups_of(distinct, batch.layout.key)
        ranked = total_order(EventBatch(rows, batch.layout))
        order, starts, number = _key_by_key(ranked, np.append(stored[chosen], new))
        return cls(rows, past, last, states, batch, gone, inverse(ranked), order, starts, number, known, group)

    @property
    def ts_us(self) -> Int64s:
        """The times of the rows."""
        return int64_view(self.rows.column(self.batch.layout.time))

    @property
    def stored(self) -> int:
        """How many of the rows are stored ones."""
        return 0 if self.past is None else self.past.rows.num_rows

    @cached_property
    def segment(self) -> Int64s:
        """For each place in the order, the number of its key among those that have rows."""
        return np.repeat(np.arange(len(self.starts)), np.diff(self.starts, append=len(self.order)))

    @cached_property
    def is_old(self) -> Bools:
        """For each place in the order, whether its row is a stored one."""
        return self.order < self.stored

    @cached_property
    def states(self) -> pa.RecordBatch:
        """All states there are: none, the last ones, and those before stored rows."""
        names = self.state_columns.names
        none = pa.RecordBatch.from_arrays([pa.nulls(1, each.type) for each in self.state_columns], names=names)
        stored = [] if self.past is None else [self.past.rows.select(names)]
        return concat_rows([none, self.last.rows.select(names), *stored])

    @cached_property
    def begin(self) -> Begin:
        """Where the run of each key begins."""
        last_of_key = np.zeros(len(self.key_group), dtype=np.int64)
        last_of_key[self.last_key] = 1 + np.arange(len(self.last_key))
        last_state = last_of_key[self.number]
        if self.past is None:
            nothing = np.full(len(self.starts), _NO)
            return Begin(self.starts, last_state, nothing, nothing)
        place, is_old = np.arange(len(self.order)), self.is_old
        changes = ~is_old | self.gone[self.order]
        first_new = np.minimum.reduceat(np.where(changes, place, _NO), self.starts)
        follows = is_old & (place >= first_new[self.segment])
        next_old = np.minimum.reduceat(np.where(follows, place, _NO), self.starts)
        has_state = is_old & self._stated & (place <= next_old[self.segment])
        from_old = np.maximum.reduceat(np.where(has_state, place, -1), self.starts)
        repaired = next_old < _NO
        first = np.where(repaired & (from_old < next_old), from_old, first_new)
        old_state = 1 + len(self.last_key) + self.order[np.where(repaired, from_old, 0)]
        state = np.where(repaired, old_state, last_state)
        return Begin(first, state, np.where(repaired, from_old, _NO), old_state)

    @cached_property
    def _stated(self) -> Bools:
        """For each place in the order, whether its row is stored with a state."""
        assert self.past is not None
        if STATED not in self.past.rows.schema.names:
            return self.is_old
        stated = self.past.rows.column(STATED).to_numpy(zero_copy_only=False)
        return np.append(stated, np.zeros(len(self.batch), dtype=np.bool_))[self.order]

    @property
    def lost_a_row(self) -> Bools:
        """Which rows are of a key of which a stored row is void."""
        lost = np.zeros(len(self.starts), dtype=np.bool_)
        lost[self.segment_of_row[self.gone]] = True
        return lost[self.segment_of_row]

    @cached_property
    def segment_of_row(self) -> Int64s:
        """For each row, the number of its key among those that have rows."""
        segment = np.empty(len(self.order), dtype=np.int64)
        segment[self.order] = self.segment
        return segment

    @property
    def new_group(self) -> Int64s:
        """The group of the key of each row of the batch."""
        group = np.empty(len(self.order), dtype=np.int64)
        group[self.order] = np.repeat(self.key_group[self.number], np.diff(self.starts, append=len(self.order)))
        return group[self.stored :]

    @cached_property
    def run_places(self) -> Int64s:
        """The places in the order that are run, in order."""
        if self.past is None:
            return np.arange(len(self.order))
        runs = np.arange(len(self.order)) >= self.begin.place[self.segment]
        return np.flatnonzero(runs & ~self.gone[self.order])

    @cached_property
    def old_places(self) -> Int64s:
        """The places of stored rows that were run before, from the same states."""
        if self.past is None:
            return np.zeros(0, dtype=np.int64)
        return np.flatnonzero(self.is_old & (np.arange(len(self.order)) >= self.begin.old[self.segment]))

    def work(self, step: KeyStep, places: Int64s, state: Int64s, wanted: Int64s) -> Work:
        """What is to be run: rows at places in the order, from states of their keys (`begin.state`, ...)."""
        time, starts = self.batch.layout.time, self.starts
        rows = self.rows.select(step.reads(users_columns(self.rows).schema.names, time))
        if len(places) < len(self.order):
            segment = self.segment[places]
            starts = np.flatnonzero(np.append(True, segment[1:] != segment[:-1])[: len(places)])
            state = state[segment[starts]]
        states = take_rows(self.states, state)
        return Work(take_rows(rows, self.order[places]), np.append(starts, len(places)), states, wanted, time)


def _key_by_key(ranked: Int64s, key: Int64s) -> tuple[Int64s, Int64s, Int64s]:
    """Rows of a total order key by key, where in that keys begin, and the numbers of these keys."""
    order = ranked[order_by(key[ranked])]
    key = key[order]
    starts = np.flatnonzero(np.append(True, key[1:] != key[:-1])[: len(key)])
    return order, starts, key[starts]
