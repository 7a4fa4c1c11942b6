"""Jumps of the mark: a clock that is wrong, or a gap."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from latecomer.errors import LatecomerWarning
from latecomer.events import NEVER_US, Int64s
from latecomer.headers import HeaderBuilder
from latecomer.jumps import Jump
from latecomer.progress import Progress
from latecomer.spark.jump_watch import JUMP_COUNTERS, JumpWatch
from latecomer.testing import Stream
from latecomer.timeline import Timeline

MINUTE, HOUR = 60_000_000, 3_600_000_000
YEAR = 8_766 * HOUR


def last_jump(ticks: Sequence[int], marks: Sequence[int], jump: Jump) -> Jump:
    """The slow twin: one rise of the mark after the other."""
    for tick, before, now in zip(ticks[1:], marks, marks[1:], strict=False):
        if before in (NEVER_US, now) or now < jump.to_us + jump.us:
            continue
        on_top = jump.us > 0 and before < jump.to_us + jump.us and now - before > jump.us
        jump = Jump(tick, jump.from_us if on_top else before, now)
    return jump


@settings(deadline=None)
@given(st.lists(st.sampled_from([0, 0, 1, 2, 5, 40, 1_000]), max_size=40), st.integers(0, 40))
def test_the_last_jump_equals_its_twin_wherever_a_batch_ends(steps: list[int], cut: int) -> None:
    marks = [NEVER_US, *np.cumsum(steps).tolist()]
    ticks = [NEVER_US, *range(len(steps))]
    jump = Jump()
    for start, stop in ((0, cut), (cut, len(marks))):
        part = np.array(marks[max(0, start - 1) : stop]), np.array(ticks[max(0, start - 1) : stop])
        if len(part[0]):
            jump = jump.after(Timeline(part[1], part[0], part[0]))
    assert jump == last_jump(ticks, marks, Jump())


def warned(ts_us: Int64s, latency_us: int = MINUTE, batches: int = 7, *, guarded: bool = False) -> list[str]:
    """What a query says that takes rows in this order, a tick each."""
    same = np.zeros(len(ts_us), dtype=np.int64)
    stream = Stream(ts_us, np.arange(len(ts_us)), same, same)
    progress, watch = Progress(), JumpWatch(guarded=guarded)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always", LatecomerWarning)
        for chosen in np.array_split(np.arange(len(stream)), batches):
            batch, builder = stream.batch(chosen), HeaderBuilder()
            builder.add(batch.ts_us, batch.tick)
            progress, timeline = Progress.from_bytes(progress.to_bytes()).advance([builder.build()])
            sides = progress.jump.sides(batch, timeline.punctuation(latency_us))
            watch.look(dict(zip(JUMP_COUNTERS, (*sides, progress.jump.us), strict=True)))
    return [str(each.message) for each in found]


def steady(count: int = 2_000, start: int = 0) -> Int64s:
    """A row a second, up to half a minute late."""
    rng = np.random.default_rng(7)
    return start + np.arange(count) * 1_000_000 - rng.integers(0, 30_000_000, count)


@pytest.mark.parametrize("ahead_us", [10 * MINUTE, HOUR, 27 * YEAR])
@pytest.mark.parametrize("place", [0, 1, 300, 1_500])
def test_one_row_from_the_future_is_named_once_with_what_it_made_late(ahead_us: int, place: int) -> None:
    times = steady()
    times[place] += ahead_us
    (text,) = warned(times)
    assert "came behind it and are late, 0 beyond it" in text
    assert "max_ahead='1 hour' sets such rows aside" in text
    assert warned(times, guarded=True) == []


def test_a_device_that_is_always_ahead_is_named() -> None:
    times = steady()
    times[500::50] += HOUR
    assert len(warned(times)) == 1


def test_a_second_clock_that_is_further_ahead_hides_nothing() -> None:
    times = steady()
    times[100] += 5 * MINUTE
    times[110] += 27 * YEAR
    assert len(warned(times)) == 1


@pytest.mark.parametrize("latency_us", [1_000_000, MINUTE])
def test_a_stream_that_goes_on_after_a_gap_is_not_named(latency_us: int) -> None:
    assert warned(steady(), latency_us) == []
    assert warned(np.concatenate([steady(), steady(start=8 * HOUR)]), latency_us) == []
    assert warned(np.concatenate([steady(50), steady(start=27 * YEAR)]), latency_us) == []


def test_two_sources_far_apart_and_uploads_after_a_night_are_not_named() -> None:
    apart = np.stack([steady(), steady(start=HOUR)], axis=1).ravel()
    assert warned(apart) == []
    morning = np.stack([steady(start=8 * HOUR), *(steady(start=n * HOUR) for n in (1, 3, 5))], axis=1).ravel()
    assert warned(np.concatenate([steady(), morning])) == []


def test_a_wrong_clock_in_the_first_tick_is_told_where_rows_have_stamps() -> None:
    """The first micro-batch goes on after that tick, with rows that lie behind its mark."""
    times = steady()
    times[0] += YEAR
    for batches in (1, 2, 50):
        assert len(warned(times, batches=batches)) == 1
    assert warned(steady(), batches=1) == []
    backwards = np.concatenate([steady()[:50][::-1], steady()[50:]])
    assert warned(backwards, latency_us=1) == [], "a first tick that is not the earliest is no wrong clock"


def test_a_wrong_clock_in_the_very_first_micro_batch_is_told() -> None:
    """Without arrival the whole micro-batch is one tick, and no mark was there before it."""
    progress, behind = Progress(), 0
    for number in range(3):
        ts_us = np.arange(200, dtype=np.int64) * MINUTE + number * 200 * MINUTE
        if number == 0:
            ts_us[7] += YEAR
        same = np.full(200, number)
        batch, builder = Stream(ts_us, same, same, same).batch(np.arange(200)), HeaderBuilder()
        builder.add(batch.ts_us, batch.tick)
        progress, timeline = progress.advance([builder.build()])
        behind += progress.jump.sides(batch, timeline.punctuation(MINUTE))[0]
    assert progress.jump.us > YEAR - HOUR
    assert behind == 400
