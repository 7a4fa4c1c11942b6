"""Rows that come behind what has been read: windows count them as long as they are open, and are given once."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from latecomer.chunks import ChunkStore
from latecomer.events import FOREVER_US, NEVER_US, Layout
from latecomer.windows import Clocks, Count, Sum, Window, WindowAggregation
from latecomer.windows.operators import Behind, Stretch
from tests.naive_windows import Event, grid_answers

SCHEMA = pa.schema([("ts", pa.int64()), ("key", pa.string()), ("value", pa.int64())])
Row = tuple[int, str, int]
Push = tuple[int, list[Row]]
PUSHES: st.SearchStrategy[list[Push]] = st.lists(
    st.tuples(
        st.sampled_from([0, 0, 1, 3, 10, 25]),
        st.lists(st.tuples(st.integers(-40, 20), st.sampled_from("ab"), st.integers(0, 9)), max_size=6),
    ),
    min_size=1,
    max_size=12,
)
SHAPES = [(10, 10, 0), (20, 10, 0), (20, 10, 7), (30, 10, 3), (25, 10, 0), (7, 3, 1), (40, 5, 0)]


def taken_rows(operator: WindowAggregation, pushes: list[Push]) -> tuple[list[list[Row]], list[int]]:
    """The rows of each push that the operator still takes, their times from the last read one on; and the reads."""
    taken: list[list[Row]] = []
    reads = [0]
    for step, rows in pushes:
        there = sorted((reads[-1] + back, key, value) for back, key, value in rows)
        taken.append([row for row in there if row[0] >= operator.takes_from(reads[-1])])
        reads.append(max([reads[-1], *(ts for ts, _, _ in taken[-1])]) + step)
    return taken, reads


def windows_given(
    operator: WindowAggregation, taken: list[list[Row]], reads: list[int], at_once: int
) -> Counter[tuple[object, ...]]:
    """What the operator gives, restored between pushes, of which it takes so many at once."""
    store, found = ChunkStore(), Counter[tuple[object, ...]]()
    stretches = [Stretch(batch_of(rows), Clocks(read_us, NEVER_US)) for rows, read_us in zip(taken, reads, strict=True)]
    for start in range(0, len(stretches), at_once):
        store = ChunkStore.restore(store.snapshot())
        running, some = operator.build(store, Layout("ts", ("key",))), stretches[start : start + at_once]
        for push, stretch in zip(running.push_stretches(some), some, strict=True):
            assert push.clocks == operator.clocks_after(stretch.clocks)
            for row in [] if push.rows is None else push.rows.to_pylist():
                assert row["window_start"] <= push.clocks.read_us
                found[row["window_start"], row["key"], row["count"], row["sum_value"]] += 1
    assert store.rows == 0
    return found


def windows_together(
    operator: WindowAggregation, taken: list[list[Row]], reads: list[int], at_once: int
) -> Counter[tuple[object, ...]]:
    """The same where rows that come behind are said to be, and so many pushes are one."""
    store, found = ChunkStore(), Counter[tuple[object, ...]]()
    for start in range(1, len(taken), at_once):
        store = ChunkStore.restore(store.snapshot())
        pushes = range(start, min(start + at_once, len(taken)))
        rows = [(row, reads[push - 1]) for push in pushes for row in taken[push]]
        in_order = sorted(row for row, read_us in rows if row[0] > read_us)
        late = [(row, read_us) for row, read_us in rows if row[0] <= read_us]
        behind = Behind(batch_of([row for row, _ in late]), np.array([read_us for _, read_us in late], dtype=np.int64))
        running = operator.build(store, Layout("ts", ("key",)))
        given = running.push_with_behind(batch_of(in_order), behind, Clocks.both(reads[pushes[-1]]))
        for row in [] if given.rows is None else given.rows.to_pylist():
            found[row["window_start"], row["key"], row["count"], row["sum_value"]] += 1
    assert store.rows == 0
    return found


def batch_of(rows: list[Row]) -> pa.RecordBatch:
    columns = [pa.array([row[place] for row in rows], SCHEMA.field(place).type) for place in range(3)]
    return pa.RecordBatch.from_arrays(columns, schema=SCHEMA)


@settings(max_examples=200, deadline=None)
@given(pushes=PUSHES, shape=st.sampled_from(SHAPES), at_once=st.sampled_from([1, 3, 20]))
def test_rows_count_in_their_open_windows_and_windows_come_once(
    pushes: list[Push], shape: tuple[int, int, int], at_once: int
) -> None:
    size, advance, offset = shape
    operator = WindowAggregation(Window(f"{size} us", f"{advance} us", f"{offset} us"), (Count(), Sum("value")))
    taken, reads = taken_rows(operator, pushes)
    found = windows_given(operator, [[], *taken, []], [*reads, FOREVER_US], at_once)
    assert windows_together(operator, [[], *taken, []], [*reads, FOREVER_US], at_once) == found
    events = [Event(number, *row) for number, rows in enumerate(taken) for row in rows]

    def read_before(_: int, push: int | None) -> int:
        return FOREVER_US if push is None else reads[push]

    answers, late, _ = grid_answers(events, read_before, 1, size, advance, offset)
    assert late == []
    assert found == Counter(
        (each.start, each.key, len(each.events), sum(event.value for event in each.events)) for each in answers
    )
