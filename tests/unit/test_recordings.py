"""One name for each task: what `generate`, `profile` and `preset` take, and what they refuse."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.parquet as pq
import pytest

import latecomer as lc
from latecomer.disorder.presets import Preset, Traffic

MADE = lc.preset("traffic", seconds=2, seed=2)
FRAME: Any = object()  # anything that is no path is taken for a DataFrame


def test_a_preset_by_name_is_a_preset_with_the_rows_of_its_own() -> None:
    plain = Traffic(seconds=2, seed=2)
    assert isinstance(MADE, Preset)
    assert (MADE.rows, MADE.schema) == (plain.rows, plain.schema)
    assert MADE.table().equals(plain.table())
    assert MADE.block(3, 9).equals(plain.block(3, 9))
    assert MADE == lc.preset("traffic", seconds=2, seed=2) != lc.preset("traffic", seconds=2, seed=3)


@pytest.mark.parametrize("made", [MADE, Traffic(seconds=2, seed=2)])
def test_generate_takes_a_preset_and_says_where_its_rows_are(made: Preset, tmp_path: Path) -> None:
    folder = lc.generate(made, tmp_path / "out")
    assert folder == tmp_path / "out" / "events"
    assert pq.read_table(folder).num_rows == 2_000
    found = lc.profile(str(folder), time="ts", arrival="arrival", name="mine")
    assert (found.name, found.events) == ("mine", 2_000)
    assert lc.profile(folder, time="ts", arrival="arrival").name == "events"


ANY: Any = lc


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ANY.generate(3, "out"), "source must be a configuration or a preset; got 'int'; give a path, a dict"),
        (lambda: ANY.generate(MADE, "out", arrival="came"), "arrival= must come with a configuration; got 'came'"),
        (lambda: ANY.generate(MADE, "out", event_time="t"), "event_time= must come with a configuration; got 't'"),
        (lambda: ANY.generate(MADE, "out", format="xls"), "format must be parquet or csv; got 'xls'"),
        (lambda: ANY.generate(MADE, "out", engine="flink"), "engine must be auto, python or spark; got 'flink'"),
        (lambda: lc.preset("storm"), "preset must be one of synthetic"),
        (
            lambda: lc.profile("x.csv", time="ts", order="id"),
            "order= must come with a DataFrame; got 'id'; leave it out",
        ),
        (lambda: lc.profile(FRAME, time="ts", format="csv"), "format= must come with files; got 'csv'; leave it out"),
        (lambda: lc.profile(FRAME, time="ts", separator=";"), "separator= must come with files"),
        (lambda: lc.profile(FRAME, time="ts", header=False), "header= must come with files; got False"),
        (lambda: lc.profile(FRAME, time="ts", quarantine=True), "quarantine= must come with files; got True"),
        (lambda: lc.profile(FRAME, time="ts", engine="python"), "engine= must come with files; got 'python'"),
        (lambda: lc.profile(FRAME, time=3), "time= must name a column of the DataFrame; got 3"),
        (lambda: ANY.profile(pd.DataFrame(), time="ts"), "profile must be given a Spark DataFrame or a path"),
    ],
)
def test_a_wrong_kind_of_argument_is_refused(call: Callable[[], object], message: str) -> None:
    with pytest.raises(lc.InputError) as caught:
        call()
    assert str(caught.value).startswith(message)
