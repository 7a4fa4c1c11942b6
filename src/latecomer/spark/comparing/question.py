"""The question that all ways answer: aggregates per key and window; and its answer on the sorted stream."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column
from pyspark.sql import functions as F

from latecomer.chunks import ChunkStore
from latecomer.errors import InputError, must
from latecomer.events import FOREVER_US, Int64s, Layout, order_by, take_rows
from latecomer.quality import ResultColumns
from latecomer.spark.calls import read_call
from latecomer.windows import WINDOW_START, AggregateFunction, Count, Max, Mean, Min, Sum, Window, WindowAggregation
from latecomer.windows.operators import results_in_order

Floats = np.ndarray[tuple[int], np.dtype[np.float64]]
ROWS = "latecomer_rows"  # how many rows are in each answer: asked of every way, so that rows can be followed
_FUNCTIONS: dict[str, Callable[..., AggregateFunction]] = {
    "count": Count,
    "max": Max,
    "mean": Mean,
    "min": Min,
    "sum": Sum,
}
_ROUNDING = 1e-9  # of the sum of all sizes
_SPARKS = {"count": F.count, "max": F.max, "mean": F.avg, "min": F.min, "sum": F.sum}


@dataclass(frozen=True)
class Question:
    """Aggregates of `_FUNCTIONS` per key and window."""

    window: Window
    aggregates: tuple[AggregateFunction, ...]

    @classmethod
    def read(cls, size: str, advance: str | None, aggregates: tuple[str, ...]) -> Question:
        """From what is written on a command line: `max('kwh')`, `count()`.

        >>> [each.name for each in Question.read("1 hour", None, ("count()", "max('kwh')")).aggregates]
        ['count', 'max_kwh']
        """
        return cls(Window(size, advance), tuple(_aggregate(text) for text in aggregates))

    @property
    def all_aggregates(self) -> tuple[AggregateFunction, ...]:
        """Those that are asked, and how many rows are in each window."""
        return (*self.aggregates, Count(named=ROWS))

    def windows_of(self, ts_us: Int64s) -> Int64s:
        """In how many windows each row counts."""
        size_us, advance_us = self.window.size_us, self.window.advance_us
        since_us = ts_us - self.window.steps.starts(ts_us)
        found: Int64s = (size_us - since_us + advance_us - 1) // advance_us
        return found

    def spark_columns(self) -> list[Column]:
        """The same aggregates, computed by Spark, under the same names."""
        return [_spark_column(each).alias(each.name) for each in self.all_aggregates]

    def columns(self, layout: Layout) -> ResultColumns:
        """What of the results is compared."""
        return ResultColumns(WINDOW_START, layout.key, tuple(each.name for each in self.all_aggregates))

    def truth(self, rows: pa.RecordBatch, ts_us: Int64s, layout: Layout) -> pa.Table:
        """The answers where every row comes in order of its time."""
        operator = WindowAggregation(self.window, self.all_aggregates)
        schema = operator.output(rows.schema, layout)
        running = operator.build(ChunkStore(), layout)
        given = results_in_order(running, take_rows(rows, order_by(ts_us)), FOREVER_US)
        return schema.empty_table() if given is None else pa.table(given.select(schema.names)).cast(schema)

    def rounding(self, rows: pa.RecordBatch, ts_us: Int64s, layout: Layout) -> dict[str, Floats]:
        """For each window of the truth, how far sums and means of floats may be off: by the sizes of what is added."""
        found = dict[str, Floats]()
        for each in self.aggregates:
            if each.kind not in ("sum", "mean") or not pa.types.is_floating(rows.schema.field(each.column).type):
                continue
            place = rows.schema.get_field_index(each.column)
            sizes = rows.set_column(place, each.column, pc.abs(rows.column(place)))
            added = replace(self, aggregates=(each,)).truth(sizes, ts_us, layout)[each.name]
            found[each.name] = _ROUNDING * added.cast(pa.float64()).fill_null(0.0).to_numpy()
        return found

    def shown(self) -> str:
        """As text for people."""
        return f"{', '.join(each.name for each in self.aggregates)} per key, windows of {self.window.shown()}"


def _aggregate(text: str) -> AggregateFunction:
    call = read_call(text, "--aggregate")
    if call.name not in _FUNCTIONS or call.keywords or len(call.arguments) > 1:
        rule = f"be one of {', '.join(sorted(_FUNCTIONS))} of a column"
        raise InputError(must("--aggregate", rule, text, "e.g. --aggregate \"max('kwh')\""))
    return _FUNCTIONS[call.name](*call.arguments)


def _spark_column(aggregate: AggregateFunction) -> Column:
    return _SPARKS[aggregate.kind](F.lit(1) if aggregate.column is None else F.col(aggregate.column))
