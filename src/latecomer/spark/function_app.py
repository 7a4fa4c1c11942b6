"""A function of Spark's own windowed aggregates on a disordered stream: what is found out of it, and time travel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from latecomer.durations import Duration, duration_us
from latecomer.errors import InputError, must
from latecomer.events import Stretches
from latecomer.spark.compat import arrow_schema
from latecomer.spark.declare import Declared, Further
from latecomer.spark.function_call import CalledWith, Function, FunctionCall, check_utc
from latecomer.spark.function_plan import Planned, Side, check_plan, output_name, plan_text, side_of, windows_in
from latecomer.spark.function_probe import Probed, Sample, made_sample, probe, users_sample
from latecomer.spark.planner import plan_query
from latecomer.spark.result import Result
from latecomer.spark.schema import check_columns
from latecomer.spark.time_paths import EACH, TimePath, time_paths, values_at
from latecomer.timetravel import LAZY, EngineQuery, EngineTravel, HoleFunction, Trigger, holes_of
from latecomer.timetravel.reach import Reach
from latecomer.windows import Window


class Reads(NamedTuple):
    """Which events something with a time s depends on: those in [s - before, s + after)."""

    before_us: int = 0
    after_us: int = 1

    def window(self, size_us: int) -> Reads:
        """A window of such, by its start."""
        return Reads(self.before_us, self.after_us + size_us - 1)

    def at(self, side: Side, size_us: int) -> Reads:
        """The same window by another time of it."""
        if side is Side.ANY:
            return Reads(self.before_us + size_us, self.after_us)
        by_us = {Side.START: 0, Side.LAST: size_us - 1, Side.END: size_us}[side]
        return Reads(self.before_us + by_us, self.after_us - by_us)


@dataclass(frozen=True)
class FunctionApp:
    """A function from a DataFrame of events to one of results, called as it is.

    windows: those it has, from the first to the last, where they are not `F.window`. sample: rows to try it on.
    """

    _declared: Declared | Further
    _function: Function
    _windows: tuple[Window, ...] | None = None
    _sample: DataFrame | None = None

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
        max_held: int | None = None,
        wait: None = None,
        retract: Literal[True] = True,
    ) -> Result:
        """Give results at once, and repair them when late events come: exactly, up to a bound of weeks.

        The arguments are those of `timetravel` of operators, but `wait` and `retract` cannot be chosen. The function is
        tried on a few rows here, and called once in every micro-batch. Results may change, and
        `lc.final_through(query)` says up to when they cannot any more.
        """
        if wait is not None or retract is not True:
            name, value = ("wait", wait) if wait is not None else ("retract", retract)
            advice = "leave it out, or use an operator of latecomer's"
            raise InputError(must(name, "not be given for a function of Spark's", value, advice))
        where = holes_of(every, enumerator, holes, tolerance)
        declared = self._checked()
        query = self._query(declared, 1 if periodicity is None else duration_us(periodicity, "periodicity"))
        settings = EngineTravel(query, bound, where, trigger, periodicity, max_held)
        return Result(plan_query(declared, settings))

    @property
    def _name(self) -> str:
        return f"function {getattr(self._function, '__name__', type(self._function).__name__)}"

    def _checked(self) -> Declared:
        """The events; refuses those that a function of Spark's cannot be called with."""
        declared = self._declared
        if isinstance(declared, Declared) and not isinstance(declared.df, DataFrame):
            advice = "try it on a session of Spark's, as a batch: .timetravel(...).changes"
            raise InputError(must("app(function)", "be asked of a DataFrame", "rows in memory", advice))
        if isinstance(declared, Further):
            advice = "ask it of the stream itself, or use an operator of latecomer's"
            raise InputError(must("app(function)", "be asked of the first stage", "results of another", advice))
        if declared.window is not None:
            advice = "leave the window out: the function has its own"
            raise InputError(must("app(function)", "be asked of events without a window", "one before", advice))
        time = declared.roles.time
        if time not in declared.columns or time not in declared.intact:
            got = f"only {', '.join(declared.columns)}"
            raise InputError(must("time", "be among the columns, unchanged", got, "select it as it is"))
        if time in declared.roles.key:
            raise InputError(must("key", "not be the time", time, "replays follow a key through time"))
        if declared.roles.types[time] == "bigint":
            advice = f"cast it before, e.g. df.withColumn('{time}', timestamp_micros('{time}'))"
            raise InputError(must("time", "be a timestamp where a function of Spark's is called", "bigint", advice))
        check_utc(declared.df.sparkSession)
        return declared

    def _query(self, declared: Declared, periodicity_us: int) -> EngineQuery:
        """What is found out of the function."""
        schema, time = T.StructType([declared.df.schema[name] for name in declared.columns]), declared.roles.time
        text = self._planned_text(declared.df.sparkSession.createDataFrame([], schema))
        planned = self._planned(text, time)
        last, reach = planned.windows[-1], Reach(planned.windows, periodicity_us, adds_up=True)
        sample = self._rows_to_try(declared, schema, reach.us)
        probed = probe(self._function, self._name, sample, reach.us, reach.step_us)
        at, side = self._time_of_results(probed, planned, text)
        reads = _reads(planned).at(side, last.size_us)
        grid = Stretches(last.advance_us, _micros(next(values_at(probed.rows[0], at))) % last.advance_us)
        called = CalledWith(arrow_schema(schema), time, declared.roles.key)
        call = FunctionCall(
            self._function, called, probed.schema, probed.times, at, (sum(reads) + reach.us, probed.step_us)
        )
        columns = arrow_schema(probed.schema)
        return EngineQuery(self._name.partition(" ")[2], planned.windows, *reads, grid, columns, call)

    def _planned_text(self, rows: DataFrame) -> str:
        """The plan of the function's results, which are a batch with columns that can be written."""
        given = self._function(rows)
        if not isinstance(given, DataFrame):
            raise InputError(must(self._name, "return a DataFrame", type(given).__name__, "return the results"))
        check_columns(given.schema, where=f"columns of {self._name}")
        text = plan_text(given)
        check_plan(text, self._name)
        return text

    def _planned(self, text: str, time: str) -> Planned:
        """The windows that the plan has, or those that the user has declared."""
        if self._windows is not None:
            return Planned(self._windows, (Side.ANY,) * (len(self._windows) - 1))
        planned = windows_in(text, time, self._name)
        if planned is None:
            advice = "group by F.window(...), or declare them: app(function, windows=[lc.Window('1 hour')])"
            raise InputError(must(self._name, "have windows", "none in its plan", advice))
        return planned

    def _rows_to_try(self, declared: Declared, schema: T.StructType, reach_us: int) -> Sample:
        time, key = declared.roles.time, declared.roles.key
        if self._sample is not None:
            return users_sample(self._sample, schema, time, key)
        return made_sample(declared.df.sparkSession, schema, time, key, reach_us)

    def _time_of_results(self, probed: Probed, planned: Planned, text: str) -> tuple[TimePath, Side]:
        """The time that says which window a result is of, its start if that is there, and where in it that lies."""
        found = []
        for path in probed.times:
            dated = isinstance(dict(time_paths(probed.schema))[path], T.DateType)
            times = [] if dated else [_micros(each) for row in probed.rows for each in values_at(row, path)]
            on_one_grid = len({each % planned.windows[-1].advance_us for each in times}) == 1
            if EACH not in path and len(times) == len(probed.rows) and on_one_grid:
                side = self._side(path, text)
                if side is not Side.ANY or len(set(times)) > 1:  # one time alone is on every grid
                    found.append((path, side))
        if not found:
            advice = "keep F.window's column, or its start, among the results; a sample must fill several windows"
            raise InputError(must(self._name, "say of each result which window it is of", "no such column", advice))
        return min(found, key=lambda each: list(Side).index(each[1]))

    def _side(self, path: TimePath, text: str) -> Side:
        if self._windows is not None:
            return Side.ANY
        return side_of(text, ".".join([output_name(text, path[0]), *path[1:]]))

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_"):
                raise AttributeError(f"app(function) has no attribute {name!r}")
            advice = "call .app(function).timetravel(...), or give app an operator of latecomer's"
            raise AttributeError(must(name, "be asked of an operator", "a function of DataFrames", advice))


def function_app(
    declared: Declared | Further, function: Function, windows: Sequence[Window] | None, sample: DataFrame | None
) -> FunctionApp:
    """Ask for a function of the user's."""
    app = FunctionApp(declared, function)
    if windows is not None:
        if not windows or not all(isinstance(each, Window) for each in windows):
            raise InputError(must("windows", "be a list of lc.Window", windows, "e.g. [lc.Window('1 hour')]"))
        app = replace(app, _windows=tuple(windows))
    if sample is not None and not isinstance(sample, DataFrame):
        raise InputError(must("sample", "be a DataFrame of a few rows", sample, "e.g. spark.createDataFrame(...)"))
    return replace(app, _sample=sample)


def _reads(planned: Planned) -> Reads:
    """Which events a result depends on, by the start of its last window."""
    reads = Reads()
    for number, window in enumerate(planned.windows):
        if number:
            reads = reads.at(planned.sides[number - 1], planned.windows[number - 1].size_us)
        reads = reads.window(window.size_us)
    return reads


def _micros(time: datetime) -> int:
    """A time of Python's in microseconds since 1970, as UTC."""
    aware = time if time.tzinfo is not None else time.replace(tzinfo=UTC)
    return (aware - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
