"""When a late event makes its context be replayed: at once, at the key's next event, or when the user says.

Nothing is replayed for good before the live instance has given all results that the late event touches: until then it
would give them again, without it. What is still waiting when the bound has passed is replayed by force.

Paper: TinTiN, section 6.3 and Algorithm 1, lines 9 to 12.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from latecomer._jit import kernel
from latecomer.errors import InputError, must
from latecomer.events import FOREVER_US, NEVER_US, Bools, Int64s, int64_view
from latecomer.progress import Timeline
from latecomer.timetravel.reach import Reach

EAGER, LAZY = "eager", "lazy"

Trigger = str | Callable[[pa.RecordBatch], Any]


class Waiting(NamedTuple):
    """Late events whose contexts are not replayed for good."""

    key: Int64s
    ts_us: Int64s
    tick: Int64s  # in which it came; NEVER_US if before this batch
    moment: Int64s  # its place among the events of this batch; -1 if before
    fire_us: Int64s  # when the user wants it, by the mark
    fired: Int64s  # 1 if it was, too early


class Firing(NamedTuple):
    """Replays of single late events: which of those waiting, in which tick, at which moment, how far live has come."""

    waiting: Int64s
    tick: Int64s
    moment: Int64s
    at_once: Bools
    passed_us: Int64s


class Ticks:
    """The ticks of a batch: which is the first after which something holds."""

    def __init__(self, timeline: Timeline, reach: Reach, came_tick: Int64s) -> None:
        self._timeline, self._reach, self._came = timeline, reach, came_tick
        self._punctuation_us = timeline.punctuations(1)

    @property
    def last(self) -> int:
        """The last of them."""
        return int(self._timeline.tick[-1])

    def complete(self, ts_us: Int64s) -> Int64s:
        """After which tick the live instance has given all results up to a time."""
        return self._first(self._punctuation_us, ts_us + (self._reach.needed(0)))

    @property
    def end(self) -> int:
        """The tick after which nothing comes any more."""
        ended = np.flatnonzero(self._punctuation_us == FOREVER_US)
        return int(self._timeline.tick[ended[0]]) if len(ended) else FOREVER_US

    def marked(self, ts_us: Int64s) -> Int64s:
        """After which tick the mark has come so far."""
        return self._first(self._timeline.mark_us, ts_us)

    def passed(self, tick: Int64s) -> Int64s:
        """Up to where the live instance has given results after a tick."""
        return self._passed(self._punctuation_us[np.searchsorted(self._timeline.tick, tick, side="right") - 1])

    def passed_before(self, tick: Int64s) -> Int64s:
        """The same before it."""
        return self._passed(self._timeline.punctuation_before(tick, 1))

    def last_moment(self, tick: Int64s) -> Int64s:
        """The place of the last event of a tick."""
        return np.searchsorted(self._came, tick, side="right") - 1

    def mark_before(self, tick: Int64s) -> Int64s:
        """The mark before a tick."""
        return self._timeline.mark_before(tick)

    def mark_after(self, tick: Int64s) -> Int64s:
        """The mark after a tick."""
        return self._timeline.mark_us[np.searchsorted(self._timeline.tick, tick, side="right") - 1]

    def _first(self, values: Int64s, wanted: Int64s) -> Int64s:
        place = np.searchsorted(values, wanted, side="left")
        ticks = np.append(self._timeline.tick, FOREVER_US)
        return ticks[place]

    def _passed(self, punctuation_us: Int64s) -> Int64s:
        passed = punctuation_us - self._reach.needed(0)
        ends = (punctuation_us == NEVER_US) | (punctuation_us == FOREVER_US)
        return np.where(ends, punctuation_us, passed)


class OnTime(NamedTuple):
    """The events that were on time, recent and new, in the order of keys and times.

    Those of a key begin at `starts[key]`.
    """

    key: Int64s
    ts_us: Int64s
    tick: Int64s  # NEVER_US if before this batch
    starts: Int64s


def fire(
    trigger: Trigger, waiting: Waiting, on_time: OnTime, ticks: Ticks, bound_us: int, *, ending: bool
) -> tuple[Firing, Bools]:
    """What is replayed in this batch, in the order of processing; and which of the events wait on.

    At the end of the stream all are.
    """
    complete = np.maximum(ticks.complete(waiting.ts_us), waiting.tick)
    force = np.maximum(np.minimum(ticks.marked(waiting.ts_us + (bound_us + 1)), ticks.end), waiting.tick)
    parts: list[Firing] = []
    done = np.zeros(len(waiting.key), dtype=np.bool_)
    if ending:
        last = np.full(len(waiting.key), ticks.last)
    elif trigger == EAGER:
        fresh = np.flatnonzero(waiting.moment >= 0)
        passed_us = ticks.passed_before(waiting.tick[fresh])
        parts.append(Firing(fresh, waiting.tick[fresh], waiting.moment[fresh], np.ones(len(fresh), bool), passed_us))
        done[fresh] = passed_us >= waiting.ts_us[fresh]
        last = np.where(done, FOREVER_US, complete)
    elif trigger == LAZY:
        last = np.minimum(_next_of_key(waiting.key, complete, on_time), force)
    else:
        wanted = np.minimum(np.maximum(ticks.marked(waiting.fire_us), waiting.tick), force)
        wanted = np.where(waiting.fired > 0, FOREVER_US, wanted)
        early = np.flatnonzero(wanted < complete)
        parts.append(_at_end(early, wanted[early], ticks))
        last = np.where((waiting.fired > 0) | (wanted < complete), complete, wanted)
    chosen = np.flatnonzero(last < FOREVER_US)
    parts.append(_at_end(chosen, last[chosen], ticks))
    done |= last < FOREVER_US
    together = Firing._make(np.concatenate(columns) for columns in zip(*parts, strict=True))
    ts_us, key = waiting.ts_us[together.waiting], waiting.key[together.waiting]
    order = np.lexsort((ts_us, key, ~together.at_once, together.moment, together.tick))
    return Firing._make(column[order] for column in together), ~done


def _at_end(chosen: Int64s, tick: Int64s, ticks: Ticks) -> Firing:
    """Replays at the end of a tick."""
    return Firing(chosen, tick, ticks.last_moment(tick), np.zeros(len(chosen), bool), ticks.passed(tick))


def _next_of_key(key: Int64s, tick: Int64s, on_time: OnTime) -> Int64s:
    found = np.full(len(key), FOREVER_US)
    next_ticks(key, tick, on_time, found)
    return found


@kernel
def next_ticks(key: Int64s, tick: Int64s, on_time: OnTime, found: Int64s) -> None:
    """For each key and tick the first tick of this batch, from then on, that has an event of the key."""
    for i in range(len(key)):
        low, stop = on_time.starts[key[i]], on_time.starts[key[i] + 1]
        high = stop
        while low < high:
            middle = (low + high) >> 1
            if on_time.tick[middle] < tick[i] or on_time.tick[middle] == NEVER_US:
                low = middle + 1
            else:
                high = middle
        if low < stop:
            found[i] = on_time.tick[low]


@kernel
def latest_times(key: Int64s, tick: Int64s, on_time: OnTime, found: Int64s) -> None:
    """For each key and tick the time of the key's last event up to then."""
    for i in range(len(key)):
        start, high = on_time.starts[key[i]], on_time.starts[key[i] + 1]
        low = start
        while low < high:
            middle = (low + high) >> 1
            if on_time.tick[middle] <= tick[i]:
                low = middle + 1
            else:
                high = middle
        found[i] = on_time.ts_us[low - 1] if low > start else NEVER_US


