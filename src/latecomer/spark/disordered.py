"""`disordered(df, ...)`: a DataFrame whose rows come out of order, and the strategies to live with that.

Sort-as-needed: the order-insensitive steps (`where`, `select`, `with_columns`, `tumbling`, `hopping`) run before the
operator, whose sort then has fewer and smaller rows and fewer distinct times to put in order; what needs order is
refused. Progress is measured before `where`: a row that the user filters still moves time on.

Paper: Impatience (Chandramouli, Goldstein, Li), sections IV-A and IV-B.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from latecomer.durations import DEFAULT_TICK, Duration
from latecomer.errors import InputError, must
from latecomer.events import CARRIED_PREFIX
from latecomer.gives import Line
from latecomer.spark.align import window_end, window_start
from latecomer.spark.declare import (
    LATEST,
    Declared,
    Names,
    Roles,
    carry,
    checked,
    names_of,
    progress_of,
    progress_steps,
    quoted,
    timing_of,
    users,
)
from latecomer.spark.explain import columns_text, events_text, window_step
from latecomer.spark.expressions import as_column, check_condition, check_names, understood
from latecomer.spark.feeds import EXAMPLE, Lacking, declared_sources, feeds_step, united
from latecomer.spark.pack import KEEP
from latecomer.spark.questions import Strategies, check_advance
from latecomer.spark.refusals import refusal
from latecomer.spark.shards import check_shards
from latecomer.spark.upstream import warn_of_dropped
from latecomer.windows import WINDOW_COLUMNS, WINDOW_END, WINDOW_START, SessionWindow, Window


def disordered(
    df: DataFrame | Mapping[str, DataFrame],
    *,
    time: str,
    key: Names | None = None,
    source: str | None = None,
    sources: Sequence[str | int] | None = None,
    arrival: str | None = None,
    order: Names | None = None,
    end: str | None = None,
    change: str | None = None,
    progress: str = LATEST,
    count_sources: bool = False,
    tick: Duration = DEFAULT_TICK,
    idle_after: Duration | None = None,
    heartbeat: Duration | None = None,
    max_ahead: Duration | None = None,
    earliest: str | None = None,
    latest: str = "2200-01-01",
    shards: int | None = None,
) -> Events:
    """Declare that the rows of a DataFrame, streaming or batch, come out of order; or those of several feeds.

    df: a DataFrame, or a dict of feeds by name: their rows together, with the feed's name in a column `source`, the
    source. Columns that a feed lacks are null there.
    time: event time, a timestamp or a bigint of microseconds. key: rows of one key stay together.
    source: who sent the row. sources: those that are declared: one that has not spoken yet is waited for (merged, until
    it idles), as are the feeds of a dict. arrival: when it came; without it, all rows of a micro-batch come at once.
    order: columns that break ties, such as Kafka's partition and offset.
    end: a boolean column; a row where it is true is no event but says that its source has ended.
    change: a column of +1 and -1; -1 retracts an event given before, for strategies that take retractions.
    progress: how far the stream has come: "latest", the largest time of all; "merged", that of the source furthest
    behind, without those that idle or have ended, so that a source that lags is not late.
    count_sources: count the events of each source too, for the 16 that are furthest behind: `lc.read_sources(query)`.
    tick: the unit of arrival. idle_after: a stream that is silent this long is released up to its mark; merged, a
    source that is silent this long holds the others back no more.
    heartbeat: how often an idle stream is looked at (default 10 seconds with idle_after, else never).
    max_ahead: a row this far ahead of its arrival, or else of the time at which its micro-batch began (timestamp_ntz:
    by the session's time zone), is quarantined, as are times before earliest or from latest on.
    earliest: 1970 if you do not say; a query whose first bigint times look like seconds or milliseconds stops then.
    shards: how many parts work in parallel (default: what Spark runs at once); fixed for a checkpoint's life.
    """
    roles = Roles(time, names_of(key, "key"), source, arrival, names_of(order, "order"), end, change)
    df, roles, lacking = _as_one(df, roles, sources)
    timing = timing_of(tick, idle_after, heartbeat, max_ahead, (earliest, latest))
    timing = replace(timing, merged=progress_of(progress, roles.source))
    if shards is not None:
        check_shards(shards)
    warn_of_dropped(df, stacklevel=2)
    columns = tuple(df.columns)
    if count_sources and roles.source is None:
        raise InputError(
            must("count_sources=True", "come with source=", None, "name the column that says who sent a row")
        )
    carried, steps = carry(df, roles, timing), feeds_step(lacking, named=sources is None)
    declared = Declared(carried, roles, timing, shards, df.schema, columns, frozenset(columns), lacking=lacking)
    return Events(replace(declared, count_sources=count_sources, steps=(*steps, *progress_steps(roles, timing))))


def _as_one(
    given: DataFrame | Mapping[str, DataFrame], roles: Roles, sources: Sequence[str | int] | None
) -> tuple[DataFrame, Roles, Lacking]:
    """The rows as one DataFrame, the roles of its columns, and the sources that are declared with what they lack."""
    if isinstance(given, Mapping):
        if sources is not None:
            raise InputError(must("sources=", "be left out where feeds have names", sources, "all feeds are declared"))
        df, roles, lacking = united(given, roles)
        return df, checked(df.schema, roles), lacking
    if not isinstance(given, DataFrame):
        advice = f"e.g. spark.readStream..., or a dict of feeds, {EXAMPLE}"
        raise InputError(must("disordered", "be given a DataFrame", type(given).__name__, advice))
    roles = checked(given.schema, roles)
    return given, roles, declared_sources(sources, roles)


@dataclass(frozen=True)
class Events(Strategies):
    """A stream of events out of order, with the order-insensitive steps taken so far."""

    _declared: Declared

    @property
    def columns(self) -> list[str]:
        """The names of the user's columns."""
        return list(self._declared.columns)

    def where(self, condition: str | Column) -> Events:
        """Keep rows for which the condition is true; the others still move time on."""
        with understood("where"):
            wanted = as_column(condition, "where")
            check_condition(self._declared.df, wanted, "where")
            kept = F.col(KEEP) & F.coalesce(self._guarded(wanted), F.lit(False))
            step = Line("where", self._shown(condition))
            exact = f"where {_exact(condition)}"
            return self._after(step, exact=exact, df=self._declared.df.withColumn(KEEP, kept), filtered=True)

    def filter(self, condition: str | Column) -> Events:
        """The same as `where`."""
        return self.where(condition)

    def select(self, *columns: str | Column | list[str | Column]) -> Events:
        """Choose or compute columns; time and the other roles stay known even if not chosen."""
        wanted = [each for column in columns for each in (column if isinstance(column, list | tuple) else [column])]
        if not wanted:
            raise InputError(must("select", "be given at least one column", "none", "e.g. .select('*')"))
        with understood("select"):
            return self._selected(wanted)

    def _selected(self, columns: list[str | Column]) -> Events:
        df = self._declared.df
        chosen = [part for column in columns for part in self._chosen(column)]
        plain = {part for part in chosen if isinstance(part, str)}
        selected = df.select(*chosen, *[name for name in df.columns if name.startswith(CARRIED_PREFIX)])
        intact = frozenset(name for name in self._declared.intact if quoted(name) in plain)
        names = users(selected)
        check_names([name for name in selected.columns if name not in (*names, *df.columns)], "select")
        step = Line("select", ", ".join(names), f"{len(names)} of {columns_text(len(self._declared.columns))}")
        exact = f"select {', '.join(map(_exact, columns))}"
        return self._after(step, exact=exact, df=selected, intact=intact, columns=names)

    def with_columns(self, **columns: str | Column) -> Events:
        """Add or replace columns, given as SQL text or Column."""
        check_names(list(columns), "with_columns")
        with understood("with_columns"):
            computed = {name: self._guarded(as_column(value, "with_columns")) for name, value in columns.items()}
            df = self._declared.df.withColumns(computed)
            df.schema  # noqa: B018 (over Connect Spark looks at it only when asked)
        replaced = {name.lower() for name in columns}  # Spark replaces a column whatever its case
        intact = frozenset(name for name in self._declared.intact if name.lower() not in replaced)
        step = Line("with_columns", ", ".join(f"{name} = {self._shown(value)}" for name, value in columns.items()))
        exact = ", ".join(f"{name} = {_exact(value)}" for name, value in columns.items())
        return self._after(step, exact=f"with_columns {exact}", df=df, intact=intact, columns=users(df))

    def withColumn(self, colName: str, col: str | Column) -> Events:
        """The same as `with_columns` of one column."""
        check_names([colName], "withColumn")
        return self.with_columns(**{colName: col})

    def withColumns(self, colsMap: Mapping[str, str | Column]) -> Events:
        """The same as `with_columns`."""
        if not isinstance(colsMap, Mapping):
            advice = "e.g. {'half': 'kwh / 2'}"
            raise InputError(must("withColumns", "be given a dict of names and expressions", colsMap, advice))
        check_names(list(colsMap), "withColumns")
        return self.with_columns(**colsMap)

    def tumbling(self, size: Duration, *, offset: Duration | None = None) -> Events:
        """Windows of one size, one after the other: adds `window_start` and `window_end`.

        The sort gives a window at a time. Windows begin at multiples of the size since 1970 (UTC; for timestamp_ntz the
        wall clock), or so much later: weeks from Monday on are `.tumbling("7 days", offset="-3 days")`.
        """
        return self._aligned(Window(size, size, offset), "tumbling")

    def hopping(self, size: Duration, advance: Duration | None = None, *, offset: Duration | None = None) -> Events:
        """Windows of one size, one every `advance`: adds `window_start` and `window_end`.

        The sort gives a window at a time. No row is copied: the window is the last one that the event falls in; the
        others that it falls in began, and end, one advance earlier each.
        """
        check_advance(advance)
        return self._aligned(Window(size, advance, offset), "hopping")

    def session(self, gap: Duration) -> Events:
        """Windows of one key that last until no event comes for `gap`; to be asked with `aggregate`."""
        self._check_no_window("session")
        return self._after(Line("session", f"until nothing comes for {gap}"), window=SessionWindow(gap))

    def explain(self) -> None:
        """Print the steps taken so far and the strategies there are."""
        print(self.explained())

    def explained(self) -> str:
        """The text that `explain` prints."""
        return events_text(self._declared.read, self._declared.steps)

    if not TYPE_CHECKING:  # so that a type checker refuses these calls too

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_"):
                raise refusal(name)
            found = self._strategy(name)
            if found is None:
                raise self._column_refusal(name) if name in self.columns else refusal(name)
            return found

        def __getitem__(self, name: Any) -> Any:
            raise self._column_refusal(name)

    def _column_refusal(self, name: object) -> AttributeError:
        advice = f"e.g. {name!r} as text, or F.col({name!r})"
        return AttributeError(must("columns of events", "be named in the steps", f"events.{name}", advice))

    def _after(self, step: Line, exact: str | None = None, **changes: Any) -> Events:
        known, text = self._declared, exact or f"{step.word} {step.text}"
        return Events(replace(known, steps=(*known.steps, step), exact=(*known.exact, text), **changes))

    def _aligned(self, window: Window, word: str) -> Events:
        """Add the start and the end of the window, from the time the stream was declared with."""
        step, declared = window_step(word, window), self._declared
        self._check_no_window(word)
        for name in declared.columns:
            if name.lower() in WINDOW_COLUMNS:
                rule = f"not be named {' or '.join(WINDOW_COLUMNS)}"
                advice = "rename it before, or select it away"
                raise InputError(must(f"columns before {word}", rule, name, advice))
        kind = declared.roles.types[declared.roles.time]
        df = declared.df.withColumn(WINDOW_START, window_start(kind, window.steps))
        df = df.withColumn(WINDOW_END, window_end(kind, window.size_us))
        columns, intact = (*declared.columns, *WINDOW_COLUMNS), declared.intact | set(WINDOW_COLUMNS)
        return self._after(step, df=df, columns=columns, intact=intact, window=window)

    def _check_no_window(self, word: str) -> None:
        known = self._declared.window
        if known is not None:
            sessions = word == "session" or isinstance(known, SessionWindow)
            advice = "leave one of them out" if sessions else "group by it after the sort"
            raise InputError(must(word, "be the only window", "a second one", advice))

    def _chosen(self, column: str | Column) -> list[str | Column]:
        """What to select for one argument of `select`."""
        declared = self._declared
        everything: list[str | Column] = [quoted(name) for name in declared.columns]
        if not isinstance(column, str | Column):
            raise InputError(must("select", "be given names or Columns", column, "e.g. 'kwh' or F.col('kwh') * 2"))
        if isinstance(column, str):
            if column == "*":
                return everything
            return [quoted(column) if column in declared.columns else column]
        schema = declared.df.select(*everything).select(column).schema
        names = schema.names
        if names == list(declared.columns):
            return everything
        if len(names) == 1 and self._is_time(column, schema[0]):
            return [quoted(names[0])]
        return [self._guarded(column).alias(names[0]) if declared.filtered and len(names) == 1 else column]

    def _is_time(self, column: Column, field: T.StructField) -> bool:
        """Whether a Column is nothing but the time or a bound of the window; no text, so no literal either."""
        name, plain = field.name, f"Column<'{field.name}'>"
        if name not in (self._declared.roles.time, *WINDOW_COLUMNS) or name not in self._declared.columns:
            return False
        return str(column) == plain and field.dataType == self._declared.df.schema[name].dataType

    def _guarded(self, column: Column) -> Column:
        """Rows that an earlier `where` dropped are still here: do not compute on them."""
        return F.when(F.col(KEEP), column) if self._declared.filtered else column

    def _shown(self, column: str | Column) -> str:
        """Text for people: as it was written, or as Spark names it."""
        return column if isinstance(column, str) else self._declared.df.select(column).columns[0]


def _exact(column: str | Column) -> str:
    """A column as it was written, an alias and what it stands for included."""
    return column if isinstance(column, str) else str(column).removeprefix("Column<'").removesuffix("'>")
