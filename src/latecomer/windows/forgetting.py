"""Forgetting: a key that was silent for so long starts anew.

The state keeps the time of the key's last row. A row that comes `forget_us` or more after the one before it finds no
state; what is kept before it is the state all the same, since a late row may come in between.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from latecomer.events import Int64s, Layout, take_rows
from latecomer.windows.key_steps import KeyStep, Ran, Work
from latecomer.windows.scan_functions import numbers_of, value_before

LAST = "_lc_state_last"


@dataclass(frozen=True)
class Forgetting(KeyStep):
    """A step that starts anew after a silence."""

    step: KeyStep
    forget_us: int

    @property
    def every(self) -> int:
        return self.step.every

    def output(self, columns: pa.Schema, layout: Layout) -> pa.Schema:
        return self.step.output(columns, layout)

    def state(self, columns: pa.Schema, layout: Layout) -> pa.Schema:
        return self.step.state(columns, layout).append(pa.field(LAST, columns.field(layout.time).type))

    def run(self, work: Work, layout: Layout) -> Ran:
        time, last = work.rows.column(work.time), work.state.column(LAST)
        inner = work.state.select([name for name in work.state.schema.names if name != LAST])
        starts = np.union1d(work.starts, self._anew(work, numbers_of(last, np.int64)))
        stretch = np.searchsorted(work.starts, starts[:-1], side="right") - 1
        fresh = work.starts[stretch] != starts[:-1]
        fresh |= self._first_anew(work, last)[stretch]
        state = _nulled(take_rows(inner, stretch), fresh)
        ran = self.step.run(work._replace(starts=starts, state=state), layout)
        lasts = np.searchsorted(starts, work.starts[1:]) - 1
        before = _with_state_after(ran, work, starts, inner)
        before = before.append_column(LAST, value_before(time, last, work))
        after = take_rows(ran.after, lasts).append_column(LAST, time.take(pa.array(work.starts[1:] - 1)))
        return ran._replace(before=before, after=after)

    def _anew(self, work: Work, last: Any) -> Int64s:
        """The places of rows, but for the first of a stretch, that start anew."""
        ts_us = work.ts_us
        gap = np.flatnonzero(np.diff(ts_us) >= self.forget_us) + 1
        return np.setdiff1d(gap, work.starts)

    def _first_anew(self, work: Work, last: pa.Array) -> Any:
        """For each stretch, whether its first row starts anew."""
        known = numbers_of(last, np.int64)
        return known.valid & (work.ts_us[work.starts[:-1]] - known.values >= self.forget_us)

    def describe(self) -> dict[str, Any]:
        return {**self.step.describe(), "forget_us": self.forget_us}

    def shown(self) -> str:
        return self.step.shown()


def _nulled(state: pa.RecordBatch, fresh: Any) -> pa.RecordBatch:
    """States, null where rows start anew."""
    places = pa.array(np.arange(len(fresh)), mask=fresh)
    return pa.RecordBatch.from_arrays([column.take(places) for column in state.columns], schema=state.schema)


def _with_state_after(ran: Ran, work: Work, starts: Int64s, inner: pa.RecordBatch) -> pa.RecordBatch:
    """The states before the wanted rows: where one starts anew, what it would have found."""
    piece = np.searchsorted(starts, work.wanted, side="right") - 1
    is_first = np.flatnonzero(starts[piece] == work.wanted)
    if len(is_first) == 0:
        return ran.before
    stretch = np.searchsorted(work.starts, work.wanted[is_first], side="right") - 1
    begins = work.starts[stretch] == work.wanted[is_first]
    size, pieces = len(work.wanted), ran.after.num_rows
    places = np.arange(size)
    places[is_first] = np.where(begins, size + pieces + stretch, size + piece[is_first] - 1)
    columns = zip(ran.before.columns, ran.after.columns, inner.columns, strict=True)
    taken = [pa.concat_arrays(each).take(pa.array(places)) for each in columns]
    return pa.RecordBatch.from_arrays(taken, schema=ran.before.schema)
