"""Steps that follow the rows of a key in order, whatever the strategy that feeds them: what they are given and give.

A step keeps a state for each key. It is given stretches of rows, each of one key and in order, with the state before
the stretch, and gives outputs and states. Where nothing came before, every column of the state is null. A strategy may
run the same rows again from any state that it has kept: a step remembers nothing by itself.

Paper: Optimistic processing, section II (a stateful operation is a grouping and a map with a cycle).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from latecomer.errors import InputError, must
from latecomer.events import Int64s, Layout, int64_view

OFTEN, SELDOM = 1, 32  # how many rows lie between two states that are kept


class Work(NamedTuple):
    """Rows to run: those of stretch i are `starts[i]` to `starts[i + 1]`, at least one.

    state: before each stretch. wanted: the places of the rows, in order, before which the state is to be told.
    """

    rows: pa.RecordBatch
    starts: Int64s
    state: pa.RecordBatch
    wanted: Int64s
    time: str

    @property
    def ts_us(self) -> Int64s:
        """The times of the rows."""
        return int64_view(self.rows.column(self.time))

    @property
    def stretch(self) -> Int64s:
        """The number of the stretch of each row."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))


class Lost(NamedTuple):
    """Outputs that a function after the step could not take, the place of the row that each comes from, and why."""

    outputs: pa.RecordBatch
    owner: Int64s
    reasons: list[str]


class Ran(NamedTuple):
    """What a step made of rows: outputs, the place of the row that each comes from, and states.

    outputs: of a step that adds columns to rows (`KeyStep.adds`), only those; `whole_outputs` has the rows beside them.

    before: before the rows that were wanted. after: after each stretch. failed, reasons: the places of rows that could
    not be used, and why: for the state it is as if they were not there. lost: what functions after the step could not
    take, of each function. child: for each output a number that rises among those of its row and stays what it is when
    others of them come or go; without it they are counted.
    """

    outputs: pa.RecordBatch
    owner: Int64s
    before: pa.RecordBatch
    after: pa.RecordBatch
    failed: Int64s
    reasons: list[str]
    lost: tuple[Lost, ...] = ()
    child: Int64s | None = None

    @property
    def skipped(self) -> Int64s:
        """The places of rows of which something was skipped, as often as it was: they are tried again."""
        return np.concatenate([self.failed, *(each.owner for each in self.lost)])


class KeyStep(ABC):
    """What the user asks for: a step with a state for each key."""

    @property
    def every(self) -> int:
        """How many rows of a key may lie between two states that are kept: 1 where a state is small."""
        return OFTEN

    @property
    def adds(self) -> bool:
        """Whether its outputs are the rows themselves, one for each, with columns added."""
        return False

    def reads(self, names: list[str], time: str) -> list[str]:
        """Of the columns of the rows, those that it looks at, the time among them: it need not be given others."""
        return names

    @property
    def checked(self) -> bool:
        """Whether it is to be checked that rows give the same when they are run again: they are the user's to make."""
        return False

    @property
    def undoes(self) -> bool:
        """Whether an output may be void as soon as its key has a next row: then no step can follow."""
        return False

    def runs_as(self, columns: pa.Schema) -> str:
        """How it works on rows with these columns, for people, where there is more than one way."""
        return ""

    @abstractmethod
    def output(self, columns: pa.Schema, layout: Layout) -> pa.Schema:
        """The columns of its outputs, for rows with these; refuses what it cannot work on."""

    @abstractmethod
    def state(self, columns: pa.Schema, layout: Layout) -> pa.Schema:
        """The columns of its state."""

    @abstractmethod
    def run(self, work: Work, layout: Layout) -> Ran:
        """Run rows."""

    def in_force(self, states: pa.RecordBatch, ts_us: Int64s) -> pa.RecordBatch:
        """What of states counts for the rows at these times that they are before; none is what keys begin with."""
        return states

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Name and values: stored with the state and compared on restart."""

    @abstractmethod
    def shown(self) -> str:
        """As text for people."""


def beside(rows: pa.RecordBatch, added: pa.RecordBatch) -> pa.RecordBatch:
    """Rows with columns added."""
    return pa.RecordBatch.from_arrays([*rows.columns, *added.columns], schema=pa.schema([*rows.schema, *added.schema]))


def whole_outputs(step: KeyStep, ran: Ran, rows: pa.RecordBatch) -> pa.RecordBatch:
    """What a step made of rows, with their own columns where it adds to them."""
    return beside(rows, ran.outputs) if step.adds else ran.outputs


def child_numbers(owner: Int64s) -> Int64s:
    """For outputs of one owner after the other, the number of each among those of its owner."""
    first = np.flatnonzero(np.append(True, owner[1:] != owner[:-1])) if len(owner) else owner
    sizes = np.diff(first, append=len(owner))
    return np.arange(len(owner)) - np.repeat(first, sizes)


def check_goes_on(step: KeyStep, what: str) -> None:
    """Refuse what would follow a step whose outputs its next row may void."""
    if step.undoes:
        advice = "leave partial= out, write partial='full', or make it the last step"
        raise InputError(must(what, "not follow groups that are undone", step.shown(), advice))


NO_ROWS: Int64s = np.zeros(0, dtype=np.int64)
