"""Rows by key in generations, against a dict of lists."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from latecomer.chunks import ChunkStore
from latecomer.events import Int64s, int64_view
from latecomer.timetravel import key_rows
from latecomer.timetravel.key_rows import Buckets, KeyRows, distinct
from latecomer.timetravel.tables import with_buckets

Row = tuple[int, int]  # bucket, time
Step = tuple[set[int], list[Row], list[Row], int]  # touched, their rows of two tables, before which time all is removed

ROWS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 100)), max_size=12)
STEPS = st.lists(st.tuples(st.sets(st.integers(0, 40)), ROWS, ROWS, st.integers(-200, 60)), max_size=30)


def times(rows: pa.RecordBatch) -> Int64s:
    return int64_view(rows.column("ts"))


def table(rows: Sequence[Row]) -> pa.RecordBatch:
    columns = pa.RecordBatch.from_arrays([pa.array([ts for _, ts in rows], pa.int64())], names=["ts"])
    return with_buckets(columns, np.array([bucket for bucket, _ in rows], dtype=np.uint32))


def plain(rows: pa.RecordBatch | None) -> list[Row]:
    return [] if rows is None else list(zip(rows.column(1).to_pylist(), rows.column(0).to_pylist(), strict=True))


def some(buckets: set[int]) -> Buckets:
    return distinct(np.array(sorted(buckets), dtype=np.uint32))


@given(steps=STEPS)
@settings(max_examples=60, deadline=None)
def test_rows_by_key_are_those_of_a_dict_whatever_is_united_and_removed(steps: list[Step]) -> None:
    with pytest.MonkeyPatch.context() as changed:
        for name, value in (("_SLACK", 5), ("_SMALL", 1), ("_CHUNK_BYTES", 60)):
            changed.setattr(key_rows, name, value)
        store, model = ChunkStore(), [list[Row](), list[Row]()]
        for touched, *tables, before in steps:
            rows = KeyRows(store, (times, times))
            for place, taken in enumerate(rows.take(some(touched))):
                expected = [row for row in model[place] if row[0] in touched]
                assert [ts for bucket in touched for b, ts in plain(taken) if b == bucket] == [
                    ts for bucket in touched for b, ts in expected if b == bucket
                ]
                model[place] = [row for row in model[place] if row[0] not in touched] + tables[place]
            rows.put([table(each) for each in tables], some(touched))
            rows.expire((before, before))
            model = [[row for row in each if row[1] >= before] for each in model]
            assert [rows.alive(place) for place in range(2)] == [len(each) for each in model]
            store = ChunkStore.restore(store.snapshot())
        rows = KeyRows(store, (times, times))
        assert [sorted(plain(each)) for each in rows.read(rows.buckets())] == [sorted(each) for each in model]


def test_generations_stay_few_and_void_rows_fewer_than_others() -> None:
    store = ChunkStore()
    for number in range(200):
        touched = {key for key in range(3_000) if key % 7 == number % 7 or key < 50}
        rows = KeyRows(store, (times,))
        rows.take(some(touched))
        rows.put([table([(bucket, number) for bucket in sorted(touched)])], some(touched))
    assert rows.alive(0) == 3_000
    assert len({chunk.run // 2 for chunk in store.chunks}) < 24
    assert sum(chunk.rows for chunk in store.chunks if chunk.run % 2) <= 2 * 3_000 + 10_000
