"""Several feeds as one stream on Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import latecomer as lc
from latecomer.spark.counters import total
from latecomer.spark.stream_files import age_by_name
from tests.spark.gate import Gate
from tests.spark.streams import LATENCY_US, SCHEMA, TICK_US, expected, lagging, make_events

LATENCY = f"{LATENCY_US} us"
NAMED: dict[str, Any] = {"time": "ts", "key": "area", "arrival": "received", "shards": 2}
ROWS = "TIMESTAMP_SECONDS(1700000000 + id) AS ts, TIMESTAMP_SECONDS(1700000000 + id) AS received, id % 3 AS area"
NOWHERE: dict[str, Any] = dict.fromkeys(("results", "late", "quarantine"), lc.Discard())


@pytest.fixture(scope="module")
def bus(spark: SparkSession) -> DataFrame:
    return spark.range(10).selectExpr(*ROWS.split(", "), "id AS delay", "id = 9 AS over", "IF(id = 5, 7, 1) AS op")


@pytest.fixture(scope="module")
def scats(spark: SparkSession) -> DataFrame:
    return spark.range(4).selectExpr("id / 2 AS flow", *ROWS.split(", "))


def results(events: lc.Events, **sinks: Any) -> tuple[list[dict[str, Any]], dict[str, int]]:
    found: list[dict[str, Any]] = []
    sink = lambda df, batch: found.extend(row.asDict() for row in df.collect())  # noqa: E731
    counted = events.pass_through().write(sinks={**NOWHERE, "results": sink, **sinks})
    return found, counted


def test_rows_know_their_feed_and_have_null_where_it_lacks_a_column(bus: DataFrame, scats: DataFrame) -> None:
    events = lc.disordered({"bus": bus, "scats": scats}, **NAMED)
    assert events.columns == ["ts", "received", "area", "delay", "over", "op", "flow", "source"]
    rows, _ = results(events.select("source", "delay", "flow"))
    assert sorted((row["source"], row["delay"], row["flow"]) for row in rows) == [
        *(("bus", n, None) for n in range(10)),
        *(("scats", None, n / 2) for n in range(4)),
    ]
    assert "  feeds         bus, scats                              one source each" in events.explained()
    assert "  feeds         bus, scats" in events.reorder("1 s").explained()


def test_a_feed_without_the_columns_of_ends_and_changes_neither_ends_nor_retracts(
    bus: DataFrame, scats: DataFrame
) -> None:
    rows, counted = results(lc.disordered({"bus": bus, "scats": scats}, end="over", change="op", **NAMED))
    assert (counted["control"], counted["quarantined"]) == (1, 1)  # a row of 7 is no change, and none is forged for it
    assert [sum(row["source"] == feed for row in rows) for feed in ("bus", "scats")] == [8, 4]
    with pytest.raises(lc.InputError, match="end= must name a column; got 'gone'"):
        lc.disordered({"bus": bus, "scats": scats}, end="gone", **NAMED)


def test_a_feed_keeps_its_columns_through_the_steps_and_shares_those_computed(bus: DataFrame, scats: DataFrame) -> None:
    events = lc.disordered({"bus": bus, "scats": scats}, **NAMED)
    assert events._declared.feeds == {
        "bus": ("ts", "received", "area", "delay", "over", "op", "source"),
        "scats": ("ts", "received", "area", "flow", "source"),
    }
    chosen = events.where("area > 0").select("ts", "area", "delay", "flow").with_columns(double="delay * 2", DELAY="1")
    assert chosen._declared.feeds == {
        "bus": ("ts", "area", "DELAY", "double"),
        "scats": ("ts", "area", "DELAY", "flow", "double"),
    }
    windows = chosen.select("ts", "area").tumbling("1 hour")
    assert set(windows._declared.feeds.values()) == {("ts", "area", "window_start", "window_end")}
    declared = lc.disordered(bus, source="area", sources=(2, 0), time="ts", shards=1)
    assert declared._declared.feeds == dict.fromkeys(("2", "0"), tuple(bus.columns))
    assert "  sources       2, 0                                    declared" in declared.explained()


def test_feeds_of_several_kinds_or_sessions_are_refused(spark: SparkSession, bus: DataFrame, scats: DataFrame) -> None:
    stream = spark.readStream.format("rate").load().selectExpr("timestamp AS ts", "timestamp AS received", "1L AS area")
    other = spark.newSession().range(1).selectExpr(*ROWS.split(", "))
    for feeds, named, text in (
        ({"bus": bus, "scats": stream}, {}, "all be streams, or all batches; got 'bus: a batch, scats: a stream'"),
        ({"bus": bus, "scats": other}, {}, "of one session of Spark; got \"another one in feed 'scats' than in 'bus'"),
        ({"bus": bus}, {"source": "area"}, "source= must be left out where feeds have names; got 'area'"),
        ({"bus": bus}, {"sources": ("bus",)}, "sources= must be left out where feeds have names"),
        ([bus, scats], {}, "disordered must be given a DataFrame; got 'list'; .* or a dict of feeds"),
    ):
        with pytest.raises(lc.InputError, match=text):
            lc.disordered(feeds, **NAMED, **named)  # type: ignore[arg-type]
    same = SparkSession.active().range(1).selectExpr(*ROWS.split(", "))  # another object, the same session
    assert lc.disordered({"bus": bus, "scats": same}, **NAMED)._declared.roles.source == "source"


def test_a_declared_source_that_never_speaks_holds_the_mark_until_it_idles(spark: SparkSession) -> None:
    """Each second a row of the feed, each fifth of which is 30 seconds old."""
    ts = "TIMESTAMP_SECONDS(1700000000 + id - IF(id % 5 = 4, 30, 0)) AS ts"
    rows = spark.range(200).selectExpr("id", ts, "TIMESTAMP_SECONDS(1700000000 + id) AS received", "'a' AS feed")

    def reordered(**named: Any) -> tuple[lc.Result, dict[str, int]]:
        events = lc.disordered(rows, time="ts", source="feed", arrival="received", progress="merged", shards=2, **named)
        result = events.reorder("10 seconds")
        return result, result.write(sinks=NOWHERE)

    _, counted = reordered(sources=("a",))
    assert counted["late"] == 40
    sources = lc.read_sources(counted)
    assert sources is not None
    assert (sources.waits_for, sources.unseen, dict(sources)) == (None, (), {})
    result, counted = reordered(sources=("a", "never"))
    assert counted["late"] == 0
    sources = lc.read_sources(counted)
    assert sources is not None
    assert (sources.waits_for, sources.unseen) == (("never", None, 199_000_000), ("never",))
    text = "sources\n  waits for     never, which has not begun, silent for 0:03:19\n  never seen    never"
    assert text in result.explained(counted)
    result, counted = reordered(sources=("a", "never"), idle_after="100 seconds")
    assert counted["late"] == 20
    assert "  waits for     no source\n  never seen    never" in result.explained(counted)


def in_two_folders(events: pa.Table, folder: Path, parts: int) -> None:
    """The events of each source in a folder of its own, cut at the same ticks; those of `b` lack a column."""
    ticks = events["arrival"].cast(pa.int64()).to_numpy() // TICK_US
    part = (ticks - ticks[0]) * parts // (ticks[-1] - ticks[0] + 1)
    for name in ("a", "b"):
        (folder / name).mkdir()
        for number in range(parts):
            mine = pc.and_(pc.equal(events["source"], name), pa.array(part == number))
            rows = events.filter(mine).drop_columns(["source", *(["value"] if name == "b" else [])])
            pq.write_table(rows, folder / name / f"{number:03d}.parquet")
        age_by_name(folder / name)


def latest_of(events: pa.Table, source: str) -> int:
    times = events.filter(pc.equal(events["source"], source))["ts"].cast(pa.int64())
    return int(pc.max(times).as_py())


def test_two_streams_are_put_in_order_by_the_one_that_lags(spark: SparkSession, tmp_path: Path) -> None:
    events = lagging(make_events(600, seed=3), "b", 60_000_000)
    events = events.filter(pc.is_in(events["source"], pa.array(["a", "b"])))
    given, late = expected(events, merged=True)
    in_two_folders(events, tmp_path, 3)

    def declare(*names: str) -> lc.Events:
        feeds = {}
        for name, folder in zip(names, ("a", "b"), strict=True):
            own = ", ".join(each for each in SCHEMA.split(", ") if each.split()[0] not in ("source", "value"))
            own += ", value double" if folder == "a" else ""
            reader = spark.readStream.schema(own).option("maxFilesPerTrigger", 1)
            feeds[name] = reader.parquet(str(tmp_path / folder))
        return lc.disordered(feeds, time="ts", key="key", arrival="arrival", order="id", progress="merged", shards=2)

    result, checkpoint = declare("a", "b").reorder(LATENCY), tmp_path / "checkpoint"
    query = result.start(tmp_path / "out", checkpoint=checkpoint, available_now=True)
    query.awaitTermination()
    counted = total([found for each in query.recentProgress if (found := lc.read_counters(each)) is not None])
    assert sorted(pq.read_table(tmp_path / "out" / "late")["id"].to_pylist()) == late
    rows = pq.read_table(tmp_path / "out" / "results")
    assert sorted(rows["id"].to_pylist()) == sorted(given[: counted["given"]])
    assert counted["held"] == len(given) - counted["given"] > 0
    sources = lc.read_sources(query)
    assert sources is not None
    assert sources.waits_for is not None
    assert sources.waits_for[:2] == ("b", latest_of(events, "a") - latest_of(events, "b"))
    assert "  waits for     b, 0:0" in result.explained(query)
    lacks = rows["value"].is_null().to_numpy()
    assert np.array_equal(lacks, pc.equal(rows["source"], "b").to_numpy())
    with pytest.raises(
        lc.StateError, match=r'settings of its checkpoint \(sources: \["a", "b"\]\); got \'\["a", "c"\]'
    ):
        declare("a", "c").reorder(LATENCY).start(tmp_path / "out", checkpoint=checkpoint, available_now=True)


def test_a_third_feed_joins_at_the_second_stage(spark: SparkSession) -> None:
    """Each second a row of each feed; `c` is 3 seconds ahead, and `b` stops after 5 of 10."""
    rows = spark.range(10).selectExpr("id", "TIMESTAMP_SECONDS(1700000000 + id) AS ts")
    times = rows.withColumn("received", rows.ts).withColumn("key", rows.id % 2)
    feeds = {
        "a": times,
        "b": times.where("id < 5"),
        "c": times.selectExpr("id + 100 AS id", "ts + INTERVAL 3 SECONDS AS ts", "received", "key", "id AS heat"),
    }
    events = lc.disordered(feeds, time="ts", key="key", arrival="received", tick="1 second", shards=2)
    first = events.apply(Gate("ab", ("c",)))
    with pytest.raises(lc.InputError, match="stage gate must take all sources where it is the last; got 'c'"):
        first.write(sinks=NOWHERE)
    result = first.by("id").apply(Gate("all", keep=("ts", "key", "id", "heat")))
    found: list[Any] = []
    counted = result.write(sinks={**NOWHERE, "results": lambda df, batch: found.extend(df.collect())})
    ticks = {row["id"]: (row["given_ab"], row["given_all"]) for row in found}
    at = 1_700_000_000
    assert {n: ticks[n] for n in range(5)} == {n: (at + n, at + n) for n in range(5)}
    assert {n: ticks[n] for n in range(5, 10)} == dict.fromkeys(range(5, 10), (-1, -1))
    assert {n: ticks[n] for n in (100, 101, 102)} == {100: (None, at + 3), 101: (None, at + 4), 102: (None, -1)}
    assert {row["id"]: row["heat"] for row in found if row["id"] >= 100} == {100 + n: n for n in range(10)}
    assert (counted["gate.given"], counted["gate_2.seen"]) == (25, 25)
    text = result.explained(counted)
    assert "  waits for     b, 5 s behind the furthest, silent for 5 s" in text
    assert "  waits for     ab, 8 s behind the furthest" in text
    assert "  sources       ab, c                                   results and passed on" in text
