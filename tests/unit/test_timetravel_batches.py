"""Time travel from batch to batch: what waits, what is kept and for how long, streams that idle or end."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from latecomer.events import FOREVER_US, NEVER_US
from latecomer.progress import Timeline
from latecomer.timetravel import CustomHoles, Period, TimeTravel
from latecomer.windows import Chain, Max, Step, Sum, Window, WindowAggregation
from tests.outputs import said
from tests.unit.travels import TIMES, Row, Travel, refused, standing, told

EVERY_5 = Period("5 us")
SUMS = WindowAggregation(Window("10 us", "5 us"), (Sum("value"),))
NOWHERE = CustomHoles(lambda before, after: [0] * len(after))


def regular(*missing: int, first: int = 0, end: int = 300) -> list[Row]:
    """An event every 5 us, but for some that are missing."""
    return [(ts_us, ts_us, "a", 1) for ts_us in range(first, end, 5) if ts_us not in missing]


def test_a_lazy_replay_waits_for_the_next_event_of_its_key_over_batches() -> None:
    travel = Travel(TimeTravel(SUMS, "1 ms", EVERY_5))
    travel.push(*regular(20, end=50))
    assert travel.push((50, 20, "a", 7)) == []
    assert travel.push() == []
    assert told(travel.push((51, 50, "b", 1)), "meter") == [("a", 1)]
    replayed = [output for output in travel.push((52, 55, "a", 1)) if said(output, "pane") == "revised"]
    assert told(replayed, "window_start", "sum_value") == [(15, 1, -1), (20, 1, -1), (15, 8, 1), (20, 8, 1)]


def test_a_written_trigger_waits_over_batches_too() -> None:
    travel = Travel(TimeTravel(SUMS, "1 ms", EVERY_5, lambda late: pc.add(late["lateness_us"], 90 - 25)))
    travel.push(*regular(20, end=50))
    assert travel.push((50, 20, "a", 7)) == []
    outputs = [travel.push((ts_us + 1, ts_us, "b", 1)) for ts_us in (85, 89, 90, 95)]
    assert [any(said(output, "pane") == "revised" for output in each) for each in outputs] == [
        False,
        False,
        True,
        False,
    ]


def test_what_no_trigger_fires_is_replayed_when_the_bound_has_passed() -> None:
    travel = Travel(TimeTravel(SUMS, "100 us", EVERY_5, lambda late: [None] * len(late)))
    travel.push(*regular(20, end=50), (50, 20, "a", 7))
    outputs = [travel.push((ts_us + 1, ts_us, "b", 1)) for ts_us in (119, 120, 121)]
    assert [any(said(output, "pane") == "revised" for output in each) for each in outputs] == [False, False, True]


def test_what_waits_at_the_end_is_replayed_and_final_where_its_hole_is_full() -> None:
    travel = Travel(TimeTravel(SUMS, "1 ms", EVERY_5))
    travel.push(*regular(20, end=50), (50, 20, "a", 7))
    replayed = [output for output in travel.finish() if said(output, "pane") == "revised"]
    given = [(start_us, total) for start_us, total, change in told(replayed, "window_start", "sum_value") if change > 0]
    assert given == [(15, 8), (20, 8)]
    assert {said(output, "final") for output in replayed} == {True}


def test_the_last_result_given_is_the_right_one_where_nothing_is_void() -> None:
    """The first replay is not final, the second one is: both of one batch."""
    rows: list[Row] = [*regular(20, 25, end=60), (60, 20, "a", 7), (61, 25, "a", 9)]
    travel = Travel(TimeTravel(SUMS, "1 ms", EVERY_5, "eager", retract=False))
    outputs = [output for output in travel.push(*rows) if said(output, "pane") == "revised"]
    assert [row for row in told(outputs, "window_start", "sum_value") if row[0] == 20] == [(20, 7, 1), (20, 16, 1)]
    assert [
        said(output, "final") for output in outputs if 20 in output.rows["window_start"].view(pa.int64()).to_pylist()
    ] == [
        False,
        True,
    ]


def test_results_far_from_a_replay_stand_on_though_they_are_kept_beside_those_near_it() -> None:
    """All are in one bucket of time, but their holes came in different batches."""
    travel = Travel(TimeTravel(SUMS, "1600 us", EVERY_5))
    rows = [*regular(105, 135), (400, 135, "a", 7), (405, 300, "a", 1), (410, 105, "a", 9), (415, 305, "a", 1)]
    outputs = travel.all(rows, [22, 58, 60])
    assert refused(outputs) == []
    late = {105: 9, 135: 7}
    value = {ts_us: late.get(ts_us, 1) for ts_us in range(0, 310, 5)}
    expected = [(start, value.get(start, 0) + value.get(start + 5, 0)) for start in range(-5, 310, 5)]
    assert standing(outputs, "window_start", "sum_value") == expected


def test_results_and_holes_that_are_never_repaired_are_forgotten() -> None:
    travel = Travel(TimeTravel(SUMS, "100 us", EVERY_5))
    kept = []
    for start in range(0, 3_000, 105):
        travel.push(*regular(*range(0, 3_000, 35), first=start, end=start + 105))
        kept.append(travel.machine.store.rows)
    assert max(kept[5:]) == max(kept[5:9])


def test_keys_that_come_back_after_they_were_forgotten_have_a_hole_before_them() -> None:
    """Even where the user's function sees none."""
    rows: list[Row] = [(number, 1_000 * number, "abc"[number % 3], 1) for number in range(30)]
    rows += [(30, 28_996, "b", 5), (31, 29_010, "c", 1), (32, 29_005, "c", 7)]
    for cuts in (range(0), range(1, 33)):
        outputs = Travel(TimeTravel(SUMS, "20 us", NOWHERE)).all(rows, cuts)
        assert refused(outputs) == [(29_005, 7, "no_hole")]


