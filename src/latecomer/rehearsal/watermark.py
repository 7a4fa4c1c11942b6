"""What Spark's own windowed aggregate with a watermark gives, as Spark's guide describes it.

After each micro-batch the watermark is the largest time seen, to the millisecond, less the delay, and never goes back.
A micro-batch evicts, and in append mode gives, the windows that end at or before the watermark of the one before it;
it drops the rows of windows that end at or before the watermark of the one before that.
"""

from __future__ import annotations

from math import nan
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from latecomer.durations import duration_us
from latecomer.events import NEVER_US, Int64s
from latecomer.spark.comparing import Asked, Way, watermark_of
from latecomer.windows import WINDOW_END, WINDOW_START, AggregateFunction
from latecomer.windows.grouping import normal_keys

_MS = 1_000
_TOUCHED = "touched in this micro-batch"
_NAN = "any that is NaN"
_MERGE = {"sum": "sum", "count": "sum", "min": "min", "max": "max", _NAN: "max"}


class _Part(NamedTuple):
    """A column of the state: what is computed of which column of the rows; None counts all of them."""

    column: str | None
    how: str  # of `_MERGE`

    @property
    def name(self) -> str:
        return f"{self.how} of {self.column}"


def watermark_results(way: Way, asked: Asked, schema: pa.Schema) -> tuple[dict[int, pa.Table], int]:
    """The results of each micro-batch, and the most groups held; the end of the stream closes all windows."""
    delay, mode = watermark_of(way.call)
    delay_us, stream = duration_us(delay, "delay", zero=True) // _MS * _MS, asked.stream
    model, given = _Model(asked), dict[int, pa.Table]()
    evict_us = drop_us = NEVER_US
    for batch, (start, stop) in enumerate(zip([0, *stream.cuts[:-1]], stream.cuts, strict=True)):
        touched = model.push(start, stop, drop_us)
        over = model.evict(evict_us)
        given[batch] = model.shown(over if mode == "append" else touched, schema)
        mark_us = int(stream.sparks_marks_us[batch]) // _MS * _MS
        drop_us, evict_us = evict_us, max(evict_us, mark_us - delay_us)
    if mode == "append":
        given[stream.batches] = model.shown(model.evict(None), schema)
    return given, model.most_held


class _Model:
    """The state of the aggregate."""

    def __init__(self, asked: Asked) -> None:
        self._asked, self._key = asked, list(asked.stream.roles.key)
        self._parts = list(dict.fromkeys(part for each in asked.question.all_aggregates for part in self._of(each)))
        self._state: pa.Table | None = None
        self.most_held = 0

    def push(self, start: int, stop: int, drop_us: int) -> pa.Table:
        """Take in the rows of a micro-batch; the groups that they changed, as they are after it."""
        rows, window = self._asked.stream.rows.slice(start, stop - start), self._asked.question.window
        keep = ~self._asked.stream.ahead[start:stop]
        ts_us = self._asked.stream.ts_us[start:stop]
        pieces = []
        for back in range(-(-window.size_us // window.advance_us)):
            starts_us = window.steps.starts(ts_us) - back * window.advance_us
            inside = keep & (ts_us < starts_us + window.size_us) & (starts_us + window.size_us > drop_us)
            pieces.append(self._grouped(rows, starts_us, np.flatnonzero(inside)))
        before = [] if self._state is None else [_marked(self._state, touched=False)]
        merged = self._merged([*before, *pieces])
        self.most_held = max(self.most_held, len(merged))
        self._state = merged.drop([_TOUCHED])
        return merged.filter(merged[_TOUCHED]).drop([_TOUCHED])

    def evict(self, upto_us: int | None) -> pa.Table:
        """Take out the windows that end at or before a time; all without one."""
        assert self._state is not None
        if upto_us is None:
            over, self._state = self._state, self._state.slice(0, 0)
            return over
        is_over = pc.less_equal(pc.add(self._state[WINDOW_START], self._asked.question.window.size_us), upto_us)
        over = self._state.filter(is_over)
        self._state = self._state.filter(pc.invert(is_over))
        return over

    def shown(self, groups: pa.Table, schema: pa.Schema) -> pa.Table:
        """Groups as results: windows of the stream, as `start_way` shows them."""
        first_us, last_us = self._asked.stream.span_us
        ends_after = pc.greater(groups[WINDOW_START], first_us - self._asked.question.window.size_us)
        groups = groups.filter(pc.and_(ends_after, pc.less_equal(groups[WINDOW_START], last_us)))
        starts = groups[WINDOW_START]
        columns = {WINDOW_START: starts, WINDOW_END: pc.add(starts, self._asked.question.window.size_us)}
        columns |= {name: groups[name] for name in self._key}
        columns |= {each.name: self._shown(each, groups) for each in self._asked.question.all_aggregates}
        return pa.table([columns[each.name].cast(each.type) for each in schema], schema=schema)

    def _grouped(self, rows: pa.RecordBatch, starts_us: Int64s, chosen: Int64s) -> pa.Table:
        taken = pa.Table.from_batches([rows]).take(pa.array(chosen))
        keys = {name: normal_keys(taken[name].combine_chunks()) for name in self._key}
        columns = {WINDOW_START: pa.array(starts_us[chosen]), **keys}
        for part in self._parts:
            ones = pa.array(np.ones(len(chosen), np.int64))
            of_rows = ones if part.column is None else taken[part.column]
            if part.how == "count" and part.column is not None:
                of_rows = pc.cast(pc.is_valid(of_rows), pa.int64())
            if part.how == _NAN:
                of_rows = pc.cast(pc.is_nan(of_rows), pa.int8())
            columns[part.name] = of_rows
        return _marked(pa.table(columns), touched=True)

    def _merged(self, tables: list[pa.Table]) -> pa.Table:
        names, place = [part.name for part in self._parts], [WINDOW_START, *self._key]
        together = pa.concat_tables(tables, promote_options="permissive")
        wanted = [(_TOUCHED, "any"), *((part.name, _MERGE[part.how]) for part in self._parts)]
        found = together.group_by(place, use_threads=False).aggregate(wanted)
        renamed = {f"{part.name}_{_MERGE[part.how]}": part.name for part in self._parts} | {f"{_TOUCHED}_any": _TOUCHED}
        named = found.rename_columns([renamed.get(name, name) for name in found.schema.names])
        return named.select([*place, *names, _TOUCHED])

    def _of(self, aggregate: AggregateFunction) -> list[_Part]:
        """The parts of the state that an aggregate needs."""
        column = aggregate.column
        if aggregate.kind == "mean":
            return [_Part(column, "sum"), _Part(column, "count")]
        parts = [_Part(column, aggregate.kind)]
        if aggregate.kind == "max" and pa.types.is_floating(self._asked.stream.rows.schema.field(column).type):
            parts.append(_Part(column, _NAN))  # the largest of all, to Spark; Arrow passes over it
        return parts

    def _shown(self, aggregate: AggregateFunction, groups: pa.Table) -> pa.ChunkedArray:
        first, *rest = (groups[part.name] for part in self._of(aggregate))
        if aggregate.kind == "mean":
            return pc.divide(first.cast(pa.float64(), safe=False), rest[0].cast(pa.float64()))
        return pc.if_else(pc.equal(rest[0], 1), pa.scalar(nan, first.type), first) if rest else first


def _marked(groups: pa.Table, *, touched: bool) -> pa.Table:
    """Groups, and whether a micro-batch has rows of them."""
    return groups.append_column(_TOUCHED, pa.array(np.full(len(groups), touched)))
