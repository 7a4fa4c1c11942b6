"""Fold: the user's own function of a state and the rows of a key, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from latecomer.errors import InputError, must
from latecomer.events import Int64s, Layout
from latecomer.gives import own_columns
from latecomer.windows.compiled_fold import mended, run_compiled, why_python
from latecomer.windows.fold_compiler.kernels import Asked
from latecomer.windows.fold_compiler.source import source_of
from latecomer.windows.fold_states import FoldStates
from latecomer.windows.key_steps import NO_ROWS, SELDOM, KeyStep, Ran, Work
from latecomer.windows.operators import check_returns
from latecomer.windows.python_fold import PythonFold, follow_rows
from latecomer.windows.user_rows import UserOutputs, check_not_added, key_and_time, owners, row_type

STATE = "_lc_state"


@dataclass(frozen=True)
class Fold(KeyStep):
    """Any `(state, row) -> (state, outputs)`, run on the rows of each key in order.

    step: gets a row as a named tuple (`row.amount`); outputs are any number of dicts, or of tuples with a value per
    column. initial: the state before a key's first row. state: the Arrow type that states are kept as; where it is a
    struct and `initial` a tuple, plain or named, states are such tuples. returns: the columns of the outputs besides
    the key and the time, as an Arrow schema. version: a new one says that the function does something else now: a
    checkpoint of another version is refused.
    """

    step: Callable[[Any, Any], tuple[Any, Iterable[Any]]]
    initial: Any
    state_type: pa.DataType
    returns: pa.Schema
    version: str | int = 1
    name: str = "fold"
    source: str | None = field(default=None, compare=False, repr=False)  # workers cannot read the file it is in

    def __init__(
        self,
        step: Callable[[Any, Any], tuple[Any, Iterable[Any]]],
        initial: Any,
        *,
        state: pa.DataType,
        returns: pa.Schema,
        version: str | int = 1,
    ) -> None:
        name = getattr(step, "__name__", "fold")
        for attribute, value in (
            *(("step", step), ("initial", initial), ("state_type", state)),
            *(("returns", returns), ("version", version), ("name", name), ("source", source_of(step))),
        ):
            object.__setattr__(self, attribute, value)
        if not callable(step):
            raise InputError(must("fold", "be given a function of a state and a row", step, "give a function"))
        check_returns(returns, f"fold {name}")
        if not isinstance(state, pa.DataType):
            raise InputError(must(f"state of fold {name}", "be an Arrow type", state, "e.g. state=pa.int64()"))
        _ = self.states

    @property
    def every(self) -> int:
        return SELDOM

    @property
    def states(self) -> FoldStates:
        """How its states are kept."""
        return FoldStates.like(self.name, self.state_type, self.initial)

    @property
    def _asked(self) -> Asked:
        return Asked(self.step, self.source, self.states, self.returns)

    @property
    def checked(self) -> bool:
        return True

    def runs_as(self, columns: pa.Schema) -> str:
        why_not = why_python(self._asked, self.initial, columns)
        return f"as Python: {why_not}" if why_not else "compiled when many rows have come"

    def output(self, columns: pa.Schema, layout: Layout) -> pa.Schema:
        own = pa.schema(own_columns(columns))
        row_type(tuple(own.names))
        return pa.schema([*check_not_added(own, self.returns, layout, f"fold {self.name}"), *self.returns])

    def state(self, columns: pa.Schema, layout: Layout) -> pa.Schema:
        return pa.schema([(STATE, pa.struct([("state", self.state_type)]))])

    def run(self, work: Work, layout: Layout) -> Ran:
        written = run_compiled(self._asked, self.initial, work)
        if written is None:
            return self._run_python(work, layout)
        rows, outputs = key_and_time(work.rows, layout), UserOutputs(self.returns, f"fold {self.name}")
        given = outputs.columns_beside(rows, written.owner, written.outputs)
        before, after = (
            pa.RecordBatch.from_arrays([self.states.of_columns(each)], names=[STATE])
            for each in (written.before, written.after)
        )
        ran = Ran(given, written.owner, before, after, NO_ROWS, [])
        return mended(ran, written.redo, work, lambda part: self._run_python(part, layout))

    def _run_python(self, work: Work, layout: Layout) -> Ran:
        states, outputs = self.states, UserOutputs(self.returns, f"fold {self.name}")
        ran = follow_rows(PythonFold(self.step, self.initial, states, outputs), work)
        owner = owners(ran.counts)
        given = outputs.beside(key_and_time(work.rows, layout), owner, ran.outputs)
        before, after = (
            pa.RecordBatch.from_arrays([states.array(each)], names=[STATE]) for each in (ran.before, ran.after)
        )
        return Ran(given, owner, before, after, np.array(ran.failed, np.int64), ran.reasons)

    def in_force(self, states: pa.RecordBatch, ts_us: Int64s) -> pa.RecordBatch:
        kept, fold = states.column(0), self.states
        if not kept.null_count:
            return states
        initial = fold.array([fold.normal(self.initial)]).cast(kept.type)
        valid = kept.is_valid().to_numpy(zero_copy_only=False)
        places = pa.array(np.where(valid, np.arange(len(kept)), len(kept)))
        return pa.RecordBatch.from_arrays([pa.concat_arrays([kept, initial]).take(places)], schema=states.schema)

    def describe(self) -> dict[str, Any]:
        kinds = {"state": str(self.state_type), "returns": str(self.returns)}
        begins = {"initial": repr(self.initial), "version": str(self.version)}
        return {"step": "fold", "name": self.name, **begins, **kinds}

    def shown(self) -> str:
        return self.name
