"""Fragments: what is folded of the events of a key that lie closer than the gap; sessions are made of them.

A fragment is a row of partial results: its first time (`_lc_slice`), its last, and the states of the aggregates. Where
its session is not fresh, a tier has given it as it is, and the next one holds it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, NamedTuple

import numpy as np
import pyarrow as pa

from latecomer.codec import widened
from latecomer.events import NEVER_US, Bools, Int64s, concat_rows, int64_view, order_by, sort_times, take_rows
from latecomer.windows.aggregates import AggregateFunction, States
from latecomer.windows.folding import FRESH, SLICE, Folding, slices_of, state_name
from latecomer.windows.grouping import Groups, group_rows, normal_keys
from latecomer.windows.session_joining import REFUSED, Joined, Stretch, join_sessions
from latecomer.windows.window import WINDOW_END, WINDOW_START


class LastTime(AggregateFunction):
    """The last time: a state that every fragment has."""

    kind: ClassVar[str] = "last_time"

    def state_types(self, kind: pa.DataType) -> list[pa.DataType]:
        return [pa.int64()]

    def result_type(self, kind: pa.DataType) -> pa.DataType:
        return pa.int64()

    def prepare(self, values: pa.Array, ts_us: Int64s) -> States:
        return [pa.array(ts_us)]

    def reduce(self, states: States, groups: Groups) -> States:
        return [pa.array(groups.reduce(np.maximum, states[0].to_numpy()))]

    def result(self, states: States) -> pa.Array:
        return states[0]


def lasts_of(table: pa.RecordBatch) -> Int64s:
    """The last times of fragments; `LastTime` is the first of the aggregates."""
    return int64_view(table.column(state_name(0, 0)))


def session_results(folding: Folding, table: pa.RecordBatch, gap_us: int) -> pa.RecordBatch:
    """What the user sees of sessions, a fragment each; `LastTime` is the first of the aggregates."""
    start = table.column(SLICE)
    end = pa.array(lasts_of(table) + gap_us).view(start.type)
    names = [WINDOW_START, WINDOW_END, *folding.keys, *(aggregate.name for aggregate in folding.aggregates[1:])]
    columns = [start, end, *(table.column(key) for key in folding.keys), *folding.results(table)[1:]]
    return pa.RecordBatch.from_arrays(columns, names=names)


def cut_sessions(owner: Int64s, start_us: Int64s, last_us: Int64s, gap_us: int) -> Groups:
    """Stretches of one owner that overlap or lie no further apart than the gap; by owner (from zero on), then start."""
    order = order_by(owner, start_us)
    owner, start_us = owner[order], start_us[order]
    reach_us = _reach(owner, last_us[order])
    begins = np.ones(len(order), dtype=np.bool_)
    begins[1:] = (owner[1:] != owner[:-1]) | (start_us[1:] - reach_us[:-1] > gap_us)
    return Groups(order, np.flatnonzero(begins))


def _reach(owner: Int64s, last_us: Int64s) -> Int64s:
    """How far the stretches of an owner up to each one reach; owners ascend."""
    if not ((last_us[1:] < last_us[:-1]) & (owner[1:] == owner[:-1])).any():
        return last_us
    ranked, order = sort_times(last_us)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    base = owner * len(order)  # above all ranks of the owners before, so that a maximum starts anew with each owner
    reach_us: Int64s = ranked[np.maximum.accumulate(base + rank) - base]
    return reach_us


class Fragments(NamedTuple):
    """Fragments, and for each the number in the scene of what it begins with."""

    table: pa.RecordBatch
    item: Int64s

    def take(self, places: Int64s) -> Fragments:
        """Those at some places."""
        return Fragments(take_rows(self.table, places), self.item[places])


def together(parts: Sequence[Fragments]) -> Fragments | None:
    """All fragments of several tables, if there are any."""
    full = [part for part in parts if part.table.num_rows]
    if not full:
        return None
    return Fragments(concat_rows([part.table for part in full]), np.concatenate([part.item for part in full]))


class Sessions(NamedTuple):
    """Fragments in order of their session's number, and of their start within it."""

    fragments: Fragments
    number: Int64s

    @classmethod
    def of(cls, fragments: Fragments, number: Int64s) -> Sessions:
        """Put fragments, with the number of each one's session, in order."""
        order = order_by(number, slices_of(fragments.table))
        begins = _begins(number[order])
        return cls(fragments.take(order), np.cumsum(begins) - 1)

    @property
    def groups(self) -> Groups:
        """The fragments of each session."""
        return Groups(np.arange(len(self.number)), np.flatnonzero(_begins(self.number)))

    def where(self, fresh: int) -> Sessions:
        """The fragments that are fresh, or those that are not; the sessions keep their numbers."""
        chosen = np.flatnonzero(self.fragments.table.column(FRESH).to_numpy() == fresh)
        return Sessions(self.fragments.take(chosen), self.number[chosen])

    def reduced(self, folding: Folding) -> Fragments:
        """One fragment for each session."""
        groups, (table, item) = self.groups, self.fragments
        return (
            self.fragments
            if len(groups) == len(item)
            else Fragments(folding.reduced(table, groups), item[groups.starts])
        )


