"""Events that are ahead of their arrival: how many, how far, and what a limit would set aside."""

from __future__ import annotations

import numpy as np

from latecomer.disorder.profile import Ahead, waits
from latecomer.events import FOREVER_US, Bools, Int64s

_FEW = 1_000  # of so many events an advised limit sets at most one aside
_LIMITS = np.array(waits(FOREVER_US)[1:], dtype=np.int64)


def too_far_ahead(ts_us: Int64s, arrival_us: Int64s, max_ahead_us: int | None) -> Bools:
    """Which events `max_ahead` sets aside, as in a query."""
    if max_ahead_us is None:
        return np.zeros(len(ts_us), dtype=np.bool_)
    return np.asarray(ts_us - max_ahead_us > arrival_us)


def count_ahead(ts_us: Int64s, arrival_us: Int64s, set_aside: int) -> Int64s:
    """Numbers that can be united: set aside, ahead, beyond each limit, and how far at most."""
    by_us = ts_us - arrival_us
    by_us = np.sort(by_us[by_us > 0])
    beyond = len(by_us) - np.searchsorted(by_us, _LIMITS, side="right")
    return np.array([set_aside, len(by_us), *beyond, by_us[-1] if len(by_us) else 0], dtype=np.int64)


def unite_ahead(counts: list[Int64s], events: int, max_ahead_us: int | None) -> Ahead:
    """What several parts of a stream of so many events say."""
    total = np.sum(counts, axis=0)
    beyond = total[2:-1]
    advised = int(np.argmax(beyond <= events // _FEW))
    return Ahead(
        max_ahead_us=max_ahead_us,
        set_aside=int(total[0]),
        events=int(total[1]),
        most_us=int(max(part[-1] for part in counts)),
        advised_us=int(_LIMITS[advised]),
        advised_aside=int(beyond[advised]),
    )
