"""Ticks, marks, punctuations, sources that idle or end."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from latecomer.events import FOREVER_US, NEVER_US, Int64s
from latecomer.headers import Header, HeaderBuilder
from latecomer.progress import Measure, Progress, Timeline
from latecomer.reorder import Reorder
from latecomer.testing import Stream, run_machine


def header(
    ts_us: list[int], tick: list[int] | None, source: Sequence[str | None] | None = None, idle: int | None = None
) -> Header:
    builder = HeaderBuilder(idle)
    builder.add(array(ts_us), None if tick is None else array(tick), None if source is None else pa.array(source))
    return builder.build()


def array(values: list[int]) -> Int64s:
    return np.array(values, dtype=np.int64)


def marks(timeline: Timeline, *ticks: int) -> list[int]:
    return [int(mark) for mark in timeline.mark_before(array(list(ticks)))]


def test_the_mark_moves_between_ticks_never_inside_one() -> None:
    _, timeline = Progress().advance([header([100, 50, 200], [1, 1, 2])])
    assert marks(timeline, 1, 2, 3) == [NEVER_US, 100, 200]


def test_headers_of_several_tasks_agree_whatever_their_order() -> None:
    one, two = header([100, 90], [1, 3], ["a", "a"]), header([150, 10], [2, 3], ["b", "a"])
    left, _ = Progress().advance([one, two])
    right, _ = Progress().advance([two, one])
    assert left.to_bytes() == right.to_bytes()
    assert left.mark_us == 150
    assert dict(zip(left.names.to_pylist(), left.latest_us.tolist(), strict=True)) == {"a": 100, "b": 150}


def test_without_stamps_a_micro_batch_is_one_tick() -> None:
    progress, timeline = Progress().advance([header([100], None)])
    assert marks(timeline, progress.closed_tick) == [NEVER_US]
    later, timeline = progress.advance([header([300], None)])
    assert later.closed_tick == progress.closed_tick + 1
    assert marks(timeline, later.closed_tick) == [100]


def test_a_stamp_that_goes_back_joins_the_first_open_tick() -> None:
    progress, _ = Progress().advance([header([100], [7])])
    assert progress.open_ticks(array([3, 7, 8])).tolist() == [8, 8, 8]
    later, timeline = progress.advance([header([500], [3])])
    assert marks(timeline, 8, 9) == [100, 500]
    assert later.closed_tick == 8


def test_an_empty_batch_changes_nothing() -> None:
    progress, _ = Progress().advance([header([100], [7])])
    later, timeline = progress.advance([HeaderBuilder().build()])
    assert later.to_bytes() == progress.to_bytes()
    assert timeline.punctuation(10) == 90


def test_silence_makes_the_mark_a_punctuation() -> None:
    _, timeline = Progress().advance([header([100, 200], [1, 20], idle=5)], Measure(5))
    assert timeline.punctuation_before(array([1, 6, 7, 20, 21]), 50).tolist() == [NEVER_US, 50, 100, 100, 150]


def test_silence_is_that_of_all_sources_together() -> None:
    _, timeline = Progress().advance([header([100, 200], [0, 9], ["b", "a"], idle=3)], Measure(3))
    assert timeline.punctuation_before(array([9]), 50).tolist() == [100]


def test_silence_counts_alike_when_a_batch_ends_in_it() -> None:
    progress, _ = Progress().advance([header([100], [1], idle=5)], Measure(5))
    _, timeline = progress.advance([header([200], [20], idle=5)], Measure(5))
    assert timeline.punctuation_before(array([20, 21]), 50).tolist() == [100, 150]


def beat(ran: int, idle: int = 5) -> Header:
    builder = HeaderBuilder(idle)
    builder.hear(ran)
    return builder.build()


def test_a_heartbeat_releases_an_idle_stream() -> None:
    progress, timeline = Progress().advance([header([100], [1], idle=5)], Measure(5))
    assert timeline.punctuation(50) == 50
    for ran, punctuation in ((1_000, 50), (5, 50), (1, 100)):  # the first beat begins the silence
        progress, timeline = progress.advance([beat(ran)], Measure(5))
        assert timeline.punctuation(50) == punctuation
    assert progress.closed_tick == 1
    _, timeline = progress.advance([header([90, 300], [2, 2], idle=5)], Measure(5))
    assert timeline.punctuation_before(array([2]), 50).tolist() == [100]


def test_a_backlog_with_old_stamps_is_not_idle() -> None:
    progress = Progress()
    for tick in range(1, 20):
        progress, timeline = progress.advance([header([100 * tick], [tick], idle=5), beat(100)], Measure(5))
        assert timeline.floor_us[-1] == NEVER_US


def test_without_stamps_silence_counts_only_while_the_query_runs() -> None:
    unstamped, progress = Measure(5, stamped=False), Progress()
    for ts, ran in ((100, 0), (80, 1), (120, 1_000), (90, 0)):  # whatever the time between the micro-batches
        progress, timeline = progress.advance([header([ts], None), beat(ran)], unstamped)
        progress = Progress.from_bytes(progress.to_bytes())
        assert timeline.floor_us[-1] == NEVER_US
    for ran, floor in ((1, NEVER_US), (0, NEVER_US), (5, NEVER_US), (1, 120)):
        progress, timeline = progress.advance([beat(ran)], unstamped)
        progress = Progress.from_bytes(progress.to_bytes())
        assert timeline.floor_us[-1] == floor
    _, timeline = progress.advance([header([110], None), beat(3)], unstamped)
    assert timeline.punctuation_before(array([progress.closed_tick + 1]), 50).tolist() == [120]


def test_without_stamps_ticks_that_only_control_values_close_are_no_silence() -> None:
    unstamped, progress = Measure(1, stamped=False), Progress()
    progress, _ = progress.advance([header([100], None)], unstamped)
    for _ in range(4):
        control = HeaderBuilder(1)
        control.control("latency_us", "5")
        progress, timeline = progress.advance([control.build()], unstamped)
    progress, timeline = progress.advance([header([90], None)], unstamped)
    assert timeline.floor_us[-1] == NEVER_US


def test_one_source_that_idles_does_not_release_the_others() -> None:
    ticks = list(range(1, 30))
    _, timeline = Progress().advance([header([100, *range(200, 228)], ticks, ["a"] + ["b"] * 28, idle=5)], Measure(5))
    assert timeline.floor_us[-1] == NEVER_US


def test_the_stream_ends_when_its_last_source_ends() -> None:
    progress, timeline = Progress().advance([header([100, 200], [1, 1], ["a", "b"])])
    ends = HeaderBuilder()
    ends.add_ends(array([2]), 1, pa.array(["a"]))
    progress, timeline = progress.advance([ends.build()])
    assert timeline.punctuation(50) == 150
    ends = HeaderBuilder()
    ends.add_ends(array([3]), 1, pa.array(["b"]))
    progress, timeline = progress.advance([ends.build()])
    assert timeline.punctuation(50) == FOREVER_US


def test_progress_and_headers_survive_the_journey() -> None:
    original = header([100, 50, 200], [1, 1, 2], ["a", "b", "a"], idle=5)
    again = Header.from_bytes(original.to_bytes())
    assert again.to_bytes() == original.to_bytes()
    progress, _ = Progress().advance([again], Measure(5))
    assert Progress.from_bytes(progress.to_bytes()).to_bytes() == progress.to_bytes()


def test_a_null_source_is_a_source() -> None:
    progress, _ = Progress().advance([header([1, 2], [1, 1], ["a", None])])
    assert sorted(progress.names.to_pylist(), key=str) == [None, "a"]


def test_a_header_of_many_ticks_is_small() -> None:
    ticks = np.arange(10_000) + 17_600_000_000
    builder = HeaderBuilder()
    builder.add(ticks * 100_000, ticks)
    assert len(builder.build().to_bytes()) < 60_000


@given(
    steps=st.integers(2, 400),
    spread=st.sampled_from([3, 500, 10**6, 10**15, 2**62]),
    outlier=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
@settings(max_examples=60, deadline=None)
def test_the_mark_before_many_ticks_is_that_before_each(steps: int, spread: int, outlier: bool, seed: int) -> None:
    rng = np.random.default_rng(seed)
    tick = np.unique(rng.integers(-spread, spread, steps))
    if outlier:
        tick = np.append(tick, int(tick[-1]) + 2**61)
    timeline = Timeline(np.append(NEVER_US, tick), np.arange(len(tick) + 1), np.zeros(len(tick) + 1, dtype=np.int64))
    asked = np.concatenate([rng.integers(-spread, spread, 1_000), rng.choice(tick, 200), tick + 1, tick - 1])
    expected = [int((tick < each).sum()) for each in asked]
    assert timeline.mark_before(asked).tolist() == expected
    assert timeline.mark_before(asked[:10]).tolist() == expected[:10]


def test_a_source_that_came_back_has_not_ended_when_the_last_other_one_does() -> None:
    ts_us, tick, key, source = (array(each) for each in ([10, 10, 20, 30], [0, 0, 2, 4], [0, 0, 0, 0], [0, 1, 0, 0]))
    stream = Stream(ts_us, tick, key, source, ends=((1, 0), (3, 1)))
    for cuts in ([], [2], [3], [2, 3]):
        assert run_machine(Reorder("100 us"), stream, cuts=cuts).late_ids() == []
