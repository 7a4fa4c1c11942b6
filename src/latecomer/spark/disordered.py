"""`disordered(df, ...)`: a DataFrame whose rows come out of order, and the strategies to live with that.

Sort-as-needed: the order-insensitive steps (`where`, `select`, `with_columns`, `tumbling`, `hopping`) run before the
operator, whose sort then has fewer and smaller rows and fewer distinct times to put in order; what needs order is
refused. Progress is measured before `where`: a row that the user filters still moves time on.

Paper: Impatience (Chandramouli, Goldstein, Li), sections IV-A and IV-B.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from latecomer.durations import Duration
from latecomer.errors import InputError, must
from latecomer.events import CARRIED_PREFIX
from latecomer.gives import Line
from latecomer.spark.align import window_start
from latecomer.spark.declare import Declared, Names, Roles, carry, checked, names_of, quoted, timing_of, users
from latecomer.spark.explain import columns_text, events_text, window_step
from latecomer.spark.pack import KEEP
from latecomer.spark.questions import Strategies
from latecomer.spark.refusals import refusal
from latecomer.spark.shards import check_shards
from latecomer.windows import WINDOW_START, SessionWindow, Window


def disordered(
    df: DataFrame,
    *,
    time: str,
    key: Names | None = None,
    source: str | None = None,
    arrival: str | None = None,
    order: Names | None = None,
    end: str | None = None,
    change: str | None = None,
    tick: Duration = "100 ms",
    idle_after: Duration | None = None,
    heartbeat: Duration | None = None,
    max_ahead: Duration | None = None,
    earliest: str = "1970-01-01",
    latest: str = "2200-01-01",
    shards: int | None = None,
) -> Events:
    """Declare that the rows of a DataFrame, streaming or batch, come out of order.

    time: event time, a timestamp or a bigint of microseconds. key: rows of one key stay together.
    source: who sent the row. arrival: when it came; without it, all rows of a micro-batch come at once.
    order: columns that break ties, such as Kafka's partition and offset.
    end: a boolean column; a row where it is true is no event but says that its source has ended.
    change: a column of +1 and -1; -1 retracts an event given before, for strategies that take retractions.
    tick: the unit of arrival. idle_after: a stream that is silent this long is released up to its mark.
    heartbeat: how often an idle stream is looked at (default 10 seconds with idle_after, else never).
    max_ahead: a row this far ahead of its arrival is quarantined, as are times before earliest or from latest on.
    shards: how many parts work in parallel (default: what Spark runs at once); fixed for a checkpoint's life.
    """
    if not isinstance(df, DataFrame):
        raise InputError(must("disordered", "be given a DataFrame", type(df).__name__, "e.g. spark.readStream..."))
    roles = Roles(time, names_of(key, "key"), source, arrival, names_of(order, "order"), end, change)
    roles = checked(df.schema, roles)
    timing = timing_of(tick, idle_after, heartbeat, max_ahead, (earliest, latest))
    if shards is not None:
        check_shards(shards)
    columns = tuple(df.columns)
    return Events(Declared(carry(df, roles, timing), roles, timing, shards, df.schema, columns, frozenset(columns)))


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
        wanted = F.expr(condition) if isinstance(condition, str) else condition
        kept = F.col(KEEP) & F.coalesce(self._guarded(wanted), F.lit(False))
        step = Line("where", self._shown(condition))
        return self._after(step, df=self._declared.df.withColumn(KEEP, kept), filtered=True)

    def select(self, *columns: str | Column) -> Events:
        """Choose or compute columns; time and the other roles stay known even if not chosen."""
        df = self._declared.df
        chosen = [part for column in columns for part in self._chosen(column)]
        plain = {part for part in chosen if isinstance(part, str)}
        selected = df.select(*chosen, *[name for name in df.columns if name.startswith(CARRIED_PREFIX)])
        intact = frozenset(name for name in self._declared.intact if quoted(name) in plain)
        names = users(selected)
        step = Line("select", ", ".join(names), f"{len(names)} of {columns_text(len(self._declared.columns))}")
        exact = f"select {', '.join(map(_exact, columns))}"
        return self._after(step, exact=exact, df=selected, intact=intact, columns=names)

    def with_columns(self, **columns: str | Column) -> Events:
        """Add or replace columns, given as SQL text or Column."""
        computed = {
            name: self._guarded(F.expr(value) if isinstance(value, str) else value) for name, value in columns.items()
        }
        df = self._declared.df.withColumns(computed)
        replaced = {name.lower() for name in columns}  # Spark replaces a column whatever its case
        intact = frozenset(name for name in self._declared.intact if name.lower() not in replaced)
        step = Line("with_columns", ", ".join(f"{name} = {self._shown(value)}" for name, value in columns.items()))
        return self._after(step, df=df, intact=intact, columns=users(df))

    def tumbling(self, size: Duration) -> Events:
        """Windows of one size, one after the other: adds `window_start`; the sort gives a window at a time.

        Windows begin at multiples of the size since 1970 (UTC; for timestamp_ntz the wall clock).
        """
        return self._aligned(size, size, window_step("tumbling", size))

    def hopping(self, size: Duration, advance: Duration | None = None) -> Events:
        """Windows of one size, one every `advance`: adds `window_start`; the sort gives a window at a time.

        No row is copied: `window_start` is the start of the last window the event falls in; the others that it
        falls in began one advance earlier each.
        """
        if advance is None:
            advice = "e.g. .hopping('1 hour', '10 minutes'), or call .tumbling(size)"
            raise InputError(must("hopping", "be given an advance after the size", "none", advice))
        return self._aligned(size, advance, window_step("hopping", size, advance))

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
            found = None if name.startswith("_") else self._strategy(name)
            if found is None:
                raise refusal(name)
            return found

    def _after(self, step: Line, exact: str | None = None, **changes: Any) -> Events:
        known, text = self._declared, exact or f"{step.word} {step.text}"
        return Events(replace(known, steps=(*known.steps, step), exact=(*known.exact, text), **changes))

    def _aligned(self, size: Duration, advance: Duration, step: Line) -> Events:
        """Add the start of the window, from the time the stream was declared with."""
        found, declared = Window(size, advance), self._declared
        self._check_no_window(step.word)
        if WINDOW_START in [name.lower() for name in declared.columns]:
            advice = "rename it before, or select it away"
            raise InputError(must(f"columns before {step.word}", f"not be named {WINDOW_START}", WINDOW_START, advice))
        start = window_start(declared.roles.types[declared.roles.time], found.advance_us)
        df = declared.df.withColumn(WINDOW_START, start)
        columns, intact = (*declared.columns, WINDOW_START), declared.intact | {WINDOW_START}
        return self._after(step, df=df, columns=columns, intact=intact, window=found)

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
        """Whether a Column is nothing but the time or the window's start; no text, so it cannot be a literal either."""
        name, plain = field.name, f"Column<'{field.name}'>"
        if name not in (self._declared.roles.time, WINDOW_START) or name not in self._declared.columns:
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
