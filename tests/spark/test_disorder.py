"""Disorder made and measured on Spark equals disorder made and measured in one process, however the data is cut."""

from __future__ import annotations

import csv
import gzip
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import latecomer as lc
from latecomer.disorder.profile import Clock, Profile
from latecomer.disorder.profiler import Recorded, profile_recorded
from latecomer.spark.profiling import inversions
from latecomer.spark.profiling.blocks import sorted_blocks
from latecomer.spark.profiling.frame import profile_blocks
from latecomer.spark.session import changed_settings

SPLIT = "spark.sql.files.maxPartitionBytes"


def write_source(folder: Path, rows: int) -> None:
    """CSV files of different size, one of them gzip, the largest last by name, so that Spark takes it first.

    Devices look like numbers, and some are empty; one row is bad.
    """
    rng = np.random.default_rng(5)
    times = 1_700_000_000_000 + np.arange(rows) * 10 - np.where(rng.random(rows) < 0.02, 500, 0)
    lines = [f"{ts},{'' if place % 9 == 4 else place % 9 + 0.5}, {place} " for place, ts in enumerate(times)]
    lines[rows // 2] = "not a time,x,y"
    folder.mkdir()
    header = "ts,device,value\n"
    (folder / "a.csv.gz").write_bytes(gzip.compress((header + "\n".join(lines[: rows // 8])).encode()))
    for name, part in (("b.csv", lines[rows // 8 : rows // 4]), ("c d[1].csv", lines[rows // 4 :])):
        (folder / name).write_text(header + "\n".join(part) + "\n")


def asked(folder: Path, distribution: str) -> dict[str, Any]:
    time = {"field": "ts", "unit": "ms"}
    experiments = [{"factor": 20, "maxDelay": 2000, "distribution": distribution, "name": "x", "seed": 4}]
    source = {"path": str(folder), "time": time, "device": "device", "bad_rows": "quarantine"}
    return {"source": source, "experiments": experiments}


def same_rows(a: Path, b: Path) -> bool:
    return bool(pq.read_table(a).equals(pq.read_table(b)))


def csv_rows(folder: Path) -> list[list[str]]:
    """All rows of a folder's CSV files, in order, each file with its header."""
    found = []
    for path in sorted(folder.glob("*.csv")):
        with path.open(newline="") as file:
            header, *rows = csv.reader(file)
        found += rows
    return [header, *found]


def test_the_same_stream_is_made_from_1_2_and_7_blocks(spark: SparkSession, tmp_path: Path) -> None:
    write_source(tmp_path / "in", rows=6_000)
    size = sum(path.stat().st_size for path in (tmp_path / "in").iterdir())
    for blocks, distribution, form in ((1, "uniform", "parquet"), (2, "uniform", "csv"), (7, "batched", "parquet")):
        wanted, plain, out = (
            asked(tmp_path / "in", distribution),
            tmp_path / f"plain-{blocks}",
            tmp_path / f"spark-{blocks}",
        )
        expected = lc.generate(wanted, plain, engine="python", format=cast(Any, form))
        assert expected[0].events == 5_999
        with changed_settings(spark, {SPLIT: str(size // blocks + 1), "spark.sql.files.openCostInBytes": "0"}):
            assert lc.generate(wanted, out, engine="spark", format=cast(Any, form)) == expected
        if form == "parquet":
            assert same_rows(plain / "x", out / "x")
        else:
            assert csv_rows(plain / "x") == csv_rows(out / "x")
        assert same_rows(plain / "quarantine.parquet", out / "quarantine.parquet")


def test_one_row_far_in_the_future_does_not_spoil_the_parts(spark: SparkSession, tmp_path: Path) -> None:
    times = [4_000_000_000_000_000, *range(1_700_000_000_000_000, 1_700_000_003_000_000, 1_000)]
    pq.write_table(pa.table({"ts": times}), tmp_path / "in.parquet", row_group_size=700)
    wanted = {"source": {"path": str(tmp_path / "in.parquet"), "time": {"field": "ts"}}}
    wanted["experiments"] = cast(Any, [{"factor": 100, "maxDelay": 50, "name": "x"}])
    expected = lc.generate(wanted, tmp_path / "plain", engine="python")
    assert lc.generate(wanted, tmp_path / "spark", engine="spark") == expected
    assert same_rows(tmp_path / "plain" / "x", tmp_path / "spark" / "x")


def recorded(count: int, seed: int) -> Recorded:
    rng = np.random.default_rng(seed)
    arrival_us = np.sort(1_700_000_000_000_000 + rng.integers(0, count * 300, count))
    ts_us = arrival_us - np.where(rng.random(count) < 0.4, rng.integers(0, 2_000_000, count), 0)
    ts_us -= np.where(rng.random(count) < 0.002, rng.integers(0, 40_000_000, count), 0)
    ts_us += np.where(rng.random(count) < 0.003, rng.integers(0, 3_000, count), 0)
    key = pa.array([None if k == 7 else f"k{k}" for k in rng.integers(0, 30, count)])
    return Recorded(ts_us, arrival_us, key, pa.array([f"s{s}" for s in rng.integers(0, 4, count)]))


def numbers(found: Profile) -> dict[str, Any]:
    picture = {name: np.asarray(getattr(found.picture, name)).tolist() for name in ("across", "up", "count")}
    measured = {**found.to_dict(), "picture": picture, "arrival": found.picture.arrival_us}
    return {name: value for name, value in measured.items() if name != "hole_choice"}  # in a process alone


def test_a_profile_on_spark_equals_one_in_a_process(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = recorded(9_000, seed=1)
    table = pa.table(
        {
            "ts_us": stream.ts_us,
            "arrival_us": stream.arrival_us,
            "key": stream.key,
            "source": stream.source,
            "order0": np.arange(9_000),
        }
    )
    shuffled = spark.createDataFrame(table.take(pa.array(np.random.default_rng(2).permutation(9_000)))).repartition(5)
    monkeypatch.setattr(inversions, "RANGE", 700)
    monkeypatch.setattr("latecomer.spark.profiling.blocks.SAMPLE", 16)
    monkeypatch.setattr("latecomer.spark.profiling.lateness.SHIPPED", 1)
    clock = Clock(tick_us=400_000, max_ahead_us=1_000)
    blocks = sorted_blocks(shuffled, 1_000, clock)
    try:
        found = profile_blocks(blocks, "stream", 1_000_000)
    finally:
        blocks.close()
    assert len(blocks.notes) >= 9
    assert found.ahead is not None
    assert found.ahead.set_aside > 0 < found.ahead.events
    assert numbers(found) == numbers(profile_recorded(stream, period_us=1_000_000, clock=clock))


def test_files_and_frames_are_profiled_alike(spark: SparkSession, tmp_path: Path) -> None:
    stream = recorded(2_000, seed=3)
    stamps = {"ts": stream.ts_us, "arrival": stream.arrival_us}
    table = pa.table({name: pa.array(values, pa.timestamp("us", "UTC")) for name, values in stamps.items()})
    table = table.append_column("source", stream.source)
    pq.write_table(table, tmp_path / "in.parquet", row_group_size=300)
    expected = profile_recorded(replace(stream, key=None), name="in.parquet", clock=Clock(100_000))
    files = lc.profile(tmp_path / "in.parquet", time="ts", arrival="arrival", source="source", engine="spark")
    assert numbers(files) == numbers(expected)
    frame = spark.read.parquet(str(tmp_path / "in.parquet"))
    by_arrival = lc.profile(frame, time="ts", arrival="arrival")
    assert by_arrival.events == 2_000
    assert lc.profile(frame.limit(0), time="ts", arrival="arrival", source="source").sources == 0
    many = frame.selectExpr("ts", *[f"CAST(0 AS INT) AS c{place}" for place in range(11)], "arrival AS c11")
    in_order = lc.profile(many, time="ts", order=[f"c{place}" for place in range(12)])
    assert in_order.runs == by_arrival.runs
    with pytest.raises(lc.InputError, match="must know the order of arrival"):
        lc.profile(frame, time="ts")
    with pytest.raises(lc.InputError, match=r"key= must name a column; got 'meter'"):
        lc.profile(frame, time="ts", arrival="arrival", key="meter")
    with pytest.raises(lc.InputError, match=r"time= column 'source' must be a time"):
        lc.profile(frame.selectExpr("true AS source", "arrival"), time="source", arrival="arrival")


def test_a_bad_row_is_named_on_spark_too(spark: SparkSession, tmp_path: Path) -> None:
    write_source(tmp_path / "in", rows=400)
    with pytest.raises(
        lc.InputError, match=r"c d\[1\]\.csv, line 102, field 'ts': must be a number of ms; got 'not a t"
    ):
        lc.profile(tmp_path / "in", time="ts", unit="ms", engine="spark")
    found = lc.profile(tmp_path / "in", time="ts", unit="ms", engine="spark", quarantine=True)
    assert (found.events, found.quarantined) == (399, 1)
    (tmp_path / "in" / "a.csv.gz").write_bytes((tmp_path / "in" / "a.csv.gz").read_bytes()[:-200])
    with pytest.raises(lc.LatecomerError, match=r"Spark must read .* to its end"):
        lc.profile(tmp_path / "in", time="ts", unit="ms", engine="spark")


@pytest.mark.parametrize("pieces", [1, 3])
def test_a_preset_on_spark_equals_its_table(spark: SparkSession, pieces: int) -> None:
    made = lc.preset("meters", meters=30, days=5, seed=2)
    found = made.frame(spark, pieces=pieces).toArrow()
    assert found.cast(made.schema).equals(made.table())


def test_a_preset_as_csv_is_the_same_from_both_engines(spark: SparkSession, tmp_path: Path) -> None:
    made = lc.preset("traffic", seconds=2, seed=2)
    plain = lc.generate(made, tmp_path / "plain", format="csv", engine="python")
    assert csv_rows(plain) == csv_rows(lc.generate(made, tmp_path / "spark", format="csv", engine="spark"))
    assert lc.profile(plain, time="ts", arrival="arrival").events == 2_000
