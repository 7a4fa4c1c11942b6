"""What each source did, tick by tick, against the definition."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from latecomer.events import NEVER_US
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
            if source in declared and not own:
                return NEVER_US
            continue
        last = max(each.tick for each in times)
        ended = [each.tick for each in own if each.ts is None]
        if (ended and max(ended) >= last) or (idle is not None and tick - last >= idle):
            continue
        speaking[source] = max(each.ts for each in times if each.ts is not None)
    times_seen = [each.ts for each in known if each.ts is not None]
    mark = max(times_seen) if times_seen else NEVER_US
    return min(speaking.values()) if speaking else mark


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
    ends = {each.source for each in said if each.ts is None}
    silent = {each.source for each in said} - {each.source for each in said if each.ts is not None}
    declared = tuple(sorted({"a"} - ends - silent))
    ticks = sorted({each.tick for each in said})
    cut = data.draw(st.sampled_from(ticks))
    progress = Progress()
    for first, last in ((0, cut), (cut + 1, ticks[-1])):
        own = [each for each in said if first <= each.tick <= last]
        if not own:
            continue
        progress = Progress.from_bytes(progress.to_bytes())
        progress, timeline = progress.advance([header(own, idle)], Measure(idle, per_source=True))
        for each in sorted({each.tick for each in own}):
            assert step_at(timeline, declared, each) == least(said, each, idle, declared), (each, said)


def test_a_declared_source_that_has_not_spoken_holds_the_merge_back() -> None:
    _, timeline = Progress().advance([header([Said(1, "a", 10)], None)], Measure(per_source=True))
    assert step_at(timeline, (), 1) == 10
    assert step_at(timeline, ("a", "b"), 1) == NEVER_US


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
