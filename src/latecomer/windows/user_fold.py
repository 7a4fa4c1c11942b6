"""Fold: the user's own function of a state and the rows of a key, in order.

Invariants
1. The function may change its state in place: what is kept of states and outputs is copied before it is called again.
2. A row for which it raises is passed over: the state is as if the row were not there.
"""

from __future__ import annotations

import re
from collections import namedtuple
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from latecomer.codec import widened
from latecomer.errors import InputError, error_text, must
from latecomer.events import Layout, take_rows
from latecomer.gives import own_columns
from latecomer.windows.key_steps import SELDOM, KeyStep, Ran, Work
from latecomer.windows.operators import check_returns

STATE = "_lc_state"
_SIMPLE = (int, float, str, bytes, bool, type(None))


@dataclass(frozen=True)
class Fold(KeyStep):
    """Any `(state, row) -> (state, outputs)`, run on the rows of each key in order.

    step: gets a row as a named tuple (`row.amount`); outputs are any number of dicts, or of tuples with a value per
    column. initial: the state before a key's first row. state: the Arrow type that states are kept as. returns: the
    columns of the outputs besides the key and the time, as an Arrow schema. version: a new one says that the function
    does something else now: a checkpoint of another version is refused.
    """

    step: Callable[[Any, Any], tuple[Any, Iterable[Any]]]
    initial: Any
    state_type: pa.DataType
    returns: pa.Schema
    version: str | int = 1
    name: str = "fold"

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
            *(("returns", returns), ("version", version), ("name", name)),
        ):
            object.__setattr__(self, attribute, value)
        if not callable(step):
            raise InputError(must("fold", "be given a function of a state and a row", step, "give a function"))
        check_returns(returns, f"fold {name}")
        if not isinstance(state, pa.DataType):
            raise InputError(must(f"state of fold {name}", "be an Arrow type", state, "e.g. state=pa.int64()"))
        self.stored([initial])

    @property
    def every(self) -> int:
        return SELDOM

    def stored(self, states: Sequence[Any]) -> pa.Array:
        """States as they are kept; refuses what is not of their type."""
        where, rule = f"state of fold {self.name}", f"be kept as it is by its type, {self.state_type}"
        try:
            values = pa.array(states, self.state_type)
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, ValueError, OverflowError) as error:
            raise InputError(must(where, rule, str(error), "change the type or the fold")) from error
        for kept, state in zip(values.to_pylist(), states, strict=True):
            if kept != state and repr(kept) != repr(state):  # the first is false of NaN
                advice = f"it comes back as {kept!r}: give every field of a struct, lists for tuples, a wider type"
                raise InputError(must(where, rule, state, advice))
        return pa.StructArray.from_arrays([values], names=["state"])

    def output(self, columns: pa.Schema, layout: Layout) -> pa.Schema:
        own = pa.schema(own_columns(columns))
        row_type(tuple(own.names))
        return pa.schema([*check_not_added(own, self.returns, layout, f"fold {self.name}"), *self.returns])

    def state(self, columns: pa.Schema, layout: Layout) -> pa.Schema:
        return pa.schema([(STATE, pa.struct([("state", self.state_type)]))])

    def run(self, work: Work, layout: Layout) -> Ran:
        following = _Following(self, work)
        for stretch in range(len(work.starts) - 1):
            following.follow(stretch)
        owner = np.array(following.owner, dtype=np.int64)
        names = list(dict.fromkeys((*layout.key, layout.time)))
        said = rows_returned(following.outputs, self.returns, f"fold {self.name}")
        outputs = take_rows(work.rows.select(names), owner)
        for name, column in zip(said.schema.names, said.columns, strict=True):
            outputs = outputs.append_column(name, column)
        states = [
            pa.RecordBatch.from_arrays([self.stored(each)], names=[STATE])
            for each in (following.before, following.after)
        ]
        return Ran(outputs, owner, states[0], states[1], np.array(following.failed, np.int64), following.reasons)

    def describe(self) -> dict[str, Any]:
        kinds = {"state": str(self.state_type), "returns": str(self.returns)}
        return {"step": "fold", "name": self.name, "version": str(self.version), **kinds}

    def shown(self) -> str:
        return self.name


