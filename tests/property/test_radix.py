"""Sorting by digits against numpy's stable sort."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from latecomer.events import sort_times
from latecomer.radix import sort_bits
from latecomer.windows.grouping import group_rows


@given(
    size=st.sampled_from([0, 1, 2, 255, 256, 257, 3_000]),
    bits=st.integers(0, 50),
    low=st.integers(0, 12),
    seed=st.integers(0, 2**32 - 1),
)
@settings(max_examples=60, deadline=None)
def test_numbers_are_sorted_by_the_bits_that_are_not_in_order(size: int, bits: int, low: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    above = rng.integers(0, 1 << bits, size)
    numbers = (above << low) | np.sort(rng.integers(0, 1 << low, size))
    expected = np.sort(numbers)
    assert sort_bits(numbers, low, bits).tolist() == expected.tolist()


@given(
    size=st.sampled_from([1, 2, 300, 5_000]),
    bits=st.integers(0, 62),
    start=st.integers(-(2**62), 0),
    seed=st.integers(0, 2**32 - 1),
)
@settings(max_examples=60, deadline=None)
def test_times_are_sorted_stably_whatever_their_range(size: int, bits: int, start: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    ts_us = start + rng.choice(rng.integers(0, 1 << bits, max(1, size // 3)), size)
    given_us = ts_us.copy()
    ranked, positions = sort_times(ts_us)
    expected = np.argsort(ts_us, kind="stable")
    assert positions.tolist() == expected.tolist()
    assert ranked.tolist() == ts_us[expected].tolist()
    assert ts_us.tolist() == given_us.tolist()


@given(size=st.sampled_from([1, 300, 2_000]), bits=st.integers(1, 62), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_groups_of_wide_numbers_hold_equal_rows_only(size: int, bits: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    columns = [rng.choice(rng.integers(0, 1 << bits, 7), size) for _ in range(3)]
    groups = group_rows(columns)
    rows = list(zip(*(column[groups.order].tolist() for column in columns), strict=True))
    assert sorted(rows) == sorted(zip(*(column.tolist() for column in columns), strict=True))
    firsts = [rows[start] for start in groups.starts.tolist()]
    assert len(set(firsts)) == len(firsts) == len(set(rows))
    assert all(len(set(part)) == 1 for part in _parts(rows, groups.starts.tolist()))


def _parts(rows: list[tuple[int, ...]], starts: list[int]) -> list[list[tuple[int, ...]]]:
    return [rows[start:stop] for start, stop in zip(starts, [*starts[1:], len(rows)], strict=True)]
