"""Slack on Spark: rows and pairs as the paper's structure gives them, several stages, and settings that are steered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import DataFrame, SparkSession

import latecomer as lc
from latecomer.slack import Controller, Goal, Observation
from latecomer.spark.counters import read_counters, unaccounted
from tests.spark.streams import SCHEMA, TICK_US, lagging, make_events, write_in_parts

NAMED: dict[str, Any] = {"time": "ts", "key": "key", "source": "source", "arrival": "arrival", "order": "id"}
SOURCES = ("a", "b", "c")
SLACK_US, WITHIN_US = 1_000_000, 200_000
EVENTS = lagging(make_events(3_000, seed=5), "b", 2_500_000)
NOWHERE: dict[str, Any] = dict.fromkeys(("results", "late", "quarantine"), lc.Discard())


def in_order(events: pa.Table) -> pa.Table:
    """The same with times that rise in every source, so that a source is never behind itself."""
    ts_us, source = events["ts"].cast(pa.int64()).to_numpy().copy(), events["source"].to_numpy(zero_copy_only=False)
    for name in SOURCES:
        ts_us[source == name] = np.sort(ts_us[source == name])
    return events.set_column(1, "ts", pa.array(ts_us).cast(events["ts"].type))


ORDERLY = in_order(EVENTS)


def batch(spark: SparkSession, events: pa.Table = EVENTS) -> DataFrame:
    return spark.createDataFrame(events.to_pandas(), SCHEMA)


def collected(result: lc.Result, lane: str = "results") -> tuple[list[dict[str, Any]], dict[str, int]]:
    found: list[dict[str, Any]] = []
    sink = lambda df, batch: found.extend(row.asDict() for row in df.collect())  # noqa: E731
    counted = result.write(sinks={**NOWHERE, lane: sink})
    return found, counted


def read_by_gate(events: pa.Table, slack_us: int) -> dict[int, tuple[bool, bool]]:
    """How each row is read by the paper's structure, which is asked after every tick; the rest is read at the end."""
    gate = lc.SlackGate(SOURCES, slack=slack_us)
    found = {row["id"]: (False, False) for row in events.to_pylist()}
    columns = [events[name].cast(pa.int64()).to_pylist() for name in ("ts", "arrival", "id")]
    rows = sorted(zip(*columns, events["source"].to_pylist(), strict=True), key=lambda row: row[1] // TICK_US)
    for place, (ts_us, arrival_us, number, source) in enumerate(rows):
        gate.insert(ts_us, source, number, order=(arrival_us // TICK_US, number))
        last = place + 1 == len(rows)
        if last or rows[place + 1][1] // TICK_US > arrival_us // TICK_US:
            found.update({read.value: (read.slack_ready, read.out_of_order) for read in gate.drain()})
    return found


def test_rows_are_read_as_by_the_papers_structure(spark: SparkSession) -> None:
    result = lc.disordered(batch(spark), sources=SOURCES, shards=2, **NAMED).slack(f"{SLACK_US} us")
    rows, counted = collected(result)
    assert {row["id"]: (row["slack_ready"], row["out_of_order"]) for row in rows} == read_by_gate(EVENTS, SLACK_US)
    assert len(rows) == len(EVENTS)
    assert counted["slack_ready"] == sum(row["slack_ready"] for row in rows) > 0
    assert unaccounted(counted) == 0
    assert "  slack         overtaken by 1000000 us at most" in result.explained(counted)


def pairs_of(events: pa.Table, left: str, right: str) -> set[tuple[int, int]]:
    """All pairs of two sources, of one key, that are near to each other in time; compared one by one."""
    rows = events.to_pylist()
    of = {source: [row for row in rows if row["source"] == source] for source in (left, right)}
    return {
        (one["id"], other["id"])
        for one in of[left]
        for other in of[right]
        if one["key"] == other["key"] and abs((one["ts"] - other["ts"]).total_seconds()) * 1e6 <= WITHIN_US
    }


@pytest.mark.parametrize("slack", ["0 s", "1 s", None])
def test_kept_rows_find_all_pairs_whatever_the_slack(spark: SparkSession, slack: str | None) -> None:
    two = ORDERLY.filter(pc.not_equal(ORDERLY["source"], "c"))
    events = lc.disordered(batch(spark, two), sources=("a", "b"), shards=2, **NAMED)
    rows, counted = collected(events.join("a", "b", within=f"{WITHIN_US} us", keep="1 minute").slack(slack))
    found = [(row["a_id"], row["b_id"]) for row in rows]
    assert set(found) == pairs_of(two, "a", "b")
    assert len(found) == len(set(found)) == counted["comparisons"]
    assert counted["cut_short"] == 0
    assert all(row["final"] for row in rows) or slack is not None


def failing(pairs: pa.RecordBatch) -> pa.Array:
    """Takes all pairs, and raises for some."""
    if pc.any(pc.equal(pc.remainder(pairs.column("a_id"), 7), 0)).as_py():
        raise ValueError("a multiple of seven")
    return pa.array([True] * pairs.num_rows)


def test_rows_for_which_the_predicate_raises_are_in_quarantine_and_counted(spark: SparkSession) -> None:
    two = ORDERLY.filter(pc.not_equal(ORDERLY["source"], "c"))
    events = lc.disordered(batch(spark, two), sources=("a", "b"), shards=2, **NAMED)
    asked = events.join("a", "b", within=f"{WITHIN_US} us", when=failing, keep="1 minute").slack("1 s")
    rows, counted = collected(asked, "quarantine")
    assert {row["reason"] for row in rows} == {"when: ValueError: a multiple of seven"}
    assert counted["quarantined"] == len(rows) > 0
    assert unaccounted(counted) == 0


def test_windows_are_given_once_and_what_comes_for_them_later_is_late(spark: SparkSession) -> None:
    events = lc.disordered(batch(spark), sources=SOURCES, shards=2, **NAMED)
    asked = events.tumbling("2 seconds").aggregate(lc.count())
    rows, counted = collected(asked.slack("500 ms"))
    places = [(row["window_start"], row["key"]) for row in rows]
    assert len(places) == len(set(places))
    assert sum(row["count"] for row in rows) == counted["accepted"]
    assert counted["late"] > 0
    assert {row["final"] for row in rows} == {True, False}
    certain, counted = collected(asked.slack(None))
    assert all(row["final"] for row in certain)


def test_a_third_source_joins_at_a_second_stage_with_a_slack_of_its_own(spark: SparkSession) -> None:
    feeds = {name: batch(spark, ORDERLY.filter(pc.equal(ORDERLY["source"], name))).drop("source") for name in SOURCES}
    events = lc.disordered(feeds, time="ts", key="key", arrival="arrival", order="id", shards=2)
    first = events.join("a", "b", within=f"{WITHIN_US} us", keep="1 minute", name="ab").slack("300 ms")
    second = first.by("key").join("ab", "c", within=f"{WITHIN_US} us", keep="1 minute").slack("200 ms")
    rows, _ = collected(second)
    times = {row["id"]: row["ts"] for row in ORDERLY.to_pylist()}
    keys = {row["id"]: row["key"] for row in ORDERLY.to_pylist()}
    thirds = ORDERLY.filter(pc.equal(ORDERLY["source"], "c"))["id"].to_pylist()
    wanted = {
        (a, b, c)
        for a, b in pairs_of(ORDERLY, "a", "b")
        for c in thirds
        if keys[c] == keys[a] and abs((max(times[a], times[b]) - times[c]).total_seconds()) * 1e6 <= WITHIN_US
    }
    assert {(row["ab_a_id"], row["ab_b_id"], row["c_id"]) for row in rows} == wanted
    assert len(rows) == len(wanted) > 0
    with pytest.raises(lc.InputError, match="take all sources where it is the last"):
        first.write(sinks=NOWHERE)


@dataclass(frozen=True)
class Wavering:
    """A policy that chooses another slack after every micro-batch; it has a lock, so it cannot leave the driver."""

    lock: Any = field(default_factory=Lock)

    def begin(self, goal: Goal) -> Controller:
        return _Wavering()


class _Wavering:
    def __init__(self) -> None:
        self._decided = 0

    def start(self) -> dict[str, int]:
        return {}

    def decide(self, observations: Sequence[Observation]) -> dict[str, int]:
        self._decided += 1
        assert all(seen.rows > 0 and seen.latency_us >= seen.overhead_us >= 0 for seen in observations)
        return {"slack": 100_000 * self._decided}


def test_decisions_after_a_micro_batch_are_in_force_in_later_ones(spark: SparkSession, tmp_path: Path) -> None:
    write_in_parts(EVENTS, tmp_path / "in", 6)
    df = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "in"))
    events = lc.disordered(df, sources=SOURCES, shards=2, **NAMED)
    result = events.slack(deadline="10 s", tuner=Wavering())
    found: list[int] = []
    sink = lambda df, batch: found.extend(row["id"] for row in df.collect())  # noqa: E731
    query = result.start(sinks={**NOWHERE, "results": sink}, checkpoint=str(tmp_path / "checkpoint"), every="1 ms")
    try:
        query.processAllAvailable()
        slacks = [counted["slack_us"] for event in query.recentProgress if (counted := read_counters(event))]
    finally:
        query.stop()
    assert slacks[0] == 5_000_000
    assert set(slacks[1:]) >= {100_000, 200_000, 300_000}
    assert len(found) == len(set(found))
    assert lc.control(tmp_path / "checkpoint").values()["slack.slack_us"] in {100_000 * n for n in range(1, 20)}
    with pytest.raises(lc.InputError, match=r"every must be below the deadline \(10 s\); got '10 s'"):
        result.start(sinks=NOWHERE, checkpoint=str(tmp_path / "other"), every="10 s")


def test_what_slack_cannot_work_on_is_refused_in_one_sentence(spark: SparkSession) -> None:
    df = batch(spark)
    events = lc.disordered(df, sources=SOURCES, shards=2, **NAMED)
    plain = lc.disordered(df, time="ts", key="key", shards=2)
    refusals: dict[str, Callable[[], object]] = {
        "slack must know the source of every row": lambda: plain.slack("1 s"),
        "slack must have at least two sources; got 'a'": lambda: lc.disordered(
            df, sources=("a",), shards=2, **NAMED
        ).slack("1 s"),
        "slack must be asked of progress='latest'": lambda: lc.disordered(
            df, progress="merged", shards=2, **NAMED
        ).slack("1 s"),
        "deadline must come with arrival=": lambda: lc.disordered(
            df, time="ts", source="source", sources=SOURCES, shards=2
        ).slack(deadline="6 s"),
        "deadline must be longer than two ticks; got '100 ms'": lambda: events.slack(deadline="100 ms"),
        "tuner must come with a deadline": lambda: events.slack("1 s", tuner=lc.SlackTuner()),
        "slack must be below the deadline": lambda: events.slack("7 s", deadline="6 s"),
        "alpha must lie between 0 and 1": lambda: lc.SlackTuner(alpha=1.0),
        "join must name two sources of the stream, and how far apart rows may be (within=); got 'a DataFrame'; e.g.": (
            lambda: events.join(df, "key")  # type: ignore[call-arg, arg-type]
        ),
        "got 'on=, how='; e.g. .join('bus', 'scats', within='5 s')": lambda: events.join(on="key", how="left"),  # type: ignore[call-arg]
        "got 'no within='": lambda: events.join("a", "b"),  # type: ignore[call-arg]
        "join must name declared sources": lambda: events.join("a", "x", within="1 s"),
        "keep of join must be at least within": lambda: events.join("a", "b", within="1 s", keep="1 ms"),
        "be asked with aggregates": lambda: events.tumbling("1 s").slack("1 s"),
        "windows of slack must have a size": lambda: events.session("1 s").aggregate(lc.count()).slack("1 s"),
    }
    for text, ask in refusals.items():
        with pytest.raises(lc.InputError) as refused:
            ask()
        assert text in str(refused.value)


def test_a_checkpoint_goes_on_with_another_deadline_and_follows_it(spark: SparkSession, tmp_path: Path) -> None:
    write_in_parts(EVENTS, tmp_path / "in", 1)
    df = spark.readStream.schema(SCHEMA).parquet(str(tmp_path / "in"))

    def start(deadline: str, **named: Any) -> None:
        events = lc.disordered(df, sources=SOURCES, shards=2, **NAMED, **named)
        result = events.slack(deadline=deadline, tuner=Wavering())
        result.start(sinks=NOWHERE, checkpoint=tmp_path / "checkpoint", available_now=True).awaitTermination()

    start("10 s")
    start("5 s")
    with pytest.raises(lc.StateError, match=r"\(idle_after_us: follows the deadline\); got '7000000'"):
        start("5 s", idle_after="7 s")
