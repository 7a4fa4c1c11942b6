"""The strategy of CONTRIBUTING.md on Spark: verb, view, counter, explain and refusals, with no change elsewhere."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import pytest
from pyspark import cloudpickle
from pyspark.sql import SparkSession

import latecomer as lc
from latecomer.spark.counters import unaccounted
from tests.contributing import USE, followed

# A hundred readings, a second apart: every tenth is 15 seconds late, every fifth above the limit.
COUNT, LATE, ALARMS = 100, 10, 20
READINGS = """
    SELECT timestamp_seconds(1760000000 + id - if(id % 10 = 3, 15, 0)) AS ts, cast(id % 4 AS int) AS meter,
           cast(if(id % 5 = 0, 6, 1) AS double) AS kwh, timestamp_seconds(1760000000 + id) AS received_at
    FROM range(100)
"""


def test_strategy_of_the_page_works_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    readings = spark.sql(READINGS)
    with followed(tmp_path) as files:
        for name in ("watch", "watch.watch"):
            cloudpickle.register_pickle_by_value(import_module(name))  # workers cannot import the folder of a test
        known: dict[str, object] = {"readings": readings, "folder": str(tmp_path)}
        exec(files[USE], known)
        counters, result = known["counters"], known["result"]
        assert isinstance(counters, dict)
        assert isinstance(result, lc.Result)
        assert (counters["seen"], counters["late"], counters["given"]) == (COUNT, LATE, COUNT - LATE)
        assert unaccounted(counters) == 0
        alarms = spark.read.parquet(f"{tmp_path}/alarms")
        assert counters["alarms"] == alarms.count() == ALARMS
        assert alarms.where("kwh <= 5").count() == 0
        assert result.view("alarms").count() == ALARMS
        text = result.explained(counters)
        assert "\nthe watch\n  watch         kwh above 5.0, latency 10 seconds " in text
        assert "alarms" in text.partition("after it")[2]
        events = lc.disordered(readings, time="ts", key="meter")
        assert "watch(column, above=..., latency=...)" in events.explained()
        with pytest.raises(lc.OrderSensitiveError, match=r"or \.watch\(column, .*\) to show rows above a limit"):
            events.count()  # type: ignore[attr-defined]
        for name in ("watch", "watch.watch"):
            cloudpickle.unregister_pickle_by_value(sys.modules[name])
    with pytest.raises(AttributeError, match="no attribute 'watch'"):
        events.watch("kwh", above=5.0, latency="10 seconds")  # type: ignore[attr-defined]
