"""Several feeds as one stream: what is refused before anything runs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pyspark.sql import types as T

from latecomer.errors import InputError
from latecomer.spark.declare import Roles
from latecomer.spark.feeds import check_feeds, declared_sources, united

ROLES = Roles("ts", ("area",), None, "received", (), "over", None)
TEXT, LONG, TIME = T.StringType(), T.LongType(), T.TimestampType()
BUS: dict[str, T.DataType] = {"ts": TIME, "area": TEXT, "received": TIME, "delay": LONG, "over": T.BooleanType()}
SCATS: dict[str, T.DataType] = {"received": TIME, "ts": TIME, "area": TEXT, "flow": T.DoubleType()}


def schema(columns: dict[str, T.DataType], *, nullable: bool = True) -> T.StructType:
    return T.StructType([T.StructField(name, kind, nullable) for name, kind in columns.items()])


def test_feeds_that_fit_are_taken_whatever_may_be_null_and_in_any_order() -> None:
    tags, few = T.ArrayType(TEXT, True), T.ArrayType(TEXT, False)
    bus, scats = schema({**BUS, "tags": tags}), schema({**SCATS, "tags": few}, nullable=False)
    check_feeds({"bus": bus, "scats": scats}, ROLES)


@pytest.mark.parametrize(
    ("scats", "message"),
    [
        (
            {**SCATS, "delay": T.IntegerType()},
            "column 'delay' must have one type in all feeds; got \"bigint in feed 'bus', int in feed 'scats'\"; "
            "cast it before, e.g. in feed 'scats': withColumn('delay', col('delay').cast('bigint'))",
        ),
        ({**SCATS, "ts": LONG}, "in feed 'scats': withColumn('ts', timestamp_micros('ts'))"),
        (
            {**SCATS, "Delay": LONG},
            "column 'delay' must be spelt alike in all feeds; got \"Delay in feed 'scats', delay in feed 'bus'\"",
        ),
        ({**SCATS, "SOURCE": TEXT}, "columns of feed 'scats' must not be named source; got 'SOURCE'; a column of that"),
        ({**SCATS, "FLOW": TEXT}, "columns of feed 'scats' must have unique names; got 'flow'"),
        ({**SCATS, "_lc_x": TEXT}, "columns of feed 'scats' must not begin with '_lc_'"),
        (
            {"ts": TIME, "received": TIME},
            "key= must name a column of every feed; got 'area'; the columns of feed 'scats' are ts, received",
        ),
        ({"ts": TIME, "area": TEXT}, "arrival= must name a column of every feed; got 'received'"),
    ],
)
def test_feeds_that_do_not_fit_are_named(scats: dict[str, T.DataType], message: str) -> None:
    with pytest.raises(InputError) as error:
        check_feeds({"bus": schema(BUS), "scats": schema(scats)}, ROLES)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("feeds", "message"),
    [
        ({}, 'disordered must be given a feed at least; got {}; e.g. {"bus": bus, "scats": scats}'),
        ({1: None}, "names of feeds must be text, and not empty; got 1"),
        ({" ": None}, "names of feeds must be text, and not empty; got ' '"),
        ({"bus": 3}, "feed 'bus' must be a DataFrame; got 'int'"),
    ],
)
def test_what_is_no_feed_is_refused(feeds: Any, message: str) -> None:
    with pytest.raises(InputError) as error:
        united(feeds, ROLES)
    assert message in str(error.value)


def by(kind: str) -> Roles:
    return replace(ROLES, source="feed", types={"feed": kind})


def test_declared_sources_are_known_by_their_names() -> None:
    assert declared_sources(None, ROLES) == {}
    assert list(declared_sources(("bus", "scats"), by("string"))) == ["bus", "scats"]
    assert list(declared_sources([0, -1], by("int"))) == ["0", "-1"]


@pytest.mark.parametrize(
    ("sources", "roles", "message"),
    [
        (("bus",), ROLES, "sources= must come with source=; got None; name the column that says who sent a row"),
        (("bus", 1), by("string"), "sources= must be a list of the sources in column 'feed' (string); got ('bus', 1)"),
        ("bus", by("string"), "e.g. sources=('bus', 'scats')"),
        ((), by("string"), "sources= must be a list of the sources"),
        (("0",), by("bigint"), "(bigint); got ('0',); e.g. sources=(0, 1, 2)"),
        ((True,), by("int"), "sources= must be a list of the sources in column 'feed' (int)"),
        ((1.5,), by("double"), "must be declared where the column 'feed' has text or whole numbers; got 'double'"),
        (("a", "a"), by("string"), "sources= must name each source once; got ('a', 'a')"),
    ],
)
def test_sources_that_cannot_be_declared_are_refused(sources: Any, roles: Roles, message: str) -> None:
    with pytest.raises(InputError) as error:
        declared_sources(sources, roles)
    assert message in str(error.value)
