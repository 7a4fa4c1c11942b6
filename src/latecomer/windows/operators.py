"""Operators on a stream in order, one after the other: windowed aggregates, stateless steps, chains of them.

An operator takes rows in order and a punctuation, and gives rows in order and the punctuation that holds for those. All
that it keeps is in a store. It knows nothing of disorder: every strategy runs the same operators.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from latecomer.chunks import Store
from latecomer.codec import wide_type, widened
from latecomer.errors import InputError, must
from latecomer.events import FOREVER_US, NEVER_US, Int64s, Layout, int64_view
from latecomer.gives import Line
from latecomer.windows.aggregates import AggregateFunction
from latecomer.windows.checks import as_aggregates
from latecomer.windows.folding import SLICE, Folding
from latecomer.windows.slices import Slices, most_held_slices, results_schema, window_results
from latecomer.windows.window import WINDOW_START, Window

_PASSED = "passed_us"


class OrderedRows(NamedTuple):
    """Rows in order, and the time up to which no more will come."""

    rows: pa.RecordBatch | None
    punctuation_us: int


class Running(ABC):
    """An operator at work."""

    @abstractmethod
    def push(self, rows: pa.RecordBatch | None, punctuation_us: int) -> OrderedRows:
        """Take rows in, in order and up to a punctuation; at the end that is FOREVER_US."""


class Operator(ABC):
    """What the user writes."""

    @property
    def sees_ties(self) -> bool:
        """Whether its results depend on the order of rows of one time."""
        return True

    @abstractmethod
    def build(self, store: Store, layout: Layout) -> Running:
        """The operator at work, going on from what the store holds."""

    @abstractmethod
    def output(self, columns: pa.Schema, layout: Layout) -> pa.Schema:
        """The columns of its results for rows with these."""

    @abstractmethod
    def layout_after(self, layout: Layout) -> Layout:
        """Which of those play which role."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Name and values: stored with the state and compared on restart."""

    def shown(self) -> str:
        """As text for people."""
        return type(self).__name__

    def most_held(self, ts_us: Int64s, punctuation_us: int) -> int:
        """How many rows it may hold of rows at these times, when they have come up to a punctuation."""
        return len(ts_us)

    def results_at(self, ts_us: Int64s, punctuation_us: int) -> tuple[Int64s, int]:
        """The times that its results may have for rows at these times, and how far those have come."""
        return ts_us, punctuation_us


def operator_lines(operator: Operator, effect: str) -> Iterator[Line]:
    """The parts of an application, one after the other, for `explain`."""
    first, *others = operator.operators if isinstance(operator, Chain) else (operator,)
    yield Line("runs", first.shown(), effect)
    for other in others:
        yield Line("then", other.shown())


@dataclass(frozen=True)
class WindowAggregation(Operator):
    """Aggregates per key and window; the time of a result is the start of its window."""

    window: Window
    aggregates: tuple[AggregateFunction, ...]

    @property
    def sees_ties(self) -> bool:
        return False

    def __post_init__(self) -> None:
        if not isinstance(self.window, Window):
            advice = "e.g. lc.Window('1 hour'); sessions can be asked with .session(gap).aggregate(...).tiers(...)"
            raise InputError(must("window of WindowAggregation", "be a Window", self.window, advice))
        self.window.check_slices()
        object.__setattr__(self, "aggregates", as_aggregates(self.aggregates))

    def build(self, store: Store, layout: Layout) -> Running:
        return _Aggregating(self, store, layout)

    def output(self, columns: pa.Schema, layout: Layout) -> pa.Schema:
        return results_schema(columns, layout, self.aggregates)

    def layout_after(self, layout: Layout) -> Layout:
        return Layout(WINDOW_START, layout.key)

    def most_held(self, ts_us: Int64s, punctuation_us: int) -> int:
        return most_held_slices(self.window, ts_us, punctuation_us)

    def results_at(self, ts_us: Int64s, punctuation_us: int) -> tuple[Int64s, int]:
        """Each row lies in the last window that has begun, and in those that began an advance earlier each."""
        size_us = self.window.size_us
        back_us = np.arange(0, size_us, self.window.advance_us)
        starts = (self.window.steps.starts(ts_us)[:, None] - back_us[None, :]).ravel()
        ends = punctuation_us in (NEVER_US, FOREVER_US)
        return starts, punctuation_us if ends else punctuation_us - size_us + 1

    def shown(self) -> str:
        return f"{', '.join(aggregate.name for aggregate in self.aggregates)} over {self.window.shown()}"

    def describe(self) -> dict[str, Any]:
        return {
            "operator": "aggregation",
            "window": self.window.describe(),
            "aggregates": [aggregate.describe() for aggregate in self.aggregates],
        }


