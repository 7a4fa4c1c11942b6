"""Histories to learn from: nine days with a fixed slack each, from small ones to some above the deadline."""

from __future__ import annotations

from latecomer.slack.observation import History
from latecomer.slack.policies import FixedSlack
from latecomer_lab.slack.simulation import simulate
from latecomer_lab.slack.streams import scenario

RUNS = 9
FIRST_DAY = 100  # the days that are tuned on lie elsewhere
_LARGEST = 1.4  # times the deadline


def calibrate(name: str, seed: int, *, seconds: int | None = None, moved_us: int = 0) -> History:
    """What was observed of a scenario on nine days."""
    runs = []
    for number in range(RUNS):
        day = scenario(name, seed + number, seconds, moved_us)
        slack_ms = round(day.deadline_us / 1_000 * _LARGEST * (number + 0.5) / RUNS)
        runs.append(simulate(day, FixedSlack(f"{slack_ms} ms")).observations)
    return History.of(*runs)
