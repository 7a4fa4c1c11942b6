"""Tiers against an oracle written from the definition: an event counts until the answer it belongs to is given."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from latecomer.chunks import MANY
from latecomer.outputs import Output
from latecomer.progress import Timeline
from latecomer.runner import Between, Runner
from latecomer.testing import LAYOUT, Run, Stream, check_machine, random_stream, run_machine
from latecomer.tiers import Tiers
from latecomer.windows import Count, SessionWindow, Window
from tests.naive_windows import Answer, Event, Punctuation, grid_answers, session_answers
from tests.outputs import said
from tests.property.streams import ASKED, answer, between_ticks, draw_cuts, latencies_up_to, result_rows, stream_of

WINDOWS = [
    Window("10 ms"),
    Window("10 ms", offset="-3 ms"),
    Window("20 ms", "10 ms"),
    Window("50 ms", "20 ms", "7 ms"),
    Window("120 ms", "10 ms"),
    Window("30 ms", "7 ms"),
    Window("1 s"),
]
GAPS = ["1 us", "2 ms", "10 ms", "60 ms"]
Place = tuple[int, int, int, int]


def _events(stream: Stream) -> list[Event]:
    columns = stream.tick.tolist(), stream.ts_us.tolist(), stream.key.tolist(), range(len(stream))
    return [Event(*row) for row in zip(*columns, strict=True)]


def _punctuations(stream: Stream, latencies_us: list[int]) -> Punctuation:
    """From the definition: the largest time that came before a tick, less the latency."""

    def punctuation(tier: int, tick: int | None) -> int:
        seen = stream.ts_us if tick is None else stream.ts_us[stream.tick < tick]
        return int(seen.max()) - latencies_us[tier] if len(seen) else -(2**62)

    return punctuation


def _told(outputs: Sequence[Sequence[Output]]) -> dict[Place, tuple[int, ...]]:
    """What each tier said of each window and key, once."""
    found: dict[Place, tuple[int, ...]] = {}
    for row, change, output in result_rows(outputs):
        if change >= 0:
            start, end, key, *results = row.values()
            place = (int(said(output, "tier")) - 1, start, end, key)
            assert place not in found
            found[place] = tuple(results)
    return found


def _expected(answers: list[Answer]) -> dict[Place, tuple[int, ...]]:
    return {(each.tier, each.start, each.end, each.key): answer([e.value for e in each.events]) for each in answers}


def _check(run: Run, asked: Tiers, answers: list[Answer], late: list[Event], last_us: int) -> None:
    assert _told(run.outputs) == _expected(answers)
    assert run.late_ids() == sorted(event.value for event in late)
    for place, timeline in enumerate(run.timelines):
        _check_when(run, asked, answers, place, timeline, last_us)
    standing: Counter[tuple[int, ...]] = Counter()
    for row, change, _ in result_rows(run.outputs):
        standing[tuple(row.values())] += change
        assert standing[tuple(row.values())] >= 0
    final = {place[1:]: found for place, found in _expected(answers).items() if place[0] == len(asked.latencies) - 1}
    assert +standing == Counter({(*place, *found): 1 for place, found in final.items()})


def _check_when(run: Run, asked: Tiers, answers: list[Answer], place: int, timeline: Timeline, last_us: int) -> None:
    """Answers come when the tier's punctuation has passed their window, no earlier and no later."""
    reached = [timeline.punctuation(latency_us) for latency_us in asked.latencies_us]
    due = {(a.tier, a.start, a.end, a.key) for a in answers if a.end - last_us <= reached[a.tier]}
    assert set(_told(run.outputs[: place + 1])) == due


