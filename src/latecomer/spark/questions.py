"""Questions asked of a disordered stream, the strategies that answer them, and a stream of results for a further stage.

Paper: Impatience (Chandramouli, Goldstein, Li), sections IV and V; TinTiN (Van Rooij, Gulisano, Papatriantafilou).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, overload

import pyarrow as pa
from pyspark.sql import DataFrame

from latecomer.basic import PassThrough
from latecomer.contract import VERBS, Settings
from latecomer.durations import Duration
from latecomer.errors import InputError, must
from latecomer.gives import Line
from latecomer.lateness import BY_WINDOW
from latecomer.optimistic import OptimisticSessions, OptimisticWindows
from latecomer.outputs import REVISION_COLUMNS
from latecomer.reorder import Reorder
from latecomer.spark.declare import Declared, Further, names_of
from latecomer.spark.explain import WINDOWS, window_step
from latecomer.spark.function_app import FunctionApp, function_app
from latecomer.spark.function_call import Function as SparkFunction
from latecomer.spark.gated import Gated, JoinQuery, join_query
from latecomer.spark.planner import Query, plan_query
from latecomer.spark.refusals import question_refusal, refusing_sparks_join, stage_refusal
from latecomer.spark.result import Result
from latecomer.spark.scanning import ScanQuery, comparable, group_query, scan_query
from latecomer.spark.schema import check_key, spark_schema
from latecomer.tiers import Ordered, Tiers
from latecomer.tiers.changed import Function
from latecomer.timetravel import LAZY, HoleFunction, TimeTravel, Trigger, holes_of
from latecomer.windows import (
    WINDOW_COLUMNS,
    AggregateFunction,
    Fold,
    Join,
    Operator,
    ScanFunction,
    SessionWindow,
    Window,
    WindowAggregation,
)

Asked = Declared | Further


class Operated(Gated):
    """What has an operator, which can run in several ways."""

    @abstractmethod
    def _application(self, call: str) -> tuple[Asked, Operator]:
        """The events, and the operator that runs on them."""

    def _read_behind_gate(self) -> tuple[Asked, Operator | None]:
        return self._application("slack")


class Repairable(Operated):
    """What can give its results at once and repair them later."""

    def timetravel(
        self,
        bound: Duration,
        *,
        every: Duration | None = None,
        tolerance: Duration | None = None,
        enumerator: str | None = None,
        holes: HoleFunction | str | None = None,
        trigger: Trigger = LAZY,
        periodicity: Duration | None = None,
        retract: bool = True,
        wait: Duration | None = None,
        max_held: int | None = None,
    ) -> Result:
        """Give results at once, and repair them when late events come: exactly, up to a bound of weeks.

        An operator must be made of `WindowAggregation` and `Step`. Only what lies near a hole is held. Where something
        is missing is told by one of: every, the period in which each key has an event, early or late by `tolerance` at
        most; enumerator, a column that counts its events; holes="anywhere" (then everything within the bound is held);
        or holes, a function of two RecordBatches (events and their successors) that returns how many are missing
        between them, -1 for any number, or true and false.
        trigger: "lazy" replays at the key's next event, "eager" at once (and more often), a function of a RecordBatch
        of late events at the times it returns. periodicity: one day, if the operator treats the hours of a day
        differently. `.changes` has every change, `.results` what was given, later results in place of earlier ones;
        retract=False leaves out what is void. wait="2 seconds": rows are put in order before they count, and only what
        is later than that is repaired; for small delays that most rows have. max_held: the most events in one shard;
        past it the query stops.
        """
        where = holes_of(every, enumerator, holes, tolerance)
        declared, operator = self._application("timetravel")
        settings = TimeTravel(operator, bound, where, trigger, periodicity, retract, max_held=max_held, wait=wait)
        return Result(plan_query(declared, settings))


@dataclass(frozen=True)
class AggregateQuery(Repairable):
    """Aggregates per key and window of a disordered stream."""

    _declared: Asked
    _window: Window | SessionWindow
    _aggregates: tuple[AggregateFunction, ...]

    def tiers(self, *latencies: Duration, lateness: str = BY_WINDOW, max_held: int | None = None) -> Result:
        """Answer once for each latency, the shortest first: early answers that get better.

        A tier gives its answer for a window when its latency has passed after the window's end, with every event that
        has come by then. `.results` has the answers of all tiers, with the number of the tier; `.tier(i)` those of one;
        `.changes` what each changes. lateness="event" counts only events that are less late than the tier's latency.
        Partial results are held, not events. max_held: the most of them in one shard; past it the query stops.
        """
        settings = Tiers(latencies, self._window, self._aggregates, max_held, lateness)
        return Result(plan_query(without_start(self._declared), settings))

    def optimistic(
        self,
        bound: Duration,
        *,
        barrier: bool = False,
        forget_after: Duration | None = None,
        max_held: int | None = None,
    ) -> Result:
        """Give every window that gets a row, or loses one, in the same micro-batch, and take back what it was before.

        bound: how long after its end a window is repaired; rows whose windows are all older go to the lane `late`.
        `.changes` has every change, -1 for what is void and +1 for what is new, net per micro-batch; `.results` what
        was given. barrier: the view `final` has every window once, in order, when nothing can change it any more; give
        it a sink of its own: `.start(..., sinks={"final": path})`. max_held: the most partial results (where rows can
        be taken back, rows too) in one shard; past it the query stops. A key costs nothing once its windows are final,
        so there is no forget_after. Where the stream has `change=`, -1 takes the last row back that is equal in all
        columns; sessions cannot be asked of such a stream.
        """
        if forget_after is not None:
            advice = "leave it out: nothing is held of a key whose windows are final"
            raise InputError(must("forget_after", "be asked of steps on rows, not of windows", forget_after, advice))
        declared, asked = comparable(without_start(self._declared)), (self._aggregates, bound, barrier, max_held)
        if isinstance(self._window, SessionWindow):
            return Result(plan_query(declared, OptimisticSessions(self._window, *asked)))
        return Result(plan_query(declared, OptimisticWindows(self._window, *asked)))

    def _application(self, call: str) -> tuple[Asked, Operator]:
        if isinstance(self._window, SessionWindow):
            advice = "call .tumbling(size) or .hopping(size, advance) before; sessions can be asked with .tiers(...)"
            raise InputError(must(f"windows of {call}", "have a size", "sessions", advice))
        return without_window(self._declared), WindowAggregation(self._window, self._aggregates)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name in ("scan", "group"):
                advice = "call it on the events without a window: windows that may change go on to no step"
                raise AttributeError(must(name, "be asked of rows", "windows of them", advice))
            raise question_refusal(name, "aggregate")


class InOrder:
    """What can be run on its events in order: the stream itself, or an operator on it."""

    _declared: Asked
    _operator: Operator | None

    def tiers(
        self,
        *latencies: Duration,
        partial: Function | None = None,
        merge: Function | None = None,
        returns: pa.Schema | None = None,
        lateness: str = BY_WINDOW,
        max_held: int | None = None,
    ) -> Result:
        """Run on the events in order once for each latency, the shortest first.

        A tier has every event that is less late than its latency, and after `.tumbling(size)` every event whose window
        it has not given yet (lateness="event": not those either). `.tier(i)` is what the operator makes of it, or the
        events themselves where there is no operator. Events are held. With your own functions only what they return is:
        `partial` from the rows that a tier adds, in order, to rows with the columns `returns`; `merge` from the union
        of those with what the tiers before it gave, to rows of the same columns. They keep the time and key columns;
        after `.tumbling(size)` they see whole windows. max_held: the most rows in one shard; past it the query stops.
        """
        _check_no_session(self._declared, ".tiers(...)" if self._operator is None else ".app(...).tiers(...)")
        window = self._declared.window
        align = window.steps if isinstance(window, Window) else None
        settings = Ordered(latencies, self._operator, partial, merge, returns, align, max_held, lateness)
        return Result(plan_query(without_start(self._declared), settings))


@dataclass(frozen=True)
class App(InOrder, Repairable):
    """An operator, or a chain of them, that wants events in order."""

    _declared: Asked
    _operator: Operator

    def _application(self, call: str) -> tuple[Asked, Operator]:
        if self._declared.window is not None:
            advice = f"leave the window out: the application has its own; or call .aggregate(...).{call}(...)"
            raise InputError(must(f"app(...).{call}", "be asked of events without a window", "one before", advice))
        return self._declared, self._operator

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            raise question_refusal(name, "app")


class Strategies(InOrder, Gated):
    """The strategies that can be asked of events, and the questions about windows of them."""

    _declared: Asked
    _operator = None

    def _read_behind_gate(self) -> tuple[Asked, Operator | None]:
        if self._declared.window is not None:
            advice = "call .aggregate(...) on it, or leave the window out"
            raise InputError(must("windows before slack", "be asked with aggregates", "events", advice))
        return self._declared, None

    @refusing_sparks_join
    def join(
        self,
        left: str,
        right: str,
        *,
        within: Duration,
        when: Callable[[pa.RecordBatch], Any] | None = None,
        keep: Duration | None = None,
        name: str | None = None,
    ) -> JoinQuery:
        """Ask for pairs of rows of two sources, of one key, at most `within` apart: `.join(...).slack(deadline="6 s")`.

        when: a function from a RecordBatch of pairs to a boolean for each; rows for which it raises go to quarantine.
        Columns of pairs are the key, the later time of the two, and `<source>_<column>` for all others of each.
        keep: how long rows stay for partners that come out of order, at least `within`: if sources lag no more than
        `keep` less `within`, all pairs are found whatever the slack. Without it rows leave as their key is read on.
        name: of the pairs as a source of a further stage; without it, both names.
        """
        _check_no_session(self._declared, ".join(...)")
        if self._declared.window is not None:
            advice = "leave the window out: within says how far apart rows may be"
            raise InputError(must("join", "be asked of events without a window", "one before", advice))
        return join_query(self._declared, Join(left, right, within, when, keep), name)

    def scan(self, *functions: ScanFunction | Fold) -> ScanQuery:
        """Ask for functions of each key's rows so far, in order: `.scan(lc.running_sum("n")).optimistic("1 hour")`.

        Every row comes with a column for each function; or ask for one `lc.Fold`, whose outputs come instead.
        """
        return scan_query(self._declared, functions)

    def group(self, rows: int, *, partial: str = "keep") -> ScanQuery:
        """Ask for every row with those just before it of its key, as a list: `.group(3).optimistic("1 h")`.

        partial: "full" leaves out the first groups of a key, which are shorter; with "undo" each of them is taken back
        when the key's next row comes, so that of few rows there is one group; it must be the last step.
        """
        return group_query(self._declared, rows, partial)

    def pass_through(self) -> Result:
        """Give every event as it comes."""
        return self.apply(PassThrough())

    def reorder(
        self,
        latency: Duration,
        *,
        late: str = "side",
        total: bool = False,
        lateness: str = BY_WINDOW,
        max_held: int | None = None,
    ) -> Result:
        """Give events in event-time order, each when `latency` has passed; the Impatience sort.

        Rows are in order within each output partition; every row of a micro-batch lies after the punctuation of
        the one before. With `total`, each micro-batch comes as one partition, in order as a whole.
        late: what becomes of rows later than the latency: to the lane `late` ("side"), gone ("drop"), moved up to
        the earliest time that is still open ("adjust", with `adjusted_us`), or the query stops ("raise").
        After `.tumbling(size)` a row is too late only when its window has been given (lateness="event": as without).
        max_held: the most events one shard may hold; past it the query stops with an error.
        latency and late can change while the query runs: `lc.control(checkpoint).set(latency="5 minutes")`.
        """
        window = self._declared.window
        align = window.steps if isinstance(window, Window) else None
        return self.apply(Reorder(latency, late, max_held, align, total, lateness))

    def aggregate(self, *aggregates: AggregateFunction) -> AggregateQuery:
        """Ask for aggregates per key and window: `.tumbling("1 hour").aggregate(lc.count(), lc.max("kwh"))`."""
        window = self._declared.window
        if window is None:
            advice = "call .tumbling(size), .hopping(size, advance) or .session(gap) before"
            raise InputError(must("aggregate", "be asked of windows", "a stream without", advice))
        return AggregateQuery(self._declared, window, aggregates)

    @overload
    def app(self, operator: Operator) -> App: ...

    @overload
    def app(
        self, operator: SparkFunction, *, windows: Sequence[Window] | None = None, sample: DataFrame | None = None
    ) -> FunctionApp: ...

    def app(
        self,
        operator: Operator | SparkFunction,
        *,
        windows: Sequence[Window] | None = None,
        sample: DataFrame | None = None,
    ) -> App | FunctionApp:
        """Run an operator, or a `Chain` of them, on the events in order: `.app(lc.Pattern(...)).tiers("5 minutes")`.

        Or a function of yours, DataFrame to DataFrame, of Spark's own windowed aggregates by key, as it is:
        `.app(function).timetravel("40 days", every="1 hour")`. windows: those it has, from the first to the last, where
        they are not `F.window`. sample: rows of yours to try it on, where rows that are made up give no results.
        """
        if isinstance(operator, Operator):
            if windows is not None or sample is not None:
                raise InputError(must("windows and sample", "go with a function", "an operator", "leave them out"))
            return App(self._declared, operator)
        if not callable(operator):
            advice = "e.g. lc.Chain(lc.Pattern(...), ...)"
            raise InputError(must("app", "be given an operator or a function of a DataFrame", operator, advice))
        return function_app(self._declared, operator, windows, sample)

    def apply(self, settings: Settings) -> Result:
        """Run any strategy."""
        if not isinstance(settings, Settings):
            raise InputError(must("apply", "be given a strategy's Settings", settings, "e.g. Reorder('1 minute')"))
        _check_no_session(self._declared, f".{settings.name}(...)")
        return Result(plan_query(self._declared, settings))

    def _strategy(self, name: str) -> Any:
        """The call of a strategy by the name of its verb, if there is one."""
        found = [each for each in VERBS.values() if each.verb is not None and each.verb.of_events == name]
        return (lambda *given, **named: self.apply(found[0](*given, **named))) if found else None


@dataclass(frozen=True)
class StageEvents(Strategies):
    """The results of one stage as the events of a further one: ask them for windows, an operator or a strategy."""

    _declared: Further

    @classmethod
    def of(cls, query: Query, key: Sequence[str]) -> StageEvents:
        """The results of a query by a key of their own."""
        query = query.carrying_windows()
        names, results = names_of(list(key), "key"), query.stages[-1].gives.columns
        columns = [name for name in results.names if name not in REVISION_COLUMNS]
        for name in names:
            if name not in columns:
                raise InputError(must("by", "name a column", name, f"the columns are {', '.join(columns)}"))
        check_key(spark_schema(results), names)
        return cls(Further(query.declared, query.stages, names))

    def tumbling(self, size: Duration, *, offset: Duration | None = None) -> StageEvents:
        """Windows of one size, one after the other, to be asked with `aggregate`."""
        window = Window(size, size, offset)
        return self._windowed(window, window_step("tumbling", window))

    def hopping(
        self, size: Duration, advance: Duration | None = None, *, offset: Duration | None = None
    ) -> StageEvents:
        """Windows of one size, one every `advance`, to be asked with `aggregate`."""
        check_advance(advance)
        window = Window(size, advance, offset)
        return self._windowed(window, window_step("hopping", window))

    def session(self, gap: Duration) -> StageEvents:
        """Windows of one key that last until no event comes for `gap`, to be asked with `aggregate`."""
        return self._windowed(SessionWindow(gap), Line("session", f"until nothing comes for {gap}"))

    def apply(self, settings: Settings) -> Result:
        """Run any strategy."""
        if self._declared.window is not None:
            advice = "call .aggregate(...) on it, or leave the window out"
            raise InputError(must("windows of a further stage", "be asked with aggregates", settings.name, advice))
        return super().apply(settings)

    def _windowed(self, window: Window | SessionWindow, step: Line) -> StageEvents:
        if self._declared.window is not None:
            raise InputError(must(step.word, "be the only window", "a second one", "leave one of them out"))
        return StageEvents(replace(self._declared, window=window, steps=(*self._declared.steps, step)))

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            found = None if name.startswith("_") else self._strategy(name)
            if found is None:
                raise stage_refusal(name)
            return found


def check_advance(advance: Duration | None) -> None:
    """Windows that hop need two durations."""
    if advance is None:
        advice = "e.g. .hopping('1 hour', '10 minutes'), or call .tumbling(size)"
        raise InputError(must("hopping", "be given an advance after the size", "none", advice))


def _check_no_session(declared: Asked, call: str) -> None:
    if isinstance(declared.window, SessionWindow):
        advice = "call .aggregate(...) on it, or leave .session(...) out"
        raise InputError(must("session", "be asked with aggregates", call, advice))


def without_window(declared: Asked) -> Asked:
    """The events as if no window had been asked for."""
    steps = tuple(step for step in declared.steps if step.word not in WINDOWS)
    return replace(without_start(declared), window=None, steps=steps)


def without_start(declared: Asked) -> Asked:
    """The events without the columns that a window added: results have their own."""
    if isinstance(declared, Further) or not isinstance(declared.window, Window):
        return declared
    columns = tuple(name for name in declared.columns if name not in WINDOW_COLUMNS)
    return replace(declared, df=declared.df.drop(*WINDOW_COLUMNS), columns=columns)
