"""Windows over slices: however the slices come, the same windows, to the last bit."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from latecomer.chunks import ChunkStore
from latecomer.events import Stretches
from latecomer.windows import Count, First, Last, Max, Mean, Min, Sum, Window
from latecomer.windows.folding import SLICE, Folding, slices_of
from latecomer.windows.grid import as_grid
from latecomer.windows.slices import window_results
from latecomer.windows.slide import Slider

SLICE_US = 10
FOLDING = Folding(("key",), (Sum("value"), First("value"), Last("value")))
SIMPLE = Folding(("key",), (Sum("value"), Count(), Mean("value"), Min("number"), Max("number"), Sum("number")))
Results = dict[tuple[int, int], tuple[float, ...]]


def closed_slices(seed: int, count: int, keys: int, gap: int, folding: Folding = FOLDING) -> pa.RecordBatch:
    """Partial results of slices of which some keys, and whole stretches, are missing."""
    rng = np.random.default_rng(seed)
    number, key = np.divmod(np.arange(count * keys), keys)
    there = np.flatnonzero((rng.random(len(number)) < 0.7) & ((number < count // 2) | (number >= count // 2 + gap)))
    rows = {
        "ts": pa.array(number[there] * SLICE_US - 70, pa.timestamp("us", "UTC")),
        "key": pa.array(key[there]),
        "value": pa.array(rng.normal(size=len(there)) * 10.0 ** rng.integers(-8, 8, len(there))),
        "number": pa.array(rng.integers(-9, 9, len(there)), pa.int32()),
    }
    return folding.partials(pa.RecordBatch.from_pydict(rows), "ts", Stretches(SLICE_US))[0][1]


def slide(table: pa.RecordBatch, window: Window, stops: list[int], folding: Folding = FOLDING) -> Results:
    """The windows that slices complete, closed in steps up to each of these numbers."""
    store, found, done = ChunkStore(), Results(), 0
    for last in stops:
        cut = int(np.searchsorted(slices_of(table), last * SLICE_US, side="right"))
        part = table.slice(done, cut - done) if cut > done else None
        windows = Slider(folding, window, store, 0).close(part, last)
        done, store = cut, ChunkStore.restore(store.snapshot())
        if windows is not None:
            merged = folding.reduced(windows, folding.groups(windows, (SLICE,)))
            for start, _, key, *values in zip(*window_results(folding, window, merged).columns, strict=True):
                place = (start.value // SLICE_US, key.as_py())
                assert place not in found, "a window was given twice"
                found[place] = tuple(value.as_py() for value in values)
    return found


def one_by_one(table: pa.RecordBatch, window: Window) -> Results:
    """Which windows there are, and the first and last of each, from its slices."""
    found: dict[tuple[int, int], list[tuple[float, ...]]] = {}
    results = [column.to_pylist() for column in FOLDING.results(table)]
    numbers = (slices_of(table) // SLICE_US).tolist()
    for number, key, *values in zip(numbers, table.column("key").to_pylist(), *results, strict=True):
        for start in range(number - window.slices + 1, number + 1):
            if start % window.step == 0:
                found.setdefault((start, key), []).append(tuple(values))
    return {place: (0.0, parts[0][1], parts[-1][2]) for place, parts in found.items()}


streams = given(
    seed=st.integers(0, 2**32 - 1),
    count=st.integers(1, 40),
    gap=st.integers(0, 15),
    shape=st.sampled_from([(2, 1), (3, 1), (3, 2), (7, 1), (7, 3), (24, 1), (60, 7)]),
    cuts=st.lists(st.integers(-10, 45), max_size=12),
)


@settings(max_examples=40)
@streams
def test_however_slices_come_the_windows_are_the_same(
    seed: int, count: int, gap: int, shape: tuple[int, int], cuts: list[int]
) -> None:
    size, advance = (number * SLICE_US for number in shape)
    window, table = Window(f"{size} us", f"{advance} us"), closed_slices(seed, count, 3, gap)
    assert (window.slice_us, window.slices) == (SLICE_US, shape[0])
    at_once = slide(table, window, [1000])
    with patch("latecomer.windows.slide._MANY", 0):  # pairs one by one
        assert slide(table, window, [*sorted(set(cuts)), 1000]) == at_once
    with patch("latecomer.windows.slide.CHUNK_BYTES", 500):  # endings in many bands
        assert slide(table, window, [*range(-10, 45), 1000]) == at_once
    assert {place: (0.0, *values[1:]) for place, values in at_once.items()} == one_by_one(table, window)


@settings(max_examples=40)
@streams
def test_windows_merged_in_a_grid_are_those_merged_place_by_place(
    seed: int, count: int, gap: int, shape: tuple[int, int], cuts: list[int]
) -> None:
    window = Window(f"{shape[0] * SLICE_US} us", f"{shape[1] * SLICE_US} us")
    table = closed_slices(seed, count, 3, gap, SIMPLE)
    in_a_grid = slide(table, window, [1000], SIMPLE)
    with patch("latecomer.windows.slide.as_grid", return_value=None):
        assert slide(table, window, [1000], SIMPLE) == in_a_grid
    with patch("latecomer.windows.slide.CHUNK_BYTES", 500):  # endings in many bands
        assert slide(table, window, [*sorted(set(cuts)), 1000], SIMPLE) == in_a_grid


def test_a_grid_is_made_where_places_are_many_and_states_simple() -> None:
    window, table = Window("240 us", "10 us"), closed_slices(1, 30, 3, 0, SIMPLE)
    with patch("latecomer.windows.slide.as_grid", wraps=as_grid) as made:
        slide(table, window, [1000], SIMPLE)
    assert made.call_count == 2  # the endings, and the beginnings
    columns = np.zeros(table.num_rows, dtype=np.int64)
    assert as_grid(SIMPLE, table, columns, 8) is not None
    assert as_grid(SIMPLE, table, columns, 9) is None, "mostly empty"
    edges = closed_slices(1, 30, 3, 0)
    assert as_grid(FOLDING, edges, columns[: edges.num_rows], 8) is None
    huge = Folding((), (Sum("number"),))
    rows = pa.RecordBatch.from_pydict({"ts": pa.array([0], pa.timestamp("us", "UTC")), "number": pa.array([2**60])})
    assert as_grid(huge, huge.partials(rows, "ts", Stretches(SLICE_US))[0][1], np.zeros(1, dtype=np.int64), 8) is None
