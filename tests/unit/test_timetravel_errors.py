"""What time travel refuses, and in which words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from latecomer.errors import HeldError, InputError
from latecomer.events import TICK_FIELD, Layout, concat_rows
from latecomer.testing import run_chain
from latecomer.timetravel import CustomHoles, Enumerator, Holes, Period, TimeTravel, holes_of
from latecomer.windows import (
    AggregateFunction,
    Chain,
    Count,
    Last,
    Max,
    Operator,
    Pattern,
    Step,
    Sum,
    TopK,
    Window,
    WindowAggregation,
    WindowFunction,
)
from tests.outputs import said
from tests.unit.travels import COLUMNS, LAYOUT, TIMES, Row, Travel, standing

COUNTS = WindowAggregation(Window("10 us"), (Count(),))
ROWS: list[Row] = [(0, 0, "a", 0), (1, 20, "a", 1), (2, 5, "a", 2), (3, 40, "a", 3)]
USER = pa.schema([("ts", TIMES), ("meter", pa.large_string()), ("value", pa.int64())])


def travel(operator: Operator = COUNTS, holes: Holes | None = None, **others: Any) -> TimeTravel:
    """Time travel by a period."""
    return TimeTravel(operator, others.pop("bound", "50 us"), holes or Period("5 us"), **others)


def same(rows: pa.RecordBatch) -> pa.RecordBatch:
    """A step that does nothing."""
    return rows


@pytest.mark.parametrize(
    ("operator", "text"),
    [
        (
            Pattern("value", 1, 2, within="10 us"),
            "made of operators whose windows are known: .* got 'Pattern'; write it",
        ),
        (Chain(COUNTS, Pattern("count", 1, 2, within="10 us")), "operators whose windows are known"),
        (
            Step(same, USER),
            "application must have at least one windowed aggregate; got 'none'; e.g. lc.WindowAggregation",
        ),
        (None, "operators whose windows are known: WindowAggregation and Step; got 'NoneType'"),
    ],
)
def test_an_application_without_known_windows_is_refused(operator: Any, text: str) -> None:
    with pytest.raises(InputError, match=text):
        travel(operator)


def test_a_wait_as_long_as_the_bound_is_refused() -> None:
    assert travel(wait="49 us").wait_us == 49
    with pytest.raises(InputError, match=r"wait must be shorter than the bound \(50 us\); got '50 us'"):
        travel(wait="50 us")


def test_a_bound_shorter_than_the_windows_is_refused() -> None:
    chain = Chain(COUNTS, WindowAggregation(Window("20 us", "1 us"), (Sum("count"),)))
    assert travel(chain, bound="30 us").bound_us == 30
    rule = r"bound must be at least as long as what results depend on \(30 us, from all windows\); got '29 us'"
    with pytest.raises(InputError, match=rule):
        travel(chain, bound="29 us")


def test_holes_are_told_in_just_one_way() -> None:
    assert holes_of("1 hour", None, None) == Period("1 hour")
    assert holes_of(None, "n", None) == Enumerator("n")
    assert isinstance(holes_of(None, None, lambda before, after: []), CustomHoles)
    with pytest.raises(InputError, match="said in one way: every, enumerator or holes; got '0 ways'"):
        holes_of(None, None, None)
    with pytest.raises(InputError, match="got '2 ways'"):
        holes_of("1 hour", "n", None)
    for every in ("soon", "0 s", "-1 s"):
        with pytest.raises(InputError, match="every must be"):
            Period(every)


def test_what_is_no_way_to_tell_holes_is_refused() -> None:
    one_hour: Any = "1 hour"
    with pytest.raises(InputError, match="holes must be a Period, an Enumerator, CustomHoles or Anywhere; got"):
        travel(holes=one_hour)
    with pytest.raises(InputError, match="holes must be a function of two RecordBatches; got '1 hour'; or use every="):
        CustomHoles(one_hour)


def test_an_enumerator_is_a_column_of_whole_numbers() -> None:
    columns = pa.schema([*COLUMNS, ("share", pa.float64())])
    travel(holes=Enumerator("value")).output(columns, LAYOUT)
    with pytest.raises(InputError, match="enumerator must be one of ts, meter, value, share; got 'n'; check the name"):
        travel(holes=Enumerator("n")).output(columns, LAYOUT)
    with pytest.raises(
        InputError, match="enumerator must be a column of whole numbers; got 'share, a double'; cast it"
    ):
        travel(holes=Enumerator("share")).output(columns, LAYOUT)
    with pytest.raises(InputError, match="events must have a number in value; got '1 without'; filter them out before"):
        Travel(travel(holes=Enumerator("value"))).push(*ROWS, (4, 50, "a", None))


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda before, after: [1], r"got 'int64 of shape \(1,\)'"),
        (lambda before, after: 1, r"got 'int64 of shape \(\)'"),
        (lambda before, after: None, "got 'object of shape"),
        (lambda before, after: np.ones((len(after), 2), dtype=np.int64), r"got 'int64 of shape \(2, 2\)'"),
        (lambda before, after: np.full(len(after), 0.5), "got 'float64"),
        (lambda before, after: ["yes"] * len(after), "got '<U3"),
        (lambda before, after: pa.nulls(len(after), pa.int64()), "got 'float64"),
    ],
)
def test_a_hole_function_gives_one_whole_number_per_row(function: Callable[..., Any], text: str) -> None:
    with pytest.raises(InputError, match=f"holes must return one whole number, or true or false, per row; {text}"):
        Travel(travel(holes=CustomHoles(function))).push(*ROWS)


@pytest.mark.parametrize(
    "function",
    [
        lambda before, after: [-7] * len(after),
        lambda before, after: np.full(len(after), 3, dtype=np.uint8),
        lambda before, after: pc.greater(after["ts"], before["ts"]),
        lambda before, after: pa.chunked_array([[1] * len(after)]),
        lambda before, after: [True] * len(after),
    ],
)
def test_a_hole_function_may_give_any_kind_of_whole_numbers_or_truths(function: Callable[..., Any]) -> None:
    outputs = Travel(travel(holes=CustomHoles(function))).all(ROWS)
    assert standing(outputs, "window_start", "count") == [(0, 2), (20, 1), (40, 1)]


@pytest.mark.parametrize("trigger", ["soon", None, 5, []])
def test_a_trigger_is_eager_lazy_or_a_function(trigger: Any) -> None:
    rule = "trigger must be 'eager', 'lazy', or a function from late events to the times of their replay; got"
    with pytest.raises(InputError, match=rule):
        travel(trigger=trigger)


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda late: [], "0 for 1 rows"),
        (lambda late: [1, 2], "2 for 1 rows"),
        (lambda late: None, "NoneType"),
        (lambda late: 5, "int"),
        (lambda late: [object()], "list"),
        (lambda late: ["today"], "values of type string"),
        (lambda late: [0.5], "values of type double"),
        (lambda late: pa.array([1], pa.int32()), "values of type int32"),
        (lambda late: pa.array([1], pa.duration("us")), r"values of type duration\[us\]"),
    ],
)
def test_a_trigger_function_gives_one_time_per_row(function: Callable[..., Any], text: str) -> None:
    with pytest.raises(InputError, match=f"trigger must return one time per row; got '{text}'; e.g. pc.ceil_temporal"):
        Travel(travel(trigger=function)).push(*ROWS)


@pytest.mark.parametrize(
    "times",
    [
        pa.array([50]),
        pa.array([50], TIMES),
        pa.array([50_999], pa.timestamp("ns")),
        pa.chunked_array([pa.array([50], TIMES)]),
        np.array([50_000], dtype="datetime64[ns]"),
    ],
)
def test_a_trigger_function_may_give_times_of_any_unit(times: Any) -> None:
    asked = Travel(travel(trigger=lambda late: times, bound="1 ms"))
    outputs = [asked.push(*ROWS), *(asked.push((ts_us, ts_us, "b", 1)) for ts_us in (49, 50))]
    assert [any(said(output, "pane") == "revised" for output in each) for each in outputs] == [False, False, True]


def _reads(*aggregates: AggregateFunction, first: Operator | None = None) -> TimeTravel:
    last = WindowAggregation(Window("10 us"), aggregates)
    return travel(last if first is None else Chain(Chain(first, Step(same, USER)), last))


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        (_reads(Max("ts")), "ts"),
        (_reads(Count(), TopK("ts")), "ts"),
        (_reads(WindowFunction(["value", "ts"], len, pa.int64(), named="own")), "ts"),
        (_reads(Last("window_start"), first=COUNTS), "window_start"),
        (_reads(Last("window_end"), first=COUNTS), "window_end"),
    ],
)
def test_aggregates_of_times_are_refused(settings: TimeTravel, name: str) -> None:
    with pytest.raises(InputError, match=f"aggregates must not read times, which replays shift; got '{name}'; read a"):
        settings.output(COLUMNS, LAYOUT)


def test_a_window_function_may_read_the_time_if_it_says_what_repeats() -> None:
    """The minute of the hour is the same in shifted time."""

    def minutes(rows: pa.RecordBatch) -> int:
        return int(pc.sum(pc.minute(rows.column("ts"))).as_py())

    minute_us = 60_000_000
    app = WindowAggregation(
        Window("2 minutes", "1 minute"), (WindowFunction(["ts"], minutes, pa.int64(), named="sum"),)
    )
    settings = TimeTravel(app, "1 day", Period("1 minute"), "eager", periodicity="1 hour")
    assert settings.output(COLUMNS, LAYOUT).names[-1] == "sum"
    rows: list[Row] = [(minute, minute * minute_us, "a", 0) for minute in range(200, 210) if minute != 205]
    outputs = Travel(settings).all([*rows, (210, 205 * minute_us, "a", 0)], [9])
    sums = [value for _, value in standing(outputs, "window_start", "sum")]
    assert sums == [20, *(2 * minute + 1 for minute in range(20, 29)), 29]


def test_the_time_must_be_among_the_columns() -> None:
    with pytest.raises(
        InputError, match="time must be among the columns, unchanged; got 'only value'; select it as it is"
    ):
        travel().output(pa.schema([TICK_FIELD, ("value", pa.int64())]), LAYOUT)


@pytest.mark.parametrize("by_us", [-3, 3, 1_000])
@pytest.mark.parametrize("first", [True, False])
def test_a_step_that_changes_times_stops_the_query(by_us: int, first: bool) -> None:
    def moved(rows: pa.RecordBatch) -> pa.RecordBatch:
        ts_us = pc.add(rows.column(0).cast(pa.int64()), by_us).cast(TIMES)
        return rows.set_column(0, rows.schema.field(0), ts_us)

    app = Chain(Step(moved, USER, "moving"), COUNTS) if first else Chain(COUNTS, Step(moved, RESULTS, "moving"))
    with pytest.raises(InputError, match="step moving must leave times and keys as they are; got 'rows at other times"):
        Travel(travel(app)).push(*ROWS)


def test_a_step_that_changes_keys_stops_the_query() -> None:
    """Replays follow one key at a time; which of its columns is changed does not matter."""

    def renamed(rows: pa.RecordBatch) -> pa.RecordBatch:
        place = rows.schema.get_field_index("meter")
        return rows.set_column(place, rows.schema.field(place), pa.array(["all"] * rows.num_rows, pa.large_string()))

    with pytest.raises(InputError, match=r"step renaming must leave times and keys as they are; got .* other keys"):
        Travel(travel(Chain(Step(renamed, USER, "renaming"), COUNTS))).push(*ROWS)


RESULTS = pa.schema([("window_start", TIMES), ("window_end", TIMES), *USER.remove(0).remove(1), ("count", pa.int64())])


def add_hour(rows: pa.RecordBatch) -> pa.RecordBatch:
    """A value that depends on the hour of the day."""
    return rows.append_column("hour", pc.hour(rows.column("window_start")))


def late_hours(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Some rows, by the hour of the day."""
    return rows.filter(pc.greater_equal(pc.hour(rows.column("window_start")), 9))


