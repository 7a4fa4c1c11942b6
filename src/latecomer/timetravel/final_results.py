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
from latecomer.timetravel.hole_tracking import Stretches, find_missing
from latecomer.timetravel.holes import ALWAYS, INSIDE
from latecomer.timetravel.key_history import KeyHistory, MicroBatch, OnTime
from latecomer.timetravel.tables import GroupedTimes, any_within, group_starts
from latecomer.timetravel.triggers import Contexts, Pending, Ticks

_BEFORE_ALL = -2  # a moment at which no hole is full
_AFTER_ALL = FOREVER_US - 1  # a moment after all others


class Moments(NamedTuple):
    """When results are given: in which tick, after which event, and whether before the other events of the tick."""

    tick: Int64s
    moment: Int64s
    at_once: Bools


def live_moments(tick: Int64s) -> Moments:
    """Results of the live instance, given at the end of these ticks."""
    return Moments(tick, np.full(len(tick), _BEFORE_ALL), np.zeros(len(tick), dtype=np.bool_))


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

    def awaits_replay(self, key: Int64s, start_us: Int64s, pending: Pending) -> Bools:
        """Which results depend on a late event whose replay is pending."""
        order = np.lexsort((pending.ts_us, pending.key))
        late = GroupedTimes(pending.ts_us[order], group_starts(pending.key[order], self._keys))
        return any_within(late, key, start_us, self._reach_us)

    def after_batch(self, key: Int64s, start_us: Int64s, pending: Pending) -> tuple[Bools, Bools]:
        """Which results may change after this micro-batch; and which lie beyond what has come of their own key."""
        given = last_moments(len(key), self._ticks)
        may_change = ~self.final(key, start_us, given) | self.awaits_replay(key, start_us, pending)
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
