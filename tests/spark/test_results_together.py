"""Several results in one query of Spark's."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import latecomer as lc
from tests.spark.streams import SCHEMA, make_events, write_in_parts


def test_two_results_can_be_joined(spark: SparkSession) -> None:
    df = spark.range(6).selectExpr("id", "TIMESTAMP_SECONDS(6 - id) AS ts")
    events = lc.disordered(df, time="ts", shards=1)
    small, large = events.where("id < 4").reorder("1 hour"), events.where("id > 1").reorder("1 hour")
    assert sorted(row["id"] for row in small.results.join(large.results, "id").collect()) == [2, 3]
    assert small.results.unionByName(small.late, allowMissingColumns=True).count() == 4


def test_a_query_of_two_results_has_the_counters_of_each(spark: SparkSession, tmp_path: Path) -> None:
    write_in_parts(make_events(200, seed=3), tmp_path / "in", 1)
    df = spark.readStream.schema(SCHEMA).parquet(str(tmp_path / "in"))
    events = lc.disordered(df, time="ts", key="key", arrival="arrival", shards=1)
    few, all_rows = events.where("id < 20").pass_through(), events.pass_through()
    with pytest.warns(lc.LatecomerWarning, match="alone writes one lane"):
        both = few.results.union(all_rows.results)
    writer = both.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    for result, filtered in ((few, 180), (all_rows, 0)):
        counters = lc.read_counters(query.lastProgress, result)
        assert counters is not None
        assert (counters["seen"], counters["filtered"], counters["given"]) == (200, filtered, 200 - filtered)
        assert f"results: {200 - filtered}" in result.explained(query)
    with pytest.raises(lc.InputError, match=r"one result; got 'those of 2'; say whose .*read_counters\(progress, res"):
        lc.read_counters(query.lastProgress)
