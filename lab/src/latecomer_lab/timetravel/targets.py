"""What is to be reached, of the largest number of meters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from latecomer.events import Int64s
from latecomer.report.shape import Target
from latecomer.timetravel import EAGER, LAZY
from latecomer_lab.timetravel.application import HOUR_US
from latecomer_lab.timetravel.forms import TRIGGERS
from latecomer_lab.timetravel.paper import WAITING_HOLDS

if TYPE_CHECKING:
    from latecomer_lab.timetravel.experiments import Measured

_LEFT = {"omitted": "omitted", "different in the end": "different_left", "spurious in the end": "spurious_left"}


def targets(found: Measured) -> Iterator[Target]:
    """All figures to reach without Spark."""
    scores = found.scores
    for form in TRIGGERS:
        classes = scores.classes[form]._asdict()
        for words, name in _LEFT.items():
            yield Target(f"{form}: {words}", classes[name], 0, at_least=False)
    repeated = {form: scores.classes[form].duplicate for form in TRIGGERS}
    share = round(100 * repeated[LAZY] / max(repeated[EAGER], 1), 2)
    yield Target("lazy: duplicates, % of eager's", share, 5.0, at_least=False)
    least = f"{WAITING_HOLDS * found.meters / found.statistics.least_held:.1f}"
    for form in TRIGGERS:
        for when, count in (("ever", scores.held[form].most), ("in the end", scores.held[form].at_end)):
            name = f"{form}: times fewer readings held than wait, {when} (Lemma 5 allows {least})"
            yield Target(name, round(WAITING_HOLDS * found.meters / count, 1), 15.0)
    first_us = scores.delays[EAGER].first_us
    for hours, wanted in ((2, 90.0), (24, 99.8)):
        yield Target(f"eager: first answer within {hours} h of arrival, %", within(first_us, hours), wanted)
    for form in TRIGGERS:
        name = f"{form}: exact at most 2 h after arrival and completion, %"
        yield Target(name, within(scores.delays[form].after_us, 2), 99.0)


def within(delays_us: Int64s, hours: int) -> float:
    """How many per cent take at most so long, rounded down; what never comes counts.

    >>> within(np.array([HOUR_US, 3 * HOUR_US, 2 * HOUR_US]), 2)
    66.66
    """
    if len(delays_us) == 0:
        return 100.0
    return int(10_000 * np.count_nonzero(delays_us <= hours * HOUR_US) / len(delays_us)) / 100
