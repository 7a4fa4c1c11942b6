"""Versions of Spark: what is refused, and Python sources before 4.2."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import latecomer as lc
from latecomer.disorder.player import read_options
from latecomer.spark.compat import ReaderBefore42, check_here, check_spark
from latecomer.spark.heartbeat import HeartbeatReader
from latecomer.spark.playback import Playback, PlaybackReader
from tests.spark.streams import make_events


@pytest.mark.parametrize("version", ["3.5.4", "4.4.0", "5.0.0.dev1"])
def test_a_spark_that_was_never_tried_is_refused(version: str) -> None:
    with pytest.raises(lc.InputError, match=rf"^pyspark must be of version 4.0 to 4.3; got '{version}'; use one of"):
        check_spark(version, "pyspark")


@pytest.mark.parametrize("version", ["4.0.0", "4.0.2", "4.1.1", "4.2.1", "4.3.0", "4.0.1.dev0"])
def test_a_spark_that_was_tried_is_taken(version: str) -> None:
    check_spark(version, "pyspark")


def test_a_pandas_that_pyspark_cannot_work_with_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    check_here()
    monkeypatch.setattr("importlib.metadata.version", lambda name: "2.1.4")
    with pytest.raises(lc.InputError, match=r"^pandas must be 2\.2 or newer; got '2\.1\.4'; pip install 'pandas>=2\.2"):
        check_here()


def playing(path: Path, **options: str) -> PlaybackReader:
    given = {"path": str(path), **options}
    return PlaybackReader(read_options(given), Playback(given).schema(), time.monotonic_ns)


def take(reader: ReaderBefore42, start: dict[str, Any]) -> tuple[dict[str, Any], list[int]]:
    """A micro-batch as Spark runs it before 4.2."""
    end = reader.latestOffset()
    batches = [batch for piece in reader.partitions(start, end) for batch in reader.read(piece)]
    return end, [value for batch in batches for value in batch.column("id").to_pylist()]


def test_a_source_before_4_2_knows_where_it_goes_on(tmp_path: Path) -> None:
    pq.write_table(make_events(100, seed=1), tmp_path / "a.parquet")
    limited = {"speed": "max", "maxRowsPerBatch": "50"}
    reader = ReaderBefore42(playing(tmp_path, **limited))
    start, ids = reader.initialOffset(), list[int]()
    for _ in range(2):
        start, found = take(reader, start)
        ids += found
    restarted = ReaderBefore42(playing(tmp_path, **limited))
    assert restarted.partitions(start, start) == []  # what Spark does first after a restart
    while (taken := take(restarted, start))[0] != start:
        start, found = taken
        ids += found
    assert ids == list(range(100))


def test_a_playback_that_would_go_back_is_stopped(tmp_path: Path) -> None:
    pq.write_table(make_events(100, seed=1), tmp_path / "a.parquet")
    reader = playing(tmp_path)
    later = {**reader.initialOffset(), "rows": 60}
    with pytest.raises(lc.InputError, match=r"playback must go on from row 60; got 0; .*speed='max'"):
        reader.partitions(later, reader.initialOffset())


def test_heartbeats_before_4_2_never_go_back() -> None:
    reader = ReaderBefore42(HeartbeatReader(1_000_000, 100_000))
    far = {"beat": 2**40}
    reader.partitions(far, far)
    assert reader.latestOffset() == far
