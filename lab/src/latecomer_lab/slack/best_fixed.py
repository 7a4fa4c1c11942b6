"""The best slack that never changes: the fewest slack-ready rows of those that hold the deadline, on a grid of 0.05 s.

A larger slack gives fewer slack-ready rows and longer waits, so the best is found by halving; with two stages each is
halved while the other stands, and then all pairs nearby are tried, since a larger slack of the first makes the second
wait. A slack holds the deadline if it is violated in at most 1 % of the intervals.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

from latecomer_lab.slack.simulation import Run, simulate_fixed
from latecomer_lab.slack.streams import Scenario

GRID_US = 50_000
HELD = 0.01
_NEARBY = 3  # steps of the grid


class Fixed(NamedTuple):
    """Slacks by stage, and what came of them."""

    slack_us: dict[str, int]
    run: Run


def best_fixed(scenario: Scenario) -> Fixed:
    """The best fixed slack, or pair of slacks."""
    slack_us = dict.fromkeys(scenario.graph.stages, 0)
    for stage in scenario.graph.stages:
        slack_us[stage] = _largest(scenario, slack_us, stage)
    found = [Fixed(slack_us, simulate_fixed(scenario, slack_us))]
    if len(slack_us) > 1:
        found += [Fixed(near, simulate_fixed(scenario, near)) for near in _around(slack_us)]
    return min((each for each in found if each.run.violated <= HELD), key=lambda each: each.run.slack_ready)


def _largest(scenario: Scenario, slack_us: dict[str, int], stage: str) -> int:
    """The largest slack of one stage with which the deadline is held, by halving."""
    low, high = 0, scenario.deadline_us // GRID_US
    while low < high:
        middle = (low + high + 1) // 2
        if simulate_fixed(scenario, {**slack_us, stage: middle * GRID_US}).violated <= HELD:
            low = middle
        else:
            high = middle - 1
    return low * GRID_US


def _around(slack_us: dict[str, int]) -> list[dict[str, int]]:
    steps = itertools.product(range(-_NEARBY, _NEARBY + 1), repeat=len(slack_us))
    return [
        {stage: value + step * GRID_US for (stage, value), step in zip(slack_us.items(), each, strict=True)}
        for each in steps
    ]
