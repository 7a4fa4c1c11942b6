"""Time travel on small streams: the paper's running example, and what may go wrong with meters."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from latecomer.events import TICK_FIELD, Layout
from latecomer.outputs import Output
from latecomer.timetravel import CustomHoles, Enumerator, Period, TimeTravel
from latecomer.windows import Chain, Count, Step, Sum, Window, WindowAggregation, WindowFunction
from tests.outputs import said
from tests.unit.travels import TIMES, Row, Travel, refused, standing, told

HOUR_US = 3_600_000_000
READINGS = [0, 1, 2, 11, 6, 7, 16, 25, 20, 21, *range(22, 28)]
RESULT = [("window_start", TIMES), ("window_end", TIMES), ("meter", pa.large_string())]


def difference(rows: pa.RecordBatch) -> int | None:
    """The consumption between two readings."""
    values = rows.column("value").to_pylist()
    return values[1] - values[0] if len(values) == 2 else None


def alert(rows: pa.RecordBatch) -> int | None:
    """How many large values there are before a negative one, if any."""
    values = rows.column("used").to_pylist()
    negative = [place for place, value in enumerate(values) if value < 0]
    return sum(value > 5 for value in values[: negative[-1]]) or None if negative else None


def meters() -> Chain:
    """The application of the running example."""
    used, alerts = pa.schema([*RESULT, ("used", pa.int64())]), pa.schema([*RESULT, ("alert", pa.int64())])
    consumption = WindowFunction(["value"], difference, pa.int64(), named="used")
    return Chain(
        WindowAggregation(Window("2 hours", "1 hour"), (consumption,)),
        Step(lambda rows: rows.filter(pc.is_valid(rows.column("used"))), used),
        WindowAggregation(Window("4 hours", "1 hour"), (WindowFunction(["used"], alert, pa.int64(), named="alert"),)),
        Step(lambda rows: rows.filter(pc.is_valid(rows.column("alert"))), alerts),
    )


def reading(hour: int, tick: int) -> Row:
    """A reading of the running example."""
    return tick, hour * HOUR_US, "a", READINGS[hour]


def alerts_of(outputs: list[Output]) -> list[tuple[int, int, int]]:
    """Hour, value and change of alerts, by hour."""
    found = [(start_us // HOUR_US, value, change) for start_us, value, change in told(outputs, "window_start", "alert")]
    return sorted(found, key=lambda row: (row[0], row[2]))


def given(*hours_and_values: tuple[int, int]) -> list[tuple[int, int, int]]:
    """Alerts that are given."""
    return [(hour, value, 1) for hour, value in hours_and_values]


def test_the_running_example() -> None:
    """Figures 1, 2 and 4, with values of our own."""
    right = given((0, 1), (1, 1), (2, 1), (4, 2), (5, 2), (6, 1))
    settings = TimeTravel(meters(), "40 days", Period("1 hour"), "eager", retract=False)
    assert alerts_of(Travel(settings).all([reading(hour, hour) for hour in range(16)])) == right
    travel = Travel(settings)
    live = [travel.push(reading(hour, hour)) for hour in range(16) if hour not in (4, 5)]
    assert [alerts_of(outputs) for outputs in live[-6:]] == [given((4, 1)), given((5, 1)), given((6, 1)), [], [], []]
    assert alerts_of(travel.push(reading(4, 20))) == given((0, 1), (1, 1), (2, 1), (4, 1))
    assert alerts_of(travel.push(reading(5, 21))) == given((0, 1), (1, 1), (2, 1), (4, 2), (5, 2))
    assert travel.finish() == []


def test_the_running_example_with_what_is_void() -> None:
    travel = Travel(TimeTravel(meters(), "40 days", Period("1 hour"), "eager"))
    for hour in (hour for hour in range(16) if hour not in (4, 5)):
        travel.push(reading(hour, hour))
    assert alerts_of(travel.push(reading(4, 20))) == given((0, 1), (1, 1), (2, 1))
    last = travel.push(reading(5, 21))
    assert alerts_of(last) == [(4, 1, -1), (4, 2, 1), (5, 1, -1), (5, 2, 1)]
    assert {said(output, "final") for output in last} == {True}
    assert travel.machine.store.notes["1/3/duplicates"] == 1 + 3


def test_midnight_is_shifted_to_14_where_a_context_of_one_event_was_replayed_before() -> None:
    """Figure 4; the step sees what the application is fed with."""
    fed: list[list[int]] = []

    def seen(rows: pa.RecordBatch) -> pa.RecordBatch:
        fed.append([ts_us // HOUR_US for ts_us in rows.column("ts").view(pa.int64()).to_pylist()])
        return rows

    user = pa.schema([("ts", TIMES), ("meter", pa.large_string()), ("value", pa.int64())])
    travel = Travel(TimeTravel(Chain(Step(seen, user), meters()), "40 days", Period("1 hour"), "eager"))
    travel.push(*(reading(hour, hour) for hour in range(16) if hour not in (4, 5)))
    travel.push((18, -20 * HOUR_US, "a", 0), reading(4, 20))
    on_time = [hour for hour in range(16) if hour not in (4, 5)]
    live, elsewhere, again, replica = fed  # the second and third only try whether the step depends on times
    assert live == again == on_time
    assert elsewhere == [hour + 13 for hour in on_time]
    assert replica == [7, *(14 + hour for hour in range(10) if hour != 5)]


SUMS = WindowAggregation(Window("4 us", "2 us"), (Count(), Sum("value")))


def sums(holes: Period | Enumerator | CustomHoles | None = None, trigger: Any = "lazy", **others: Any) -> TimeTravel:
    """Plain sums, every so often."""
    return TimeTravel(SUMS, "40 us", holes or Period("2 us"), trigger, **others)


def summed(rows: list[Row], size_us: int = 4, advance_us: int = 2) -> list[tuple[int, str, int]]:
    """Start, meter and sum of the windows of rows."""
    found: dict[tuple[int, str], int] = {}
    for _, ts_us, meter, value in rows:
        for start_us in range(-size_us - advance_us, ts_us + 1):
            if start_us % advance_us == 0 and start_us <= ts_us < start_us + size_us:
                found[start_us, meter] = found.get((start_us, meter), 0) + value
    return sorted((*place, total) for place, total in found.items())


def check(settings: TimeTravel, rows: list[Row], late: list[tuple[Any, ...]], **window: int) -> None:
    """The sums of all rows but those that are refused, however the rows are cut."""
    accepted = [row for row in rows if (row[1], row[3]) not in {(ts_us, value) for ts_us, value, _ in late}]
    for cuts in (range(0), range(1, len(rows)), range(3, len(rows), 7)):
        outputs = Travel(settings).all(rows, cuts)
        assert refused(outputs) == late
        assert standing(outputs, "window_start", "meter", "sum_value") == summed(accepted, **window)


@pytest.mark.parametrize("trigger", ["eager", "lazy"])
def test_an_outage_of_days_is_repaired(trigger: str) -> None:
    """A meter is silent for three days; most of its readings come in one batch, before the next one on time."""
    hourly = WindowAggregation(Window("4 hours", "1 hour"), (Count(), Sum("value")))
    settings = TimeTravel(hourly, "40 days", Period("1 hour"), trigger)
    rows: list[Row] = [(hour, hour * HOUR_US, "b", 1) for hour in range(100)]
    rows += [(hour, hour * HOUR_US, "a", hour) for hour in range(100) if not 10 <= hour < 82]
    rows += [(82 if hour % 2 else 90, hour * HOUR_US, "a", hour) for hour in range(10, 82) if hour % 7]
    rows = sorted(rows, key=lambda row: row[0])
    cut = next(place for place, row in enumerate(rows) if row[0] == 90)
    outputs = Travel(settings).all(rows, [cut])
    assert refused(outputs) == []
    hours = [(tick, ts_us // HOUR_US, meter, value) for tick, ts_us, meter, value in rows]
    found = standing(outputs, "window_start", "meter", "sum_value")
    assert [(start_us // HOUR_US, meter, value) for start_us, meter, value in found] == summed(hours, 4, 1)


def test_a_dead_key_is_repaired_and_then_forgotten() -> None:
    dead: list[Row] = [(0, 0, "dead", 1), (1, 2, "dead", 1), (4, 6, "dead", 1), (5, 4, "dead", 5)]
    others: list[Row] = [(ts_us, ts_us, "live", 1) for ts_us in range(8, 100, 2)]
    with_it, without = Travel(sums()), Travel(sums())
    assert standing(with_it.push(*dead, *others), "window_start", "meter", "sum_value")[:3] == [
        (-2, "dead", 1),
        (0, "dead", 2),
        (2, "dead", 6),
    ]
    without.push(*others)
    assert with_it.machine.held == without.machine.held
    assert with_it.machine.store.rows == without.machine.store.rows
    with_it.finish()
    assert with_it.machine.held == with_it.machine.store.rows == 0


@pytest.mark.parametrize("trigger", ["eager", "lazy", lambda late: pa.nulls(len(late))])
@pytest.mark.parametrize(
    "holes", [Period("2 us"), CustomHoles(lambda before, after: [0] * len(after))], ids=["period", "told"]
)
def test_a_key_whose_first_event_is_late_is_repaired(trigger: Any, holes: Period | CustomHoles) -> None:
    rows: list[Row] = [(0, 50, "b", 1), (1, 44, "a", 2), (2, 46, "a", 3), (3, 52, "a", 5), (4, 48, "a", 7)]
    check(sums(holes, trigger), rows, [])


def test_holes_closer_than_two_contexts_are_replayed_as_one_but_not_what_lies_between() -> None:
    each = WindowAggregation(Window("4 us", "1 us"), (Sum("value"),))
    rows: list[Row] = [(0, ts_us, "a", ts_us) for ts_us in range(30) if ts_us not in (13, 19)]
    rows += [(1, 13, "a", 13), (1, 19, "a", 19), (2, 30, "a", 30)]
    for trigger in ("eager", "lazy"):
        travel = Travel(TimeTravel(each, "100 us", Period("1 us"), trigger, retract=False))
        outputs = travel.all(rows, [28])
        revised = [output for output in outputs if said(output, "pane") == "revised"]
        again = [start_us for start_us, *_ in told(revised, "window_start")]
        assert again == [10, 11, 12, 13, 16, 17, 18, 19]
        check(TimeTravel(each, "100 us", Period("1 us"), trigger), rows, [], size_us=4, advance_us=1)


def test_readings_twice_for_one_time_count_on_time_and_are_refused_late() -> None:
    rows: list[Row] = [(0, 0, "a", 1), (1, 2, "a", 2), (1, 2, "a", 3), (2, 2, "a", 4), (3, 8, "a", 5)]
    rows += [(4, 2, "a", 6), (5, 6, "a", 7), (6, 6, "a", 8), (7, 10, "a", 9)]
    check(sums(), rows, [(2, 6, "no_hole"), (6, 8, "no_hole")])


def test_a_period_need_not_divide_the_advances() -> None:
    settings = TimeTravel(WindowAggregation(Window("10 us", "4 us"), (Sum("value"),)), "70 us", Period("7 us"))
    late = (21, 28, 63)
    rows: list[Row] = [(ts_us, ts_us, "a", ts_us) for ts_us in range(0, 105, 7) if ts_us not in late]
    rows += [(90, 63, "a", 63), (84, 28, "a", 28), (85, 21, "a", 21), (86, 23, "a", 23)]
    check(settings, sorted(rows), [(23, 23, "no_hole")], size_us=10, advance_us=4)


@pytest.mark.parametrize(("day", "hours"), [("2024-03-31", 23), ("2024-10-27", 25)])
def test_clock_changes_are_nothing_special(day: str, hours: int) -> None:
    """The local clock has no 02:00 in spring, and two in autumn; times are microseconds of UTC."""
    zone = ZoneInfo("Europe/Stockholm")
    midnight = datetime.fromisoformat(day).replace(tzinfo=zone)
    end = (midnight + timedelta(days=1)).astimezone(UTC)
    first = midnight.astimezone(UTC)
    moments = [first + timedelta(hours=hour) for hour in range((end - first) // timedelta(hours=1))]
    assert len(moments) == hours
    assert len({moment.astimezone(zone).strftime("%H:%M") for moment in moments}) == min(hours, 24)
    rows: list[Row] = [(place, moment, "a", 1) for place, moment in enumerate(moments)]
    late = rows.pop(3)
    travel = Travel(TimeTravel(WindowAggregation(Window("2 hours", "1 hour"), (Count(),)), "1 day", Period("1 hour")))
    outputs = travel.push(*rows, (30, *late[1:]), (31, moments[-1] + timedelta(hours=1), "a", 1))
    assert refused(outputs) == []
    assert travel.machine.held == 2 + 1 + 3 + 2  # after the first hole, the late one, around its hole, recent
    counts = standing([*outputs, *travel.finish()], "window_start", "count")
    assert [count for _, count in counts] == [1, *[2] * hours, 1]


KEYS: dict[str, tuple[list[str], list[Row]]] = {
    "text": (["meter"], [("a",), ("b",)]),
    "null": (["meter"], [("a",), (None,)]),
    "none": ([], [(), ()]),
    "compound": (["city", "meter"], [("x", 1), ("x", 2)]),
    "numbers": (["meter"], [(1,), (2**40,)]),
    "floats": (["meter"], [(0.0,), (float("nan"),)]),
}


@pytest.mark.parametrize("names", KEYS)
@pytest.mark.parametrize("trigger", ["eager", "lazy"])
def test_keys_are_of_any_type(names: str, trigger: str) -> None:
    columns, values = KEYS[names]
    kinds = [pa.array([value[place] for value in values]).type for place in range(len(columns))]
    schema = pa.schema([TICK_FIELD, ("ts", TIMES), *zip(columns, kinds, strict=True), ("value", pa.int64())])
    events = [
        (0, 0, 0),
        (0, 0, 1),
        (1, 4, 0),
        (1, 4, 1),
        (2, 8, 0),
        (2, 8, 1),
        (3, 2, 0),
        (4, 6, 1),
        (5, 10, 0),
        (6, 12, 1),
    ]
    rows = [(tick, ts_us, *values[key], place) for place, (tick, ts_us, key) in enumerate(events)]
    layout = Layout("ts", tuple(columns))
    settings = sums(CustomHoles(lambda before, after: [True] * len(after)), trigger)
    outputs = Travel(settings, schema, layout).all(rows, [3, 6, 7, 9])
    assert refused(outputs) == []
    in_order = [(place, *row[1:]) for place, row in enumerate(sorted(rows, key=lambda row: row[1]))]
    expected = Travel(settings, schema, layout).all(in_order)
    names_ = ["window_start", *columns, "count", "sum_value"]
    assert repr(standing(outputs, *names_)) == repr(standing(expected, *names_))
    assert sum(said(output, "pane") == "revised" for output in outputs) > 0


def test_empty_batches_change_nothing() -> None:
    travel = Travel(sums())
    assert travel.push() == []
    travel.push((0, 0, "a", 1), (1, 4, "a", 1))
    held = travel.machine.held
    assert travel.push() == []
    assert travel.push() == []
    assert travel.machine.held == held
    assert told(travel.push((2, 2, "a", 5), (3, 6, "a", 1)), "window_start", "sum_value") == [
        (2, 6, 1),
        (0, 1, -1),
        (0, 6, 1),
    ]
    assert Travel(sums()).finish() == []


def test_events_of_one_tick_are_never_late() -> None:
    rows: list[Row] = [(0, ts_us, "a", ts_us) for ts_us in (30, 4, 2, 0, 6)]
    travel = Travel(sums())
    outputs = [*travel.push(*rows), *travel.finish()]
    assert {said(output, "pane") for output in outputs} == {"on_time"}
    assert standing(outputs, "window_start", "meter", "sum_value") == summed(rows)


def test_sums_of_floats_that_did_not_change_are_the_same_to_the_last_bit() -> None:
    """A replay adds up in the same order as the live instance, wherever in time it runs."""
    columns = pa.schema([TICK_FIELD, ("ts", TIMES), ("meter", pa.string()), ("value", pa.float64())])
    sums = WindowAggregation(Window("24 us", "1 us"), (Sum("value"),))
    travel = Travel(TimeTravel(sums, "1 ms", Period("1 us")), columns)
    travel.push(*((ts_us, ts_us, "a", 0.1 * (ts_us % 7)) for ts_us in range(100) if ts_us != 41))
    outputs = travel.push((100, 41, "a", 0.0), (101, 101, "a", 0.1))
    assert [output for output in outputs if said(output, "pane") == "revised"] == []
