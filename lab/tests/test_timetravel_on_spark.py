"""Time travel on Spark: the alerts of smart meters, repaired when late readings come, over a restart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import latecomer as lc
from latecomer.events import int64_view
from latecomer.spark.stream_files import age_by_name
from latecomer.tiers import Ordered
from latecomer.timetravel import Period, TimeTravel
from latecomer_lab.timetravel.application import HOUR_US, application
from latecomer_lab.timetravel.machines import COLUMNS, batch_of, follow, in_order
from latecomer_lab.timetravel.paths import SCHEMA, waiting

BOUND, DAY_US = "2 days", 24 * HOUR_US
SESSION: Any = lc.SessionWindow("1 hour")  # where no session is expected

Alert = tuple[int, int, bool, bool, int]  # window_start, meter, too_large, negative, pattern


def _readings() -> pa.Table:
    """Seven days of readings, the last two without late ones; one comes twice, and one long after its time."""
    readings = lc.preset("meters", meters=30, days=7, seed=6, faults=5.0, late=0.05, missing=0.0).table()
    ts_us, arrival_us = (int64_view(readings[name].combine_chunks()) for name in ("ts", "arrival"))
    late, first_us = arrival_us - ts_us > HOUR_US // 60, int(arrival_us[0])
    on_time = np.flatnonzero(~late & (arrival_us < first_us + HOUR_US))
    twice = _arriving(readings.slice(int(on_time[0]), 1), first_us + DAY_US)
    ancient = _arriving(readings.slice(int(on_time[1]), 1), first_us + 4 * DAY_US)
    kept = readings.filter(pa.array(~late | (arrival_us < first_us + 5 * DAY_US)))
    return pa.concat_tables([kept, twice, ancient]).sort_by("arrival").combine_chunks()


def _arriving(readings: pa.Table, at_us: int) -> pa.Table:
    place = readings.schema.get_field_index("arrival")
    field = readings.schema.field(place)
    return readings.set_column(place, field, pa.array([at_us]).view(field.type))


def _batches(readings: pa.Table) -> list[pa.Table]:
    """Two days at a time."""
    number = int64_view(readings["arrival"].combine_chunks()) // (2 * DAY_US)
    bounds = [0, *(np.flatnonzero(np.diff(number)) + 1).tolist(), len(readings)]
    return [readings.slice(start, stop - start) for start, stop in pairwise(bounds)]


def _ask(df: DataFrame) -> lc.App:
    events = lc.disordered(df, time="ts", key="meter", arrival="arrival", shards=2)
    return events.select(*COLUMNS).app(application())


def _frame(spark: SparkSession, readings: pa.Table, folder: Path) -> DataFrame:
    pq.write_table(readings, folder / "readings.parquet")
    return spark.read.schema(SCHEMA).parquet(str(folder / "readings.parquet"))


def _changes(rows: DataFrame) -> Counter[tuple[Alert, int]]:
    """Alerts with their changes, each with how often it is there."""
    names = ["unix_micros(window_start)", "meter", "too_large", "negative", "pattern", "change"]
    collected = [tuple(row) for row in rows.selectExpr(*names).collect()]
    return Counter((row[:5], row[5]) for row in collected)


def _results(results: pa.Table) -> Counter[tuple[Alert, int]]:
    """The same of what a machine gave."""
    starts = int64_view(results["window_start"].combine_chunks()).tolist()
    others = [results[name].to_pylist() for name in ("meter", "too_large", "negative", "pattern")]
    return Counter(zip(zip(starts, *others, strict=True), results["change"].to_pylist(), strict=True))


def _standing(changes: Counter[tuple[Alert, int]]) -> Counter[Alert]:
    """What stands after all changes."""
    summed: Counter[Alert] = Counter()
    for (alert, change), times in changes.items():
        summed[alert] += change * times
    assert min(summed.values(), default=0) >= 0
    return +summed


def _sorted_run(readings: pa.Table, refused: Iterable[tuple[int, int]]) -> Counter[Alert]:
    """The alerts of the readings in order, but for those that were refused."""
    left, kept = Counter(refused), np.ones(len(readings), dtype=np.bool_)
    times, meters = int64_view(readings["ts"].combine_chunks()).tolist(), readings["meter"].to_pylist()
    for place in reversed(range(len(readings))):  # of equal ones, the last came late
        if left[times[place], meters[place]]:
            left[times[place], meters[place]] -= 1
            kept[place] = False
    rest = batch_of(in_order(readings.filter(pa.array(kept))))
    return _standing(_results(follow(Ordered(("1 microsecond",), application()), [rest]).given))


def _refused(late: DataFrame) -> list[tuple[int, int]]:
    return [(row[0], row[1]) for row in late.selectExpr("unix_micros(ts)", "meter").collect()]


def test_alerts_are_repaired_and_a_restart_in_the_middle_changes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    readings, source = _readings(), tmp_path / "in"
    batches = _batches(readings)
    source.mkdir()
    for part in (range(2), range(2, len(batches))):  # the second start goes on from the checkpoint of the first
        for number in part:
            pq.write_table(batches[number], source / f"{number}.parquet")
        age_by_name(source)
        stream = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(source))
        sinks = {"changes": tmp_path / "changes"}
        result = _ask(stream).timetravel(BOUND, every="1 hour")
        query = result.start(tmp_path / "out", checkpoint=tmp_path / "c", sinks=sinks, available_now=True)
        query.awaitTermination()
    results, late = (spark.read.parquet(str(tmp_path / "out" / lane)) for lane in ("results", "late"))
    changes = spark.read.parquet(str(tmp_path / "changes"))

    settings = TimeTravel(application(), BOUND, Period("1 hour"))
    machine = follow(settings, map(batch_of, batches), ending=False)  # in one go
    given = _changes(changes)
    assert given == _results(machine.given)
    assert _changes(results.selectExpr("*", "1 AS change")) == Counter(
        {key: n for key, n in given.items() if key[1] > 0}
    )
    assert {row[0] for row in changes.select("pane").distinct().collect()} == {"on_time", "revised"}

    counters = lc.read_counters(query.lastProgress)
    assert counters is not None
    through_us = counters["mark_us"] - settings.bound_us - 1
    assert lc.final_through(query.lastProgress) == datetime.fromtimestamp(0, UTC) + timedelta(microseconds=through_us)
    passed_us = counters["mark_us"] - settings.reach.us
    expected = _sorted_run(readings, _refused(late))
    assert _standing(given) == Counter({alert: n for alert, n in expected.items() if alert[0] <= passed_us})
    assert Counter(machine.replayed["change"].to_pylist()) == {1: 13, -1: 12}

    assert {row[0] for row in late.select("reason").distinct().collect()} == {"no_hole", "too_late"}
    assert late.where("(reason = 'too_late') = (lateness_us > 2 * 86400000000L)").count() == late.count()
    assert late.where("reason = 'no_hole'").count() == 1


def test_a_batch_is_repaired_to_the_end(spark: SparkSession, tmp_path: Path) -> None:
    readings = _readings()
    result = _ask(_frame(spark, readings, tmp_path)).timetravel(BOUND, every="1 hour", trigger="eager")
    counters = result.write(tmp_path / "out", sinks={"changes": tmp_path / "changes"})
    read = spark.read.parquet
    late, changes = read(str(tmp_path / "out" / "late")), read(str(tmp_path / "changes"))
    assert _standing(_changes(changes)) == _sorted_run(readings, _refused(late))
    assert (counters["seen"], counters["late"]) == (len(readings), late.count())
    assert changes.where("final AND pane = 'on_time'").count() > 0
    columns = {
        "window_start": "timestamp",
        "meter": "int",
        "too_large": "boolean",
        "negative": "boolean",
        "pattern": "bigint",
        "change": "tinyint",
        "pane": "string",
        "final": "boolean",
    }
    assert {field.name: field.dataType.simpleString() for field in result.changes.schema} == columns
    assert result.results.columns == [name for name in columns if name != "change"]
    assert result.late.columns == [*COLUMNS, "lateness_us", "reason"]


def test_without_retraction_nothing_is_void_and_nothing_omitted(spark: SparkSession, tmp_path: Path) -> None:
    readings = _readings()
    result = _ask(_frame(spark, readings, tmp_path)).timetravel(BOUND, every="1 hour", retract=False)
    result.write(tmp_path / "out", sinks={"changes": tmp_path / "changes"})
    late, changes = (spark.read.parquet(str(tmp_path / path)) for path in ("out/late", "changes"))
    assert changes.where("change < 0").count() == 0
    assert changes.where("pane = 'revised'").count() > 0
    given = {alert for alert, _ in _changes(changes)}
    assert given >= set(_sorted_run(readings, _refused(late)))


def test_spark_s_own_windows_give_the_same_alerts_in_the_end(spark: SparkSession, tmp_path: Path) -> None:
    readings = _readings()
    theirs = waiting(_frame(spark, readings, tmp_path)).selectExpr("*", "1 AS change")
    assert _standing(_changes(theirs)) == _sorted_run(readings, [])


def test_explain_tells_what_is_repaired_and_held(spark: SparkSession, tmp_path: Path) -> None:
    asked = _ask(_frame(spark, _readings(), tmp_path))
    told = asked.timetravel("40 days", every="1 hour").explained()
    assert "no sort: results at once, repaired by replays" in told
    assert "rows up to 40 days late" in " ".join(told.split())
    assert "holds what is near" in told
    assert "lazy, in shifted time" in told
    assert "  then          consumption\n" in told
    assert "  then          sum_large, sum_negative over 24 hours, every 1 hour" in told
    assert "changes" in told.split("after it")[1]
    assert max(len(line) for line in told.splitlines()) <= 80
    counted = asked.timetravel("40 days", enumerator="reading", trigger=_at_midnight).explained()
    assert "late, where reading" in counted
    assert "when your function says" in counted


def test_aggregates_are_asked_for_as_in_tiers_and_repaired(spark: SparkSession, tmp_path: Path) -> None:
    """The same as an application of one aggregation."""
    events = lc.disordered(_frame(spark, _readings(), tmp_path), time="ts", key="meter", arrival="arrival", shards=2)
    asked = events.hopping("2 hours", "1 hour").aggregate(lc.count(), lc.max("reading"))
    result = asked.timetravel(BOUND, every="1 hour")
    app = events.app(lc.WindowAggregation(lc.Window("2 hours", "1 hour"), (lc.count(), lc.max("reading"))))
    other = app.timetravel(BOUND, every="1 hour")
    assert result.explained() == other.explained()
    rows, others = (Counter(map(tuple, frame.collect())) for frame in (result.changes, other.changes))
    assert min(row[5] for row in rows) < 0
    assert rows == others


@pytest.mark.parametrize(
    ("ask", "text"),
    [
        (
            lambda events: events.session("2 hours").aggregate(lc.count()).timetravel("1 day", every="1 h"),
            "have a size",
        ),
        (lambda events: events.tumbling("1 h").app(application()).timetravel("9 d", every="1 h"), "without a window"),
        (lambda events: lc.WindowAggregation(SESSION, (lc.count(),)), "sessions can be asked with .session"),
        (lambda events: events.timetravel("1 day", every="1 h"), "be asked of aggregates or an application"),
    ],
)
def test_what_is_asked_in_the_wrong_way_is_refused_with_the_right_one(
    spark: SparkSession, tmp_path: Path, ask: Callable[[lc.Events], object], text: str
) -> None:
    events = lc.disordered(_frame(spark, _readings(), tmp_path), time="ts", key="meter", arrival="arrival")
    with pytest.raises((lc.InputError, AttributeError), match=text):
        ask(events)


def _at_midnight(late: pa.RecordBatch) -> pa.Array:
    return late.column("ts")


@pytest.mark.parametrize(
    ("ask", "text"),
    [
        (lambda app: app.timetravel("40 days"), "be said in one way: every, enumerator or holes"),
        (lambda app: app.timetravel("40 days", every="1 hour", enumerator="reading"), "be said in one way"),
        (lambda app: app.timetravel("1 day", every="1 hour"), "be at least as long as what results depend on"),
        (lambda app: app.timetravel("40 days", every="1 hour", trigger="soon"), "be 'eager', 'lazy', or a function"),
        (lambda app: app.timetravel("40 days", every="0 hours"), "every"),
        (lambda app: app.timetravel("40 days", enumerator="number"), "be one of ts, meter, reading, fuse"),
        (lambda app: app.timetravel("40 days", holes=True), "be a function of two RecordBatches"),
        (lambda app: app.timetravel("40 days", every="1 hour", max_held=0), "be a whole number above zero"),
        (lambda app: app.timetravel("40 days", every="1 hour").tier(1), "a result of .tiers"),
    ],
)
def test_what_cannot_be_asked_is_refused_before_it_starts(
    spark: SparkSession, tmp_path: Path, ask: Callable[[lc.App], object], text: str
) -> None:
    app = _ask(_frame(spark, _readings(), tmp_path))
    with pytest.raises(lc.InputError, match=text):
        ask(app)
