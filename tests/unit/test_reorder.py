"""The holding machine on awkward streams, a million events each."""

import numpy as np
import pytest

from latecomer.chunks import ChunkStore
from latecomer.events import Int64s
from latecomer.headers import HeaderBuilder
from latecomer.outputs import Lane
from latecomer.progress import Progress
from latecomer.reorder import Reorder
from latecomer.testing import LAYOUT, Stream, run_machine

COUNT = 1_000_000
NUMBERS = np.arange(COUNT, dtype=np.int64)
ZEROS = np.zeros(COUNT, dtype=np.int64)


@pytest.mark.parametrize(
    ("ts_us", "tick", "key"),
    [
        (ZEROS, ZEROS, NUMBERS % 1_000),
        (NUMBERS[::-1].copy(), ZEROS, ZEROS),
        (NUMBERS, NUMBERS // 1_000, NUMBERS),
        (-NUMBERS * 1_000_000, ZEROS, NUMBERS),
    ],
    ids=["one time", "reversed, one key", "a key per row", "before 1970"],
)
def test_a_million_awkward_events_come_out_in_order(ts_us: Int64s, tick: Int64s, key: Int64s) -> None:
    run = run_machine(Reorder("1 ms"), Stream(ts_us, tick, key, ZEROS), cuts=[COUNT // 2] if tick.any() else [])
    given = run.rows(Lane.RESULTS)
    assert given is not None
    assert len(given) == COUNT
    assert (np.diff(given.column("ts").to_numpy()) >= 0).all()
    assert np.array_equal(np.sort(given.column("id").to_numpy()), NUMBERS)
    assert run.late_ids() == []


def test_many_small_batches_leave_few_chunks() -> None:
    count = 6_000
    numbers = np.arange(count, dtype=np.int64)
    stream = Stream(numbers * 1_000, numbers, numbers % 7, numbers % 2)
    store = ChunkStore()
    progress, machine = Progress(), Reorder("1 h").build(store, LAYOUT)
    for positions in np.split(numbers, np.arange(10, count, 10)):
        batch, header = stream.batch(positions), HeaderBuilder()
        header.add(batch.ts_us, batch.tick)
        progress, timeline = progress.advance([header.build()])
        assert list(machine.push(batch, timeline)) == []
    assert machine.held == count
    assert len(store.chunks) < 60
    given = next(iter(machine.finish()))
    assert given.rows.column("id").to_pylist() == numbers.tolist()


def test_a_fully_reversed_stream_in_ticks_is_late_but_not_lost() -> None:
    count = 10_000
    numbers = np.arange(count, dtype=np.int64)
    stream = Stream(numbers[::-1].copy(), numbers, numbers % 7, numbers % 2)
    run = run_machine(Reorder("100 us"), stream, cuts=list(range(1_000, count, 1_000)))
    given = run.rows(Lane.RESULTS)
    assert given is not None
    assert len(given) + len(run.late_ids()) == count
    assert len(given) == 100
