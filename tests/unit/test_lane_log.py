"""Which run's files are a lane's rows, without Spark: records on a disk of this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from latecomer.errors import StateError
from latecomer.spark.lane_log import LaneLog, Written, new_run, standing

NO_SPARK: Any = None


def test_the_latest_run_counts_and_what_a_later_one_does_not_know_is_void() -> None:
    written = [Written(batch, "run-000001-a") for batch in range(6)]
    assert set(standing(written, {"run-000001-a": -1}).values()) == {"run-000001-a"}
    again = [*written, Written(3, "run-000002-b")]
    assert standing(again, {"run-000002-b": 3}) == {**dict.fromkeys(range(3), "run-000001-a"), 3: "run-000002-b"}
    late = [*again, Written(3, "run-000001-a")]  # a driver that was taken for dead
    assert standing(late, {"run-000002-b": 3}) == standing(again, {"run-000002-b": 3})
    third = [*again, Written(4, "run-000003-c")]
    assert standing(third, {"run-000002-b": 3, "run-000003-c": 3})[4] == "run-000003-c"


def test_runs_are_numbered_and_only_the_last_one_may_write(tmp_path: Path) -> None:
    log = LaneLog.at(f"file://{tmp_path}/lane")
    runs = [log.claim(NO_SPARK, "me", "{}", "parquet") for _ in range(11)]
    names = [run for run, _ in runs]
    assert names == sorted(names)
    assert {folder for _, folder in runs} == {f"file://{tmp_path}/lane"}
    assert list(log.runs(NO_SPARK)) == names
    log.check_latest(NO_SPARK, names[-1])
    with pytest.raises(StateError, match=rf"must be the last one that was started there; got '{names[-1]}'"):
        log.check_latest(NO_SPARK, names[-2])
    assert new_run(names) > names[-1]


def test_batches_are_found_by_their_records(tmp_path: Path) -> None:
    log = LaneLog.at(f"file://{tmp_path}/lane")
    run, _ = log.claim(NO_SPARK, "me", "{}", "parquet")
    log.keep(NO_SPARK, run, -1)
    for batch in (0, 7, 1_000, 2_345):
        log.add(NO_SPARK, batch, run)
    assert sorted(log.written(NO_SPARK)) == [(batch, run) for batch in (0, 7, 1_000, 2_345)]
    assert log.kept(NO_SPARK) == {run: -1}


@pytest.mark.parametrize("damage", ["{", "[]", '{"run": "run-000001-a"}'])
def test_records_that_are_damaged_are_refused_with_a_sentence(tmp_path: Path, damage: str) -> None:
    log = LaneLog.at(f"file://{tmp_path}/lane")
    (tmp_path / "lane/_latecomer/runs").mkdir(parents=True)
    (tmp_path / "lane/_latecomer/runs/run-000001-a.json").write_text(damage)
    with pytest.raises(StateError, match=r"records in .* must be what latecomer wrote; got"):
        log.runs(NO_SPARK)
