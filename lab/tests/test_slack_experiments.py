"""The experiments of Slack-ScaleGate: the simulated gate against its twin, and everything small."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import naive_slack

from latecomer.slack.policies import FixedSlack
from latecomer_lab.slack.best_fixed import GRID_US, HELD, best_fixed
from latecomer_lab.slack.calibration import calibrate
from latecomer_lab.slack.experiments import Found, SlackExperiments, make_report
from latecomer_lab.slack.figures import figure_1, figure_2, figure_3, figure_4, run_thresholds
from latecomer_lab.slack.joined import WINDOW_US, find_events
from latecomer_lab.slack.page import to_html
from latecomer_lab.slack.picture import draw_day
from latecomer_lab.slack.prediction import score_models
from latecomer_lab.slack.simulated_gate import Rows, SimulatedGate
from latecomer_lab.slack.simulation import simulate, simulate_fixed
from latecomer_lab.slack.streams import NAMES, SECOND_US, TICK_US, Reports, scenario
from latecomer_lab.slack.structures import figure_8, figures_9_and_10
from latecomer_lab.slack.tuning import BEST, LOW, TUNER, run_day

TICKS = 6
reports = st.lists(st.tuples(st.integers(0, 30), st.integers(0, TICKS - 1), st.integers(0, 2)), max_size=25)
slacks = st.lists(st.integers(0, 25), min_size=TICKS, max_size=TICKS)


def rows_of(drawn: list[tuple[int, int, int]]) -> Rows:
    ts_us, tick, source = (np.array([row[place] for row in drawn], dtype=np.int64) for place in range(3))
    return Rows(np.arange(len(drawn)), ts_us, tick, tick, source)


@given(reports, slacks, st.integers(1, TICKS))
def test_the_gate_equals_its_twin_in_one_step_and_in_several(
    drawn: list[tuple[int, int, int]], slack_us: list[int], piece: int
) -> None:
    rows, gate, found = rows_of(drawn), SimulatedGate(3), []
    for first in range(0, TICKS, piece):
        part = np.array(slack_us[first : first + piece])
        now = (rows.tick >= first) & (rows.tick < first + len(part))
        read, _ = gate.advance(rows.take(now), part)
        columns = (read.rows.number, read.tick, read.slack_ready, read.out_of_order)
        found += [tuple(row) for row in zip(*(column.tolist() for column in columns), strict=True)]
    expected = naive_slack.gate(drawn, 3, lambda tick: slack_us[tick], TICKS)
    assert sorted(found) == sorted(expected)
    assert gate.held == len(drawn) - len(expected)


@given(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 1), st.integers(0, 1), st.booleans()), max_size=30))
def test_events_are_those_of_the_papers_join(drawn: list[tuple[int, int, int, bool]]) -> None:
    seconds, area, source, says = (np.array([row[place] for row in drawn], dtype=np.int64) for place in range(4))
    made = Reports(seconds * SECOND_US, seconds, source, area, says.astype(np.bool_))
    read = [(ts * SECOND_US, *rest) for ts, *rest in drawn]
    assert find_events(made, np.arange(len(drawn))) == naive_slack.events(read, WINDOW_US)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", NAMES)
def test_a_fixed_slack_gives_the_same_at_once_and_second_by_second(name: str) -> None:
    day = scenario(name, 3, 20)
    at_once = simulate_fixed(day, dict.fromkeys(day.graph.stages, 2 * SECOND_US))
    stepwise = simulate(day, FixedSlack("2 s"))
    for one, other in zip(at_once.intervals, stepwise.intervals, strict=True):
        assert one.tolist() == other.tolist()
    assert at_once.order.tolist() == stepwise.order.tolist()


def test_latency_is_slack_and_tick_and_overhead_where_the_lag_is_larger() -> None:
    run = simulate_fixed(scenario("constant", 1, 20), {"first": 2 * SECOND_US})
    last_us = int(run.intervals.latency_us[-1])
    assert 2 * SECOND_US + TICK_US < last_us < 2 * SECOND_US + 2 * TICK_US
    assert run.intervals.slack_ready[-1] == 500


def test_the_best_fixed_slack_is_the_best_of_the_grid() -> None:
    day = scenario("zipf", 1, 25)
    day = type(day)(**{**day.__dict__, "deadline_us": 2 * SECOND_US})
    runs = [simulate_fixed(day, {"first": place * GRID_US}) for place in range(41)]
    best = min(run.slack_ready for run in runs if run.violated <= HELD)
    assert best_fixed(day).run.slack_ready == best


def test_a_scenario_depends_on_its_seed_and_begins_at_the_same_time_of_day() -> None:
    one, same, other = scenario("rush", 1, 10), scenario("rush", 1, 10), scenario("rush", 2, 10)
    assert one.reports.arrival_us.tolist() == same.reports.arrival_us.tolist()
    assert other.start_us - one.start_us == 86_400 * SECOND_US
    shifted_us = other.reports.arrival_us - 86_400 * SECOND_US
    assert one.reports.arrival_us.tolist() != shifted_us.tolist()
    bus = one.reports.source == 0
    lag_us = (one.reports.arrival_us - one.reports.ts_us)[bus]
    assert 4 * SECOND_US <= lag_us.min() <= lag_us.max() < 4.1 * SECOND_US


def test_a_small_run_fills_report_and_page(tmp_path: Path) -> None:
    seconds, settings = 36, SlackExperiments(quick=True)
    history = calibrate("zipf", settings.calibrated_from, seconds=seconds)
    day = run_day("zipf", 1, history, others=False, seconds=seconds)
    assert set(day.tuned) >= {BEST, LOW, TUNER}
    assert day.tuned[TUNER].slack_ready < day.tuned[LOW].slack_ready
    thresholds = run_thresholds(scenario("zipf", 1, seconds))
    stamps = figure_1(scenario("zipf", 1, seconds)) + figure_1(scenario("constant", 1, seconds))
    curves = stamps + figure_2(thresholds) + figure_3(thresholds) + figure_4(thresholds)
    scores = score_models("zipf", history, 0, seconds=seconds)
    structures = [*figure_8(1_000, 2), *figures_9_and_10(1_000, 2)]
    found = Found({"zipf": [day]}, {"zipf": scores}, curves, structures)
    report = make_report(settings, found)
    report.write(tmp_path / "slack.json")
    written = json.loads((tmp_path / "slack.json").read_text())
    assert list(written) == ["name", "versions", "settings", "results", "targets"]
    assert {row["figure"] for row in written["results"]} == {
        *("1", "2", "3", "4", "8", "9 and 10", "11", "12", "table 1")
    }
    assert "zipf: deadline violated, % of intervals" in {target["name"] for target in written["targets"]}
    page = to_html(report, found)
    assert page.count("<svg") == 2 * (2 + 3 + 4 + 3)
    assert "<script" not in page
    drawn = draw_day(day)
    assert drawn.startswith("<svg")
    assert "rows that are certain" in drawn
