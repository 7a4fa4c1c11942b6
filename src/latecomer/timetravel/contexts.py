"""What is replayed together: the contexts of late events of a key, united where they overlap."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from latecomer.events import Bools, Int64s
from latecomer.timetravel.intervals import Intervals
from latecomer.timetravel.pending import Pending


class Firing(NamedTuple):
    """Replays of single late events: which of those pending, in which tick, at which moment, for which results.

    Those are the ones that start in (low, high], all of which the live instance has given by then.
    """

    pending: Int64s
    tick: Int64s
    moment: Int64s
    at_once: Bools
    low_us: Int64s
    high_us: Int64s


class Contexts(NamedTuple):
    """What is replayed: per context the key, the moment, and for which results."""

    key: Int64s
    tick: Int64s
    moment: Int64s
    at_once: Bools
    results: Intervals

    def __len__(self) -> int:
        return len(self.key)


def unite_contexts(firing: Firing, pending: Pending, reach_us: int) -> Contexts:
    """One context for the late events of a key that are replayed at the end of a tick, as far as theirs overlap."""
    key, late_us = pending.key[firing.pending], pending.ts_us[firing.pending]
    new = np.ones(len(key), dtype=np.bool_)
    alike = ~firing.at_once[1:] & ~firing.at_once[:-1] & (firing.tick[1:] == firing.tick[:-1]) & (key[1:] == key[:-1])
    new[1:] = ~(alike & (late_us[1:] - late_us[:-1] < 2 * reach_us))
    first = np.flatnonzero(new)
    results = Intervals(firing.low_us, firing.high_us, np.append(first, len(key)))
    return Contexts(key[first], firing.tick[first], firing.moment[first], firing.at_once[first], results)
