"""`disordered(df, ...)`: a DataFrame whose rows come out of order, and the strategies to live with that.

Order-insensitive steps (`where`, `select`, `with_columns`) are taken before the operator. The roles (time, source,
arrival, order) are fixed when the stream is declared: a later `select` may drop or change those columns, the roles
keep what they were. Progress is measured before `where`: a row that the user filters still moves time on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from latecomer.basic import Hold, PassThrough
from latecomer.contract import Settings
from latecomer.durations import Duration, duration_us, instant_us
from latecomer.errors import InputError, must
from latecomer.events import CARRIED_PREFIX, ORDER, SOURCE, TIME, Layout
from latecomer.spark.frames import FRAME_SCHEMA, PACKED_SCHEMA
from latecomer.spark.heartbeat import heartbeat as heartbeat_stream
from latecomer.spark.hold import FORMAT_VERSION, HoldPlan
from latecomer.spark.pack import END, KEEP, SHARD, STAMP, PackPlan, packer
from latecomer.spark.processor import HoldProcessor
from latecomer.spark.result import LaneSchemas, Result
from latecomer.spark.schema import check_columns, check_key, check_roles, check_source, check_time, nullable
from latecomer.spark.shards import check_shards, default_shards, shard_keys
from latecomer.spark.stored import Stored, fingerprint

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
    types: dict[str, str]


@dataclass(frozen=True)
class Timing:
    """How time is measured."""

    tick_us: int
    heartbeat_us: int | None
    idle_after_us: int | None
    max_ahead_us: int | None
    earliest_us: int
    latest_us: int

    @property
    def idle_ticks(self) -> int | None:
        """`idle_after` in ticks, at least one."""
        return None if self.idle_after_us is None else max(1, self.idle_after_us // self.tick_us)


def disordered(
    df: DataFrame,
    *,
    time: str,
    key: Names | None = None,
    source: str | None = None,
    arrival: str | None = None,
    order: Names | None = None,
    end: str | None = None,
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
    tick: the unit of arrival. idle_after: a stream that is silent this long is released up to its mark.
    heartbeat: how often an idle stream is looked at (default 10 seconds with idle_after, else never).
    max_ahead: a row this far ahead of its arrival is quarantined, as are times before earliest or from latest on.
    shards: how many parts work in parallel (default: what Spark runs at once); fixed for a checkpoint's life.
    """
    if not isinstance(df, DataFrame):
        raise InputError(must("disordered", "be given a DataFrame", type(df).__name__, "e.g. spark.readStream..."))
    single = {"time": time, "source": source, "arrival": arrival, "end": end}
    for role, column in single.items():
        if not isinstance(column, str) and (column is not None or role == "time"):
            raise InputError(must(f"{role}=", "be the name of a column", column, "give it as text"))
    roles = Roles(time, _names(key, "key"), source, arrival, _names(order, "order"), end, {})
    roles = replace(roles, types=_check(df.schema, roles))
    timing = _timing(tick, idle_after, heartbeat, max_ahead, (earliest, latest))
    if shards is not None:
        check_shards(shards)
    carried = _carry(df, roles, timing)
    return Events(carried, roles, timing, shards, frozenset(df.columns), tuple(df.columns))


def _names(value: Names | None, role: str) -> tuple[str, ...]:
    if value is None:
        return ()
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise InputError(must(f"{role}=", "be the name of a column or a list of names", value, "give text"))
    return tuple(names)


def _check(schema: T.StructType, roles: Roles) -> dict[str, str]:
    """Check the columns that play a role; gives their types."""
    check_columns(schema)
    single = {"time": roles.time, "source": roles.source, "arrival": roles.arrival, "end": roles.end}
    named = {role: () if column is None else (column,) for role, column in single.items()}
    check_roles(schema, {**named, "key": roles.key, "order": roles.order})
    check_time(schema, "time", roles.time)
    if roles.arrival is not None:
        check_time(schema, "arrival", roles.arrival)
    check_key(schema, roles.key)
    if roles.end is not None and not isinstance(schema[roles.end].dataType, T.BooleanType):
        got = schema[roles.end].dataType.simpleString()
        raise InputError(must("end=", "be a boolean column", got, "compare it with something"))
    if roles.source is not None:
        check_source(schema, roles.source)
    used = [*roles.key, *roles.order, *(column for column in single.values() if column is not None)]
    return {column: schema[column].dataType.simpleString() for column in used}


