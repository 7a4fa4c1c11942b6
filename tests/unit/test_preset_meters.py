"""The smart meters: rates of the TinTiN paper, late batches, registers and their faults."""

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest

from latecomer.disorder.measures import lateness
from latecomer.disorder.presets.meters import FIRST_US, HOUR_US, TRANSPORT_US, Meters
from latecomer.errors import InputError
from latecomer.events import Bools, Int64s, int64_view

SMALL = Meters(meters=37, days=12, seed=5, faults=1.0)
# Table 2 of the paper, 50k meters
TUPLES, LATE, HOLES, CONTEXTS = 56.9e6, 435e3, 2.03e6, 4.41e6
PAPER_METERS, PAPER_HOURS = 50_000, 55 * 24


class Stream(NamedTuple):
    """What came, in the order of arrival."""

    ts_us: Int64s
    arrival_us: Int64s
    hour: Int64s
    meter: Int64s
    late_us: Int64s


class Differences(NamedTuple):
    """Use between readings of successive hours, sorted by meter and hour."""

    meter: Int64s
    hour: Int64s
    use: Int64s
    fuse: Int64s


def column(table: pa.Table, name: str) -> Int64s:
    return np.asarray(int64_view(table[name].combine_chunks().cast(pa.int64())))


def stream_of(preset: Meters) -> Stream:
    table = preset.table()
    ts_us = column(table, "ts")
    hour = (ts_us - FIRST_US) // HOUR_US
    return Stream(ts_us, column(table, "arrival"), hour, column(table, "meter"), lateness(ts_us))


def differences_of(preset: Meters) -> Differences:
    table = preset.block(0, preset.rows)
    hour, meter = (column(table, "ts") - FIRST_US) // HOUR_US, column(table, "meter")
    order = np.lexsort((hour, meter))
    hour, meter = hour[order], meter[order]
    use, fuse = np.diff(column(table, "reading")[order]), column(table, "fuse")[order]
    near = (np.diff(meter) == 0) & (np.diff(hour) == 1)
    return Differences(meter[1:][near], hour[1:][near], use[near], fuse[1:][near])


@pytest.fixture(scope="module", params=[0, 1])
def stream(request: pytest.FixtureRequest) -> Stream:
    return stream_of(Meters(seed=request.param))


