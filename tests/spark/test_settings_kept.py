"""What a checkpoint is bound to: changed steps, damaged settings, starts that are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.conf import RuntimeConfig
from pyspark.sql.streaming.readwriter import DataStreamWriter

import latecomer as lc
from latecomer.spark.session import PARTITIONS, PROVIDER
from tests.spark.streams import SCHEMA, make_events, write_in_parts


def events(spark: SparkSession, folder: Path, **others: Any) -> lc.Events:
    df = spark.readStream.schema(SCHEMA).parquet(str(folder / "in"))
    return lc.disordered(df, time="ts", key="key", arrival="arrival", order="id", shards=2, **others)


def run(result: lc.Result, folder: Path, **others: Any) -> None:
    query = result.start(folder / "out", checkpoint=folder / "checkpoint", available_now=True, **others)
    query.awaitTermination()


def test_a_changed_input_goes_on_only_where_it_is_said(spark: SparkSession, tmp_path: Path) -> None:
    write_in_parts(make_events(300, seed=1), tmp_path / "in", 1)
    chosen = ("id", "key", F.col("value").alias("v"))
    run(events(spark, tmp_path).where("id >= 0").select(*chosen).reorder("1 s"), tmp_path)
    computed = ("id", "key", (F.col("value") * 2).alias("v"))
    others = {
        r"input\.steps: .*where id >= 0": events(spark, tmp_path).where("id > 7").select(*chosen),
        r"input\.steps: .*value AS v": events(spark, tmp_path).where("id >= 0").select(*computed),
        r"input\.max_ahead_us: null\); got '3600000000'": events(spark, tmp_path, max_ahead="1 hour")
        .where("id >= 0")
        .select(*chosen),
    }
    for text, changed in others.items():
        with pytest.raises(lc.StateError, match=text + r".*start\(\.\.\., from_here_on=True\) if rows"):
            run(changed.reorder("1 s"), tmp_path)
    last = list(others.values())[-1].reorder("1 s")
    run(last, tmp_path, from_here_on=True)
    run(last, tmp_path)  # said once, it holds
    with pytest.raises(lc.StateError, match=r"input\.max_ahead_us: 3600000000"):
        run(events(spark, tmp_path).where("id >= 0").select(*chosen).reorder("1 s"), tmp_path)


def test_a_start_that_is_refused_binds_nothing(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_in_parts(make_events(100, seed=1), tmp_path / "in", 1)

    def refuse(*arguments: Any) -> None:
        raise RuntimeError("not now")

    with monkeypatch.context() as patched:
        patched.setattr(DataStreamWriter, "start", refuse)
        with pytest.raises(RuntimeError, match="not now"):
            run(events(spark, tmp_path).reorder("1 hour"), tmp_path)
    run(events(spark, tmp_path).where("id >= 0").reorder("1 s"), tmp_path)
    with pytest.raises(lc.StateError, match=r"latency_us: 1000000"):
        run(events(spark, tmp_path).where("id >= 0").reorder("1 hour"), tmp_path)


def test_a_state_store_that_is_refused_is_found_before_anything_is_written(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_in_parts(make_events(10, seed=1), tmp_path / "in", 1)
    kept = spark.conf.get(PROVIDER)
    spark.conf.set(PROVIDER, "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider")
    result = events(spark, tmp_path).reorder("1 s")
    try:
        with pytest.raises(lc.InputError, match="must be a RocksDB provider"):
            run(result, tmp_path, tune=False)
    finally:
        spark.conf.set(PROVIDER, str(kept))
    assert not (tmp_path / "checkpoint").exists()
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("damage", ["", "{", '["a list"]', '{"format": FORMAT}', "\x00\x01"])
def test_damaged_settings_are_refused_with_a_sentence(spark: SparkSession, tmp_path: Path, damage: str) -> None:
    from latecomer.spark.state import FORMAT_VERSION

    write_in_parts(make_events(100, seed=1), tmp_path / "in", 1)
    result = events(spark, tmp_path).reorder("1 s")
    files = [tmp_path / "checkpoint" / "latecomer" / "000000-abc.json", tmp_path / "checkpoint" / "offsets" / "0"]
    for file in files:
        file.parent.mkdir(parents=True)
    files[0].write_text(damage.replace("FORMAT", str(FORMAT_VERSION)) + "\n")
    files[1].write_text("v1\n{}\n")
    with pytest.raises(lc.StateError, match=r"must be (what latecomer wrote|new, or one that latecomer made); got"):
        run(result, tmp_path)


def test_a_query_that_got_the_settings_of_another_stops_before_it_writes(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_in_parts(make_events(100, seed=1), tmp_path / "in", 1)
    result, real = events(spark, tmp_path).reorder("1 s"), DataStreamWriter.start

    def start(writer: DataStreamWriter, *arguments: Any) -> Any:
        spark.conf.set(PARTITIONS, "3")  # as another thread may
        return real(writer, *arguments)

    monkeypatch.setattr(DataStreamWriter, "start", start)
    try:
        with pytest.raises(Exception, match=r"shuffle\.partitions must be 2, one for each shard; got '3'; another"):
            run(result, tmp_path)
        assert spark.conf.get(PARTITIONS) == "3", "what another thread has set is not put back"
    finally:
        spark.conf.set(PARTITIONS, "2")
    assert not list((tmp_path / "out").rglob("part-*.parquet"))


def test_a_checkpoint_that_was_begun_without_tuning_goes_on_with_it(spark: SparkSession, tmp_path: Path) -> None:
    write_in_parts(make_events(200, seed=1), tmp_path / "in", 1)
    result = events(spark, tmp_path).reorder("1 s")
    spark.conf.set(PARTITIONS, "3")
    try:
        run(result, tmp_path, tune=False)
    finally:
        spark.conf.set(PARTITIONS, "2")
    write_in_parts(make_events(400, seed=1).slice(200), tmp_path / "in", 1, first=1)
    with pytest.warns(lc.LatecomerWarning, match=r"has 3 partitions for 2 shards, as it was begun with \(tune=False\)"):
        run(result, tmp_path)
    assert {row["batch"] for row in lc.read(spark, tmp_path / "out", "results").collect()} == {0, 1}


def test_what_already_has_the_wanted_value_is_not_set(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_in_parts(make_events(100, seed=1), tmp_path / "in", 1)
    done, real = list[str](), RuntimeConfig.set

    def note(conf: RuntimeConfig, name: str, value: str) -> None:
        done.append(name)
        real(conf, name, value)

    monkeypatch.setattr(RuntimeConfig, "set", note)
    run(events(spark, tmp_path).reorder("1 s"), tmp_path)
    assert PARTITIONS not in done
    assert PROVIDER not in done


def test_a_name_that_is_taken_is_refused_and_the_query_that_has_it_runs_on(spark: SparkSession, tmp_path: Path) -> None:
    write_in_parts(make_events(100, seed=1), tmp_path / "in", 1)
    result, checkpoint = events(spark, tmp_path).reorder("1 s"), tmp_path / "checkpoint"
    query = result.start(tmp_path / "out", checkpoint=checkpoint, name="orders")
    try:
        query.processAllAvailable()
        with pytest.raises(lc.InputError, match="name must be that of no query that runs in this session"):
            result.start(tmp_path / "out", checkpoint=checkpoint, name="orders")
        write_in_parts(make_events(200, seed=2), tmp_path / "in", 1, first=1)
        query.processAllAvailable()
    finally:
        query.stop()
