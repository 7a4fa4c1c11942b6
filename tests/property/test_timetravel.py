"""Time travel against its slow twin, tick by tick, and through the five invariants."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from latecomer.events import Int64s
from latecomer.outputs import Lane, Output, Pane
from latecomer.testing import Run, check_machine, run_machine
from latecomer.timetravel import Anywhere, CustomHoles, Holes, Period, TimeTravel, Trigger
from latecomer.windows import Chain, Sum, Window, WindowAggregation
from tests.naive_holes import Event, Given
from tests.naive_timetravel import NaiveTimeTravel
from tests.property.streams import ASKED
from tests.property.travels import (
    ANYWHERE,
    KINDS,
    NUMBERED,
    TRIGGERS,
    Case,
    Kind,
    Level,
    When,
    arriving,
    as_stream,
    cases,
    long_events,
    period,
)
from tests.unit.naive_streams import any_events, as_dict, dense_events, grids, numbered, sorted_run


class Said(NamedTuple):
    """One thing that was said of a result."""

    values: tuple[Any, ...]
    change: int
    final: bool
    replayed: bool


Sayings = dict[tuple[int, int], list[Said]]  # by key and start, in order


def of_twin(changes: Sequence[Given]) -> Sayings:
    """What the twin said."""
    found: Sayings = {}
    for row in changes:
        found.setdefault((row.key, row.start_us), []).append(Said(row.values, row.change, row.final, row.replayed))
    return found


def of_machine(outputs: Iterable[Output]) -> Sayings:
    """What the machine said."""
    found: Sayings = {}
    for output in (output for output in outputs if output.lane is Lane.RESULTS):
        for row in output.rows.to_pylist():
            each = Said((row["id"],), row["change"], row["final"], row["pane"] == Pane.REVISED)
            found.setdefault((row["key"], row["window_start"]), []).append(each)
    return found


def everything(run: Run) -> list[Output]:
    """What came out of all batches, one after the other."""
    return [output for outputs in run.outputs for output in outputs]


def reasons(run: Run) -> list[tuple[int, str]]:
    """Which events were refused, and why."""
    rows = run.rows(Lane.LATE)
    return [] if rows is None else sorted(zip(rows["id"].to_pylist(), rows["reason"].to_pylist(), strict=True))


class Expected(NamedTuple):
    """What the twin gave in each batch, the end being the last of them, and what it held after each."""

    batches: list[list[Given]]
    held: list[int]


def run_twin(twin: NaiveTimeTravel, events: Sequence[Event], cuts: Sequence[int]) -> Expected:
    """Run the twin over batches that are cut between ticks, and to the end."""
    batches, held = [], []
    for start, stop in zip([0, *cuts], [*cuts, len(events)], strict=True):
        changes: list[Given] = []
        for tick in sorted({event.tick for event in events[start:stop]}):
            changes += twin.tick([event for event in events[start:stop] if event.tick == tick], tick)
        batches.append(changes)
        held.append(twin.held)
    return Expected([*batches, twin.finish()], held)


def check(case: Case, kind: Kind, when: When, events: Sequence[Event], cuts: Sequence[int]) -> NaiveTimeTravel:
    """The machine says what its twin says, when it does, and holds what it holds; all is well in the end."""
    events, stream = arriving(events), as_stream(arriving(events))
    twin, asked = case.twin(kind.twin, when.twin), case.machine(kind.machine, when.machine)
    expected = run_twin(twin, events, cuts)
    run = run_machine(asked, stream, cuts=cuts, snapshot=True)
    assert reasons(run) == sorted(twin.late)
    assert [of_machine(outputs) for outputs in run.outputs] == [of_twin(changes) for changes in expected.batches]
    assert run.held == expected.held
    check_end(run, as_dict(sorted_run(twin, events)), retract=case.retract)
    whole = run_machine(asked, stream)
    assert reasons(whole) == reasons(run)
    assert of_machine(everything(whole)) == of_machine(everything(run))
    assert whole.held == expected.held[-1:]
    return twin


def check_end(run: Run, right: dict[tuple[int, int], tuple[Any, ...]], *, retract: bool) -> None:
    """What stands in the end is right; where nothing is void, what was given last (Definition 2)."""
    if not retract:
        said = of_machine(everything(run))
        assert right.items() <= {place: sayings[-1].values for place, sayings in said.items()}.items()
        return
    table = run.results()
    rows = [] if table is None else table.to_pylist()
    assert len(rows) == len(right)
    assert {(row["key"], row["window_start"]): (row["id"],) for row in rows} == right


def between_ticks(events: Sequence[Event]) -> list[int]:
    """The places between ticks, the beginning and the end among them."""
    ticks = [event.tick for event in arriving(events)]
    places = [place for place in range(1, len(ticks)) if ticks[place] != ticks[place - 1]]
    return [0, *places, len(ticks)]


def draw_cuts(data: st.DataObject, events: Sequence[Event], most: int = 4) -> list[int]:
    """Some of the places between ticks; a place that comes twice makes an empty batch."""
    return sorted(data.draw(st.lists(st.sampled_from(between_ticks(events)), max_size=most)))


@given(case=cases(), kind=KINDS, when=TRIGGERS, events=any_events(), data=st.data())
@settings(max_examples=15, deadline=None)
def test_any_stream_is_told_as_the_twin_tells_it(
    case: Case, kind: Kind, when: When, events: list[Event], data: st.DataObject
) -> None:
    check(case, kind, when, events, draw_cuts(data, events))


@given(case=cases(), kind=KINDS, when=TRIGGERS, seed=st.integers(0, 10**6), data=st.data())
@settings(max_examples=7, deadline=None)
def test_a_dense_stream_is_told_as_the_twin_tells_it(
    case: Case, kind: Kind, when: When, seed: int, data: st.DataObject
) -> None:
    events = numbered(dense_events(seed, case.bound_us))
    check(case, kind, when, events, draw_cuts(data, events))


@given(case=cases(), kind=KINDS, when=TRIGGERS, seed=st.integers(0, 10**6), data=st.data())
@settings(max_examples=6, deadline=None)
def test_a_long_stream_in_many_batches_is_told_as_the_twin_tells_it(
    case: Case, kind: Kind, when: When, seed: int, data: st.DataObject
) -> None:
    events = numbered(long_events(seed, case.bound_us, case.span_us))
    check(case, kind, when, events, draw_cuts(data, events, most=20))


@given(case=cases(), when=TRIGGERS, every_us=st.integers(1, 8), data=st.data())
@settings(max_examples=10, deadline=None)
def test_a_regular_grid_within_the_bound_is_repaired(
    case: Case, when: When, every_us: int, data: st.DataObject
) -> None:
    events = data.draw(grids(case.bound_us, every_us))
    assert check(case, period(every_us), when, events, draw_cuts(data, events)).late == []


@given(case=cases(), when=TRIGGERS, events=any_events().map(numbered), data=st.data())
@settings(max_examples=7, deadline=None)
def test_numbered_events_are_all_repaired_within_the_bound(
    case: Case, when: When, events: list[Event], data: st.DataObject
) -> None:
    twin = check(case, NUMBERED, when, events, draw_cuts(data, events))
    assert {reason for _, reason in twin.late} <= {"too_late"}


@given(case=cases(), kind=KINDS, when=TRIGGERS, seed=st.integers(0, 10**6), data=st.data())
@settings(max_examples=6, deadline=None)
def test_shards_say_together_what_the_whole_says(
    case: Case, kind: Kind, when: When, seed: int, data: st.DataObject
) -> None:
    events = arriving(numbered(dense_events(seed, case.bound_us)))
    check_shards(case.machine(kind.machine, when.machine), events, draw_cuts(data, events))


@given(case=cases(), when=TRIGGERS, wait_us=st.integers(1, 12), rows=st.lists(st.tuples(*[st.integers(0, 60)] * 3)))
@settings(max_examples=15, deadline=None)
def test_with_all_delays_below_the_wait_every_first_answer_is_right(
    case: Case, when: When, wait_us: int, rows: list[tuple[int, int, int]]
) -> None:
    case = case._replace(bound_us=case.bound_us + wait_us, wait_us=wait_us, retract=True)
    events = arriving([Event(ts_us, key % 3, ts_us + late % wait_us, 0) for ts_us, key, late in rows])
    twin = case.twin(ANYWHERE.twin, when.twin)
    run = run_machine(case.machine(ANYWHERE.machine, when.machine), as_stream(events))
    assert reasons(run) == []
    assert {(said.change, said.replayed) for each in of_machine(everything(run)).values() for said in each} <= {
        (1, False)
    }
    check_end(run, as_dict(sorted_run(twin, events)), retract=True)


def check_shards(asked: TimeTravel, events: Sequence[Event], cuts: Sequence[int]) -> None:
    """Two shards, each with every other key."""
    stream = as_stream(events)
    whole = run_machine(asked, stream, cuts=cuts)
    parts = [run_machine(asked, stream, cuts=cuts, member=_half(part)) for part in range(2)]
    for outputs, *others in zip(whole.outputs, *(part.outputs for part in parts), strict=True):
        assert of_machine(outputs) == of_machine(others[0]) | of_machine(others[1])
    assert reasons(whole) == sorted(reasons(parts[0]) + reasons(parts[1]))
    assert whole.held == [sum(held) for held in zip(*(part.held for part in parts), strict=True)]


def _half(part: int) -> Callable[[Int64s], Int64s]:
    return lambda key: np.flatnonzero(key % 2 == part)


def test_replays_of_ticks_in_which_a_shard_has_no_events_keep_their_order() -> None:
    """The event at 3 is replayed at 41, by the mark, the one at 1 by force at 44: their result is not final before."""
    times = [(0, 0, 0), (1, 10, 0), (2, 3, 0), (2, 1, 0), (3, 41, 1), (4, 44, 1)]
    events = [Event(ts_us, key, tick, place) for place, (tick, ts_us, key) in enumerate(times)]
    asked = Case((Level(4, 4),), 40).machine(
        ANYWHERE.machine, lambda late: pc.if_else(pc.equal(late["ts"], 3), 41, None)
    )
    check_shards(asked, events, [])


APP = Chain(
    WindowAggregation(Window("30 ms", "10 ms"), (Sum("id").alias("id"),)),
    WindowAggregation(Window("20 ms", "20 ms"), ASKED),
)


def _anywhere(before: pa.RecordBatch, after: pa.RecordBatch) -> pa.Array:
    return pc.is_valid(after.column("ts"))


def _soon(late: pa.RecordBatch) -> pa.Array:
    return pc.add(late.column("ts"), 30_000)


@pytest.mark.parametrize(
    ("trigger", "holes", "wait"),
    [
        ("eager", Period("5 ms"), None),
        ("lazy", CustomHoles(_anywhere), None),
        (_soon, CustomHoles(_anywhere), None),
        ("lazy", Anywhere(), "7 ms"),
    ],
)
def test_time_travel_keeps_the_five_invariants(trigger: Trigger, holes: Holes, wait: str | None) -> None:
    check_machine(TimeTravel(APP, "300 ms", holes, trigger, wait=wait), runs=2, events=30, seed=4)


SHORT = TimeTravel(WindowAggregation(Window("6 ms", "2 ms"), ASKED), "20 ms", CustomHoles(_anywhere))


def test_what_is_held_stays_within_the_bound_and_twice_the_reach() -> None:
    check_machine(SHORT, runs=3, events=60, seed=4)


def test_a_machine_whose_contexts_never_expire_holds_more_than_it_promises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("latecomer.timetravel.state.TimeBuckets.expire", lambda buckets, before_us: None)
    with pytest.raises(AssertionError, match=r"holds what it promises.*events held where at most"):
        check_machine(SHORT, runs=3, events=60, seed=4)
