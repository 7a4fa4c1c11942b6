"""The playback source: its reader by itself, and in streaming queries."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import DataFrame, Row, SparkSession

import latecomer as lc
from latecomer.disorder.player import read_options
from latecomer.spark.compat import SOURCES_ARE_TOLD, ReadAllAvailable, ReadMaxRows
from latecomer.spark.playback import PIECE_ROWS, Piece, Playback, PlaybackReader, playback, register_playback
from latecomer.spark.session import changed_settings
from tests.spark.streams import LATENCY_US, START_US, TICK_US, expected, make_events

ALL = ReadAllAvailable()


def record(folder: Path, events: pa.Table) -> str:
    """Events as a recording of two files."""
    folder.mkdir()
    half = len(events) // 2 + 7  # inside a tick
    pq.write_table(events.slice(0, half), folder / "a.parquet", row_group_size=170)
    pq.write_table(events.slice(half), folder / "b.parquet", row_group_size=170)
    return str(folder)


def reader_of(path: str, clock: Callable[[], int] = time.monotonic_ns, **options: str) -> PlaybackReader:
    given = {"path": path, **options}
    return PlaybackReader(read_options(given), Playback(given).schema(), clock)


def ids_of(reader: PlaybackReader, start: dict[str, Any], end: dict[str, Any]) -> list[int | None]:
    batches = [batch for piece in reader.partitions(start, end) for batch in reader.read(piece)]
    return [value for batch in batches for value in batch.column("id").to_pylist()]


def test_a_tick_shows_with_the_first_poll_after_its_last_event(tmp_path: Path) -> None:
    events = make_events(400, seed=1)  # 5 ms apart, 20 to a tick
    now_us = 0
    reader = reader_of(record(tmp_path / "in", events), lambda: now_us * 1_000)
    offset = reader.initialOffset()
    assert offset == {"rows": 0, "ended": False, "tick_us": TICK_US}
    seen: list[tuple[int, int]] = []
    while offset["rows"] < 400:
        latest = reader.latestOffset(offset, ALL)
        if latest != offset:
            seen.append((now_us, latest["rows"]))
        offset, now_us = latest, now_us + 1_000
    assert seen == [(tick * 100_000 + 95_000, (tick + 1) * 20) for tick in range(20)]


def test_the_clock_starts_after_the_empty_first_batch_and_anew_after_a_restart(tmp_path: Path) -> None:
    now_us = 0
    reader = reader_of(record(tmp_path / "in", make_events(100, seed=1)), lambda: now_us * 1_000)
    first = reader.latestOffset(reader.initialOffset(), ALL)
    assert reader.partitions(reader.initialOffset(), first) == []
    now_us = 9_000_000
    assert reader.latestOffset(first, ALL) == first
    now_us += 95_000
    played = reader.latestOffset(first, ALL)
    assert played["rows"] == 20
    assert reader.reportLatestOffset() == played
    restarted = reader_of(str(tmp_path / "in"), lambda: now_us * 1_000)
    assert restarted.reportLatestOffset() is None
    assert restarted.latestOffset(played, ALL) == played
    now_us += 95_000
    assert restarted.latestOffset(played, ALL)["rows"] == 40


def test_available_now_plays_what_is_left_and_the_end(tmp_path: Path) -> None:
    path = record(tmp_path / "in", make_events(100, seed=1))
    reader = reader_of(path, maxRowsPerBatch="50", end="ended", source="source", partitions="2")
    assert reader.getDefaultReadLimit() == ReadMaxRows(50)
    reader.prepareForTriggerAvailableNow()
    offset, ids = reader.initialOffset(), []
    while (latest := reader.latestOffset(offset, ReadMaxRows(50))) != offset:
        assert latest["rows"] - offset["rows"] in (40, 20)
        ids += ids_of(reader, offset, latest)
        offset = latest
    assert offset == {"rows": 100, "ended": True, "tick_us": TICK_US}
    assert ids == [*range(100), None, None, None]


def test_a_batch_is_read_in_pieces_and_the_reader_travels_light(tmp_path: Path) -> None:
    rows = 2 * PIECE_ROWS + 1
    table = pa.table({"id": range(rows), "arrival": pa.array(range(rows), pa.int64())})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=3_000)
    reader = reader_of(str(tmp_path), speed="max", partitions="3")
    light = len(pickle.dumps(reader))
    pieces = reader.partitions(reader.initialOffset(), {**reader.initialOffset(), "rows": rows})
    assert len(pieces) == 2
    copied = pickle.loads(pickle.dumps(reader_of(str(tmp_path), speed="max")))
    read = [pickle.loads(pickle.dumps(piece)) for piece in pieces]
    batches = [batch for piece in read if isinstance(piece, Piece) for batch in copied.read(piece)]
    assert [value for batch in batches for value in batch.column("id").to_pylist()] == list(range(rows))
    assert light < 2_000


def test_a_checkpoint_must_fit_the_recording(tmp_path: Path) -> None:
    reader = reader_of(record(tmp_path / "in", make_events(100, seed=1)), end="ended")
    start = reader.initialOffset()
    with pytest.raises(lc.InputError, match="tick must stay what the checkpoint began with; got 100000"):
        reader.latestOffset({**start, "tick_us": 7}, ALL)
    with pytest.raises(lc.InputError, match="recording must hold the 101 rows that the checkpoint has played; got 100"):
        reader.latestOffset({**start, "rows": 101}, ALL)
    with pytest.raises(lc.InputError, match="hold the 80 rows that the checkpoint has played, no more; got 100"):
        reader.latestOffset({**start, "rows": 80, "ended": True}, ALL)


def test_every_size_of_batch_gives_the_same_and_the_end_releases_all(spark: SparkSession, tmp_path: Path) -> None:
    events = make_events(500, seed=4)
    given, late = expected(events)
    path = record(tmp_path / "in", events)
    for size, batches in ((None, 1), (160, 4)):
        if size is not None and not SOURCES_ARE_TOLD:
            with pytest.raises(lc.InputError, match=r"maxRowsPerBatch must come with Spark 4\.2 or newer; got 160"):
                playback(spark, path, speed="max", max_rows_per_batch=size)
            continue
        df = playback(spark, path, speed="max", max_rows_per_batch=size, end="ended", source="source")
        stream = lc.disordered(
            df, time="ts", key="key", source="source", arrival="arrival", order="id", end="ended", shards=1
        )
        out = tmp_path / f"out-{size}"
        result = stream.select("id", "ts").reorder(f"{LATENCY_US} us")
        query = result.start(out, checkpoint=tmp_path / f"checkpoint-{size}", available_now=True)
        query.awaitTermination()
        counts = [lc.read_counters(progress) for progress in query.recentProgress]
        assert len([count for count in counts if count is not None and count["seen"]]) == batches
        assert sorted(pq.read_table(out / "results")["id"].to_pylist()) == sorted(given)
        assert sorted(pq.read_table(out / "late")["id"].to_pylist()) == late
        last = counts[-1]
        assert last is not None
        assert (last["held"], last["control"], last["stamps_back"], last["punctuation_us"]) == (0, 3, 0, 2**62)


def test_a_paced_query_stops_and_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    """At twenty times the speed, cut off in the middle: whole ticks, in order; a repeated batch is the same again."""
    path = record(tmp_path / "in", make_events(8_000, seed=5))  # 40 s
    seen: dict[int, list[int]] = {}

    def sink(rows: DataFrame, batch: int) -> None:
        ids = [row["id"] for row in rows.select("id").collect()]
        assert seen.setdefault(batch, ids) == ids

    register_playback(spark)
    stream = spark.readStream.format("latecomer-playback").option("speed", "20").load(path)
    writer = stream.writeStream.foreachBatch(sink).option("checkpointLocation", str(tmp_path / "checkpoint"))
    for goal in (200, 8_000):
        query, deadline = writer.start(), time.monotonic() + 60
        while sum(map(len, seen.values())) < goal and query.isActive and time.monotonic() < deadline:
            time.sleep(0.02)
        query.stop()
        assert query.exception() is None
        assert goal == 8_000 or goal <= sum(map(len, seen.values())) < 8_000
    assert [row for batch in sorted(seen) for row in seen[batch]] == list(range(8_000))
    assert all(len(ids) % 20 == 0 for ids in seen.values())
    assert len([ids for ids in seen.values() if ids]) > 3


def test_times_come_out_right_in_any_zone(spark: SparkSession, tmp_path: Path) -> None:
    naive, instant = pa.timestamp("us"), pa.timestamp("us", "America/New_York")
    stamps = pa.array([START_US, START_US + 1], pa.int64())
    table = pa.table(
        {
            "arrival": stamps.cast(instant),
            "wall": stamps.cast(naive),
            "fine": stamps.cast(naive).cast(pa.timestamp("ns")),
            "text": pa.array(["a", None]).dictionary_encode(),
            "deep": pa.array([[{"at": 1}], None], pa.list_(pa.struct([("at", pa.timestamp("ms", "UTC"))]))),
            "pairs": pa.array([[("k", 1)], None], pa.map_(pa.string(), pa.int32())),
        }
    )
    pq.write_table(table, tmp_path / "a.parquet")
    rows: list[Row] = []

    def sink(batch: DataFrame, number: int) -> None:
        columns = ("unix_micros(arrival) stamp", "wall", "fine", "text", "unix_millis(deep[0].at) at", "pairs", "ended")
        rows.extend(batch.selectExpr(*columns).collect())

    with changed_settings(spark, {"spark.sql.session.timeZone": "Asia/Tokyo"}):
        stream = playback(spark, tmp_path / "a.parquet", speed="max", end="ended")
        kinds = {field.name: field.dataType.simpleString() for field in stream.schema.fields}
        query = stream.writeStream.foreachBatch(sink).trigger(availableNow=True).start()
        query.awaitTermination()
    assert (kinds["arrival"], kinds["wall"], kinds["fine"]) == ("timestamp", "timestamp_ntz", "timestamp_ntz")
    wall = datetime(2023, 11, 14, 22, 13, 20)
    assert tuple(rows[0]) == (START_US, wall, wall, "a", 1, {"k": 1}, False)
    assert rows[1]["stamp"] == START_US + 1
    assert tuple(rows[2]) == (START_US + 1, None, None, None, None, None, True)


def test_errors_are_readable(spark: SparkSession, tmp_path: Path) -> None:
    events = make_events(40, seed=1)
    path = str(tmp_path / "a.parquet")
    pq.write_table(pa.concat_tables([events.slice(20), events.slice(0, 20)]), path, row_group_size=20)
    with pytest.raises(lc.InputError, match=r"^arrival 'arrival' in file .*, row 20 \(from 0\), must not go back"):
        playback(spark, path)
    with pytest.raises(lc.InputError, match=r"^speed must be a number above zero, or 'max'; got 'fast'"):
        playback(spark, path, speed="fast")
    pq.write_table(pa.concat_tables([events.slice(20), events.slice(0, 20)]), path)
    with pytest.raises(lc.InputError, match=r"^end must name a new column; got 'TS'; besides id, ts"):
        playback(spark, path, end="TS")
    source = spark.readStream.format("latecomer-playback")
    with pytest.raises(AnalysisException, match=r"options of playback must be among path, .*; got 'pace'; correct"):
        source.option("pace", "1").load(path)
    query = playback(spark, path, speed="max").writeStream.format("noop").start()
    with pytest.raises(StreamingQueryException, match=r"a.parquet, row 20 \(from 0\), must not go back"):
        query.awaitTermination(60)
