"""Operators on a stream in order: what they have in common, stateless steps, and chains of operators.

An operator takes rows in order and two clocks, and gives rows in order and the clocks that hold for those. All that it
keeps is in a store. It knows nothing of how a strategy puts rows in order: every strategy runs the same operators.

Invariants
1. Clocks never go back; the second is never ahead of the first.
2. The rows of a push are in order, and come after what was read before it. Where a strategy relaxes the order they may
   come behind it, from `takes_from` on: each in a later push than the one whose clock passed it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from latecomer.chunks import Store
from latecomer.codec import wide_type, widened
from latecomer.errors import InputError, must
from latecomer.events import FOREVER_US, NEVER_US, Int64s, Layout, int64_view
from latecomer.gives import Line, Tally

_PASSED = "passed_us"


class Clocks(NamedTuple):
    """Two times: rows up to `read_us` have been read; up to `certain_us`, none that has not been can come any more.

    Where rows are always read in order, both are the punctuation. At the end both are FOREVER_US.
    """

    read_us: int
    certain_us: int

    @classmethod
    def both(cls, punctuation_us: int) -> Clocks:
        """The clocks of a stream in order: what has been read is certain."""
        return cls(punctuation_us, punctuation_us)


class OrderedRows(NamedTuple):
    """Rows in order, and how far they have come; and input rows that could not be used, with a last column `reason`."""

    rows: pa.RecordBatch | None
    clocks: Clocks
    quarantined: pa.RecordBatch | None = None


class Stretch(NamedTuple):
    """A push: rows in order, if there are any, and the clocks after them."""

    rows: pa.RecordBatch | None
    clocks: Clocks


class Behind(NamedTuple):
    """Rows that came behind what had been read, and for each how far that was when it came."""

    rows: pa.RecordBatch
    read_us: Int64s


class Running(ABC):
    """An operator at work."""

    @abstractmethod
    def push(self, rows: pa.RecordBatch | None, clocks: Clocks) -> OrderedRows:
        """Take rows in, in order; the clocks are those after them."""

    def push_stretches(self, stretches: Sequence[Stretch]) -> Iterator[OrderedRows]:
        """Take in several pushes, one after the other; what each gives. An operator may do them all at once."""
        return (self.push(rows, clocks) for rows, clocks in stretches)

    def push_with_behind(self, rows: pa.RecordBatch | None, behind: Behind, clocks: Clocks) -> OrderedRows:
        """Take in rows in order, and with them rows that came behind while those came, each as if it were a push."""
        raise NotImplementedError(f"{type(self).__name__} does not take rows that came behind")

    def counters(self) -> dict[str, int]:
        """The operator's own counters since it was built: those that `Operator.counters` names."""
        return {}


def results_in_order(running: Running, rows: pa.RecordBatch | None, punctuation_us: int) -> pa.RecordBatch | None:
    """What an operator gives for rows in order, where there is no lane for rows that it cannot use."""
    given = running.push(rows, Clocks.both(punctuation_us))
    if given.quarantined is not None:
        reason, advice = given.quarantined.column("reason")[0].as_py(), "let the user's function take every row"
        raise InputError(must("operator", "be able to use all rows here", reason, advice))
    return given.rows


class Operator(ABC):
    """What the user writes."""

    @property
    def sees_ties(self) -> bool:
        """Whether its results depend on the order of rows of one time."""
        return True

    @property
    def gives_in_order(self) -> bool:
        """Whether its results come in order also where rows come behind what has been read."""
        return True

    @property
    def counters(self) -> Mapping[str, Tally]:
        """Its own counters, and how they are put together."""
        return {}

    @property
    def sources(self) -> tuple[str | int, ...] | None:
        """The sources whose rows it takes; None: those of all."""
        return None

    @property
    def in_part(self) -> bool:
        """Whether a row that comes behind what has been read may count in some results and not in others."""
        return False

    @property
    def reach_us(self) -> int:
        """How far apart rows may be that make one result."""
        return 0

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

    def takes_from(self, read_us: int) -> int:
        """The least time of rows that it still takes when it has read up to a time."""
        return read_us if read_us in (NEVER_US, FOREVER_US) else read_us + 1

    def passed(self, came_us: Int64s) -> Int64s:
        """How far its results have come when rows have come up to each of these times."""
        return came_us

    def clocks_after(self, clocks: Clocks) -> Clocks:
        """The clocks of its results."""
        return Clocks(*self.passed(np.array(clocks)).tolist())


