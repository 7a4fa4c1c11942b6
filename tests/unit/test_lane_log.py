"""Which run's files are a lane's rows, without Spark: records on a disk of this machine."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from latecomer.errors import InputError, StateError
from latecomer.spark.lane_files import FileLane, take_over
from latecomer.spark.lane_log import Claim, LaneLog, Written, new_run, standing

NO_SPARK: Any = None
COLUMNS = '{"fields": [{"metadata": {}, "name": "id", "nullable": true, "type": "long"}], "type": "struct"}'
MINE = Claim("me", "results", COLUMNS, "parquet")


def begun(log: LaneLog, claim: Claim = MINE) -> str:
    """A run that has taken the folder."""
    run, _ = log.announce(NO_SPARK, claim)
    log.begin(NO_SPARK, run)
    return run


def fill(log: LaneLog, claim: Claim) -> None:
    """A batch that is written as a whole."""
    log.add(NO_SPARK, 0, begun(log, claim))


def put_file(folder: Path) -> None:
    (folder / "batch=0/run").mkdir(parents=True, exist_ok=True)
    (folder / "batch=0/run/part-0.parquet").write_text("rows")


def test_the_latest_run_counts_and_what_a_later_one_does_not_know_is_void() -> None:
    written = [Written(batch, "run-000001-a") for batch in range(6)]
    assert set(standing(written, {"run-000001-a": -1}).values()) == {"run-000001-a"}
    again = [*written, Written(3, "run-000002-b")]
    assert standing(again, {"run-000002-b": 3}) == {**dict.fromkeys(range(3), "run-000001-a"), 3: "run-000002-b"}
    late = [*again, Written(3, "run-000001-a")]  # a driver that was taken for dead
    assert standing(late, {"run-000002-b": 3}) == standing(again, {"run-000002-b": 3})
    third = [*again, Written(4, "run-000003-c")]
    assert standing(third, {"run-000002-b": 3, "run-000003-c": 3})[4] == "run-000003-c"


def still_standing(written: list[Written], kept: dict[str, int]) -> dict[int, str]:
    """The slow twin: every batch against every run."""

    def is_void(batch: int, run: str) -> bool:
        return any(later > run and batch > through for later, through in kept.items())

    return {batch: run for batch, run in sorted(written) if not is_void(batch, run)}


RUNS = st.sampled_from([f"run-{number:06d}-a" for number in range(8)])


@given(st.lists(st.tuples(st.integers(0, 12), RUNS)), st.dictionaries(RUNS, st.integers(-1, 12)))
def test_what_stands_equals_its_twin(written: list[tuple[int, str]], kept: dict[str, int]) -> None:
    batches = [Written(*each) for each in written]
    assert standing(batches, kept) == still_standing(batches, kept)


def test_what_stands_is_found_at_once_after_very_many_starts() -> None:
    runs = [f"run-{number:06d}-a" for number in range(20_000)]
    kept = {run: batch for batch, run in enumerate(runs)}
    begin = time.perf_counter()
    assert len(standing([Written(batch, run) for batch, run in enumerate(runs)], kept)) == len(runs)
    assert time.perf_counter() - begin < 5, "every batch against every start takes half a minute and more"


def test_runs_are_numbered_and_only_the_last_one_may_write(tmp_path: Path) -> None:
    log = LaneLog.at(f"file://{tmp_path}/lane")
    runs = [log.announce(NO_SPARK, MINE) for _ in range(11)]
    names = [run for run, _ in runs]
    assert names == sorted(names)
    assert {folder for _, folder in runs} == {f"file://{tmp_path}/lane"}
    assert log.runs(NO_SPARK) == dict.fromkeys(names, MINE)
    for run in names:
        log.begin(NO_SPARK, run)
    log.check_latest(NO_SPARK, names[-1])
    with pytest.raises(StateError, match=rf"must be the last one that was started there; got '{names[-1]}'"):
        log.check_latest(NO_SPARK, names[-2])
    assert new_run(names) > names[-1]


def test_a_start_takes_no_folder_from_a_run_before_it_begins(tmp_path: Path) -> None:
    log = LaneLog.at(f"file://{tmp_path}/lane")
    running = begun(log)
    log.announce(NO_SPARK, MINE)  # Spark refuses this one
    log.check_latest(NO_SPARK, running)
    later = begun(log)
    with pytest.raises(StateError, match="must be the last one that was started there"):
        log.check_latest(NO_SPARK, running)
    log.check_latest(NO_SPARK, later)


def test_a_run_that_begins_after_a_later_one_takes_nothing_from_it(tmp_path: Path) -> None:
    log = LaneLog.at(f"file://{tmp_path}/lane")
    slow, folder = log.announce(NO_SPARK, MINE)
    later = begun(log)
    with pytest.raises(StateError, match="must be the last one that was started there"):
        take_over(NO_SPARK, {"results": FileLane(folder, MINE, slow)}, lambda: 0)
    log.check_latest(NO_SPARK, later)
    assert log.kept(NO_SPARK) == {}


def test_folders_are_taken_before_it_is_asked_how_far_the_checkpoint_has_come(tmp_path: Path) -> None:
    log = LaneLog.at(f"file://{tmp_path}/lane")
    old = begun(log)
    run, folder = log.announce(NO_SPARK, MINE)

    def planned() -> int:
        with pytest.raises(StateError):
            log.check_latest(NO_SPARK, old)
        return 4

    (lane,) = take_over(NO_SPARK, {"results": FileLane(folder, MINE, run)}, planned).values()
    assert (lane.again, log.kept(NO_SPARK)) == (4, {run: 4})


def test_a_folder_is_of_one_query_and_lane_in_one_format_with_one_set_of_columns(tmp_path: Path) -> None:
    log = LaneLog.at(f"file://{tmp_path}/lane")
    begun(log)
    more = json.loads(COLUMNS)
    more["fields"].append({"metadata": {}, "name": "window_start", "nullable": True, "type": "timestamp"})
    others = {
        "output folder must be empty, or filled by this very query": replace(MINE, owner="you"),
        "folder of lane 'late' must be its own; got '.*/lane, of lane 'results'": replace(MINE, lane="late"),
        "format of .*/lane must stay 'parquet'; got 'json'": replace(MINE, format="json"),
        r"columns of .*/lane must stay struct<id:bigint>; got 'struct<id:bigint,window": replace(
            MINE, columns=json.dumps(more)
        ),
    }
    for claim in others.values():
        log.check(NO_SPARK, claim)  # nothing is there yet
    put_file(tmp_path / "lane")
    log.check(NO_SPARK, MINE)
    for text, claim in others.items():
        with pytest.raises(InputError, match=text.replace("'.*", "[\"'].*")):
            log.check(NO_SPARK, claim)


def test_a_batch_replaces_what_it_wrote_from_the_same_input_or_less(tmp_path: Path) -> None:
    log = LaneLog.at(f"file://{tmp_path}/lane")
    put_file(tmp_path / "lane")
    days = [f"file:/in/day={day}" for day in range(3)]
    fill(log, replace(MINE, input=tuple(days[:2])))
    begun(log, replace(MINE, input=("file:/in/day=9", *days)))  # which failed: nothing was written
    for again in (days[:2], days):
        log.check(NO_SPARK, replace(MINE, input=tuple(again)))
    for other in (days[1:], days[:1], []):
        with pytest.raises(InputError, match=r"must be what it was filled from \(file:/in/day=0 and 1 more"):
            log.check(NO_SPARK, replace(MINE, input=tuple(other)))
    fill(log, replace(MINE, input=()))
    log.check(NO_SPARK, replace(MINE, input=()))
    with pytest.raises(InputError, match=r"filled from \(no files\)"):
        log.check(NO_SPARK, replace(MINE, input=tuple(days)))


def test_batches_are_found_by_their_records(tmp_path: Path) -> None:
    log = LaneLog.at(f"file://{tmp_path}/lane")
    run = begun(log)
    log.keep(NO_SPARK, run, -1)
    for batch in (0, 7, 1_000, 2_345):
        log.add(NO_SPARK, batch, run)
    assert sorted(log.written(NO_SPARK)) == [(batch, run) for batch in (0, 7, 1_000, 2_345)]
    assert log.kept(NO_SPARK) == {run: -1}


WHOLE = {"run": "run-000001-a", "owner": "me", "lane": "late", "columns": COLUMNS, "format": "csv", "input": []}


@pytest.mark.parametrize(
    "damage",
    [
        "{",
        "[]",
        '{"run": "run-000001-a"}',
        json.dumps({**WHOLE, "columns": "{"}),
        json.dumps({**WHOLE, "columns": '{"fields": [{"name": "id", "type": "nonsense"}]}'}),
        json.dumps({**WHOLE, "columns": "[7]"}),
        json.dumps({**WHOLE, "lane": 7}),
        json.dumps({**WHOLE, "input": [7]}),
        json.dumps({**WHOLE, "input": 7}),
    ],
)
def test_records_that_are_damaged_are_refused_with_a_sentence(tmp_path: Path, damage: str) -> None:
    log = LaneLog.at(f"file://{tmp_path}/lane")
    (tmp_path / "lane/_latecomer/runs").mkdir(parents=True)
    (tmp_path / "lane/_latecomer/runs/run-000001-a.json").write_text(damage)
    with pytest.raises(StateError, match=r"records in .* must be what latecomer wrote; got"):
        log.runs(NO_SPARK)
