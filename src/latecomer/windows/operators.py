"""Operators on a stream in order, one after the other: windowed aggregates, stateless steps, chains of them.

An operator takes rows in order and a punctuation, and gives rows in order and the punctuation that holds for those. All
that it keeps is in a store. It knows nothing of disorder: every strategy runs the same operators.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from latecomer.chunks import ChunkStore
from latecomer.codec import widened
from latecomer.errors import InputError, must
from latecomer.events import FOREVER_US, Layout, int64_view
from latecomer.windows.aggregates import Aggregate, check_aggregates
from latecomer.windows.folding import SLICE, Folding
from latecomer.windows.slices import Slices, results_schema, window_results
from latecomer.windows.window import WINDOW_END, WINDOW_START, Window


class Given(NamedTuple):
    """Rows in order, and the time up to which no more will come."""

    rows: pa.RecordBatch | None
    punctuation_us: int


class Running(ABC):
    """An operator at work."""

    @abstractmethod
    def push(self, rows: pa.RecordBatch | None, punctuation_us: int) -> Given:
        """Take rows in, in order and up to a punctuation; at the end that is FOREVER_US."""


class Operator(ABC):
    """What the user writes."""

    @abstractmethod
    def build(self, store: ChunkStore, layout: Layout) -> Running:
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


@dataclass(frozen=True)
class Aggregation(Operator):
    """Aggregates per key and window; the time of a result is the start of its window."""

    window: Window
    aggregates: tuple[Aggregate, ...]

    def build(self, store: ChunkStore, layout: Layout) -> Running:
        return _Aggregating(self, store, layout)

    def output(self, columns: pa.Schema, layout: Layout) -> pa.Schema:
        check_aggregates(self.aggregates, columns, (WINDOW_START, WINDOW_END, *layout.key))
        return results_schema(columns, layout.time, Folding(layout.key, self.aggregates))

    def layout_after(self, layout: Layout) -> Layout:
        return Layout(WINDOW_START, layout.key)

    def describe(self) -> dict[str, Any]:
        return {
            "operator": "aggregation",
            "window": self.window.describe(),
            "aggregates": [aggregate.describe() for aggregate in self.aggregates],
        }


class _Aggregating(Running):
    def __init__(self, operator: Aggregation, store: ChunkStore, layout: Layout) -> None:
        self._window = operator.window
        self._folding = Folding(layout.key, operator.aggregates)
        self._slices = Slices(self._folding, operator.window, store)
        self._time = layout.time

    def push(self, rows: pa.RecordBatch | None, punctuation_us: int) -> Given:
        arrived = []
        if rows is not None and rows.num_rows:
            arrived = [table for _, table in self._folding.partials(rows, self._time, self._window.slice_us)]
        windows = self._slices.slide(self._slices.close(arrived, punctuation_us), punctuation_us)
        passed_us = punctuation_us if punctuation_us == FOREVER_US else punctuation_us - self._window.size_us + 1
        if windows is None:
            return Given(None, passed_us)
        merged = self._folding.reduced(windows, self._folding.groups(windows, (SLICE,)))
        return Given(window_results(self._folding, self._window, merged), passed_us)


@dataclass(frozen=True)
class Step(Operator):
    """A stateless step: the user's function from rows to rows, in order still, with the columns `returns`."""

    function: Callable[[pa.RecordBatch], pa.RecordBatch]
    returns: pa.Schema
    name: str = "step"

    def build(self, store: ChunkStore, layout: Layout) -> Running:
        return _Stepping(self, layout)

    def output(self, columns: pa.Schema, layout: Layout) -> pa.Schema:
        for name in (layout.time, *layout.key):
            if name not in self.returns.names:
                rule = f"keep the columns {', '.join((layout.time, *layout.key))}"
                raise InputError(must(f"step {self.name}", rule, self.returns.names, f"return {name} too"))
        return self.returns

    def layout_after(self, layout: Layout) -> Layout:
        return replace(layout, source=None, order=())

    def describe(self) -> dict[str, Any]:
        return {"operator": "step", "name": self.name, "returns": str(self.returns)}


class _Stepping(Running):
    def __init__(self, operator: Step, layout: Layout) -> None:
        self._operator, self._time = operator, layout.time

    def push(self, rows: pa.RecordBatch | None, punctuation_us: int) -> Given:
        if rows is None or rows.num_rows == 0:
            return Given(None, punctuation_us)
        given = self._operator.function(rows)
        if not isinstance(given, pa.RecordBatch) or given.schema.names != self._operator.returns.names:
            got = given.schema.names if isinstance(given, pa.RecordBatch) else type(given).__name__
            rule = f"return a RecordBatch with {', '.join(self._operator.returns.names)}"
            raise InputError(must(f"step {self._operator.name}", rule, got, "or change what it says it returns"))
        given = widened(given.cast(self._operator.returns))
        ts_us = int64_view(given.column(self._time))
        if bool((np.diff(ts_us) < 0).any()):
            where, advice = f"step {self._operator.name}", f"sort by {self._time}"
            raise InputError(must(where, "keep rows in order of time", "rows out of order", advice))
        return Given(given if given.num_rows else None, punctuation_us)


@dataclass(frozen=True)
class Chain(Operator):
    """Operators one after the other: what one gives is what the next one takes."""

    operators: tuple[Operator, ...]

    def __post_init__(self) -> None:
        if not self.operators:
            raise InputError(must("chain", "have at least one operator", "none", "e.g. Aggregation(...)"))
        for operator in self.operators:
            if not isinstance(operator, Operator):
                raise InputError(must("chain", "be made of operators", operator, "e.g. Aggregation(...)"))

    def build(self, store: ChunkStore, layout: Layout) -> Running:
        return _Chaining(self, store, layout)

    def output(self, columns: pa.Schema, layout: Layout) -> pa.Schema:
        for operator in self.operators:
            columns, layout = operator.output(columns, layout), operator.layout_after(layout)
        return columns

    def layout_after(self, layout: Layout) -> Layout:
        for operator in self.operators:
            layout = operator.layout_after(layout)
        return layout

    def describe(self) -> dict[str, Any]:
        return {"operator": "chain", "operators": [operator.describe() for operator in self.operators]}


class _Chaining(Running):
    def __init__(self, chain: Chain, store: ChunkStore, layout: Layout) -> None:
        self._running = []
        for number, operator in enumerate(chain.operators):
            self._running.append(operator.build(store.part(number, len(chain.operators)), layout))
            layout = operator.layout_after(layout)

    def push(self, rows: pa.RecordBatch | None, punctuation_us: int) -> Given:
        for running in self._running:
            rows, punctuation_us = running.push(rows, punctuation_us)
        return Given(rows, punctuation_us)
