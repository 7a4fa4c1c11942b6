"""Scan: every row with what functions say of the rows of its key up to it, in order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from latecomer.codec import wide_type
from latecomer.errors import InputError, must
from latecomer.events import Int64s, Layout
from latecomer.gives import own_columns
from latecomer.windows.key_steps import NO_ROWS, KeyStep, Ran, Work
from latecomer.windows.scan_functions import ScanFunction

_EXAMPLE = "e.g. scan(lc.running_sum('n'), lc.lag('n'))"


@dataclass(frozen=True, init=False)
class Scan(KeyStep):
    """The columns of each row, and one more for each function."""

    functions: tuple[ScanFunction, ...]

    def __init__(self, *functions: ScanFunction) -> None:
        if not functions:
            raise InputError(must("scan", "be given a function at least", "none", _EXAMPLE))
        for function in functions:
            if not isinstance(function, ScanFunction):
                raise InputError(must("scan", "be given functions of the rows so far", function, _EXAMPLE))
        object.__setattr__(self, "functions", functions)

    @property
    def every(self) -> int:
        return max(function.every for function in self.functions)

    @property
    def adds(self) -> bool:
        return True

    def reads(self, names: list[str], time: str) -> list[str]:
        wanted = {time, *(function.column for function in self.functions)}
        return [name for name in names if name in wanted]

    def output(self, columns: pa.Schema, layout: Layout) -> pa.Schema:
        own = pa.schema(own_columns(columns))
        time, taken = own.field(layout.time).type, {name.lower() for name in own.names}
        for function in self.functions:
            function.check(own)
            if function.name.lower() in taken:
                advice = f"give it another name: {function.kind}(...).alias('...')"
                raise InputError(must(f"result of {function.kind}", "have a name of its own", function.name, advice))
            taken.add(function.name.lower())
            own = own.append(pa.field(function.name, function.result_type(function.input_type(own), time)))
        return own

    def state(self, columns: pa.Schema, layout: Layout) -> pa.Schema:
        time = columns.field(layout.time).type
        kinds = [function.state_types(function.input_type(columns), time) for function in self.functions]
        return pa.schema(
            [
                (_column(number, place), wide_type(kind))
                for number, each in enumerate(kinds)
                for place, kind in enumerate(each)
            ]
        )

    def run(self, work: Work, layout: Layout) -> Ran:
        results: list[pa.Array] = []
        before: list[pa.Array] = []
        after: list[pa.Array] = []
        states = iter(work.state.columns)
        for function in self.functions:
            kinds = function.state_types(function.input_type(work.rows.schema), work.rows.schema.field(work.time).type)
            scanned = function.run(work, [next(states) for _ in kinds])
            results.append(scanned.results)
            before += scanned.before
            after += scanned.after
        names = work.state.schema
        return Ran(
            pa.RecordBatch.from_arrays(results, names=[function.name for function in self.functions]),
            np.arange(work.rows.num_rows),
            pa.RecordBatch.from_arrays(before, schema=names),
            pa.RecordBatch.from_arrays(after, schema=names),
            NO_ROWS,
            [],
        )

    def in_force(self, states: pa.RecordBatch, ts_us: Int64s) -> pa.RecordBatch:
        for number, function in enumerate(self.functions):
            if function.begins_with is not None:
                place = states.schema.get_field_index(_column(number, 0))
                filled = states.column(place).fill_null(function.begins_with)
                states = states.set_column(place, states.schema.field(place), filled)
        return states

    def describe(self) -> dict[str, Any]:
        return {"step": "scan", "functions": [function.describe() for function in self.functions]}

    def shown(self) -> str:
        return ", ".join(function.name for function in self.functions)


def _column(function: int, place: int) -> str:
    """The name of a column of the state."""
    return f"_lc_state_{function}_{place}"
