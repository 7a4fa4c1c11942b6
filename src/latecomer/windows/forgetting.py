"""Forgetting: a key that was silent for so long starts anew.

The state keeps the time of the key's last row. A row that comes `forget_us` or more after the one before it finds no
state; what is kept before it is the state all the same, since a late row may come in between.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from latecomer.events import Bools, Int64s, Layout, take_rows
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

    @property
    def adds(self) -> bool:
        return self.step.adds

    def reads(self, names: list[str], time: str) -> list[str]:
        return self.step.reads(names, time)

    @property
    def checked(self) -> bool:
        return self.step.checked

    def runs_as(self, columns: pa.Schema) -> str:
        return self.step.runs_as(columns)

    def output(self, columns: pa.Schema, layout: Layout) -> pa.Schema:
        return self.step.output(columns, layout)

    def state(self, columns: pa.Schema, layout: Layout) -> pa.Schema:
        return self.step.state(columns, layout).append(pa.field(LAST, columns.field(layout.time).type))

    def run(self, work: Work, layout: Layout) -> Ran:
        time, last = work.rows.column(work.time), work.state.column(LAST)
        ts_us = work.ts_us
        anew = np.setdiff1d(np.flatnonzero(np.diff(ts_us) >= self.forget_us) + 1, work.starts)
        starts = np.union1d(work.starts, anew)
        stretch = np.searchsorted(work.starts, starts[:-1], side="right") - 1
        goes_on = work.starts[stretch] == starts[:-1]
        state = take_rows(self.in_force(work.state, ts_us[work.starts[:-1]]), stretch)
        ran = self.step.run(work._replace(starts=starts, state=nulled(state, ~goes_on)), layout)
        before = _state_found(ran, work, starts).append_column(LAST, value_before(time, last, work))
        lasts = np.searchsorted(starts, work.starts[1:]) - 1
        after = take_rows(ran.after, lasts).append_column(LAST, time.take(pa.array(work.starts[1:] - 1)))
        return ran._replace(before=before, after=after)

    def in_force(self, states: pa.RecordBatch, ts_us: Int64s) -> pa.RecordBatch:
        last = numbers_of(states.column(LAST), np.int64)
        inner = states.select([name for name in states.schema.names if name != LAST])
        return self.step.in_force(nulled(inner, last.valid & (ts_us - last.values >= self.forget_us)), ts_us)

    def describe(self) -> dict[str, Any]:
        return {**self.step.describe(), "forget_us": self.forget_us}

    def shown(self) -> str:
        return self.step.shown()


def nulled(state: pa.RecordBatch, anew: Bools) -> pa.RecordBatch:
    """States, null where that is said."""
    places = pa.array(np.arange(len(anew)), mask=anew)
    return pa.RecordBatch.from_arrays([column.take(places) for column in state.columns], schema=state.schema)


def _state_found(ran: Ran, work: Work, starts: Int64s) -> pa.RecordBatch:
    """The states before the wanted rows: where one starts anew, what it would have found."""
    piece = np.searchsorted(starts, work.wanted, side="right") - 1
    first = np.flatnonzero(starts[piece] == work.wanted)
    if len(first) == 0:
        return ran.before
    stretch = np.searchsorted(work.starts, work.wanted[first], side="right") - 1
    begins = work.starts[stretch] == work.wanted[first]
    size, pieces = len(work.wanted), ran.after.num_rows
    places = np.arange(size)
    places[first] = np.where(begins, size + pieces + stretch, size + piece[first] - 1)
    known = work.state.select(ran.before.schema.names)
    columns = zip(ran.before.columns, ran.after.columns, known.columns, strict=True)
    taken = [pa.concat_arrays(each).take(pa.array(places)) for each in columns]
    return pa.RecordBatch.from_arrays(taken, schema=ran.before.schema)
