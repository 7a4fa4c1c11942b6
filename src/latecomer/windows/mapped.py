"""Mapped: a step, and after it the user's function from each output to any number of rows, at the same time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from latecomer.errors import InputError, must
from latecomer.events import Int64s, Layout, take_rows
from latecomer.windows.key_steps import KeyStep, Ran, Work, check_goes_on
from latecomer.windows.operators import check_returns
from latecomer.windows.user_fold import as_tuple, check_not_added, row_type, rows_returned


@dataclass(frozen=True)
class Mapped(KeyStep):
    """A step whose outputs become other rows.

    function: gets an output as a named tuple, and returns any number of dicts, or of tuples with a value per column.
    returns: the columns of the rows besides the key and the time, as an Arrow schema.
    """

    step: KeyStep
    function: Callable[[Any], Iterable[Any]]
    returns: pa.Schema

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise InputError(must("map", "be given a function of a row", self.function, "give a function"))
        check_goes_on(self.step, "map")
        check_returns(self.returns, f"map {self.name}")

    @property
    def name(self) -> str:
        """The function's name."""
        return getattr(self.function, "__name__", "map")

    @property
    def every(self) -> int:
        return self.step.every

    def output(self, columns: pa.Schema, layout: Layout) -> pa.Schema:
        given = self.step.output(columns, layout)
        row_type(tuple(given.names))
        return pa.schema([*check_not_added(given, self.returns, layout, f"map {self.name}"), *self.returns])

    def state(self, columns: pa.Schema, layout: Layout) -> pa.Schema:
        return self.step.state(columns, layout)

    def in_force(self, states: pa.RecordBatch, ts_us: Int64s) -> pa.RecordBatch:
        return self.step.in_force(states, ts_us)

    def run(self, work: Work, layout: Layout) -> Ran:
        ran = self.step.run(work, layout)
        make, names = row_type(tuple(ran.outputs.schema.names))._make, self.returns.names
        rows: list[tuple[Any, ...]] = []
        owner: list[int] = []
        for number, values in enumerate(zip(*(each.to_pylist() for each in ran.outputs.columns), strict=True)):
            made = [as_tuple(each, names) for each in self._called(make(values))]
            rows += made
            owner += [number] * len(made)
        places = np.array(owner, dtype=np.int64)
        outputs = take_rows(ran.outputs.select(list(dict.fromkeys((*layout.key, layout.time)))), places)
        said = rows_returned(rows, self.returns, f"map {self.name}")
        for name, column in zip(said.schema.names, said.columns, strict=True):
            outputs = outputs.append_column(name, column)
        return ran._replace(outputs=outputs, owner=ran.owner[places])

    def _called(self, row: Any) -> Iterable[Any]:
        try:
            return list(self.function(row))
        except Exception as error:
            rule, got = "take every row", f"{type(error).__name__}: {error}"
            raise InputError(must(f"map {self.name}", rule, got, "let it return no rows where it has none")) from error

    def describe(self) -> dict[str, Any]:
        return {**self.step.describe(), "map": self.name, "map_returns": str(self.returns)}

    def shown(self) -> str:
        return f"{self.step.shown()}, then {self.name}"
