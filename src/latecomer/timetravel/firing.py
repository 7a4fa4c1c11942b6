"""Which late events are replayed in which ticks of a micro-batch, and for which results.

Nothing is replayed for a result that the live instance has not given: it would give it again, without the event. Eager
replays come at once, and again in every tick in which the live instance gives more that lacks the event, for that
alone. Others come for good only when all of it has been given. What is still pending when the bound has passed is
replayed by force.

Paper: TinTiN, section 6.3 and Algorithm 1, lines 9 to 12.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from latecomer.events import FOREVER_US, Int64s, Stretches
from latecomer.timetravel.contexts import Firing
from latecomer.timetravel.key_history import OnTime
from latecomer.timetravel.lazy_trigger import lazy_ticks
from latecomer.timetravel.pending import Pending
from latecomer.timetravel.ticks import Ticks
from latecomer.timetravel.triggers import EAGER, LAZY

if TYPE_CHECKING:
    from latecomer.timetravel.settings import TimeTravel


def fire(settings: TimeTravel, pending: Pending, on_time: OnTime, ticks: Ticks, *, ending: bool) -> Firing:
    """What is replayed in this batch, in the order of processing; at the end of the stream, all that is pending."""
    if ending:
        parts = [_for_good(pending, np.full(len(pending.key), ticks.last), ticks)]
        if settings.trigger == EAGER and not settings.retract:
            parts = [_again(pending, parts[0], settings.reach.us)]
    elif settings.trigger == EAGER:
        parts = _at_once(pending, settings.reach.windows[-1].steps, ticks)
        if not settings.retract:
            parts[1] = _again(pending, parts[1], settings.reach.us)
    elif settings.trigger == LAZY:
        tick = lazy_ticks(pending, on_time, ticks, settings.reach.us, settings.pace_us)
        parts = [_for_good(pending, np.minimum(tick, forced_ticks(pending, settings.bound_us, ticks)), ticks)]
    else:
        parts = _wanted(pending, forced_ticks(pending, settings.bound_us, ticks), ticks)
    both = Firing._make(np.concatenate(columns) for columns in zip(*parts, strict=True))
    ts_us, key = pending.ts_us[both.pending], pending.key[both.pending]
    order = np.lexsort((ts_us, key, ~both.at_once, both.moment, both.tick))
    return Firing._make(column[order] for column in both)


def forced_ticks(pending: Pending, bound_us: int, ticks: Ticks) -> Int64s:
    """The tick in which the bound has passed."""
    return np.maximum(np.minimum(ticks.marked(pending.ts_us + (bound_us + 1)), ticks.end), pending.tick)


def _for_good(pending: Pending, tick: Int64s, ticks: Ticks) -> Firing:
    """Replays at the end of these ticks, for all that is left; none in FOREVER_US."""
    chosen = np.flatnonzero(tick < FOREVER_US)
    return _at_end(chosen, tick[chosen], ticks, pending.done_us[chosen], pending.until_us[chosen])


def _at_end(chosen: Int64s, tick: Int64s, ticks: Ticks, low_us: Int64s, high_us: Int64s) -> Firing:
    """Replays at the end of a tick, for results in these intervals."""
    return Firing(chosen, tick, ticks.last_moment(tick), np.zeros(len(chosen), dtype=np.bool_), low_us, high_us)


def _at_once(pending: Pending, starts: Stretches, ticks: Ticks) -> list[Firing]:
    """Eager: replays of late events as they come, and then of those of which live gives more results."""
    passed_us = ticks.passed_before(pending.tick)
    high_us = np.where(pending.moment >= 0, np.minimum(pending.until_us, starts.starts(passed_us)), pending.done_us)
    new = np.flatnonzero(high_us > pending.done_us)
    at_once = np.ones(len(new), dtype=np.bool_)
    first = Firing(new, pending.tick[new], pending.moment[new], at_once, pending.done_us[new], high_us[new])
    return [first, _as_given(pending, np.maximum(pending.done_us, high_us), starts, ticks)]


def _as_given(pending: Pending, done_us: Int64s, starts: Stretches, ticks: Ticks) -> Firing:
    """Replays in the ticks in which live gives results after `done` that lack the event."""
    next_us = starts.starts(done_us) + starts.length_us
    last_us = np.minimum(pending.until_us, ticks.passed_us)
    counts = np.maximum((last_us - next_us) // starts.length_us + 1, 0)
    owner = np.repeat(np.arange(len(counts)), counts)
    number = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
    start_us = next_us[owner] + number * starts.length_us
    tick = np.maximum(ticks.complete(start_us), pending.tick[owner])
    changes = (owner[1:] != owner[:-1]) | (tick[1:] != tick[:-1])
    last = np.flatnonzero(np.append(changes, True)) if len(owner) else owner
    low_us, high_us = done_us[owner[last]], start_us[last]
    same = np.flatnonzero(owner[last][1:] == owner[last][:-1]) + 1
    low_us[same] = high_us[same - 1]
    return _at_end(owner[last], tick[last], ticks, low_us, high_us)


def _again(pending: Pending, firing: Firing, reach_us: int) -> Firing:
    """As in the paper: the replay that comes when a context is complete gives everything again."""
    complete = firing.high_us == pending.until_us[firing.pending]
    everything_us = pending.ts_us[firing.pending] - reach_us
    return firing._replace(low_us=np.where(complete, everything_us, firing.low_us))


def _wanted(pending: Pending, force: Int64s, ticks: Ticks) -> list[Firing]:
    """The user's times: replays that come before live has given all, and those for good."""
    complete = np.maximum(ticks.complete(pending.until_us), pending.tick)
    wanted = np.minimum(np.maximum(ticks.marked(pending.fire_us), pending.tick), force)
    wanted = np.where(pending.fired > 0, FOREVER_US, wanted)
    early = np.flatnonzero(wanted < complete)
    last = np.where((pending.fired > 0) | (wanted < complete), complete, wanted)
    high_us = np.minimum(ticks.passed(wanted[early]), pending.until_us[early])
    first = _at_end(early, wanted[early], ticks, pending.done_us[early], np.maximum(high_us, pending.done_us[early]))
    done_us = pending.done_us.copy()
    done_us[early] = first.high_us
    return [first, _for_good(pending._replace(done_us=done_us), last, ticks)]
