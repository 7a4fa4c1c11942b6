"""Reorder on Spark: what "in order" means, late rows by policy, windows before the sort."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

import latecomer as lc
from latecomer.events import NEVER_US
from latecomer.spark.counters import total, unaccounted
from tests.spark.streams import LATENCY_US, SCHEMA, TICK_US, make_events, write_in_parts

LATENCY = f"{LATENCY_US} us"
DISCARD = dict.fromkeys(("results", "late", "quarantine"), lc.Discard())
Row = tuple[int, str, int, int]  # time, source, tick, id: the total order


def declare(df: DataFrame, **more: Any) -> lc.Events:
    return lc.disordered(df, time="ts", key="key", source="source", arrival="arrival", order="id", shards=2, **more)


def streamed(spark: SparkSession, tmp_path: Path, result: Any, count: int = 1_600) -> tuple[StreamingQuery, pa.Table]:
    """A query that has taken three micro-batches, and what came in."""
    events = make_events(count, seed=3)
    write_in_parts(events, tmp_path / "in", 3)
    stream = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "in"))
    lanes = result(declare(stream))
    query = lanes.start(tmp_path / "out", checkpoint=tmp_path / "checkpoint", available_now=True)
    query.awaitTermination()
    return query, events


def punctuations(query: StreamingQuery) -> list[int]:
    """The punctuation before the first micro-batch, and after each."""
    counters = [lc.read_counters(progress) for progress in query.recentProgress]
    return [NEVER_US, *(batch["punctuation_us"] for batch in counters if batch is not None)]


def counted(query: StreamingQuery) -> dict[str, int]:
    counters = [lc.read_counters(progress) for progress in query.recentProgress]
    return total([batch for batch in counters if batch is not None])


def files(folder: Path, batch: int) -> list[list[int]]:
    """The ids in each file of a micro-batch."""
    return [pq.read_table(part)["id"].to_pylist() for part in folder.glob(f"batch={batch}/*/part-*.parquet")]


def keys(events: pa.Table) -> dict[int, Row]:
    """Each id's place in the total order."""
    stamps = events["arrival"].cast(pa.int64()).to_pylist()
    columns = (
        events["ts"].cast(pa.int64()).to_pylist(),
        events["source"].to_pylist(),
        stamps,
        events["id"].to_pylist(),
    )
    return {id: (ts, source, stamp // TICK_US, id) for ts, source, stamp, id in zip(*columns, strict=True)}


def assert_in_order(ids: Sequence[int], place: dict[int, Row]) -> None:
    order = [place[id] for id in ids]
    assert order == sorted(order)


def test_a_stream_is_in_order_in_each_file_and_between_batches(spark: SparkSession, tmp_path: Path) -> None:
    query, events = streamed(spark, tmp_path, lambda stream: stream.where("key <> 3").reorder(LATENCY))
    place = keys(events)
    passed = punctuations(query)
    assert len(passed) == 4
    for batch in range(3):
        parts = files(tmp_path / "out" / "results", batch)
        for ids in parts:
            assert_in_order(ids, place)
        times = [place[id][0] for ids in parts for id in ids]
        assert times
        assert passed[batch] < min(times)
        assert max(times) <= passed[batch + 1]
    counters = counted(query)
    assert unaccounted(counters) == 0
    assert counters["seen"] == 1_600
    assert counters["accepted"] == counters["given"] + counters["held"]
    assert min(counters[name] for name in ("filtered", "late", "given", "held")) > 0
    text = lanes_text(query, spark, tmp_path)
    assert f"{counters['filtered']:,} of 1,600" in text
    assert f"sorted        {counters['accepted']:,} rows; {counters['held']:,} held now" in text


def lanes_text(query: StreamingQuery, spark: SparkSession, tmp_path: Path) -> str:
    stream = spark.readStream.schema(SCHEMA).parquet(str(tmp_path / "in"))
    return declare(stream).where("key <> 3").reorder(LATENCY).explained(query)


def test_total_gives_each_batch_as_one_file_a_window_at_a_time(spark: SparkSession, tmp_path: Path) -> None:
    advance_us = 1_500_000
    query, events = streamed(
        spark,
        tmp_path,
        lambda stream: stream.hopping("3 s", "1500 ms").select("id").reorder(LATENCY, late="drop", total=True),
    )
    place = keys(events)
    passed = punctuations(query)
    given = 0
    for batch in range(3):
        (ids,) = files(tmp_path / "out" / "results", batch)
        assert_in_order(ids, place)
        ends = [place[id][0] // advance_us * advance_us + advance_us - 1 for id in ids]
        assert all(passed[batch] < end <= passed[batch + 1] for end in ends)
        given += len(ids)
    counters = counted(query)
    assert unaccounted(counters) == 0
    assert (counters["given"], counters["late"]) == (given, 0)
    assert counters["dropped"] > 0


@pytest.fixture(scope="module")
def late_rows(spark: SparkSession) -> DataFrame:
    """Two events, and one that comes 7 s late."""
    rows = "(1, 10000000L, 10000000L), (2, 9000000L, 10000000L), (3, 3000000L, 20000000L), (4, 20000000L, 20000000L)"
    return spark.sql(f"SELECT * FROM VALUES {rows} AS t(id, ts, arrival)")


def policy(df: DataFrame, late: str, **more: Any) -> lc.Result:
    return lc.disordered(df, time="ts", arrival="arrival", shards=2).reorder("5 s", late=late, **more)


def test_late_rows_go_aside_or_are_dropped_and_counted(late_rows: DataFrame) -> None:
    side = policy(late_rows, "side", total=True)
    assert [row["id"] for row in side.results.collect()] == [2, 1, 4]
    assert [(row["id"], row["lateness_us"], row["reason"]) for row in side.late.collect()] == [
        (3, 7_000_000, "too_late")
    ]
    counters = policy(late_rows, "drop").write(sinks=DISCARD)
    assert (counters["given"], counters["late"], counters["dropped"], unaccounted(counters)) == (3, 0, 1, 0)


def test_late_rows_are_moved_up_and_say_by_how_much(late_rows: DataFrame) -> None:
    adjusted = policy(late_rows, "adjust", total=True)
    rows = [(row["id"], row["ts"], row["adjusted_us"]) for row in adjusted.changes.collect()]
    assert rows == [(3, 5_000_001, 2_000_001), (2, 9_000_000, 0), (1, 10_000_000, 0), (4, 20_000_000, 0)]
    windows = lc.disordered(late_rows, time="ts", arrival="arrival", shards=2).tumbling("3 s")
    ends = windows.select("id", "window_end").reorder("5 s", late="adjust").results.collect()
    assert sorted((row["id"], row["window_end"] // 1_000_000) for row in ends) == [(1, 12), (2, 12), (3, 6), (4, 21)]
    for chosen in (windows, windows.select("id", "window_start")):  # a moved row lies in the window of its new time
        moved = chosen.reorder("5 s", late="adjust").results.collect()
        assert sorted((row["id"], row["window_start"] // 1_000_000) for row in moved) == [
            (1, 9),
            (2, 9),
            (3, 3),
            (4, 18),
        ]


def test_a_moved_time_is_the_time_however_it_is_selected(late_rows: DataFrame) -> None:
    declared = lc.disordered(late_rows, time="ts", arrival="arrival", shards=2).tumbling("3 s")
    chosen = declared.select(F.col("ts"), "id", F.col("window_start"))
    first = {"window": (3_000_000, 3, 3_000_000, 0), "event": (5_000_001, 3, 3_000_000, 2_000_001)}
    for lateness, row in first.items():  # its window is open still: it need not be moved
        moved = chosen.reorder("5 s", late="adjust", total=True, lateness=lateness).results
        assert tuple(moved.collect()[0]) == row
    for steps in (declared.with_columns(ts="ts"), declared.select("id", F.lit(1).alias("window_start"))):
        with pytest.raises(lc.InputError, match="must be the time itself where rows are moved in time"):
            steps.reorder("5 s", late="adjust")
        steps.reorder("5 s")


def test_late_rows_stop_the_query(late_rows: DataFrame) -> None:
    with pytest.raises(Exception, match="1 too late, the first at 3000000 us"):
        policy(late_rows, "raise").write(sinks=DISCARD)


def test_wall_clocks_and_integers_before_1970_have_windows(spark: SparkSession) -> None:
    df = spark.sql("""
        SELECT id, TIMESTAMP_NTZ'1969-12-31 23:59:59' + id * INTERVAL '0.5' SECOND AS wall, id * 500000 - 1000000 AS us
        FROM VALUES (3L), (1L), (0L), (2L) AS t(id)
    """)
    declared = lc.disordered(df, time="wall", order="id", earliest="1960-01-01", shards=2).tumbling("1 s")
    rows = declared.reorder("1 s", total=True).results.collect()
    found = [(row["id"], str(row["window_start"]), str(row["window_end"])) for row in rows]
    before, after, last = "1969-12-31 23:59:59", "1970-01-01 00:00:00", "1970-01-01 00:00:01"
    assert found == [(0, before, after), (1, before, after), (2, after, last), (3, after, last)]
    declared = lc.disordered(df, time="us", order="id", earliest="1960-01-01", shards=1).hopping("2 s", "1 s")
    chosen = declared.select("window_start", "window_end", "id").reorder("1 s")
    starts = [tuple(row) for row in chosen.results.collect()]
    assert starts == [(-1_000_000, 1_000_000, 0), (-1_000_000, 1_000_000, 1), (0, 2_000_000, 2), (0, 2_000_000, 3)]


def test_rows_of_every_lane_have_the_windows_of_their_time(late_rows: DataFrame) -> None:
    bad = late_rows.union(late_rows.selectExpr("5", "NULL", "20000000L").limit(1))
    declared = lc.disordered(bad, time="ts", arrival="arrival", shards=2).hopping("4 s", "2 s", offset="1 s")
    chosen = declared.where("id < 9").select("window_end", "id", "window_start")  # the time itself is not among them
    result = chosen.reorder("5 s", total=True)
    assert result.results.columns == ["window_end", "id", "window_start"]
    s = 1_000_000
    assert [tuple(row) for row in result.results.collect()] == [
        (13 * s, 2, 9 * s),
        (13 * s, 1, 9 * s),
        (23 * s, 4, 19 * s),
    ]
    assert [tuple(row)[:4] for row in result.late.collect()] == [(7 * s, 3, 3 * s, 7 * s)]
    assert [tuple(row) for row in result.quarantine.collect()] == [(None, 5, None, "null_time")]
    both = declared.select("ts", "window_start").reorder("5 s", total=True)
    assert [tuple(row) for row in both.results.collect()] == [(9 * s, 9 * s), (10 * s, 9 * s), (20 * s, 19 * s)]
    assert both.late.columns == ["ts", "window_start", "lateness_us", "reason"]
