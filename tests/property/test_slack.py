"""The slack machine against the paper's structure and definitions, on random streams of several sources."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from latecomer.controls import ControlStep
from latecomer.events import FOREVER_US
from latecomer.outputs import Lane, Output
from latecomer.slack import Slack, SlackGate
from latecomer.slack.steering import SLACK
from latecomer.testing import Stream, check_machine, run_machine

US = 1_000_000
SOURCES = 3


class Read(NamedTuple):
    """A row as it was read."""

    id: int
    slack_ready: bool
    out_of_order: bool


@st.composite
def streams(draw: st.DrawFn, *, in_order: bool = False, changes: bool = True) -> Stream:
    """A few rows of several sources, some of which lag; times repeat, ticks have several rows."""
    count = draw(st.integers(0, 40))
    source = np.array(draw(st.lists(st.integers(0, SOURCES - 1), min_size=count, max_size=count)), dtype=np.int64)
    tick = np.cumsum(draw(st.lists(st.sampled_from([0, 0, 1, 1, 3]), min_size=count, max_size=count))).astype(np.int64)
    ts_us = np.array(draw(st.lists(st.integers(0, 60), min_size=count, max_size=count)), dtype=np.int64)
    if in_order:
        for each in range(SOURCES):
            ts_us[source == each] = np.sort(ts_us[source == each])
    steps = []
    if changes and count:
        at = draw(st.lists(st.integers(0, int(tick[-1])), max_size=3, unique=True))
        steps = [ControlStep(each, SLACK, json.dumps(draw(st.integers(0, 30)))) for each in sorted(at)]
    return Stream(ts_us, tick, source % 2, source, controls=tuple(steps))


def machine_reads(stream: Stream, slack: Slack, cuts: list[int] | None = None) -> list[Read]:
    """What the machine gives until its stream goes on, in order."""
    run = run_machine(slack, stream, cuts=cuts or [])
    return [read for batch in run.outputs[:-1] for read in reads_of(batch)]


def reads_of(outputs: list[Output]) -> list[Read]:
    """The rows that a push gave, in order."""
    tables = [output.rows.select(Read._fields).to_pylist() for output in outputs]
    return [Read(**row) for table in tables for row in table]


def gate_reads(stream: Stream, slack_us: int | None, *, merge: bool = True) -> list[Read]:
    """What a reader of the paper's structure is given that reads all it can after every tick."""
    gate = SlackGate([str(each) for each in range(SOURCES)], slack=slack_us, merge=merge)
    found, ticks = [], sorted({*stream.tick.tolist(), *(step.tick for step in stream.controls)})
    for tick in ticks:
        for step in stream.controls:
            if step.tick == tick:
                gate.set_slack(step.value)
        for i in np.flatnonzero(stream.tick == tick).tolist():
            gate.insert(int(stream.ts_us[i]), str(stream.source[i]), i, order=(int(stream.tick[i]), i))
        found += [Read(read.value, read.slack_ready, read.out_of_order) for read in gate.drain()]
    return found


def slack_of(slack_us: int | None, *, merge: bool = True) -> Slack:
    names = tuple(str(each) for each in range(SOURCES))
    return Slack(None if slack_us is None else f"{slack_us} us", sources=names, merge=merge)


@given(streams(), st.sampled_from([None, 0, 3, 20]))
@settings(max_examples=150, deadline=None)
def test_machine_reads_what_the_papers_structure_reads_whatever_the_slack(stream: Stream, slack_us: int | None) -> None:
    assert machine_reads(stream, slack_of(slack_us)) == gate_reads(stream, slack_us)


@given(streams(), st.sampled_from([0, 3, 20]), st.data())
@settings(max_examples=60, deadline=None)
def test_cuts_between_ticks_change_nothing(stream: Stream, slack_us: int, data: st.DataObject) -> None:
    stream = replace(stream, controls=())
    places = (np.flatnonzero(np.diff(stream.tick)) + 1).tolist()
    cuts = sorted(data.draw(st.sets(st.sampled_from(places)))) if places else []
    assert machine_reads(stream, slack_of(slack_us), cuts) == machine_reads(stream, slack_of(slack_us))


@given(streams(changes=False), st.sampled_from([0, 3, 20]))
@settings(max_examples=60, deadline=None)
def test_without_merge_it_is_k_slack(stream: Stream, slack_us: int) -> None:
    reads = machine_reads(stream, slack_of(slack_us, merge=False))
    assert reads == gate_reads(stream, slack_us, merge=False)
    assert all(read.slack_ready for read in reads)


@given(streams(in_order=True, changes=False))
@settings(max_examples=60, deadline=None)
def test_without_slack_it_is_scalegate_and_the_order_does_not_depend_on_the_interleaving(stream: Stream) -> None:
    reads = machine_reads(stream, slack_of(None))
    ts_us = stream.ts_us[[read.id for read in reads]]
    assert not any(read.slack_ready or read.out_of_order for read in reads)
    assert (np.diff(ts_us) >= 0).all()
    latest = [stream.ts_us[stream.source == each].max(initial=-1) for each in range(SOURCES)]
    ready = stream.ts_us <= min(latest)
    assert sorted(read.id for read in reads) == np.flatnonzero(ready & (min(latest) >= 0)).tolist()


class Tick(NamedTuple):
    """What was read after a tick, and where the clocks stood then: largest time, merge time, frontier."""

    tick: int
    reads: list[Read]
    largest: int
    merge: int
    frontier: int


