"""Optimistic processing against its slow twin: every change of every micro-batch, what is late, and what is final."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from latecomer.events import EVENT_CHANGE, TICK, EventBatch, Layout
from latecomer.optimistic import Optimistic
from latecomer.outputs import CHANGE, REASON, Lane, Output
from latecomer.runner import Between, Runner
from latecomer.windows.key_steps import KeyStep
from latecomer.windows.recent_rows import Lag, MovingAverage, SessionStart
from latecomer.windows.row_groups import Group
from latecomer.windows.scan import Scan
from latecomer.windows.scan_functions import (
    ExponentialAverage,
    LastValue,
    RowNumber,
    RunningCount,
    RunningMax,
    RunningMin,
    RunningSum,
)
from latecomer.windows.user_fold import Fold
from tests.naive_optimistic import Event, Item
from tests.naive_optimistic import Fold as NaiveFold
from tests.naive_optimistic import Group as NaiveGroup
from tests.naive_optimistic import Optimistic as Naive

LAYOUT = Layout("ts", ("key",), "source", ("id",))
SCHEMA = pa.schema(
    [
        *(("id", pa.int64()), ("ts", pa.int64()), ("key", pa.string()), ("source", pa.int64())),
        *(("n", pa.float64()), (TICK, pa.int64()), (EVENT_CHANGE, pa.int8())),
    ]
)


@dataclass(frozen=True)
class Question:
    """A step, and the same for the twin."""

    step: KeyStep
    twin: NaiveFold | NaiveGroup
    results: tuple[str, ...]
    says: Callable[[Any], tuple[Any, ...]] = tuple


def totals(state: tuple[float | None, int], row: tuple[Any, ...]) -> tuple[Any, list[Any]]:
    total, count = state
    value = row[4]
    if value is not None:
        total = value if total is None else total + value
    return (total, count + 1), [(total, count + 1)]


def extremes(state: tuple[Any, Any, Any], row: tuple[Any, ...]) -> tuple[Any, list[Any]]:
    least, most, last = state
    value = row[4]
    if value is not None:
        above = math.inf if value != value else value
        least = value if least is None or (least != least and value == value) or value < least else least
        nan_above = most is not None and most == most and value != value
        most = value if most is None or nan_above or above > (math.inf if most != most else most) else most
        last = value
    return (least, most, last), [(least, most, last)]


def recents(state: tuple[Any, ...], row: tuple[Any, ...]) -> tuple[Any, list[Any]]:
    rows = (*state, row[4])[-6:]
    known = [value for value in rows if value is not None]
    total = 0.0
    for value in known:
        total += value
    mean = total / len(known) if known else None
    return rows[-5:], [(state[-2], mean)]


def sessions(state: tuple[Any, ...], row: tuple[Any, ...]) -> tuple[Any, list[Any]]:
    last, began = state
    began = row[1] if last is None or row[1] - last > 20 else began
    return (row[1], began), [(began,)]


def averages(state: float | None, row: tuple[Any, ...]) -> tuple[Any, list[Any]]:
    value = row[4]
    if value is not None:
        state = value if state is None else 0.25 * value + 0.75 * state
    return state, [(state,)]


def listed(state: list[float], row: Any) -> tuple[list[float], list[Any]]:
    """Any number of outputs, a state changed in place, and rows for which it raises."""
    if row[4] is None:
        state.append(-1.0)
        raise ValueError("no n")
    if len(state) == 3:
        state.clear()
    state.append(row[4])
    return state, [(value, float(number)) for number, value in enumerate(state)]


def parity(state: int, row: Any) -> tuple[int, list[Any]]:
    """A state that comes back to the initial one, and rows for which it raises."""
    if row[4] == 2.5:
        raise ValueError("half")
    state = state if row[4] is None else 1 - state
    return state, [(state,)]


def counts(state: int, row: tuple[Any, ...]) -> tuple[int, list[Any]]:
    state += row[4] is not None
    return state, [(state,)]


def grouped(state: tuple[Any, ...], row: tuple[Any, ...]) -> tuple[Any, list[Any]]:
    group = (*state, row)[-5:]
    return group[-4:], [named(group)] if len(group) == 5 else []


def named(group: tuple[Any, ...]) -> tuple[Any, ...]:
    """A group as it is given."""
    return ([dict(zip(("id", "ts", "key", "source", "n"), each, strict=True)) for each in group],)


RETURNS = pa.schema([("value", pa.float64()), ("place", pa.float64())])
QUESTIONS = {
    "totals": Question(
        Scan(RunningSum("n"), RowNumber()),
        NaiveFold(totals, (None, 0)),
        ("running_sum_n", "row_number"),
    ),
    "extremes": Question(
        Scan(RunningMin("n"), RunningMax("n"), LastValue("n")),
        NaiveFold(extremes, (None, None, None)),
        ("running_min_n", "running_max_n", "last_value_n"),
    ),
    "recents": Question(
        Scan(Lag("n", rows=2), MovingAverage("n", rows=6)),
        NaiveFold(recents, (None,) * 5),
        ("lag_n", "moving_average_n"),
    ),
    "sessions": Question(Scan(SessionStart("20 us")), NaiveFold(sessions, (None, None)), ("session_id",)),
    "averages": Question(Scan(ExponentialAverage("n", weight=0.25)), NaiveFold(averages), ("exponential_average_n",)),
    "parity": Question(
        Fold(parity, 0, state=pa.int64(), returns=pa.schema([("odd", pa.int64())])), NaiveFold(parity, 0), ("odd",)
    ),
    "counts": Question(Scan(RunningCount("n")), NaiveFold(counts, 0), ("running_count_n",)),
    "groups": Question(Group(5, "full"), NaiveFold(grouped, ()), ("group",)),
    "undone": Question(Group(3, "undo"), NaiveGroup(3, "undo"), ("group",), named),
    "undone, with few states": Question(Group(5, "undo"), NaiveGroup(5, "undo"), ("group",), named),
    "own": Question(
        Fold(listed, [], state=pa.list_(pa.float64()), returns=RETURNS), NaiveFold(listed, []), ("value", "place")
    ),
}

values = st.sampled_from([None, 0.0, -0.0, 1.0, 2.5, -3.0, 1e300, math.nan])
delays = st.sampled_from([0, 0, 0, 1, 5, 30, 120])
rows = st.tuples(st.integers(0, 6), delays, st.integers(0, 1), st.sampled_from(["x", "y", None]), values)


@st.composite
def streams(draw: st.DrawFn, retracting: bool = True) -> list[list[Event]]:
    """Micro-batches of events whose ticks rise by themselves, some of them taken back later, or before."""
    batches: list[list[Event]] = []
    tick, number, known = 100, 0, list[Event]()
    for _ in range(draw(st.integers(1, 5))):
        batch = []
        for step, delay, source, key, value in draw(st.lists(rows, max_size=8)):
            tick += step
            event = Event(tick * 10 - delay, source, tick, number, key, None)
            event = event._replace(payload=(number, event.ts_us, key, source, value))
            number += 1
            if retracting and known and draw(st.integers(0, 3)) == 0:
                event = draw(st.sampled_from(known))._replace(tick=tick)
                event = event._replace(change=draw(st.sampled_from([1, -1, -1])))
            known.append(event._replace(change=1))
            batch.append(event)
        batches.append(batch)
        tick += 1
    return batches


def as_batch(events: Sequence[Event]) -> EventBatch:
    columns = zip(*((*event.payload, event.tick, event.change) for event in events), strict=True)
    arrays = [pa.array(values, field.type) for values, field in zip(columns, SCHEMA, strict=True)] if events else []
    rows = pa.RecordBatch.from_arrays(arrays, schema=SCHEMA) if events else pa.RecordBatch.from_pylist([], SCHEMA)
    return EventBatch(rows, LAYOUT)


def shown(value: Any) -> str:
    return repr(value)


def changed(outputs: Sequence[Output], names: Sequence[str], change: int | None) -> list[str]:
    found = []
    for output in outputs:
        if output.lane is Lane.RESULTS:
            kept = output.rows.filter(pa.array([each == change for each in output.rows.column(CHANGE).to_pylist()]))
            found += [shown(tuple(row[name] for name in ("ts", "key", *names))) for row in kept.to_pylist()]
    return found


def said(items: Sequence[Item], question: Question) -> list[str]:
    return [shown((item.ts_us, item.key, *question.says(item.payload))) for item in items]


def late_rows(outputs: Sequence[Output]) -> list[str]:
    rows = [row for output in outputs if output.lane is Lane.LATE for row in output.rows.to_pylist()]
    return sorted(shown((row["id"], row[REASON])) for row in rows)


@pytest.mark.parametrize("name", QUESTIONS)
@given(data=st.data())
@settings(max_examples=25)
def test_every_change_is_that_of_the_twin(name: str, data: st.DataObject) -> None:
    question, stream = QUESTIONS[name], data.draw(streams())
    bound, forget = data.draw(st.sampled_from([8, 50, 400])), data.draw(st.sampled_from([None, 25]))
    if question.step.undoes:
        forget, stream = None, times_of_their_own(stream)
    asked = Optimistic(question.step, f"{bound} us", True, None if forget is None else f"{forget} us")
    twin = Naive([question.twin], bound, forget_after_us=forget)
    with seldom(3):
        runner = Runner(asked, LAYOUT, between=data.draw(st.sampled_from(list(Between))))
        late = quarantined = recomputed = 0
        for batch in stream:
            pushed = runner.push(as_batch(batch))
            tombstones, new = twin.push(batch)
            assert changed(pushed.outputs, question.results, -1) == said(tombstones, question)
            assert changed(pushed.outputs, question.results, 1) == said(new, question)
            assert changed(pushed.outputs, question.results, None) == said(twin.barrier(), question)
            gone = [(event.order, reason) for event, reason in twin.late[late:]]
            assert late_rows(pushed.outputs) == sorted(map(shown, gone))
            assert quarantine(pushed.outputs) == sorted(each.item.payload[0] for each in twin.quarantined[quarantined:])
            late, quarantined = len(twin.late), len(twin.quarantined)
            recomputed += pushed.counters["recomputed"]
            assert recomputed == twin.recomputed[0]
        outputs = runner.finish()
        assert changed(outputs, question.results, None) == said(twin.finish(), question)
        assert late_rows(outputs) == sorted(shown((event.order, reason)) for event, reason in twin.late[late:])
        assert quarantine(outputs) == sorted(each.item.payload[0] for each in twin.quarantined[quarantined:])


def times_of_their_own(stream: list[list[Event]]) -> list[list[Event]]:
    """The same with times of their own for each key: what a state says of a row is its time, not its place."""
    shift = {"x": 0, "y": 1, None: 2}
    found = []
    for batch in stream:
        moved = [event._replace(ts_us=event.ts_us * 3 + shift[event.key]) for event in batch]
        found.append([e._replace(payload=(e.payload[0], e.ts_us, *e.payload[2:])) for e in moved])
    return found


@contextmanager
def seldom(rows: int) -> Iterator[None]:
    """States that are not small are kept before one row in so many."""
    with ExitStack() as stack:
        for module in ("user_fold", "recent_rows", "row_groups"):
            stack.enter_context(patch(f"latecomer.windows.{module}.SELDOM", rows))
        yield


def quarantine(outputs: Sequence[Output]) -> list[int]:
    return sorted(row["id"] for output in outputs if output.lane is Lane.QUARANTINE for row in output.rows.to_pylist())
