"""Impatience sort against its slow twin, the paper's propositions and figures, and Trill's own cases."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from latecomer.disorder import measures
from latecomer.errors import InputError, LateError
from latecomer.events import FOREVER_US, NEVER_US, Int64s
from latecomer.runs.merging import merge_order
from latecomer.sorter import ImpatienceSorter, Released, sorter
from tests import naive

TIMES = st.lists(st.integers(-20, 20), max_size=60)
PAYLOADS: dict[str, Any] = {
    "none": None,
    "int32": np.dtype("i4"),
    "four int32": np.dtype([(name, "i4") for name in "abcd"]),
    "odd": np.dtype([("a", "i8"), ("b", "i2")]),
}
SWITCHES: list[dict[str, Any]] = [
    {"hardware": True},
    {"hardware": False},
    {"hardware": False, "huffman": False},
    {"carry": True},
    {"hardware": False, "speculative": False},
    {"hardware": False, "huffman": False, "speculative": False, "drop_empty": False},
]


@st.composite
def streams(draw: st.DrawFn) -> tuple[list[int], int]:
    """Times that wander upwards with late ones among them, now and then too wide for packed keys; and a latency."""
    steps = draw(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 40)), max_size=200))
    unit = draw(st.sampled_from([1, 1, 1_000_003, 10**15]))
    times = np.cumsum([step for step, _ in steps] or [0])[: len(steps)] - np.array([back for _, back in steps], int)
    return [int(time) * unit for time in times], draw(st.sampled_from([0, 1, 7, 30, 1_000])) * unit


def slow(times: list[int], latency: int, every: int) -> tuple[list[tuple[int, int]], list[int]]:
    """What the twin gives, and the places of the late."""
    twin, out, late, mark = naive.Impatience(), [], [], NEVER_US
    for place, time in enumerate(times):
        mark = max(mark, time)
        if not twin.push((time, place)):
            late.append(place)
        if (place + 1) % every == 0 and mark - latency > twin.floor:
            out += twin.punctuate(mark - latency)
    return out + twin.punctuate(FOREVER_US), late


def places(count: int, dtype: Any) -> np.ndarray | None:
    """A payload that says where each event stood."""
    if dtype is None:
        return None
    payload = np.zeros(count, dtype)
    (payload["a"] if dtype.names else payload)[:] = np.arange(count)
    return payload


def read_places(payload: np.ndarray) -> list[int]:
    """The places in a payload."""
    found: list[int] = (payload["a"] if payload.dtype.names else payload).tolist()
    return found


@settings(max_examples=60)
@given(
    streams(),
    st.sampled_from([1, 3, 10, 50, 1_000]),
    st.lists(st.integers(0, 200), max_size=3),
    st.sampled_from(list(PAYLOADS)),
    st.sampled_from([1, 1_500]),
    st.sampled_from([0, 3]),
)
def test_sorter_is_its_twin(
    stream: tuple[list[int], int], every: int, cuts: list[int], kind: str, hardware_from: int, most_moves: int
) -> None:
    times, latency = stream
    expected, late = slow(times, latency, every)
    ts_us = np.array(times, dtype=np.int64)
    payload = places(len(times), PAYLOADS[kind])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sorter, "HARDWARE_FROM", hardware_from)
        patch.setattr(sorter, "MOST_MOVES", most_moves)
        for switches in SWITCHES:
            found = ImpatienceSorter(latency, every=every, **switches)
            parts = [
                found.push(part, None if payload is None else payload[part_at])
                for part, part_at in zip(
                    np.split(ts_us, sorted(cuts)), np.split(np.arange(len(times)), sorted(cuts)), strict=True
                )
            ]
            parts.append(found.finish())
            assert join(parts, "ts_us") == [time for time, _ in expected]
            assert join(parts, "late_ts_us") == [times[place] for place in late]
            assert found.held == 0
            assert found.late == len(late)
            if payload is not None:
                assert join(parts, "payload") == [place for _, place in expected]
                assert join(parts, "late_payload") == late


def join(parts: list[Released], name: str) -> list[int]:
    """A field of all parts together."""
    found: list[int] = []
    for part in parts:
        values = getattr(part, name)
        if values is not None:
            found += read_places(values)
    return found


@given(TIMES, st.integers(-25, 25))
def test_runs_are_those_of_the_twin(times: list[int], floor: int) -> None:
    twin, found = naive.Impatience(), ImpatienceSorter(hardware=False)
    for place, time in enumerate(times):
        twin.push((time, place))
    found.push(np.array(times, dtype=np.int64))
    assert found.run_times() == [[time for time, _ in run] for run in twin.runs]
    left = found.punctuate(floor).ts_us.tolist()
    assert left == [time for time, _ in twin.punctuate(floor)]
    assert found.run_times() == [[time for time, _ in run] for run in twin.runs]


@given(TIMES)
def test_propositions_bound_the_number_of_runs(times: list[int]) -> None:
    found = ImpatienceSorter(hardware=False)
    ts_us = np.array(times, dtype=np.int64)
    found.push(ts_us)
    assert found.runs <= len(set(times))  # Proposition 3.2
    assert found.runs <= measures.runs(ts_us)  # Proposition 3.3
    assert found.runs == len(naive.patience(times))


@given(st.lists(TIMES, min_size=1, max_size=5), st.randoms(use_true_random=False))
def test_proposition_3_1_interleaved_runs(pieces: list[list[int]], random: Random) -> None:
    order = [number for number, piece in enumerate(pieces) for _ in piece]
    random.shuffle(order)
    waiting = [iter(sorted(piece)) for piece in pieces]
    found = ImpatienceSorter(hardware=False)
    found.push(np.array([next(waiting[number]) for number in order], dtype=np.int64))
    assert found.runs <= len(pieces)


def test_figure_3_patience_on_eight_elements() -> None:
    steps = [
        (2, [[2]]),
        (6, [[2, 6]]),
        (5, [[2, 6], [5]]),
        (1, [[2, 6], [5], [1]]),
        (4, [[2, 6], [5], [1, 4]]),
        (3, [[2, 6], [5], [1, 4], [3]]),
        (7, [[2, 6, 7], [5], [1, 4], [3]]),
        (8, [[2, 6, 7, 8], [5], [1, 4], [3]]),
    ]
    found = ImpatienceSorter(hardware=False)
    for time, runs in steps:
        found.push(np.array([time]))
        assert found.run_times() == runs
    assert found.finish().ts_us.tolist() == [1, 2, 3, 4, 5, 6, 7, 8]


@pytest.mark.parametrize("hardware", [False, True])
def test_figure_4_impatience_on_the_example_stream(hardware: bool) -> None:
    found = ImpatienceSorter(hardware=hardware)
    found.push(np.array([2, 6, 5, 1]))
    assert found.punctuate(2).ts_us.tolist() == [1, 2]
    if not hardware:
        assert found.run_times() == [[6], [5]]
    found.push(np.array([4, 3, 7]))
    if not hardware:
        assert found.run_times() == [[6, 7], [5], [4], [3]]
    assert found.punctuate(4).ts_us.tolist() == [3, 4]
    if not hardware:
        assert found.run_times() == [[6, 7], [5]]
    found.push(np.array([8]))
    assert found.finish().ts_us.tolist() == [5, 6, 7, 8]


@given(st.lists(TIMES.map(sorted), min_size=1, max_size=9), st.sampled_from([1, 10**15]))
def test_merge_order_is_a_stable_sort(pieces: list[list[int]], unit: int) -> None:
    full = [piece for piece in pieces if piece] or [[0]]
    ts_us: Int64s = np.array([time * unit for piece in full for time in piece], dtype=np.int64)
    ranked, positions = merge_order(ts_us, np.array([len(piece) for piece in full]))
    expected = np.argsort(ts_us, kind="stable")
    assert positions.tolist() == expected.tolist()
    assert ranked.tolist() == ts_us[expected].tolist()


# Trill's own cases (microsoft/Trill, DisorderedIngressAndEgressTests): a punctuation after each event. An event whose
# time equals the punctuation is on time there and too late here, so their latency of 5 is our 6.
STARTS = [10, 10, 12, 10, 14, 13, 9, 17, 18, 17, 20, 14, 22, 20, 24, 25, 26, 27, 28, 23, 30, 31, 32, 25, 34, 35, 36]
STARTS += [37, 36, 30]
INTERVALS = [10, 11, 12, 9, 14, 10, 16, 16, 17, 19, 20, 21, 21, 20, 23, 25, 22, 26, 28, 24, 22, 25, 32, 33, 34, 35]
INTERVALS += [31, 37, 35, 39]


@pytest.mark.parametrize("hardware", [False, True])
@pytest.mark.parametrize(
    ("times", "latency", "late", "adjusted"),
    [
        (STARTS, 5, [14, 25, 30], [15, 27, 32]),
        (STARTS, 20, [], []),
        (INTERVALS, 5, [22], [23]),
        (INTERVALS, 20, [], []),
    ],
)
def test_trill_cases(times: list[int], latency: int, late: list[int], adjusted: list[int], hardware: bool) -> None:
    on_time = list(times)
    for time in late:
        on_time.reverse()
        on_time.remove(time)
        on_time.reverse()

    def run(policy: str) -> tuple[list[int], list[int]]:
        found = ImpatienceSorter(latency + 1, every=1, late=policy, hardware=hardware)
        parts = [found.push(np.array(times), np.array(times)), found.finish()]
        return join(parts, "ts_us"), join(parts, "payload")

    assert run("drop") == run("side") == (sorted(on_time), sorted(on_time))
    starts, payloads = run("adjust")
    assert starts == sorted(on_time + adjusted)
    assert [(t, p) for t, p in zip(starts, payloads, strict=True) if t != p] == list(zip(adjusted, late, strict=True))
    if late:
        with pytest.raises(LateError, match="too late"):
            run("raise")
    else:
        assert run("raise") == run("drop")


def test_a_punctuation_by_hand() -> None:
    found = ImpatienceSorter()
    found.push(np.array([30, 25, 20]))
    assert found.punctuate(29).ts_us.tolist() == [20, 25]
    assert found.push(np.array([25, 20, 30, 35])).late_ts_us.tolist() == [25, 20]
    assert found.finish().ts_us.tolist() == [30, 30, 35]


@pytest.mark.parametrize("hardware", [False, True])
def test_late_events_are_reported_by_the_push_that_brings_them(hardware: bool) -> None:
    found = ImpatienceSorter(hardware=hardware)
    found.punctuate(29)
    pushed = found.push([25, 20, 30, 29, 35], np.arange(5))
    assert (pushed.late_ts_us.tolist(), found.late, found.held) == ([25, 20, 29], 3, 2)
    assert join([pushed], "late_payload") == [0, 1, 3]
    left = found.finish()
    assert (left.ts_us.tolist(), left.late_ts_us.tolist(), join([left], "payload")) == ([30, 35], [], [2, 4])
    moved = ImpatienceSorter(late="adjust", hardware=hardware)
    moved.punctuate(29)
    moved.push([25, 40, 28])
    assert (moved.late, moved.finish().ts_us.tolist()) == (2, [30, 30, 40])


@pytest.mark.parametrize("hardware", [False, True])
def test_a_sorter_that_failed_takes_nothing_more(hardware: bool) -> None:
    found = ImpatienceSorter(late="raise", hardware=hardware)
    found.push([10, 20])
    with pytest.raises(InputError, match="whole numbers"):
        found.push([1.5])
    assert found.punctuate(15).ts_us.tolist() == [10]
    with pytest.raises(LateError, match="1 too late"):
        found.push([30, 12])
    after: list[Callable[[], Released]] = [lambda: found.push([40]), lambda: found.punctuate(50), found.finish]
    for go_on in after:
        with pytest.raises(InputError, match=r"sorter must not go on after an error.*LateError.*make a new one"):
            go_on()


def test_a_sorter_of_text_says_what_to_push() -> None:
    found = ImpatienceSorter()
    with pytest.raises(InputError, match=r"no Python objects.*push row numbers"):
        found.push([2, 1], pa.array(["b", "a"]))
    found.push([2, 1], [0, 1])
    assert join([found.finish()], "payload") == [1, 0]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"every": 0, "latency": 1}, "every must be a whole number above zero"),
        ({"every": 10}, "latency must be given with every"),
        ({"latency": -1}, "latency must not be negative"),
        ({"latency": 2**62}, "below 2..62"),
        ({"latency": 1, "every": 2.5}, "every must be a whole number"),
        ({"late": "keep"}, "late must be one of 'side', 'drop', 'adjust', 'raise'"),
    ],
)
def test_wrong_settings_are_refused(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(InputError, match=text):
        ImpatienceSorter(**arguments)


def test_a_payload_keeps_its_shape() -> None:
    found = ImpatienceSorter()
    found.push(np.array([1, 2]), np.array([1.0, 2.0]))
    with pytest.raises(InputError, match="have the type float64 it began with"):
        found.push(np.array([1]), np.array([1]))
    with pytest.raises(InputError, match="one element per event"):
        found.push(np.array([1]), np.array([1.0, 2.0]))
    with pytest.raises(InputError, match="no Python objects"):
        ImpatienceSorter().push(np.array([1]), np.array([None]))


@pytest.mark.parametrize(
    ("times", "text"),
    [
        ([1.5, 2.0], "times must be whole numbers; got 'float64'"),
        ([[1], [2]], "times must be a list of numbers"),
        ([2**62], "times must lie between"),
        ([-(2**63)], "times must lie between"),
        (np.array([2**63], dtype=np.uint64), "times must lie below"),
    ],
)
def test_wrong_times_are_refused(times: Any, text: str) -> None:
    with pytest.raises(InputError, match=text):
        ImpatienceSorter().push(times)


def test_punctuations_are_whole_numbers_of_any_kind() -> None:
    found = ImpatienceSorter()
    found.push([5, 3, 4])
    assert found.punctuate(np.int64(2**43)).ts_us.tolist() == [3, 4, 5]
    wrongs: list[Any] = [2.5, 2**70]
    for wrong in wrongs:
        with pytest.raises(InputError, match="punctuation must"):
            found.punctuate(wrong)
    found.finish()
    with pytest.raises(InputError, match="push must come before finish"):
        found.push([7])


@pytest.mark.parametrize("kind", ["S10", "V3", "M8[us]", "clongdouble", "i4,i8,S5"])
def test_payloads_of_any_type_come_through(kind: str) -> None:
    ts_us = np.random.default_rng(0).permutation(20_000)
    payload = np.arange(40_000 * np.dtype(kind).itemsize, dtype=np.uint8)[: 20_000 * np.dtype(kind).itemsize]
    payload = (payload & 1).view(kind)
    found = ImpatienceSorter(100_000, every=9_000)
    found.push(ts_us, payload)
    left = found.finish().payload
    assert left is not None
    assert left.dtype == np.dtype(kind)
    assert left.tobytes() == payload[np.argsort(ts_us)].tobytes()


def test_payloads_survive_batches_that_leave_no_trace() -> None:
    """Batches that left at once, or came too late altogether, have numbers but no payload in the ring."""
    found = ImpatienceSorter()
    found.push([10**6], [0.0])
    found.punctuate(0)
    found.push(np.random.default_rng(0).integers(1, 100, 20_000), np.ones(20_000))
    found.punctuate(200)
    found.push([500], [2.0])
    assert found.punctuate(300).ts_us.tolist() == []
    assert join([found.finish()], "payload") == [2.0, 0.0]
    wide = ImpatienceSorter()
    wide.push([5], [0.0])
    wide.punctuate(0)
    wide.push(np.random.default_rng(0).integers(6, 2**61, 20_000), np.ones(20_000))
    assert join([wide.punctuate(5)], "payload") == [0.0]
    assert join([wide.finish()], "payload") == [1.0] * 20_000
    late = ImpatienceSorter(0, every=10)
    late.push(np.arange(100, 120), np.arange(20.0))
    assert len(late.push(np.zeros(5_000, np.int64), np.arange(5_000.0)).late_ts_us) == 5_000
    assert join([late.push(np.arange(200, 220), np.arange(20.0))], "payload") == list(range(20))