def read_by_tick(stream: Stream, slack_us: int) -> list[Tick]:
    """The reads of the machine tick by tick, with clocks kept row by row from the definitions."""
    run = run_machine(slack_of(slack_us), stream, cuts=(np.flatnonzero(np.diff(stream.tick)) + 1).tolist())
    latest, found, frontier = [-1] * SOURCES, [], -1
    for tick, batch in zip(sorted(set(stream.tick.tolist())), run.outputs, strict=False):
        for i in np.flatnonzero(stream.tick == tick).tolist():
            latest[stream.source[i]] = max(latest[stream.source[i]], int(stream.ts_us[i]))
        frontier = max(frontier, min(latest), max(latest) - slack_us - 1)
        found.append(Tick(tick, reads_of(batch), max(latest), min(latest), frontier))
    return found


@given(streams(in_order=True, changes=False), st.integers(0, 20))
@settings(max_examples=80, deadline=None)
def test_property_1_no_row_is_slack_ready_while_sources_are_no_further_apart_than_the_slack(
    stream: Stream, slack_us: int
) -> None:
    for tick in read_by_tick(stream, slack_us):
        assert tick.largest - tick.merge > slack_us or not any(read.slack_ready for read in tick.reads)


@given(streams(in_order=True, changes=False), st.integers(0, 20))
@settings(max_examples=80, deadline=None)
def test_properties_2_and_3_what_was_overtaken_is_marked_and_was_overtaken_by_more_than_the_slack(
    stream: Stream, slack_us: int
) -> None:
    largest_read = -1
    for tick in read_by_tick(stream, slack_us):
        for i, _, marked in tick.reads:
            ts_us = int(stream.ts_us[i])
            assert marked or ts_us >= largest_read
            assert not marked or tick.largest - ts_us > slack_us
            largest_read = max(largest_read, ts_us)


@given(streams(changes=False), st.sampled_from([0, 3, 20]))
@settings(max_examples=60, deadline=None)
def test_after_every_tick_all_rows_up_to_the_frontier_have_been_read_once_and_no_others(
    stream: Stream, slack_us: int
) -> None:
    read: list[int] = []
    for tick in read_by_tick(stream, slack_us):
        read += [each.id for each in tick.reads]
        came = np.flatnonzero(stream.tick <= tick.tick)
        assert sorted(read) == came[stream.ts_us[came] <= tick.frontier].tolist()


@given(streams(), st.sampled_from([0, 3, 20]))
@settings(max_examples=60, deadline=None)
def test_every_row_is_read_once_and_none_is_late(stream: Stream, slack_us: int) -> None:
    run = run_machine(slack_of(slack_us), stream)
    rows = run.rows(Lane.RESULTS)
    assert sorted([] if rows is None else rows.column("id").to_pylist()) == list(range(len(stream)))
    assert run.rows(Lane.LATE) is None


@given(streams(in_order=True, changes=False), st.data())
@settings(max_examples=60, deadline=None)
def test_definition_5_2_ready_rows_come_in_the_same_order_however_the_sources_interleave(
    stream: Stream, data: st.DataObject
) -> None:
    """The same rows of every source in the same order, interleaved otherwise; rows of one time may change places."""
    lanes = [np.flatnonzero(stream.source == each).tolist() for each in range(SOURCES)]
    order: list[int] = []
    while any(lanes):
        order.append(data.draw(st.sampled_from([lane for lane in lanes if lane])).pop(0))
    chosen = np.array(order, dtype=np.int64)
    other = Stream(stream.ts_us[chosen], np.arange(len(order)), stream.key[chosen], stream.source[chosen], chosen)
    first, second = (machine_reads(each, slack_of(None)) for each in (stream, other))
    times = [stream.ts_us[[read.id for read in reads]].tolist() for reads in (first, second)]
    assert times[0] == times[1]
    assert sorted(read.id for read in first) == sorted(read.id for read in second)


@given(streams(in_order=True, changes=False), st.integers(0, 10), st.integers(11, 60))
@settings(max_examples=80, deadline=None)
def test_theorem_5_3_after_a_raise_order_returns_once_merge_has_passed_the_old_frontier(
    stream: Stream, low_us: int, high_us: int
) -> None:
    if len(stream) == 0:
        return
    raised = int(np.median(stream.tick))
    stream = replace(stream, controls=(ControlStep(raised, SLACK, json.dumps(FOREVER_US)),))
    run = run_machine(slack_of(low_us), stream, cuts=(np.flatnonzero(np.diff(stream.tick)) + 1).tolist())
    ticks = sorted(set(stream.tick.tolist()))
    frontier = before = -FOREVER_US
    for tick, timeline in zip(ticks, run.timelines, strict=True):
        merge = int(timeline.merge_us([str(each) for each in range(SOURCES)])[-1])
        if tick < raised:
            frontier = max(frontier, merge, int(timeline.mark_us[-1]) - low_us - 1)
        elif merge > frontier:
            before = tick
            break
    else:
        return
    later = [output.rows for batch in run.outputs[ticks.index(before) + 1 : -1] for output in batch]
    for rows in later:
        assert not any(rows.column("slack_ready").to_pylist())
        assert not any(rows.column("out_of_order").to_pylist())


@pytest.mark.parametrize("slack", [None, "0 s", "1 ms", "20 ms", "10 s"])
def test_slack_keeps_the_five_invariants(slack: str | None) -> None:
    check_machine(Slack(slack))


@pytest.mark.parametrize("slack", ["0 s", "5 ms", "10 s"])
def test_k_slack_keeps_the_five_invariants(slack: str) -> None:
    check_machine(Slack(slack, merge=False))
