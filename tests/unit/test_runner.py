"""The plain Python runner: progress, open ticks, and what becomes of a machine between batches."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from latecomer.chunks import ChunkStore
from latecomer.errors import LateError, StateError
from latecomer.events import TICK, EventBatch, Layout
from latecomer.headers import HeaderBuilder
from latecomer.outputs import Output
from latecomer.progress import Timeline
from latecomer.reorder import Reorder
from latecomer.runner import Between, Runner, header_of

LAYOUT = Layout("ts", source="source")


def _batch(*rows: tuple[int, int, str]) -> EventBatch:
    ts_us, ticks, sources = zip(*rows, strict=True)
    columns = {"ts": ts_us, TICK: ticks, "source": pa.array(sources, pa.string())}
    return EventBatch(pa.RecordBatch.from_pydict(columns), LAYOUT)


def _times(outputs: list[pa.RecordBatch]) -> list[int]:
    return [ts_us for rows in outputs for ts_us in rows.column("ts").to_pylist()]


@pytest.mark.parametrize("between", Between)
def test_what_becomes_of_a_machine_between_batches_changes_nothing(between: Between) -> None:
    runner = Runner(Reorder("10 us", late="drop"), LAYOUT, between=between)
    first = runner.push(_batch((20, 1, "a"), (5, 1, "a"), (30, 2, "b")))
    second = runner.push(_batch((25, 3, "a"), (12, 3, "a"), (50, 4, "a")))
    assert (_times([o.rows for o in first.outputs]), first.mark_us, first.held) == ([5, 20], 30, 1)
    assert (_times([o.rows for o in second.outputs]), second.mark_us, second.held) == ([25, 30], 50, 1)
    assert runner.dropped == 1
    assert _times([o.rows for o in runner.finish()]) == [50]
    assert runner.store.rows == 0
    assert first.seconds >= 0


def test_rows_of_a_closed_tick_join_the_first_open_one() -> None:
    runner = Runner(Reorder("10 us"), LAYOUT)
    runner.push(_batch((20, 5, "a")))
    pushed = runner.push(_batch((21, 4, "a"), (22, 5, "a"), (23, 9, "a")))
    assert pushed.events.tick.tolist() == [6, 6, 9]
    assert pushed.timeline.mark_before(pushed.events.tick).tolist() == [20, 20, 22]


def test_progress_is_that_of_the_header_where_there_is_one() -> None:
    runner = Runner(Reorder("10 us"), LAYOUT)
    whole = _batch((20, 1, "a"), (100, 2, "b"))
    pushed = runner.push(whole.slice(0, 1), header_of(whole))
    assert (_times([output.rows for output in pushed.outputs]), pushed.mark_us) == ([20], 100)
    ended = HeaderBuilder()
    ended.add_ends(None, 2, pa.array(["a", "b"]))
    runner.push(whole.slice(0, 0), ended.build())
    assert runner.progress.floor_us > 100


def test_a_machine_that_failed_takes_nothing_more() -> None:
    runner = Runner(Reorder("10 us", late="raise"), LAYOUT)
    runner.push(_batch((20, 1, "a"), (50, 2, "a")))
    with pytest.raises(LateError, match="1 too late"):
        runner.push(_batch((60, 3, "a"), (7, 3, "a")))
    for go_on in (lambda: runner.push(_batch((70, 4, "a"))), runner.finish):
        with pytest.raises(StateError, match=r"_Reorder must not go on after an error.*LateError.*restore"):
            go_on()


def test_a_machine_of_a_machine_fails_with_it() -> None:
    class Twice(type(Reorder("1 us").build(ChunkStore(), LAYOUT))):  # type: ignore[misc]
        def push(self, batch: EventBatch, timeline: Timeline) -> Iterator[Output]:
            yield from super().push(batch, timeline)
            raise ZeroDivisionError

    runner = Runner(Reorder("10 us"), LAYOUT)
    runner.machine = Twice(Reorder("10 us"), ChunkStore(), LAYOUT)
    with pytest.raises(ZeroDivisionError):
        runner.push(_batch((20, 1, "a")))
    with pytest.raises(StateError, match="got 'ZeroDivisionError'"):
        runner.push(_batch((30, 2, "a")))
