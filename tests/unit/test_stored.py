"""Settings that stand in a checkpoint, without Spark: records on a disk of this machine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from latecomer import control
from latecomer.control_file import read_values
from latecomer.errors import StateError
from latecomer.reorder import Reorder
from latecomer.spark.stored import Stored, find_checkpoint, question

NO_SPARK: Any = None
STAGE = {"number": 0, "key": [], **Reorder("1 s").describe()}
STORED: Stored = {"format": 5, "shards": 2, "input": {"steps": []}, "stages": {"reorder": STAGE}}


def stored(folder: Path, stage: object) -> str:
    """A checkpoint whose one stage is so; gives its whole path."""
    record = {**STORED, "stages": {"reorder": stage}, "id": "abc", "number": 0}
    (folder / "latecomer").mkdir(parents=True)
    (folder / "latecomer/000000-abc.json").write_text(json.dumps(record))
    return f"file://{folder}"


def test_settings_are_found_as_they_were_stored(tmp_path: Path) -> None:
    path = stored(tmp_path / "checkpoint", STAGE)
    found = find_checkpoint(NO_SPARK, path, 5)
    assert (found.settings, found.id, found.bound) == (json.loads(json.dumps(STORED)), "abc", False)
    assert control(path).values()["reorder.latency_us"] == 1_000_000


@pytest.mark.parametrize(
    "stage",
    [
        {name: value for name, value in STAGE.items() if name != "latency_us"},
        {name: value for name, value in STAGE.items() if name != "number"},
        {name: value for name, value in STAGE.items() if name != "strategy"},
        {**STAGE, "latency_us": [1]},
        {**STAGE, "number": "first"},
        {**STAGE, "strategy": ["reorder"]},
        "reorder",
        None,
    ],
)
def test_stages_that_are_damaged_are_refused_with_a_sentence(tmp_path: Path, stage: object) -> None:
    path = stored(tmp_path / "checkpoint", stage)
    with pytest.raises(StateError, match=r"settings in .* must be what latecomer wrote; got .* put back what"):
        find_checkpoint(NO_SPARK, path, 5)
    with pytest.raises(StateError, match="checkpoint must be that of a query of this version; got"):
        control(path)


def test_control_values_that_are_damaged_are_refused_with_a_sentence(tmp_path: Path) -> None:
    file = tmp_path / "control.json"
    file.write_text(json.dumps({"version": 3, "values": {"0.latency_us": [7]}}))
    with pytest.raises(StateError, match="control file must be what latecomer wrote"):
        read_values(str(file))


def test_the_number_of_shards_is_no_part_of_a_question() -> None:
    assert question(STORED) == question({**STORED, "shards": 7})
    assert question(STORED) != question({**STORED, "input": {"steps": ["where id > 7"]}})
