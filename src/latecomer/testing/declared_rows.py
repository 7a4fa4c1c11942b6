"""Rows in memory, declared as `lc.disordered` declares a DataFrame, so that questions can be asked without Spark."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn, Required, TypeAlias, TypedDict, cast

import numpy as np
import pyarrow as pa

from latecomer.durations import DEFAULT_TICK, Duration
from latecomer.errors import InputError, must
from latecomer.events import FOREVER_US, Int64s, concat_rows, int64_view, take_rows
from latecomer.gives import Line
from latecomer.spark.declare import (
    LATEST,
    USUAL_SPAN,
    Declared,
    Roles,
    Timing,
    checked,
    names_of,
    progress_of,
    progress_steps,
    timing_of,
)
from latecomer.spark.disordered import Events
from latecomer.spark.explain import window_step
from latecomer.spark.pack import CHANGED, END, STAMP
from latecomer.spark.planner import Query
from latecomer.spark.result import Result
from latecomer.spark.schema import spark_schema
from latecomer.windows import Window

if TYPE_CHECKING:
    from latecomer.contract import Settings

AnyRows: TypeAlias = "pa.Table | pa.RecordBatch | Sequence[dict[str, Any]]"
Question = Callable[[Events], Result]


class Roled(TypedDict, total=False):
    """What rows are declared with, as in `lc.disordered`.

    Without `arrival` every row comes by itself, in a tick of its own, in the order in which the rows are given.
    """

    time: Required[str]
    key: str | Sequence[str] | None
    source: str | None
    arrival: str | None
    order: str | Sequence[str] | None
    change: str | None
    progress: str
    tick: Duration
    max_ahead: Duration | None
    earliest: str | None
    latest: str


@dataclass(frozen=True)
class DeclaredRows:
    """Rows, what they are declared as, and when each comes: `stamp_us`, in ticks where the user has no column."""

    rows: pa.RecordBatch
    declared: Declared
    stamp_us: Int64s

    @classmethod
    def of(cls, given: AnyRows, roled: Roled) -> DeclaredRows:
        """Declare rows."""
        check_roles(roled)
        rows, arrival = as_rows(given), roled.get("arrival")
        names = tuple(names_of(cast(Any, roled.get(role)), role) for role in ("key", "order"))
        asked = Roles(roled["time"], names[0], roled.get("source"), arrival, names[1], None, roled.get("change"))
        roles = checked(spark_schema(rows.schema), asked)
        if roled.get("max_ahead") is not None and arrival is None:
            raise InputError(must("max_ahead", "come with arrival", "no arrival", "name the column of arrival"))
        span = roled.get("earliest"), roled.get("latest", USUAL_SPAN[1])
        timing = timing_of(roled.get("tick", DEFAULT_TICK), None, None, roled.get("max_ahead"), span)
        timing = replace(timing, merged=progress_of(roled.get("progress", LATEST), roles.source), from_1970=False)
        stamp_us = np.arange(rows.num_rows) if arrival is None else times_of(rows, arrival)
        declared = _declared(rows, replace(roles, end=END), timing)
        return cls(rows, declared, stamp_us) if arrival else cls(rows, declared, stamp_us).stamped(stamp_us)

    def stamped(self, stamp_us: Int64s) -> DeclaredRows:
        """The same rows, which come at other times: those of the user count no more, and none is ahead of them."""
        roles = replace(self.declared.roles, arrival=STAMP)
        timing = replace(self.declared.timing, tick_us=1, max_ahead_us=None)
        return replace(self, declared=replace(self.declared, roles=roles, timing=timing), stamp_us=stamp_us)

    def take(self, chosen: Int64s) -> DeclaredRows:
        """Some of the rows."""
        return replace(self, rows=take_rows(self.rows, chosen), stamp_us=self.stamp_us[chosen])

    @property
    def tick(self) -> Int64s:
        """The tick in which each row comes."""
        return self.stamp_us // self.declared.timing.tick_us

    @property
    def ts_us(self) -> Int64s:
        """The time of each row; without one, after all."""
        return times_of(self.rows, self.declared.roles.time)

    def ask(self, question: Question) -> Query:
        """What is to be run."""
        result = question(RowEvents(self.declared))
        if not isinstance(result, Result):
            advice = "e.g. lambda events: events.scan(lc.lag('n')).optimistic('1 hour')"
            raise InputError(must("question", "make a result of events", type(result).__name__, advice))
        return result.planned

    @cached_property
    def for_pack(self) -> pa.RecordBatch:
        """The rows as pack wants them, and at last one for each source that says that it has ended."""
        roles, rows = self.declared.roles, self.rows
        if roles.arrival == STAMP:
            rows = rows.append_column(STAMP, pa.array(self.stamp_us))
        if roles.change is not None:
            rows = rows.append_column(CHANGED, rows.column(roles.change))
        running = pa.repeat(pa.scalar(False), rows.num_rows)
        return concat_rows([rows.append_column(END, running), self._ends(rows)])

    def _ends(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        roles, tick_us = self.declared.roles, self.declared.timing.tick_us
        sources = [None] if roles.source is None else rows.column(roles.source).unique().to_pylist()
        over_us = int(self.stamp_us[self.stamp_us < FOREVER_US].max(initial=0)) + tick_us
        said = [{roles.arrival: over_us} | ({} if roles.source is None else {roles.source: each}) for each in sources]
        ends = pa.RecordBatch.from_pylist(said, schema=rows.schema)
        return ends.append_column(END, pa.repeat(pa.scalar(True), len(sources)))


def check_roles(roled: Roled) -> None:
    """Refuse what rows cannot be declared with, and rows without a time."""
    unknown = [name for name in roled if name not in Roled.__annotations__]
    if unknown:
        rule = f"be declared with {', '.join(Roled.__annotations__)}"
        raise InputError(must("rows in memory", rule, unknown[0], "leave it out"))
    if "time" not in roled:
        raise InputError(must("time", "name the column of event time", None, "e.g. time='ts'"))


def as_rows(given: AnyRows) -> pa.RecordBatch:
    """Rows as one batch of Arrow's."""
    if isinstance(given, pa.RecordBatch):
        given = pa.Table.from_batches([given])
    if not isinstance(given, pa.Table):
        if not isinstance(given, Sequence) or not all(isinstance(row, dict) for row in given) or not given:
            advice = "e.g. [{'at': 1, 'word': 'cat'}, ...], or pa.table(...)"
            raise InputError(must("rows", "be a table of Arrow's or a list of dicts", type(given).__name__, advice))
        names = dict.fromkeys(name for row in given for name in row)  # a row may lack some
        given = pa.Table.from_pylist([{name: row.get(name) for name in names} for row in given])
    given = given.cast(pa.schema([each.with_type(_as_spark_has_it(each.type)) for each in given.schema]), safe=False)
    batches = given.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=given.schema)


