"""A running query that is changed: its latency, its policy, and what a restart makes of it."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from typer.testing import CliRunner

import latecomer as lc
from latecomer.cli.main import app
from tests.spark.streams import SCHEMA, make_events, write_in_parts


def start(spark: SparkSession, folder: Path, latency: str, **others: Any) -> StreamingQuery:
    df = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
    events = lc.disordered(df, time="ts", key="key", source="source", arrival="arrival", order="id", shards=2)
    result = events.reorder(latency, **others)
    return result.start(str(folder / "out"), checkpoint=str(folder / "checkpoint"), every="100 ms")


def counters(query: StreamingQuery) -> list[dict[str, int]]:
    query.processAllAvailable()
    return [found for progress in query.recentProgress if (found := lc.read_counters(progress))]


def test_a_latency_changes_while_the_query_runs(spark: SparkSession, tmp_path: Path) -> None:
    events, checkpoint = make_events(2_000, seed=5), tmp_path / "checkpoint"
    write_in_parts(events.slice(0, 1_000), tmp_path / "in", 2)
    query = start(spark, tmp_path, "1 hour")
    try:
        assert counters(query)[-1]["held"] == 1_000
        lc.control(checkpoint).set(latency="1 second")
        shorter = counters(query)[-1]
        assert 0 < shorter["held"] < 400
        assert shorter["punctuation_us"] == shorter["mark_us"] - 1_000_000
        done = CliRunner().invoke(app, ["control", str(checkpoint), "--set", "latency=2 hours", "--set", "late=drop"])
        assert done.exit_code == 0
        assert "reorder.latency_us       7,200,000,000 us" in done.output
        write_in_parts(events.slice(1_000), tmp_path / "in", 2, first=2)
        batches = counters(query)
        longer = batches[-1]
        assert longer["punctuation_us"] == shorter["punctuation_us"]
        assert sum(batch["given"] for batch in batches[-2:]) == 0
        dropped = sum(batch["dropped"] for batch in batches)
        given, late = (sum(batch[name] for batch in batches) for name in ("given", "late"))
        assert given + late + dropped + longer["held"] == 2_000
        assert dropped > 0
    finally:
        query.stop()
    _goes_on(spark, tmp_path, longer)


def _goes_on(spark: SparkSession, folder: Path, before: dict[str, int]) -> None:
    """What is in force stays so; other settings are refused with the way to change them."""
    with pytest.raises(lc.StateError, match=r"stages\.reorder\.latency_us: 7200000000.*\.set\(latency='60000000 us'\)"):
        start(spark, folder, "1 minute", late="drop")
    lc.control(folder / "checkpoint").set(latency="30 minutes")
    query = start(spark, folder, "30 minutes", late="drop")
    try:
        now = counters(query)[-1]
    finally:
        query.stop()
    assert now["held"] == before["held"]  # half an hour is longer than the stream
    offsets = sorted((folder / "checkpoint" / "offsets").glob("[0-9]*"), key=lambda path: int(path.name))
    assert json.loads(offsets[-1].read_text().splitlines()[-1])["values"]["0.latency_us"] == 30 * 60 * 1_000_000


def test_what_cannot_be_changed_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(lc.StateError, match="checkpoint must be that of a query of this version"):
        lc.control(tmp_path)
    write_in_parts(make_events(200, seed=1), tmp_path / "in", 1)
    query = start(spark, tmp_path, "1 second")
    counters(query)
    query.stop()
    control = lc.control(tmp_path / "checkpoint")
    assert control.values() == {"reorder.latency_us": 1_000_000, "reorder.late": "side"}
    with pytest.raises(lc.InputError, match=r"control must name a setting that can change \(latency: how long to wait"):
        control.set(shards=3)
    with pytest.raises(lc.InputError, match=r"late must stay as the query began with it \('side'\).*; got 'adjust'"):
        control.set(late="adjust")
    with pytest.raises(
        lc.StateError, match=r"stages\.reorder\.late: side.*; got 'adjust'; set stages back, or start anew"
    ):
        start(spark, tmp_path, "1 second", late="adjust")
    with pytest.raises(lc.InputError, match="latency must be a duration with a unit"):
        control.set(latency="soon")
    with pytest.raises(lc.InputError, match="set must be given a setting"):
        control.set()
    with pytest.raises(lc.InputError, match="stage must be one of reorder; got 'tiers'"):
        lc.control(tmp_path / "checkpoint", stage="tiers")
    assert control.values() == {"reorder.latency_us": 1_000_000, "reorder.late": "side"}


@pytest.mark.parametrize(("first", "then"), [("2 seconds", "10 minutes"), ("10 minutes", "2 seconds")])
def test_a_latency_set_while_the_query_is_down_is_the_same_whatever_it_is_started_with(
    spark: SparkSession, tmp_path: Path, first: str, then: str
) -> None:
    events, found = make_events(3_000, seed=9), []
    for name, latency in (("old", first), ("new", then)):
        folder = tmp_path / name
        folder.mkdir()
        write_in_parts(events.slice(0, 1_500), folder / "in", 2)
        query = start(spark, folder, first)
        before = counters(query)
        query.stop()
        lc.control(folder / "checkpoint").set(latency=then)
        write_in_parts(events.slice(1_500), folder / "in", 2, first=2)
        query = start(spark, folder, latency)
        batches = [*before, *counters(query)]
        query.stop()
        assert all(a["punctuation_us"] <= b["punctuation_us"] for a, b in pairwise(batches))
        lanes = [spark.read.parquet(str(folder / "out" / lane)).select("id").collect() for lane in ("results", "late")]
        found.append([sorted(row["id"] for row in rows) for rows in lanes])
    assert found[0] == found[1]


def test_values_are_found_again_when_the_control_file_was_lost(spark: SparkSession, tmp_path: Path) -> None:
    write_in_parts(make_events(400, seed=2), tmp_path / "in", 2)
    query = start(spark, tmp_path, "1 hour")
    try:
        lc.control(tmp_path / "checkpoint").set(latency="2 hours")
        counters(query)
        file = tmp_path / "checkpoint" / "latecomer-control.json"
        file.write_text("[]")
        assert counters(query)[-1]["held"] == 400  # what cannot be read changes nothing
        with pytest.raises(lc.StateError, match="control file must be what latecomer wrote"):
            lc.control(tmp_path / "checkpoint").set(latency="1 second")
        file.unlink()
        lc.control(tmp_path / "checkpoint").set(latency="1 second")
        assert counters(query)[-1]["held"] < 400
    finally:
        query.stop()


def test_control_finds_its_stage_whatever_the_stages_are_called(spark: SparkSession, tmp_path: Path) -> None:
    write_in_parts(make_events(1_000, seed=3), tmp_path / "in", 1)
    df = spark.readStream.schema(SCHEMA).parquet(str(tmp_path / "in"))
    events = lc.disordered(df, time="ts", key="key", arrival="arrival", shards=2)
    windows = events.tumbling("100 ms").aggregate(lc.count()).tiers("1 second")
    checkpoint = tmp_path / "checkpoint"
    query = windows.by("key").reorder("1 hour").start(str(tmp_path / "out"), checkpoint=str(checkpoint), every="100 ms")
    try:
        held = counters(query)[-1]["reorder.held"]
        assert held > 0
        assert lc.control(checkpoint).values() == {"reorder.latency_us": 3_600_000_000, "reorder.late": "side"}
        lc.control(checkpoint).set(latency="200 ms")
        assert counters(query)[-1]["reorder.held"] < held
    finally:
        query.stop()
    advice = r"lc\.control\('.*', stage='reorder'\)\.set\(latency='1000000 us'\)"
    with pytest.raises(lc.StateError, match=advice):
        windows.by("key").reorder("1 second").start(str(tmp_path / "out"), checkpoint=str(checkpoint))
