"""The logs of the Impatience paper: made block by block, with the disorder of its Tables I and II.

The figures at 20 million events are too slow for a test; their shares at a smaller size stand for them.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from latecomer.disorder.measures import Measures, lateness, measure
from latecomer.disorder.presets.logs import AndroidLog, CloudLog, Synthetic
from latecomer.disorder.presets.model import START_US, TIMESTAMP, Preset
from latecomer.errors import InputError
from latecomer.events import Int64s, int64_view

SECOND_US, HOUR_US, DAY_US = 1_000_000, 3_600_000_000, 86_400_000_000
PRESETS: list[Callable[..., Preset]] = [Synthetic, CloudLog, AndroidLog]
each_preset = pytest.mark.parametrize("preset", PRESETS)


def column(rows: pa.Table, name: str) -> Int64s:
    """A column as int64."""
    values = rows.column(name).combine_chunks()
    return int64_view(values if pa.types.is_timestamp(values.type) else values.cast(pa.int64()))


def completeness(ts_us: Int64s, wait_us: int) -> float:
    """The percentage of events that a wait keeps."""
    return 100.0 * float(np.mean(lateness(ts_us) < wait_us))


@each_preset
@pytest.mark.parametrize("events", [1, 2, 19, 1_000, 70_001])
def test_blocks_made_apart_are_one_block_cut(preset: Callable[..., Preset], events: int) -> None:
    log = preset(events, 3)
    cuts = sorted({min(cut, events) for cut in (0, 1, 17, 18, 3_333, 3_550, 48_001, events)})
    pieces = [log.block(start, stop) for start, stop in pairwise(cuts)]
    assert pa.concat_tables(pieces).combine_chunks().equals(log.block(0, log.rows))
    assert log.rows == events


@each_preset
def test_an_empty_block_has_the_columns(preset: Callable[..., Preset]) -> None:
    log = preset(1_000, 0)
    block = log.block(500, 500)
    assert block.num_rows == 0
    assert block.schema == log.schema


@each_preset
def test_rows_have_times_and_four_integers(preset: Callable[..., Preset]) -> None:
    rows = preset(2_000, 0).block(0, 2_000)
    assert rows.num_rows == 2_000
    assert rows.schema.names[:2] == ["ts", "arrival"]
    assert [field.type for field in rows.schema] == [TIMESTAMP] * 2 + [pa.int32()] * 4
    assert all(values.null_count == 0 for values in rows.columns)


@each_preset
def test_the_seed_alone_decides(preset: Callable[..., Preset]) -> None:
    assert preset(5_000, 1).table().equals(preset(5_000, 1).table())
    one, two = preset(5_000, 1).block(0, 5_000), preset(5_000, 2).block(0, 5_000)
    assert not one["ts"].equals(two["ts"])
    assert not one.column(5).equals(two.column(5))


@each_preset
@pytest.mark.parametrize("events", [1, 1_000, 300_000])
def test_nothing_arrives_before_its_time(preset: Callable[..., Preset], events: int) -> None:
    rows = preset(events, 5).block(0, events)
    assert np.all(column(rows, "arrival") >= column(rows, "ts"))


@each_preset
def test_the_table_is_the_block_sorted_stably_by_arrival(preset: Callable[..., Preset]) -> None:
    rows = preset(20_000, 4).block(0, 20_000)
    order = np.lexsort((np.arange(20_000), column(rows, "arrival")))
    assert preset(20_000, 4).table().equals(rows.take(pa.array(order)))


@pytest.mark.parametrize(("log", "source"), [(CloudLog(400_000, 1), "server"), (AndroidLog(400_000, 1), "phone")])
def test_a_sources_events_arrive_in_order(log: Preset, source: str) -> None:
    rows = log.table()
    by_source = np.argsort(column(rows, source), kind="stable")
    sources, ts = column(rows, source)[by_source], column(rows, "ts")[by_source]
    assert np.all((np.diff(ts) >= 0) | (np.diff(sources) > 0))


def test_synthetic_moves_a_share_of_the_events_back_by_a_half_normal() -> None:
    rows = Synthetic(500_000, 0, percent=30.0, amount=64.0).block(0, 500_000)
    arrival = column(rows, "arrival")
    assert np.array_equal(arrival, START_US + 1_000 * np.arange(500_000))
    steps = (arrival - column(rows, "ts")) / 1_000
    moved = steps[steps > 0]
    assert len(moved) / 500_000 == pytest.approx(0.30, abs=0.003)
    assert np.sqrt(np.mean(moved**2)) == pytest.approx(64.0, rel=0.01)
    assert np.mean(moved) == pytest.approx(64.0 * np.sqrt(2 / np.pi), rel=0.01)
    assert np.mean(moved < 64.0) == pytest.approx(0.6827, abs=0.005)


def test_synthetic_keys_are_spread_over_a_thousand() -> None:
    keys = column(Synthetic(200_000, 0).block(0, 200_000), "key")
    counts = np.bincount(keys, minlength=1_000)
    assert len(counts) == 1_000
    assert counts.min() > 120


def test_synthetic_with_nothing_moved_is_sorted() -> None:
    for log in (Synthetic(10_000, percent=0.0), Synthetic(10_000, amount=0.0)):
        assert measure(column(log.table(), "ts")) == Measures(0, 0, 1, 1)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_cloudlog_has_the_proportions_of_table_one(seed: int) -> None:
    events = 1_000_000
    found = measure(column(CloudLog(events, seed).table(), "ts"))
    assert found.runs / events == pytest.approx(7_382_495 / 20e6, rel=0.1)
    assert found.distance / events == pytest.approx(13_635_714 / 20e6, rel=0.1)
    assert 1 / 1.5 < found.inversions / events**2 / (53_541_688_892 / 20e6**2) < 1.5
    assert 40 < found.interleaved <= CloudLog(events, seed).servers + 1


@pytest.mark.parametrize(("events", "slack"), [(1_000, 2.0), (50_000, 1.0), (1_000_000, 0.5)])
def test_cloudlog_has_the_completeness_of_table_two(events: int, slack: float) -> None:
    ts = column(CloudLog(events, 0).table(), "ts")
    assert completeness(ts, SECOND_US) == pytest.approx(98.1, abs=slack)
    assert completeness(ts, HOUR_US) == 100.0


def test_cloudlog_becomes_less_frequent_at_a_point_of_time() -> None:
    ts = column(CloudLog(100_000, 0).block(0, 100_000), "ts")
    before, after = ts[79_999] - ts[0], ts[99_999] - ts[80_000]
    assert (after / 20_000) / (before / 80_000) == pytest.approx(4.0, rel=0.01)


def test_cloudlog_failures_do_not_overlap_and_end_in_the_log() -> None:
    for seed in range(20):
        log = CloudLog(1_000_000, seed)
        failures = log.failures()
        ends = [failure.stop + failure.pace * (failure.hit + 1) for failure in failures]
        assert all(end < later.start for end, later in zip(ends, failures[1:], strict=False))
        assert ends[-1] < log.events


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_androidlog_has_the_proportions_of_table_one(seed: int) -> None:
    events = 1_000_000
    log = AndroidLog(events, seed)
    found = measure(column(log.table(), "ts"))
    assert found.runs == pytest.approx(5_560 * np.sqrt(events / 20e6), rel=0.1)
    assert found.distance / events == pytest.approx(19_990_056 / 20e6, rel=0.1)
    assert 1 / 1.5 < found.inversions / events**2 / (73_004_914_227_284 / 20e6**2) < 1.5
    assert 0.8 * log.phones < found.interleaved <= log.phones


@pytest.mark.parametrize("events", [1_000, 50_000, 1_000_000])
def test_androidlog_has_the_completeness_of_table_two(events: int) -> None:
    ts = column(AndroidLog(events, 0).table(), "ts")
    assert completeness(ts, HOUR_US // 6) == pytest.approx(20.5, abs=2.0)
    assert completeness(ts, DAY_US) == pytest.approx(92.2, abs=2.0)


def test_androidlog_uploads_arrive_at_once_and_in_order() -> None:
    log = AndroidLog(300_000, 0)
    uploads = log.uploads()
    assert np.all(uploads.size > 0)
    assert uploads.size.sum() == log.events
    assert np.array_equal(uploads.first_row, np.cumsum(uploads.size) - uploads.size)
    assert np.all(np.diff(uploads.arrival_us) >= 0)
    row, size = int(uploads.first_row[40]), int(uploads.size[40])
    upload = log.block(row, row + size)
    assert len(np.unique(column(upload, "arrival"))) == 1
    assert len(np.unique(column(upload, "phone"))) == 1
    assert np.all(np.diff(column(upload, "ts")) >= 0)


@each_preset
def test_sizes_and_seeds_that_make_no_sense_are_refused(preset: Callable[..., Preset]) -> None:
    for events in (0, -5, 1.5, True):
        with pytest.raises(InputError, match="events must be a whole number of at least 1"):
            preset(events)
    with pytest.raises(InputError, match=r"seed must be a whole number; got 1\.5; e\.g\. 7"):
        preset(10, 1.5)
    below, above = preset(10, -1), preset(10, 1)
    assert below.table() == preset(10, -1).table() != above.table()


def test_shares_and_amounts_that_make_no_sense_are_refused() -> None:
    for percent in (-1.0, 100.5, float("nan")):
        with pytest.raises(InputError, match="percent must be from 0 to 100"):
            Synthetic(10, percent=percent)
    for amount in (-1.0, float("nan"), float("inf")):
        with pytest.raises(InputError, match="amount must be a number of steps, 0 or more"):
            Synthetic(10, amount=amount)