class _Aggregating(Running):
    def __init__(self, operator: WindowAggregation, store: Store, layout: Layout) -> None:
        self._window = operator.window
        self._folding = Folding(layout.key, operator.aggregates)
        self._slices = Slices(self._folding, operator.window, store)
        self._time = layout.time

    def push(self, rows: pa.RecordBatch | None, punctuation_us: int) -> OrderedRows:
        arrived = []
        if rows is not None and rows.num_rows:
            arrived = [table for _, table in self._folding.partials(rows, self._time, self._window.cut)]
        windows = self._slices.slide(self._slices.close(arrived, punctuation_us), punctuation_us)
        passed_us = punctuation_us if punctuation_us == FOREVER_US else punctuation_us - self._window.size_us + 1
        if windows is None:
            return OrderedRows(None, passed_us)
        merged = self._folding.reduced(windows, self._folding.groups(windows, (SLICE,)))
        return OrderedRows(window_results(self._folding, self._window, merged), passed_us)


@dataclass(frozen=True)
class Step(Operator):
    """A stateless step: the user's function from rows to rows, in order still, with the columns `returns`.

    It must not move rows back in time: the stream may have passed the times that it moves them to.
    """

    function: Callable[[pa.RecordBatch], pa.RecordBatch]
    returns: pa.Schema
    name: str = "step"

    def __post_init__(self) -> None:
        check_function(self.function, f"step {self.name}")
        check_returns(self.returns, f"step {self.name}")

    def build(self, store: Store, layout: Layout) -> Running:
        return _Stepping(self, store, layout)

    def output(self, columns: pa.Schema, layout: Layout) -> pa.Schema:
        check_columns_preserved(self.returns, columns, layout, f"step {self.name}")
        return self.returns

    def layout_after(self, layout: Layout) -> Layout:
        return replace(layout, source=None, order=())

    def most_held(self, ts_us: Int64s, punctuation_us: int) -> int:
        return 0

    def shown(self) -> str:
        return self.name

    def describe(self) -> dict[str, Any]:
        return {"operator": "step", "name": self.name, "returns": str(self.returns)}


