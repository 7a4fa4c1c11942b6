"""Functions of the last rows of a key: the value some rows before, the mean of the last ones, sessions.

The state of the first two is the values of the last rows, the nearest first, null where there was none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa

from latecomer._jit import kernel
from latecomer.durations import Duration, duration_us
from latecomer.errors import InputError, must
from latecomer.events import Int64s
from latecomer.windows.key_steps import OFTEN, SELDOM, Work
from latecomer.windows.scan_functions import (
    Numbers,
    ScanFunction,
    Scanned,
    States,
    as_column,
    check_alias,
    numbers_of,
    value_before,
)

_FEW, _MOST = 4, 1_000


def _check_rows(rows: object, where: str, least: int) -> None:
    if not isinstance(rows, int) or isinstance(rows, bool) or not least <= rows <= _MOST:
        raise InputError(must(where, f"be a whole number from {least} to {_MOST:,}", rows, "give another"))


class Recent(NamedTuple):
    """The values of rows, and after them those of the states, column by column: what lies some rows before a row."""

    values: pa.Array
    starts: Int64s
    size: int

    @classmethod
    def of(cls, values: pa.Array, state: States, work: Work) -> Recent:
        """The values of all rows and all states, one after the other."""
        return cls(pa.concat_arrays([values, *state]), work.starts, work.rows.num_rows)

    def places(self, rows: Int64s, stretch: Int64s, back: int) -> Int64s:
        """Where the value lies that is so many rows before each of these, which are of stretches, or their ends."""
        place, first = rows - back, self.starts[stretch]
        in_state = self.size + (first - place - 1) * (len(self.starts) - 1) + stretch
        return np.where(place >= first, place, in_state)

    def before(self, rows: Int64s, count: int) -> States:
        """The values of so many rows before each of these, the nearest first."""
        stretch = np.searchsorted(self.starts, rows, side="right") - 1
        return [self.values.take(pa.array(self.places(rows, stretch, back))) for back in range(1, count + 1)]

    def after(self, count: int) -> States:
        """The values of the last so many rows of each stretch, the last first."""
        stretch, ends = np.arange(len(self.starts) - 1), self.starts[1:]
        return [self.values.take(pa.array(self.places(ends, stretch, back))) for back in range(1, count + 1)]


@dataclass(frozen=True)
class Lag(ScanFunction):
    """The value so many rows before; null where there are fewer."""

    rows: int = 1
    kind: ClassVar[str] = "lag"

    def __post_init__(self) -> None:
        _check_rows(self.rows, "rows of lag", 1)

    @property
    def every(self) -> int:
        return OFTEN if self.rows <= _FEW else SELDOM

    def result_type(self, kind: pa.DataType, time: pa.DataType) -> pa.DataType:
        return kind

    def state_types(self, kind: pa.DataType, time: pa.DataType) -> list[pa.DataType]:
        return [kind] * self.rows

    def run(self, work: Work, state: States) -> Scanned:
        recent = Recent.of(self.values(work), state, work)
        results = recent.values.take(pa.array(recent.places(np.arange(recent.size), work.stretch, self.rows)))
        return Scanned(results, recent.before(work.wanted, self.rows), recent.after(self.rows))

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "rows": self.rows}


@dataclass(frozen=True)
class MovingAverage(ScanFunction):
    """The mean of the values of the last rows, the row itself among them; nulls are passed over."""

    rows: int = 2
    kind: ClassVar[str] = "moving_average"
    wanted: ClassVar[str] = "whole or floating numbers"

    def __post_init__(self) -> None:
        _check_rows(self.rows, "rows of moving_average", 2)

    @property
    def every(self) -> int:
        return OFTEN if self.rows <= _FEW else SELDOM

    def takes(self, kind: pa.DataType) -> bool:
        return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind)) and kind != pa.uint64()

    def result_type(self, kind: pa.DataType, time: pa.DataType) -> pa.DataType:
        return pa.float64()

    def state_types(self, kind: pa.DataType, time: pa.DataType) -> list[pa.DataType]:
        return [pa.float64()] * (self.rows - 1)

    def run(self, work: Work, state: States) -> Scanned:
        recent = Recent.of(self.values(work).cast(pa.float64(), safe=False), state, work)
        means = Numbers(np.empty(recent.size), np.empty(recent.size, np.bool_))
        mean_of_last(numbers_of(recent.values, np.float64), work.starts, self.rows, means)
        kept = self.rows - 1
        results = as_column(means, pa.float64())
        return Scanned(results, recent.before(work.wanted, kept), recent.after(kept))

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "rows": self.rows}


@dataclass(frozen=True, init=False)
class SessionStart(ScanFunction):
    """The time of the first row of the row's session: rows of a key, each at most `gap` after the one before."""

    gap: Duration = "30 minutes"
    kind: ClassVar[str] = "session_id"
    needs_column: ClassVar[bool] = False

    def __init__(self, gap: Duration = "30 minutes", named: str | None = None) -> None:
        duration_us(gap, "gap")
        for name, value in (("column", None), ("named", named), ("gap", gap)):
            object.__setattr__(self, name, value)

    def alias(self, name: str) -> SessionStart:
        check_alias(name)
        return SessionStart(self.gap, name)

    def result_type(self, kind: pa.DataType, time: pa.DataType) -> pa.DataType:
        return time

    def state_types(self, kind: pa.DataType, time: pa.DataType) -> list[pa.DataType]:
        return [time, time]

    def run(self, work: Work, state: States) -> Scanned:
        time = work.rows.column(work.time)
        last, began = (numbers_of(each, np.int64) for each in state)
        found = np.empty(len(time), dtype=np.int64)
        session_starts(work.ts_us, work.starts, last, began.values, duration_us(self.gap, "gap"), found)
        starts, lasts = pa.array(found).view(time.type), pa.array(work.starts[1:] - 1)
        before = [value_before(time, state[0], work), value_before(starts, state[1], work)]
        return Scanned(starts, before, [time.take(lasts), starts.take(lasts)])

    def describe(self) -> dict[str, Any]:
        return {**super().describe(), "gap_us": duration_us(self.gap, "gap")}


@kernel
def mean_of_last(numbers: Numbers, starts: Int64s, rows: int, means: Numbers) -> None:
    """The mean of the last rows, added up from the oldest; states come after the rows, as in `Recent`."""
    size, stretches = len(means.values), len(starts) - 1
    for stretch in range(stretches):
        first = starts[stretch]
        for i in range(first, starts[stretch + 1]):
            total, count = 0.0, 0
            for back in range(rows - 1, -1, -1):
                place = i - back
                if place < first:
                    place = size + (first - place - 1) * stretches + stretch
                if numbers.valid[place]:
                    total, count = total + numbers.values[place], count + 1
            means.valid[i] = count > 0
            means.values[i] = total / count if count > 0 else 0.0


@kernel
def session_starts(ts_us: Int64s, starts: Int64s, last: Numbers, began_us: Int64s, gap_us: int, found: Int64s) -> None:
    """The start of the session of each row."""
    for stretch in range(len(starts) - 1):
        before_us, known, start_us = last.values[stretch], last.valid[stretch], began_us[stretch]
        for i in range(starts[stretch], starts[stretch + 1]):
            if not known or ts_us[i] - before_us > gap_us:
                start_us = ts_us[i]
            before_us, known = ts_us[i], True
            found[i] = start_us
