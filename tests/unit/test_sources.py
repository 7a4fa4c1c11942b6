"""What each source did, tick by tick, against the definition."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from latecomer.codec import dump_arrays, load_arrays
from latecomer.events import FOREVER_US, NEVER_US
from latecomer.headers import Header, HeaderBuilder
from latecomer.progress import Measure, Progress, Timeline

IDLE = 3


class Said(NamedTuple):
    """An event, or the end, of a source in a tick."""

    tick: int
    source: str
    ts: int | None  # None: it has ended


def least(said: list[Said], tick: int, idle: int | None, declared: tuple[str, ...]) -> int:
    """The definition: of the sources that speak after a tick, the least latest time; the mark if none speaks."""
    known = [each for each in said if each.tick <= tick]
    latest = {each.source: -1 for each in known} | dict.fromkeys(declared, -1)
    speaking: dict[str, int] = {}
    for source in latest:
        own = [each for each in known if each.source == source]
        times = [each for each in own if each.ts is not None]
        if not times:
            begun = min(each.tick for each in known)
            if source in declared and not own and not (idle is not None and tick - begun >= idle):
                return NEVER_US
            continue
        last = max(each.tick for each in times)
        ended = [each.tick for each in own if each.ts is None]
        if (ended and max(ended) >= last) or (idle is not None and tick - last >= idle):
            continue
        speaking[source] = max(each.ts for each in times if each.ts is not None)
    return min(speaking.values()) if speaking else largest(said, tick)


def largest(said: list[Said], tick: int) -> int:
    """The largest time that was said up to a tick."""
    return max((each.ts for each in said if each.ts is not None and each.tick <= tick), default=NEVER_US)


def header(said: list[Said], idle: int | None) -> Header:
    builder = HeaderBuilder(idle)
    events = [each for each in said if each.ts is not None]
    ends = [each for each in said if each.ts is None]
    times = np.array([each.ts for each in events], dtype=np.int64)
    builder.add(times, np.array([each.tick for each in events], dtype=np.int64), pa.array([e.source for e in events]))
    if ends:
        names = pa.array([each.source for each in ends])
        builder.add_ends(np.array([each.tick for each in ends], dtype=np.int64), len(ends), names)
    return builder.build()


def _said(stream: list[tuple[int, str, int | None]]) -> list[Said]:
    """The stream by ticks; a source that has ended is silent: a header does not say when it comes back."""
    tick = 1
    said: list[Said] = []
    for step, source, ts in stream:
        tick += step
        if Said(tick, source, None) not in said and not any(each.ts is None and each.source == source for each in said):
            said.append(Said(tick, source, ts))
    return said


def test_a_source_that_has_ended_comes_back_when_it_speaks() -> None:
    said = [Said(1, "a", 10), Said(1, "b", 50), Said(2, "a", None), Said(5, "a", 12)]
    progress, timeline = Progress().advance([header(said[:3], None)], Measure(per_source=True))
    assert [step_at(timeline, (), tick) for tick in (1, 2)] == [10, 50]
    for batches in ([said[:3], said[3:]], [said[:2], said[2:]]):
        progress = Progress()
        for batch in batches:
            progress, timeline = progress.advance([header(batch, None)], Measure(per_source=True))
        assert step_at(timeline, (), 5) == 12
        assert step_at(timeline, (), 4) == 50


def step_at(timeline: Timeline, declared: tuple[str, ...], tick: int) -> int:
    return int(timeline.merge_us(declared)[np.searchsorted(timeline.tick, tick, side="right") - 1])


STREAMS = st.lists(
    st.tuples(st.integers(0, 4), st.sampled_from("abc"), st.none() | st.integers(0, 50)), min_size=1, max_size=25
)


@settings(max_examples=300, deadline=None)
@given(STREAMS, st.sampled_from([None, 1, IDLE]), st.data())
def test_the_least_of_the_sources_that_speak_is_that_of_the_definition(
    stream: list[tuple[int, str, int | None]], idle: int | None, data: st.DataObject
) -> None:
    said = _said(stream)
    declared = data.draw(st.sampled_from([(), ("a",), ("a", "b"), ("never",)]))
    ticks = sorted({each.tick for each in said})
    cut = data.draw(st.sampled_from(ticks))
    progress = Progress()
    for first, last in ((0, cut), (cut + 1, ticks[-1])):
        own = [each for each in said if first <= each.tick <= last]
        if not own:
            continue
        progress = Progress.from_bytes(progress.to_bytes())
        measure = Measure(idle, merged=True, per_source=True, declared=declared)
        progress, timeline = progress.advance([header(own, idle)], measure)
        assert timeline.sources is not None
        latest = timeline.sources.least(timeline.tick)
        for each in sorted({each.tick for each in own}):
            wanted = least(said, each, idle, declared)
            at = np.searchsorted(timeline.tick, each, side="right") - 1
            assert wanted == (latest[at] if latest[at] < FOREVER_US else largest(said, each)), (each, said)
            mark = max(least(said, tick, idle, declared) for tick in range(ticks[0], each + 1))
            assert timeline.mark_us[at] == mark


def test_a_declared_source_that_has_not_spoken_holds_the_merge_back() -> None:
    _, timeline = Progress().advance([header([Said(1, "a", 10)], None)], Measure(per_source=True))
    assert step_at(timeline, (), 1) == 10
    assert step_at(timeline, ("a", "b"), 1) == NEVER_US
    _, timeline = Progress().advance([header([Said(1, "a", 10)], None)], Measure(per_source=True, declared=("a", "b")))
    assert step_at(timeline, (), 1) == NEVER_US


def test_sources_that_went_idle_by_heartbeats_stay_so_until_they_speak() -> None:
    progress, _ = Progress().advance(
        [header([Said(1, "a", 10), Said(1, "b", 20)], IDLE)], Measure(IDLE, per_source=True)
    )
    for now in (100, 110):
        beat = HeaderBuilder(IDLE)
        beat.hear(now)
        progress, timeline = progress.advance([beat.build()], Measure(IDLE, per_source=True))
    assert progress.idle.tolist() == [1, 1]
    assert int(timeline.merge_us()[-1]) == 20
    progress, timeline = progress.advance([header([Said(2, "b", 30)], IDLE)], Measure(IDLE, per_source=True))
    assert int(timeline.merge_us()[-1]) == 30
    assert progress.idle.tolist() == [1, 0]


def test_sources_are_made_only_for_those_who_ask() -> None:
    _, timeline = Progress().advance([header([Said(1, "a", 10)], None)])
    assert timeline.sources is None
    with pytest.raises(AssertionError, match="per_source"):
        timeline.merge_us()


def merged_marks(measure: Measure, *batches: list[Said], ran: int = 0) -> list[int]:
    """The merged mark after each micro-batch, with the progress stored between them."""
    progress, found = Progress(), []
    for batch in batches:
        beat = HeaderBuilder(measure.idle_ticks)
        beat.hear(ran)
        progress = Progress.from_bytes(progress.to_bytes())
        progress, _ = progress.advance([header(batch, measure.idle_ticks), beat.build()], measure)
        found.append(progress.mark_us)
    return found


def test_the_merged_mark_waits_for_the_slow_source_and_never_goes_back() -> None:
    said = [Said(1, "fast", 100), Said(1, "slow", 10)], [Said(2, "fast", 200)], [Said(3, "slow", 30)]
    assert merged_marks(Measure(merged=True), *said, [Said(4, "new", 5)]) == [10, 10, 30, 30]


def test_a_source_that_idles_or_has_ended_holds_nobody_back() -> None:
    begin = [Said(1, "a", 100), Said(1, "b", 10)]
    assert merged_marks(Measure(3, merged=True), begin, [Said(3, "a", 110)], [Said(4, "a", 120)]) == [10, 10, 120]
    assert merged_marks(Measure(merged=True), begin, [Said(2, "b", None)], [Said(3, "b", 20)]) == [10, 100, 100]


def test_without_stamps_a_source_idles_by_the_time_that_the_query_runs() -> None:
    unstamped = Measure(5, stamped=False, merged=True)
    stream = [Said(1, "a", 100), Said(1, "b", 10)], *([Said(2, "a", 100 + n)] for n in range(1, 6))
    assert merged_marks(unstamped, *stream, ran=0) == [10] * 6  # however many micro-batches, and however long they took
    assert merged_marks(unstamped, *stream, ran=2) == [10, 10, 10, 10, 104, 105]


def test_when_all_sources_idle_the_merged_mark_is_the_largest_time() -> None:
    progress, timeline = Progress(), None
    for ran, said in ((1, [Said(1, "a", 100), Said(1, "b", 10)]), (1, []), (6, [])):
        beat = HeaderBuilder(5)
        beat.hear(ran)
        progress, timeline = progress.advance([header(said, 5), beat.build()], Measure(5, merged=True))
    assert timeline is not None
    assert (progress.mark_us, timeline.punctuation(50)) == (100, 100)


def test_a_declared_source_holds_the_mark_until_it_speaks_idles_or_ends() -> None:
    begin = [Said(1, "a", 100)]
    both = Measure(merged=True, declared=("a", "b"))
    waiting = begin, [Said(3, "a", 110)]
    assert merged_marks(both, *waiting, [Said(90, "a", 120)]) == [NEVER_US] * 3
    assert merged_marks(both, *waiting, [Said(4, "b", 7)], [Said(5, "b", 9)]) == [NEVER_US, NEVER_US, 7, 9]
    assert merged_marks(both, *waiting, [Said(4, "b", None)]) == [NEVER_US, NEVER_US, 110]
    idle = replace(both, idle_ticks=3)
    assert merged_marks(idle, *waiting, [Said(4, "a", 120)], [Said(5, "b", 7)]) == [NEVER_US, NEVER_US, 120, 120]
    assert merged_marks(idle, *waiting, [Said(4, "b", 7)]) == [NEVER_US, NEVER_US, 7]


def test_without_stamps_a_declared_source_idles_by_the_time_that_the_query_runs_since_the_first_row() -> None:
    unstamped = Measure(5, stamped=False, merged=True, declared=("a", "b"))
    nothing: list[list[Said]] = [[]] * 9
    stream = *nothing, *([Said(2, "a", 100 + n)] for n in range(5))
    assert merged_marks(unstamped, *stream, ran=0)[-5:] == [NEVER_US] * 5
    assert merged_marks(unstamped, *stream, ran=2)[-5:] == [NEVER_US] * 3 + [103, 104]


def test_a_stream_has_not_ended_before_its_declared_sources_have() -> None:
    ends = [Said(1, "a", 10), Said(2, "a", None)]
    for measure, floor in ((Measure(), FOREVER_US), (Measure(declared=("a", "b")), NEVER_US)):
        progress, _ = Progress().advance([header(ends, None)], measure)
        assert progress.floor_us == floor
    progress, _ = progress.advance([header([Said(3, "b", None)], None)], Measure(declared=("a", "b")))
    assert progress.floor_us == FOREVER_US


def test_when_all_that_spoke_are_silent_a_declared_source_that_never_did_holds_nothing() -> None:
    progress, measure = Progress(), Measure(5, merged=True, declared=("a", "b"))
    for ran, said in ((1, [Said(1, "a", 100)]), (1, []), (6, [])):
        beat = HeaderBuilder(5)
        beat.hear(ran)
        progress, timeline = progress.advance([header(said, 5), beat.build()], measure)
    assert (progress.mark_us, timeline.punctuation(50), progress.idle.tolist()) == (100, 100, [1, 1])


def test_progress_that_was_stored_before_streams_knew_when_they_began_is_read() -> None:
    progress, _ = Progress().advance([header([Said(1, "a", 10)], None)])
    arrays = load_arrays(progress.to_bytes())
    older = dump_arrays({**arrays, "scalars": arrays["scalars"].slice(0, 4)})
    assert Progress.from_bytes(older).begun_tick == NEVER_US
    assert replace(Progress.from_bytes(older), begun_tick=1).to_bytes() == progress.to_bytes()


@settings(max_examples=150, deadline=None)
@given(STREAMS, st.sampled_from([None, 1, IDLE]), st.data())
def test_the_progress_of_some_sources_is_that_of_a_stream_of_them_alone(
    stream: list[tuple[int, str, int | None]], idle: int | None, data: st.DataObject
) -> None:
    """The events of `c` move the clock, and nothing else."""
    said = [each for each in _said(stream) if each.ts is not None]
    ticks = sorted({each.tick for each in said}) or [1]
    cut = data.draw(st.sampled_from(ticks))
    progress, alone, floor = Progress(), Progress(), NEVER_US
    for first, last in ((0, cut), (cut + 1, ticks[-1])):
        own = [each for each in said if first <= each.tick <= last]
        mine = [each for each in own if each.source != "c"]
        progress, timeline = progress.advance([header(own, idle)], Measure(idle, per_source=True))
        alone, wanted = alone.advance([header(mine, idle)], Measure(idle, per_source=True))
        found = Timeline.from_bytes(timeline.to_bytes()).without(["c"], floor)
        floor = int(found.floor_us[-1])
        for each in sorted({each.tick for each in mine}):
            at, place = (np.searchsorted(steps.tick, each, side="right") - 1 for steps in (found, wanted))
            assert (found.mark_us[at], found.floor_us[at]) == (wanted.mark_us[place], wanted.floor_us[place]), each
            assert found.merge_us()[at] == wanted.merge_us()[place]


def test_sources_travel_to_the_next_stage_as_they_are() -> None:
    said = [Said(1, "a", 10), Said(2, "b", 7), Said(3, "a", None)]
    _, timeline = Progress().advance([header(said, IDLE)], Measure(IDLE, per_source=True, declared=("b", "z")))
    there = Timeline.from_bytes(timeline.to_bytes())
    assert there.to_bytes() == timeline.to_bytes()
    assert there.sources is not None
    assert there.sources.declared == ("b", "z")
    assert there.merge_us().tolist() == timeline.merge_us().tolist()


def test_results_are_a_source_that_idles_and_ends_with_those_they_are_made_of() -> None:
    said = [Said(1, "a", 10), Said(1, "c", 30), Said(9, "c", 40), Said(12, "a", 20), Said(13, "a", None)]
    _, timeline = Progress().advance([header(said, IDLE)], Measure(IDLE, per_source=True, declared=("a", "c")))
    own = timeline.without(["c"])
    passed_us = np.maximum(own.merge_us(), own.floor_us)
    later = timeline.passed_on_as("results", passed_us, ["c"])
    assert later.sources is not None
    number = later.sources.names.to_pylist().index("results")
    mine = later.sources.source == number
    steps = zip(*(column[mine].tolist() for column in later.sources[2:6]), strict=True)
    assert list(steps) == [(NEVER_US, NEVER_US, 0, 0), (1, 10, 0, 0), (4, 10, 1, 0), (12, 20, 0, 0), (13, 20, 1, 1)]
    assert [step_at(later, (), tick) for tick in (1, 4, 9, 12, 13)] == [10, 30, 40, 20, 40]
    assert later.mark_us[-1] == 40
