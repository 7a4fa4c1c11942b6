"""Questions about the rows of a key in order, answered at once: `.scan(...)`, `.group(...)`, then `.optimistic(...)`.

Paper: Optimistic processing (Kuralenok et al., FlameStream).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from latecomer.durations import Duration
from latecomer.errors import InputError, must
from latecomer.optimistic import Optimistic
from latecomer.outputs import REVISION_COLUMNS
from latecomer.spark.declare import Declared, Further, names_of
from latecomer.spark.planner import Query, plan_query
from latecomer.spark.refusals import question_refusal
from latecomer.spark.result import Result
from latecomer.spark.schema import check_key, spark_schema
from latecomer.windows import Fold, Group, KeyStep, Mapped, Scan, ScanFunction

Asked = Declared | Further


class Chained(NamedTuple):
    """Steps before the last one, each with the key of the step after it."""

    step: KeyStep
    next_key: tuple[str, ...]


@dataclass(frozen=True)
class ScanQuery:
    """A step on the rows of each key, in order of their time; before it, steps by other keys."""

    _declared: Asked
    _step: KeyStep
    _before: tuple[Chained, ...] = ()

    def map(self, function: Callable[[Any], Iterable[Any]], *, returns: pa.Schema) -> ScanQuery:
        """Turn every result into any number of rows, at the same time, of the same key.

        function: gets a row as a named tuple and returns dicts, or tuples with a value for each column of `returns`.
        """
        return replace(self, _step=Mapped(self._step, function, returns))

    def by(self, *key: str) -> ChainedRows:
        """Go on by another key: `.scan(...).by("document").scan(...).optimistic("1 hour")`, in one query."""
        return ChainedRows(self._declared, (*self._before, Chained(self._step, names_of(list(key), "by"))))

    def optimistic(
        self,
        bound: Duration,
        *,
        barrier: bool = False,
        forget_after: Duration | None = None,
        max_held: int | None = None,
    ) -> Result:
        """Give results at once, in the micro-batch of their row, and take back what a late row makes wrong.

        bound: the most a row may be late; later ones go to the lane `late`. `.changes` has every change, -1 for what is
        void and +1 for what is new, net per micro-batch, first those that void; `.results` what was given. barrier: the
        view `final` has every row once, in order, when nothing can change it any more; give it a sink of its own:
        `.start(..., sinks={"final": path})`. forget_after: a row that comes so long after the one before it of its key
        starts anew; silent keys then cost nothing. max_held: the most rows in one shard; past it the query stops.
        Where the stream has `change=`, -1 takes the last row back that is equal in all columns; one that finds none
        waits for it, and goes to `late` as `unmatched` when it is too late for that.
        """
        declared = comparable(self._declared)
        for number, (step, next_key) in enumerate(self._before):
            first = Optimistic(step, bound, False, forget_after, max_held, goes_on=True, derived=number > 0)
            declared = _next(plan_query(declared, first), next_key)
        derived = bool(self._before)
        settings = Optimistic(self._step, bound, barrier, forget_after, max_held, derived=derived)
        return Result(plan_query(declared, settings))

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            raise question_refusal(name, "scan")


@dataclass(frozen=True)
class ChainedRows:
    """The results of a step as the rows of the next one, by another key."""

    _declared: Asked
    _before: tuple[Chained, ...]

    def scan(self, *functions: ScanFunction | Fold) -> ScanQuery:
        """Ask for functions of each key's rows so far, or for a fold of your own."""
        return replace(scan_query(self._declared, functions), _before=self._before)

    def group(self, rows: int, *, partial: str = "keep") -> ScanQuery:
        """Ask for every row with those just before it of its key, as a list."""
        return replace(group_query(self._declared, rows, partial), _before=self._before)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_"):
                raise AttributeError(name)
            advice = "call .scan(...) or .group(...), and then .optimistic(...)"
            raise AttributeError(must(name, "follow a step", ".by(...)", advice))


def _next(query: Query, key: tuple[str, ...]) -> Further:
    """The results of a step as events by another key."""
    results = query.stages[-1].gives.columns
    columns = [name for name in results.names if name not in REVISION_COLUMNS]
    for name in key:
        if name not in columns:
            raise InputError(must("by", "name a column", name, f"the columns are {', '.join(columns)}"))
    check_key(spark_schema(results), key)
    return Further(query.declared, query.stages, key)


def scan_query(declared: Asked, functions: tuple[ScanFunction | Fold, ...]) -> ScanQuery:
    """Ask for functions of the rows so far, or for the user's own fold."""
    _check_no_window(declared, "scan")
    if len(functions) == 1 and isinstance(functions[0], Fold):
        return ScanQuery(declared, functions[0])
    for function in functions:
        if isinstance(function, Fold):
            advice = "ask for it alone, or compute the others in it"
            raise InputError(must("scan", "be given functions of the rows so far, or one fold", "both", advice))
    return ScanQuery(declared, Scan(*(each for each in functions if not isinstance(each, Fold))))


def group_query(declared: Asked, rows: int, partial: str) -> ScanQuery:
    """Ask for every row with those just before it."""
    _check_no_window(declared, "group")
    return ScanQuery(declared, Group(rows, partial))


def comparable(declared: Asked) -> Asked:
    """Events that retractions can be equal to: without the column that tells them apart."""
    if isinstance(declared, Further) or declared.roles.change is None:
        return declared
    if declared.roles.arrival in declared.columns:
        rule = "be left out where rows are taken back: a row and its retraction must be equal in all columns"
        advice = "call .select(...) without it: when rows came is known all the same"
        raise InputError(must("the column of arrival", rule, declared.roles.arrival, advice))
    columns = tuple(name for name in declared.columns if name != declared.roles.change)
    return replace(declared, df=declared.df.drop(declared.roles.change), columns=columns)


def _check_no_window(declared: Asked, call: str) -> None:
    if declared.window is not None:
        advice = "leave the window out, or call .aggregate(...) on it"
        raise InputError(must(call, "be asked of events without a window", "one before", advice))
