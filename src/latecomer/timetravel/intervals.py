"""Intervals of times in groups, such as keys or contexts, and which times lie in one of their group."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from latecomer._jit import kernel
from latecomer.events import Bools, Int64s
from latecomer.search import lower_bound
from latecomer.timetravel.tables import group_starts


class Intervals(NamedTuple):
    """Intervals (low, high]; those of group g stand from `starts[g]` to `starts[g + 1]`, in any order."""

    low_us: Int64s
    high_us: Int64s
    starts: Int64s

    @property
    def group(self) -> Int64s:
        """The group of each."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))

    def hulls(self) -> tuple[Int64s, Int64s]:
        """The least low and the largest high of each group; every group has an interval."""
        firsts = self.starts[:-1]
        return np.minimum.reduceat(self.low_us, firsts), np.maximum.reduceat(self.high_us, firsts)

    def contain(self, group: Int64s, ts_us: Int64s) -> Bools:
        """Whether each of these times lies in an interval of its group."""
        order = np.lexsort((self.low_us, self.group))
        found = np.zeros(len(group), dtype=np.bool_)
        find_contained(Intervals(self.low_us[order], self.high_us[order], self.starts), group, ts_us, found)
        return found


def grouped_intervals(group: Int64s, low_us: Int64s, high_us: Int64s, groups: int) -> Intervals:
    """Intervals of so many groups, in any order."""
    order = np.argsort(group, kind="stable")
    return Intervals(low_us[order], high_us[order], group_starts(group[order], groups))


@kernel
def find_contained(intervals: Intervals, group: Int64s, ts_us: Int64s, found: Bools) -> None:
    """The loop of `Intervals.contain`, for intervals that are in the order of their lows within each group."""
    low_us, starts = intervals.low_us, intervals.starts
    furthest_us = intervals.high_us.copy()  # of the intervals of the group so far
    for g in range(len(starts) - 1):
        for i in range(starts[g] + 1, starts[g + 1]):
            furthest_us[i] = max(furthest_us[i], furthest_us[i - 1])
    for i in range(len(group)):
        start = starts[group[i]]
        after = lower_bound(low_us, start, starts[group[i] + 1], ts_us[i])
        found[i] = after > start and ts_us[i] <= furthest_us[after - 1]
