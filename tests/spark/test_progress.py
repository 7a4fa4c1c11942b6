"""The progress of sources on Spark."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import latecomer as lc
from latecomer.spark.counters import total
from latecomer.spark.session import settings_for_start
from latecomer.spark.sinks import SinkLike
from tests.spark.streams import LATENCY_US, SCHEMA, expected, lagging, make_events, write_in_parts

LATENCY = f"{LATENCY_US} us"


def test_a_source_that_lags_is_not_late_where_progress_is_merged(spark: SparkSession, tmp_path: Path) -> None:
    events = lagging(make_events(600, seed=3), "b", 60_000_000)
    given, late = expected(events, merged=True)
    assert len(late) < len(expected(events)[1]) / 4
    write_in_parts(events, tmp_path / "in", 3)
    stream = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "in"))

    def declare(progress: str) -> lc.Events:
        named = {"time": "ts", "key": "key", "source": "source", "arrival": "arrival", "order": "id"}
        return lc.disordered(stream, progress=progress, shards=2, **named)  # type: ignore[arg-type]

    result, checkpoint = declare("merged").reorder(LATENCY), tmp_path / "checkpoint"
    query = result.start(tmp_path / "out", checkpoint=checkpoint, available_now=True)
    query.awaitTermination()
    batches = [lc.read_counters(progress) for progress in query.recentProgress]
    counted = total([batch for batch in batches if batch is not None])
    assert sorted(pq.read_table(tmp_path / "out" / "late")["id"].to_pylist()) == late
    assert sorted(pq.read_table(tmp_path / "out" / "results")["id"].to_pylist()) == sorted(given[: counted["given"]])
    assert counted["held"] == len(given) - counted["given"] > 0
    assert "  progress      merged by source                        the slowest source leads" in result.explained()
    with pytest.raises(lc.StateError, match=r"settings of its checkpoint \(progress: merged\); got 'latest'"):
        declare("latest").reorder(LATENCY).start(tmp_path / "out", checkpoint=checkpoint, available_now=True)


def test_one_wrong_clock_is_named_with_what_it_made_late(spark: SparkSession) -> None:
    second = "TIMESTAMP_SECONDS(1700000000 + id)"
    rows = spark.range(400).selectExpr(f"{second} AS came", f"IF(id = 9, {second} + INTERVAL 9 DAYS, {second}) AS ts")
    nowhere = dict.fromkeys(("results", "late", "quarantine"), lc.Discard())
    events = lc.disordered(rows, time="ts", arrival="came", shards=2)
    with pytest.warns(
        lc.LatecomerWarning, match=r"rose by 9 days, 0:00:02 at once, .* 390 came behind it and are late"
    ):
        counted = events.reorder("1 minute").write(sinks=nowhere)
    assert (counted["late"], counted["behind_jump"], counted["beyond_jump"]) == (390, 390, 0)
    guarded = lc.disordered(rows, time="ts", arrival="came", max_ahead="1 hour", shards=2)
    assert guarded.reorder("1 minute").write(sinks=nowhere)["late"] == 0


def test_seconds_as_whole_numbers_stop_the_query_unless_they_are_meant(spark: SparkSession) -> None:
    seconds = spark.range(100).selectExpr("1700000000 + id AS ts")
    nowhere = dict.fromkeys(("results", "late", "quarantine"), lc.Discard())
    with pytest.raises(Exception, match="it looks like seconds: declare df"):
        lc.disordered(seconds, time="ts", shards=1).reorder("1 minute").write(sinks=nowhere)
    meant = lc.disordered(seconds, time="ts", earliest="1970-01-01", shards=1)
    assert meant.reorder("1 minute").write(sinks=nowhere)["given"] == 100


@pytest.fixture
def tokyo(spark: SparkSession) -> Iterator[None]:
    zone = "spark.sql.session.timeZone"
    kept = spark.conf.get(zone)
    spark.conf.set(zone, "Asia/Tokyo")
    yield
    spark.conf.set(zone, str(kept))


def wall_clock(hours: int) -> str:
    """The time in Tokyo in so many hours, by the wall clock."""
    return (datetime.now(UTC) + timedelta(hours=9 + hours)).strftime("%Y-%m-%d %H:%M:%S")


@pytest.mark.usefixtures("tokyo")
@pytest.mark.parametrize("kind", ["timestamp", "timestamp_ntz", "bigint"])
def test_without_arrival_times_are_compared_with_the_clock_of_the_micro_batch(spark: SparkSession, kind: str) -> None:
    rows = spark.createDataFrame([(hours, wall_clock(hours)) for hours in (-8, 0, 3, 12)], "hours int, wall string")
    times = {"bigint": "unix_micros(CAST(wall AS TIMESTAMP))"}.get(kind, f"CAST(wall AS {kind})")
    events = lc.disordered(rows.selectExpr("hours", f"{times} AS ts"), time="ts", max_ahead="2 hours", shards=1)
    with settings_for_start(spark, 1, flat=True):
        ahead = [(row["hours"], row["reason"]) for row in events.pass_through().quarantine.collect()]
    assert sorted(ahead) == [(3, "ahead_of_arrival"), (12, "ahead_of_arrival")]


@pytest.mark.usefixtures("tokyo")
def test_a_repeated_micro_batch_compares_with_the_clock_of_the_first_try(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.createDataFrame([(wall_clock(0),), (wall_clock(-48),)], "wall string")
    rows.selectExpr("CAST(wall AS TIMESTAMP_NTZ) AS ts").coalesce(1).write.parquet(str(tmp_path / "in"))
    stream = spark.readStream.schema("ts timestamp_ntz").parquet(str(tmp_path / "in"))
    result = lc.disordered(stream, time="ts", max_ahead="2 hours", shards=1).pass_through()
    found: list[int] = []

    def broken(rows: DataFrame, batch: int) -> None:
        raise ValueError("a sink that fails")

    def count(rows: DataFrame, batch: int) -> None:
        found.append(rows.count())

    for sink in (broken, count):
        sinks: dict[str, SinkLike] = {"results": lc.Discard(), "late": lc.Discard(), "quarantine": sink}
        query = result.start(checkpoint=tmp_path / "checkpoint", sinks=sinks, available_now=True)
        if sink is broken:
            with pytest.raises(Exception, match="a sink that fails"):
                query.awaitTermination()
            _set_clock_back(tmp_path / "checkpoint" / "offsets" / "0", timedelta(days=1))
    query.awaitTermination()
    assert found == [1]  # what Spark wrote down counts, by which the first row is a day ahead


def _set_clock_back(offsets: Path, by: timedelta) -> None:
    """Let Spark believe that it began a micro-batch earlier."""
    lines = offsets.read_text().split("\n")
    metadata = json.loads(lines[1])
    metadata["batchTimestampMs"] -= by // timedelta(milliseconds=1)
    offsets.write_text("\n".join([lines[0], json.dumps(metadata), *lines[2:]]))
    (offsets.parent / f".{offsets.name}.crc").unlink(missing_ok=True)


def test_sources_are_counted_on_request(spark: SparkSession) -> None:
    """18 sources, each a minute behind the one before; a row in two of each comes when the mark is 20 minutes on."""
    time = "TIMESTAMP_SECONDS(1700000000 - 60 * (id % 18) + IF(id < 18, 0, 1200))"
    rows = spark.range(36).selectExpr("id", f"{time} AS ts", "id % 18 AS feed", "TIMESTAMP_SECONDS(id) AS came")
    more = rows.where("id < 18").withColumn("came", F.expr("TIMESTAMP_SECONDS(99)"))
    events = lc.disordered(rows.union(more), time="ts", source="feed", arrival="came", count_sources=True, shards=2)
    counted = events.reorder("10 minutes").write(sinks=dict.fromkeys(("results", "late", "quarantine"), lc.Discard()))
    sources = lc.read_sources(counted)
    assert sources is not None
    assert list(sources) == [str(feed) for feed in range(17, 1, -1)]
    assert sources.hidden == 2
    assert {name: each.behind_us for name, each in sources.items()} == {str(n): n * 60_000_000 for n in range(2, 18)}
    assert {each.events for each in sources.values()} == {3}
    assert sum(each.late for each in sources.values()) == counted["late"] - 2 * 1
    with pytest.raises(lc.InputError, match="count_sources=True must find the source's column"):
        events.select("id").pass_through()
