"""Several feeds as one stream: their union by name, with a column that says which feed a row comes from.

Invariants
1. A column has one type in all feeds and is spelt alike; rows of a feed that lacks it have null there.
2. Every feed has the columns of time, key, arrival and order. A feed without the column of `end` says of no row that it
   has ended; one without that of `change` retracts nothing.
3. Feeds are all streams or all batches, of one session of Spark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from latecomer.errors import InputError, must
from latecomer.gives import Line
from latecomer.spark.declare import Roles, quoted
from latecomer.spark.schema import check_columns

FEED = "source"
EXAMPLE = 'e.g. {"bus": bus, "scats": scats}'

Lacking = Mapping[str, frozenset[str]]


def united(feeds: Mapping[str, DataFrame], roles: Roles) -> tuple[DataFrame, Roles, Lacking]:
    """The feeds as one DataFrame with the column `source`, its role added; and which columns each feed lacks."""
    _check_given(feeds)
    if roles.source is not None:
        advice = f"the column {FEED} has the name of each row's feed"
        raise InputError(must("source=", "be left out where feeds have names", roles.source, advice))
    schemas = {name: df.schema for name, df in feeds.items()}
    check_feeds(schemas, roles)
    fields = {each.name: each for schema in schemas.values() for each in schema.fields}
    frames = [_named(name, df, roles, fields) for name, df in feeds.items()]
    whole = reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), frames)
    lacking = {name: frozenset(fields) - frozenset(schema.names) for name, schema in schemas.items()}
    return whole.select(*map(quoted, fields), FEED), replace(roles, source=FEED), lacking


def _named(name: str, df: DataFrame, roles: Roles, fields: Mapping[str, T.StructField]) -> DataFrame:
    """A feed with its name, and with a change where others have one."""
    if roles.change in fields and roles.change not in df.columns:
        df = df.withColumn(str(roles.change), F.lit(1).cast(fields[str(roles.change)].dataType))
    return df.withColumn(FEED, F.lit(name))


def _check_given(feeds: Mapping[str, Any]) -> None:
    if not feeds:
        raise InputError(must("disordered", "be given a feed at least", dict(feeds), EXAMPLE))
    for name, df in feeds.items():
        if not isinstance(name, str) or not name.strip():
            raise InputError(must("names of feeds", "be text, and not empty", name, EXAMPLE))
        if not isinstance(df, DataFrame):
            got = type(df).__name__
            raise InputError(must(f"feed {name!r}", "be a DataFrame", got, "e.g. spark.readStream..."))
    streams = {name: df.isStreaming for name, df in feeds.items()}
    if len(set(streams.values())) > 1:
        got = ", ".join(f"{name}: {'a stream' if streaming else 'a batch'}" for name, streaming in streams.items())
        raise InputError(
            must("feeds", "all be streams, or all batches", got, "read all with readStream, or all with read")
        )
    first, *others = feeds
    for name in others:
        if not same_session(feeds[first].sparkSession, feeds[name].sparkSession):
            got = f"another one in feed {name!r} than in {first!r}"
            raise InputError(must("feeds", "be of one session of Spark", got, "read both with the same session"))


def same_session(one: SparkSession, other: SparkSession) -> bool:
    """Whether two objects are the same session; `SparkSession.active()` gives a new object each time."""
    if one is other:
        return True
    known = [getattr(each, "session_id", None) or getattr(each, "_jsparkSession", each) for each in (one, other)]
    return bool(known[0] == known[1])


def check_feeds(schemas: Mapping[str, T.StructType], roles: Roles) -> None:
    """Columns that fit together, and those that play a role in all of them."""
    seen: dict[str, tuple[str, T.StructField]] = {}
    for feed, schema in schemas.items():
        check_columns(schema, where=f"columns of feed {feed!r}")
        for column in schema.fields:
            if column.name.lower() == FEED:
                advice = "a column of that name has the name of each row's feed: rename yours before"
                raise InputError(must(f"columns of feed {feed!r}", f"not be named {FEED}", column.name, advice))
            _check_alike(feed, column, *seen.setdefault(column.name.lower(), (feed, column)))
    needed = {"time": [roles.time], "key": roles.key, "arrival": [roles.arrival], "order": roles.order}
    for role, columns in needed.items():
        for feed, schema in schemas.items():
            for name in columns:
                if isinstance(name, str) and name not in schema.names:
                    advice = f"the columns of feed {feed!r} are {', '.join(schema.names)}"
                    raise InputError(must(f"{role}=", "name a column of every feed", name, advice))


def _check_alike(feed: str, column: T.StructField, first_feed: str, first: T.StructField) -> None:
    """A column as it is in a feed, and in the first one that has it."""
    if column.name != first.name:
        got = f"{column.name} in feed {feed!r}, {first.name} in feed {first_feed!r}"
        advice = "rename one of them before (case does not count)"
        raise InputError(must(f"column '{first.name}'", "be spelt alike in all feeds", got, advice))
    kinds = [each.dataType.simpleString() for each in (first, column)]  # which says nothing of nulls
    if kinds[0] != kinds[1]:
        got = f"{kinds[0]} in feed {first_feed!r}, {kinds[1]} in feed {feed!r}"
        advice = f"cast it before, e.g. in feed {feed!r}: withColumn('{column.name}', {_cast(first, column)})"
        raise InputError(must(f"column '{column.name}'", "have one type in all feeds", got, advice))


def _cast(wanted: T.StructField, column: T.StructField) -> str:
    """What makes one type of another; whole numbers are microseconds here, and seconds to Spark's casts."""
    times = (T.TimestampType, T.TimestampNTZType)
    if isinstance(wanted.dataType, times) and isinstance(column.dataType, T.LongType):
        return f"timestamp_micros('{column.name}')"
    if isinstance(wanted.dataType, T.LongType) and isinstance(column.dataType, times):
        return f"unix_micros('{column.name}')"
    return f"col('{column.name}').cast('{wanted.dataType.simpleString()}')"


def declared_sources(sources: Sequence[str | int] | None, roles: Roles) -> dict[str, frozenset[str]]:
    """The sources of a single DataFrame that the user has declared; each has all columns."""
    if sources is None:
        return {}
    if roles.source is None:
        advice = "name the column that says who sent a row"
        raise InputError(must("sources=", "come with source=", None, advice))
    kind, plain = _declared_as(roles)
    given = list(sources) if isinstance(sources, list | tuple) else []
    if not given or not all(isinstance(each, plain) and not isinstance(each, bool) for each in given):
        rule = f"be a list of the sources in column '{roles.source}' ({kind})"
        example = "('bus', 'scats')" if plain is str else "(0, 1, 2)"
        raise InputError(must("sources=", rule, sources, f"e.g. sources={example}"))
    if len(set(given)) < len(given):
        raise InputError(must("sources=", "name each source once", sources, "leave the second one out"))
    return {str(each): frozenset() for each in given}


def _declared_as(roles: Roles) -> tuple[str, type]:
    kind = roles.types[str(roles.source)]
    if kind == "string" or kind.startswith(("string ", "char", "varchar")):
        return kind, str
    if kind in ("tinyint", "smallint", "int", "bigint"):
        return kind, int
    rule = f"be declared where the column '{roles.source}' has text or whole numbers"
    raise InputError(must("sources=", rule, kind, "cast the column before, or leave sources out"))


def feeds_step(lacking: Lacking, *, named: bool) -> tuple[Line, ...]:
    """What `explain` says of the feeds, or of the sources that are declared."""
    if not lacking:
        return ()
    return (Line("feeds" if named else "sources", ", ".join(lacking), "one source each" if named else "declared"),)
