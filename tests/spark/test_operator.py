"""The sharded operator end to end: streams, restarts, batches, lanes, counters."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

import latecomer as lc
from latecomer.spark.compat import plain_file_manager
from latecomer.spark.counters import total, unaccounted
from latecomer.spark.session import FILE_MANAGER, settings_for_start
from latecomer.spark.shards import shard_keys
from latecomer.spark.sinks import SinkLike
from latecomer.spark.stored import control_file, find_checkpoint
from latecomer.spark.stream_files import age_by_name
from tests.spark.streams import LATENCY_US, SCHEMA, expected, make_events, write_in_parts

LATENCY = f"{LATENCY_US} us"


def read(spark: SparkSession, folder: Path) -> DataFrame:
    return spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder))


def declare(df: DataFrame, shards: int = 2) -> lc.Events:
    return lc.disordered(df, time="ts", key="key", source="source", arrival="arrival", order="id", shards=shards)


def ids(folder: Path, lane: str) -> list[int]:
    return sorted(pq.read_table(folder / lane)["id"].to_pylist())


def counters(query: StreamingQuery) -> dict[str, int]:
    batches = [lc.read_counters(progress) for progress in query.recentProgress]
    return total([batch for batch in batches if batch is not None])


def test_a_stream_in_pieces_gives_what_the_twin_gives(spark: SparkSession, tmp_path: Path) -> None:
    events = make_events(2_000, seed=1)
    given, late = expected(events)
    write_in_parts(events.slice(0, 1_400), tmp_path / "in", 2)
    out, checkpoint = tmp_path / "out", str(tmp_path / "checkpoint")
    result = declare(read(spark, tmp_path / "in")).with_columns(one="1").reorder(LATENCY)
    first = result.start(str(out), checkpoint=checkpoint, available_now=True)
    first.awaitTermination()
    counted = counters(first)
    assert unaccounted(counted) == 0
    assert counted["seen"] == 1_400 == counted["given"] + counted["held"] + counted["late"]

    write_in_parts(events.slice(1_400), tmp_path / "in", 2, first=2)
    # Another time zone changes no stored byte; nor does a new `where`, but that must be said.
    kept = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        second = declare(read(spark, tmp_path / "in")).where("id >= 0").with_columns(one="1").reorder(LATENCY)
        query = second.start(out, checkpoint=checkpoint, available_now=True, from_here_on=True)
        query.awaitTermination()
    finally:
        spark.conf.set("spark.sql.session.timeZone", str(kept))
    held = counters(query)["held"]
    assert held > 0
    assert ids(out, "late") == late
    assert ids(out, "results") == sorted(given[: len(given) - held])
    assert pq.read_table(out / "late")["reason"].unique().to_pylist() == ["too_late"]
    _assert_order(out / "results")
    _assert_bound(spark, tmp_path, checkpoint)


def _assert_order(folder: Path) -> None:
    """Within a shard and batch: the total order; between batches: later batches lie after earlier punctuations."""
    last = -(2**62)
    for batch in sorted(folder.glob("batch=*"), key=lambda path: int(path.name.split("=")[1])):
        tables = [pq.read_table(part) for part in batch.rglob("part-*.parquet")]
        for table in tables:
            ordered = table.sort_by([(name, "ascending") for name in ("ts", "source", "arrival", "id")])
            assert table.equals(ordered)
        times = [value for table in tables for value in table["ts"].cast(pa.int64()).to_pylist()]
        if times:
            assert min(times) > last
            last = max(times)


def _assert_bound(spark: SparkSession, tmp_path: Path, checkpoint: str) -> None:
    """A checkpoint is bound to shards, schema and strategy; an error comes before the query starts."""
    df = read(spark, tmp_path / "in")
    out = str(tmp_path / "out")
    others = {
        "shards: 2": declare(df, shards=3).with_columns(one="1").reorder(LATENCY),
        ".set(latency='1000000 us')": declare(df).with_columns(one="1").reorder("1 s"),
        "stages.reorder: {": declare(df).with_columns(one="1").pass_through(),
        "types": declare(df.withColumn("key", F.col("key").cast("long")))
        .with_columns(key="1", one="1")
        .reorder(LATENCY),
        "schema": declare(df).select("id", "ts").reorder(LATENCY),
    }
    for name, result in others.items():
        with pytest.raises(lc.StateError, match="query must go on with the settings") as error:
            result.start(out, checkpoint=checkpoint, available_now=True)
        assert name in str(error.value)
        assert "another checkpoint" in str(error.value)
    with pytest.raises(lc.InputError, match="output folder must be empty, or filled by this very query"):
        declare(df).reorder(LATENCY).start(out, checkpoint=str(tmp_path / "another"), available_now=True)


def test_a_batch_gives_the_same_for_any_number_of_shards(spark: SparkSession, tmp_path: Path) -> None:
    events = make_events(1_000, seed=2)
    given, late = expected(events)
    write_in_parts(events, tmp_path / "in", 3)
    df = spark.read.schema(SCHEMA).parquet(str(tmp_path / "in"))
    for shards in (1, 3):
        counts = declare(df, shards).reorder(LATENCY).write(str(tmp_path / f"out{shards}"))
        assert (counts["given"], counts["late"]) == (len(given), len(late))
        assert ids(tmp_path / f"out{shards}", "results") == sorted(given)
        assert ids(tmp_path / f"out{shards}", "late") == late
    in_order = [row["id"] for row in declare(df, 1).reorder(LATENCY).results.collect()]
    assert in_order == given


def test_rows_have_one_door_and_filtered_rows_still_move_time(spark: SparkSession) -> None:
    rows = [
        (1, 1_000_000, "keep", 0.0),
        (2, 9_000_000, "drop", 0.0),  # filtered, but moves the mark
        (3, None, "keep", 1.0),
        (4, -5, "keep", 1.0),
        (5, 2**55, "keep", 1.0),
        (6, 1_500_000, None, 1.0),  # a null condition filters
        (7, None, "drop", 1.0),
        (9, 600_000, "keep", 1.0),  # arrives at a null time
        (10, 600_000, "keep", 1.0),  # arrives in the year 3111
        (11, 3_601_000_001, "keep", 1.0),  # a microsecond more than an hour after its arrival
        (12, 3_601_000_000, "drop", 1.0),  # exactly an hour: fine, but filtered
        (8, 500_000, "keep", 1.0),
    ]
    schema = "id int, ts bigint, name string, value double"
    stamps = "CASE id WHEN 8 THEN 2000000L WHEN 9 THEN NULL WHEN 10 THEN 36000000000000000L ELSE 1000000L END"
    df = spark.createDataFrame(rows, schema).withColumn("arrival", F.expr(stamps))
    events = lc.disordered(df, time="ts", key="id", arrival="arrival", max_ahead="1 hour", shards=2)
    # Dividing by zero must not reach rows that were filtered before.
    steps = (
        events.where("name = 'keep'")
        .with_columns(inverse="if(name = 'keep', 1, 1 / 0)")
        .select("id", F.col("inverse").alias("one"), (F.col("value") + 1).alias("more"))
    )
    assert steps.columns == ["id", "one", "more"]
    result = steps.reorder("2 s")
    seen: dict[str, list[tuple[object, ...]]] = {}
    sinks: dict[str, SinkLike] = {lane: _collect(seen, lane) for lane in ("results", "late", "quarantine")}
    counts = result.write(sinks=sinks)
    assert [row[0] for row in seen["results"]] == [1]
    assert [(row[0], row[3], row[4]) for row in seen["late"]] == [(8, 3_600_500_000, "too_late")]
    assert sorted((row[0], row[3]) for row in seen["quarantine"]) == [
        (3, "null_time"),
        (4, "too_early"),
        (5, "too_far"),
        (9, "null_arrival"),
        (10, "absurd_arrival"),
        (11, "ahead_of_arrival"),
    ]
    assert (counts["seen"], counts["filtered"], counts["quarantined"], counts["late"]) == (12, 4, 6, 1)
    assert unaccounted(counts) == 0


def _collect(seen: dict[str, list[tuple[object, ...]]], lane: str) -> Callable[[DataFrame, int], object]:
    def sink(rows: DataFrame, batch: int) -> None:
        seen[lane] = [tuple(row) for row in rows.collect()]

    return sink


def test_where_and_select_keep_roles_that_are_dropped_or_changed(spark: SparkSession) -> None:
    df = spark.createDataFrame([(1, 3_000_000, "b"), (2, 1_000_000, "a")], "id int, ts bigint, source string")
    events = lc.disordered(df, time="ts", source="source", order="id", shards=1)
    changed = events.with_columns(ts="0L").where("id > 0").select("*").select("id", "ts")
    assert [tuple(row) for row in changed.reorder("1 s").results.collect()] == [(2, 0), (1, 0)]
    stars = events.where("id > 0").select(F.col("*")).with_columns(TS="1L").select(F.col("id"), "TS")
    assert [tuple(row) for row in stars.reorder("1 s").results.collect()] == [(2, 1), (1, 1)]
    changes = changed.reorder("1 s").changes.collect()
    assert [(row["id"], row["change"], row["pane"], row["final"]) for row in changes] == [
        (2, 1, "on_time", True),
        (1, 1, "on_time", True),
    ]


def test_an_idle_stream_is_released_by_a_heartbeat_and_an_end_by_its_row(spark: SparkSession, tmp_path: Path) -> None:
    now_us = time.time_ns() // 1_000
    rows = pa.table(
        {
            "id": [1, 2],
            "ts": pa.array([now_us, now_us - 1_000_000], pa.timestamp("us", "UTC")),
            "over": [False, False],
        }
    )
    (tmp_path / "in").mkdir()
    pq.write_table(rows, tmp_path / "in" / "0.parquet")
    stream = spark.readStream.schema("id bigint, ts timestamp, over boolean").parquet(str(tmp_path / "in"))
    events = lc.disordered(stream, time="ts", end="over", idle_after="1 s", heartbeat="500 ms", shards=1)
    query = (
        events.select("id")
        .reorder("1 day")
        .start(str(tmp_path / "out"), checkpoint=str(tmp_path / "checkpoint"), every="500 ms")
    )
    try:
        for _ in range(120):
            query.awaitTermination(1)
            if counters(query)["given"] == 2:
                break
        assert counters(query)["given"] == 2
        assert counters(query)["seen"] == 2
    finally:
        query.stop()
    ended = lc.disordered(
        spark.createDataFrame([(1, 5, False), (2, None, True)], "id int, ts bigint, over boolean"),
        time="ts",
        end="over",
        shards=1,
    )
    counts = ended.reorder("1 s").write(sinks=dict.fromkeys(("results", "late", "quarantine"), lc.Discard()))
    assert (counts["control"], counts["seen"], counts["given"]) == (1, 1, 1)
    assert counts["punctuation_us"] == 2**62


def test_time_between_micro_batches_is_no_silence_without_arrival(spark: SparkSession, tmp_path: Path) -> None:
    start = 1_700_000_000_000_000
    for number, ahead in enumerate((10, 2, 11)):  # each file is behind the mark of the one before, by less than 10 s
        times = pa.array([start + 1_000_000 * ahead, start + 1_000_000 * (ahead + 1)], pa.timestamp("us", "UTC"))
        (tmp_path / "in").mkdir(exist_ok=True)
        pq.write_table(pa.table({"ts": times}), tmp_path / "in" / f"{number}.parquet")
    age_by_name(tmp_path / "in")
    stream = spark.readStream.schema("ts timestamp").option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "in"))
    events = lc.disordered(stream, time="ts", idle_after="1 ms", tick="1 ms", heartbeat="10 ms", shards=1)
    query = events.reorder("10 s").start(tmp_path / "out", checkpoint=tmp_path / "checkpoint", available_now=True)
    query.awaitTermination()
    assert (counters(query)["seen"], counters(query)["late"]) == (6, 0)


def test_one_lane_alone_warns_and_settings_are_named(spark: SparkSession, tmp_path: Path) -> None:
    stream = spark.readStream.schema("ts timestamp").parquet(str(tmp_path))
    result = lc.disordered(stream, time="ts", shards=2).pass_through()
    with pytest.warns(lc.LatecomerWarning, match="rows of late, quarantine are then only counted"):
        assert result.results.isStreaming
    provider = "spark.sql.streaming.stateStore.providerClass"
    kept = spark.conf.get(provider)
    spark.conf.unset(provider)
    spark.conf.set(provider, "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider")
    try:
        with pytest.raises(lc.InputError, match=f"{provider} must be a RocksDB provider; got"):
            _ = result.late
    finally:
        spark.conf.set(provider, str(kept))
    partitions = "spark.sql.shuffle.partitions"
    kept = spark.conf.get(partitions)
    spark.conf.set(partitions, "200")
    batch = lc.disordered(spark.createDataFrame([(1,)], "ts bigint"), time="ts", shards=2).pass_through()
    try:
        with pytest.warns(lc.LatecomerWarning, match=f"{partitions} is 200 for 2 shards"):
            _ = batch.results
    finally:
        spark.conf.set(partitions, str(kept))


def test_a_local_checkpoint_is_written_without_starting_processes(spark: SparkSession) -> None:
    def chosen(*, local: bool) -> str | None:
        with settings_for_start(spark, 2, flat=True, local=local):
            return spark.conf.get(FILE_MANAGER, None)

    assert chosen(local=False) is None
    assert chosen(local=True) == plain_file_manager(spark)
    for name in (FILE_MANAGER, f"spark.hadoop.{FILE_MANAGER}"):
        spark.conf.set(name, "the.users.own")
        try:
            assert chosen(local=True) != plain_file_manager(spark)
        finally:
            spark.conf.unset(name)
    assert spark.conf.get(FILE_MANAGER, None) is None


@pytest.mark.parametrize("shards", [1, 2, 3, 7, 16])
def test_every_partition_has_exactly_one_shard(spark: SparkSession, shards: int) -> None:
    keys = spark.createDataFrame([(key,) for key in shard_keys(spark, shards)], "shard int")
    placed = keys.repartition(shards, "shard").select(F.spark_partition_id().alias("place")).collect()
    assert sorted(row["place"] for row in placed) == list(range(shards))


def test_max_held_stops_the_query_with_its_message(spark: SparkSession) -> None:
    df = spark.range(100).select((F.col("id") * 1_000).alias("ts"))
    with pytest.raises(Exception, match="held events per shard must stay within max_held=10; got"):
        lc.disordered(df, time="ts", shards=1).reorder("1 day", max_held=10).results.collect()


def test_settings_of_any_kind_are_recognised_again(spark: SparkSession, tmp_path: Path) -> None:
    stage = {"number": 0, "strategy": "mine", "latencies": (1, 2), "wait": timedelta(seconds=1)}
    stored = {"stages": {"mine": stage}}
    checkpoint = str(tmp_path / "checkpoint")
    new = find_checkpoint(spark, checkpoint, None)
    assert new.must_be_written(spark, stored, from_here_on=False)
    new.write(spark, stored)
    _plan_a_batch(tmp_path / "checkpoint")
    found = find_checkpoint(spark, checkpoint, None)
    assert (found.id, found.planned) == (new.id, 0)
    assert not found.must_be_written(spark, stored, from_here_on=False)
    assert control_file(spark, checkpoint) == f"file://{checkpoint}/latecomer-control.json"
    with pytest.raises(lc.StateError, match="checkpoint must have format 9; got None; use the version of latecomer"):
        find_checkpoint(spark, checkpoint, 9)
    with pytest.raises(lc.StateError, match=r"stages\.mine\.latencies"):
        found.must_be_written(spark, {"stages": {"mine": {**stage, "latencies": (1, 3)}}}, from_here_on=False)


def _plan_a_batch(checkpoint: Path) -> None:
    (checkpoint / "offsets").mkdir(parents=True)
    (checkpoint / "offsets" / "0").write_text("v1")


def test_a_user_can_bring_a_strategy(spark: SparkSession) -> None:
    df = spark.createDataFrame([(1, 2), (2, 1)], "id int, ts bigint")
    settings = replace(lc.Reorder("1 s"), latency="5 s")
    assert [row["id"] for row in lc.disordered(df, time="ts", shards=1).apply(settings).results.collect()] == [2, 1]
