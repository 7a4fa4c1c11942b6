"""Order-insensitive steps before the sort: windows, refusals, and what `explain` tells."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import latecomer as lc
from latecomer.codec import rows_to_bytes
from latecomer.events import Layout, Stretches
from latecomer.spark import unpack
from latecomer.spark.align import window_end, window_start
from latecomer.spark.unpack import UNPACK_COLUMNS, UnpackPlan, unpacker

SCHEMA = "ts timestamp, meter int, kwh double, note string"
TIMES_US = [0, 1, -1, -3_600_000_000, 1_615_689_000_123_456, -62_000_000_000_000_001, 7_258_118_399_999_999]
STEPS = [
    Stretches(1),
    Stretches(7, 3),
    Stretches(999_999),
    Stretches(3_600_000_000, 900_000_000),
    Stretches(604_800_000_000, 345_600_000_000),
]


@pytest.fixture(scope="module")
def df(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame([], SCHEMA)


@pytest.fixture(scope="module")
def events(df: DataFrame) -> lc.Events:
    return lc.disordered(df, time="ts", key="meter", shards=2)


@pytest.fixture
def new_york(spark: SparkSession) -> Iterator[None]:
    zone = "spark.sql.session.timeZone"
    kept = spark.conf.get(zone)
    spark.conf.set(zone, "America/New_York")
    yield
    spark.conf.set(zone, str(kept))


@pytest.mark.usefixtures("new_york")
def test_a_window_starts_at_the_floor_in_any_time_zone(spark: SparkSession) -> None:
    times = spark.sql(f"SELECT explode(array({', '.join(f'{us}L' for us in TIMES_US)})) AS us")
    wall = "TIMESTAMP_NTZ'1970-01-01' + us * INTERVAL '0.000001' SECOND"
    kinds = {"bigint": "us", "timestamp": "timestamp_micros(us)", "timestamp_ntz": wall}
    for kind, expression in kinds.items():
        starts = {f"{kind} {number}": window_start(kind, steps) for number, steps in enumerate(STEPS)}
        times = times.withColumn("_lc_ts", F.expr(expression)).withColumns(starts)
        assert {times.schema[name].dataType.simpleString() for name in starts} == {kind}
    exact = {name: F.unix_micros(name) for name in times.columns if name.startswith("timestamp ")}
    for row in times.drop("_lc_ts").withColumns(exact).collect():
        for name in row.asDict():
            length_us, offset_us = STEPS[int(name.split()[-1])] if " " in name else Stretches(1)
            assert _us(row[name]) == (row["us"] - offset_us) // length_us * length_us + offset_us, name


def _us(time: int | datetime) -> int:
    return time if isinstance(time, int) else (time - datetime(1970, 1, 1)) // timedelta(microseconds=1)


@pytest.mark.usefixtures("new_york")
def test_a_window_ends_a_size_after_its_start_in_any_time_zone(spark: SparkSession) -> None:
    times = spark.sql("SELECT explode(array(-62000000000000001L, -1L, 1615689000123456L)) AS us")
    wall = "TIMESTAMP_NTZ'1970-01-01' + us * INTERVAL '0.000001' SECOND"
    for kind, start in {"bigint": "us", "timestamp": "timestamp_micros(us)", "timestamp_ntz": wall}.items():
        found = times.withColumn("window_start", F.expr(start)).withColumn("end", window_end(kind, 3_600_000_001))
        assert found.schema["end"].dataType.simpleString() == kind
        if kind == "timestamp":
            found = found.withColumn("end", F.unix_micros("end"))
        assert [_us(row["end"]) - row["us"] for row in found.collect()] == [3_600_000_001] * 3


def test_a_window_start_beyond_the_type_is_null(spark: SparkSession) -> None:
    found = spark.sql("SELECT CAST(-9223372036854775808 AS BIGINT) AS _lc_ts UNION ALL SELECT NULL")
    assert [row[0] for row in found.select(window_start("bigint", Stretches(7))).collect()] == [None, None]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda events: events.hopping("1 hour", "2 hours"), "advance must be at most the size (1 hour)"),
        (lambda events: events.tumbling("0 s"), "size must be longer than zero; got '0 s'"),
        (lambda events: events.hopping("1 hour", 5), "advance must be a duration with a unit; got 5"),
        (lambda events: events.tumbling("1 hour").tumbling("1 hour"), "tumbling must be the only window"),
        (lambda events: events.tumbling("1 h").select("ts").hopping("1 h", "1 h"), "hopping must be the only window"),
        (
            lambda events: events.with_columns(Window_Start="1").tumbling("1 hour"),
            "columns before tumbling must not be named window_start or window_end; got 'Window_Start'",
        ),
        (lambda events: events.with_columns(window_end="1").hopping("1 h", "1 s"), "named window_start or window_end"),
        (lambda events: events.reorder("10"), "latency must be a duration with a unit; got '10'"),
        (lambda events: events.reorder("10 s", late="keep"), "late must be"),
        (lambda events: events.apply("10 s"), "apply must be given a strategy's Settings"),
        (lambda events: events.with_columns(Adjusted_us="1").reorder("1 s", late="adjust"), "not be named adjusted_us"),
    ],
)
def test_wrong_windows_and_latencies_are_named(events: lc.Events, call: Any, message: str) -> None:
    with pytest.raises(lc.InputError) as error:
        call(events)
    assert message in str(error.value)


@pytest.mark.parametrize("name", ["count", "orderBy", "limit", "pattern"])
def test_what_needs_order_is_refused_with_the_strategies(events: lc.Events, name: str) -> None:
    assert not hasattr(events, name)
    with pytest.raises(lc.OrderSensitiveError) as error:
        getattr(events.where("kwh > 0").tumbling("1 hour"), name)
    assert str(error.value).startswith(
        f"{name} must be given events in order; got 'a disordered stream'; call .reorder"
    )
    assert "pass_through()" in str(error.value)
    assert isinstance(error.value, lc.InputError)


@pytest.mark.parametrize("name", ["groupBy", "agg"])
def test_grouping_is_refused_with_the_way_to_do_it(events: lc.Events, name: str) -> None:
    with pytest.raises(lc.OrderSensitiveError) as error:
        getattr(events, name)
    assert str(error.value) == (
        f"{name} must be asked of windows, by key; got 'a disordered stream'; name the columns in disordered(key=...) "
        "and call .tumbling(size).aggregate(...).optimistic(...) or .tumbling(size).aggregate(...).tiers(...); "
        "or .reorder(latency=...) first, then .results.groupBy(...)"
    )
    with pytest.raises(lc.OrderSensitiveError, match=r"name the columns in \.by\(\.\.\.\) and call \.tumbling"):
        getattr(events.pass_through().by("meter"), name)


def test_steps_go_by_sparks_names_too(events: lc.Events) -> None:
    ours = events.where("kwh > 0").with_columns(half="kwh / 2", one="1").reorder("1 s").explained()
    theirs = events.filter("kwh > 0").withColumns({"half": "kwh / 2", "one": F.lit(1)}).reorder("1 s").explained()
    assert theirs.replace("one = 1", "") == ours.replace("one = 1", "")
    assert events.withColumn("half", F.col("kwh") / 2).columns == [*events.columns, "half"]


def test_a_latency_below_the_tick_is_warned_of_when_it_is_planned(df: DataFrame) -> None:
    came = df.withColumn("came", F.col("ts"))
    events = lc.disordered(came, time="ts", arrival="came", shards=1)
    with pytest.warns(
        lc.LatecomerWarning, match=r"reorder waits 1000 us, less than a tick of 100000 us.*tick='1000 us'"
    ):
        events.reorder("1 ms")
    with pytest.warns(lc.LatecomerWarning, match="tiers waits 99000 us"):
        events.tumbling("1 s").aggregate(lc.count()).tiers("99 ms", "1 s")
    with pytest.warns(lc.LatecomerWarning, match="ordered waits 1 us") as caught:
        events.tiers("1 us", "1 s")
    ours = [warning for warning in caught if issubclass(warning.category, lc.LatecomerWarning)]
    assert [warning.filename for warning in ours] == [__file__]
    events.reorder("100 ms")
    lc.disordered(came, time="ts", arrival="came", tick="1 ms", shards=1).reorder("1 ms")
    lc.disordered(came, time="ts", shards=1).reorder("1 ms")


def test_other_names_are_plain_attribute_errors(events: lc.Events) -> None:
    name = "repartition"
    with pytest.raises(AttributeError, match="repartition must be called on a DataFrame; a disordered stream has "):
        assert getattr(events, name)
    with pytest.raises(AttributeError, match="'Events' object has no attribute 'repartitio'"):
        assert getattr(events, name[:-1])


def test_a_result_and_a_question_say_what_to_call(events: lc.Events) -> None:
    said = {
        "show must be called on a DataFrame; got 'a result.*; call .results.show": (events.reorder("1 s"), "show"),
        "'Result' object has no attribute 'shwo'": (events.reorder("1 s"), "shwo"),
        r"which has no strategy yet'; call \.aggregate\(\.\.\.\)\.optimistic\(.* or .*\.tiers\(\.\.\.\) first": (
            events.tumbling("1 s").aggregate(lc.count()),
            "start",
        ),
        r"start must be .* call \.app\(\.\.\.\)\.tiers\(\.\.\.\) or \.app\(\.\.\.\)\.timetravel\(": (
            events.app(lc.Pattern("meter", 1, 2, "1 s")),
            "start",
        ),
    }
    for message, (asked, name) in said.items():
        with pytest.raises(AttributeError, match=message):
            getattr(asked, name)


def test_windows_of_any_number_of_slices_can_be_sorted(events: lc.Events) -> None:
    events.hopping("1 day", "1 us").reorder("1 s")
    events.hopping("1 day", "1 us").tiers("1 s")
    with pytest.raises(lc.InputError, match="windows must have at most 10,000 slices"):
        events.hopping("1 day", "1 us").aggregate(lc.count()).timetravel("10 days", every="1 hour")


def test_explain_of_a_stream_says_what_may_have_changed(spark: SparkSession, tmp_path: Path) -> None:
    stream = spark.readStream.schema(SCHEMA).parquet(str(tmp_path))
    told = lc.disordered(stream, time="ts", shards=1).reorder("1 s").explained()
    assert "control       latency and late may have changed since the start:" in told
    assert "lc.control(checkpoint).values()" in told


def steps(events: lc.Events) -> lc.Events:
    return events.where(F.col("kwh") >= 0).select("ts", "meter", "kwh").tumbling("1 hour")


def test_events_explain_that_nothing_is_sorted_yet(events: lc.Events, capsys: pytest.CaptureFixture[str]) -> None:
    steps(events).explain()
    assert (
        capsys.readouterr().out
        == """\