def test_a_result_is_final_whatever_the_batch_tells_of_its_key_later() -> None:
    """The key is forgotten and comes back in the batch of its first results: with a hole since ever."""
    travel = Travel(TimeTravel(SUMS, "20 us", EVERY_5))
    outputs = travel.push(*regular(end=50), (60, 1_000, "b", 1), (61, 1_000, "a", 1))
    final = {start_us: said(output, "final") for output in outputs for (start_us, _) in told([output], "window_start")}
    assert [final[start_us] for start_us in (-5, 0, 10, 30)] == [False, True, True, True]


def test_a_step_may_give_several_rows_for_a_result() -> None:
    columns = pa.schema([("window_start", TIMES), ("meter", pa.large_string()), ("part", pa.int64())])

    def parts(rows: pa.RecordBatch) -> pa.RecordBatch:
        found = [
            (row["window_start"], row["meter"], row["sum_value"] // part)
            for row in rows.to_pylist()
            for part in (1, 1, 2)
        ]
        arrays = [pa.array(column, field.type) for column, field in zip(zip(*found, strict=True), columns, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=columns)

    travel = Travel(TimeTravel(Chain(SUMS, Step(parts, columns)), "1 ms", EVERY_5, "eager"))
    outputs = travel.push(*regular(20, end=50), (50, 20, "a", 0), (51, 50, "a", 1))
    assert [row for row in standing(outputs, "window_start", "part") if row[0] == 15] == [(15, 0), (15, 1), (15, 1)]
    assert {said(output, "pane") for output in outputs} == {"on_time"}
    outputs += travel.all([(52, 22, "a", 9), (53, 24, "a", 2)])
    assert [row for row in standing(outputs, "window_start", "part") if row[0] == 20] == [(20, 0), (20, 1), (20, 1)]


@pytest.mark.parametrize("trigger", ["eager", "lazy"])
def test_after_the_end_rows_are_late_and_what_waits_is_repaired(trigger: str) -> None:
    travel = Travel(TimeTravel(SUMS, "1 ms", EVERY_5, trigger))
    outputs = travel.push(*regular(20, end=50), (50, 20, "a", 7), end=50)
    assert refused(outputs) == []
    assert (15, 8, 1) in told(outputs, "window_start", "sum_value")
    after = travel.push((51, 60, "a", 1), (51, 20, "a", 1), (52, 10_000, "b", 1))
    assert sorted(refused(after)) == [(20, 1, "after_end"), (60, 1, "after_end"), (10_000, 1, "after_end")]
    found = standing([*outputs, *after, *travel.finish()], "window_start", "sum_value")
    assert found == [(-5, 1), *((start, 8 if start in (15, 20) else 2) for start in range(0, 45, 5)), (45, 1)]


@pytest.mark.parametrize("trigger", ["lazy", "eager"])
def test_nothing_is_held_after_the_end(trigger: str) -> None:
    travel = Travel(TimeTravel(SUMS, "1 ms", EVERY_5, trigger))
    first = travel.push(*regular(20, end=50))
    assert travel.machine.held > 0
    last = travel.push((50, 20, "a", 7), end=50)
    assert travel.machine.held == 0
    assert travel.finish() == []
    assert (20, 8) in standing([*first, *last], "window_start", "sum_value")


def test_an_idle_stream_gives_its_results_up_to_the_mark_and_is_repaired_still() -> None:
    """What comes at the mark itself is late after a silence, and on time without."""
    rows: list[Row] = [(0, 0, "a", 1), (1, 5, "a", 1), (2, 19, "a", 1)]
    late: list[Row] = [(100, 10, "a", 7), (101, 19, "b", 5), (102, 19, "a", 9)]
    right = [(-5, "a", 1), (0, "a", 2), (5, "a", 8), (10, "a", 8), (10, "b", 5), (15, "a", 1), (15, "b", 5)]
    idle = Travel(TimeTravel(SUMS, "1 ms", EVERY_5, "eager"), idle_ticks=20)
    outputs = [*idle.push(*rows), *idle.push(*late)]
    assert [row[1:] for row in told(outputs, "window_start", "sum_value", "meter") if row[0] == 10] == [
        (1, "a", 1),
        (1, "a", -1),
        (8, "a", 1),
        (5, "b", 1),
    ]
    assert refused(outputs) == [(19, 9, "no_hole")]
    assert standing([*outputs, *idle.finish()], "window_start", "meter", "sum_value") == right
    busy = Travel(TimeTravel(SUMS, "1 ms", EVERY_5, "eager")).all([*rows, *late])
    assert refused(busy) == []
    with_both = [
        (10, "a", 17) if row == (10, "a", 8) else (15, "a", 10) if row == (15, "a", 1) else row for row in right
    ]
    assert standing(busy, "window_start", "meter", "sum_value") == with_both


@pytest.mark.parametrize("late", [30, 150])
def test_contexts_that_do_not_fit_into_all_times_are_replayed_in_several_goes(late: int) -> None:
    """Windows whose advances meet again after 1,493 years: some 48 contexts of a key take all times there are."""
    sizes = (3607, 3613, 3617)
    levels = [WindowAggregation(Window(f"{size} s"), (Max("value", named="value"),)) for size in sizes]
    settings = TimeTravel(Chain(*levels), "400 days", Period("1 hour"), "eager")
    hour_us, missing = 3_600_000_000, range(10, 10 + 12 * late, 12)
    on_time: list[Row] = [(hour, hour * hour_us, "a", hour) for hour in range(12 * late + 40) if hour not in missing]
    came: list[Row] = [(hour + 12 * late + 50, hour * hour_us, "a", hour) for hour in missing]
    outputs = Travel(settings).all([*on_time, *came], [len(on_time)])
    in_order = sorted([*on_time, *came], key=lambda row: int(row[1]))
    expected = Travel(settings).all([(tick, *row[1:]) for tick, row in enumerate(in_order)])
    assert standing(outputs, "window_start", "value") == standing(expected, "window_start", "value")


def test_contexts_are_replayed_in_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    rows: list[Row] = [*regular(*range(20, 100, 20), end=120), *((120, ts_us, "a", 7) for ts_us in range(20, 100, 20))]
    whole = Travel(TimeTravel(SUMS, "1 ms", EVERY_5)).all(rows)
    monkeypatch.setattr("latecomer.timetravel.replay.MOST_EVENTS", 3)
    assert told(Travel(TimeTravel(SUMS, "1 ms", EVERY_5)).all(rows), "window_start", "sum_value") == told(
        whole, "window_start", "sum_value"
    )


def test_answers_are_not_final_earlier_after_a_silence() -> None:
    """The punctuation of a silent stream is its mark, but what is late within the bound is repaired still."""
    settings = TimeTravel(SUMS, "1 ms", EVERY_5)
    tick, mark = np.array([NEVER_US, 0, 100]), np.array([NEVER_US, 5_000, 5_000])
    silent = Timeline(tick, mark, np.array([NEVER_US, NEVER_US, 5_000]))
    assert settings.punctuation(silent) == 5_000 - 1_000 - 1
    assert settings.punctuation(Timeline(tick, mark, np.array([NEVER_US, NEVER_US, FOREVER_US]))) == FOREVER_US
    assert settings.punctuation(Timeline(tick[:1], mark[:1], mark[:1])) == NEVER_US