def _begins(number: Int64s) -> Bools:
    """Where another number begins."""
    begins = np.ones(len(number), dtype=np.bool_)
    begins[1:] = number[1:] != number[:-1]
    return begins


@dataclass(frozen=True)
class Came:
    """The events of a micro-batch, and for each tier the punctuation before the tick of each."""

    rows: pa.RecordBatch | None
    ts_us: Int64s
    tick: Int64s
    before_us: list[Int64s]

    def __len__(self) -> int:
        return len(self.ts_us)


class Scene:
    """All that a micro-batch has to do with, numbered: its events, then the fragments that tiers hold."""

    def __init__(self, came: Came, held: list[pa.RecordBatch | None], keys: tuple[str, ...]) -> None:
        self.came = came
        tables = [table for table in held if table is not None]
        self._start_us = np.concatenate([came.ts_us, *(slices_of(table) for table in tables)])
        self._last_us = np.concatenate([came.ts_us, *(lasts_of(table) for table in tables)])
        self.owner = _owners(came.rows, tables, keys, len(self._start_us))
        ends = np.cumsum([len(came), *(0 if table is None else table.num_rows for table in held)]).tolist()
        self._held, self._items = held, [np.arange(*span) for span in pairwise(ends)]

    def held(self, tier: int) -> list[Fragments]:
        """What a tier held near its end."""
        table = self._held[tier]
        return [] if table is None else [Fragments(table, self._items[tier])]

    def joined(self, tier: int, known: Bools, upto_us: int, gap_us: int, *, strict: bool) -> Joined:
        """The sessions of a tier, of all that begins up to a time. known: the events that earlier tiers have taken."""
        came = self.came
        events = np.flatnonzero(came.ts_us <= upto_us)
        held = np.concatenate(self._items[: tier + 1])
        held = held[self._start_us[held] <= upto_us]
        items = np.concatenate([events, held])
        first = np.full(len(held), NEVER_US)
        ts_us, floor_us = came.ts_us[events], came.before_us[tier][events]
        alone = known[events] | ((ts_us if strict else ts_us + gap_us) > floor_us)
        stretches = Stretch(
            self.owner[items],
            np.append(came.tick[events], first),
            self._start_us[items],
            self._last_us[items],
            np.append(floor_us, first),
            np.append(alone, np.ones(len(held), dtype=np.bool_)),
        )
        found = join_sessions(stretches, gap_us, strict=strict)
        session = np.full(len(self._start_us), REFUSED)
        session[items] = found.session
        return Joined(session, found.last_us)


def _owners(rows: pa.RecordBatch | None, tables: list[pa.RecordBatch], keys: tuple[str, ...], size: int) -> Int64s:
    """The number of the key of each event and fragment."""
    if not keys or size == 0:
        return np.zeros(size, dtype=np.int64)
    parts = [table.select(list(keys)) for table in tables]
    if rows is not None:
        own = [normal_keys(rows.column(key)) for key in keys]
        parts.insert(0, widened(pa.RecordBatch.from_arrays(own, names=list(keys))))
    groups = group_rows([pa.concat_arrays([part.column(key) for part in parts]) for key in keys])
    return groups.spread(np.arange(len(groups)))
