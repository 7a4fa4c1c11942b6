"""When a late event makes its context be replayed: at once, at the key's next event, or when the user says.

Nothing is replayed for good before the live instance has given all results that the late event touches: until then it
would give them again, without it. What is still pending when the bound has passed is replayed by force.

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
from latecomer.events import FOREVER_US, NEVER_US, Bools, Int64s, concat_rows, int64_view
from latecomer.outputs import LATENESS
from latecomer.progress import Timeline
from latecomer.search import lower_bound
from latecomer.timetravel.key_history import Accepted, MicroBatch, OnTime
from latecomer.timetravel.tables import FIRE, FIRED, GroupedTimes

EAGER, LAZY = "eager", "lazy"

Trigger = str | Callable[[pa.RecordBatch], Any]

_DONE = FOREVER_US + 1  # instead of the tick of the last replay: it was replayed for good already


class Pending(NamedTuple):
    """Late events whose contexts are not replayed for good."""

    key: Int64s
    ts_us: Int64s
    tick: Int64s  # in which it came; NEVER_US if before this batch
    moment: Int64s  # its place among the events of this batch; -1 if before
    fire_us: Int64s  # when the user wants it, by the mark
    fired: Int64s  # 1 if it was, too early


class Firing(NamedTuple):
    """Replays of single late events: which of those pending, in which tick, at which moment, how far live has come."""

    pending: Int64s
    tick: Int64s
    moment: Int64s
    at_once: Bools
    passed_us: Int64s


class Contexts(NamedTuple):
    """What is replayed: per context the key, the moment, how far live has come, and its late events."""

    key: Int64s
    tick: Int64s
    moment: Int64s
    at_once: Bools
    passed_us: Int64s
    late: GroupedTimes

    def __len__(self) -> int:
        return len(self.key)


class Ticks:
    """The ticks of a batch: which is the first after which something holds.

    The live instance gives the results of a time when its input has come `wait_us` beyond it; `arrival_tick` has the
    ticks of all events, in order.
    """

    def __init__(self, timeline: Timeline, wait_us: int, arrival_tick: Int64s) -> None:
        self._timeline, self._wait_us, self._arrival_tick = timeline, wait_us, arrival_tick
        self._punctuation_us = timeline.punctuations(1)

    @property
    def last(self) -> int:
        """The last of them."""
        return int(self._timeline.tick[-1])

    @property
    def end(self) -> int:
        """The tick after which nothing comes any more."""
        ended = np.flatnonzero(self._punctuation_us == FOREVER_US)
        return int(self._timeline.tick[ended[0]]) if len(ended) else FOREVER_US

    def complete(self, ts_us: Int64s) -> Int64s:
        """After which tick the live instance has given all results up to a time."""
        return self._first(self._punctuation_us, ts_us + self._wait_us)

    def marked(self, ts_us: Int64s) -> Int64s:
        """After which tick the mark has come so far."""
        return self._first(self._timeline.mark_us, ts_us)

    def passed(self, tick: Int64s) -> Int64s:
        """Up to where the live instance has given results after a tick."""
        return self._passed(self._punctuation_us[self._place(tick)])

    def passed_before(self, tick: Int64s) -> Int64s:
        """The same before it."""
        return self._passed(self._timeline.punctuation_before(tick, 1))

    def last_moment(self, tick: Int64s) -> Int64s:
        """The place of the last event of a tick."""
        return np.searchsorted(self._arrival_tick, tick, side="right") - 1

    def mark_before(self, tick: Int64s) -> Int64s:
        """The mark before a tick."""
        return self._timeline.mark_before(tick)

    def mark_after(self, tick: Int64s) -> Int64s:
        """The mark after a tick."""
        return self._timeline.mark_us[self._place(tick)]

    def _place(self, tick: Int64s) -> Int64s:
        return np.searchsorted(self._timeline.tick, tick, side="right") - 1

    def _first(self, values: Int64s, wanted: Int64s) -> Int64s:
        return np.append(self._timeline.tick, FOREVER_US)[np.searchsorted(values, wanted, side="left")]

    def _passed(self, punctuation_us: Int64s) -> Int64s:
        ends = (punctuation_us == NEVER_US) | (punctuation_us == FOREVER_US)
        return np.where(ends, punctuation_us, punctuation_us - self._wait_us)


def pending_replays(batch: MicroBatch, accepted: Accepted | None) -> tuple[Pending, pa.RecordBatch | None]:
    """The late events whose replay is pending, those of before and those accepted now; and their rows for the state."""
    tables, time, rows = batch.tables, batch.layout.time, batch.tables.get("pending")
    before = len(tables.key("pending"))
    columns = (tables.column("pending", FIRE), tables.column("pending", FIRED))
    old = (tables.key("pending"), tables.column("pending", time), np.full(before, NEVER_US), np.full(before, -1))
    parts = [Pending(*old, *columns)]
    if accepted is not None and len(accepted.events):
        events, fired = accepted.events, np.zeros(len(accepted.events), dtype=np.int64)
        lateness = pa.array(batch.timeline.mark_before(events.tick) - events.ts_us)
        fire_us = times_wanted(batch.settings.trigger, events.user_rows.append_column(LATENESS, lateness))
        parts.append(Pending(accepted.key, events.ts_us, events.tick, accepted.moment, fire_us, fired))
        new = events.rows.select([*batch.layout.key, time])
        new = new.append_column(FIRE, pa.array(fire_us)).append_column(FIRED, pa.array(fired))
        rows = new if rows is None else concat_rows([rows, new])
    return Pending._make(np.concatenate(each) for each in zip(*parts, strict=True)), rows


def fire(
    trigger: Trigger, pending: Pending, on_time: OnTime, ticks: Ticks, bound_us: int, *, ending: bool
) -> tuple[Firing, Bools]:
    """What is replayed in this batch, in the order of processing; and which of the events are still pending.

    At the end of the stream all are replayed.
    """
    complete = np.maximum(ticks.complete(pending.ts_us), pending.tick)
    force = np.maximum(np.minimum(ticks.marked(pending.ts_us + (bound_us + 1)), ticks.end), pending.tick)
    early = _at_end(complete[:0], complete[:0], ticks)
    if ending:
        last = np.full(len(pending.key), ticks.last)
    elif trigger == EAGER:
        early, last = _replays_at_once(pending, complete, ticks)
    elif trigger == LAZY:
        last = np.minimum(_next_of_key(pending.key, complete, on_time), force)
    else:
        early, last = _replays_wanted(pending, complete, force, ticks)
    chosen = np.flatnonzero(last < FOREVER_US)
    parts = (early, _at_end(chosen, last[chosen], ticks))
    both = Firing._make(np.concatenate(columns) for columns in zip(*parts, strict=True))
    ts_us, key = pending.ts_us[both.pending], pending.key[both.pending]
    order = np.lexsort((ts_us, key, ~both.at_once, both.moment, both.tick))
    return Firing._make(column[order] for column in both), last == FOREVER_US


def _replays_at_once(pending: Pending, complete: Int64s, ticks: Ticks) -> tuple[Firing, Int64s]:
    """Eager: replays of late events as they come, and the tick of the last replay of each."""
    new = np.flatnonzero(pending.moment >= 0)
    passed_us, last = ticks.passed_before(pending.tick[new]), complete.copy()
    last[new[passed_us >= pending.ts_us[new]]] = _DONE
    return Firing(new, pending.tick[new], pending.moment[new], np.ones(len(new), bool), passed_us), last


def _replays_wanted(pending: Pending, complete: Int64s, force: Int64s, ticks: Ticks) -> tuple[Firing, Int64s]:
    """The user's times: replays that come before live has given all, and the tick of the last replay of each."""
    wanted = np.minimum(np.maximum(ticks.marked(pending.fire_us), pending.tick), force)
    wanted = np.where(pending.fired > 0, FOREVER_US, wanted)
    early = np.flatnonzero(wanted < complete)
    last = np.where((pending.fired > 0) | (wanted < complete), complete, wanted)
    return _at_end(early, wanted[early], ticks), last


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
        stop = on_time.starts[key[i] + 1]
        first = lower_bound(on_time.tick, on_time.starts[key[i]], stop, max(tick[i], NEVER_US + 1))
        if first < stop:
            found[i] = on_time.tick[first]


def unite_contexts(firing: Firing, pending: Pending, reach_us: int) -> Contexts:
    """One context for the late events of a key that are replayed at the end of a tick, as far as theirs overlap."""
    key, late_us = pending.key[firing.pending], pending.ts_us[firing.pending]
    new = np.ones(len(key), dtype=np.bool_)
    alike = ~firing.at_once[1:] & ~firing.at_once[:-1] & (firing.tick[1:] == firing.tick[:-1]) & (key[1:] == key[:-1])
    new[1:] = ~(alike & (late_us[1:] - late_us[:-1] < 2 * reach_us))
    first = np.flatnonzero(new)
    late = GroupedTimes(late_us, np.append(first, len(key)))
    tick, moment, at_once = firing.tick[first], firing.moment[first], firing.at_once[first]
    return Contexts(key[first], tick, moment, at_once, firing.passed_us[first], late)


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
