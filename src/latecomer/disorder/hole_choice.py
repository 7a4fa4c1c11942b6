"""How time travel is to tell where events are missing, by what the events of each key are like.

A column that counts the events of each key is best, then a period, with a tolerance where clocks are not exact; else an
event may be missing anywhere.

A period is the mean over all gaps between successive times of a key of a few periods each, told by the most common gap
(of gaps within a tenth of each other). It is rounded only as far as the gaps leave open: where it is a little too long,
an outage of hundreds of events has fewer. It holds if 99 % of all gaps are whole periods, up to half a period; half of
what those are off is the tolerance, since both ends of a gap may be off. A column counts if nine in ten steps from one
number of a key to the next are one, and times do not fall where it rises.
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
_FEW = 5.5  # periods: in longer gaps nobody can tell how many there are
_ERRORS = 3  # how many standard errors a rounded period may be off
_UNITS = (86_400_000_000, 3_600_000_000, 60_000_000, 1_000_000, 1_000)


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
    every_us = period_of(gaps_us, len(np.unique(codes)))
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


def period_of(sorted_us: Int64s, keys: int) -> int:
    """The period of sorted gaps of so many keys, to the coarsest unit of time in which nothing contradicts it."""
    usual_us = common_gap(sorted_us)
    few_us = sorted_us[: np.searchsorted(sorted_us, _FEW * usual_us)]
    whole = np.maximum((few_us + usual_us // 2) // usual_us, 1)
    spread_us = quantile(few_us[whole == 1], 0.99) - quantile(few_us[whole == 1], 0.01)
    if spread_us == 0:
        return usual_us
    mean_us = float(few_us.sum() / whole.sum())  # what times are off cancels out but at both ends of each stretch
    stretches = keys + len(sorted_us) - len(few_us)
    error_us = _ERRORS * spread_us / 4 * np.sqrt(stretches) / whole.sum()
    rounded = (max(1, round(mean_us / unit)) * unit for unit in _UNITS)
    return next((each for each in rounded if abs(each - mean_us) <= error_us), int(mean_us))


def common_gap(sorted_us: Int64s) -> int:
    """The most common gap."""
    after = np.searchsorted(sorted_us, (sorted_us * _APART).astype(np.int64), side="right")
    counted = after - np.arange(len(sorted_us))
    first = int(np.argmax(counted))
    return quantile(sorted_us[first : first + int(counted[first])], 0.5)
