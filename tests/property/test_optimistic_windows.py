"""Windows that are given at once against their slow twin: every change, late row and final window."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from latecomer.events import EVENT_CHANGE, EventBatch
from latecomer.headers import Header
from latecomer.optimistic import OptimisticSessions, OptimisticWindows
from latecomer.outputs import CHANGE, Lane, Output
from latecomer.runner import Between, Runner, header_of
from latecomer.testing import check_machine
from latecomer.windows import (
    Count,
    CountDistinct,
    Custom,
    First,
    Last,
    Max,
    Mean,
    Min,
    Quantile,
    SessionWindow,
    Sum,
    TopK,
    Window,
)
from tests.naive_optimistic import Event
from tests.naive_window_changes import FixedWindows, Result, Sessions
from tests.property.test_optimistic import LAYOUT, as_batch, late_rows, streams

WINDOWS = [
    Window("20 us"),
    Window("20 us", offset="-3 us"),
    Window("40 us", "20 us"),
    Window("50 us", "20 us", "7 us"),
    Window("90 us", "10 us"),
]
ASKED = (Count(), Count("n"), Min("n"), Max("n"), First("n"), Last("id"), Sum("id"), Quantile("n"))


def said_of(events: Sequence[Event]) -> tuple[Any, ...]:
    """The slow twin of `ASKED`; NaN is larger than any number."""
    numbers = [event.payload[4] for event in events if event.payload[4] is not None]
    rank = [(value != value, value, math.copysign(1.0, value)) for value in numbers]
    least, most = (min(rank)[1], max(rank)[1]) if rank else (None, None)
    first = min(events, key=lambda event: (event.ts_us, _rank(event.payload[4])))
    last = max(event.payload[0] for event in events if event.ts_us == events[-1].ts_us)
    ids = sum(event.payload[0] for event in events)
    return len(events), len(numbers), least, most, first.payload[4], last, ids, _median(numbers)


def _rank(value: float | None) -> tuple[bool, bool, float, float]:
    number = 0.0 if value is None or value != value else value
    return value is None, value is not None and value != value, number, math.copysign(1.0, number)


def _median(numbers: Sequence[float]) -> float | None:
    if not numbers:
        return None
    ranked = sorted(value for value in numbers if value == value) + [value for value in numbers if value != value]
    place = 0.5 * (len(ranked) - 1)
    low, high = ranked[math.floor(place)], ranked[math.ceil(place)]
    return low + 0.0 if low == high else (math.ceil(place) - place) * low + (place - math.floor(place)) * high


def shown(results: Sequence[Result]) -> list[str]:
    return [repr((*place, *values)) for place, values in results]


def rows_of(outputs: Sequence[Output], change: int | None) -> list[str]:
    """Windows with a change, in the order in which they end; those that end together by key."""
    found = []
    for output in (output for output in outputs if output.lane is Lane.RESULTS):
        chosen = [row for row in output.rows.to_pylist() if row[CHANGE] == change]
        assert [row["window_end"] for row in chosen] == sorted(row["window_end"] for row in chosen)
        found += chosen
    ranked = sorted(found, key=lambda row: (row["window_end"], row["window_start"], repr(row["key"])))
    return [repr(tuple(list(row.values())[:-3])) for row in ranked]


class Shards:
    """A machine for each shard, all of which know the progress of the whole stream."""

    def __init__(
        self, asked: OptimisticWindows | OptimisticSessions, shards: int, between: Between, *, retracting: bool
    ) -> None:
        self._retracting = retracting
        self._runners = [Runner(asked, LAYOUT, between=between) for _ in range(shards)]
        self.counts: dict[str, int] = {}

    def push(self, events: Sequence[Event]) -> list[Output]:
        header, found = header_of(as_batch(events)), list[Output]()
        for number, runner in enumerate(self._runners):
            own = as_batch([event for event in events if self._shard_of(event) == number])
            found += self._pushed(runner, own if self._retracting else own.without(EVENT_CHANGE), header)
        return found

    def _pushed(self, runner: Runner, batch: EventBatch, header: Header) -> list[Output]:
        pushed = runner.push(batch, header)
        for name, value in pushed.counters.items():
            self.counts[name] = self.counts.get(name, 0) + value
        return pushed.outputs

    def finish(self) -> list[Output]:
        return [output for runner in self._runners for output in runner.finish()]

    def _shard_of(self, event: Event) -> int:
        return ["x", "y", None].index(event.key) % len(self._runners)


def compare(shards: Shards, twin: FixedWindows | Sessions, stream: Sequence[Sequence[Event]]) -> None:
    late = 0
    for batch in stream:
        outputs = shards.push(batch)
        void, new = twin.push(batch)
        assert rows_of(outputs, -1) == shown(void)
        assert rows_of(outputs, 1) == shown(new)
        assert rows_of(outputs, None) == shown(twin.barrier())
        assert late_rows(outputs) == sorted(repr((event.order, reason)) for event, reason in twin.late[late:])
        late = len(twin.late)
    outputs = shards.finish()
    assert rows_of(outputs, None) == shown(twin.finish())
    assert late_rows(outputs) == sorted(repr((event.order, reason)) for event, reason in twin.late[late:])


@given(data=st.data(), window=st.sampled_from(WINDOWS), retracting=st.booleans())
@settings(max_examples=60)
def test_every_change_of_windows_is_that_of_the_twin(data: st.DataObject, window: Window, retracting: bool) -> None:
    stream, bound = data.draw(streams(retracting)), data.draw(st.sampled_from([1, 30, 400]))
    twin = FixedWindows(window.size_us, window.advance_us, window.offset_us, bound, said_of)
    asked = OptimisticWindows(window, ASKED, f"{bound} us", True)
    shards = Shards(
        asked, data.draw(st.integers(1, 3)), data.draw(st.sampled_from(list(Between))), retracting=retracting
    )
    compare(shards, twin, stream)
    assert shards.counts.get("missed_windows", 0) == twin.missed
    assert shards.counts.get("recomputed", 0) == twin.recomputed


@given(data=st.data(), gap=st.sampled_from([1, 10, 45]))
@settings(max_examples=60)
def test_every_change_of_sessions_is_that_of_the_twin(data: st.DataObject, gap: int) -> None:
    stream, bound = data.draw(streams(False)), data.draw(st.sampled_from([1, 30, 400]))
    asked = OptimisticSessions(SessionWindow(f"{gap} us"), ASKED, f"{bound} us", True)
    between = data.draw(st.sampled_from(list(Between)))
    shards = Shards(asked, data.draw(st.integers(1, 3)), between, retracting=False)
    compare(shards, Sessions(gap, bound, said_of), stream)


def first_values(state: list[Any], value: Any) -> list[Any]:
    return [*state, value]


OWN = Custom("n", list, first_values, None, repr, pa.string())


@given(data=st.data(), window=st.sampled_from(WINDOWS), retracting=st.booleans())
@settings(max_examples=25)
def test_aggregates_without_a_merge_see_the_rows_of_a_window_in_order(
    data: st.DataObject, window: Window, retracting: bool
) -> None:
    stream = [
        [event._replace(payload=(*event.payload[:4], float(event.payload[0]))) for event in batch]
        for batch in data.draw(streams(retracting))
    ]
    twin = FixedWindows(
        window.size_us, window.advance_us, window.offset_us, 30, lambda events: (repr(sorted_values(events)),)
    )
    shards = Shards(OptimisticWindows(window, (OWN,), "30 us", True), 2, Between.RESTORE, retracting=retracting)
    compare(shards, twin, stream)


def sorted_values(events: Sequence[Event]) -> list[float]:
    return [event.payload[4] for event in sorted(events, key=lambda event: (event.ts_us, event.payload[4]))]


KEPT = (Mean("id"), First("id"), Last("id"), CountDistinct("source"), TopK("source"), Quantile("id"))


@pytest.mark.parametrize("window", [Window("10 ms"), Window("50 ms", "20 ms", "7 ms")], ids=Window.shown)
@pytest.mark.parametrize(("bound", "barrier"), [("1 ms", True), ("300 ms", False)])
def test_windows_at_once_keep_the_five_invariants(window: Window, bound: str, barrier: bool) -> None:
    check_machine(OptimisticWindows(window, (Count(), Sum("id"), *KEPT), bound, barrier), runs=3, events=80)


@pytest.mark.parametrize(("gap", "bound", "barrier"), [("2 ms", "1 ms", True), ("60 ms", "300 ms", False)])
def test_sessions_at_once_keep_the_five_invariants(gap: str, bound: str, barrier: bool) -> None:
    check_machine(OptimisticSessions(SessionWindow(gap), (Count(), *KEPT), bound, barrier), runs=3, events=80)
