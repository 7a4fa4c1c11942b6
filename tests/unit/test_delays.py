"""The distributions of delay: their shapes, and what each does to the devices it hits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from latecomer.disorder.config import check_config
from latecomer.disorder.delays import (
    Batched,
    Constant,
    Delay,
    Drift,
    Empirical,
    Exponential,
    HalfNormal,
    Outage,
    Pareto,
    Rows,
    Uniform,
    Zipf,
)
from latecomer.errors import InputError
from latecomer.events import Int64s

COUNT, LEAST, MOST = 200_000, 1_000, 1_001_000
DEVICES = 50


def rows() -> Rows:
    number = np.arange(COUNT)
    return Rows(number, number * 10_000, (number * 7919 % DEVICES).astype(np.uint64), 0, (COUNT - 1) * 10_000)


def share_below(found: Int64s, fraction: float) -> float:
    return float(np.mean(found < LEAST + fraction * (MOST - LEAST)))


SHAPES: list[tuple[Delay, dict[float, float]]] = [
    (Uniform(LEAST, MOST), {0.25: 0.25, 0.5: 0.5}),
    (HalfNormal(LEAST, MOST), {1 / 3: 0.6827 / 0.9973, 2 / 3: 0.9545 / 0.9973}),
    (Exponential(LEAST, MOST, mean=0.2), {0.2: (1 - np.exp(-1)) / (1 - np.exp(-5)), 0.6: 0.9502 / 0.9933}),
    (Pareto(LEAST, MOST, shape=1.5, scale=0.01), {0.01: (1 - 2**-1.5) / 0.99901, 0.1: (1 - 11**-1.5) / 0.99901}),
    (Zipf(LEAST, MOST, exponent=1.0, ranks=100), {0.0051: 1 / 5.18738, 0.0153: 1.5 / 5.18738}),
    (Constant(LEAST, MOST), {0.99: 0.0}),
    (Drift(LEAST, MOST), {0.25: 0.25, 0.5: 0.5}),
    (Empirical(LEAST, MOST, (0.0, 0.5, 1.0), (1_000, 201_000, 1_001_000)), {0.1: 0.25, 0.2: 0.5, 0.6: 0.75}),
]


@pytest.mark.parametrize(("delay", "shape"), SHAPES, ids=lambda value: type(value).__name__)
def test_a_distribution_has_its_shape_and_stays_in_its_range(delay: Delay, shape: dict[float, float]) -> None:
    found = delay.delays(rows(), seed=5)
    assert found.min() >= LEAST
    assert found.max() <= MOST
    for fraction, expected in shape.items():
        assert abs(share_below(found, fraction) - expected) < 0.005


def test_uploads_of_a_device_come_together_once_a_period() -> None:
    delay, all_rows = Batched(0, 60_000_000), rows()
    arrival = all_rows.ts_us + delay.delays(all_rows, seed=1)
    assert all_rows.device is not None
    for device in range(3):
        mine = all_rows.device == device
        uploads = np.unique(arrival[mine])
        assert np.unique(np.diff(uploads)).tolist() == [60_000_000]
        units = delay.units(all_rows)[mine]
        assert len(np.unique(units)) == len(uploads)  # a batch is chosen or not as one
    assert bool(np.all(arrival > all_rows.ts_us))


def test_a_device_keeps_its_order_through_an_outage_and_catches_up() -> None:
    delay, all_rows = Outage(10_000_000, 60_000_000, catch_up=5.0), rows()
    found = delay.delays(all_rows, seed=1)
    assert all_rows.device is not None
    assert found.max() <= 60_000_000
    for device in range(5):
        mine = all_rows.device == device
        arrival = all_rows.ts_us[mine] + found[mine]
        assert bool(np.all(np.diff(arrival) >= 0))
        assert np.diff(arrival).max() > 10_000_000  # silence
        assert np.any(found[mine] == 0)  # and back in time


@pytest.mark.parametrize("kind", [Drift, Batched, Outage])
def test_devices_are_hit_as_a_whole(kind: type[Delay]) -> None:
    delay, all_rows = kind(0, 60_000_000), rows()
    chosen = delay.chosen(all_rows, seed=3)
    units = delay.units(all_rows)
    for unit in np.unique(units)[:20]:
        assert len(np.unique(chosen[units == unit])) == 1


@pytest.mark.parametrize(
    ("experiment", "message"),
    [
        ({"factor": 101, "maxDelay": 1}, "experiments[0].factor must be less than or equal to 100; got 101"),
        ({"factor": -1, "maxDelay": 1}, "must be greater than or equal to 0; got -1"),
        ({"factor": "many", "maxDelay": 1}, "must be a valid"),
        ({"maxDelay": 1}, "experiments[0].factor must be given"),
        ({"factor": 5}, "maxDelay must be given"),
        ({"factor": 5, "maxDelay": 1, "minDelay": 2}, "maxDelay must not be below minDelay"),
        ({"factor": 5, "maxDelay": "2 parsecs"}, "experiments[0].maxDelay must use one of the units"),
        ({"factor": 5, "maxDelay": -3}, "experiments[0].maxDelay must be milliseconds, not negative"),
        (
            {"factor": 5, "maxDelay": 1, "distribution": "cauchy"},
            "experiments[0].distribution must be one of uniform, half-normal",
        ),
        ({"factor": 5, "maxDelay": 1, "speed": 3}, "experiments[0].speed must not be there: no such field; got 3"),
        ({"factor": 5, "maxDelay": 1, "shape": 3}, "experiments[0].shape must be a parameter of uniform"),
        ({"factor": 5, "maxDelay": 1, "distribution": "pareto", "shape": 0}, "shape must be a number above 0"),
        ({"factor": 5, "maxDelay": 1, "distribution": "zipf", "ranks": 1}, "ranks must be a number above 1"),
        ({"factor": 5, "distribution": "empirical"}, "experiments[0].profile must name a profile"),
        ({"factor": 5, "maxDelay": 0, "distribution": "batched"}, "maxDelay must be above minDelay"),
        ({"factor": 5, "maxDelay": 1, "name": "a/b"}, "experiments[0].name must be letters, digits"),
        ({"factor": 5, "maxDelay": 1, "name": ".."}, "experiments[0].name must be letters, digits"),
        ({"factor": 5, "maxDelay": 1, "name": "report.json"}, "and not report.json or quarantine.parquet"),
        ({"factor": 5, "maxDelay": 1, "delaySeed": 1.5}, "integer; got 1.5"),
    ],
)
def test_a_wrong_experiment_names_its_field(experiment: dict[str, Any], message: str) -> None:
    from pathlib import Path

    config = {"source": {"path": "x.csv", "time": {"field": "ts"}}, "experiments": [experiment]}
    with pytest.raises(InputError) as caught:
        check_config(config, "c.json").experiments[0].delay("experiments[0]", Path())
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            {"path": "x.csv", "time": {"field": "ts", "unit": "h"}},
            "source.time.unit must be 'ps', 'ns', 'us', 'ms', 's'",
        ),
        ({"path": "x.csv"}, "source.time must be given"),
        ({"time": {"field": "ts"}}, "source.path must be given"),
        ({"path": "x.csv", "time": {"field": "ts"}, "colour": 1}, "source.colour must not be there"),
        ({"path": "x.csv", "time": {"field": "ts"}, "badRows": "drop"}, "must be 'error' or 'quarantine'; got 'drop'"),
    ],
)
def test_a_wrong_source_names_its_field(source: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        check_config({"source": source, "experiments": [{"factor": 1, "maxDelay": 1}]}, "c.json")
    assert message in str(caught.value)


def test_delays_of_years_do_not_overflow() -> None:
    delay = Zipf(0, 365 * 86_400_000_000, ranks=1_000_000)
    found = delay.delays(rows(), seed=1)
    assert found.min() >= 0
    assert found.max() <= delay.max_us
