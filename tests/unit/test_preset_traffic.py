"""The Dublin application: two sources, a bus source that lags, and congestion to be found."""

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from latecomer.disorder.chance import Floats, draws
from latecomer.disorder.presets.model import START_US
from latecomer.disorder.presets.traffic import HEAVY_FLOW, PHASES, Traffic, bus_arrivals_us, zipf_delays_us
from latecomer.errors import InputError
from latecomer.events import int64_view

CYCLE_US = 70_000_000


def slow_arrivals_us(preset: Traffic, count: int) -> list[int]:
    """The recursion as the paper's rules say it, report by report."""
    chances = draws(preset.seed, "traffic/delay", np.arange(count))
    heavy, light = (zipf_delays_us(chances, phase).tolist() for phase in PHASES)
    arrivals, before = [], START_US
    for i in range(count):
        is_heavy = (before - START_US) % CYCLE_US < 20_000_000
        delay = 3_000 if preset.policy == "constant" else heavy[i] if is_heavy else light[i]
        before = max(START_US + i * 2_000, before + delay)
        arrivals.append(before)
    return arrivals


def lag_of(preset: Traffic) -> tuple[Floats, Floats]:
    """Wall time and lag of each bus report, in seconds."""
    count = preset.rows // 2
    arrivals_us = bus_arrivals_us(preset, count)
    return (arrivals_us - START_US) / 1e6, (arrivals_us - START_US - np.arange(count) * 2_000) / 1e6


@pytest.mark.parametrize("policy", ["zipf", "constant"])
def test_the_closed_form_equals_the_recursion(policy: Any) -> None:
    preset = Traffic(policy=policy, seed=3)
    count = preset.rows // 2
    assert bus_arrivals_us(preset, count).tolist() == slow_arrivals_us(preset, count)


@pytest.mark.parametrize("count", [0, 1, 5_000, 12_345])
def test_a_prefix_of_arrivals_does_not_depend_on_what_follows(count: int) -> None:
    assert np.array_equal(bus_arrivals_us(Traffic(), count), bus_arrivals_us(Traffic(), 40_000)[:count])


@pytest.mark.parametrize("seed", range(4))
def test_the_zipf_lag_reaches_8_seconds_and_is_gone_by_45(seed: int) -> None:
    wall, lag = lag_of(Traffic(seed=seed))
    assert lag.min() == 0
    for cycle in range(3):
        within = (wall >= 70 * cycle) & (wall < 70 * (cycle + 1))
        second, held = wall[within] - 70 * cycle, lag[within]
        assert 7.7 < held.max() < 8.8
        assert second[held.argmax()] == pytest.approx(20, abs=0.1)
        assert held[second >= 45].max() == 0


def test_the_constant_lag_passes_35_seconds_at_105() -> None:
    wall, lag = lag_of(Traffic(policy="constant"))
    assert wall[np.argmax(lag > 35)] == pytest.approx(105, abs=0.1)
    assert np.all(np.diff(lag) >= 0)


def test_zipf_delays_follow_the_law() -> None:
    heavy, light = (zipf_delays_us(draws(0, "x", np.arange(100_000)), phase) for phase in PHASES)
    assert set(np.unique(heavy)) == set(range(1_000, 11_000, 1_000))
    assert set(np.unique(light)) == {1_000, 2_000}
    assert heavy.mean() == pytest.approx(10_000 / sum(1 / k for k in range(1, 11)), rel=0.01)
    assert light.mean() == pytest.approx(1_440, rel=0.01)


@pytest.mark.parametrize("policy", ["zipf", "constant"])
def test_blocks_made_apart_equal_one_block(policy: Any) -> None:
    preset = Traffic(seconds=30, seed=1, policy=policy)
    cuts = [0, 1, 2, 3, 777, 20_000, preset.rows - 1, preset.rows]
    blocks = [preset.block(start, stop) for start, stop in pairwise(cuts)]
    assert pa.concat_tables(blocks).combine_chunks().equals(preset.block(0, preset.rows).combine_chunks())


def test_the_seed_decides_the_content() -> None:
    assert Traffic(seconds=5).table().equals(Traffic(seconds=5).table())
    assert not Traffic(seconds=5).table().equals(Traffic(seconds=5, seed=1).table())


def test_both_sources_emit_500_reports_a_second_without_equal_stamps() -> None:
    table = Traffic(seconds=10).block(0, 10_000)
    ts_us = int64_view(table["ts"].combine_chunks())
    bus = np.array(table["source"].to_pylist()) == "bus"
    assert np.all(np.diff(ts_us) == 1_000)
    assert bus.sum() == 5_000
    assert table.schema.equals(Traffic().schema)
    assert len(np.unique(table["device"].to_numpy()[bus])) == 911
    assert len(np.unique(table["device"].to_numpy()[~bus])) == 3_504


def test_only_the_bus_source_lags() -> None:
    table = Traffic(seconds=60).block(0, 60_000)
    ts_us, arrival_us = (int64_view(table[name].combine_chunks()) for name in ("ts", "arrival"))
    bus = np.array(table["source"].to_pylist()) == "bus"
    assert np.array_equal(ts_us[~bus], arrival_us[~bus])
    assert np.all(arrival_us >= ts_us)
    assert np.all(np.diff(arrival_us[bus]) > 0)


def test_congestion_and_heavy_flow_meet_in_some_areas() -> None:
    reports = Traffic(seconds=60).table().to_pandas()
    buses = reports[(reports.source == "bus") & reports.congestion]
    sensors = reports[(reports.source == "scats") & (reports.flow > HEAVY_FLOW)]
    pairs = buses.merge(sensors, on="area")
    near = (pairs.ts_x - pairs.ts_y).abs().dt.total_seconds() <= 5
    assert 500 < near.sum() < 20_000
    assert not reports[reports.source == "scats"].congestion.any()
    assert (reports[reports.source == "bus"].flow == 0).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"seconds": 0}, "seconds must be a whole number of at least 1"),
        ({"seed": 0.5}, "seed must be a whole number"),
        ({"policy": "poisson"}, "policy must be 'zipf' or 'constant'; got 'poisson'"),
        ({"rate": 300}, "rate must divide 500,000"),
        ({"areas": 0}, "areas must be a whole number of at least 1"),
    ],
)
def test_wrong_settings_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Traffic(**settings)
