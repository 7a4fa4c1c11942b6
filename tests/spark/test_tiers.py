"""Windows and tiers on Spark: the answers of Spark's own windows, one query for all tiers, a restart."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import latecomer as lc


def _clicks(spark: SparkSession, count: int = 400) -> DataFrame:
    """Clicks on ads, some of them late; two minutes from the first to the last."""
    return spark.range(count).selectExpr(
        "timestamp_micros(1767225600000000 + id * 300000 - if(id % 7 = 3, (id % 5) * 9000000, 0)) AS ts",
        "concat('ad', id % 3) AS ad",
        "CAST(if(id % 11 = 0, NULL, id % 13) AS INT) AS price",
        "CAST(id % 4 AS DOUBLE) AS weight",
        "id",
        "timestamp_micros(1767225600000000 + id * 300000) AS received",
    )


def _rows(df: DataFrame) -> list[tuple[object, ...]]:
    return sorted((tuple(row) for row in df.collect()), key=str)


def _asked(df: DataFrame) -> lc.Events:
    return lc.disordered(df, time="ts", key="ad", arrival="received", shards=2)


@pytest.mark.parametrize("kind", ["tumbling", "hopping", "session"])
def test_windows_are_spark_s_own(spark: SparkSession, kind: str) -> None:
    df = _clicks(spark).withColumn("money", F.expr("CAST(id * 1.37 - 90 AS DECIMAL(10, 2))"))
    events = _asked(df)
    windows, sparks = {
        "tumbling": (events.tumbling("10 seconds"), F.window("ts", "10 seconds")),
        "hopping": (events.hopping("30 seconds", "10 seconds"), F.window("ts", "30 seconds", "10 seconds")),
        "session": (events.session("900 ms"), F.session_window("ts", "900 milliseconds")),  # as far as they are apart
    }[kind]
    aggregates = (lc.count(), lc.count("price"), lc.sum("price"), lc.min("price"), lc.max("weight"), lc.mean("price"))
    more = (lc.variance("price"), lc.stddev("price"), lc.count_distinct("price"), lc.quantile("price", 0.25))
    mine = windows.aggregate(lc.sum("money"), lc.mean("money"), *aggregates, *more).tiers("1 hour")
    theirs = df.groupBy(sparks.alias("window"), "ad").agg(
        *(F.sum("money"), F.mean("money")),
        *(F.count("*"), F.count("price"), F.sum("price"), F.min("price"), F.max("weight"), F.mean("price")),
        *(F.variance("price"), F.stddev("price"), F.count_distinct("price"), F.percentile("price", 0.25)),
    )
    expected = _rows(theirs.select("window.start", "window.end", *[f"`{name}`" for name in theirs.columns[1:]]))
    found = _rows(mine.tier(1).drop("pane", "final"))
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert one[:10] == other[:10]
        assert list(one[10:]) == pytest.approx(list(other[10:]), nan_ok=True)
    decimals = [field.dataType for field in theirs.schema][2:4]
    assert [field.dataType for field in mine.tier(1).schema][3:5] == decimals


def test_types_and_names_of_results(spark: SparkSession) -> None:
    result = (
        _asked(_clicks(spark))
        .tumbling("1 minute")
        .aggregate(
            lc.count(),
            lc.sum("price"),
            lc.first("received"),
            lc.last("ad"),
            lc.top_k("ad", 2),
            lc.max("id").alias("newest"),
        )
    )
    results = result.tiers("1 second", "1 minute").results
    assert {field.name: field.dataType.simpleString() for field in results.schema} == {
        "window_start": "timestamp",
        "window_end": "timestamp",
        "ad": "string",
        "count": "bigint",
        "sum_price": "bigint",
        "first_received": "timestamp",
        "last_ad": "string",
        "top_k_ad": "array<struct<value:string,count:bigint>>",
        "newest": "bigint",
        "tier": "int",
        "pane": "string",
        "final": "boolean",
    }


def test_tiers_get_better_and_the_last_is_complete(spark: SparkSession) -> None:
    df = _clicks(spark)
    result = _asked(df).tumbling("10 seconds").aggregate(lc.count()).tiers("1 second", "20 seconds", "1 hour")
    results = result.results.collect()
    counts = [sum(row["count"] for row in results if row["tier"] == number) for number in (1, 2, 3)]
    assert counts[0] < counts[1] < counts[2] == 400
    second = [tuple(row)[:4] for row in results if row["tier"] == 2]
    assert [row[:4] for row in _rows(result.tier(2))] == sorted(second, key=str)
    last = sorted((tuple(row)[:4] for row in results if row["tier"] == 3), key=str)
    assert {(row["tier"], row["pane"], row["final"]) for row in results if row["tier"] != 2} == {
        (1, "early", False),
        *((3, pane, True) for pane in ("revised", "on_time")),
    }
    changes = result.changes.collect()
    standing: Counter[tuple[object, ...]] = Counter()
    for row in changes:
        standing[tuple(row)[:4]] += row["change"]
    assert sorted((row for row, times in standing.items() if times), key=str) == last
    assert {row["pane"] for row in changes} == {"early", "revised"}
    truth = df.groupBy(F.window("ts", "10 seconds"), "ad").count()
    assert last == _rows(truth.select("window.start", "window.end", "ad", "count"))


def test_one_query_serves_all_tiers_and_a_restart_changes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    df = _clicks(spark, 300)
    pieces = tmp_path / "in"
    for number, low in enumerate(range(0, 300, 100)):
        piece = df.where(f"id >= {low} AND id < {low + 100}").coalesce(1)
        piece.write.mode("append").parquet(str(pieces / f"part={number}"))

    def ask() -> lc.Result:
        stream = spark.readStream.schema(df.schema).option("maxFilesPerTrigger", 1).parquet(str(pieces / "part=*"))
        return _asked(stream).hopping("20 seconds", "10 seconds").aggregate(lc.count()).tiers("1 second", "1 minute")

    sinks = {
        "tier_1": str(tmp_path / "early"),
        "tier_2": str(tmp_path / "late answers"),
        "changes": str(tmp_path / "log"),
    }
    for _ in range(2):  # the second run finds nothing new, and must change nothing
        query = ask().start(tmp_path / "out", checkpoint=tmp_path / "c", sinks=sinks, available_now=True)
        query.awaitTermination()
    read = spark.read.parquet
    early, last = read(sinks["tier_1"]).drop("batch"), read(sinks["tier_2"]).drop("batch")
    results = read(str(tmp_path / "out" / "results"))
    assert _rows(early) == _rows(results.where("tier = 1").drop("tier", "batch"))
    last = last.drop("pane", "final")
    closed = [row["window_start"] for row in last.collect()]
    log = read(sinks["changes"]).where(F.col("window_start").isin(closed))
    assert _rows(lc.consolidate(log)) == _rows(last)
    twice = lc.consolidate(log.unionByName(log))
    assert _rows(twice) == sorted(2 * _rows(last), key=str)
    with pytest.raises(lc.InputError, match="find a column change"):
        lc.consolidate(last)
    truth = df.groupBy(F.window("ts", "20 seconds", "10 seconds"), "ad").count()
    complete = _rows(truth.select("window.start", "window.end", "ad", "count").where(F.col("start").isin(closed)))
    assert _rows(last) == complete


def test_the_paper_s_two_examples(spark: SparkSession) -> None:
    clicks = _clicks(spark)
    per_ad = lc.disordered(clicks.select("ts", "ad", "received"), time="ts", key="ad", arrival="received", shards=2)
    counts = per_ad.tumbling("1 minute").aggregate(lc.count()).tiers("5 seconds", "1 hour")
    assert sum(row["count"] for row in counts.tier(2).collect()) == 400
    users = clicks.selectExpr("ts", "id % 5 AS user", "ad", "received")
    asked = lc.disordered(users, time="ts", key="user", arrival="received", shards=2)
    pattern = lc.Pattern("ad", "ad0", "ad1", "1 minute")
    basic = _rows(asked.app(pattern).tiers("5 seconds", "1 hour").results)
    columns = pa.schema([("ts", pa.timestamp("us", "UTC")), ("user", pa.int64()), ("ad", pa.string())])
    own = asked.app(pattern).tiers("5 seconds", "1 hour", partial=_needed, merge=_same, returns=columns)
    assert {row[3] for row in basic} == {1, 2}
    assert [row[:3] for row in basic if row[3] == 1] != [row[:3] for row in basic if row[3] == 2]
    assert _rows(own.results) == basic


def _needed(rows: pa.RecordBatch) -> pa.RecordBatch:
    """The clicks that a pattern may need."""
    return rows.filter(pc.is_in(rows.column("ad"), value_set=pa.array(["ad0", "ad1"], rows.column("ad").type)))


def _same(rows: pa.RecordBatch) -> pa.RecordBatch:
    return rows


def test_events_in_order_per_tier(spark: SparkSession) -> None:
    results = _asked(_clicks(spark)).tiers("1 second", "1 hour").results
    tiers = Counter((row["tier"], row["pane"]) for row in results.collect())
    assert set(tiers) == {(1, "early"), (2, "on_time"), (2, "revised")}
    assert tiers[1, "early"] == tiers[2, "on_time"]
    assert tiers[2, "on_time"] + tiers[2, "revised"] == 400
    assert set(results.columns) == {"ts", "ad", "price", "weight", "id", "received", "tier", "pane", "final"}


def test_a_question_without_a_key_is_asked_of_all_rows(spark: SparkSession) -> None:
    events = lc.disordered(_clicks(spark), time="ts", arrival="received", shards=2)
    rows = events.tumbling("1 day").aggregate(lc.count(), lc.quantile("id")).tiers("1 hour").tier(1).collect()
    assert [(row["count"], row["quantile_id"]) for row in rows] == [(8, 45.0), (392, 203.5)]
    assert all(row["window_end"] - row["window_start"] == dt.timedelta(days=1) for row in rows)


@pytest.mark.parametrize(
    ("ask", "text"),
    [
        (lambda events: events.aggregate(lc.count()), "be asked of windows"),
        (lambda events: events.tumbling("1 s").aggregate().tiers("1 s"), "at least one aggregate"),
        (lambda events: events.tumbling("1 s").aggregate(lc.sum("ad")).tiers("1 s"), "a number type"),
        (
            lambda events: events.tumbling("1 s").aggregate(lc.sum("cost")).tiers("1 s"),
            "ts, ad.*check the name",
        ),
        (lambda events: events.tumbling("1 s").aggregate(lc.count()).tiers(), "at least one latency"),
        (lambda events: events.tumbling("1 s").aggregate(lc.count()).tiers("2 s", "1 s"), "increase"),
        (lambda events: events.tumbling("1 s").aggregate(lc.count()).tiers("1 s").tier(2), "be from 1 to 1"),
        (lambda events: events.select("ts").tumbling("1 s").aggregate(lc.count()).tiers("1 s"), "still be there"),
        (lambda events: events.tumbling("1 s").aggregate(lc.count().alias("ad")).tiers("1 s"), "different names"),
        (lambda events: events.app("pattern"), r"be given an operator.*lc.Chain"),
        (lambda events: events.with_columns(**{"a.b": "1"}).tiers("1 s"), "no dot or backtick"),
        (lambda events: events.tumbling("1 s").aggregate("count").tiers("1 s"), "be given aggregates"),
        (lambda events: events.tumbling("1 s").aggregate(lc.max()).tiers("1 s"), "the name of a column"),
        (lambda events: events.tumbling("1 s").aggregate(lc.count().alias("tier")).tiers("1 s"), "not be named"),
        (lambda events: events.tumbling("0.4 us"), "size must be whole microseconds"),
        (lambda events: events.hopping("1 day", "1 us").aggregate(lc.count()).tiers("1 s"), "at most 10,000 slices"),
        (lambda events: events.session("1 s").pass_through(), r"be asked with aggregates; got '.pass_through\(...\)'"),
        (lambda events: events.session("1 s").tiers("1 s"), r"be asked with aggregates; got '.tiers\(...\)'"),
        (
            lambda events: events.session("1 s").app(lc.Pattern("id", 1, 2, "1 s")).tiers("1 s"),
            r"be asked with aggregates; got '.app\(...\).tiers\(...\)'",
        ),
        (lambda events: events.tumbling("1 s").session("1 s"), "be the only window.*leave one of them out"),
        (lambda events: events.tumbling("1 s").tumbling("1 s"), "be the only window.*group by it after"),
        (lambda events: events.hopping("1 s"), "be given an advance"),
        (
            lambda events: events.select("ad", "id").app(lc.Pattern("id", 1, 2, "1 s")).tiers("1 s"),
            "be among the columns",
        ),
        (lambda events: events.app(lc.Pattern("id", 1.5, 2, "1 s")).tiers("1 s"), "be of type int64"),
        (lambda events: events.app(lc.Pattern("ad", None, "ad1", "1 s")).tiers("1 s"), "be of type string"),
        (lambda events: events.tiers("1 s", partial=_same, merge=_same, returns="ad string"), "an Arrow schema"),
        (lambda events: events.pass_through().tier(1), "a result of .tiers"),
    ],
)
def test_what_cannot_be_asked_is_refused_before_it_starts(
    spark: SparkSession, ask: Callable[[lc.Events], object], text: str
) -> None:
    events = _asked(_clicks(spark))
    with pytest.raises(lc.InputError, match=text):
        ask(events)


def test_explain_tells_what_is_held(spark: SparkSession) -> None:
    events = _asked(_clicks(spark))
    told = events.tumbling("1 minute").aggregate(lc.count()).tiers("1 second", "1 hour").explained()
    assert "tiers         1 second, 1 hour" in told
    assert "holds partial results" in told
    told = events.app(lc.Pattern("ad", "ad0", "ad1", "1 minute")).tiers("5 minutes").explained()
    assert "holds events" in told
    assert "Pattern" in told
    assert max(len(line) for line in told.splitlines()) <= 80
