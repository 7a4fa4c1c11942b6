"""The machine of time travel for a query of the engine's own: it finds holes, holds rows, and gives rows for calls.

Which events count is decided by micro-batches. An event on time counts at once, and so does a late one that no given
result depends on. Others wait for the trigger, but no longer than until a result is given that depends on them: so
what is given for the first time has all that had come.

Invariants
1. What was given, and not voided, is the query on all events that count, for results that have closed.
2. Whatever a call needs for that is held: recent, in a context, or late itself.

Paper: TinTiN, section 6.5, Algorithm 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from latecomer.chunks import ChunkStore
from latecomer.codec import widened
from latecomer.contract import Machine, check_held
from latecomer.events import (
    FOREVER_US,
    NEVER_US,
    Bools,
    EventBatch,
    Int64s,
    Layout,
    concat_rows,
    int64_view,
    take_rows,
)
from latecomer.outputs import LATENESS, Output, refused
from latecomer.progress import Timeline
from latecomer.timetravel.engine_rows import Closed, Counting, slot_rows
from latecomer.timetravel.firing import forced_ticks
from latecomer.timetravel.key_history import Accepted, KeyHistory, MicroBatch, follow_events
from latecomer.timetravel.lazy_trigger import lazy_ticks
from latecomer.timetravel.machine import Arrived, end_of_stream, no_hole_output, with_role
from latecomer.timetravel.pending import Pending
from latecomer.timetravel.state import State, Stored
from latecomer.timetravel.tables import FIRE, LATE, RECENT, ROLE, Tables, buckets_of
from latecomer.timetravel.ticks import Ticks
from latecomer.timetravel.triggers import EAGER, LAZY, times_wanted

if TYPE_CHECKING:
    from latecomer.timetravel.engine_query import EngineTravel

CLOSED = "closed_us"


class Late(NamedTuple):
    """Late events that given results depend on and do not have yet: their rows, and what they wait for."""

    rows: pa.RecordBatch | None
    pending: Pending

    def take(self, chosen: Int64s) -> Late:
        """Some of them."""
        return Late(None if self.rows is None else take_rows(self.rows, chosen), self.pending.take(chosen))

    def joined(self, other: Late) -> Late:
        """These and others."""
        pending = Pending._make(np.concatenate(each) for each in zip(self.pending, other.pending, strict=True))
        return Late(_concat([self.rows, other.rows]), pending)


class EngineTraveller(Machine):
    """Runs EngineTravel settings."""

    def __init__(self, settings: EngineTravel, store: ChunkStore, layout: Layout) -> None:
        super().__init__(store, layout)
        self._settings, self._query = settings, settings.query
        self._state = State(store, settings, layout.time, layout.time)

    @property
    def held(self) -> int:
        """Events held: recent ones, contexts, and late ones that wait."""
        return self._state.events + self._state.waiting

    def punctuation(self, timeline: Timeline) -> int:
        return self._settings.punctuation(timeline)

    def push(self, batch: EventBatch, timeline: Timeline) -> Iterator[Output]:
        batch = EventBatch(widened(batch.rows), batch.layout)
        punctuation_us, mark_us = timeline.punctuation_before(batch.tick, 1), timeline.mark_before(batch.tick)
        too_late = (punctuation_us == FOREVER_US) | (batch.ts_us < mark_us - self._settings.bound_us)
        if too_late.any():
            yield from refused(batch, too_late, punctuation_us, timeline)
        behind = (batch.ts_us <= punctuation_us) & ~too_late
        on_time = batch.filter(~behind & ~too_late).sorted()
        arrived = Arrived(on_time, on_time.tick, batch.filter(behind).sorted())
        yield from self._run(arrived, timeline, step=0)
        if timeline.punctuation(1) == FOREVER_US:  # all sources have ended: nothing can be repaired any more
            yield from self.finish()
        check_held(self.held, self._settings.max_held)

    def finish(self) -> Iterator[Output]:
        yield from self._run(Arrived(), end_of_stream(self._state.mark_us), step=1)
        self._state.clear()

    def _run(self, arrived: Arrived, timeline: Timeline, step: int) -> Iterator[Output]:
        """A micro-batch, or the end of the stream after it: from the state before to the state after."""
        notes, query = self.store.notes, self._query
        closed = Closed(notes.get(CLOSED, NEVER_US), query.closed(timeline.punctuation(1)))
        stored, batch = self._load(arrived, timeline, closed)
        history = follow_events(batch)
        yield from no_hole_output(history.refused, timeline, 0)

        at_once, late = self._late(batch, stored.pending, history.accepted, closed)
        fires = self._fires(late.pending, history, Ticks(timeline, 0, history.arrival_tick), closed)
        fires |= step > 0  # the stream is over
        now, later = late.take(np.flatnonzero(fires)), late.take(np.flatnonzero(~fires))
        counting = self._counting(batch, stored.pending, at_once, now)
        if counting is not None:
            yield from slot_rows(counting, query, self._settings.reach.us, closed, step)
        self._state.save_history(batch, history._replace(accepted=self._together(at_once, now)), stored.holes)
        self._state.save_pending(later.pending, later.rows, batch.tables.buckets)
        self._state.put(stored.touched)
        notes[CLOSED] = closed.after_us

    def _load(self, arrived: Arrived, timeline: Timeline, closed: Closed) -> tuple[Stored, MicroBatch]:
        """Read what the micro-batch needs of the state, of all keys; late events that wait are last in its contexts."""
        late_us = np.zeros(0, dtype=np.int64) if arrived.late is None else arrived.late.ts_us
        rows = [events.rows for events in (arrived.on_time, arrived.late) if events is not None]
        came = [buckets_of(each, self.layout.key) for each in rows] or [np.zeros(0, dtype=np.uint32)]
        since_us = closed.before_us - self._query.before_us
        came.append(self._state.context_buckets(since_us))
        touched = self._state.touched(np.concatenate(came), FOREVER_US)
        stored = self._state.load(touched, late_us, int(timeline.punctuations(1)[0]), since_us)
        turn, late = np.argsort(arrived.turn, kind="stable"), arrived.late
        waiting = None if stored.pending is None else _without(stored.pending, FIRE)
        tables = {
            "recent": stored.recent,
            "on_time": with_role(arrived.on_time, turn, RECENT),
            "late": None if late is None else with_role(late, np.argsort(late.tick, kind="stable"), LATE),
            "long_holes": stored.long_holes,
            "contexts": _concat([stored.contexts.rows, waiting]),
            "holes": stored.holes.rows,
        }
        numbered = Tables(tables, self.layout.key)
        return stored, MicroBatch(numbered, arrived.turn[turn], timeline, self.layout, self._settings)

    def _late(
        self, batch: MicroBatch, waiting: pa.RecordBatch | None, accepted: Accepted | None, closed: Closed
    ) -> tuple[Accepted | None, Late]:
        """Late events that count at once, since no given result depends on them; and those that wait, with new ones."""
        none, time = np.zeros(0, dtype=np.int64), self.layout.time
        late = Late(None, Pending(*[none] * len(Pending._fields)))
        if waiting is not None:
            count = waiting.num_rows
            late = _waiting(
                waiting, batch.tables.key("contexts")[-count:], time, np.full((2, count), [[NEVER_US], [-1]])
            )
        if accepted is None or len(accepted.events) == 0:
            return None, late
        depend = accepted.events.ts_us - self._query.after_us < closed.before_us
        chosen, others = np.flatnonzero(depend), np.flatnonzero(~depend)
        at_once = Accepted(accepted.events.take(others), accepted.key[others], accepted.moment[others])
        events = accepted.events.take(chosen)
        rows = events.rows.append_column(FIRE, pa.array(self._wanted(events, batch.timeline)))
        came = np.stack([events.tick, accepted.moment[chosen]])
        return at_once, late.joined(_waiting(rows, accepted.key[chosen], time, came))

    def _wanted(self, events: EventBatch, timeline: Timeline) -> Int64s:
        """When late events are to count, by the mark; lazy: when it is not worth while to wait for their keys."""
        mark_us = timeline.mark_before(events.tick)
        if self._settings.trigger == LAZY:
            return mark_us + self._settings.pace_us
        lateness = pa.array(mark_us - events.ts_us)
        return times_wanted(self._settings.trigger, events.without(ROLE).user_rows.append_column(LATENESS, lateness))

    def _fires(self, pending: Pending, history: KeyHistory, ticks: Ticks, closed: Closed) -> Bools:
        """Which late events begin to count now for results that were given before."""
        settings, query = self._settings, self._query
        if settings.trigger == EAGER:
            return np.ones(len(pending.key), dtype=np.bool_)
        if settings.trigger == LAZY:
            tick = lazy_ticks(pending, history.on_time, ticks, settings.reach.us, settings.pace_us)
        else:
            tick = np.maximum(ticks.marked(pending.fire_us), pending.tick)
        tick = np.minimum(tick, forced_ticks(pending, settings.bound_us, ticks))
        last_us = np.minimum(pending.ts_us + query.before_us, closed.after_us)
        first_us = np.maximum(pending.ts_us - query.after_us, closed.before_us)
        return (tick < FOREVER_US) | (query.grid.starts(last_us) > first_us)

    def _counting(
        self, batch: MicroBatch, waiting: pa.RecordBatch | None, at_once: Accepted | None, now: Late
    ) -> Counting | None:
        """All events that are there and count, those that begin to count now last; None if there are none."""
        tables, stop = batch.tables, -waiting.num_rows if waiting is not None else None
        contexts, key = tables.get("contexts"), tables.key("contexts")[:stop]
        parts = [None if contexts is None else contexts.slice(0, len(key)), tables.get("recent"), tables.get("on_time")]
        keys = [key, tables.key("recent"), tables.key("on_time")]
        if at_once is not None:
            parts.append(at_once.events.rows)
            keys.append(at_once.key)
        before = sum(map(len, keys))
        rows = _concat([*parts, None if now.rows is None else _without(now.rows, FIRE)])
        if rows is None:
            return None
        events = EventBatch(_without(rows, ROLE), self.layout)
        new = np.arange(rows.num_rows) >= before
        return Counting(events, np.concatenate([*keys, now.pending.key]), new)

    def _together(self, at_once: Accepted | None, now: Late) -> Accepted | None:
        """The late events that count from now on."""
        parts = [None if at_once is None else at_once.events.rows]
        rows = _concat([*parts, None if now.rows is None else _without(now.rows, FIRE)])
        none = np.zeros(0, dtype=np.int64)
        key, moment = (none, none) if at_once is None else (at_once.key, at_once.moment)
        if rows is None:
            return None
        key, moment = np.append(key, now.pending.key), np.append(moment, now.pending.moment)
        return Accepted(EventBatch(rows, self.layout), key, moment)


def _waiting(rows: pa.RecordBatch, key: Int64s, time: str, came: Int64s) -> Late:
    """Late events of these keys, that came in a tick, at a moment: given results may change with all of them."""
    never, none = np.full(len(key), NEVER_US), np.zeros(len(key), dtype=np.int64)
    ts_us, fire_us = int64_view(rows.column(time)), int64_view(rows.column(FIRE))
    return Late(rows, Pending(key, ts_us, came[0], came[1], never, never, fire_us, none))


def _without(rows: pa.RecordBatch, name: str) -> pa.RecordBatch:
    return rows.select([each for each in rows.schema.names if each != name])


def _concat(parts: Iterable[pa.RecordBatch | None]) -> pa.RecordBatch | None:
    """Rows of those parts that have any."""
    there = [part for part in parts if part is not None and part.num_rows]
    return concat_rows(there) if there else None
