"""The live instance of the application: events that are on time in order, and late ones as far as it can take them.

Aggregates do not depend on the order inside a window. So a late event counts in those windows of the first aggregate
that are open when it comes: it belongs to their first answer. In windows that are closed replays repair it.
"""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from latecomer.chunks import ChunkStore, Store
from latecomer.events import FOREVER_US, Layout, concat_rows, int64_view, take_rows
from latecomer.timetravel.reach import parts_of, with_checked_steps
from latecomer.windows.operators import Behind, Chain, Clocks, Operator, Step, results_in_order

if TYPE_CHECKING:
    from latecomer.timetravel.settings import TimeTravel


class LiveInstance:
    """Steps before the first aggregate, which need no state, and the rest of the application at work."""

    def __init__(self, settings: TimeTravel, store: Store, layout: Layout) -> None:
        parts = list(parts_of(with_checked_steps(settings.operator, layout, settings.reach.step_us)))
        steps = list(takewhile(lambda part: isinstance(part, Step), parts))
        self._steps: Operator | None = Chain(*steps) if steps else None
        self._layout, after = layout, layout if self._steps is None else self._steps.layout_after(layout)
        self._running = Chain(*parts[len(steps) :]).build(store, after)
        self._window = settings.reach.windows[0]

    def run(self, on_time: pa.RecordBatch | None, late: Behind | None, read_us: int) -> pa.RecordBatch | None:
        """The results for rows on time and late ones, when all that is on time has been read up to a time."""
        rows = None if on_time is None else self._stepped(on_time)
        behind = None if late is None else self._stepped_behind(late)
        if behind is None:
            return results_in_order(self._running, rows, read_us)
        return self._running.push_with_behind(rows, behind, Clocks.both(read_us)).rows

    def _stepped(self, rows: pa.RecordBatch) -> pa.RecordBatch | None:
        """What the first steps make of rows in order."""
        if self._steps is None or rows.num_rows == 0:
            return rows if rows.num_rows else None
        return results_in_order(self._steps.build(ChunkStore(), self._layout), rows, FOREVER_US)

    def _stepped_behind(self, late: Behind) -> Behind | None:
        """The same of late rows that have a window open: those that have the same ones open at a time."""
        last_us = self._window.steps.starts(int64_view(late.rows.column(self._layout.time)))
        chosen = np.flatnonzero(last_us + (self._window.size_us - 1) > late.read_us)
        open_rows, read_us = take_rows(late.rows, chosen), late.read_us[chosen]
        if self._steps is None:
            return Behind(open_rows, read_us) if len(chosen) else None
        closed = self._window.cut.starts(read_us + 1)
        parts: list[Behind] = []
        for each in np.unique(closed).tolist():
            places = np.flatnonzero(closed == each)
            rows = self._stepped(take_rows(open_rows, places))
            if rows is not None:
                parts.append(Behind(rows, np.full(rows.num_rows, read_us[places[0]])))
        return _together(parts)


def _together(parts: list[Behind]) -> Behind | None:
    if not parts:
        return None
    rows, read_us = zip(*parts, strict=True)
    return Behind(concat_rows(rows), np.concatenate(read_us))
