"""Blocks of slices as a grid: a row for each group, a column for each place in the block, merged along the rows.

Merging place by place costs a search for equal keys in each; where every state is a sum, a minimum or a maximum, numpy
accumulates whole rows of the grid instead, in the same order, so that sums of floats are the same to the last bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from latecomer.events import Bools, Int64s, take_rows
from latecomer.windows.folding import FRESH, SLICE, Folding

_MOST_CELLS = 1 << 22
_SPARSE = 8  # cells for each row: a grid of more is mostly empty, and slower than merging


@dataclass(frozen=True)
class Grid:
    """States merged along the columns: `states[s][c, g]` has all of group g up to column c, if `seen[c, g]`."""

    group_columns: pa.RecordBatch  # of every group the start of its block, freshness and keys
    seen: Bools
    states: list[npt.NDArray[Any]]
    schema: pa.Schema

    def upto(self, columns: Int64s, hidden: Bools | None = None) -> tuple[pa.RecordBatch, Int64s]:
        """All groups as they are up to each of some columns, one after the other; and which of those, of each row.

        Of groups there is nothing in the columns in which they are hidden, nor before their first row.
        """
        seen = self.seen[columns]
        if hidden is not None:
            seen &= ~hidden
        which, group = np.nonzero(seen)
        column = columns[which]
        states = [pa.array(state[column, group]) for state in self.states]
        rows = pa.RecordBatch.from_arrays([*take_rows(self.group_columns, group).columns, *states], schema=self.schema)
        return rows, which


def as_grid(folding: Folding, blocks: pa.RecordBatch, column: Int64s, width: int) -> Grid | None:
    """Rows, no two of a group in a column, laid out and merged; None where states are not simple or cells too many."""
    how = folding.accumulating(blocks)
    if how is None:
        return None
    groups = folding.groups(blocks, (SLICE, FRESH))
    if len(groups) * width > min(_SPARSE * blocks.num_rows, _MOST_CELLS // max(1, len(how))):
        return None
    group = groups.spread(np.arange(len(groups)))
    seen = np.zeros((width, len(groups)), dtype=np.bool_)
    seen[column, group] = True
    group_columns, merged = folding.group_columns(blocks, groups), []
    for merge, state in zip(how, blocks.columns[group_columns.num_columns :], strict=True):
        values = state.to_numpy()
        cells = np.full(seen.shape, _neutral(merge, values.dtype), dtype=values.dtype)
        cells[column, group] = values
        merged.append(merge.accumulate(cells, axis=0, out=cells))
    return Grid(group_columns, np.logical_or.accumulate(seen, axis=0), merged, blocks.schema)


def _neutral(merge: np.ufunc, kind: np.dtype[Any]) -> Any:
    """What changes nothing: -0.0 keeps the sign of a zero that it is added to."""
    if merge is np.add:
        return kind.type(-0.0) if kind.kind == "f" else 0
    return np.iinfo(kind).max if merge is np.minimum else np.iinfo(kind).min
