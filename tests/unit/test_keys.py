"""Keys put in order row by row."""

from __future__ import annotations

import numpy as np
import pytest

from latecomer.sorter.keys import ROW, look_over, pack_keys, sort_keys, spread_keys
from latecomer.sorter.runs import Packing


@pytest.mark.parametrize("reach", [1, 100, ROW, 10 * ROW])
@pytest.mark.parametrize("count", [2 * ROW + 1, 5 * ROW, 7 * ROW + 123])
def test_rows_are_stitched_together_however_far_events_stand_from_their_place(count: int, reach: int) -> None:
    rng = np.random.default_rng(count + reach)
    keys = np.argsort(np.arange(count) + rng.integers(0, reach, count), kind="stable")
    expected = np.sort(keys)
    sort_keys(keys, local=True)
    assert np.array_equal(keys, expected)


def test_one_event_that_is_very_late_is_no_trouble() -> None:
    keys = np.arange(1, 20 * ROW)
    keys[-1] = 0
    sort_keys(keys, local=True)
    assert keys[0] == 0
    assert (np.diff(keys) > 0).all()


def test_what_is_sorted_row_by_row_is_local() -> None:
    times = np.arange(10 * ROW)
    assert look_over(times).local(len(times))
    times[5 * ROW] = 0
    assert not look_over(times).local(len(times))
    assert look_over(times).low_us == 0
    assert look_over(times).descents == 1
    assert look_over(times).depth_us >= 5 * ROW - 1


@pytest.mark.parametrize("span_us", [0, 1, 1_000, 2**40])
def test_keys_spread_over_stretches_of_time_are_in_order(span_us: int) -> None:
    rng = np.random.default_rng(span_us)
    ts_us = rng.integers(-span_us, span_us + 1, 50_000)
    packing = Packing(-span_us, 17)
    keys = spread_keys(ts_us, 5, packing, look_over(ts_us))
    assert np.array_equal(keys, np.sort(pack_keys(ts_us, 5, packing)))
