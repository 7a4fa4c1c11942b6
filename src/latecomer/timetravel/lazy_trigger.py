"""Lazy: late events wait for their key, so that those that come together share one replay.

A late event is replayed when its key has an event that is on time, and all contexts of the key that overlap with its
own are complete then: the live instance has given whatever they touch. A key that has none on time for long is not
waited for: when two periods have passed since its last one, and one since the late event was complete, it is replayed.

An event that is not complete lies within reach of the mark, so all that overlap with it and lie after it are within
reach of it. So of those that are not complete the first alone tells who must wait: all that lie less than twice the
reach before it, and all after it.

Paper: TinTiN, section 6.3.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from latecomer._jit import kernel
from latecomer.events import FOREVER_US, NEVER_US, Int64s
from latecomer.search import lower_bound
from latecomer.timetravel.key_history import OnTime
from latecomer.timetravel.pending import Pending
from latecomer.timetravel.ticks import Ticks

_NOBODY = -1


class Waiting(NamedTuple):
    """Late events in the order of keys and times: when each came, was complete, and is not waited for any more."""

    key: Int64s
    ts_us: Int64s
    came: Int64s
    complete: Int64s
    patience: Int64s


class Speaking(NamedTuple):
    """The events that were on time, with the tick from which on their key is silent if it has no other by then."""

    on_time: OnTime
    silent: Int64s


def lazy_ticks(pending: Pending, on_time: OnTime, ticks: Ticks, reach_us: int, pace_us: int) -> Int64s:
    """In which tick of this batch each late event is replayed; FOREVER_US if in none."""
    order = np.lexsort((pending.ts_us, pending.key))
    complete = np.maximum(ticks.complete(pending.until_us), pending.tick)
    patience = np.maximum(ticks.marked(pending.fire_us), complete)
    waiting = Waiting(*(each[order] for each in (pending.key, pending.ts_us, pending.tick, complete, patience)))
    speaking = Speaking(on_time, ticks.marked(on_time.ts_us + 2 * pace_us))
    blocked_by = np.full(len(on_time.key), _NOBODY)
    find_blocking(waiting, on_time, blocked_by)
    next_silent = np.full(len(on_time.key), FOREVER_US)
    find_silent(speaking, next_silent)
    found = np.empty(len(order), dtype=np.int64)
    find_ticks(waiting, speaking, (blocked_by, next_silent), reach_us, found)
    tick = np.empty(len(order), dtype=np.int64)
    tick[order] = found
    return tick


@kernel
def find_blocking(waiting: Waiting, on_time: OnTime, blocked_by: Int64s) -> None:
    """For each event that is on time the first late event of its key that has come and is not complete in its tick."""
    unset = np.arange(len(on_time.key) + 1)  # from each place the next that is not set, or one on the way there
    for i in range(len(waiting.key)):
        start, stop = on_time.starts[waiting.key[i]], on_time.starts[waiting.key[i] + 1]
        place = lower_bound(on_time.tick, start, stop, max(waiting.came[i], NEVER_US + 1))
        end = lower_bound(on_time.tick, place, stop, waiting.complete[i])
        while True:
            while unset[place] != place:
                unset[place] = unset[unset[place]]
                place = unset[place]
            if place >= end:
                break
            blocked_by[place] = i
            unset[place] = place + 1


@kernel
def find_silent(speaking: Speaking, next_silent: Int64s) -> None:
    """From each event that is on time on, the first tick in which its key has been silent for long, within this batch.

    FOREVER_US if there is none.
    """
    on_time, silent = speaking.on_time, speaking.silent
    for i in range(len(silent) - 1, -1, -1):
        last = i + 1 == len(silent) or on_time.key[i + 1] != on_time.key[i]
        if silent[i] < (FOREVER_US if last else on_time.tick[i + 1]):
            next_silent[i] = silent[i]
        elif not last:
            next_silent[i] = next_silent[i + 1]


@kernel
def find_ticks(
    waiting: Waiting, speaking: Speaking, found_for: tuple[Int64s, Int64s], reach_us: int, found: Int64s
) -> None:
    """The loop of `lazy_ticks`."""
    on_time, silent = speaking
    blocked_by, next_silent = found_for
    for i in range(len(waiting.key)):
        start, stop = on_time.starts[waiting.key[i]], on_time.starts[waiting.key[i] + 1]
        place = lower_bound(on_time.tick, start, stop, max(waiting.came[i], NEVER_US + 1))
        while place < stop and blocked_by[place] >= 0:
            other = blocked_by[place]
            if waiting.ts_us[other] - waiting.ts_us[i] >= 2 * reach_us:
                break
            place = lower_bound(on_time.tick, place, stop, waiting.complete[other])
        found[i] = on_time.tick[place] if place < stop else FOREVER_US
        after = lower_bound(on_time.tick, start, stop, waiting.patience[i] + 1)  # the first after its patience ends
        quiet = waiting.patience[i]
        if after > start:
            quiet = max(quiet, silent[after - 1])
        if after < stop and quiet >= on_time.tick[after]:
            quiet = next_silent[after]
        found[i] = min(found[i], quiet)
