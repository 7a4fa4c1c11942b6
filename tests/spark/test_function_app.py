"""Functions of Spark's own windowed aggregates, not rewritten, repaired when late data comes."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import latecomer as lc
from latecomer.timetravel import EngineTravel

SCHEMA = "ts timestamp, arrival timestamp, meter int, kwh bigint, over boolean"
START_S = 1_700_000_000
TIMES = ("ts", "arrival")
Function = Callable[[DataFrame], DataFrame]


def random_chain(rng: np.random.Generator, *, aggregates: int, by_start: bool) -> Function:
    """One aggregate or two of windows that may hop, the second of left boundaries or of `window_time`."""
    minutes = []
    for _ in range(aggregates):
        advance = int(rng.integers(5, 40))
        minutes.append((advance * int(rng.integers(1, 3)), advance))

    def window(time: Any, number: int) -> Any:
        size, advance = (f"{each} minutes" for each in minutes[number])
        return F.window(time, size, advance, "3 minutes").alias("w")

    def chain(readings: DataFrame) -> DataFrame:
        sums = readings.groupBy("meter", window("ts", 0)).agg(F.sum("kwh").alias("kwh"), F.last("kwh").alias("newest"))
        if aggregates == 2:
            time = F.col("w.start") if by_start else F.window_time("w")
            again = sums.withColumn("at", time).groupBy("meter", window("at", 1))
            sums = again.agg(F.max("kwh").alias("kwh"), F.max("newest").alias("newest"))
        return sums.where("kwh % 7 != 0").select("w", "meter", "kwh", "newest")

    return chain


def random_rows(rng: np.random.Generator, count: int) -> list[dict[str, Any]]:
    """Readings of three meters in the order of their arrival, a quarter of them late, some of them too late."""
    at = np.sort(rng.integers(0, 6 * 3600, count))
    delay = np.where(rng.random(count) < 0.25, rng.integers(0, 5 * 3600, count), 0)
    columns = {"ts": at, "arrival": at + delay, "meter": rng.integers(0, 3, count), "kwh": rng.integers(0, 9, count)}
    rows = [{name: int(column[i]) for name, column in columns.items()} for i in range(count)]
    return sorted(rows, key=lambda row: row["arrival"])


def write_rows(rows: list[dict[str, Any]], folder: Path, files: int) -> None:
    """Rows in files, the last of which ends the stream; Spark takes one at a time, the oldest first."""
    folder.mkdir(parents=True)
    ended = [*rows, {"arrival": rows[-1]["arrival"] + 1, "over": True}]
    for number in range(files):
        part = ended[len(ended) * number // files : len(ended) * (number + 1) // files]
        lines = [json.dumps({**row, **{name: _text(row[name]) for name in TIMES if name in row}}) for row in part]
        file = folder / f"{number}.json"
        file.write_text("\n".join(lines))
        os.utime(file, (START_S + number, START_S + number))


def _text(second: int) -> str:
    return datetime.fromtimestamp(START_S + second, UTC).strftime("%Y-%m-%d %H:%M:%S")


class Crash:
    """A sink that fails once, in one micro-batch."""

    def __init__(self, batch: int) -> None:
        self.batch: int | None = batch

    def __call__(self, rows: DataFrame, batch: int) -> None:
        rows.write.mode("overwrite").format("noop").save()
        if batch == self.batch:
            self.batch = None
            raise RuntimeError("the sink is gone")


def hourly(readings: DataFrame) -> DataFrame:
    """Per meter and hour; the day, the latest time and a list of all times move with the rows too."""
    sums = readings.groupBy("meter", F.window("ts", "1 hour").alias("w")).agg(
        F.sum("kwh").alias("kwh"), F.max("ts").alias("newest"), F.collect_list("ts").alias("all")
    )
    return sums.withColumn("day", F.to_date("w.start"))


def by_hand(readings: DataFrame) -> DataFrame:
    """Windows that are no `F.window`, of rows that only the user's sample has."""
    hours = readings.where("kwh > 100").groupBy("meter", F.date_trunc("hour", "ts").alias("hour"))
    return hours.agg(F.count("*").alias("readings"))


def daily(readings: DataFrame, added: str = "decimal(18, 6)") -> DataFrame:
    """Sums of sums: in what order Spark adds them depends on what else is in a call."""
    parts = readings.groupBy("meter", F.window("ts", "40 minutes", "20 minutes").alias("part"))
    used = parts.agg(F.sum(F.col("kwh") * 0.1).cast(added).alias("kwh")).withColumn("at", F.window_time("part"))
    return used.groupBy("meter", F.window("at", "2 hours").alias("w")).agg(F.sum("kwh").alias("kwh"))


