"""Group: every row of a key together with those just before it, as the paper's grouping has it.

Paper: Optimistic processing (Kuralenok et al.), section V-B, Algorithm 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from latecomer.codec import wide_type
from latecomer.errors import InputError, must
from latecomer.events import Bools, Int64s, Layout, take_rows
from latecomer.gives import own_columns
from latecomer.windows.collected import lengths_of
from latecomer.windows.key_steps import NO_ROWS, OFTEN, SELDOM, KeyStep, Ran, Work

GROUP = "group"
_STATE = "_lc_state"
_MOST, _FEW = 1_000, 4


@dataclass(frozen=True)
class Group(KeyStep):
    """The last `rows` rows of a key, for every row, as a list in the column `group`.

    partial: what becomes of the first groups of a key, which are shorter: "keep" gives them, "full" does not; with
    "undo" each is void as soon as the key has a next row, so at most one stands, that of the key's last row.
    """

    rows: int
    partial: str = "keep"

    def __post_init__(self) -> None:
        if not isinstance(self.rows, int) or isinstance(self.rows, bool) or not 2 <= self.rows <= _MOST:
            raise InputError(must("rows of group", f"be a whole number from 2 to {_MOST:,}", self.rows, "e.g. 3"))
        if self.partial not in ("keep", "full", "undo"):
            raise InputError(must("partial", "be 'keep', 'full' or 'undo'", self.partial, "leave it out for 'keep'"))

    @property
    def every(self) -> int:
        return OFTEN if self.rows <= _FEW else SELDOM

    @property
    def undoes(self) -> bool:
        return self.partial == "undo"

    def output(self, columns: pa.Schema, layout: Layout) -> pa.Schema:
        own = pa.schema(own_columns(columns))
        taken = [own.field(name) for name in dict.fromkeys((*layout.key, layout.time))]
        for each in taken:
            if each.name.lower() == GROUP:
                raise InputError(must("key and time", f"not be named {GROUP}", each.name, "rename it before"))
        return pa.schema([*taken, pa.field(GROUP, pa.list_(pa.struct(list(own))))])

    def state(self, columns: pa.Schema, layout: Layout) -> pa.Schema:
        own = [pa.field(each.name, wide_type(each.type)) for each in own_columns(columns)]
        return pa.schema([(_STATE, pa.large_list(pa.struct(own)))])

    def run(self, work: Work, layout: Layout) -> Ran:
        state = work.state.column(0)
        items = pa.StructArray.from_arrays(work.rows.columns, names=work.rows.schema.names)
        known = state.flatten().cast(items.type)
        places = _Places(len(items), work.starts, state)
        values = pa.concat_arrays([items, known])
        groups, sizes = places.upto(np.arange(len(items)), work.stretch, self.rows)
        owner = self._owners(sizes, work.starts)
        names = list(dict.fromkeys((*layout.key, layout.time)))
        outputs = take_rows(work.rows.select(names), owner)
        outputs = outputs.append_column(GROUP, _lists(values, groups[owner]))
        before, _ = places.upto(
            work.wanted - 1, np.searchsorted(work.starts, work.wanted, side="right") - 1, self._kept
        )
        after, _ = places.upto(work.starts[1:] - 1, np.arange(len(work.starts) - 1), self._kept)
        states = [
            pa.RecordBatch.from_arrays([_lists(values, each)], schema=work.state.schema) for each in (before, after)
        ]
        return Ran(outputs, owner, states[0], states[1], NO_ROWS, [])

    @property
    def _kept(self) -> int:
        """How many rows a state has; where short groups are undone the whole group, which says whether it is one."""
        return self.rows if self.undoes else self.rows - 1

    def _owners(self, sizes: Int64s, starts: Int64s) -> Int64s:
        """The rows whose group is given, of stretches that begin at these places."""
        if self.partial == "keep":
            return np.arange(len(sizes))
        given = sizes == self.rows
        if self.undoes:
            given[starts[1:] - 1] = True
        return np.flatnonzero(given)

    def short(self, groups: pa.RecordBatch) -> Bools:
        """Which of the groups that were given are short."""
        return np.asarray(lengths_of(groups.column(GROUP)) < self.rows)

    def standing(self, states: pa.RecordBatch, layout: Layout) -> pa.RecordBatch:
        """The short groups that stand as long as these are the states after the last rows of keys."""
        lists = states.column(_STATE)
        sizes = lengths_of(lists)
        lists = lists.take(pa.array(np.flatnonzero((sizes > 0) & (sizes < self.rows))))
        rows = lists.flatten()
        last = rows.take(pa.array(np.cumsum(lengths_of(lists)) - 1))
        names = list(dict.fromkeys((*layout.key, layout.time)))
        return pa.RecordBatch.from_arrays([*(last.field(name) for name in names), lists], names=[*names, GROUP])

    def in_force(self, states: pa.RecordBatch, ts_us: Int64s) -> pa.RecordBatch:
        """The rows that a next row would be grouped with."""
        if not self.undoes:
            return states
        lists = states.column(_STATE)
        back, ends = np.arange(self.rows - 1, 0, -1), np.cumsum(lengths_of(lists))
        places = np.where(back[None, :] <= lengths_of(lists)[:, None], ends[:, None] - back[None, :], -1)
        return pa.RecordBatch.from_arrays([_lists(lists.flatten(), places)], names=[_STATE])

    def describe(self) -> dict[str, Any]:
        return {"step": "group", "rows": self.rows, "partial": self.partial}

    def shown(self) -> str:
        return f"groups of {self.rows} rows"


class _Places:
    """Where rows lie, and after them those of the states, one list after the other."""

    def __init__(self, size: int, starts: Int64s, state: pa.Array) -> None:
        self._size, self._starts = size, starts
        lengths = lengths_of(state)
        self._ends = np.cumsum(lengths)
        self._begins = self._ends - lengths

    def upto(self, rows: Int64s, stretch: Int64s, count: int) -> tuple[Int64s, Int64s]:
        """The places of each row and so many less one before it, oldest first, -1 where there are fewer; how many."""
        back = np.arange(count - 1, -1, -1)
        place = rows[:, None] - back[None, :]
        short = self._starts[stretch][:, None] - place  # how far before the stretch
        stored = self._ends[stretch][:, None] - short
        stored = np.where(stored >= self._begins[stretch][:, None], self._size + stored, -1)
        found = np.where(short > 0, stored, place)
        return found, (found >= 0).sum(axis=1)


def _lists(values: pa.Array, places: Int64s) -> pa.Array:
    """Values at the places of each line, as lists."""
    known = places >= 0
    offsets = np.append(0, np.cumsum(known.sum(axis=1)))
    return pa.LargeListArray.from_arrays(pa.array(offsets), values.take(pa.array(places[known])))
