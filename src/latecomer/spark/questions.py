"""Questions asked of a disordered stream, and how long to wait for their answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

import pyarrow as pa

from latecomer.durations import Duration
from latecomer.errors import InputError, must
from latecomer.spark.declare import Declared
from latecomer.spark.explain import WINDOWS
from latecomer.spark.planner import Planner
from latecomer.spark.result import Result
from latecomer.tiers import Ordered, Tiers
from latecomer.tiers.ordered import Function
from latecomer.timetravel import LAZY, HoleFunction, TimeTravel, Trigger, holes_of
from latecomer.windows import WINDOW_START, AggregateFunction, Operator, SessionWindow, Window, WindowAggregation


class Repairable(ABC):
    """What can give its results at once and repair them later."""

    @abstractmethod
    def _application(self) -> tuple[Declared, Operator]:
        """The events, and the operator that runs on them."""

    def timetravel(
        self,
        bound: Duration,
        *,
        every: Duration | None = None,
        enumerator: str | None = None,
        holes: HoleFunction | None = None,
        trigger: Trigger = LAZY,
        periodicity: Duration | None = None,
        retract: bool = True,
        max_held: int | None = None,
    ) -> Result:
        """Give results at once, and repair them when late events come: exactly, up to a bound of weeks.

        An operator must be made of `WindowAggregation` and `Step`. Only what lies near a hole is held. Where something
        is missing is told by one of: every, the period in which each key has an event; enumerator, a column that counts
        its events; holes, a function of two RecordBatches (events and their successors) that returns how many are
        missing between them, -1 for any number, or true and false.
        trigger: "lazy" replays at the key's next event, "eager" at once (and more often), a function of a RecordBatch
        of late events at the times it returns. periodicity: one day, if the operator treats the hours of a day
        differently. `.changes` has every change, `.results` what was given, later results in place of earlier ones;
        retract=False leaves out what is void. max_held: the most events in one shard; past it the query stops.
        """
        where = holes_of(every, enumerator, holes)
        declared, operator = self._application()
        settings = TimeTravel(operator, bound, where, trigger, periodicity, retract, max_held=max_held)
        return Planner(declared, settings).result()


@dataclass(frozen=True)
class AggregateQuery(Repairable):
    """Aggregates per key and window of a disordered stream."""

    _declared: Declared
    _window: Window | SessionWindow
    _aggregates: tuple[AggregateFunction, ...]

    def tiers(self, *latencies: Duration, max_held: int | None = None) -> Result:
        """Answer once for each latency, the shortest first: early answers that get better.

        The answer of a tier has every event that is less late than its latency. `.results` has the answers of all
        tiers, with the number of the tier; `.tier(i)` those of one; `.changes` what each changes.
        Partial results are held, not events. max_held: the most of them in one shard; past it the query stops.
        """
        settings = Tiers(latencies, self._window, self._aggregates, max_held)
        return Planner(without_start(self._declared), settings).result()

    def _application(self) -> tuple[Declared, Operator]:
        if isinstance(self._window, SessionWindow):
            advice = "call .tumbling(size) or .hopping(size, advance) before; sessions can be asked with .tiers(...)"
            raise InputError(must("windows of timetravel", "have a size", "sessions", advice))
        return without_window(self._declared), WindowAggregation(self._window, self._aggregates)


class InOrder:
    """What can be run on its events in order: the stream itself, or an operator on it."""

    _declared: Declared
    _operator: Operator | None

    def tiers(
        self,
        *latencies: Duration,
        partial: Function | None = None,
        merge: Function | None = None,
        returns: pa.Schema | None = None,
        max_held: int | None = None,
    ) -> Result:
        """Run on the events in order once for each latency, the shortest first.

        A tier has every event that is less late than its latency; `.tier(i)` is what the operator makes of it, or the
        events themselves where there is no operator. Events are held. With your own functions only what they return is:
        `partial` from the rows that a tier adds, in order, to rows with the columns `returns`; `merge` from the union
        of those with what the tiers before it gave, to rows of the same columns. They keep the time and key columns;
        after `.tumbling(size)` they see whole windows. max_held: the most rows in one shard; past it the query stops.
        """
        window = self._declared.window
        align_us = window.advance_us if isinstance(window, Window) else None
        settings = Ordered(latencies, self._operator, partial, merge, returns, align_us, max_held)
        return Planner(without_start(self._declared), settings).result()


@dataclass(frozen=True)
class App(InOrder, Repairable):
    """An operator, or a chain of them, that wants events in order."""

    _declared: Declared
    _operator: Operator

    def _application(self) -> tuple[Declared, Operator]:
        if self._declared.window is not None:
            advice = "leave the window out: the application has its own; or call .aggregate(...).timetravel(...)"
            raise InputError(must("app(...).timetravel", "be asked of events without a window", "one before", advice))
        return self._declared, self._operator


def without_window(declared: Declared) -> Declared:
    """The events as if no window had been asked for."""
    steps = tuple(step for step in declared.steps if step.word not in WINDOWS)
    return replace(without_start(declared), window=None, steps=steps)


def without_start(declared: Declared) -> Declared:
    """The events without the column that a window added: results have their own."""
    if not isinstance(declared.window, Window):
        return declared
    columns = tuple(name for name in declared.columns if name != WINDOW_START)
    return replace(declared, df=declared.df.drop(WINDOW_START), columns=columns)