def found(rows: DataFrame) -> Counter[str]:
    return Counter(str(row.asDict()) for row in rows.collect())


def start_and_crash(result: lc.Result, folder: Path) -> None:
    """Run a stream to its end; the first run of the second micro-batch fails."""
    crash = Crash(1)
    for fails in (True, False):
        query = result.start(
            folder / "out",
            checkpoint=folder / "checkpoint",
            sinks={"changes": folder / "changes", "results": crash},
            available_now=True,
        )
        if fails:
            with pytest.raises(Exception, match="the sink is gone"):
                query.awaitTermination()
        else:
            query.awaitTermination()


CASES: dict[str, tuple[int, Callable[[np.random.Generator], Function], str]] = {
    "one aggregate": (1, lambda rng: hourly, "lazy"),
    "left boundaries": (2, lambda rng: random_chain(rng, aggregates=2, by_start=True), "lazy"),
    "window_time": (3, lambda rng: random_chain(rng, aggregates=2, by_start=False), "eager"),
    "decimals": (4, lambda rng: daily, "lazy"),
}


@pytest.mark.parametrize("case", CASES)
def test_changes_add_up_to_the_function_on_sorted_rows_also_after_a_crash(
    spark: SparkSession, tmp_path: Path, case: str
) -> None:
    seed, make, trigger = CASES[case]
    rng = np.random.default_rng(seed)
    function = make(rng)
    write_rows(random_rows(rng, 120), tmp_path / "in", 3)
    stream = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(tmp_path / "in"))
    events = lc.disordered(stream, time="ts", key="meter", arrival="arrival", end="over")
    result = events.app(function).timetravel("4 hours", holes="anywhere", trigger=trigger)
    settings = result.planned.stages[0].settings
    assert isinstance(settings, EngineTravel)
    assert settings.reach.windows == settings.query.windows  # on which side of results their rows lie is known
    start_and_crash(result, tmp_path)
    everything = spark.read.schema(SCHEMA).json(str(tmp_path / "in")).where("over is null")
    late = lc.read(spark, tmp_path / "out", "late").select(*everything.columns)
    changes = lc.read(spark, tmp_path / "changes")
    assert changes.columns[-3:] == ["change", "pane", "batch"]
    assert {row.pane for row in changes.select("pane").distinct().collect()} == {"on_time", "revised"}
    assert late.count() > 0
    wanted = function(everything.exceptAll(late).repartition(1).sortWithinPartitions("ts"))
    assert found(lc.consolidate(changes)) == found(wanted)
    check_order(tmp_path / "changes")


def check_order(folder: Path) -> None:
    """In a micro-batch all changes of a key are in one file, and of a window those that void come first."""
    files_of: dict[tuple[str, int], set[Path]] = {}
    for file in folder.glob("batch=*/**/*.parquet"):
        last: dict[tuple[int, str], int] = {}
        for row in pq.read_table(file, partitioning=None).select(["meter", "w", "change"]).to_pylist():
            files_of.setdefault((file.relative_to(folder).parts[0], row["meter"]), set()).add(file)
            place = (row["meter"], str(row["w"]))
            assert last.setdefault(place, -1) <= row["change"]
            last[place] = row["change"]
    assert files_of
    assert all(len(files) == 1 for files in files_of.values())


def test_sums_of_floats_whose_order_is_open_are_refused(spark: SparkSession) -> None:
    stream = spark.createDataFrame([], SCHEMA)
    events = lc.disordered(stream, time="ts", key="meter", arrival="arrival", end="over")
    with pytest.raises(lc.InputError, match=r"give the same to the last bit.*cast what is added to a decimal"):
        events.app(lambda readings: daily(readings, "double")).timetravel("4 hours", holes="anywhere")


def test_windows_may_be_declared_and_a_sample_given(spark: SparkSession, tmp_path: Path) -> None:
    rows = [{**row, "kwh": row["kwh"] + 98} for row in random_rows(np.random.default_rng(5), 60)]
    write_rows(rows, tmp_path / "in", 1)
    batch = spark.read.schema(SCHEMA).json(str(tmp_path / "in")).where("over is null").drop("over")
    events = lc.disordered(batch, time="ts", key="meter", arrival="arrival")
    app = events.app(by_hand, windows=[lc.Window("1 hour")], sample=batch)
    changes = app.timetravel("1 day", holes="anywhere").changes
    assert found(lc.consolidate(changes)) == found(by_hand(batch))


