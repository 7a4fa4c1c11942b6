"""What the tests of time travel on small streams share: a machine that is fed by hand, and readers of its output."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from latecomer.contract import Machine
from latecomer.events import TICK_FIELD, EventBatch, Layout
from latecomer.headers import HeaderBuilder
from latecomer.outputs import Lane, Output, consolidate
from latecomer.runner import Between, Runner
from latecomer.timetravel import TimeTravel
from tests.outputs import changes

TIMES = pa.timestamp("us", "UTC")
LAYOUT = Layout("ts", ("meter",))
COLUMNS = pa.schema([TICK_FIELD, ("ts", TIMES), ("meter", pa.string()), ("value", pa.int64())])
Row = tuple[Any, ...]


class Travel:
    """A machine that is restored from its snapshot after every batch, and the progress of its stream."""

    def __init__(
        self,
        settings: TimeTravel,
        columns: pa.Schema = COLUMNS,
        layout: Layout = LAYOUT,
        idle_ticks: int | None = None,
    ) -> None:
        self._columns, self._layout, self._idle_ticks = columns, layout, idle_ticks
        self._runner = Runner(settings, layout, idle_ticks=idle_ticks, between=Between.RESTORE)

    @property
    def machine(self) -> Machine:
        """As it was restored."""
        return self._runner.machine

    def push(self, *rows: Row, end: int | None = None) -> list[Output]:
        """Push rows: tick, time in microseconds, and so on; the stream ends with the tick `end`."""
        values = list(zip(*rows, strict=True)) or [()] * len(self._columns)
        arrays = [pa.array(column, field.type) for column, field in zip(values, self._columns, strict=True)]
        batch = EventBatch(pa.RecordBatch.from_arrays(arrays, schema=self._columns), self._layout)
        header = HeaderBuilder(self._idle_ticks)
        header.add(batch.ts_us, batch.tick)
        if end is not None:
            header.add_ends(np.array([end]), 1)
        return self._runner.push(batch, header.build()).outputs

    def finish(self) -> list[Output]:
        """The end."""
        return self._runner.finish()

    def all(self, rows: Sequence[Row], cuts: Iterable[int] = ()) -> list[Output]:
        """Push rows cut into batches at these places, and finish."""
        places = [0, *cuts, len(rows)]
        batches = [self.push(*rows[start:stop]) for start, stop in pairwise(places)]
        return [*(output for outputs in batches for output in outputs), *self.finish()]


def told(outputs: Iterable[Output], *columns: str) -> list[tuple[Any, ...]]:
    """These columns of results, each with its change, in order; times in microseconds."""
    found: list[tuple[Any, ...]] = []
    for output in outputs:
        if output.lane is Lane.RESULTS:
            found += zip(*(_plain(output.rows.column(name)) for name in columns), changes(output), strict=True)
    return found


def standing(outputs: Iterable[Output], *columns: str) -> list[tuple[Any, ...]]:
    """These columns of the results that stand in the end."""
    table = consolidate(outputs)
    assert table is not None
    return list(zip(*(_plain(table.column(name).combine_chunks()) for name in columns), strict=True))


def refused(outputs: Iterable[Output]) -> list[tuple[Any, ...]]:
    """The time, the value and the reason of each event in the lane `late`."""
    rows = [output.rows for output in outputs if output.lane is Lane.LATE]
    return [
        row for each in rows for row in zip(*(_plain(each[name]) for name in ("ts", "value", "reason")), strict=True)
    ]


def _plain(column: pa.Array) -> list[Any]:
    values: list[Any] = (column.view(pa.int64()) if pa.types.is_timestamp(column.type) else column).to_pylist()
    return values
