"""A query that fails says why in one sentence; functions of the user's may fail, or read as much as they like."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import latecomer as lc
from tests.spark.streams import SCHEMA, make_events, write_in_parts


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("failures")
    write_in_parts(make_events(200, seed=8), found / "in", 2)
    return found


def events_of(df: DataFrame) -> lc.Events:
    return lc.disordered(df, time="ts", key="key", arrival="arrival", order="id", tick="1 ms", shards=1)


def stream(spark: SparkSession, folder: Path) -> lc.Events:
    return events_of(spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder / "in")))


def start(result: lc.Result, folder: Path, **options: Any) -> StreamingQuery:
    return result.start(folder / "out", checkpoint=folder / "checkpoint", available_now=True, **options)


def test_a_row_too_late_stops_the_query_with_one_sentence(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    query = start(stream(spark, folder).reorder("1 ms", late="raise"), tmp_path)
    with pytest.raises(lc.LateError) as raised:
        query.awaitTermination()
    assert str(raised.value).startswith("events must come before the punctuation has passed their times; got ")
    assert len(str(raised.value).splitlines()) == 1
    assert "=== Streaming Query ===" in str(raised.value.__cause__)
    assert isinstance(raised.value, StreamingQueryException)
    assert isinstance(query, StreamingQuery)
    assert isinstance(query.exception(), lc.LateError)
    assert str(query.exception()) == str(raised.value)


def test_a_sink_that_fails_is_named(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    def to_my_table(rows: DataFrame, batch: int) -> None:
        raise KeyError("no such table")

    query = start(stream(spark, folder).pass_through(), tmp_path, sinks={"results": to_my_table})
    with pytest.raises(lc.LatecomerError) as raised:
        query.processAllAvailable()
    said = (
        "your function to_my_table must run without an error; got \"KeyError: 'no such table' (test_failures.py, line"
    )
    assert str(raised.value).startswith(said)


def test_a_sink_may_read_a_part_of_its_rows_or_nothing(spark: SparkSession, folder: Path, tmp_path: Path) -> None:
    found: dict[str, list[Any]] = {"results": [], "late": []}

    def part(rows: DataFrame, batch: int) -> None:
        found["results"].append((len(rows.take(1)), rows.isEmpty()))

    def nothing(rows: DataFrame, batch: int) -> None:
        found["late"].append(batch)

    start(stream(spark, folder).reorder("10 ms"), tmp_path, sinks={"results": part, "late": nothing}).awaitTermination()
    assert found == {"results": [(1, False)] * 2, "late": [0, 1]}


def test_a_function_that_fails_in_a_worker_is_named_in_a_batch_too(
    spark: SparkSession, folder: Path, tmp_path: Path
) -> None:
    def halves(rows: pa.RecordBatch) -> pa.RecordBatch:
        raise ValueError("no halves")

    returns = pa.schema([("ts", pa.timestamp("us", "UTC")), ("key", pa.int32())])
    result = events_of(spark.read.schema(SCHEMA).parquet(str(folder / "in")))
    with pytest.raises(PySparkException) as raised:
        result.tiers("1 s", partial=halves, merge=halves, returns=returns).write(tmp_path)
    assert isinstance(raised.value, lc.LatecomerError)
    said = "your function halves must run without an error; got 'ValueError: no halves (test_failures.py, line"
    assert str(raised.value).startswith(said)
