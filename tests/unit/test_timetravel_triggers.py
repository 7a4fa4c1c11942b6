"""Time travel: what the first answer has, what an eager and a lazy replay give, and keys that are always behind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from latecomer.outputs import Output
from latecomer.timetravel import Anywhere, Holes, Period, TimeTravel
from latecomer.windows import Chain, Count, Max, Step, Sum, Window, WindowAggregation
from tests.outputs import said
from tests.unit.travels import TIMES, Row, Travel, refused, told

MINUTE_US = 60_000_000
HOURLY = WindowAggregation(Window("1 hour"), (Count(),))
TWO = Chain(  # sums of four over largest ones of two
    WindowAggregation(Window("2 us"), (Max("value", named="value"),)),
    WindowAggregation(Window("4 us", "2 us"), (Sum("value", named="value"),)),
)


def of_pane(outputs: Sequence[Output], pane: str, *columns: str) -> list[tuple[Any, ...]]:
    """What was given live, or by replays."""
    return told([output for output in outputs if said(output, "pane") == pane], *columns)


@pytest.mark.parametrize("trigger", ["eager", "lazy", lambda late: pa.nulls(len(late))])
@pytest.mark.parametrize("offset", [None, "10 minutes"])
def test_a_late_event_is_in_the_first_answer_of_windows_that_are_open(trigger: Any, offset: str | None) -> None:
    """An event of 00:20 that comes at 00:31 counts in the window that is given at 01:01."""
    hourly = WindowAggregation(Window("1 hour", offset=offset), (Count(),))
    travel = Travel(TimeTravel(hourly, "1 day", Period("10 minutes"), trigger))
    rows: list[Row] = [(n, 10 * n * MINUTE_US, "a", n) for n in range(1, 4) if n != 2]
    assert travel.push(*rows, (4, 20 * MINUTE_US, "a", 2)) == []
    rest: list[Row] = [(n + 5, (10 * n + 1) * MINUTE_US, "a", n) for n in range(4, 8)]
    outputs = travel.push(*rest)
    assert of_pane(outputs, "on_time", "window_start", "count") == [
        ((0 if offset is None else 10) * MINUTE_US, 5 + bool(offset), 1)
    ]
    assert of_pane(outputs, "revised", "window_start") == []
    assert refused(outputs) == []


def test_a_late_event_counts_in_open_windows_after_a_first_step_too() -> None:
    user = pa.schema([("ts", TIMES), ("meter", pa.large_string()), ("value", pa.int64())])

    def even(rows: pa.RecordBatch) -> pa.RecordBatch:
        return rows.filter(pa.array([value % 2 == 0 for value in rows.column("value").to_pylist()]))

    app = Chain(Step(even, user), WindowAggregation(Window("4 us", "2 us"), (Sum("value"),)))
    travel = Travel(TimeTravel(app, "100 us", Anywhere()))
    outputs = travel.push(
        (0, 0, "a", 2), (1, 5, "a", 4), (2, 3, "a", 6), (2, 4, "a", 3), (3, 3, "a", 8), (4, 9, "a", 2)
    )
    live = of_pane(outputs, "on_time", "window_start", "sum_value")
    assert live == [(-2, 2, 1), (0, 2, 1), (2, 18, 1), (4, 4, 1)]
    assert of_pane(outputs, "revised", "window_start", "sum_value") == [(0, 2, -1), (0, 16, 1)]


def test_eager_corrects_an_answer_in_the_micro_batch_that_gives_it() -> None:
    travel = Travel(TimeTravel(TWO, "100 us", Anywhere(), "eager"))
    travel.push((0, 0, "a", 1), (0, 2, "a", 2), (0, 9, "a", 4))
    assert of_pane(travel.push((1, 7, "a", 8)), "revised", "window_start", "value") == [(4, 8, 1)]
    outputs = travel.push((2, 11, "b", 16))
    assert of_pane(outputs, "on_time", "window_start", "value") == [(6, 4, 1)]
    assert of_pane(outputs, "revised", "window_start", "value") == [(6, 4, -1), (6, 12, 1)]
    assert travel.push((3, 11, "a", 32)) == []
    assert {said(output, "pane") for output in travel.push((4, 13, "a", 64))} == {"on_time"}


def test_without_retractions_eager_gives_everything_again_when_a_context_is_complete() -> None:
    """As in the paper: the answer at 4 is repeated."""
    travel = Travel(TimeTravel(TWO, "100 us", Anywhere(), "eager", retract=False))
    travel.push((0, 0, "a", 1), (0, 2, "a", 2), (0, 9, "a", 4), (1, 7, "a", 8))
    assert of_pane(travel.push((2, 11, "b", 16)), "revised", "window_start", "value") == [
        (2, 2, 1),
        (4, 8, 1),
        (6, 12, 1),
    ]


def test_lazy_waits_until_all_contexts_that_overlap_are_complete_and_replays_them_at_once() -> None:
    travel = Travel(TimeTravel(TWO, "100 us", Anywhere()))
    travel.push((0, 0, "a", 1), (0, 2, "a", 2), (0, 9, "a", 4))
    for row in ((1, 7, "a", 8), (2, 9, "a", 4), (3, 1, "a", 16), (4, 10, "a", 4), (5, 3, "a", 32), (6, 10, "a", 4)):
        assert of_pane(travel.push(row), "revised", "window_start") == []
    given = [row for row in of_pane(travel.push((7, 11, "a", 4)), "revised", "window_start", "value") if row[2] > 0]
    assert given == [(-2, 16, 1), (0, 48, 1), (2, 32, 1), (4, 8, 1), (6, 12, 1)]
    assert travel.machine.store.notes.get("1/3/duplicates", 0) == 0


def test_lazy_does_not_wait_for_contexts_that_do_not_overlap() -> None:
    travel = Travel(TimeTravel(TWO, "1 ms", Anywhere()))
    travel.push((0, 0, "a", 1), (0, 2, "a", 2), (0, 30, "a", 4))
    travel.push((1, 27, "a", 8), (1, 14, "a", 16), (1, 19, "a", 16))
    given = of_pane(travel.push((2, 30, "a", 4)), "revised", "window_start", "value")
    assert sorted(given) == [(12, 16, 1), (14, 16, 1)]


@pytest.mark.parametrize(("holes", "period_us"), [(Period("5 us"), 5), (Anywhere(), 4)])
@pytest.mark.parametrize("cut", [1, 7, 1_000])
def test_a_key_that_is_always_behind_is_told_within_a_period(holes: Holes, period_us: int, cut: int) -> None:
    """Every event of `a` comes 20 behind the mark: whatever it touches has been given without it."""
    travel = Travel(TimeTravel(WindowAggregation(Window("4 us"), (Count(),)), "10 ms", holes))
    rows: list[Row] = []
    for tick in range(200):
        rows.append((tick, tick, "b", 0))
        rows += [(tick, tick - 20, "a", 0)] if tick % 5 == 0 and tick >= 20 else []
    told_at: dict[int, int] = {}
    for place in range(0, len(rows), cut):
        some = rows[place : place + cut]
        for start_us, meter, _ in told(travel.push(*some), "window_start", "meter"):
            if meter == "a":
                told_at.setdefault(start_us, some[-1][0])
    came = {ts_us // 4 * 4: ts_us + 20 for ts_us in range(165, -1, -5)}
    assert came.keys() <= told_at.keys()
    if cut == 1:
        assert all(told_at[start_us] <= came[start_us] + period_us for start_us in came)


def test_a_key_that_came_on_time_lately_is_waited_for() -> None:
    """Two periods after its last event that was on time it is not waited for any more."""
    travel = Travel(TimeTravel(WindowAggregation(Window("4 us"), (Count(),)), "10 ms", Period("5 us")))
    travel.push((0, 0, "a", 0), (1, 10, "a", 0), (2, 5, "a", 0))
    spoken = [
        of_pane(travel.push((tick + 3, ts_us, "b", 0)), "revised", "meter") for tick, ts_us in enumerate((15, 19, 20))
    ]
    assert spoken == [[], [], [("a", 1)]]
