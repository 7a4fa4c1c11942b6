"""Windows that are given at once, in small cases computed by hand; what is read, and what is refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import latecomer as lc
from latecomer.chunks import ChunkStore, MemoryBackend
from latecomer.events import EVENT_CHANGE, TICK, EventBatch, Layout
from latecomer.optimistic import OptimisticSessions, OptimisticWindows
from latecomer.outputs import Lane, Output
from latecomer.runner import Between, Runner
from latecomer.windows import Count, Custom, Max, SessionWindow, Sum, Window

LAYOUT = Layout("ts", ("key",))
Row = tuple[int, float, int]  # ts, n, and the change
Given = tuple[int, int, int, Any, str, bool]  # change, start, end, result, pane, final


def batch(tick: int, rows: Sequence[Row], *, retracting: bool = False, key: str = "a") -> EventBatch:
    columns = {
        "ts": pa.array([row[0] for row in rows], pa.int64()),
        "key": pa.array([key] * len(rows)),
        "n": pa.array([row[1] for row in rows], pa.float64()),
        TICK: pa.array([tick] * len(rows), pa.int64()),
        **({EVENT_CHANGE: pa.array([row[2] for row in rows], pa.int8())} if retracting else {}),
    }
    return EventBatch(pa.RecordBatch.from_pydict(columns), LAYOUT)


def said(outputs: Sequence[Output], name: str) -> list[Given]:
    rows = [row for output in outputs if output.lane is Lane.RESULTS for row in output.rows.to_pylist()]
    names = ("change", "window_start", "window_end", name, "pane", "final")
    return [tuple(row[each] for each in names) for row in rows]


def changes(asked: Any, batches: Sequence[Sequence[Row]], name: str, *, retracting: bool = False) -> list[list[Given]]:
    """What each micro-batch gives, and in the end what is left, of a machine that is restored after each."""
    runner = Runner(asked, LAYOUT, between=Between.RESTORE)
    found = [
        said(runner.push(batch(tick, rows, retracting=retracting)).outputs, name) for tick, rows in enumerate(batches)
    ]
    return [*found, said(runner.finish(), name)]


def test_a_window_is_given_with_its_first_row_and_taken_back_with_the_next() -> None:
    asked = OptimisticWindows(Window("10 us"), (Count(),), "20 us", True)
    found = changes(asked, [[(1, 1, 1)], [(12, 1, 1), (3, 1, 1)], [(31, 1, 1)], [(8, 1, 1)]], "count")
    assert found == [
        [(1, 0, 10, 1, "early", False)],
        [(-1, 0, 10, 1, "revised", False), (1, 0, 10, 2, "revised", False), (1, 10, 20, 1, "early", False)],
        [(1, 30, 40, 1, "early", False), (None, 0, 10, 2, "on_time", True)],
        [],
        [(None, 10, 20, 1, "on_time", True), (None, 30, 40, 1, "on_time", True)],
    ]


def test_a_window_that_is_as_it_was_is_not_given_again() -> None:
    asked = OptimisticWindows(Window("10 us"), (Max("n"),), "20 us")
    runner = Runner(asked, LAYOUT)
    assert len(said(runner.push(batch(0, [(1, 5, 1)])).outputs, "max_n")) == 1
    pushed = runner.push(batch(1, [(2, 4, 1)]))
    assert (pushed.outputs, pushed.counters) == ([], {"voided": 0, "recomputed": 1, "missed_windows": 0})


def test_a_row_that_missed_a_window_counts_in_the_others_and_is_taken_back_from_those() -> None:
    asked = OptimisticWindows(Window("20 us", "10 us"), (Count(),), "5 us")
    early, late = (9, 1.0, 1), (9, 1.0, -1)
    found = changes(asked, [[early, (14, 1, 1)], [(16, 1, 1)], [early], [late], [late]], "count", retracting=True)
    assert found[0] == [(1, -10, 10, 1, "early", False), (1, 0, 20, 2, "early", False), (1, 10, 30, 1, "early", False)]
    assert found[2] == [(-1, 0, 20, 3, "revised", False), (1, 0, 20, 4, "revised", False)]
    assert found[3] == [(-1, 0, 20, 4, "revised", False), (1, 0, 20, 3, "revised", False)]
    assert found[4] == [(-1, 0, 20, 3, "revised", False), (1, 0, 20, 2, "revised", False)]


def test_a_window_that_loses_its_last_row_is_only_taken_back() -> None:
    asked = OptimisticWindows(Window("10 us"), (Count(),), "20 us", True)
    found = changes(asked, [[(1, 1, 1), (11, 1, 1)], [(1, 1, -1)]], "count", retracting=True)
    assert found[1:] == [[(-1, 0, 10, 1, "revised", False)], [(None, 10, 20, 1, "on_time", True)]]


def test_a_session_that_joins_two_takes_both_back() -> None:
    asked = OptimisticSessions(SessionWindow("5 us"), (Count(),), "100 us")
    found = changes(asked, [[(1, 1, 1), (11, 1, 1), (30, 1, 1)], [(6, 1, 1)]], "count")
    assert [row[:4] for row in found[1]] == [(-1, 1, 6, 1), (-1, 11, 16, 1), (1, 1, 16, 3)]


def test_a_session_that_is_final_is_not_joined_though_it_is_still_stored() -> None:
    asked = OptimisticSessions(SessionWindow("10 us"), (Count(),), "400 us", True)
    found = changes(asked, [[(1000, 1, 1)], [(1411, 1, 1)], [(1005, 1, 1)], [(1007, 1, 1)]], "count")
    assert [row[:4] for row in found[1]] == [(1, 1411, 1421, 1), (None, 1000, 1010, 1)]
    assert [row[:4] for row in found[2]] == [(1, 1005, 1015, 1)]
    assert [row[:4] for row in found[3]] == [(-1, 1005, 1015, 1), (1, 1005, 1017, 2)]


def test_a_sum_of_floats_does_not_depend_on_how_a_micro_batch_was_delivered() -> None:
    asked, rng = OptimisticWindows(Window("1 ms"), (Sum("n"),), "1 s"), np.random.default_rng(3)
    rows = [(ts, float(n), 1) for ts, n in enumerate(rng.standard_normal(50) * 10.0 ** rng.integers(0, 15, 50))]
    for retracting in (False, True):
        shuffled = [[rows[place] for place in rng.permutation(40)] + rows[40:] for _ in range(5)]
        found = [changes(asked, [each, [(999, 0.1, 1)]], "sum_n", retracting=retracting) for each in shuffled]
        assert all(each == found[0] for each in found)


def test_what_is_void_is_what_was_given_to_the_last_bit() -> None:
    asked, rng = OptimisticWindows(Window("1 ms"), (Sum("n"),), "1 s"), np.random.default_rng(4)
    batches = [[(int(ts), float(ts) / 7, 1) for ts in rng.permutation(20)] for _ in range(6)]
    batches += [[(ts, n, -1) for ts, n, _ in batches[0][:5]], batches[1][5:9]]
    found = changes(asked, batches, "sum_n", retracting=True)
    given = [row[3] for rows in found for row in rows if row[0] == 1]
    assert [row[3] for rows in found for row in rows if row[0] == -1] == given[:-1]


class Counting(MemoryBackend):
    """Chunks in memory, and how many bytes of them were read."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = 0

    def get(self, run: int, number: int) -> bytes:
        data = super().get(run, number)
        self.bytes += len(data)
        return data


