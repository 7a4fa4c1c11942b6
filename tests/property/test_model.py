"""The model against its slow twins."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from latecomer.events import total_order
from latecomer.headers import HeaderBuilder
from latecomer.outputs import Lane
from latecomer.progress import Measure, Progress
from latecomer.reorder import Reorder
from latecomer.testing import LAYOUT, Stream, run_machine
from tests import naive

rows = st.lists(st.tuples(st.integers(-50, 50), st.integers(0, 2), st.sampled_from([0, 0, 1, 1, 2, 9])), max_size=40)


def stream_of(drawn: list[tuple[int, int, int]]) -> Stream:
    """Rows of (ts, source, step of the tick)."""
    ts_us, source, steps = (np.array([row[i] for row in drawn], dtype=np.int64) for i in range(3))
    return Stream(ts_us, np.cumsum(steps), source, source)


def events_of(stream: Stream) -> list[naive.Event]:
    columns = (stream.ts_us, stream.source, stream.tick, range(len(stream)))
    return [naive.Event(*(int(value) for value in row)) for row in zip(*columns, strict=True)]


@given(rows)
def test_total_order_equals_its_twin(drawn: list[tuple[int, int, int]]) -> None:
    stream = stream_of(drawn)
    batch = stream.batch(np.random.default_rng(0).permutation(len(stream)))
    ids = batch.rows.column("id").to_numpy()
    assert batch.layout is LAYOUT
    assert ids[total_order(batch)].tolist() == naive.total_order(events_of(stream))


@given(rows, st.sampled_from([None, 3]), st.integers(1, 4))
def test_timeline_equals_its_twin(drawn: list[tuple[int, int, int]], idle: int | None, tasks: int) -> None:
    stream, builders = stream_of(drawn), [HeaderBuilder(idle) for _ in range(tasks)]
    for position in range(len(stream)):
        one = np.array([position])
        builders[position % tasks].add(stream.ts_us[one], stream.tick[one], pa.array(stream.source[one]))
    _, timeline = Progress().advance([builder.build() for builder in builders], Measure(idle))
    events = events_of(stream)
    for tick in {event.tick for event in events}:
        wanted = naive.mark_before(events, tick)
        assert timeline.mark_before(np.array([tick]))[0] == wanted
        lagging = wanted - 7 if wanted > -(2**60) else wanted
        floor = naive.floor_before(events, tick, idle)
        assert timeline.punctuation_before(np.array([tick]), 7)[0] == max(lagging, floor)


@given(rows)
def test_rises_equal_their_twin(drawn: list[tuple[int, int, int]]) -> None:
    stream, builder = stream_of(drawn), HeaderBuilder()
    builder.add(stream.ts_us, stream.tick, pa.array(stream.source))
    header = builder.build()
    found: dict[int, list[tuple[int, int]]] = {}
    for code, tick, ts_us in zip(header.rise_source, header.rise_tick, header.rise_ts_us, strict=True):
        found.setdefault(int(header.names[int(code)].as_py()), []).append((int(tick), int(ts_us)))
    assert found == naive.rises(events_of(stream))


@settings(deadline=None)
@given(rows, st.integers(1, 30), st.sampled_from([None, 3]), st.lists(st.integers(0, 40), max_size=3))
def test_hold_equals_its_twin(
    drawn: list[tuple[int, int, int]], latency: int, idle: int | None, cuts: list[int]
) -> None:
    stream = stream_of(drawn)
    between = [cut for cut in sorted(cuts) if 0 < cut < len(stream) and stream.tick[cut] != stream.tick[cut - 1]]
    run = run_machine(Reorder(f"{latency} us"), stream, cuts=between, idle_ticks=idle)
    given_rows = run.rows(Lane.RESULTS)
    ids = [] if given_rows is None else given_rows.column("id").to_pylist()
    assert (ids, run.late_ids()) == naive.hold(events_of(stream), latency, idle)


@settings(deadline=None, max_examples=200)
@given(
    rows,
    st.integers(1, 30),
    st.sampled_from([None, 1, 3]),
    st.lists(st.integers(0, 40), max_size=3),
    st.lists(st.tuples(st.integers(0, 12), st.integers(0, 2)), max_size=3),
)
def test_the_merged_mark_equals_its_twin(
    drawn: list[tuple[int, int, int]], latency: int, idle: int | None, cuts: list[int], ends: list[tuple[int, int]]
) -> None:
    stream = stream_of(drawn)
    spoken = {source: int(stream.tick[stream.source == source].min()) for source in set(stream.source.tolist())}
    first = max(spoken.values(), default=0)  # one that nobody knows yet has not ended
    stream = replace(stream, ends=tuple((first + after, source) for after, source in ends if source in spoken))
    between = [cut for cut in sorted(cuts) if 0 < cut < len(stream) and stream.tick[cut] != stream.tick[cut - 1]]
    run = run_machine(Reorder(f"{latency} us"), stream, cuts=between, idle_ticks=idle, merged=True)
    given_rows = run.rows(Lane.RESULTS)
    ids = [] if given_rows is None else given_rows.column("id").to_pylist()
    assert (ids, run.late_ids()) == naive.hold(events_of(stream), latency, idle, merged=True, ends=stream.ends)


@given(rows, st.sampled_from([None, 1, 3]), st.integers(1, 4), st.data())
def test_the_merged_mark_is_the_same_for_all_tasks_and_cuts(
    drawn: list[tuple[int, int, int]], idle: int | None, tasks: int, data: st.DataObject
) -> None:
    stream, progress, events = stream_of(drawn), Progress(), events_of(stream_of(drawn))
    cut = data.draw(st.integers(0, int(stream.tick.max(initial=0)) + 1))
    for chosen in (np.flatnonzero(stream.tick < cut), np.flatnonzero(stream.tick >= cut)):
        builders = [HeaderBuilder(idle) for _ in range(tasks)]
        for position in chosen:
            one = np.array([position])
            builders[position % tasks].add(stream.ts_us[one], stream.tick[one], pa.array(stream.source[one]))
        headers = [builder.build() for builder in builders]
        progress, timeline = Progress.from_bytes(progress.to_bytes()).advance(headers, Measure(idle, merged=True))
        for tick in stream.tick[chosen]:
            wanted = naive.merged_mark_before(events, (), int(tick), idle)
            assert timeline.mark_before(np.array([tick]))[0] == wanted