class _Following:
    """The function at work: what came out of it, and copies of its states."""

    def __init__(self, fold: Fold, work: Work) -> None:
        self._step, self._initial = fold.step, fold.initial
        make = row_type(tuple(work.rows.schema.names))._make
        self._nested = any(pa.types.is_nested(each.type) for each in work.rows.schema)
        self._rows = [make(values) for values in zip(*(each.to_pylist() for each in work.rows.columns), strict=True)]
        self._starts, self._wanted = work.starts.tolist(), {int(place) for place in work.wanted}
        self._states = work.state.column(0).to_pylist()
        self._names = fold.returns.names
        self.outputs: list[tuple[Any, ...]] = []
        self.owner: list[int] = []
        self.before: list[Any] = []
        self.after: list[Any] = []
        self.failed: list[int] = []
        self.reasons: list[str] = []

    def follow(self, stretch: int) -> None:
        """The rows of a stretch, in order."""
        kept = self._states[stretch]
        state = copied(self._initial) if kept is None else kept["state"]
        safe: Any = copied(state)
        since: list[Any] = []
        for place in range(self._starts[stretch], self._starts[stretch + 1]):
            if place in self._wanted:
                safe, since = copied(state), []
                self.before.append(safe)
            row = self._rows[place]
            try:
                state, outputs = self._called(state, row)
            except Exception as error:
                self.failed.append(place)
                self.reasons.append(error_text(error))
                state = self._again(safe, since)
                safe, since = copied(state), []
                continue
            since.append(row)
            self.outputs += outputs
            self.owner += [place] * len(outputs)
        self.after.append(copied(state))

    def _called(self, state: Any, row: Any) -> tuple[Any, list[tuple[Any, ...]]]:
        state, outputs = self._step(state, self._own(row))
        return state, [as_tuple(each, self._names) for each in outputs]

    def _own(self, row: Any) -> Any:
        """A row that the function may change as it likes."""
        return deepcopy(row) if self._nested else row

    def _again(self, safe: Any, since: list[Any]) -> Any:
        """The state before a row for which the function raised, which may have changed it in place."""
        state = copied(safe)
        for row in since:
            state, outputs = self._step(state, self._own(row))
            for _ in outputs:
                pass
        return state


def check_not_added(columns: pa.Schema, returns: pa.Schema, layout: Layout, where: str) -> list[pa.Field]:
    """The key and the time, which are added to what a function returns; refuses one that returns them itself."""
    added = [columns.field(name) for name in dict.fromkeys((*layout.key, layout.time))]
    for each in returns:
        if each.name.lower() in {field.name.lower() for field in added}:
            advice = "leave it out: key and time are added by themselves"
            raise InputError(must(f"returns of {where}", "not have the key or the time", each.name, advice))
    return added


def copied(value: Any) -> Any:
    """A value that nobody else can change."""
    return value if isinstance(value, _SIMPLE) else deepcopy(value)


def as_tuple(output: Any, names: Sequence[str]) -> tuple[Any, ...]:
    """An output with a value for each column."""
    if isinstance(output, dict):
        if set(output) != set(names):
            raise InputError(
                must("an output", f"have the columns {', '.join(names)}", list(output), "or change returns=")
            )
        return tuple(copied(output[name]) for name in names)
    if not isinstance(output, list | tuple) or len(output) != len(names):
        rule = f"be a dict or a tuple with {', '.join(names)}"
        raise InputError(must("an output", rule, output, "return a list of outputs, or change returns="))
    return tuple(map(copied, output))


def rows_returned(outputs: Sequence[tuple[Any, ...]], returns: pa.Schema, where: str) -> pa.RecordBatch:
    """Outputs as columns of the types that were promised."""
    columns: Iterator[Sequence[Any]] = iter(zip(*outputs, strict=True)) if outputs else iter([()] * len(returns))
    try:
        arrays = [_column(values, field.type) for values, field in zip(columns, returns, strict=True)]
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, ValueError, OverflowError) as error:
        rule = "return values of the types that it says it returns"
        raise InputError(must(where, rule, str(error), "change it, or returns=")) from error
    fields = [pa.field(each.name, each.type) for each in returns]
    return widened(pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields)))


def _column(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Values as a column; Arrow would cut what is behind the point where whole numbers are promised."""
    if pa.types.is_integer(kind) and any(isinstance(each, float) and not each.is_integer() for each in values):
        raise ValueError(f"a number with a fraction where {kind} was promised")
    return pa.array(values, kind)


@lru_cache(maxsize=64)
def row_type(names: tuple[str, ...]) -> Any:
    """The named tuple that user's functions see a row as."""
    for name in names:
        if not re.fullmatch(r"[A-Za-z]\w*", name):
            advice = "rename it before (with_columns, select), or leave it out"
            raise InputError(must("columns of a fold", "be names of attributes (row.amount)", name, advice))
    return namedtuple("Row", names, rename=True)