read
  ts, meter, kwh, note                                  4 columns
steps so far
  where         (kwh >= 0)
  select        ts, meter, kwh                          3 of 4 columns
  tumbling      1 hour                                  adds window_start,
                                                        window_end
no sort yet: nothing is sorted before you choose a strategy
  .reorder(latency=...)            wait, then give rows in event-time order
  .slack(...)                      wait for sources that lag, as long as slack allows
  .aggregate(...).optimistic(...)  give windows at once, take back what was wrong
  .aggregate(...).tiers(...)       answer windowed questions early, and better later
  .app(...).tiers(...)             run operators on rows in order, per latency
  .app(...).timetravel(...)        give results at once, and repair them later
  .pass_through()                  give rows as they come
  .scan(...).optimistic(...)       give results at once, take back what was wrong
"""
    )


def test_a_result_explains_where_the_sort_stands(events: lc.Events, capsys: pytest.CaptureFixture[str]) -> None:
    result = steps(events).reorder("10 minutes")
    result.explain()
    assert (
        capsys.readouterr().out
        == """\
read
  ts, meter, kwh, note                                  4 columns
before the sort
  where         (kwh >= 0)
  select        ts, meter, kwh                          3 of 4 columns
  tumbling      1 hour                                  adds window_start,
                                                        window_end
