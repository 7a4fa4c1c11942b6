"""How time travel is to tell where events are missing, by what the events of each key are like.

A column that counts the events of each key is best, then a period, with a tolerance where clocks are not exact; else an
event may be missing anywhere.

A period is the median of the most common gap (of gaps within a tenth of each other) between successive times of a key.
It holds if 99 % of all gaps are whole periods, up to half a period; half of what those are off is the tolerance, since
both ends of a gap may be off. A column counts if nine in ten steps from one number of a key to the next are one, and
times do not fall where it rises.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from latecomer.disorder.profile import HoleChoice, quantile, waits
from latecomer.events import Int64s

_LEAST_GAPS = 10  # fewer tell nothing
_MOST_OFF = 0.99  # so many gaps must be whole periods
_COUNTING, _RISING = 0.9, 0.999
_APART = 1.1  # gaps that differ by less are of one kind
_ROUND = 0.02  # a period this near a round one is that


def choose_holes(ts_us: Int64s, codes: Int64s, numbers: Mapping[str, Int64s]) -> HoleChoice | None:
    """What fits the events of keys, given by their codes; None where there are too few to tell."""
    order = np.lexsort((ts_us, codes))
    gaps_us = np.diff(ts_us[order])[np.diff(codes[order]) == 0]
    gaps_us = np.sort(gaps_us[gaps_us > 0])
    if len(gaps_us) < _LEAST_GAPS:
        return None
    for name, values in numbers.items():
        if counts(ts_us, codes, values):
            return HoleChoice(enumerator=name)
    every_us = common_gap(gaps_us)
    whole = np.maximum((gaps_us + every_us // 2) // every_us, 1)
    off_us = quantile(np.sort(np.abs(gaps_us - whole * every_us)), _MOST_OFF)
    tolerance_us = next((each for each in waits(off_us) if each >= -(-off_us // 2)), 0) if off_us else 0
    return HoleChoice() if 4 * tolerance_us >= every_us else HoleChoice(None, every_us, tolerance_us)


def counts(ts_us: Int64s, codes: Int64s, values: Int64s) -> bool:
    """Whether a column counts the events of each key."""
    order = np.lexsort((values, codes))
    same = np.diff(codes[order]) == 0
    step, later_us = np.diff(values[order])[same], np.diff(ts_us[order])[same]
    return bool((step == 1).mean() >= _COUNTING and (step > 0).all() and (later_us >= 0).mean() >= _RISING)


def common_gap(sorted_us: Int64s) -> int:
    """The most common gap; a round time where it is near one."""
    after = np.searchsorted(sorted_us, (sorted_us * _APART).astype(np.int64), side="right")
    counted = after - np.arange(len(sorted_us))
    first = int(np.argmax(counted))
    gap_us = quantile(sorted_us[first : first + int(counted[first])], 0.5)
    rounds = [each for each in waits(gap_us * 2) if abs(each - gap_us) <= _ROUND * gap_us]
    return min(rounds, key=lambda each: abs(each - gap_us), default=gap_us)