class _Stepping(Running):
    def __init__(self, operator: Step, store: Store, layout: Layout) -> None:
        self._operator, self._passed, self._time = operator, Passed(store), layout.time

    def push(self, rows: pa.RecordBatch | None, punctuation_us: int) -> OrderedRows:
        given = None if rows is None or rows.num_rows == 0 else self._given(rows)
        self._passed.move(punctuation_us)
        return OrderedRows(given if given is not None and given.num_rows else None, punctuation_us)

    def _given(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        where = f"step {self._operator.name}"
        given = returned(self._operator.function(rows), self._operator.returns, self._time, where)
        ts_us = int64_view(given.column(self._time))
        if bool((np.diff(ts_us) < 0).any()):
            raise InputError(must(where, "keep rows in order of time", "rows out of order", f"sort by {self._time}"))
        self._passed.check(ts_us, where)
        return given


class Passed:
    """The last punctuation that a user's function has passed on, in the notes of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def check(self, ts_us: Int64s, where: str) -> None:
        """Refuse times that have been passed: whether they count would depend on the micro-batches."""
        passed_us = self._store.notes.get(_PASSED, NEVER_US)
        if len(ts_us) and int(ts_us.min()) <= passed_us:
            got = f"a time of {int(ts_us.min())} us where the stream has passed {passed_us} us"
            advice = "leave times as they are, or call .tumbling(size) before to get whole windows"
            raise InputError(must(where, "not move rows back in time", got, advice))

    def move(self, punctuation_us: int) -> None:
        """Pass a punctuation on."""
        self._store.notes[_PASSED] = max(punctuation_us, self._store.notes.get(_PASSED, NEVER_US))


def check_function(function: object, where: str) -> None:
    """Refuse what cannot be called."""
    if not callable(function):
        raise InputError(must(where, "be given a function of a RecordBatch", function, "give a function"))


def check_returns(returns: object, where: str) -> None:
    """Refuse what are no columns."""
    if not isinstance(returns, pa.Schema):
        advice = "e.g. returns=pa.schema([('ts', pa.timestamp('us', 'UTC'))])"
        raise InputError(must(where, "say what it returns as an Arrow schema", returns, advice))


def check_columns_preserved(returns: pa.Schema, columns: pa.Schema, layout: Layout, where: str) -> None:
    """Refuse functions that lose, or change the type of, the time or a key."""
    names = (layout.time, *layout.key)
    for name in names:
        if name not in returns.names:
            raise InputError(must(where, f"keep the columns {', '.join(names)}", returns.names, f"return {name} too"))
    for name in names:
        before, after = columns.field(name).type, returns.field(name).type
        if wide_type(after) != wide_type(before):
            raise InputError(
                must(f"{name} in what {where} returns", f"be of type {before}", after, "leave it as it is")
            )


def returned(given: object, returns: pa.Schema, time: str, where: str) -> pa.RecordBatch:
    """What a user's function gave, if it is what it was to give: these columns, and a time in every row."""
    if not isinstance(given, pa.RecordBatch) or given.schema.names != returns.names:
        got = given.schema.names if isinstance(given, pa.RecordBatch) else type(given).__name__
        rule = f"return a RecordBatch with {', '.join(returns.names)}"
        raise InputError(must(where, rule, got, "or change what it says it returns"))
    if given.column(time).null_count:
        raise InputError(must(where, "give every row a time", f"{time} is null", "leave out such rows"))
    try:
        return widened(given.cast(returns))
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, ValueError) as error:
        rule = "return values of the types that it says it returns"
        raise InputError(must(where, rule, str(error), "change it, or returns=")) from error


@dataclass(frozen=True, init=False)
class Chain(Operator):
    """Operators one after the other: what one gives is what the next one takes."""

    operators: tuple[Operator, ...]

    def __init__(self, *operators: Operator) -> None:
        if not operators:
            raise InputError(must("chain", "have at least one operator", "none", "e.g. WindowAggregation(...)"))
        for operator in operators:
            if not isinstance(operator, Operator):
                raise InputError(must("chain", "be made of operators", operator, "e.g. WindowAggregation(...)"))
        object.__setattr__(self, "operators", operators)

    @property
    def sees_ties(self) -> bool:
        return self.operators[0].sees_ties

    def build(self, store: Store, layout: Layout) -> Running:
        return _Chaining(self, store, layout)

    def output(self, columns: pa.Schema, layout: Layout) -> pa.Schema:
        for operator in self.operators:
            columns, layout = operator.output(columns, layout), operator.layout_after(layout)
        return columns

    def layout_after(self, layout: Layout) -> Layout:
        for operator in self.operators:
            layout = operator.layout_after(layout)
        return layout

    def most_held(self, ts_us: Int64s, punctuation_us: int) -> int:
        held = 0
        for operator in self.operators:
            held += operator.most_held(ts_us, punctuation_us)
            ts_us, punctuation_us = operator.results_at(ts_us, punctuation_us)
        return held

    def describe(self) -> dict[str, Any]:
        return {"operator": "chain", "operators": [operator.describe() for operator in self.operators]}


class _Chaining(Running):
    def __init__(self, chain: Chain, store: Store, layout: Layout) -> None:
        self._running = []
        for number, operator in enumerate(chain.operators):
            self._running.append(operator.build(store.part(number, len(chain.operators)), layout))
            layout = operator.layout_after(layout)

    def push(self, rows: pa.RecordBatch | None, punctuation_us: int) -> OrderedRows:
        for running in self._running:
            rows, punctuation_us = running.push(rows, punctuation_us)
        return OrderedRows(rows, punctuation_us)