def windowed(*keys: str) -> Function:
    return lambda df: df.groupBy(*keys, F.window("ts", "1 hour")).agg(F.sum("kwh").alias("kwh"))


REFUSED: dict[str, tuple[Function, str]] = {
    "sessions": (lambda df: df.groupBy("meter", F.session_window("ts", "1 hour")).count(), "a session window"),
    "limits": (lambda df: windowed("meter")(df).limit(3), "must have no limit: results are those of a micro-batch"),
    "the clock": (lambda df: windowed("meter")(df).withColumn("n", F.current_timestamp()), "got 'current_timestamp()'"),
    "rows over rows": (
        lambda df: windowed("meter")(df).withColumn("n", F.expr("lag(kwh) over (partition by meter order by window)")),
        "must have no functions over rows (over): how far they look is not known",
    ),
    "no window": (lambda df: df.groupBy("meter").count(), "must have windows; got 'none in its plan'"),
    "another time": (
        lambda df: df.groupBy("meter", F.window(F.expr("ts - interval 1 hour"), "1 hour")).count(),
        "must be one of ts",
    ),
    "no table": (lambda df: None, "must return a DataFrame; got 'NoneType'"),  # type: ignore[dict-item, return-value]
    "our names": (lambda df: windowed("meter")(df).withColumn("change", F.lit(1)), "must not be named"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_replayed_is_refused_by_its_plan(spark: SparkSession, name: str) -> None:
    function, message = REFUSED[name]
    batch = spark.createDataFrame([], "ts timestamp, meter int, kwh bigint")
    with pytest.raises(lc.InputError) as error:
        lc.disordered(batch, time="ts", key="meter").app(function).timetravel("1 day", every="1 hour")
    assert message in str(error.value)


def test_what_cannot_be_replayed_is_refused_by_what_it_gives(spark: SparkSession) -> None:
    events = lc.disordered(spark.createDataFrame([], "ts timestamp, meter int, kwh bigint"), time="ts", key="meter")
    tried: list[tuple[Any, str]] = [
        (windowed(), "must give for each key what the rows of that key say; got 'other values of "),
        (
            lambda df: windowed("meter")(df).withColumn("h", F.hour("window.start")),
            "must give the same at other times, but for columns that are times: h; got 'other values'",
        ),
        (lambda df: windowed("meter")(df.where("kwh < 0")), "must give results for rows that are made up; got 'none'"),
        (lambda df: windowed("meter")(df).drop("window"), "must say of each result which window it is of"),
    ]
    for function, message in tried:
        with pytest.raises(lc.InputError) as error:
            events.app(function).timetravel("1 day", every="1 hour")
        assert message in str(error.value)
    everything = events.app(lambda df: df.groupBy("meter").agg(F.max("ts").alias("ts")), windows=[lc.Window("1 hour")])
    with pytest.raises(lc.InputError, match="depend on rows further away"):
        everything.timetravel("1 day", every="1 hour")


def test_other_questions_of_a_function_and_other_sessions_are_refused(spark: SparkSession) -> None:
    events = lc.disordered(spark.createDataFrame([], "ts timestamp, meter int, kwh bigint"), time="ts", key="meter")
    app = events.app(windowed("meter"))
    with pytest.raises(AttributeError, match=r"tiers must be asked of an operator; got 'a function of DataFrames'"):
        app.tiers("1 hour")  # type: ignore[attr-defined]
    with pytest.raises(lc.InputError, match="app must be given an operator or a function of a DataFrame"):
        events.app(3)  # type: ignore[call-overload]
    with pytest.raises(lc.InputError, match=r"windows must be a list of lc\.Window"):
        events.app(windowed("meter"), windows=["1 hour"])  # type: ignore[list-item]
    with pytest.raises(lc.InputError, match="must be asked of events without a window"):
        events.tumbling("1 hour").app(windowed("meter")).timetravel("1 day", every="1 hour")
    spark.conf.set("spark.sql.session.timeZone", "Europe/Stockholm")
    try:
        with pytest.raises(lc.InputError, match="time zone of the session must be UTC"):
            app.timetravel("1 day", every="1 hour")
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
