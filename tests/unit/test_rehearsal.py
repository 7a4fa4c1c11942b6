"""All ways without Spark on streams that are strange."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import latecomer as lc
from latecomer.disorder.presets.model import START_US
from latecomer.errors import InputError
from latecomer.spark.comparing import Compared

WAYS = ["withWatermark('1 day')", "withWatermark('1 day', mode='update')", "tiers('1 day')", "optimistic('1 day')"]


def stamps(us: Any) -> pa.Array:
    return pa.array(np.asarray(us, dtype=np.int64)).view(pa.timestamp("us", "UTC"))


def rows(**columns: Any) -> pa.Table:
    """Six hundred rows, one a second, every fifth some minutes late."""
    ts_us = START_US + np.arange(600) * 1_000_000
    late_us = np.where(np.arange(600) % 5 == 0, 180_000_000, 0)
    made = {"ts": stamps(ts_us), "came": stamps(ts_us + late_us), "key": pa.array(np.arange(600) % 3)}
    return pa.table({**made, **columns})


def compared(table: pa.Table, **asked: Any) -> list[Compared]:
    known: dict[str, Any] = {"window": "1 minute", "key": "key", "arrival": "came", "batches": 6, "ways": WAYS}
    return lc.compare(table, engine="python", **{**known, **asked}).ways


def all_right(ways: list[Compared]) -> bool:
    return all(way.scores.exact and way.doors.gone == 0 for way in ways)


def test_sums_that_cancel_are_right_though_rounding_differs() -> None:
    cancel = np.tile([0.1, 0.2, 0.3, -0.1, -0.2, -0.3], 100) * 1e6
    assert all_right(compared(rows(v=pa.array(cancel)), aggregates=["sum('v')", "mean('v')"], key=None))


def test_a_sum_that_lacks_a_small_value_is_wrong() -> None:
    """Beside large values, what is lost counts still."""
    values = pa.array(np.where(np.arange(600) % 5 == 0, 0.5, 1_000.0))
    lossy = compared(rows(v=values), aggregates=["sum('v')"], ways=["tiers('1 second')"])[0]
    assert lossy.scores.classes.different_left > 0


def test_text_has_a_largest_value() -> None:
    assert all_right(compared(rows(s=pa.array([f"n{i:03}" for i in range(600)])), aggregates=["max('s')", "min('s')"]))


def test_rows_without_a_key_are_a_group() -> None:
    keys = pa.array([None if number % 3 == 0 else number % 3 for number in range(600)])
    assert all_right(compared(rows(key=keys)))


@pytest.mark.parametrize(("size", "advance"), [("10 minutes", "4 minutes"), ("1000 days", "300 days")])
def test_windows_that_overlap_unevenly_lose_nothing(size: str, advance: str) -> None:
    assert all_right(compared(rows(), window=size, advance=advance))


def test_rows_without_a_time_are_left_out_and_counted() -> None:
    table = rows()
    times = pa.array([None if number % 100 == 0 else table["ts"][number] for number in range(600)])
    found = lc.compare(
        table.set_column(0, "ts", times), window="1 minute", arrival="came", engine="python", ways=WAYS, batches=6
    )
    assert found.asked.stream.left_out == 6
    assert len(found.asked.stream.ts_us) == 594
    assert all_right(found.ways)


def test_a_delay_of_spark_s_counts_in_milliseconds() -> None:
    way = compared(rows(), ways=["withWatermark('1500 us')"])[0]
    assert way.doors.answered + way.doors.gone == 600


def test_a_stream_without_rows_is_refused() -> None:
    with pytest.raises(InputError, match="the stream must have at least 3 rows; got '0 with a time, 0 without'"):
        compared(rows().slice(0, 0))


def test_few_rows_are_cut_into_fewer_micro_batches() -> None:
    found = lc.compare(rows().slice(0, 5), window="1 minute", arrival="came", engine="python", ways=WAYS)
    assert found.asked.stream.batches <= 5


def test_a_column_that_is_there_twice_is_named() -> None:
    table = rows()
    twice = pa.table([*table.columns, table["key"]], names=[*table.schema.names, "key"])
    with pytest.raises(InputError, match="name columns that are there once; got 'key'"):
        compared(twice)
