"""Which results cannot change any more, by what is known of every key.

A result with time s depends on events in [s, s + reach). It is final when the key's own events have passed that
stretch with no open hole in it, or when the bound has passed it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from latecomer._jit import kernel
from latecomer.events import FOREVER_US, NEVER_US, Bools, Int64s
from latecomer.search import lower_bound
from latecomer.timetravel.contexts import Contexts
from latecomer.timetravel.hole_tracking import Stretches, find_missing
from latecomer.timetravel.holes import ALWAYS, INSIDE
from latecomer.timetravel.intervals import grouped_intervals
from latecomer.timetravel.key_history import KeyHistory, MicroBatch, OnTime
from latecomer.timetravel.pending import Pending
from latecomer.timetravel.ticks import Ticks

_AFTER_ALL = FOREVER_US - 1  # a moment after all others


class Moments(NamedTuple):
    """When results are given: in which tick, after which event, and whether before the other events of the tick."""

    tick: Int64s
    moment: Int64s
    at_once: Bools


def live_moments(tick: Int64s, ticks: Ticks) -> Moments:
    """Results of the live instance, given at the end of these ticks."""
    return Moments(tick, ticks.last_moment(tick), np.zeros(len(tick), dtype=np.bool_))


def replay_moments(contexts: Contexts, context: Int64s) -> Moments:
    """Results of replays of these contexts."""
    return Moments(contexts.tick[context], contexts.moment[context], contexts.at_once[context])


def last_moments(size: int, ticks: Ticks) -> Moments:
    """So many results, looked at when the micro-batch is over."""
    return Moments(np.full(size, ticks.last), np.full(size, _AFTER_ALL), np.zeros(size, dtype=np.bool_))


class Finality:
    """Answers, of results with a key and a time, which can still change."""

    def __init__(self, batch: MicroBatch, history: KeyHistory, ticks: Ticks) -> None:
        self._history, self._ticks, self._keys = history, ticks, batch.tables.count
        self._reach_us, self._bound_us = batch.settings.reach.us, batch.settings.bound_us
        self._kind = batch.settings.holes.kind

    def final(self, key: Int64s, start_us: Int64s, given: Moments) -> Bools:
        """Which results cannot change any more after the moments at which they are given, by holes and the bound."""
        ticks, reach_us = self._ticks, self._reach_us
        mark_us = np.where(given.at_once, ticks.mark_before(given.tick), ticks.mark_after(given.tick))
        latest_us = latest_times(self._history.on_time, key, given.tick - given.at_once)
        oldest_us = ticks.mark_before(given.tick) - self._bound_us
        missing: Bools = np.full(len(key), self._kind == ALWAYS)
        stretches = Stretches(key, start_us, given.moment, oldest_us, latest_us)
        find_missing(stretches, reach_us, self._history.holes, int(self._kind == INSIDE), missing)
        passed = latest_us >= start_us + reach_us
        return (passed & ~missing) | (start_us + (reach_us - 1) < mark_us - self._bound_us)

    def lacks_late(self, key: Int64s, start_us: Int64s, pending: Pending) -> Bools:
        """Which results of the live instance lack a late event of this micro-batch or before."""
        low_us = pending.ts_us - self._reach_us
        return grouped_intervals(pending.key, low_us, pending.until_us, self._keys).contain(key, start_us)

    def after_batch(self, key: Int64s, start_us: Int64s, pending: Pending) -> tuple[Bools, Bools]:
        """Which results may change after this micro-batch; and which lie beyond what has come of their own key."""
        given = last_moments(len(key), self._ticks)
        awaiting = grouped_intervals(pending.key, pending.done_us, pending.until_us, self._keys)
        may_change = ~self.final(key, start_us, given) | awaiting.contain(key, start_us)
        return may_change, latest_times(self._history.on_time, key, given.tick) < start_us + self._reach_us


def latest_times(on_time: OnTime, key: Int64s, tick: Int64s) -> Int64s:
    """For each key and tick the time of the key's last event that was on time, up to then; NEVER_US without one."""
    found = np.empty(len(key), dtype=np.int64)
    find_latest(on_time, key, tick, found)
    return found


@kernel
def find_latest(on_time: OnTime, key: Int64s, tick: Int64s, found: Int64s) -> None:
    """The loop of `latest_times`."""
    for i in range(len(key)):
        start = on_time.starts[key[i]]
        after = lower_bound(on_time.tick, start, on_time.starts[key[i] + 1], tick[i] + 1)
        found[i] = on_time.ts_us[after - 1] if after > start else NEVER_US
