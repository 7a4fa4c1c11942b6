"""What a profile says of holes: a column that counts, a period with its jitter, or anywhere."""

from __future__ import annotations

import json
from html import unescape
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest

import latecomer as lc
from latecomer.disorder.hole_choice import choose_holes
from latecomer.disorder.profile import HoleChoice
from latecomer.events import Int64s
from latecomer.report.advice import advice
from latecomer.report.html import write_html

S = 1_000_000
Stream = tuple[Int64s, Int64s]


def readings(every_us: int, jitter_us: int = 0, seed: int = 1) -> Stream:
    """Twenty keys, each at times of its own, a tenth of the readings missing: times and codes of keys, in any order."""
    chance = np.random.default_rng(seed)
    codes, turn = (each.ravel() for each in np.meshgrid(np.arange(20), np.arange(100), indexing="ij"))
    ts_us = turn * every_us + codes * (every_us // 30) + chance.integers(-jitter_us, jitter_us + 1, len(turn))
    chosen = chance.permutation(np.flatnonzero(chance.random(len(turn)) > 0.1))
    return ts_us[chosen], codes[chosen]


@pytest.mark.parametrize("every", [S // 10, 7 * S, 3_600 * S, 86_400 * S])
def test_a_period_is_found_where_readings_are_missing(every: int) -> None:
    assert choose_holes(*readings(every), {}) == HoleChoice(every_us=every)


@pytest.mark.parametrize("jitter", [0, 50, 20])
@pytest.mark.parametrize("every", [59 * S, 58_900_000, 295 * S, 3_540 * S])
def test_a_period_is_not_made_rounder_than_the_readings_say(every: int, jitter: int) -> None:
    found = choose_holes(*readings(every, every // jitter if jitter else 0), {})
    assert found is not None
    assert found.every_us is not None
    assert abs(found.every_us - every) <= (every // 1_000 if jitter else 0)


@pytest.mark.parametrize("jitter_us", [60 * S, 200 * S, 600 * S])
def test_the_tolerance_is_a_round_time_that_covers_the_jitter(jitter_us: int) -> None:
    found = choose_holes(*readings(3_600 * S, jitter_us), {})
    assert found is not None
    assert found.every_us == 3_600 * S
    assert 0.8 * jitter_us <= found.tolerance_us <= 3 * jitter_us
    assert lc.Period(f"{found.every_us} us", f"{found.tolerance_us} us").tolerance_us == found.tolerance_us


def test_irregular_events_may_be_missing_anywhere() -> None:
    chance = np.random.default_rng(1)
    assert choose_holes(chance.integers(0, 10**12, 5_000), chance.integers(0, 20, 5_000), {}) == HoleChoice()


def test_a_column_that_counts_is_better_than_a_period() -> None:
    ts_us, codes = readings(3_600 * S)
    found = choose_holes(ts_us, codes, {"noise": ts_us % 7, "constant": codes * 0, "n": ts_us // (3_600 * S)})
    assert found == HoleChoice(enumerator="n")


def test_too_few_events_tell_nothing() -> None:
    assert choose_holes(np.arange(10), np.zeros(10, dtype=np.int64), {}) is None


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_profile_of_files_shows_what_to_paste(kind: str, tmp_path: Path) -> None:
    ts_us, codes = readings(3_600 * S)
    columns = {"ts": ts_us, "meter": [f"m{code}" for code in codes], "value": codes % 3}
    for name, numbers in (("plain", {}), ("numbered", {"n": ts_us // (3_600 * S)})):
        table, path = pa.table({**columns, **numbers}), tmp_path / f"{name}.{kind}"
        pq.write_table(table, path) if kind == "parquet" else pc.write_csv(table, path)
    plain = lc.profile(tmp_path / f"plain.{kind}", time="ts", key="meter")
    numbered = lc.profile(tmp_path / f"numbered.{kind}", time="ts", key="meter")
    assert any(".timetravel('" in each and "every='1 hour')" in each for each in advice(plain))
    assert numbered.hole_choice == HoleChoice(enumerator="n")
    plain.write(tmp_path / "profile.json")
    assert json.loads((tmp_path / "profile.json").read_text())["hole_choice"]["every_us"] == 3_600 * S
    write_html(plain, tmp_path / "profile.html")
    assert "every='1 hour')" in unescape((tmp_path / "profile.html").read_text()).replace("\xa0", " ")
    assert lc.profile(tmp_path / f"plain.{kind}", time="ts").hole_choice is None


def test_a_period_that_is_not_round_is_written_to_the_microsecond() -> None:
    assert HoleChoice(every_us=90_500_000).code == "every='90500 ms'"
