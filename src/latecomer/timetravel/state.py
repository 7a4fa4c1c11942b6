"""What time travel stores between micro-batches, in parts of a store.

Contexts, holes and results lie in buckets of time: a micro-batch reads those its late events touch, and what is too old
is removed. Recent events, long holes, pending replays and young results lie by key: a micro-batch reads and writes
those of the keys that it touches, which have events in it or replays that may come.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from latecomer.chunks import Store
from latecomer.events import FOREVER_US, NEVER_US, Bools, Int64s, concat_rows, int64_view, take_rows
from latecomer.timetravel.comparison import Standing
from latecomer.timetravel.hole_tracking import mark_near
from latecomer.timetravel.holes import ALWAYS
from latecomer.timetravel.key_history import KeyHistory, MicroBatch
from latecomer.timetravel.key_rows import Buckets, KeyRows, distinct
from latecomer.timetravel.pending import Pending, next_clock
from latecomer.timetravel.repairs import Repairs
from latecomer.timetravel.tables import CONTEXT, FROM, HOLE_COLUMNS, ROLE, TO, Tables, with_buckets
from latecomer.timetravel.time_buckets import Alarms, Loaded, TimeBuckets, without_bucket

MARK, DUPLICATES, _EXPIRED = "mark_us", "duplicates", "expired"

_RECENT, _LONG_HOLES, _PENDING, _YOUNG = range(4)  # tables by key
_PARTS = 5
_BUCKETS = 16  # within the bound
_FEW = 10_000  # recent events: those that are too old are removed at once, and else at times


class Stored(NamedTuple):
    """What a micro-batch reads of the state: of the keys in buckets that it touches."""

    touched: Buckets
    recent: pa.RecordBatch | None
    long_holes: pa.RecordBatch | None  # longer than a bucket, or without an end
    pending: pa.RecordBatch | None
    young_results: pa.RecordBatch | None  # given when the key's own events had not come so far
    contexts: Loaded
    holes: Loaded
    results: Loaded


class State:
    """Recent events, contexts, holes, pending replays, and results that may change."""

    def __init__(self, store: Store, settings: Repairs, time: str, start: str) -> None:
        self._parts = [store.part(number, _PARTS) for number in range(_PARTS)]
        by_key, contexts, holes, results, alarms = self._parts
        self._settings, self._reach_us = settings, settings.reach.us
        self._width_us = max(self._reach_us, settings.bound_us // _BUCKETS)
        self._time, self._start = time, start  # the columns with the times of events and of results
        self._by_key = KeyRows(by_key, (self._event_times, self._hole_times, self._event_times, self._result_times))
        self._contexts = TimeBuckets(contexts, self._time, self._width_us)
        self._holes = TimeBuckets(holes, TO, self._width_us)
        self._results = TimeBuckets(results, self._start, self._width_us)
        self._alarms = Alarms(alarms, self._width_us)
        self._notes = store.notes
        self._new: list[list[pa.RecordBatch]] = [[] for _ in range(4)]  # rows to be put by key

    @property
    def events(self) -> int:
        """How many events are held."""
        return self._by_key.alive(_RECENT) + self._contexts.rows

    @property
    def waiting(self) -> int:
        """How many late events' replays are pending."""
        return self._by_key.alive(_PENDING)

    @property
    def mark_us(self) -> int:
        """The mark after the last micro-batch."""
        return self._notes.get(MARK, NEVER_US)

    def touched(self, arrived: Buckets, clock_us: int) -> Buckets:
        """The buckets of keys that a micro-batch touches: those of its events, and those with replays that may come.

        All of them where the clock has come to FOREVER_US.
        """
        due = self._alarms.due(clock_us)
        more = self._by_key.buckets() if clock_us == FOREVER_US else due
        return distinct(arrived, more)

    def context_buckets(self, since_us: int) -> Buckets:
        """The buckets of keys with contexts since a time: some have nothing else, as one whose only event was late."""
        return self._contexts.buckets(since_us)

    def load(
        self, touched: Buckets, late_us: Int64s, punctuation_us: int, contexts_since_us: int = FOREVER_US
    ) -> Stored:
        """Read what a micro-batch needs that has late events at these times and begins at this punctuation.

        Of contexts, those near late events, and all since a time. What it takes by key is to be saved again.
        """
        recent, long_holes, pending, young = (_plain(rows) for rows in self._by_key.take(touched))
        replayed_us, reach_us = np.append(_times(pending, self._time), late_us), self._reach_us
        results = self._results.load(touched, replayed_us, (reach_us, 0))
        results_us = [_times(young, self._start), _times(results.rows, self._start)]
        near_us, since_us = (reach_us, reach_us + self._width_us), punctuation_us - 2 * reach_us
        holes = self._holes.load(touched, np.concatenate([replayed_us, *results_us]), near_us, since_us)
        contexts = self._contexts.load(touched, replayed_us, (reach_us, reach_us), contexts_since_us)
        return Stored(touched, recent, self._open(long_holes), pending, young, contexts, holes, results)

    def look(self, buckets: Buckets, punctuation_us: int) -> Stored:
        """What tells which results of silent keys are final that live gives now; nothing is taken."""
        recent, long_holes, pending, _ = (_plain(rows) for rows in self._by_key.read(buckets))
        none = np.zeros(0, dtype=np.int64)
        holes = self._holes.load(buckets, none, (0, 0), punctuation_us - 2 * self._reach_us)
        nothing = Loaded(None, none.astype(np.uint32), none, none, [])
        return Stored(buckets, recent, self._open(long_holes), pending, None, nothing, holes, nothing)

    def save_results(self, loaded: Loaded, gone: Bools) -> None:
        """Remove those of the loaded results that are gone."""
        if loaded.rows is not None:
            self._results.update(loaded, loaded.rows, np.zeros(len(gone), dtype=np.bool_), gone)

    def add_results(self, results: Standing, bucket: Buckets, young: Bools) -> None:
        """Store new results that may change; young ones by key."""
        rows = with_buckets(results.rows, bucket[results.key])
        self._results.append(take_rows(rows, np.flatnonzero(~young)))
        self._new[_YOUNG].append(take_rows(rows, np.flatnonzero(young)))

    def count_duplicates(self, count: int) -> None:
        """Count results that replays gave as they were."""
        if count:
            self._notes[DUPLICATES] = self._notes.get(DUPLICATES, 0) + count

    def save_history(self, batch: MicroBatch, history: KeyHistory, holes: Loaded) -> None:
        """Store what a later replay may need, and remove what none can need any more."""
        mark_us = self._notes[MARK] = int(batch.timeline.mark_us[-1])
        self._save_events(history, batch.tables, mark_us - batch.settings.retention_us)
        self._save_holes(batch, history, holes)
        self._holes.expire(mark_us - batch.settings.bound_us)
        self._holes.unite()
        self._results.expire(mark_us - batch.settings.bound_us - self._reach_us + 1)
        self._results.unite()

    def save_pending(self, pending: Pending, rows: pa.RecordBatch | None, bucket: Buckets) -> None:
        """Store late events whose replay is pending."""
        if rows is not None:
            self._new[_PENDING].append(with_buckets(rows, bucket[pending.key]))
            self._alarms.set(bucket[pending.key], next_clock(pending, self._settings))

    def put(self, touched: Buckets) -> None:
        """Write what was saved by key, and remove what is too old."""
        self._by_key.put([concat_rows(parts) if parts else None for parts in self._new], touched)
        self._new = [[] for _ in self._new]
        self._expire()

    def clear(self) -> None:
        """Remove everything: the stream is over."""
        self._by_key.clear()
        for part in self._parts:
            part.drop(part.chunks)

    def _expire(self) -> None:
        """Remove what is too old by key: at once where there is little, else a sixteenth of the time later at most."""
        mark_us, bound_us = self.mark_us, self._settings.bound_us
        oldest_us = mark_us - self._settings.retention_us
        step = oldest_us // self._settings.removal_us
        if self._by_key.alive(_RECENT) > _FEW and self._notes.get(_EXPIRED) == step:
            return
        self._notes[_EXPIRED] = step
        self._by_key.expire((oldest_us, mark_us - bound_us, NEVER_US, mark_us - bound_us - self._reach_us + 1))

    def _save_events(self, history: KeyHistory, tables: Tables, oldest_us: int) -> None:
        """Store as contexts what lies near a hole; as recent each key's latest event and others within reach of it."""
        bucket = tables.buckets
        if history.events is not None:
            key, ts_us, rows = history.on_time.key, history.on_time.ts_us, take_rows(history.events.rows, history.order)
            place = rows.schema.get_field_index(ROLE)
            near = (rows.column(place).to_numpy() == CONTEXT) | (self._settings.holes.kind == ALWAYS)
            mark_near(key, ts_us, history.holes, self._reach_us, near)
            rows = rows.set_column(place, rows.schema.field(place), pa.array((near * CONTEXT).astype(np.int8)))
            rows = with_buckets(rows, bucket[key])
            last = np.append(key[1:] != key[:-1], True)
            recent = (ts_us > history.latest_us[key] - self._reach_us) & (~near | last)
            self._new[_RECENT].append(take_rows(rows, np.flatnonzero(recent & (ts_us >= oldest_us))))
            self._contexts.append(take_rows(rows, np.flatnonzero(~recent & near & (ts_us >= oldest_us))))
        if history.accepted is not None:
            self._contexts.append(with_buckets(history.accepted.events.rows, bucket[history.accepted.key]))
        self._contexts.expire(oldest_us)
        self._contexts.unite()

    def _save_holes(self, batch: MicroBatch, history: KeyHistory, loaded: Loaded) -> None:
        """Write the loaded holes that changed, add new and long ones, leave out those that nothing can fall into."""
        holes = history.holes.table
        columns = zip(HOLE_COLUMNS, holes[1:7], strict=True)
        rows = batch.tables.with_keys(holes.key, {name: pa.array(values) for name, values in columns})
        over = self._hole_times(rows) < self.mark_us - self._settings.bound_us
        in_buckets = (history.stored_as >= 0) & (history.stored_as < len(batch.tables.key("holes")))
        if loaded.rows is not None:
            places = np.flatnonzero(in_buckets)
            places = places[np.argsort(history.stored_as[places])]
            self._holes.update(loaded, take_rows(rows, places), holes.changed[places], over[places])
        self._add_holes(with_buckets(rows, batch.tables.buckets[holes.key]), ~in_buckets & ~over)

    def _add_holes(self, holes: pa.RecordBatch, chosen: Bools) -> None:
        from_us, to_us = int64_view(holes.column(FROM)), int64_view(holes.column(TO))
        long = (from_us == NEVER_US) | (to_us == FOREVER_US) | (to_us - from_us > self._width_us)
        self._new[_LONG_HOLES].append(take_rows(holes, np.flatnonzero(chosen & long)))
        self._holes.append(take_rows(holes, np.flatnonzero(chosen & ~long)))

    def _open(self, long_holes: pa.RecordBatch | None) -> pa.RecordBatch | None:
        """Those of the long holes that something could still fall into after the last micro-batch."""
        if long_holes is None:
            return None
        left = self._hole_times(long_holes) >= self.mark_us - self._settings.bound_us
        return take_rows(long_holes, np.flatnonzero(left))

    def _event_times(self, rows: pa.RecordBatch) -> Int64s:
        return int64_view(rows.column(self._time))

    def _result_times(self, rows: pa.RecordBatch) -> Int64s:
        return int64_view(rows.column(self._start))

    def _hole_times(self, rows: pa.RecordBatch) -> Int64s:
        """When the mark is further than the bound past this, nothing can fall into a hole: its end.

        One without an end is over with the event that it begins with, or if it begins with none.
        """
        from_us, to_us = int64_view(rows.column(FROM)), int64_view(rows.column(TO))
        held_us = self._settings.retention_us - self._settings.bound_us
        return np.where(to_us == FOREVER_US, np.where(from_us == NEVER_US, NEVER_US, from_us + held_us), to_us)


def _times(rows: pa.RecordBatch | None, name: str) -> Int64s:
    return np.zeros(0, dtype=np.int64) if rows is None else int64_view(rows.column(name))


def _plain(rows: pa.RecordBatch | None) -> pa.RecordBatch | None:
    return None if rows is None else without_bucket(rows)