def _timing(
    tick: Duration,
    idle_after: Duration | None,
    heartbeat: Duration | None,
    max_ahead: Duration | None,
    span: tuple[str, str],
) -> Timing:
    idle_us = None if idle_after is None else duration_us(idle_after, "idle_after")
    beat_us = None if heartbeat is None else duration_us(heartbeat, "heartbeat")
    if idle_us is not None and beat_us is None:
        beat_us = DEFAULT_HEARTBEAT_US
    ahead_us = None if max_ahead is None else duration_us(max_ahead, "max_ahead", zero=True)
    earliest_us, latest_us = instant_us(span[0], "earliest"), instant_us(span[1], "latest")
    if earliest_us >= latest_us:
        raise InputError(must("earliest", "lie before latest", span, "swap them"))
    return Timing(duration_us(tick, "tick"), beat_us, idle_us, ahead_us, earliest_us, latest_us)


def _carry(df: DataFrame, roles: Roles, timing: Timing) -> DataFrame:
    """Copy the columns that play a role, so that later steps cannot change it; unused copies cost nothing."""
    carried = {TIME: F.col(_quoted(roles.time)), KEEP: F.lit(True)}
    if roles.source is not None:
        carried[SOURCE] = F.col(_quoted(roles.source))
    for number, name in enumerate(roles.order):
        carried[f"{ORDER}{number}"] = F.col(_quoted(name))
    if roles.arrival is not None:
        carried[STAMP] = F.col(_quoted(roles.arrival))
    elif timing.idle_after_us is not None or timing.max_ahead_us is not None:
        wall = isinstance(df.schema[roles.time].dataType, T.TimestampNTZType)
        carried[STAMP] = F.localtimestamp() if wall else F.current_timestamp()
    if roles.end is not None:
        carried[END] = F.col(_quoted(roles.end))
    # The shard's number is known only later; its hash is carried as the key's columns are.
    carried[SHARD] = F.xxhash64(*[F.col(_quoted(name)) for name in roles.key or (roles.time,)])
    return df.withColumns(carried)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _users(df: DataFrame) -> tuple[str, ...]:
    """The user's columns among all."""
    return tuple(name for name in df.columns if not name.startswith(CARRIED_PREFIX))


@dataclass(frozen=True)
class Events:
    """A stream of events out of order, with the order-insensitive steps taken so far."""

    _df: DataFrame
    _roles: Roles
    _timing: Timing
    _shards: int | None
    _intact: frozenset[str]  # columns that still are what they were when the stream was declared
    _columns: tuple[str, ...]
    _filtered: bool = False

    @property
    def columns(self) -> list[str]:
        """The names of the user's columns."""
        return list(self._columns)

    def where(self, condition: str | Column) -> Events:
        """Keep rows for which the condition is true; the others still move time on."""
        wanted = F.expr(condition) if isinstance(condition, str) else condition
        kept = F.col(KEEP) & F.coalesce(self._guarded(wanted), F.lit(False))
        return replace(self, _df=self._df.withColumn(KEEP, kept), _filtered=True)

    def select(self, *columns: str | Column) -> Events:
        """Choose or compute columns; time and the other roles stay known even if not chosen."""
        chosen = [part for column in columns for part in self._chosen(column)]
        plain = {part for part in chosen if isinstance(part, str)}
        selected = self._df.select(*chosen, *[name for name in self._df.columns if name.startswith(CARRIED_PREFIX)])
        intact = frozenset(name for name in self._intact if _quoted(name) in plain)
        return replace(self, _df=selected, _intact=intact, _columns=_users(selected))

    def with_columns(self, **columns: str | Column) -> Events:
        """Add or replace columns, given as SQL text or Column."""
        computed = {
            name: self._guarded(F.expr(value) if isinstance(value, str) else value) for name, value in columns.items()
        }
        df = self._df.withColumns(computed)
        replaced = {name.lower() for name in columns}  # Spark replaces a column whatever its case
        intact = frozenset(name for name in self._intact if name.lower() not in replaced)
        return replace(self, _df=df, _intact=intact, _columns=_users(df))

    def _chosen(self, column: str | Column) -> list[str | Column]:
        """What to select for one argument of `select`."""
        everything: list[str | Column] = [_quoted(name) for name in self._columns]
        if isinstance(column, str):
            if column == "*":
                return everything
            return [_quoted(column) if column in self._columns else column]
        names = self._df.select(*everything).select(column).columns
        if names == list(self._columns):
            return everything
        return [self._guarded(column).alias(names[0]) if self._filtered and len(names) == 1 else column]

    def _guarded(self, column: Column) -> Column:
        """Rows that an earlier `where` dropped are still here: do not compute on them."""
        return F.when(F.col(KEEP), column) if self._filtered else column

    def pass_through(self) -> Result:
        """Give every event as it comes."""
        return self.apply(PassThrough())

    def hold(self, latency: Duration, *, max_held: int | None = None) -> Result:
        """Hold events until `latency` has passed, then give them in the total order."""
        return self.apply(Hold(latency, max_held))

    def apply(self, settings: Settings) -> Result:
        """Run any strategy."""
        if not isinstance(settings, Settings):
            raise InputError(must("apply", "be given a strategy's Settings", settings, "e.g. Hold('1 minute')"))
        return _Planner(self, settings).result()