the sort
  reorder       latency 10 minutes, late rows aside     by window_start, then ts
after the sort
  results, late, quarantine
saved
  rows          those that fail a where are neither sorted nor held
  columns       note stays behind: at least 4 bytes a row
"""
    )


def test_counters_say_what_was_saved(events: lc.Events) -> None:
    doors = {"seen": 2_000, "filtered": 500, "accepted": 1_400, "late": 60, "quarantined": 40, "given": 1_000}
    text = steps(events).reorder("10 minutes").explained({**doors, "held": 400, "runs": 3})
    assert "rows          500 of 2,000 (25.0 %) filtered before the sort" in text
    assert "at least 4 bytes a row, 5.6 kB in all" in text
    assert "sorted        1,400 rows; 400 held now in 3 sorted runs" in text
    assert "results: 1,000   late: 60   quarantine: 40" in text
    wrong: Any = "lots"
    with pytest.raises(lc.InputError, match="explain must be given counters; got 'str'"):
        steps(events).reorder("10 minutes").explained(wrong)


def test_explain_stays_within_80_columns_and_names_what_moves(events: lc.Events) -> None:
    long = "kwh > 0 AND note NOT LIKE '%meters in the cellar that nobody has read since they were installed%'"
    result = events.where(long).with_columns(half="kwh / 2").select("meter", "half")
    text = result.hopping("2 hours", "30 minutes").reorder("1 s", late="adjust", total=True, max_held=10).explained()
    assert max(len(line) for line in text.splitlines()) <= 80
    assert "with_columns  half = kwh / 2" in text
    assert "columns       kwh, note stay behind: at least 12 bytes a row" in text  # the time moves unseen
    assert "half must move too: 8 bytes a row more" in text  # windows do not: they are computed after the sort
    assert "total         each micro-batch becomes one partition in total order" in text
    plain = events.reorder("1 s").explained()
    assert "order by ts" in plain
    assert "  nothing       where, select or tumbling before the sort make it cheaper" in plain
    assert "no sort\n  pass_through  give rows as they come" in events.pass_through().explained()


def packed(rows: dict[str, list[Any]]) -> pa.RecordBatch:
    """One blob as it reaches unpack, with a nested column beside the others."""
    batch = pa.RecordBatch.from_pydict(rows)
    nested = pa.array(
        [None, *({"a": id} for id in rows["id"][1:])], pa.struct([pa.field("a", pa.int64(), nullable=False)])
    )
    blob = rows_to_bytes(batch.append_column("nested", nested))
    return pa.RecordBatch.from_pydict(dict(zip(UNPACK_COLUMNS, ([0], [blob]), strict=True)))


def test_shards_merge_into_one_order_piece_by_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpack, "MERGED_ROWS", 2)
    one = packed({"id": [1, 2, 3], "text": ["b", "é", None], "_lc_ts": [3, 5, 21], "_lc_tick": [0, 1, 1]})
    two = packed({"id": [4, 5], "text": ["a", "z"], "_lc_ts": [2, 12], "_lc_tick": [1, 0]})
    nested = pa.struct([pa.field("a", pa.int64(), nullable=False)])
    schema = pa.schema([("text", pa.string()), ("id", pa.int64()), ("nested", nested)])
    plan = UnpackPlan(schema, merged=Layout("_lc_ts"))
    pieces = list(unpacker(plan)(iter([one, two])))
    assert [piece.num_rows for piece in pieces] == [2, 2, 1]
    merged = pa.Table.from_batches(pieces)
    assert merged.schema.names == ["text", "id", "nested"]
    assert merged.schema.field("text").type == pa.string()
    assert merged["id"].to_pylist() == [4, 1, 2, 5, 3]
    assert list(unpacker(plan)(iter([]))) == []