def _as_spark_has_it(kind: pa.DataType) -> pa.DataType:
    """Times in microseconds, and values instead of numbers that stand for them."""
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    return _as_spark_has_it(kind.value_type) if pa.types.is_dictionary(kind) else kind


def times_of(rows: pa.RecordBatch, name: str) -> Int64s:
    """Times in microseconds; null is after all."""
    column = rows.column(name)
    none = column.is_null().to_numpy(zero_copy_only=False)
    values = int64_view(column.fill_null(pa.scalar(0, pa.int64()).cast(column.type)))
    return np.where(none, FOREVER_US, values)


def _declared(rows: pa.RecordBatch, roles: Roles, timing: Timing) -> Declared:
    schema, names = spark_schema(rows.schema), tuple(rows.schema.names)
    frame = cast(Any, _Frame(schema))
    return Declared(frame, roles, timing, 1, schema, names, frozenset(names), steps=progress_steps(roles, timing))


class _Frame:
    """What the planner asks of a DataFrame: its columns."""

    isStreaming = True
    sparkSession = None

    def __init__(self, schema: Any) -> None:
        self.schema, self.columns = schema, schema.names

    def drop(self, *names: str) -> _Frame:
        """The same without some columns."""
        return _Frame(type(self.schema)([each for each in self.schema.fields if each.name not in names]))


class RowEvents(Events):
    """Events that are rows in memory: all questions but those for which Spark computes columns or conditions."""

    def where(self, condition: Any) -> NoReturn:
        self._refuse("where")

    def select(self, *columns: Any) -> NoReturn:
        self._refuse("select")

    def with_columns(self, **columns: Any) -> NoReturn:
        self._refuse("with_columns")

    def apply(self, settings: Settings) -> Result:
        """Run any strategy that needs no windows of Spark's."""
        if self._declared.window is not None:
            self._refuse(f"a window before {settings.name}")
        return super().apply(settings)

    def tiers(self, *latencies: Duration, **asked: Any) -> Result:
        """Run on the events in order once for each latency."""
        if self._declared.window is not None:
            self._refuse("a window before tiers of events")
        return super().tiers(*latencies, **asked)

    def _aligned(self, window: Window, word: str) -> Events:
        """Windows to be asked with aggregates: those need no columns of the rows."""
        self._check_no_window(word)
        return self._after(window_step(word, window), window=window)

    def _after(self, step: Line, exact: str | None = None, **changes: Any) -> Events:
        return RowEvents(super()._after(step, exact, **changes)._declared)

    def _refuse(self, what: str) -> NoReturn:
        advice = "do it to the rows before you give them"
        raise InputError(must(what, "be done by Spark", "rows in memory", advice))
