"""The user's own functions on rows in order, and how the rows that they return keep their place among equal times.

A function is given one column more, `_lc_row`, the number of each row. Rows that come back with it are still those
events and keep source, tick and `order=` beside them; rows without it, or with null, are new: among equal times they go
by their values, after those of known sources. A function returns it always or never, so no result depends on cuts.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from latecomer.errors import InputError, must
from latecomer.events import TICK_FIELD, EventBatch, Int64s, Layout, int64_view
from latecomer.windows.operators import Operator, Passed, returned

Function = Callable[[pa.RecordBatch], pa.RecordBatch]
ROW = "_lc_row"
_TIE = "_lc_tie"


class Changing:
    """Runs functions on rows. `layout`: of what they return; `operator`: what runs on that, if anything."""

    def __init__(self, returns: pa.Schema, layout: Layout, operator: Operator | None) -> None:
        self._returns, self._operator = returns, operator
        self._ties = [f"{_TIE}{number}" for number in range(len(_roles(layout)))]
        source = None if layout.source is None else self._ties[0]
        order = (*self._ties[0 if source is None else 1 :], *returns.names)
        self.layout = Layout(layout.time, layout.key, source, order)

    def run(self, function: Function, events: EventBatch, passed: Passed, name: str) -> EventBatch:
        """What a function makes of events, in the total order."""
        numbers = pa.array(np.arange(len(events)))
        given = function(events.user_rows.append_column(ROW, numbers))
        rows = returned(self._asked_for(given), self._returns, self.layout.time, name)
        passed.check(int64_view(rows.column(self.layout.time)), name)
        for field, column in self._kept(events, self._numbers(given, len(events), name)):
            rows = rows.append_column(field, column)
        return EventBatch(rows, self.layout).sorted()

    def _asked_for(self, given: object) -> object:
        """Without the columns that are not to be returned; what is wrong otherwise is found after that."""
        if isinstance(given, pa.RecordBatch) and set(self._returns.names) <= set(given.schema.names):
            return given.select(self._returns.names)
        return given

    def _numbers(self, given: pa.RecordBatch, count: int, name: str) -> pa.Array:
        """Which row each is of those that the function was given; null for new ones."""
        if ROW not in given.schema.names:
            if self._operator is not None and self._operator.sees_ties:
                rule = f"return the column {ROW} of its rows, since {type(self._operator).__name__} needs their order"
                advice = f"return rows.filter(...) without select, or {ROW} as null for rows that are new"
                raise InputError(must(name, rule, f"only {', '.join(given.schema.names)}", advice))
            return pa.nulls(given.num_rows, pa.int64())
        numbers = given.column(ROW)
        known = numbers.drop_null().to_numpy(zero_copy_only=False)
        wrong = known if known.dtype != np.int64 and len(known) else known[(known < 0) | (known >= count)]
        if len(wrong):
            rule = "be the number of a row it was given, or null"
            raise InputError(must(f"{ROW} of {name}", rule, wrong[0].item(), "leave the column as it is"))
        return numbers.cast(pa.int64())

    def _kept(self, events: EventBatch, numbers: pa.Array) -> list[tuple[pa.Field, pa.Array]]:
        """What rows keep of the events that they are: source, order and tick."""
        columns = [events.rows.column(name).take(numbers) for name in _roles(events.layout)[: len(self._ties)]]
        fields = [pa.field(name, column.type) for name, column in zip(self._ties, columns, strict=True)]
        ticks: Int64s = pa.array(events.tick).take(numbers).fill_null(0).to_numpy()
        return list(zip([*fields, TICK_FIELD], [*columns, pa.array(ticks)], strict=True))


def _roles(layout: Layout) -> list[str]:
    """The columns that order events of one time."""
    return [*([] if layout.source is None else [layout.source]), *layout.order]
