"""What a user declares of a stream: the roles of its columns and how its time is measured.

The roles (time, source, arrival, order) are fixed when the stream is declared: their columns are copied (`_lc_*`), so
that a later `select` may drop or change the user's. Copies that nobody reads are never computed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from latecomer.contract import Settings
from latecomer.durations import Duration, duration_us, instant_us
from latecomer.errors import InputError, must
from latecomer.events import CARRIED_PREFIX, EVENT_CHANGE, ORDER, SOURCE, TIME, Layout
from latecomer.gives import Gives, Line, Tally
from latecomer.outputs import REVISION_COLUMNS
from latecomer.spark.pack import CHANGED, END, KEEP, NOW, SHARD, STAMP
from latecomer.spark.packed import QUARANTINED_ITEMS
from latecomer.spark.schema import check_columns, check_key, check_roles, check_source, check_time
from latecomer.spark.source_counters import SOURCE_COUNTERS
from latecomer.spark.waiting import WAITING
from latecomer.windows import SessionWindow, Window

Names = str | Sequence[str]
DEFAULT_HEARTBEAT_US = 10_000_000


@dataclass(frozen=True)
class Roles:
    """Which of the user's columns means what."""

    time: str
    key: tuple[str, ...]
    source: str | None
    arrival: str | None
    order: tuple[str, ...]
    end: str | None
    change: str | None = None
    types: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Timing:
    """How time is measured; `implied`: what no user has named, but follows from a deadline, and changes with it."""

    tick_us: int
    heartbeat_us: int | None
    idle_after_us: int | None
    max_ahead_us: int | None
    earliest_us: int
    latest_us: int
    from_1970: bool  # the user has not said since when times are sane
    merged: bool = False
    implied: frozenset[str] = frozenset()

    @property
    def idle_ticks(self) -> int | None:
        """`idle_after` in ticks, at least one."""
        return None if self.idle_after_us is None else max(1, self.idle_after_us // self.tick_us)


@dataclass(frozen=True)
class Declared:
    """A declared stream and the order-insensitive steps taken so far.

    `intact`: columns that still are what they were when the stream was declared. `exact`: the steps as they were
    written, to tell whether they have changed. `time_as`: the column that has the time, where the user's own is gone.
    `lacking`: the sources that are declared, and the columns that each lacks.
    """

    df: DataFrame
    roles: Roles
    timing: Timing
    shards: int | None
    read: T.StructType
    columns: tuple[str, ...]
    intact: frozenset[str]
    filtered: bool = False
    window: Window | SessionWindow | None = None
    steps: tuple[Line, ...] = ()
    count_sources: bool = False
    exact: tuple[str, ...] = ()
    time_as: str | None = None
    lacking: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @property
    def feeds(self) -> dict[str, tuple[str, ...]]:
        """The sources that are declared, and the user's columns that each has; those computed since belong to all."""
        return {
            name: tuple(column for column in self.columns if column not in lacks & self.intact)
            for name, lacks in self.lacking.items()
        }


@dataclass(frozen=True)
class Stage:
    """A strategy of a query: its settings, the roles and columns of its events, the user's among them, what it gives.

    steps: what was done to its events before, for `explain`. waits: its sources are followed one by one.
    feeds: the sources that are declared, and the columns that each has.
    """

    name: str
    settings: Settings
    layout: Layout
    columns: pa.Schema
    user: T.StructType
    gives: Gives
    steps: tuple[Line, ...]
    count_sources: bool = False
    waits: bool = False
    feeds: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def counters(self) -> dict[str, Tally]:
        """Its strategy's own, those of items in quarantine, and those of sources."""
        items = {QUARANTINED_ITEMS: Tally.SUM} if self.gives.items else {}
        counted = SOURCE_COUNTERS if self.count_sources else {}
        return {**self.gives.counters, **items, **counted, **({WAITING: Tally.TEXT} if self.waits else {})}

    @property
    def changes(self) -> bool:
        """Whether its events, and so its results, may be retractions."""
        return EVENT_CHANGE in self.columns.names


@dataclass(frozen=True)
class Further:
    """The results of one stage as the events of another, by a key of their own."""

    root: Declared
    stages: tuple[Stage, ...]
    key: tuple[str, ...]
    window: Window | SessionWindow | None = None
    steps: tuple[Line, ...] = ()

    @property
    def feeds(self) -> dict[str, tuple[str, ...]]:
        """The sources that the events come from, and the columns that each has; none where they are not known."""
        before = self.stages[-1]
        settings, time = before.settings, before.gives.time or ""
        if settings.results_as is None:
            return {}
        own = tuple(name for name in before.gives.columns.names if name not in REVISION_COLUMNS)
        passing = {name: before.feeds.get(name, ()) for name in settings.passes_on}
        return {
            settings.results_as: own,
            **{name: columns if time in columns else (*columns, time) for name, columns in passing.items()},
        }


def names_of(value: Names | None, role: str) -> tuple[str, ...]:
    """One name or several, as a tuple."""
    if value is None:
        return ()
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise InputError(must(f"{role}=", "be the name of a column or a list of names", value, "give text"))
    if len(set(names)) < len(names):
        raise InputError(must(f"{role}=", "name each column once", value, "leave the second one out"))
    return tuple(names)


def checked(schema: T.StructType, roles: Roles) -> Roles:
    """Check the columns that play a role; gives the roles with their types."""
    single = {
        "time": roles.time,
        "source": roles.source,
        "arrival": roles.arrival,
        "end": roles.end,
        "change": roles.change,
    }
    for role, column in single.items():
        if not isinstance(column, str) and (column is not None or role == "time"):
            raise InputError(must(f"{role}=", "be the name of a column", column, "give it as text"))
    check_columns(schema)
    named = {role: () if column is None else (column,) for role, column in single.items()}
    check_roles(schema, {**named, "key": roles.key, "order": roles.order})
    check_time(schema, "time", roles.time)
    if roles.arrival is not None:
        check_time(schema, "arrival", roles.arrival)
    check_key(schema, roles.key)
    if roles.end is not None and not isinstance(schema[roles.end].dataType, T.BooleanType):
        got = schema[roles.end].dataType.simpleString()
        raise InputError(must("end=", "be a boolean column", got, "compare it with something"))
    if roles.change is not None and not isinstance(schema[roles.change].dataType, T.IntegralType):
        got = schema[roles.change].dataType.simpleString()
        raise InputError(must("change=", "be a column of whole numbers, +1 and -1", got, "cast it before"))
    if roles.source is not None:
        check_source(schema, roles.source)
    used = [*roles.key, *roles.order, *(column for column in single.values() if column is not None)]
    return replace(roles, types={column: schema[column].dataType.simpleString() for column in used})


def timing_of(
    tick: Duration,
    idle_after: Duration | None,
    heartbeat: Duration | None,
    max_ahead: Duration | None,
    span: tuple[str | None, str],
) -> Timing:
    """Read the durations; `span` is the earliest and the latest time."""
    idle_us = None if idle_after is None else duration_us(idle_after, "idle_after")
    beat_us = None if heartbeat is None else duration_us(heartbeat, "heartbeat")
    if idle_us is not None and beat_us is None:
        beat_us = DEFAULT_HEARTBEAT_US
    ahead_us = None if max_ahead is None else duration_us(max_ahead, "max_ahead", zero=True)
    earliest_us, latest_us = instant_us(span[0] or USUAL_SPAN[0], "earliest"), instant_us(span[1], "latest")
    if earliest_us >= latest_us:
        raise InputError(must("earliest", "lie before latest", span, "swap them"))
    return Timing(duration_us(tick, "tick"), beat_us, idle_us, ahead_us, earliest_us, latest_us, span[0] is None)


LATEST, MERGED = "latest", "merged"
USUAL_SPAN = "1970-01-01", "2200-01-01"  # times before or from the latter on are no times, unless the user says so


def progress_of(progress: str, source: str | None) -> bool:
    """Whether the mark is that of the source furthest behind."""
    if progress not in (LATEST, MERGED):
        advice = f"{LATEST}: the largest time of all; {MERGED}: that of the source furthest behind"
        raise InputError(must("progress=", f"be {LATEST!r} or {MERGED!r}", progress, advice))
    if progress == MERGED and source is None:
        advice = "name the column that says who sent a row, e.g. Kafka's partition"
        raise InputError(must(f"progress={MERGED!r}", "come with source=", None, advice))
    return progress == MERGED


def progress_steps(roles: Roles, timing: Timing) -> tuple[Line, ...]:
    """What `explain` says of the progress, where it is not as usual."""
    if not timing.merged:
        return ()
    idle = "" if timing.idle_after_us is None else ", without those that idle"
    return (Line("progress", f"merged by {roles.source}{idle}", "the slowest source leads"),)


def carry(df: DataFrame, roles: Roles, timing: Timing) -> DataFrame:
    """Copy the columns that play a role, so that later steps cannot change it; unused copies cost nothing."""
    carried = {TIME: F.col(quoted(roles.time)), KEEP: F.lit(True)}
    if roles.source is not None:
        carried[SOURCE] = F.col(quoted(roles.source))
    for number, name in enumerate(roles.order):
        carried[f"{ORDER}{number}"] = F.col(quoted(name))
    if roles.arrival is not None:
        carried[STAMP] = F.col(quoted(roles.arrival))
    elif timing.max_ahead_us is not None:  # Spark keeps both in its offset log: a repeated batch sees the same
        wall = isinstance(df.schema[roles.time].dataType, T.TimestampNTZType)
        carried[NOW] = F.localtimestamp() if wall else F.current_timestamp()
    if roles.end is not None:
        carried[END] = F.col(quoted(roles.end))
    if roles.change is not None:
        carried[CHANGED] = F.col(quoted(roles.change))
    # The shard's number is known only later; its hash is carried as the key's columns are.
    carried[SHARD] = F.xxhash64(*[F.col(quoted(name)) for name in roles.key or (roles.time,)])
    return df.withColumns(carried)


def quoted(name: str) -> str:
    """A column's name as Spark's SQL wants it."""
    return "`" + name.replace("`", "``") + "`"


def users(df: DataFrame) -> tuple[str, ...]:
    """The user's columns among all."""
    return tuple(name for name in df.columns if not name.startswith(CARRIED_PREFIX))
