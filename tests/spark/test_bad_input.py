"""Bad input: a clear error before the query starts, or a correct answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import latecomer as lc
from latecomer.spark.compat import TIME_TYPES

GOOD: dict[str, Any] = {"time": "ts"}


@pytest.fixture(scope="module")
def df(spark: SparkSession) -> DataFrame:
    columns = "TIMESTAMP_SECONDS(id) ts, id, 'x' text, true flag, map(1, 2) pairs, DATE'2020-01-01' day, 1 number"
    return spark.range(3).selectExpr(*[column.strip() for column in _split(columns)])


def _split(columns: str) -> list[str]:
    parts, depth, current = [], 0, ""
    for character in columns:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append(current)
            current = ""
        else:
            current += character
    return [*parts, current]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"time": "when"}, "time= must name a column; got 'when'; the columns are ts, id, text"),
        (
            {"time": "text"},
            "time= must be timestamp, timestamp_ntz or bigint (microseconds): column 'text'; got 'string'",
        ),
        ({"time": "text"}, "df.withColumn('text', to_timestamp('text'))"),
        ({"time": "day"}, "col('day').cast('timestamp')"),
        ({"time": "number"}, "timestamp_seconds('number')"),
        ({"time": "ts", "key": "who"}, "key= must name a column; got 'who'"),
        ({"time": "ts", "key": "pairs"}, "key= must have a hash, which maps and variants lack: column 'pairs'"),
        ({"time": "ts", "arrival": "text"}, "arrival= must be timestamp"),
        ({"time": "ts", "end": "text"}, "end= must be a boolean column; got 'string'"),
        ({"time": "ts", "tick": "0 s"}, "tick must be longer than zero; got '0 s'"),
        ({"time": "ts", "tick": 100}, "tick must be a duration with a unit; got 100"),
        ({"time": "ts", "idle_after": "-1 s"}, "idle_after must be longer than zero"),
        ({"time": "ts", "earliest": "2300-01-01"}, "earliest must lie before latest"),
        ({"time": None}, "time= must be the name of a column; got None"),
        ({"time": "ts", "key": 5}, "key= must be the name of a column or a list of names; got 5"),
        ({"time": "ts", "source": "pairs"}, "source= must be a plain value: column 'pairs'; got 'map<int,int>'"),
        ({"time": "ts", "progress": "least"}, "progress= must be 'latest' or 'merged'; got 'least'"),
        ({"time": "ts", "progress": "merged"}, "progress='merged' must come with source=; got None; name the column"),
        ({"time": "ts", "count_sources": True}, "count_sources=True must come with source=; got None"),
        ({"time": "ts", "shards": 0}, "shards must be a whole number from 1 to 4096; got 0"),
        ({"time": "ts", "shards": 2.5}, "shards must be a whole number from 1 to 4096; got 2.5"),
    ],
)
def test_arguments_are_checked_before_anything_runs(df: DataFrame, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(lc.InputError) as error:
        lc.disordered(df, **arguments)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("latency", "message"),
    [
        ("0 s", "latency must be longer than zero"),
        ("-1 minute", "latency must be longer than zero"),
        ("10", "latency must be a duration with a unit"),
        (10, "latency must be a duration with a unit"),
    ],
)
def test_a_latency_needs_a_size_and_a_unit(df: DataFrame, latency: Any, message: str) -> None:
    with pytest.raises(lc.InputError, match=message):
        lc.disordered(df, time="ts", shards=1).reorder(latency)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("INTERVAL '1' MONTH AS wait", "column 'wait' must have a type Arrow knows; got 'interval month'"),
        ("make_interval(1) AS wait", "column 'wait' must have a type Arrow knows; got 'interval'"),
        pytest.param(
            "TIME'10:00:00' AS at",
            "cast it before, e.g. CAST(at AS STRING)",
            marks=pytest.mark.skipif(not TIME_TYPES, reason="this Spark has no TIME columns"),
        ),
        ("struct(INTERVAL '1' YEAR AS y) AS deep", "column 'deep.y' must have a type Arrow knows"),
        ("1 AS Reason", "columns must not be named lateness_us, reason"),
        ("1 AS _LC_ts", "columns must not begin with '_lc_'; got '_LC_ts'"),
    ],
)
def test_columns_that_cannot_cross_are_named(df: DataFrame, expression: str, message: str) -> None:
    with pytest.raises(lc.InputError) as error:
        lc.disordered(df.selectExpr("ts", expression), time="ts")
    assert message in str(error.value)


USAGES: dict[str, tuple[Any, str]] = {
    "a list as condition": (lambda e: e.where(["id > 0"]), "where must be given SQL text or a Column; got ['id > 0']"),
    "a value as condition": (lambda e: e.filter(True), "where must be given SQL text or a Column; got True"),
    "a number as condition": (lambda e: e.where("id"), "where must be given a condition; got 'bigint'; compare it"),
    "an unknown column": (lambda e: e.where("nid > 0"), "where must be something that Spark understands; got '[UNRES"),
    "broken SQL": (
        lambda e: e.where("id >> > 0"),
        'where must be something that Spark understands; got "[PARSE_SYNTAX',
    ),
    "no column": (lambda e: e.select(), "select must be given at least one column; got 'none'"),
    "a number as column": (lambda e: e.select(5), "select must be given names or Columns; got 5"),
    "an unknown name": (lambda e: e.select(["ts", "nid"]), "select must be something that Spark understands"),
    "a carried name": (
        lambda e: e.select(F.lit(1).alias("_lc_x")),
        "select must name columns as text",
    ),
    "a constant": (lambda e: e.with_columns(a=5), "with_columns must be given SQL text or a Column; got 5; e.g. 'kwh"),
    "a carried column": (lambda e: e.with_columns(_LC_ts="1"), "with_columns must name columns as text that does not"),
    "a formula of nothing": (
        lambda e: e.with_columns(a="nid + 1"),
        "with_columns must be something that Spark un",
    ),
    "text for a dict": (lambda e: e.withColumns("a"), "withColumns must be given a dict of names and expressions"),
    "a number as name": (lambda e: e.withColumn(5, "1"), "withColumn must name columns as text"),
    "a column as attribute": (lambda e: e.number, "columns of events must be named in the steps; got 'events.number'"),
    "a column as item": (lambda e: e["number"], "columns of events must be named in the steps; got 'events.number'"),
    "start before a strategy": (lambda e: e.start("out"), "start must be asked of a result; got 'events without a str"),
    "results before a strategy": (lambda e: e.results, "results must be asked of a result"),
    "waiting for a result": (lambda e: e.pass_through().awaitTermination(), "must be asked of a query; got 'a result"),
    "one duration in a stage": (lambda e: e.pass_through().by().hopping("1 s"), "hopping must be given an advance"),
    "a sink of one argument": (
        lambda e: e.pass_through().write("out", sinks={"late": lambda rows: None}),
        "sinks['late'] must be a folder or a callable (DataFrame, batch id)",
    ),
    "a sink's class": (
        lambda e: e.pass_through().write("o", sinks={"late": lc.Discard}),
        "must be a folder",
    ),
    "a number as path": (lambda e: e.pass_through().write(5), "path must be a folder; got 5"),
    "counters of a result": (
        lambda e: lc.read_counters(e.pass_through()),
        "counters must be read from a query; got 'Result'",
    ),
    "counters of nothing": (lambda e: lc.final_through({}), "counters must be read from a query; got 'dict'"),
    "no session": (lambda e: lc.ship(cast(Any, None)), "ship must be given a Spark session; got None"),
}


@pytest.mark.parametrize("usage", USAGES)
def test_wrong_usage_is_one_sentence_before_anything_runs(df: DataFrame, usage: str) -> None:
    call, message = USAGES[usage]
    with pytest.raises((lc.InputError, AttributeError)) as error:
        call(lc.disordered(df, time="ts", shards=1))
    assert str(error.value).startswith(message) or message in str(error.value)
    assert len(str(error.value).splitlines()) == 1
    assert "_lc_ts" not in str(error.value), "of columns that are not the user's nothing is said"


def test_doubled_names_are_refused(df: DataFrame) -> None:
    with pytest.raises(lc.InputError, match="columns must have unique names; got 'id'"):
        lc.disordered(df.selectExpr("ts", "id", "id"), time="ts")


def test_max_held_is_a_whole_number_above_zero(df: DataFrame) -> None:
    wrong: list[Any] = [0, -1, "10", True]
    for value in wrong:
        with pytest.raises(lc.InputError, match="max_held must be a whole number above zero"):
            lc.disordered(df, time="ts", shards=1).reorder("1 s", max_held=value)


def test_lanes_do_not_share_a_folder(spark: SparkSession) -> None:
    batch = lc.disordered(spark.range(3).selectExpr("id AS ts"), time="ts", shards=1).pass_through()
    with pytest.raises(lc.InputError, match="folder of lane 'late' must not lie in that of lane 'results'"):
        batch.write(sinks={"results": "out", "late": "out/late/", "quarantine": "other"})
    with pytest.raises(lc.InputError, match="must not lie in that of lane"):
        batch.write(sinks=dict.fromkeys(("results", "late", "quarantine"), "out"))
    named = lc.disordered(spark.range(3).selectExpr("id AS ts", "1 AS Batch"), time="ts", shards=1).pass_through()
    with pytest.raises(lc.InputError, match="columns written to files must not be named batch"):
        named.write("out")


def test_lanes_and_triggers_are_checked(spark: SparkSession, tmp_path: Path) -> None:
    batch = lc.disordered(spark.range(3).selectExpr("id AS ts"), time="ts", shards=1).pass_through()
    with pytest.raises(lc.InputError, match="start must be called on a stream"):
        batch.start("out", checkpoint="checkpoint")
    with pytest.raises(lc.InputError, match="every lane must have somewhere to go"):
        batch.write(sinks={"results": lc.Discard()})
    for left_out in ("results", "late"):
        with pytest.raises(lc.InputError, match=f"every lane must have a sink; .*got 'None for {left_out}'"):
            batch.write("out", sinks={left_out: None})
    with pytest.raises(lc.InputError, match="sinks must be for results, late, quarantine; got 'lost'"):
        batch.write("out", sinks={"lost": lc.Discard()})
    stream = spark.readStream.schema("ts bigint").parquet(str(tmp_path))
    streamed = lc.disordered(stream, time="ts", shards=1).pass_through()
    with pytest.raises(lc.InputError, match="write must be called on a batch"):
        streamed.write("out")
    with pytest.raises(lc.InputError, match="every must be a duration with a unit"):
        streamed.start("out", checkpoint=str(tmp_path / "c"), every="5")
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"checkpoint": ""}, "checkpoint must be a folder"),
        ({"checkpoint": 5}, "checkpoint must be a folder; got 5"),
        ({"checkpoint": "c", "every": "1 us"}, "every must be at least a millisecond; got '1 us'"),
        ({"checkpoint": "c", "available_now": "yes"}, "available_now must be True or False; got 'yes'"),
    ]
    for arguments, message in wrong:
        with pytest.raises(lc.InputError, match=message):
            streamed.start("out", **arguments)


def test_a_million_rows_of_one_time_all_come_out(spark: SparkSession) -> None:
    count = 1_000_000
    df = spark.range(0, count, 1, 3).selectExpr("id", "1000L AS ts", "id % 1000 AS key")
    result = lc.disordered(df, time="ts", key="key", shards=2).reorder("1 s")
    row = result.results.agg(F.count("*").alias("rows"), F.countDistinct("id").alias("ids")).first()
    assert row is not None
    assert (row["rows"], row["ids"]) == (count, count)
