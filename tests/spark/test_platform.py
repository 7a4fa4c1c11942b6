"""A session that is not ours: settings that may not be changed, nothing may be kept, workers without the package."""

from __future__ import annotations

import os
import signal
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.conf import RuntimeConfig

import latecomer as lc
from latecomer.spark import shipping
from latecomer.spark.session import PARTITIONS, PROVIDER, changed_settings
from tests.spark.streams import LATENCY_US, SCHEMA, expected, make_events, write_in_parts


class RefusedError(PySparkException):
    """What a platform says."""


def refuse(*arguments: Any, **others: Any) -> None:
    raise RefusedError("[CONFIG_NOT_AVAILABLE] not on this platform")


def result_of(spark: SparkSession, folder: Path) -> lc.Result:
    df = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
    events = lc.disordered(df, time="ts", key="key", source="source", arrival="arrival", order="id", shards=2)
    return events.where("id >= 0").reorder(f"{LATENCY_US} us")


def check_rows(folder: Path, given: list[int], late: list[int], held: int) -> None:
    assert sorted(pq.read_table(folder / "out" / "late")["id"].to_pylist()) == late
    assert sorted(pq.read_table(folder / "out" / "results")["id"].to_pylist()) == sorted(given[: len(given) - held])


def test_a_platform_that_refuses_settings_and_keeps_nothing_gives_the_same(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = make_events(900, seed=6)
    given, late = expected(events)
    write_in_parts(events, tmp_path / "in", 3)
    spark.conf.set(PARTITIONS, "3")
    result = result_of(spark, tmp_path)
    try:
        with monkeypatch.context() as patched, warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            patched.setattr(RuntimeConfig, "set", refuse)
            patched.setattr(RuntimeConfig, "unset", refuse)
            patched.setattr(DataFrame, "persist", refuse)
            patched.setattr(type(spark.range(1)), "persist", refuse)
            query = result.start(tmp_path / "out", checkpoint=tmp_path / "checkpoint", available_now=True)
            query.awaitTermination()
    finally:
        spark.conf.set(PARTITIONS, "2")
    texts = [str(each.message) for each in said if issubclass(each.category, lc.LatecomerWarning)]
    assert sum("does not let us change" in text and PARTITIONS in text for text in texts) == 1
    assert sum("keeps no data between actions" in text for text in texts) == 1
    batches = [counters for progress in query.recentProgress if (counters := lc.read_counters(progress))]
    assert sum(batch["seen"] for batch in batches) == 900
    check_rows(tmp_path, given, late, batches[-1]["held"])


def test_what_cannot_be_read_or_put_back_stops_nothing(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    kept, real = spark.conf.get(PARTITIONS), RuntimeConfig.get

    def get(conf: RuntimeConfig, name: str, *default: Any) -> Any:
        return refuse() if name == PARTITIONS else real(conf, name, *default)

    monkeypatch.setattr(RuntimeConfig, "unset", refuse)
    monkeypatch.setattr(RuntimeConfig, "get", get)
    wanted = {PARTITIONS: "17", "latecomer.one": "1", "latecomer.two": "2"}
    with (
        pytest.warns(lc.LatecomerWarning, match=r"put back latecomer\.one, latecomer\.two: set"),
        changed_settings(spark, wanted) as refused,
    ):
        assert refused == [PARTITIONS]
    monkeypatch.undo()
    assert spark.conf.get(PARTITIONS) == kept, "what cannot be read is left alone"
    for name in ("latecomer.one", "latecomer.two"):
        spark.conf.unset(name)


def test_what_spark_says_of_a_worker_is_understood() -> None:
    class Workers:
        """A session whose workers cannot run anything."""

        def __init__(self, text: str) -> None:
            self.text = text

        def range(self, count: int) -> Any:
            raise PySparkException(self.text)

    mismatch = "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.9 than that in driver: 3.11"
    asked: Any = shipping._asked
    assert asked(Workers(mismatch)) == {"python": "3.9"}
    assert asked(Workers("ModuleNotFoundError: No module named 'pyarrow'"))["missing"] == "pyarrow"
    missing = """[JOB] Task 0 in stage 1.0 failed: java.io.IOException: Cannot run program "/no/python": error=2
        at java.base
    Caused by: java.io.IOException: error=2, No such file or directory"""
    with pytest.raises(lc.LatecomerError, match=r"workers must run Python; got .*No such file.*; set PYSPARK_PYTHON"):
        asked(Workers(missing))


def test_without_tuning_no_setting_is_touched(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = make_events(300, seed=7)
    given, late = expected(events)
    write_in_parts(events, tmp_path / "in", 1)
    monkeypatch.setattr(RuntimeConfig, "set", refuse)
    monkeypatch.setattr(RuntimeConfig, "unset", refuse)
    result = result_of(spark, tmp_path)
    query = result.start(tmp_path / "out", checkpoint=tmp_path / "checkpoint", available_now=True, tune=False)
    query.awaitTermination()
    counters = lc.read_counters(query.lastProgress)
    assert counters is not None
    check_rows(tmp_path, given, late, counters["held"])


def test_state_that_would_not_be_in_rocksdb_is_refused(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_in_parts(make_events(10, seed=1), tmp_path / "in", 1)
    kept = spark.conf.get(PROVIDER)
    spark.conf.set(PROVIDER, "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider")
    try:
        with monkeypatch.context() as patched:
            patched.setattr(RuntimeConfig, "set", refuse)
            with pytest.raises(lc.InputError, match=r"providerClass must be a RocksDB provider; got '.*HDFSBacked"):
                result_of(spark, tmp_path).start(tmp_path / "out", checkpoint=tmp_path / "checkpoint")
    finally:
        spark.conf.set(PROVIDER, str(kept))


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (
            {"missing": "latecomer", "error": "ModuleNotFoundError: No module named 'latecomer'"},
            r"workers must be able to import latecomer; got .*No module named 'latecomer'.*; run lc\.ship\(spark\), or",
        ),
        (
            {"missing": "numba", "error": "ModuleNotFoundError: No module named 'numba'"},
            r"workers must be able to import numba; got .*; install it where the workers run, or set PYSPARK_PYTHON",
        ),
        ({"latecomer": "0.0.9"}, r"workers must have latecomer .*, as here; got '0\.0\.9'; run lc\.ship\(spark\)"),
        ({"python": "3.9"}, r"Python of Spark's workers must be 3\.\d+, as here; got '3\.9'; set PYSPARK_PYTHON"),
    ],
)
def test_workers_that_cannot_run_it_are_found_before_the_query_starts(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: dict[str, str], message: str
) -> None:
    write_in_parts(make_events(10, seed=1), tmp_path / "in", 1)
    result = result_of(spark, tmp_path)
    real = shipping._asked(spark)
    assert real == {"python": shipping._python(), "latecomer": lc.__version__}
    monkeypatch.setattr(shipping, "_asked", lambda spark: {**real, **answer})
    shipping._checked.discard(spark)
    with pytest.raises(lc.LatecomerError, match=message):
        result.start(tmp_path / "out", checkpoint=tmp_path / "checkpoint", available_now=True)
    assert not (tmp_path / "checkpoint").exists()


def test_a_killed_python_worker_stops_nothing(spark: SparkSession, tmp_path: Path) -> None:
    killed = str(tmp_path / "killed")

    def once(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if not os.path.exists(killed):
            Path(killed).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        yield from batches

    df = spark.range(100).selectExpr("id AS ts").mapInArrow(once, "ts bigint")
    counters = lc.disordered(df, time="ts", shards=2).pass_through().write(tmp_path / "out")
    assert (counters["seen"], Path(killed).exists()) == (100, True)