@pytest.mark.parametrize("retracting", [False, True])
def test_a_late_row_reads_a_small_part_of_what_is_held(retracting: bool) -> None:
    asked, backend = OptimisticWindows(Window("10 us"), (Count(), Sum("n")), "1 s"), Counting()
    runner, rng = Runner(asked, LAYOUT, between=Between.REBUILD), np.random.default_rng(5)
    runner.machine = asked.build(ChunkStore(backend), LAYOUT)
    for tick in range(40):
        ts_us = np.sort(rng.integers(tick * 20_000, (tick + 1) * 20_000, 2_000))
        keys = [f"k{each}" for each in rng.integers(0, 200, len(ts_us))]
        rows = batch(tick, [(int(ts), 1.0, 1) for ts in ts_us], retracting=retracting).rows
        runner.push(EventBatch(rows.set_column(1, "key", pa.array(keys)), LAYOUT))
    backend.bytes = 0
    outputs = runner.push(batch(50, [(123_456, 1.0, 1)], retracting=retracting, key="k7")).outputs
    held = sum(len(data) for data in backend.chunks.values())
    assert len(outputs) == 1
    assert backend.bytes < 0.1 * held


ONE: Any = 1
WINDOW: Any = Window("1 s")
SESSION: Any = SessionWindow("1 s")


def own() -> Custom:
    return Custom("n", list, lambda state, value: [*state, value], None, len, pa.int64())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: OptimisticWindows(Window("1 s"), (), "1 s"), "aggregate must be given at least one aggregate"),
        (lambda: OptimisticWindows(Window("1 s"), (Count(),), "soon"), "bound must be a duration"),
        (lambda: OptimisticWindows(Window("1 s"), (Count(),), "1 s", ONE), "barrier must be True or False"),
        (lambda: OptimisticWindows(Window("1 s"), (Count(),), "1 s", max_held=0), "max_held must be a whole number"),
        (lambda: OptimisticWindows(SESSION, (Count(),), "1 s"), "window must be a Window"),
        (lambda: OptimisticSessions(WINDOW, (Count(),), "1 s"), "window must be a SessionWindow"),
        (lambda: OptimisticSessions(SessionWindow("1 s"), (own(),), "1 s"), "have a merge"),
    ],
)
def test_wrong_settings_are_named(make: Any, message: str) -> None:
    with pytest.raises(lc.InputError) as error:
        make()
    assert message in str(error.value)


def test_more_than_max_held_stops_the_query() -> None:
    runner = Runner(OptimisticWindows(Window("10 us"), (Count(),), "1 s", max_held=2), LAYOUT)
    with pytest.raises(lc.HeldError, match="held partial results and rows per shard must stay within max_held=2"):
        runner.push(batch(0, [(1, 1, 1), (11, 1, 1), (21, 1, 1)]))
