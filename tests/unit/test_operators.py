"""What operators say of time: two clocks, what they still take, and how far their results have come."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from latecomer.chunks import ChunkStore, Store
from latecomer.errors import InputError
from latecomer.events import FOREVER_US, NEVER_US, Layout, concat_rows
from latecomer.gives import Tally
from latecomer.windows import Chain, Clocks, Count, Operator, Pattern, Step, Window, WindowAggregation
from latecomer.windows.operators import OrderedRows, Running

ROWS = pa.schema([("ts", pa.int64()), ("key", pa.string())])
LAYOUT = Layout("ts", ("key",))
TUMBLING = WindowAggregation(Window("10 us"), (Count(),))
HOPPING = WindowAggregation(Window("30 us", "10 us", "3 us"), (Count(),))
STEP = Step(lambda rows: rows, ROWS)
PATTERN = Pattern("key", "x", "y", "5 us")


@dataclass(frozen=True)
class Late(Operator):
    """Takes all rows and passes them on as they come, counts them, and quarantines those with the key z."""

    @property
    def gives_in_order(self) -> bool:
        return False

    @property
    def counters(self) -> Mapping[str, Tally]:
        return {"seen": Tally.SUM}

    def build(self, store: Store, layout: Layout) -> Running:
        return _Late()

    def output(self, columns: pa.Schema, layout: Layout) -> pa.Schema:
        return columns

    def layout_after(self, layout: Layout) -> Layout:
        return layout

    def describe(self) -> dict[str, Any]:
        return {"operator": "late"}

    def takes_from(self, read_us: int) -> int:
        return NEVER_US


class _Late(Running):
    def __init__(self) -> None:
        self._seen = 0

    def push(self, rows: pa.RecordBatch | None, clocks: Clocks) -> OrderedRows:
        if rows is None:
            return OrderedRows(None, clocks)
        self._seen += rows.num_rows
        bad = np.array([key == "z" for key in rows.column("key").to_pylist()])
        unused = rows.filter(pa.array(bad)) if bad.any() else None
        if unused is not None:
            unused = unused.append_column("reason", pa.array(["bad"] * unused.num_rows))
        return OrderedRows(rows.filter(pa.array(~bad)), clocks, unused)

    def counters(self) -> dict[str, int]:
        return {"seen": self._seen}


def rows_of(*times: int, key: str = "a") -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"ts": list(times), "key": [key] * len(times)}, schema=ROWS)


def counts(given: OrderedRows) -> dict[int, int]:
    rows = [] if given.rows is None else given.rows.to_pylist()
    return {row["window_start"]: row["count"] for row in rows}


def test_in_order_both_clocks_are_one() -> None:
    assert Clocks.both(7) == Clocks(read_us=7, certain_us=7)


def test_operators_move_the_second_clock_as_the_first() -> None:
    for operator, moved in [
        (TUMBLING, (11, 1)),
        (STEP, (20, 10)),
        (PATTERN, (20, 10)),
        (Chain(HOPPING, STEP), (-9, -19)),
    ]:
        running = operator.build(ChunkStore(), LAYOUT)
        assert running.push(None, Clocks(20, 10)).clocks == Clocks(*moved)


@pytest.mark.parametrize(
    "operator", [TUMBLING, HOPPING, STEP, PATTERN, Chain(STEP, HOPPING)], ids=lambda each: each.shown()
)
def test_the_ends_of_time_stay_what_they_are(operator: Operator) -> None:
    for end in (NEVER_US, FOREVER_US):
        assert operator.takes_from(end) == end
        assert operator.passed(np.array([end])).tolist() == [end]
        assert operator.build(ChunkStore(), LAYOUT).push(None, Clocks.both(end)).clocks == Clocks.both(end)


def test_an_aggregation_takes_rows_from_the_first_open_window_on() -> None:
    assert [TUMBLING.takes_from(read_us) for read_us in (-1, 0, 8, 9, 18, 19)] == [0, 0, 0, 10, 10, 20]
    assert [HOPPING.takes_from(read_us) for read_us in (31, 32, 41, 42)] == [3, 13, 13, 23]


def test_other_operators_take_what_comes_after_what_was_read() -> None:
    assert [each.takes_from(20) for each in (STEP, PATTERN, Chain(STEP, HOPPING))] == [21, 21, 21]


def test_a_chain_takes_what_its_first_operator_takes() -> None:
    assert Chain(HOPPING, STEP).takes_from(20) == HOPPING.takes_from(20) == -7


def test_a_chain_takes_no_row_whose_results_the_next_operator_would_not_take() -> None:
    assert Chain(Late(), TUMBLING).takes_from(29) == 30
    assert Chain(Late(), Late(), STEP).takes_from(29) == 30
    assert Chain(Late(), Late()).takes_from(29) == NEVER_US
    assert [Chain(Late(), each).gives_in_order for each in (Late(), TUMBLING)] == [False, True]


def test_results_have_come_as_far_as_whole_windows() -> None:
    times = np.array([NEVER_US, 0, 9, 10, FOREVER_US])
    assert TUMBLING.passed(times).tolist() == [NEVER_US, -9, 0, 1, FOREVER_US]
    assert Chain(TUMBLING, STEP, HOPPING).passed(times).tolist() == [NEVER_US, -38, -29, -28, FOREVER_US]
    assert STEP.passed(times).tolist() == times.tolist()


def test_a_closed_window_does_not_come_again() -> None:
    store = ChunkStore()
    running = TUMBLING.build(store, LAYOUT)
    assert counts(running.push(rows_of(1, 12, 15), Clocks(15, 0))) == {0: 1}
    assert counts(running.push(rows_of(3, 11), Clocks(16, 0))) == {}
    assert counts(running.push(rows_of(10), Clocks(19, 0))) == {10: 4}
    assert counts(running.push(None, Clocks.both(FOREVER_US))) == {}
    assert store.rows == 0


def test_a_row_that_comes_behind_counts_in_its_open_windows() -> None:
    store = ChunkStore()
    assert counts(HOPPING.build(store, LAYOUT).push(rows_of(5), Clocks(33, 0))) == {-17: 1, -7: 1, 3: 1}
    store = ChunkStore.restore(store.snapshot())
    assert counts(HOPPING.build(store, LAYOUT).push(rows_of(25, 25), Clocks(33, 0))) == {}
    assert counts(HOPPING.build(store, LAYOUT).push(rows_of(40), Clocks(45, 0))) == {13: 3}
    store = ChunkStore.restore(store.snapshot())
    assert counts(HOPPING.build(store, LAYOUT).push(None, Clocks.both(FOREVER_US))) == {23: 3, 33: 1}
    assert store.rows == 0


def test_a_chain_sums_counters_and_passes_on_what_its_first_operator_quarantines() -> None:
    chain = Chain(Late(), Late(), TUMBLING)
    assert dict(chain.counters) == {"seen": Tally.SUM}
    running = chain.build(ChunkStore(), LAYOUT)
    running.push(rows_of(1, 2), Clocks.both(5))
    given = running.push(concat_rows([rows_of(6), rows_of(7, key="z")]), Clocks.both(9))
    assert running.counters() == {"seen": 7}
    assert given.quarantined is not None
    assert given.quarantined.to_pylist() == [{"ts": 7, "key": "z", "reason": "bad"}]
    assert counts(given) == {0: 3}


def test_a_later_operator_of_a_chain_cannot_quarantine() -> None:
    running = Chain(STEP, Late()).build(ChunkStore(), LAYOUT)
    with pytest.raises(
        InputError, match=r"after the first of a chain must not quarantine rows.*got 'bad'; put it first"
    ):
        running.push(rows_of(1, key="z"), Clocks.both(5))
