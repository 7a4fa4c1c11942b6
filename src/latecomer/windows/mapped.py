"""Mapped: a step, and after it the user's function from each output to any number of rows, at the same time.

An output for which the function raises gives no rows; the step itself, and its state, are as if nothing had happened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from latecomer.errors import InputError, error_text, must
from latecomer.events import Int64s, Layout, take_rows
from latecomer.windows.key_steps import KeyStep, Lost, Ran, Work, check_goes_on, child_numbers, whole_outputs
from latecomer.windows.operators import check_returns
from latecomer.windows.user_rows import UserOutputs, UserRows, check_not_added, key_and_time, owners, row_type

MOST_ROWS = 1 << 20


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
        if isinstance(self.step, Mapped) and isinstance(self.step.step, Mapped):
            advice = "let one function do the work of two"
            raise InputError(must("map", "follow a step, or one other map", f"two before {self.name}", advice))

    @property
    def name(self) -> str:
        """The function's name."""
        return getattr(self.function, "__name__", "map")

    @property
    def every(self) -> int:
        return self.step.every

    @property
    def checked(self) -> bool:
        return True

    def runs_as(self, columns: pa.Schema) -> str:
        return self.step.runs_as(columns)

    def output(self, columns: pa.Schema, layout: Layout) -> pa.Schema:
        given = self.step.output(columns, layout)
        row_type(tuple(given.names))
        return pa.schema([*check_not_added(given, self.returns, layout, f"map {self.name}"), *self.returns])

    def state(self, columns: pa.Schema, layout: Layout) -> pa.Schema:
        return self.step.state(columns, layout)

    def in_force(self, states: pa.RecordBatch, ts_us: Int64s) -> pa.RecordBatch:
        return self.step.in_force(states, ts_us)

    def run(self, work: Work, layout: Layout) -> Ran:
        ran, outputs = self.step.run(work, layout), UserOutputs(self.returns, f"map {self.name}")
        ran = ran._replace(outputs=whole_outputs(self.step, ran, work.rows))
        rows: list[tuple[Any, ...]] = []
        counts: list[int] = []
        reasons: dict[int, str] = {}
        for number, row in enumerate(UserRows(ran.outputs)):
            made: list[tuple[Any, ...]] = []
            try:
                made = outputs.taken(self.function(row))
            except MemoryError:
                raise
            except Exception as error:
                reasons[number] = f"map {self.name}: {error_text(error)}"
            rows += made
            counts.append(len(made))
        places = owners(counts)
        given = outputs.beside(key_and_time(ran.outputs, layout), places, rows)
        child, lost = self._numbered(ran, places), _lost(ran, reasons)
        return ran._replace(outputs=given, owner=ran.owner[places], child=child, lost=lost)

    def _numbered(self, ran: Ran, places: Int64s) -> Int64s:
        """The number of a row's output, and after it that of the row made of it: one that raises moves no other."""
        before = child_numbers(ran.owner) if ran.child is None else ran.child
        among = child_numbers(places)
        if len(places) and (among.max() >= MOST_ROWS or before.max() >= 2**63 // MOST_ROWS):
            rule, got = f"return less than {MOST_ROWS:,} rows for one", f"{among.max() + 1:,}"
            raise InputError(must(f"map {self.name}", rule, got, "return fewer, or call .map once instead of often"))
        return before[places] * MOST_ROWS + among

    def describe(self) -> dict[str, Any]:
        before = self.step.describe()
        return {**before, "maps": [*before.get("maps", ()), {"name": self.name, "returns": str(self.returns)}]}

    def shown(self) -> str:
        return f"{self.step.shown()}, then {self.name}"


def _lost(ran: Ran, reasons: dict[int, str]) -> tuple[Lost, ...]:
    """What was lost before, and the outputs for which the function raised."""
    if not reasons:
        return ran.lost
    places = np.array(list(reasons), dtype=np.int64)
    return (*ran.lost, Lost(take_rows(ran.outputs, places), ran.owner[places], list(reasons.values())))
