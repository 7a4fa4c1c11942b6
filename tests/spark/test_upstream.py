"""Steps of Spark's that drop rows before a stream is declared are told."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

import latecomer as lc
from tests.spark.streams import SCHEMA, make_events, write_in_parts


@pytest.fixture
def stream(spark: SparkSession, tmp_path: Path) -> DataFrame:
    return spark.readStream.schema(SCHEMA).parquet(str(tmp_path))


def test_steps_that_drop_rows_before_are_told_when_a_stream_is_declared(spark: SparkSession, stream: DataFrame) -> None:
    marked = stream.withWatermark("ts", "5 seconds")
    other = stream.selectExpr("id", "value AS other")
    told = {
        "withWatermark stands before disordered, where it does nothing": marked,
        "^dropDuplicatesWithinWatermark with a watermark stands": marked.dropDuplicatesWithinWatermark(["id"]),
        "^dropDuplicates with a watermark .* are dropped there, in no lane": marked.dropDuplicates(["id", "ts"]),
        "^dropDuplicates with a state of Spark's stands before": stream.dropDuplicates(["id"]),
        "^groupBy with a watermark": marked.groupBy("ts", "key").count(),
        "^join with a state": stream.join(other, "id"),
        "^limit with a state": stream.limit(5),
        "^withWatermark stands before": marked.selectExpr("ts", "value + 1 AS value"),
    }
    for message, df in told.items():
        with pytest.warns(lc.LatecomerWarning, match=message) as said:
            lc.disordered(df, time="ts", shards=1)
        assert [each.filename for each in said] == [__file__], "where the user called it"


def test_nothing_is_said_of_steps_that_keep_no_state(
    spark: SparkSession, stream: DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lc.disordered(stream.where("id > 3").join(spark.range(3), "id"), time="ts")
        lc.disordered(spark.range(3).selectExpr("id AS ts").distinct(), time="ts")
    assert capsys.readouterr().out == ""


def test_a_watermark_alone_drops_nothing(spark: SparkSession, tmp_path: Path) -> None:
    write_in_parts(make_events(300, seed=2), tmp_path / "in", 2)
    df = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "in"))
    with pytest.warns(lc.LatecomerWarning, match="where it does nothing"):
        events = lc.disordered(df.withWatermark("ts", "1 millisecond"), time="ts", arrival="arrival", shards=1)
    sinks = dict.fromkeys(("results", "late", "quarantine"), lc.Discard())
    query = events.pass_through().start(checkpoint=tmp_path / "checkpoint", sinks=sinks, available_now=True)
    query.awaitTermination()
    given = [counters["given"] for event in query.recentProgress if (counters := lc.read_counters(event))]
    assert sum(given) == 300