def copy_end(rows: pa.RecordBatch) -> pa.RecordBatch:
    """The end of the window, by another name."""
    return rows.append_column("until", rows.column("window_end"))


def copy_time(rows: pa.RecordBatch) -> pa.RecordBatch:
    """The time of the event, by another name."""
    return rows.append_column("seen", rows.column("ts"))


HOURLY = WindowAggregation(Window("2 hours", "1 hour"), (Count(),))
HOUR_US = 3_600_000_000
HOURS: list[Row] = [(hour, hour * HOUR_US, "a", hour) for hour in range(8, 14)]


@pytest.mark.parametrize(
    "app",
    [
        Chain(HOURLY, Step(add_hour, RESULTS.append(pa.field("hour", pa.int64())), "reading")),
        Chain(HOURLY, Step(late_hours, RESULTS, "reading")),
        Chain(HOURLY, Step(copy_end, RESULTS.append(pa.field("until", TIMES)), "reading")),
        Chain(Step(copy_time, USER.append(pa.field("seen", TIMES)), "reading"), HOURLY),
    ],
)
def test_a_step_that_reads_times_stops_the_query(app: Chain) -> None:
    """Replays run at other times: what it gives there would be wrong."""
    match = "step reading must give the same at other times, where replays run; .* say the periodicity, e.g. '1 day'"
    with pytest.raises(InputError, match=match):
        Travel(TimeTravel(app, "1 day", Period("1 hour"))).push(*HOURS)


