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


DAYS_AHEAD_US = 400 * 86_400_000_000


@pytest.mark.parametrize("bad", [[0], [40], [0, 1, 2, 3, 40, 599]])
def test_a_micro_batch_of_nothing_but_absurd_times_moves_nothing(bad: list[int]) -> None:
    ts_us = START_US + np.arange(600) * 1_000_000
    wrong = np.isin(np.arange(600), bad)
    table = rows(ts=stamps(np.where(wrong, ts_us + DAYS_AHEAD_US, ts_us)), came=stamps(ts_us))
    ways = compared(table, max_ahead="1 hour", batches=600, ways=[WAYS[0], *WAYS[2:]])
    assert all(way.scores.exact for way in ways)
    assert [way.doors.quarantined for way in ways] == [0, len(bad), len(bad)]
    assert ways[0].doors.gone == len(bad)


@pytest.mark.parametrize("year", ["1969-12-31", "2200-01-01", "9999-01-01"])
def test_times_that_no_query_takes_are_in_quarantine_and_move_the_watermark_only(year: str) -> None:
    absurd_us = np.datetime64(year, "us").astype(np.int64)
    ts_us = START_US + np.arange(600) * 1_000_000
    table = rows(ts=stamps(np.where(np.arange(600) == 300, absurd_us, ts_us)), came=stamps(ts_us))
    spark, *ours = compared(table, ways=["withWatermark('5 seconds')", *WAYS[2:]])
    assert all(way.scores.exact and way.doors.quarantined == 1 for way in ours)
    assert (spark.doors.gone > 100) == (year > "2000")


def test_a_stream_of_absurd_times_is_refused() -> None:
    ts_us = START_US + np.arange(600) * 1_000_000
    with pytest.raises(InputError, match="none too far ahead; got '0 of 600'; look at unit, and at max_ahead"):
        compared(rows(ts=stamps(ts_us + DAYS_AHEAD_US), came=stamps(ts_us)), max_ahead="1 hour")
    with pytest.raises(InputError, match="have at least 3 rows with a time from 1970-01-01"):
        compared(rows(ts=stamps(ts_us - 2 * START_US)))


def test_nan_is_the_largest_and_one_key_and_so_is_zero() -> None:
    values = np.where(np.arange(600) % 7 == 0, np.nan, np.arange(600.0))
    keys = pa.array(np.tile([0.0, -0.0, np.nan], 200))
    for name in ("max", "min", "sum", "mean"):
        assert all_right(compared(rows(v=pa.array(values), key=keys), aggregates=[f"{name}('v')"]))
    only = pa.array(np.full(600, np.nan))
    assert all_right(compared(rows(v=only), aggregates=["max('v')", "min('v')"]))


def test_means_of_large_numbers_are_taken_as_floats() -> None:
    large = pa.array(2**62 + np.arange(600) % 2)
    assert all_right(compared(rows(v=large), aggregates=["mean('v')"], window="1 second", key=None, ways=WAYS[:1]))


def test_a_deadline_needs_spark() -> None:
    with pytest.raises(InputError, match="slack with a deadline must be run on Spark"):
        compared(rows(), ways=["slack(deadline='6 seconds')"], source="key")


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"key": ["key", "key"]}, "key must name each column once; got 'key'"),
        ({"batches": 2.5}, "batches must be a whole number; got 2.5"),
        ({"aggregates": [3]}, "aggregates must be calls as text"),
        ({"ways": "tiers('1 s')", "aggregates": "count('nothing')"}, "nothing"),
    ],
)
def test_what_cannot_be_compared_is_named(asked: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        compared(rows(), **asked)


def test_a_key_that_is_named_as_a_column_of_results_is_refused() -> None:
    with pytest.raises(InputError, match="key must be no column that results have; got 'change'; rename it"):
        compared(rows().rename_columns(["ts", "came", "change"]), key="change")


def test_one_way_and_one_aggregate_may_stand_alone() -> None:
    assert all_right(compared(rows(), ways="tiers('1 day')", aggregates="count()"))
