"""What a profile predicts is what a query then does: ticks, events ahead of their arrival, exact waits, cut times."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import latecomer as lc
from latecomer.disorder.profile import Clock, Profile
from latecomer.disorder.profiler import Recorded, profile_recorded
from latecomer.durations import duration_us
from latecomer.events import TICK, EventBatch, Int64s, Layout
from latecomer.outputs import Lane
from latecomer.report.advice import advice, ahead_rows
from latecomer.report.facts import counts
from latecomer.report.words import setting
from latecomer.runner import Runner

START = 1_709_251_200_000_000
MS, SECOND, DAY = 1_000, 1_000_000, 86_400_000_000


def made(seed: int, count: int = 4_000) -> tuple[Int64s, Int64s]:
    """Event times and arrivals a few milliseconds apart, a third delayed by up to a second, some ahead by hours."""
    rng = np.random.default_rng(seed)
    arrival_us = START + np.cumsum(rng.integers(0, 12 * MS, count))
    delay_us = np.where(rng.random(count) < 0.3, rng.integers(0, SECOND, count), rng.integers(0, 3 * MS, count))
    ts_us = arrival_us - delay_us
    ts_us[rng.choice(count, 3, replace=False)] += 5 * 3_600 * SECOND
    return ts_us, arrival_us


def lost(profile: Profile, share: float) -> int:
    return round((1 - share) * profile.events)


@pytest.mark.parametrize("tick_us", [100 * MS, 10 * MS, 1])
@pytest.mark.parametrize("seed", [0, 1])
def test_a_wait_loses_in_the_query_what_the_profile_predicts(seed: int, tick_us: int) -> None:
    ts_us, arrival_us = made(seed)
    aside = ts_us - 60 * SECOND > arrival_us
    profile = profile_recorded(Recorded(ts_us, arrival_us), clock=Clock(tick_us, 60 * SECOND))
    kept_ts_us, kept_arrival_us = ts_us[~aside], arrival_us[~aside]
    assert profile.ahead is not None
    assert (profile.ahead.set_aside, profile.events) == (3, len(kept_ts_us))
    points = [point for point in [*profile.completeness, *profile.needed] if point.wait_us >= tick_us]
    assert len(points) > 3
    for point in points:
        assert _refused(kept_ts_us, kept_arrival_us, tick_us, point.wait_us) == lost(profile, point.share)


def _refused(ts_us: Int64s, arrival_us: Int64s, tick_us: int, latency_us: int) -> int:
    runner = Runner(lc.Reorder(f"{latency_us} us"), Layout("ts"))
    columns = {"ts": ts_us, "id": np.arange(len(ts_us)), TICK: arrival_us // tick_us}
    pushed = runner.push(EventBatch(pa.RecordBatch.from_pydict(columns), runner.layout))
    return sum(output.rows.num_rows for output in pushed.outputs if output.lane is Lane.LATE)


def test_the_waits_that_are_told_are_the_shortest_that_keep_so_much() -> None:
    rng = np.random.default_rng(3)
    ts_us = (
        START + np.arange(2_000) * SECOND - np.where(rng.random(2_000) < 0.2, rng.integers(0, 900 * SECOND, 2_000), 0)
    )
    profile = profile_recorded(Recorded(ts_us))
    late_us = np.maximum.accumulate(ts_us) - ts_us
    assert [point.share >= target for point, target in zip(profile.needed[-3:], (0.99, 0.999, 1.0), strict=True)] == [
        True
    ] * 3
    for point in profile.needed:
        assert point.share == np.mean(late_us < point.wait_us)
        assert np.mean(late_us < point.wait_us - 1) < point.share


def test_a_wait_far_beyond_the_grid_is_exact() -> None:
    ts_us = np.concatenate([[START + 400 * DAY], START + 180 * DAY + np.arange(100)])
    profile = profile_recorded(Recorded(ts_us))
    assert [point.wait_us for point in profile.needed][-1] == 220 * DAY + 1
    assert "latency='220 days'" in " ".join(advice(profile))


def test_every_row_may_come_by_itself(tmp_path: Path) -> None:
    ts_us, arrival_us = made(5)
    table = pa.table({"ts": ts_us, "arrival": arrival_us})
    pq.write_table(table, tmp_path / "in.parquet")

    def late(**more: Any) -> int:
        return lc.profile(tmp_path / "in.parquet", time="ts", arrival="arrival", **more).late

    alone = int(np.count_nonzero(np.maximum.accumulate(ts_us) - ts_us))
    assert late(tick="0 s") == alone == late(tick="0 s", max_ahead="6 hours")
    assert late() == late(tick="100 ms") < late(tick="1 ms") <= alone
    with pytest.raises(lc.InputError, match="tick= must come with arrival="):
        lc.profile(tmp_path / "in.parquet", time="ts", tick="1 s")
    with pytest.raises(lc.InputError, match="max_ahead= must come with arrival="):
        lc.profile(tmp_path / "in.parquet", time="ts", max_ahead="1 s")


def test_events_ahead_of_their_arrival_are_found_and_a_limit_is_advised() -> None:
    ts_us, arrival_us = made(7)
    profile = profile_recorded(Recorded(ts_us, arrival_us), clock=Clock(100 * MS))
    assert profile.ahead is not None
    assert (profile.ahead.events, profile.ahead.set_aside, profile.ahead.advised_aside) == (3, 0, 3)
    assert profile.late > 1_000
    text = " ".join(advice(profile))
    assert "max_ahead='1 ms' sets 3 events aside" in text
    assert ahead_rows(profile) == [("ahead", "3", "events are ahead of their arrival, by up to 5 h")]
    again = profile_recorded(Recorded(ts_us, arrival_us), clock=Clock(100 * MS, 1 * MS))
    assert ahead_rows(again)[1] == ("set aside", "3", "more are further ahead than 1 ms, and not measured")
    assert "tick='100 ms', max_ahead='1 ms', latency=" in " ".join(advice(again))
    assert again.late < 1_200


@pytest.mark.parametrize("wait", [1, 999, 1_001, 90 * SECOND, 98 * DAY + 1, 220 * DAY, 19_008_000_000_001])
def test_a_setting_is_read_back_as_no_less(wait: int) -> None:
    assert wait <= duration_us(setting(wait), "latency") <= wait * 1.02


@pytest.mark.parametrize("unit", ["ns", "ps", "us", "iso", "stamps"])
def test_what_is_finer_than_a_microsecond_is_said_to_be_cut(unit: str, tmp_path: Path) -> None:
    values: dict[str, list[Any]] = {
        "ns": [1_900, 1_800, 3_000],
        "ps": [1_900_000, 1_800_000, 3_000_000],
        "us": ["1.9", "1.8", "3"],
    }
    stamps = ["1970-01-01T00:00:00.000001900", "1970-01-01T00:00:00.000001800", "1970-01-01T00:00:00.000003"]
    if unit == "stamps":
        pq.write_table(pa.table({"ts": pa.array([1_900, 1_800, 3_000], pa.timestamp("ns"))}), tmp_path / "in.parquet")
        profile = lc.profile(tmp_path / "in.parquet", time="ts")
    else:
        rows = stamps if unit == "iso" else values[unit]
        (tmp_path / "in.csv").write_text("ts\n" + "\n".join(map(str, rows)) + "\n")
        profile = lc.profile(tmp_path / "in.csv", time="ts", unit=unit)
    assert (profile.cut, profile.late) == (2, 0)
    assert counts(profile) == ["3 events", "2 times cut to microseconds"]
    assert profile.to_dict()["cut"] == 2