@given(seed=st.integers(0, 10_000), window=st.sampled_from(WINDOWS), latencies=latencies_up_to(300), data=st.data())
@settings(max_examples=80, deadline=None)
def test_a_tier_has_every_event_that_came_before_it_gave_the_window(
    seed: int, window: Window, latencies: tuple[str, ...], data: st.DataObject
) -> None:
    stream = random_stream(seed, 60)
    asked = Tiers(latencies, window, ASKED)
    run = run_machine(asked, stream, cuts=draw_cuts(data, stream, most=8), snapshot=data.draw(st.booleans()))
    shape = (window.size_us, window.advance_us, window.offset_us)
    answers, late, missed = grid_answers(
        _events(stream), _punctuations(stream, asked.latencies_us), len(latencies), *shape
    )
    _check(run, asked, answers, late, 1)
    if window.slices > 1:
        assert sum(counters["missed_windows"] for counters in run.counters) == missed


@given(seed=st.integers(0, 10_000), gap=st.sampled_from(GAPS), latencies=latencies_up_to(300), data=st.data())
@settings(max_examples=80, deadline=None)
def test_a_tier_has_every_event_that_came_before_it_gave_the_session(
    seed: int, gap: str, latencies: tuple[str, ...], data: st.DataObject
) -> None:
    stream = random_stream(seed, 60)
    asked = Tiers(latencies, SessionWindow(gap), ASKED)
    run = run_machine(asked, stream, cuts=draw_cuts(data, stream, most=8), snapshot=data.draw(st.booleans()))
    promised = _punctuations(stream, asked.latencies_us)
    answers, late = session_answers(_events(stream), promised, len(latencies), SessionWindow(gap).gap_us)
    _check(run, asked, answers, late, 0)


@pytest.mark.parametrize("window", [*WINDOWS, *(SessionWindow(gap) for gap in GAPS)], ids=lambda window: window.shown())
@pytest.mark.parametrize("lateness", ["window", "event"])
def test_tiers_keep_the_five_invariants(window: Window | SessionWindow, lateness: str) -> None:
    check_machine(Tiers(("1 ms", "30 ms", "300 ms"), window, ASKED, lateness=lateness), runs=3, events=100)


@pytest.mark.parametrize(
    ("window", "latencies", "back_us"),
    [
        (Window("64 ms", "2 ms"), ("1 ms",), 8_000),
        (Window("20 ms", "10 ms"), ("1 ms", "1 day"), 0),
        (SessionWindow("10 us"), ("1 ms", "1 s"), 0),
    ],
    ids=["stragglers", "said before", "sessions"],
)
def test_what_waits_in_many_small_chunks_is_united_and_not_lost(
    window: Window | SessionWindow, latencies: tuple[str, ...], back_us: int
) -> None:
    """A micro-batch for every event; the store must not grow by a chunk for each."""
    count = 20 * MANY
    ts_us = 1_000_000 + np.arange(count) * 1_000
    same = np.zeros(count, dtype=np.int64)
    stream = Stream(np.where(np.arange(count) % 2 == 0, ts_us, ts_us - back_us), np.arange(count), same, same)
    asked = Tiers(latencies, window, ASKED)
    assert _told(run_machine(asked, stream, cuts=range(1, count)).outputs) == _told(run_machine(asked, stream).outputs)
    runner = Runner(asked, LAYOUT, between=Between.REBUILD)
    for place in range(count):
        runner.push(stream.batch(np.array([place])))
    assert len(runner.store.chunks) < 8 * MANY


def test_an_event_counts_fifty_minutes_before_its_window_closes() -> None:
    """Hourly windows, a wait of 1 s: Spark and Flink count three in the first hour."""
    minutes = (20, 10, 59, 62, 200)
    stream = stream_of(*((minute * 60_000_000, tick) for tick, minute in enumerate(minutes)))
    asked = Tiers(("1 s",), Window("1 hour"), (Count(),))
    run = run_machine(asked, stream, cuts=between_ticks(stream))
    assert [row["count"] for row, _, _ in result_rows(run.outputs)] == [3, 1, 1]
    assert run.late_ids() == []
    strict = Tiers(("1 s",), Window("1 hour"), (Count(),), lateness="event")
    run = run_machine(strict, stream, cuts=between_ticks(stream))
    assert [row["count"] for row, _, _ in result_rows(run.outputs)] == [2, 1, 1]
    assert run.late_ids() == [1]
