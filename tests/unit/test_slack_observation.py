"""Observations of the gate, and histories of them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from latecomer.errors import InputError
from latecomer.slack.controller import Goal
from latecomer.slack.observation import History, Motion, MotionMeter, Observation
from latecomer.slack.tuner import SlackTuner
from tests.unit.slack_runs import BUS, GRAPH, SECOND, SENSORS, made_run, observed

RUN = made_run(40, 5 * SECOND, lambda number: 50_000 + number)


def test_a_history_comes_back_from_its_file(tmp_path: Path) -> None:
    history = History.of(RUN, RUN[:10])
    history.write(tmp_path / "history.parquet")
    back = History.read(tmp_path / "history.parquet")
    assert back.table.equals(history.table)
    assert back.runs_of(SENSORS) == [RUN[1::2], RUN[1:10:2]]
    assert all(isinstance(seen, Observation) for run in back.runs_of(BUS) for seen in run)


def test_histories_add_up_and_keep_their_runs_apart() -> None:
    both = History.of(RUN) + History.of(RUN[:4], RUN[:6])
    assert [len(run) for run in both.runs_of(SENSORS)] == [40, 2, 3]
    assert both.table["run"].to_pylist() == [0] * 80 + [1] * 4 + [2] * 6
    assert len(History.of() + History.of(RUN)) == len(RUN)


def test_a_history_without_a_column_is_refused(tmp_path: Path) -> None:
    table = History.of(RUN).table
    pq.write_table(table.drop_columns(["lag_us", "speed"]), tmp_path / "short.parquet")
    with pytest.raises(InputError, match="history must have the columns lag_us, speed; got"):
        History.read(tmp_path / "short.parquet")


def test_what_is_no_file_is_refused_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "text.parquet").write_text("no Parquet")
    for name in ("missing.parquet", "text.parquet"):
        with pytest.raises(InputError, match=f"history must be a Parquet file that can be read; got '.*{name}'"):
            SlackTuner(tmp_path / name).begin(Goal(GRAPH, 6 * SECOND))


def test_other_types_are_cast_and_more_columns_left_out(tmp_path: Path) -> None:
    table = History.of(RUN).table
    rows = table.schema.get_field_index("rows")
    table = table.set_column(rows, "rows", table["rows"].cast(pa.int32())).append_column("note", pa.nulls(len(table)))
    pq.write_table(table, tmp_path / "other.parquet")
    assert History.read(tmp_path / "other.parquet").table.equals(History.of(RUN).table)


def test_a_short_history_is_an_error_that_says_how_much_is_needed() -> None:
    with pytest.raises(InputError, match="history must have at least 30 samples of each edge; got 8; record a longer"):
        SlackTuner(History.of(RUN[:20])).begin(Goal(GRAPH, 6 * SECOND))


def test_a_history_of_other_stages_is_too_short() -> None:
    other = [seen._replace(stage="elsewhere") for seen in RUN]
    with pytest.raises(InputError, match="history must have at least 30 samples of each edge; got 0"):
        SlackTuner(History.of(other)).begin(Goal(GRAPH, 6 * SECOND))


def test_speed_and_slope_follow_the_mark_and_the_lag() -> None:
    meter = MotionMeter()
    assert meter.follow(10 * SECOND, 0, SECOND) == Motion(1.0, 0.0)
    assert meter.follow(14 * SECOND, SECOND, 2 * SECOND) == Motion(2.0, 0.5)
    assert meter.follow(14 * SECOND, 0, SECOND) == Motion(2.0, -1.0)  # the mark stands still: the speed holds on
    assert meter.follow(13 * SECOND, 0, 0) == Motion(2.0, -1.0)


def test_a_jump_of_the_mark_counts_for_no_more_than_the_fastest() -> None:
    meter = MotionMeter()
    meter.follow(0, 0, SECOND)
    assert meter.follow(10**6 * SECOND, 10**6 * SECOND, SECOND) == Motion(100.0, 100.0)


def test_observations_of_an_unknown_edge_are_refused() -> None:
    controller = SlackTuner().begin(Goal(GRAPH, 6 * SECOND))
    strange = observed(0, SECOND, SECOND, 0)[0]._replace(input="tram")
    with pytest.raises(InputError, match=r"observation must be of an edge of the graph: .*; got .*'tram'"):
        controller.decide([strange])