@pytest.mark.parametrize("preset", [SMALL, Meters(meters=1, days=3), Meters(meters=900, days=1, seed=2)])
def test_blocks_made_apart_equal_one_block(preset: Meters) -> None:
    cuts = [0, 1, 2, 36, 38, 41, preset.rows // 3, preset.rows - 1, preset.rows]
    cuts = sorted(min(cut, preset.rows) for cut in cuts)
    blocks = [preset.block(start, stop) for start, stop in pairwise(cuts)]
    assert pa.concat_tables(blocks).combine_chunks().equals(preset.block(0, preset.rows).combine_chunks())


def test_an_empty_block_has_the_schema() -> None:
    block = SMALL.block(5, 5)
    assert block.num_rows == 0
    assert block.schema.equals(SMALL.schema)


def test_the_seed_decides_the_content() -> None:
    assert SMALL.table().equals(Meters(meters=37, days=12, seed=5, faults=1.0).table())
    assert not SMALL.table().equals(Meters(meters=37, days=12, seed=6, faults=1.0).table())


def test_a_block_far_into_a_large_stream_is_made_by_itself() -> None:
    preset = Meters(meters=50_000)
    start = preset.rows - 100_001
    block = preset.block(start, start + 70_000)
    assert 0.8 < block.num_rows / 70_000 < 0.9
    assert block["ts"][0].value >= FIRST_US + start // 50_000 * HOUR_US


def test_the_share_of_missing_readings_is_the_papers(stream: Stream) -> None:
    expected = TUPLES / (PAPER_METERS * PAPER_HOURS)
    assert len(stream.ts_us) / Meters().rows == pytest.approx(expected, abs=0.005)


def test_the_share_of_missing_readings_is_the_same_all_the_time(stream: Stream) -> None:
    came = np.bincount(stream.hour // 24, minlength=55) / 24_000
    assert np.all(np.abs(came - came.mean()) < 0.03)


def test_the_share_of_late_readings_is_the_papers(stream: Stream) -> None:
    assert np.mean(stream.late_us > 0) == pytest.approx(LATE / TUPLES, abs=0.0005)


def on_time_jumps(stream: Stream) -> tuple[Int64s, Int64s, Bools]:
    """Hours and meters of on-time readings, by meter, and which of them follow a hole."""
    on_time = stream.late_us == 0
    hour, meter = stream.hour[on_time], stream.meter[on_time]
    order = np.argsort(meter, kind="stable")
    hour, meter = hour[order], meter[order]
    return hour, meter, np.append(False, (np.diff(meter) == 0) & (np.diff(hour) > 1))


def test_holes_and_contexts_are_in_the_papers_proportion_to_meters(stream: Stream) -> None:
    hour, meter, jump = on_time_jumps(stream)
    latest = np.maximum.accumulate(np.where(jump, np.arange(len(jump)), -1))
    context = (latest >= 0) & (meter[latest] == meter) & (hour - hour[latest] < 26)
    assert np.sum(jump) / 1_000 == pytest.approx(HOLES / PAPER_METERS, rel=0.05)
    assert np.sum(context) / 1_000 == pytest.approx(CONTEXTS / PAPER_METERS, rel=0.05)


def test_few_meters_have_most_of_the_missing_readings(stream: Stream) -> None:
    missing = np.sort(PAPER_HOURS - np.bincount(stream.meter, minlength=1_000))[::-1]
    assert missing[:100].sum() / missing.sum() == pytest.approx(0.55, abs=0.03)
    assert missing[:200].sum() / missing.sum() == pytest.approx(0.95, abs=0.03)
    assert np.mean(missing == 0) == pytest.approx(0.78, abs=0.02)


def test_no_two_rows_share_a_stamp(stream: Stream) -> None:
    assert len(np.unique(stream.ts_us)) == len(stream.ts_us)


def test_readings_that_are_not_held_up_are_not_late(stream: Stream) -> None:
    prompt = stream.arrival_us - stream.ts_us == TRANSPORT_US
    assert np.all(stream.late_us[prompt] == 0)
    assert np.all(stream.late_us[~prompt] > 0)


def test_lateness_is_mostly_hours_and_within_40_days(stream: Stream) -> None:
    hours = stream.late_us[stream.late_us > 0] / HOUR_US
    assert 4 < np.median(hours) < 12
    assert np.mean(hours < 72) == pytest.approx(0.95, abs=0.02)


def test_no_outage_of_a_large_run_passes_40_days() -> None:
    stream = stream_of(Meters(meters=60, days=365, late=0.05, seed=1))
    assert stream.late_us.max() <= 40 * 24 * HOUR_US
    assert np.mean(stream.late_us > 0) == pytest.approx(0.05, abs=0.005)


def test_late_readings_come_in_batches_in_order(stream: Stream) -> None:
    held = stream.late_us > 0
    order = np.argsort(stream.meter[held], kind="stable")  # keeps the order of arrival within a meter
    meter, ts_us, arrival_us = stream.meter[held][order], stream.ts_us[held][order], stream.arrival_us[held][order]
    same = np.diff(meter) == 0
    together = same & (np.diff(arrival_us) < 1_000_000)
    assert np.all(np.diff(ts_us)[same] > 0)
    batches = len(meter) - int(together.sum())
    assert 5 < len(meter) / batches < 12


def test_most_batches_fill_a_hole_that_an_on_time_reading_has_shown(stream: Stream) -> None:
    order = np.argsort(stream.meter, kind="stable")  # keeps the order of arrival within a meter
    meter, ts_us, held = stream.meter[order], stream.ts_us[order], stream.late_us[order] > 0
    same = np.diff(meter) == 0
    first = held[1:] & same & ~held[:-1]  # the first reading of a batch, after an on-time one
    back = np.diff(ts_us)[first] < 0
    assert 0.5 < back.mean() < 0.8  # a quarter comes before it, and a patchy meter may lose it
    assert np.all(np.diff(ts_us)[same & ~held[1:] & ~held[:-1]] > 0)


def test_without_faults_use_stays_between_zero_and_the_fuse() -> None:
    found = differences_of(Meters(meters=200, faults=0.0))
    assert found.use.min() >= 0
    assert np.all(found.use < found.fuse)
    assert np.all(found.use < found.fuse * 0.5)


def test_faults_show_as_alerts() -> None:
    found = differences_of(Meters(meters=1_000))
    large, negative = found.use > found.fuse, found.use < 0
    assert 20 < large.sum() < 90
    assert 8 < negative.sum() < 30


def test_the_pattern_of_large_values_and_a_negative_one_within_a_day_is_there() -> None:
    found = differences_of(Meters(meters=1_000))
    at = found.meter * 100_000 + found.hour
    large, negative = at[found.use > found.fuse], at[found.use < 0]
    after = negative[:, None] - large[None, :]
    matched = ((after > 0) & (after < 24)).any(axis=1)
    assert 3 <= matched.sum() < len(negative)


def test_some_alerts_depend_on_late_readings() -> None:
    preset = Meters(meters=1_000)
    stream, found = stream_of(preset), differences_of(preset)
    late = set((stream.meter * 100_000 + stream.hour)[stream.late_us > 0].tolist())
    alert = (found.meter * 100_000 + found.hour)[(found.use > found.fuse) | (found.use < 0)].tolist()
    assert 1 <= sum(at in late or at - 1 in late for at in alert) < len(alert) / 3


def test_one_meter_is_never_late() -> None:
    stream = stream_of(Meters(meters=1))
    assert stream.late_us.max() == 0
    assert len(stream.ts_us) == PAPER_HOURS


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"meters": 0}, "meters must be a whole number of at least 1; got 0"),
        ({"days": -1}, "days must be a whole number"),
        ({"seed": True}, "seed must be a whole number"),
        ({"missing": 0.7}, "missing must be between 0 and 0.6; got 0.7"),
        ({"late": -0.1}, "late must be between 0 and 0.05"),
        ({"late": float("nan")}, "late must be between 0 and 0.05"),
        ({"faults": 6}, "faults must be between 0 and 5.0"),
    ],
)
def test_wrong_settings_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Meters(**settings)
