"""The holding machine on awkward streams, a million events each."""

import numpy as np
import pytest

from latecomer.chunks import ChunkStore
from latecomer.events import FOREVER_US, NEVER_US, Int64s, Stretches
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


def test_no_row_stays_behind_when_a_stream_that_leaves_by_stretches_ends() -> None:
    times = np.array([0, FOREVER_US - 2], dtype=np.int64)
    stream = Stream(times, np.zeros(2, np.int64), np.zeros(2, np.int64), np.zeros(2, np.int64))
    batch, header = stream.batch(np.arange(2)), HeaderBuilder()
    header.add(batch.ts_us, batch.tick)
    header.add_ends(batch.tick[:1], 1)
    _, timeline = Progress().advance([header.build()])
    machine = Reorder("1 ms", align=Stretches(1_000_000)).build(ChunkStore(), LAYOUT)
    given = [(output.lane, output.rows.column("id").to_pylist()) for output in machine.push(batch, timeline)]
    assert given == [(Lane.RESULTS, [0, 1])]
    assert machine.held == 0


@pytest.mark.parametrize(
    ("punctuation_us", "ready_us"),
    [(-11, -11), (-10, -11), (-1, -1), (8, -1), (9, 9), (10, 9), (NEVER_US, NEVER_US), (FOREVER_US, FOREVER_US)],
)
def test_a_stretch_may_leave_when_its_last_microsecond_has_passed(punctuation_us: int, ready_us: int) -> None:
    assert Stretches(10).passed(punctuation_us) == ready_us