class _Planner:
    """Turns declared events and a strategy into the three steps."""

    def __init__(self, events: Events, settings: Settings) -> None:
        self._events, self._settings = events, settings
        self._roles, self._timing = events._roles, events._timing
        self._df = events._df
        self._spark = self._df.sparkSession
        self._shards = events._shards or default_shards(self._spark)
        self._user = nullable(self._df.select(*[_quoted(name) for name in events._columns]).schema)
        check_columns(self._user)

    def result(self) -> Result:
        layout = self._layout()
        plan = self._pack_plan(layout)
        frames = self._prepared(plan).mapInArrow(packer(plan), FRAME_SCHEMA)
        stored = self._stored(layout)
        hold = HoldPlan(
            self._settings,
            layout,
            self._timing.idle_ticks,
            fingerprint(stored),
            stamped=self._roles.arrival is not None,
            finishing=not self._df.isStreaming,
        )
        packed = frames.groupBy("shard").transformWithStateInPandas(
            statefulProcessor=HoldProcessor(hold),
            outputStructType=PACKED_SCHEMA,
            outputMode="Append",
            timeMode="None",
        )
        return Result(packed, LaneSchemas(self._user, self._user), self._shards, stored)

    def _layout(self) -> Layout:
        roles = self._roles
        order = tuple(self._place(name, f"{ORDER}{number}") for number, name in enumerate(roles.order))
        source = None if roles.source is None else self._place(roles.source, SOURCE)
        key = tuple(name for name in roles.key if name in self._events._intact)
        return Layout(self._place(roles.time, TIME), key, source, order)

    def _place(self, column: str, carried: str) -> str:
        """Where a role's values stand: in the user's column if it is intact, else in the carried copy."""
        return column if column in self._events._intact else carried

    def _pack_plan(self, layout: Layout) -> PackPlan:
        timing, roles = self._timing, self._roles
        stamp = None
        if STAMP in self._df.columns:
            stamp = STAMP if roles.arrival is None else self._place(roles.arrival, STAMP)
        names = self._events._columns
        roles_placed = (layout.time, layout.source, *layout.order)
        carried = tuple(dict.fromkeys(n for n in roles_placed if n is not None and n not in names))
        return PackPlan(
            shard_keys=shard_keys(self._spark, self._shards),
            time=layout.time,
            stamp=stamp,
            source=layout.source,
            columns=names + carried,
            user_columns=names,
            filtering=self._events._filtered,
            beating=timing.heartbeat_us is not None and self._df.isStreaming,
            ending=roles.end is not None,
            tick_us=timing.tick_us,
            idle_ticks=timing.idle_ticks,
            earliest_us=timing.earliest_us,
            latest_us=timing.latest_us,
            max_ahead_us=timing.max_ahead_us,
        )

    def _prepared(self, plan: PackPlan) -> DataFrame:
        """Exactly the columns that pack reads; heartbeats join here."""
        needed = list(plan.columns)
        needed += [END] if plan.ending else []
        needed += [KEEP] if plan.filtering else []
        needed += [plan.stamp] if plan.stamp is not None and plan.stamp not in needed else []
        shard = F.pmod(F.col(SHARD), F.lit(self._shards)).cast("int").alias(SHARD)
        df = self._df.select(*[_quoted(name) for name in needed], shard)
        if plan.beating and self._timing.heartbeat_us is not None:
            beats = heartbeat_stream(self._spark, self._timing.heartbeat_us)
            df = df.unionByName(beats, allowMissingColumns=True)
        return df

    def _stored(self, layout: Layout) -> Stored:
        roles, timing = self._roles, self._timing
        return {
            "format": FORMAT_VERSION,
            "shards": self._shards,
            "schema": self._user.simpleString(),
            "time": roles.time,
            "key": list(roles.key),
            "source": roles.source,
            "arrival": roles.arrival,
            "order": list(roles.order),
            "end": roles.end,
            "types": roles.types,
            "places": [layout.time, layout.source, *layout.order],
            "tick_us": timing.tick_us,
            "heartbeat_us": timing.heartbeat_us,
            "idle_after_us": timing.idle_after_us,
            "strategy": self._settings.describe(),
        }
