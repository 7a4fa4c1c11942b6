"""Measures, arrivals, the search and the profile against their slow twins."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from latecomer.disorder import measures
from latecomer.disorder.chance import draws, hashes, normals
from latecomer.disorder.config import ExperimentConfig
from latecomer.disorder.delays import Delay, Rows, Uniform
from latecomer.disorder.generate import Experiment
from latecomer.disorder.lines import TextFormat, parse_lines
from latecomer.disorder.profiler import Recorded, key_gaps, place, profile_recorded
from latecomer.disorder.target import Reach, hit
from latecomer.events import Int64s
from latecomer.spark.profiling.lateness import bin_range, coarse_bin
from latecomer.spark.recorded.scan import Bounds
from tests import naive

TIMES = st.lists(st.integers(-20, 20), max_size=60)


@given(TIMES)
def test_the_four_measures_equal_their_definitions(times: list[int]) -> None:
    found = measures.measure(np.array(times, dtype=np.int64))
    assert found.inversions == len(naive.inversions(times))
    assert found.distance == naive.distance(times)
    assert found.runs == naive.runs(times)
    assert found.interleaved == len(naive.patience(times))


@given(st.integers(0, 2**32), st.integers(1, 300_000))
@settings(max_examples=5)
def test_inversions_of_long_streams_equal_an_independent_count(seed: int, length: int) -> None:
    times = np.random.default_rng(seed).integers(0, 50, length)
    expected = 0
    for value in range(50):  # pairs of an earlier larger value with this one
        here = np.cumsum(times > value)
        expected += int(here[times == value].sum())
    assert measures.count_inversions(times) == expected


@given(TIMES, st.integers(1, 9))
def test_dealing_in_pieces_is_dealing_at_once(times: list[int], size: int) -> None:
    dealer, count = measures.Dealer(), 0
    for start in range(0, len(times), size):
        count = dealer.deal(np.array(times[start : start + size], dtype=np.int64))
    assert count == measures.interleaved(np.array(times, dtype=np.int64))


@given(TIMES)
def test_propositions_bound_the_interleaved_runs(times: list[int]) -> None:
    count = measures.interleaved(np.array(times, dtype=np.int64))
    assert count <= len(set(times))  # Proposition 3.2
    assert count <= max(1, naive.runs(times)) or not times  # Proposition 3.3


@given(st.lists(st.lists(st.integers(0, 30), max_size=15).map(sorted), max_size=6), st.randoms(use_true_random=False))
def test_interleaving_d_sorted_runs_gives_at_most_d(parts: list[list[int]], chance: random.Random) -> None:
    labels = [number for number, part in enumerate(parts) for _ in part]
    chance.shuffle(labels)
    queues = [iter(part) for part in parts]
    stream = np.array([next(queues[number]) for number in labels], dtype=np.int64)
    assert measures.interleaved(stream) <= len(parts)  # Proposition 3.1


@given(TIMES)
def test_lateness_is_the_mark_before_minus_the_time(times: list[int]) -> None:
    assert measures.lateness(np.array(times, dtype=np.int64)).tolist() == naive.lateness(times)


class Fixed(Delay):
    """Delays by row number, for tests."""

    def delays(self, rows: Rows, seed: int) -> Int64s:
        return rows.number * 7 % 11


@given(TIMES)
def test_arrivals_follow_the_poster(times: list[int]) -> None:
    ts_us = np.array(times, dtype=np.int64)
    rows = Rows(np.arange(len(times)), ts_us, None, 0, 1)
    experiment = Experiment("x", ExperimentConfig(factor=100, max_delay=1), Fixed(0, 10))
    base_us = np.maximum.accumulate(ts_us) if times else ts_us
    found = experiment.arrivals(rows, base_us, 1.0).tolist()
    assert found == naive.arrivals(times, [number * 7 % 11 for number in range(len(times))])


@given(st.integers(0, 2**63), st.lists(st.integers(-(2**62), 2**62), min_size=1, max_size=40))
def test_draws_depend_on_nothing_but_seed_purpose_and_number(seed: int, numbers: list[int]) -> None:
    values = np.array(numbers, dtype=np.int64)
    together = draws(seed, "a", values)
    assert together.tolist() == [draws(seed, "a", values[i : i + 1])[0] for i in range(len(values))]
    assert bool(np.all((together >= 0) & (together < 1)))
    assert not np.array_equal(hashes(seed, "a", values), hashes(seed, "b", values))


def test_draws_and_normals_have_the_moments_they_should() -> None:
    numbers = np.arange(400_000)
    u, z = draws(3, "x", numbers), normals(3, "x", numbers)
    assert abs(u.mean() - 0.5) < 0.002
    assert abs(u.var() - 1 / 12) < 0.001
    assert abs(np.corrcoef(u[:-1], u[1:])[0, 1]) < 0.005
    assert abs(z.mean()) < 0.005
    assert abs(z.std() - 1) < 0.005
    assert abs((np.abs(z) < 1.96).mean() - 0.95) < 0.002


@given(st.floats(0.05, 1.0), st.floats(0.3, 3.0), st.integers(0, 100))
def test_the_search_hits_any_target_a_rising_curve_reaches(top: float, bend: float, percent: int) -> None:
    events = 100_000
    target = percent * events // 100

    def late(share: float) -> int:
        return int(np.rint(top * events * share**bend))

    found = hit(late, events, target, own=0)
    reachable = target <= top * events
    assert found.late == late(found.share)
    if reachable:
        assert abs(found.late - target) <= events // 200
    else:
        assert found.reach in (Reach.MAXIMUM, Reach.HIT)
        assert found.late >= 0.99 * top * events


@given(edge=st.floats(0.5, 0.9999), after=st.floats(0, 0.9), bend=st.floats(0.7, 1.5))
@settings(max_examples=200)
def test_the_reachable_maximum_of_a_curve_with_an_edge_is_not_understated(
    edge: float, after: float, bend: float
) -> None:
    events = 100_000

    def late(share: float) -> int:
        rising = (share / edge) ** bend * 0.95 * edge
        return round(events * (rising if share <= edge else after * edge * (1 - share)))

    found = hit(late, events, events, 0)
    assert found.reach is Reach.MAXIMUM
    assert late(edge) - found.late <= 0.002 * events


@given(st.floats(0.2, 0.9), st.integers(1, 99))
def test_the_search_finds_the_reachable_maximum_of_a_curve_that_falls_again(peak: float, percent: int) -> None:
    events = 100_000
    target = percent * events // 100

    def late(share: float) -> int:
        rise = share / peak if share <= peak else max(0.0, (1 - share) / (1 - peak))
        return round(0.5 * events * rise)

    found = hit(late, events, target, own=0)
    if target <= 0.498 * events:
        assert abs(found.late - target) <= events // 200
    if target >= 0.51 * events:
        assert found.reach is Reach.MAXIMUM
        assert found.late >= 0.498 * events


@given(TIMES, st.lists(st.integers(0, 3), min_size=60, max_size=60), st.integers(1, 5))
def test_gaps_of_each_key_equal_their_definition(times: list[int], keys: list[int], period: int) -> None:
    codes = np.array(keys[: len(times)], dtype=np.int64)
    found = key_gaps(np.array(times, dtype=np.int64), codes, period)
    for number, key in enumerate(sorted(set(codes.tolist()))):
        mine = [time for time, code in zip(times, codes, strict=True) if code == key]
        steps = [b - a for a, b in itertools.pairwise(sorted(mine))]
        missing = [max(0, (step + period // 2) // period - 1) for step in steps]
        assert found.missing[number] == sum(missing)
        assert found.gaps[number] == sum(count > 0 for count in missing)
        assert found.filled[number] == sum(late > 0 for late in naive.lateness(mine))


@given(st.lists(st.integers(-(2**55), 2**55), min_size=1, max_size=30), st.integers(1, 300))
def test_places_are_inside_the_grid_and_rise_with_the_value(values: list[int], cells: int) -> None:
    ordered = np.sort(np.array(values, dtype=np.int64))
    found = place(ordered, (int(ordered[0]), int(ordered[-1])), cells)
    assert found[0] == 0
    assert found[-1] < cells
    assert bool(np.all(np.diff(found) >= 0))


@given(TIMES)
def test_a_profile_adds_up(times: list[int]) -> None:
    ts_us = np.array(times, dtype=np.int64) * 1_000_000
    source = pa.array([f"s{time % 3}" for time in times])
    found = profile_recorded(Recorded(ts_us, source=source))
    late = naive.lateness(ts_us.tolist())
    assert found.late == sum(value > 0 for value in late) == sum(part.late for part in found.per_source)
    assert found.events == len(times) == int(found.picture.count.sum())
    assert found.lateness["max"] == max(late, default=0)
    for point in found.completeness:
        kept = sum(value < point.wait_us for value in late)
        assert point.share == (kept / len(times) if times else 1.0)
    assert found.completeness[-1].share == 1.0


CELL = st.text(st.characters(codec="utf-8", exclude_characters='\r\n"', exclude_categories=["Cs", "Cc"]), max_size=6)


@given(
    st.lists(st.tuples(st.integers(-(10**9), 10**9), CELL, CELL), max_size=20), st.sampled_from([",", ";", "\t", "|"])
)
def test_lines_all_at_once_equal_lines_one_by_one(rows: list[tuple[int, str, str]], separator: str) -> None:
    form = TextFormat(("ts", "a", "b"), separator, header=False, time=0, unit="us")
    lines = [separator.join((str(ts), f'"{a}"', f'"{b}"')).encode() for ts, a, b in rows]
    together = parse_lines(lines, 5, form)
    spoiled = parse_lines([*lines, b'"never closed'], 5, form)  # one bad line sends all the others the slow way
    assert together.bad == []
    assert together.ts_us.tolist() == spoiled.ts_us.tolist() == [ts for ts, _, _ in rows]
    assert [column.to_pylist() for column in together.columns] == [column.to_pylist() for column in spoiled.columns]
    assert together.kinds == spoiled.kinds
    assert [bad.line for bad in spoiled.bad] == [5 + len(rows)]


@pytest.mark.parametrize("delay", [Uniform(0, 100), Uniform(100, 100)])
def test_uniform_delays_lie_in_their_range(delay: Delay) -> None:
    rows = Rows(np.arange(1_000), np.arange(1_000), None, 0, 999)
    found = delay.delays(rows, 1)
    assert found.min() >= delay.min_us
    assert found.max() < max(delay.max_us, delay.min_us + 1)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=40), st.data())
def test_rows_that_arrive_together_are_parted_by_their_numbers(arrivals: list[int], data: st.DataObject) -> None:
    arrival_us = np.sort(np.array(arrivals, dtype=np.int64))
    number = np.arange(len(arrivals))
    places = data.draw(st.lists(st.integers(0, len(arrivals) - 1), unique=True).map(sorted))
    bounds = Bounds(arrival_us[places], number[places])
    assert bounds.part_of(arrival_us, number).tolist() == [sum(b <= place for b in places) for place in number]


@given(st.lists(st.integers(1, 2**61), min_size=1, max_size=40))
def test_a_coarse_bin_holds_its_values_and_bins_rise(values: list[int]) -> None:
    late_us = np.sort(np.array(values, dtype=np.int64))
    bins = coarse_bin(late_us)
    assert bool(np.all(np.diff(bins) >= 0))
    for value, place_ in zip(late_us.tolist(), bins.tolist(), strict=True):
        low, high = bin_range(place_)
        assert low <= value < high
        assert high - low <= max(1, low >> 10)
