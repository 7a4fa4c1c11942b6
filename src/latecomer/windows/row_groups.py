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
from latecomer.events import Int64s, Layout, take_rows
from latecomer.gives import own_columns
from latecomer.windows.key_steps import NO_ROWS, OFTEN, SELDOM, KeyStep, Ran, Work

GROUP = "group"
_STATE = "_lc_state"
_MOST, _FEW = 1_000, 4


@dataclass(frozen=True)
class Group(KeyStep):
    """The last `rows` rows of a key, for every row, as a list in the column `group`.

    partial: what becomes of the first groups of a key, which are shorter: "keep" gives them, "full" does not.
    """

    rows: int
    partial: str = "keep"

    def __post_init__(self) -> None:
        if not isinstance(self.rows, int) or isinstance(self.rows, bool) or not 2 <= self.rows <= _MOST:
            raise InputError(must("rows of group", f"be a whole number from 2 to {_MOST:,}", self.rows, "e.g. 3"))
        if self.partial not in ("keep", "full"):
            raise InputError(must("partial", "be 'keep' or 'full'", self.partial, "leave it out for 'keep'"))

    @property
    def every(self) -> int:
        return OFTEN if self.rows <= _FEW else SELDOM

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
        owner = np.flatnonzero(sizes == self.rows) if self.partial == "full" else np.arange(len(items))
        names = list(dict.fromkeys((*layout.key, layout.time)))
        outputs = take_rows(work.rows.select(names), owner)
        outputs = outputs.append_column(GROUP, _lists(values, groups[owner]))
        before, _ = places.upto(
            work.wanted - 1, np.searchsorted(work.starts, work.wanted, side="right") - 1, self.rows - 1
        )
        after, _ = places.upto(work.starts[1:] - 1, np.arange(len(work.starts) - 1), self.rows - 1)
        states = [
            pa.RecordBatch.from_arrays([_lists(values, each)], schema=work.state.schema) for each in (before, after)
        ]
        return Ran(outputs, owner, states[0], states[1], NO_ROWS, [])

    def describe(self) -> dict[str, Any]:
        return {"step": "group", "rows": self.rows, "partial": self.partial}

    def shown(self) -> str:
        return f"groups of {self.rows} rows"


class _Places:
    """Where rows lie, and after them those of the states, one list after the other."""

    def __init__(self, size: int, starts: Int64s, state: pa.Array) -> None:
        self._size, self._starts = size, starts
        lengths = state.value_lengths().fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
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