def operator_lines(operator: Operator, effect: str) -> Iterator[Line]:
    """The parts of an application, one after the other, for `explain`."""
    first, *others = operator.operators if isinstance(operator, Chain) else (operator,)
    yield Line("runs", first.shown(), effect)
    for other in others:
        yield Line("then", other.shown())


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

    def push(self, rows: pa.RecordBatch | None, clocks: Clocks) -> OrderedRows:
        given = None if rows is None or rows.num_rows == 0 else self._given(rows)
        self._passed.move(clocks.read_us)
        return OrderedRows(given if given is not None and given.num_rows else None, clocks)

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

    @property
    def gives_in_order(self) -> bool:
        return any(operator.gives_in_order for operator in self.operators)

    @property
    def sources(self) -> tuple[str | int, ...] | None:
        return self.operators[0].sources

    @property
    def in_part(self) -> bool:
        return self.operators[0].in_part

    @property
    def reach_us(self) -> int:
        return sum(operator.reach_us for operator in self.operators)

    @property
    def counters(self) -> Mapping[str, Tally]:
        return {name: tally for operator in self.operators for name, tally in operator.counters.items()}

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

    def takes_from(self, read_us: int) -> int:
        """What the first operator takes; and the next, where results come behind what has been read too."""
        taken_us, come_us = NEVER_US, np.array([read_us])
        for operator in self.operators:
            taken_us = max(taken_us, operator.takes_from(int(come_us[0])))
            if operator.gives_in_order:
                break
            come_us = operator.passed(come_us)
        return taken_us

    def passed(self, came_us: Int64s) -> Int64s:
        for operator in self.operators:
            came_us = operator.passed(came_us)
        return came_us

    def describe(self) -> dict[str, Any]:
        return {"operator": "chain", "operators": [operator.describe() for operator in self.operators]}


class _Chaining(Running):
    def __init__(self, chain: Chain, store: Store, layout: Layout) -> None:
        self._running = []
        for number, operator in enumerate(chain.operators):
            self._running.append(operator.build(store.part(number, len(chain.operators)), layout))
            layout = operator.layout_after(layout)

    def push(self, rows: pa.RecordBatch | None, clocks: Clocks) -> OrderedRows:
        (given,) = self.push_stretches([Stretch(rows, clocks)])
        return given

    def push_with_behind(self, rows: pa.RecordBatch | None, behind: Behind, clocks: Clocks) -> OrderedRows:
        first, *others = self._running
        given = first.push_with_behind(rows, behind, clocks)
        for running in others:
            given = running.push(given.rows, given.clocks)
            _check_all_used([given])
        return given

    def push_stretches(self, stretches: Sequence[Stretch]) -> Iterator[OrderedRows]:
        first, *others = self._running
        given = list(first.push_stretches(stretches))
        quarantined = [each.quarantined for each in given]
        for running in others:
            given = list(running.push_stretches([Stretch(each.rows, each.clocks) for each in given]))
            _check_all_used(given)
        return (each._replace(quarantined=unused) for each, unused in zip(given, quarantined, strict=True))

    def counters(self) -> dict[str, int]:
        together: Counter[str] = Counter()
        for running in self._running:
            together.update(running.counters())
        return dict(together)


def _check_all_used(given: Sequence[OrderedRows]) -> None:
    """Refuse rows for quarantine that no user has sent."""
    for each in given:
        if each.quarantined is not None:
            rule, got = (
                "not quarantine rows: those that it sees are not the user's",
                each.quarantined.column("reason")[0],
            )
            raise InputError(must("operator after the first of a chain", rule, got.as_py(), "put it first"))
