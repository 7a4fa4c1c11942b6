"""A scenario that is run without Spark and on it, with the same expectations."""

from __future__ import annotations

from latecomer.testing import Scenario, ScenarioRun

READINGS = """
    came   ts     meter  kwh
    00:10  00:10  a      1
    00:20  00:20  a      2
    --
    00:31  00:12  a      4
    --
    00:40  00:40  b      8
"""
LATE = """
    ts     meter  kwh  lateness_us  reason
    00:12  a      4    480000000    too_late
"""


def readings() -> Scenario:
    """Three readings in order, and one that is eight minutes behind the mark."""
    return Scenario(READINGS, time="ts", arrival="came", key="meter")


def expect_late_reading(run: ScenarioRun) -> None:
    """Sums at once, for an hour: the late reading takes a sum back and gives another."""
    run.expect("changes", "window_start  meter  sum_kwh  change\n00:00  a  1  1\n00:15  a  2  1", batch=0)
    run.expect("changes", "window_start  meter  sum_kwh  change\n00:00  a  1  -1\n00:00  a  5  1", batch=1)
    run.expect("changes", "window_start  meter  sum_kwh  change\n00:30  b  8  1", batch=2)
    run.expect_standing("window_start  meter  sum_kwh\n00:00  a  5\n00:15  a  2\n00:30  b  8")
    run.expect_nothing("late")


def expect_tiers(run: ScenarioRun) -> None:
    """Counts after five minutes, and again after an hour, which for the last windows is the end of the stream."""
    run.expect("tier_1", "window_start  meter  count\n00:00  a  1", batch=0)
    run.expect_nothing("tier_1", batch=1)
    run.expect("tier_1", "window_start  meter  count\n00:15  a  1", batch=2)
    run.expect("tier_2", "window_start  meter  count\n00:00  a  2\n00:15  a  1\n00:30  b  1", batch="end")
    run.expect_standing("window_start  meter  count\n00:00  a  2\n00:15  a  1\n00:30  b  1")