def check_trigger(trigger: object) -> None:
    """Refuse what is no trigger."""
    if trigger not in (EAGER, LAZY) and not callable(trigger):
        rule = "be 'eager', 'lazy', or a function from late events to the times of their replay"
        raise InputError(must("trigger", rule, trigger, "e.g. trigger='lazy'"))


def times_wanted(trigger: Trigger, late: pa.RecordBatch) -> Int64s:
    """When the user's function wants late events to be replayed; FOREVER_US: not before the bound has passed."""
    if isinstance(trigger, str):
        return np.full(late.num_rows, FOREVER_US)
    wanted = _times_of(trigger(late))
    if isinstance(wanted, str) or len(wanted) != late.num_rows:
        rule, advice = "return one time per row", "e.g. pc.ceil_temporal(late['ts'], unit='day')"
        got = wanted if isinstance(wanted, str) else f"{len(wanted)} for {late.num_rows} rows"
        raise InputError(must("trigger", rule, got, advice))
    return np.minimum(int64_view(wanted.fill_null(FOREVER_US)), FOREVER_US)


def _times_of(given: Any) -> pa.Array | str:
    """Microseconds, or what was given instead of times."""
    try:
        column = given if isinstance(given, pa.Array | pa.ChunkedArray) else pa.array(given)
    except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError):
        return type(given).__name__
    kind = column.type
    if pa.types.is_timestamp(kind):
        whole = pc.CastOptions(target_type=pa.timestamp("us", kind.tz), allow_time_truncate=True)
        column = column.cast(options=whole).cast(pa.int64())
    elif pa.types.is_null(kind):
        column = column.cast(pa.int64())
    elif kind != pa.int64():
        return f"values of type {kind}"
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
