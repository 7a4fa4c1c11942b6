"""Time travel by what tells holes: a period with jitter, and holes anywhere."""

from __future__ import annotations

import random

import pytest

from latecomer.errors import InputError
from latecomer.timetravel import Anywhere, CustomHoles, Enumerator, Holes, Period, TimeTravel, holes_of
from latecomer.windows import Count, Window, WindowAggregation
from tests.unit.travels import Row, Travel, refused, standing

COUNTS = WindowAggregation(Window("200 us", "100 us"), (Count(),))


def jittering(off_us: int, late: dict[int, int]) -> list[Row]:
    """An event every 100 us, off by so much at most; some come in a later tick."""
    rng = random.Random(7)
    rows = [(late.get(n, n), 100 * n + rng.randint(-off_us, off_us), "a", n) for n in range(200)]
    return sorted(rows, key=lambda row: (row[0], row[1]))


def run(holes: Holes, rows: list[Row]) -> tuple[list[tuple[int, int, str]], int, list[tuple[int, int]]]:
    """What is refused, what is held before the end, and the counts that stand in the end."""
    travel = Travel(TimeTravel(COUNTS, "10 ms", holes))
    outputs = travel.push(*rows)
    held = travel.machine.held
    outputs += travel.finish()
    late = [(ts_us, value, reason) for ts_us, value, reason in refused(outputs)]
    return late, held, [(start, count) for start, count in standing(outputs, "window_start", "count")]


def test_with_a_tolerance_jitter_makes_no_holes_and_late_events_find_theirs() -> None:
    late = {20: 90, 60: 95, 61: 96}
    rows = jittering(20, late)
    refused_rows, held, counts = run(Period("100 us", "20 us"), rows)
    _, held_in_step, _ = run(Period("100 us"), jittering(0, late))
    _, held_without, _ = run(Period("100 us"), rows)
    assert refused_rows == []
    assert held <= held_in_step + 4  # a reach has an event more or less
    assert held_without > 4 * held
    assert sum(count for _, count in counts) == 2 * len(rows)


def test_with_a_tolerance_no_more_is_accepted_than_is_missing() -> None:
    """A wider period instead would see no hole at all where one event is missing."""
    rows = jittering(20, {20: 90})
    extra: list[Row] = [(91, 2_001, "a", 1_000), (92, 3_050, "a", 1_001)]
    together = sorted([*rows, *extra], key=lambda row: (row[0], row[1]))
    assert {value for _, value, _ in run(Period("100 us", "20 us"), together)[0]} == {1_000, 1_001}
    assert {value for _, value, _ in run(Period("230 us"), rows)[0]} == {20}


def test_a_tolerance_is_below_a_quarter_of_the_period_and_goes_with_one() -> None:
    assert holes_of("1 hour", None, None, "14 minutes") == Period("1 hour", "14 minutes")
    assert Period("1 hour").describe() == {"holes": "period", "every_us": 3_600_000_000}
    assert Period("1 hour", "1 s").describe()["tolerance_us"] == 1_000_000
    assert Period("1 hour", "1 s").shown() == "where one is missing every 1 hour, give or take 1 s"
    with pytest.raises(InputError, match=r"tolerance must be less than a quarter of every \(1 hour\); got '15 min'"):
        Period("1 hour", "15 min")
    with pytest.raises(InputError, match="tolerance must not be negative"):
        Period("1 hour", "-1 s")
    with pytest.raises(InputError, match="tolerance must go with every; got '1 s'"):
        holes_of(None, "n", None, "1 s")


def test_anywhere_takes_every_late_event_and_holds_all_within_the_bound() -> None:
    """Also one that comes twice: where nothing tells what is missing, it is one more."""
    rows = [*jittering(40, {20: 90, 21: 91}), (200, 19_000, "a", 1), (201, 19_000, "a", 2), (202, 19_990, "a", 3)]
    late, held, counts = run(Anywhere(), rows)
    assert late == []
    assert held == sum(ts_us >= 19_990 - 10_000 - 2 * 200 for _, ts_us, _, _ in rows)
    assert sum(count for _, count in counts) == 2 * len(rows)
    told = run(CustomHoles(lambda before, after: [True] * len(after)), rows)
    assert told == (late, held, counts)


def test_anywhere_is_said_by_its_name() -> None:
    assert holes_of(None, None, "anywhere") == Anywhere()
    assert Anywhere().describe() == {"holes": "anywhere"}
    with pytest.raises(InputError, match="holes must be 'anywhere' or a function of two RecordBatches; got 'nowhere'"):
        holes_of(None, None, "nowhere")


@pytest.mark.parametrize(
    "holes", [Period("100 us"), Enumerator("value"), CustomHoles(lambda before, after: [1] * len(after))]
)
def test_of_many_holes_a_late_event_finds_its_own(holes: Holes) -> None:
    """Every second event is missing; half of those within the bound come late, in any order, and then once more."""
    missing = random.Random(3).sample(range(301, 399, 2), 25)
    numbers = [*range(0, 400, 2), *missing]
    rows: list[Row] = [(tick, 100 * n, "a", n) for tick, n in enumerate(numbers)]
    again: list[Row] = [(1_000 + n, 100 * n, "a", n) for n in missing]
    late, _, counts = run(holes, [*rows, *again])
    assert sorted(value for _, value, _ in late) == sorted(missing)
    expected = {start: sum(start <= 100 * n < start + 200 for n in numbers) for start, _ in counts}
    assert dict(counts) == expected
