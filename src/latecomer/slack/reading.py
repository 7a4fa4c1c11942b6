"""An operator behind the gate: it reads rows as they are released, most of them in order, with two clocks.

Rows are pushed in stretches. A stretch begins where rows come out of order, so that the operator has closed what was
passed before them; inside one, rows are in order. So results depend on ticks alone, and not on the micro-batches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from latecomer.chunks import Store
from latecomer.events import (
    CARRIED_PREFIX,
    FOREVER_US,
    TICK_FIELD,
    Bools,
    EventBatch,
    Int64s,
    Layout,
    concat_rows,
    int64_view,
    users_columns,
)
from latecomer.outputs import FINAL, Lane, Output
from latecomer.slack.frontier import Frontier
from latecomer.windows.operators import Clocks, Operator, OrderedRows, Stretch


def read_columns(columns: pa.Schema, layout: Layout, operator: Operator) -> pa.Schema:
    """The columns that an operator reads: the user's, and that of sources where it asks for them."""
    source = None if operator.sources is None else layout.source
    return pa.schema([each for each in columns if each.name == source or not each.name.startswith(CARRIED_PREFIX)])


class Reading:
    """An operator at work on rows as they are read."""

    def __init__(self, operator: Operator, store: Store, layout: Layout) -> None:
        self._operator, self._running, self._layout = operator, operator.build(store, layout), layout
        self._time = operator.layout_after(layout).time

    def counters(self) -> dict[str, int]:
        """The operator's own."""
        return self._running.counters()

    def refuses(self, batch: EventBatch, frontier: Frontier) -> Bools:
        """Which rows the operator does not take any more: what they belong to has been given."""
        ts_us, before_us = batch.ts_us, frontier.before(batch.tick, frontier.read_us)
        behind = np.asarray(ts_us <= before_us)
        reached, place = np.unique(before_us[behind], return_inverse=True)
        takes_from = np.array([self._operator.takes_from(int(each)) for each in reached], dtype=np.int64)
        behind[behind] = ts_us[behind] < takes_from[place]
        return behind

    def push(self, rows: EventBatch | None, frontier: Frontier) -> Iterator[Output]:
        """Read rows in the order in which they were released, each with the tick of that."""
        ticks, starts = frontier.timeline.tick, [] if rows is None else _stretches(rows, frontier)
        ends = [*starts, 0 if rows is None else len(rows)]
        stretches, began = [], []
        for number, (start, stop) in enumerate(zip([0, *starts], ends, strict=True)):
            until = int(ticks[-1] if rows is None or number + 1 == len(ends) else rows.tick[stop] - 1)
            taken = None if rows is None or start == stop else self._taken(rows.slice(start, stop))
            stretches.append(Stretch(taken, frontier.clocks(until)))
            began.append(int(ticks[0] if rows is None or number == 0 else rows.tick[start]))
        yield from self._given(list(self._running.push_stretches(stretches)), began, frontier)

    def finish(self, rows: EventBatch | None) -> Iterator[Output]:
        """The stream is over: nothing is missing any more."""
        taken = None if rows is None else self._taken(rows)
        given = self._running.push(taken, Clocks(FOREVER_US, FOREVER_US))
        if given.rows is not None and given.rows.num_rows:
            yield Output(Lane.RESULTS, given.rows.append_column(FINAL, pa.repeat(pa.scalar(True), given.rows.num_rows)))
        yield from _quarantined([given])

    def _taken(self, rows: EventBatch) -> pa.RecordBatch:
        """The columns of rows that the operator reads."""
        return rows.rows.select(read_columns(rows.rows.schema, self._layout, self._operator).names)

    def _given(self, given: list[OrderedRows], began: list[int], frontier: Frontier) -> Iterator[Output]:
        """Results with the tick after which each was given, and whether it was certain then."""
        full = [(each.rows, tick) for each, tick in zip(given, began, strict=True) if each.rows and each.rows.num_rows]
        if full:
            rows = concat_rows([rows for rows, _ in full])
            times_us = int64_view(rows.column(self._time))
            least = np.repeat([tick for _, tick in full], [rows.num_rows for rows, _ in full])
            tick = np.maximum(self._reached(times_us, frontier), least)
            certain_us = frontier.after(tick, self._operator.passed(frontier.certain_us))
            rows = rows.append_column(FINAL, pa.array(times_us <= certain_us))
            yield Output(Lane.RESULTS, rows.append_column(TICK_FIELD, pa.array(tick)))
        yield from _quarantined(given)

    def _reached(self, times_us: Int64s, frontier: Frontier) -> Int64s:
        """The first tick after which results had come so far."""
        place = np.searchsorted(self._operator.passed(frontier.read_us), times_us, side="left")
        return frontier.timeline.tick[np.minimum(place, len(frontier.read_us) - 1)]


def _stretches(rows: EventBatch, frontier: Frontier) -> list[int]:
    """Where stretches begin: with the ticks in which rows come that lie behind what was read before."""
    behind = rows.ts_us <= frontier.before(rows.tick, frontier.read_us)
    starts: list[int] = np.searchsorted(rows.tick, np.unique(rows.tick[behind]), side="left").tolist()
    return starts


def _quarantined(given: Sequence[OrderedRows]) -> Iterator[Output]:
    """The rows that could not be used, as the user knows them."""
    for each in given:
        if each.quarantined is not None and each.quarantined.num_rows:
            yield Output(Lane.QUARANTINE, users_columns(each.quarantined))