def test_a_step_may_read_what_repeats() -> None:
    app = Chain(HOURLY, Step(add_hour, RESULTS.append(pa.field("hour", pa.int64())), "reading"))
    settings = TimeTravel(app, "1 day", Period("1 hour"), periodicity="1 day")
    late: Row = (20, 10 * HOUR_US, "a", 10)
    outputs = Travel(settings).all([*(row for row in HOURS if row[0] != 10), late, (21, 15 * HOUR_US, "a", 15)], [5])
    hours = [(start_us // HOUR_US, hour) for start_us, hour in standing(outputs, "window_start", "hour")]
    assert hours == [(hour, hour) for hour in range(7, 16)]


def test_windows_that_never_meet_again_are_refused() -> None:
    odd = WindowAggregation(Window("3599999999 us"), (Count(),))
    match = r"meet again within 10,000 years; got '\[3599999999\] us, periodicity 604800000000 us'; make them multiples"
    with pytest.raises(InputError, match=match):
        TimeTravel(odd, "1 day", Period("1 hour"), periodicity="1 week")


@pytest.mark.parametrize("name", ["retract", "shifted"])
@pytest.mark.parametrize("value", ["no", None, 1])
def test_switches_are_true_or_false(name: str, value: Any) -> None:
    with pytest.raises(InputError, match=f"{name} must be True or False; got {value!r}; leave it out"):
        travel(**{name: value})


def test_the_end_of_a_window_is_a_time() -> None:
    for kind in (pa.string(), pa.int64()):
        step = Step(same, RESULTS.set(1, pa.field("window_end", kind)), "ending")
        with pytest.raises(
            InputError, match=r"window_end of step ending must be of type timestamp.* call it otherwise"
        ):
            travel(Chain(COUNTS, step)).output(COLUMNS, LAYOUT)


def test_the_key_is_not_the_time() -> None:
    with pytest.raises(InputError, match="key must not be the time; got 'ts'"):
        travel().output(COLUMNS, Layout("ts", ("ts",)))


def test_a_step_may_leave_rows_out_and_put_others_beside_them() -> None:
    def some(rows: pa.RecordBatch) -> pa.RecordBatch:
        return concat_rows([rows.slice(1, 1), rows.slice(1, 1), rows.slice(1)])

    assert Travel(travel(Chain(Step(some, USER), COUNTS))).push(*ROWS)


def test_more_than_max_held_stops_the_query() -> None:
    assert Travel(travel(max_held=4)).push(*ROWS)
    with pytest.raises(HeldError, match="must stay within max_held=3; got 4"):
        Travel(travel(max_held=3)).push(*ROWS)
    for none in (0, -1, True, "3"):
        with pytest.raises(InputError, match="max_held must be a whole number above zero"):
            travel(max_held=none)


def test_time_travel_takes_the_largest_time_as_its_clock() -> None:
    """With merged progress a row behind its key's latest is on time, which replays do not expect."""
    rows = [{"ts": 1, "key": 1, "source": "a"}]
    with pytest.raises(InputError, match=r"timetravel must be asked of progress='latest'.*what sources that lag bring"):
        run_chain(
            lambda events: events.tumbling("10 us").aggregate(Count()).timetravel("1 hour", holes="anywhere"),
            rows,
            time="ts",
            key="key",
            source="source",
            progress="merged",
        )
