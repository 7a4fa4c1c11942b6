"""The paper's figures that come of simulated time, a function each: rows for the report."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from latecomer.events import Int64s
from latecomer_lab.slack.joined import find_events
from latecomer_lab.slack.prediction import Score
from latecomer_lab.slack.simulation import Run, simulate_fixed
from latecomer_lab.slack.streams import SECOND_US, Scenario
from latecomer_lab.slack.tuning import Day, events_at_most

THRESHOLDS_S = (1, 3, 5, 7, 9)
FIGURES = {"zipf": "12", "constant": "13"}

Row = dict[str, Any]


def figure_1(day: Scenario) -> list[Row]:
    """The times that the two sources have reported, second by second; of `constant` it is Figure 11."""
    figure = "11" if day.name == "constant" else "1"
    return [
        {"figure": figure, "scenario": day.name, "source": source, "reported_s": _reported_s(day, number)}
        for number, source in enumerate(day.sources[:2])
    ]


def _reported_s(day: Scenario, number: int) -> list[float]:
    own = day.reports.source == number
    arrival_us, ts_us = day.reports.arrival_us[own], day.reports.ts_us[own]
    ends_us = day.start_us + SECOND_US * np.arange(1, day.seconds + 1)
    came = np.searchsorted(arrival_us, ends_us)
    latest_us = np.concatenate([[day.start_us], np.maximum.accumulate(ts_us)])[came]
    return _seconds(latest_us - day.start_us)


def run_thresholds(day: Scenario) -> dict[str, Run]:
    """Fixed slacks for Figures 2 to 4."""
    stages = day.graph.stages
    return {f"{slack} s": simulate_fixed(day, dict.fromkeys(stages, slack * SECOND_US)) for slack in THRESHOLDS_S}


def figure_2(runs: dict[str, Run]) -> list[Row]:
    """The latency of each second."""
    return [
        {"figure": "2", "slack": slack, "latency_s": _seconds(run.intervals.latency_us)} for slack, run in runs.items()
    ]


def figure_3(runs: dict[str, Run]) -> list[Row]:
    """Detected events, and how many there are in the sorted stream."""
    return [
        {
            "figure": "3",
            "slack": slack,
            "events": find_events(run.scenario.reports, run.order),
            "events_at_most": events_at_most(run.scenario),
        }
        for slack, run in runs.items()
    ]


def figure_4(runs: dict[str, Run]) -> list[Row]:
    """Out-of-order rows of each second."""
    return [
        {"figure": "4", "slack": slack, "out_of_order": run.intervals.out_of_order.tolist()}
        for slack, run in runs.items()
    ]


def figure_12(days: Iterable[Day]) -> list[Row]:
    """All policies on all days; of `constant` it is Figure 13, of others a figure of ours."""
    return [
        {
            "figure": FIGURES.get(day.scenario, "ours"),
            "scenario": day.scenario,
            "day": day.seed,
            "policy": each.policy,
            "violated_percent": round(100 * each.violated, 2),
            "slack_ready": each.slack_ready,
            "times_best_fixed": round(day.times_best(each.policy), 3),
            "events": each.events,
            "events_at_most": day.events_at_most,
            "largest_latency_s": round(int(each.intervals.latency_us.max()) / SECOND_US, 3),
            "decision_ms": each.decision_ms,
        }
        for day in days
        for each in day.tuned.values()
    ]


def figure_12_curves(day: Day) -> list[Row]:
    """Second by second on one day: the latency, the slack of each stage, the slack-ready rows."""
    return [
        {
            "figure": FIGURES.get(day.scenario, "ours"),
            "scenario": day.scenario,
            "policy": each.policy,
            "latency_s": _seconds(each.intervals.latency_us),
            "slack_s": {stage: _seconds(slack_us) for stage, slack_us in each.slack_us.items()},
            "slack_ready_rows": each.intervals.slack_ready.tolist(),
        }
        for each in day.tuned.values()
    ]


def table_1(scores: Iterable[Score]) -> list[Row]:
    """The errors of all models."""
    return [{"figure": "table 1", **each._asdict()} for each in scores]


def _seconds(values_us: Int64s) -> list[float]:
    seconds: list[float] = np.round(values_us / SECOND_US, 3).tolist()
    return seconds
