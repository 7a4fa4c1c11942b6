"""Streams that are made as late as a profile says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from latecomer.disorder.like_profile import every_of_profile, like_profile
from latecomer.disorder.measures import lateness
from latecomer.errors import InputError
from latecomer.events import int64_view
from tests.command import run

KNOWN: dict[str, Any] = {
    "events": 4_000,
    "keys": 5,
    "late": 400,
    "lateness": {"p50": 20_000_000, "p90": 100_000_000, "max": 300_000_000},
    "completeness": [{"wait_us": 1, "share": 0.9}, {"wait_us": 60_000_000, "share": 0.98}],
    "first_ts_us": 1_760_000_000_000_000,
    "last_ts_us": 1_760_004_000_000_000,
    "hole_choice": {"every_us": 5_000_000},
}


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    path = tmp_path / "profile.json"
    path.write_text(json.dumps(KNOWN))
    return path


def test_as_many_events_are_late_and_as_late(profile: Path) -> None:
    table = like_profile(profile)
    late_us = lateness(int64_view(table["ts"].combine_chunks()))
    assert table.num_rows == 4_000
    assert table["key"].combine_chunks().unique().to_pylist() == [0, 1, 2, 3, 4]
    assert abs(int(np.count_nonzero(late_us)) - 400) <= 10
    late_us = late_us[late_us > 0]
    assert np.median(late_us) == pytest.approx(20_000_000, rel=0.3)
    assert late_us.max() <= 300_000_000
    assert like_profile(profile).equals(table)
    assert not like_profile(profile, seed=1).equals(table)


def test_a_profile_knows_how_often_keys_report(profile: Path) -> None:
    assert every_of_profile(profile) == "5 seconds"


@pytest.mark.parametrize("changed", [{"events": 0}, {"events": 10**9}])
def test_a_profile_of_too_many_or_no_events_is_refused(profile: Path, changed: dict[str, int]) -> None:
    profile.write_text(json.dumps(KNOWN | changed))
    with pytest.raises(InputError, match="profile must be of at most 5,000,000 events"):
        like_profile(profile)


def test_what_is_no_profile_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("[1]")
    with pytest.raises(InputError, match="profile must be a file of latecomer profile --json"):
        like_profile(tmp_path / "x.json")


def test_advice_is_given_on_a_profile(profile: Path) -> None:
    answer = run("advise", "--profile", str(profile), "--window", "1 minute", "--batches", "4", "--append-only")
    assert answer.returncode == 0, answer.stderr
    assert "key='key', arrival='arrival'" in answer.stdout
    twice = run("advise", "x.parquet", "--profile", str(profile))
    assert "advise must be given a PATH, a --preset or a --profile" in " ".join(twice.stderr.split())
