"""What time travel stores between micro-batches, in parts of a store.

Contexts, holes and results lie in buckets of time: a micro-batch reads those its late events touch, and what is too old
is removed. Recent events, long holes, pending replays and young results are read and written by every micro-batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from latecomer.chunks import Chunk, Store, small_groups
from latecomer.events import (
    FOREVER_US,
    NEVER_US,
    Bools,
    Int64s,
    concat_rows,
    int64_view,
    sort_times,
    take_rows,
)
from latecomer.timetravel.hole_tracking import mark_near
from latecomer.timetravel.holes import ALWAYS
from latecomer.timetravel.key_history import KeyHistory, MicroBatch
from latecomer.timetravel.repairs import Repairs
from latecomer.timetravel.tables import CONTEXT, FROM, HOLE_COLUMNS, ROLE, TO

MARK, DUPLICATES = "mark_us", "duplicates"

_PARTS = 7
_BUCKETS = 16  # within the bound


@dataclass(frozen=True)
class Loaded:
    """Rows that were read, and the chunks they are in."""

    rows: pa.RecordBatch | None
    chunks: list[Chunk]

    @property
    def chunk_of(self) -> Int64s:
        """Which chunk each row is in."""
        return np.repeat(np.arange(len(self.chunks)), [chunk.rows for chunk in self.chunks])


class Stored(NamedTuple):
    """What a micro-batch reads of the state."""

    recent: pa.RecordBatch | None
    pending: pa.RecordBatch | None
    long_holes: pa.RecordBatch | None  # longer than a bucket, or without an end
    young_results: pa.RecordBatch | None  # given when the key's own events had not come so far
    contexts: Loaded
    holes: Loaded
    results: Loaded


class State:
    """Recent events, contexts, holes, pending replays, and results that may change."""

    def __init__(self, store: Store, settings: Repairs, time: str, start: str) -> None:
        self._parts = [store.part(number, _PARTS) for number in range(_PARTS)]
        self._recent, contexts, holes, self._long_holes, self._pending, self._young_results, results = self._parts
        self._reach_us, self._all_near = settings.reach.us, settings.holes.kind == ALWAYS
        self._width_us = max(self._reach_us, settings.bound_us // _BUCKETS)
        self._time, self._start = time, start  # the columns with the times of events and of results
        self._contexts = Buckets(contexts, self._time, self._width_us)
        self._holes = Buckets(holes, TO, self._width_us)
        self._results = Buckets(results, self._start, self._width_us)
        self._notes = store.notes

    @property
    def events(self) -> int:
        """How many events are held."""
        return self._recent.rows + self._contexts.rows

    @property
    def waiting(self) -> int:
        """How many late events' replays are pending."""
        return self._pending.rows

    @property
    def mark_us(self) -> int:
        """The mark after the last micro-batch."""
        return self._notes.get(MARK, NEVER_US)

    def load(self, late_us: Int64s, punctuation_us: int, contexts_since_us: int = FOREVER_US) -> Stored:
        """Read what a micro-batch needs that has late events at these times and begins at this punctuation.

        Of contexts, those near late events, and all since a time.
        """
        pending, young = _take_all(self._pending), _take_all(self._young_results)
        replayed_us = np.append(_times(pending, self._time), late_us)
        results = self._results.load(replayed_us, self._reach_us, 0)
        results_us = [_times(young, self._start), _times(results.rows, self._start)]
        holes_us, since_us = np.concatenate([replayed_us, *results_us]), punctuation_us - 2 * self._reach_us
        return Stored(
            recent=_take_all(self._recent),
            pending=pending,
            long_holes=_take_all(self._long_holes),
            young_results=young,
            contexts=self._contexts.load(replayed_us, self._reach_us, self._reach_us, contexts_since_us),
            holes=self._holes.load(holes_us, self._reach_us, self._reach_us + self._width_us, since_us),
            results=results,
        )

    def save_results(self, loaded: Loaded, gone: Bools, new: pa.RecordBatch, young: pa.RecordBatch) -> None:
        """Store new results that may change, and remove those of the loaded ones that are gone."""
        if loaded.rows is not None:
            self._results.update(loaded, loaded.rows, np.zeros(len(gone), dtype=np.bool_), gone)
        self._results.append(new)
        _put(self._young_results, young, self._start)

    def count_duplicates(self, count: int) -> None:
        """Count results that replays gave as they were."""
        if count:
            self._notes[DUPLICATES] = self._notes.get(DUPLICATES, 0) + count

    def save_history(self, batch: MicroBatch, history: KeyHistory, holes: Loaded) -> None:
        """Store what a later replay may need, and remove what none can need any more."""
        mark_us = self._notes[MARK] = int(batch.timeline.mark_us[-1])
        self._save_events(history, mark_us - batch.settings.retention_us)
        self._save_holes(batch, history, holes)
        self._holes.expire(mark_us - batch.settings.bound_us)
        self._holes.unite()
        self._results.expire(mark_us - batch.settings.bound_us - self._reach_us + 1)
        self._results.unite()

    def _save_events(self, history: KeyHistory, oldest_us: int) -> None:
        """Store as contexts what lies near a hole; as recent each key's latest event and others within reach of it."""
        if history.events is not None:
            key, ts_us, rows = history.on_time.key, history.on_time.ts_us, take_rows(history.events.rows, history.order)
            place = rows.schema.get_field_index(ROLE)
            near = (rows.column(place).to_numpy() == CONTEXT) | self._all_near
            mark_near(key, ts_us, history.holes, self._reach_us, near)
            rows = rows.set_column(place, rows.schema.field(place), pa.array((near * CONTEXT).astype(np.int8)))
            last = np.append(key[1:] != key[:-1], True)
            recent = (ts_us > history.latest_us[key] - self._reach_us) & (~near | last)
            _put(self._recent, take_rows(rows, np.flatnonzero(recent & (ts_us >= oldest_us))), self._time)
            self._contexts.append(take_rows(rows, np.flatnonzero(~recent & near & (ts_us >= oldest_us))))
        if history.accepted is not None:
            self._contexts.append(history.accepted.events.rows)
        self._contexts.expire(oldest_us)
        self._contexts.unite()

    def _save_holes(self, batch: MicroBatch, history: KeyHistory, loaded: Loaded) -> None:
        """Write the loaded holes that changed, add new and long ones, leave out those that nothing can fall into."""
        holes, mark_us = history.holes.table, int(batch.timeline.mark_us[-1])
        over = holes.to_us < mark_us - batch.settings.bound_us
        forgotten = (holes.from_us == NEVER_US) | (holes.from_us < mark_us - batch.settings.retention_us)
        over |= (holes.to_us == FOREVER_US) & forgotten
        columns = zip(HOLE_COLUMNS, holes[1:7], strict=True)
        rows = batch.tables.with_keys(holes.key, {name: pa.array(values) for name, values in columns})
        in_buckets = (history.stored_as >= 0) & (history.stored_as < len(batch.tables.key("holes")))
        if loaded.rows is not None:
            places = np.flatnonzero(in_buckets)
            places = places[np.argsort(history.stored_as[places])]
            self._holes.update(loaded, take_rows(rows, places), holes.changed[places], over[places])
        self._add_holes(take_rows(rows, np.flatnonzero(~in_buckets & ~over)))

    def _add_holes(self, holes: pa.RecordBatch) -> None:
        from_us, to_us = int64_view(holes.column(FROM)), int64_view(holes.column(TO))
        long = (from_us == NEVER_US) | (to_us == FOREVER_US) | (to_us - from_us > self._width_us)
        _put(self._long_holes, take_rows(holes, np.flatnonzero(long)), TO)
        self._holes.append(take_rows(holes, np.flatnonzero(~long)))

    def save_pending(self, rows: pa.RecordBatch | None) -> None:
        """Store late events whose replay is pending."""
        if rows is not None:
            _put(self._pending, rows, self._time)

    def clear(self) -> None:
        """Remove everything: the stream is over."""
        for part in self._parts:
            part.drop(part.chunks)


class Buckets:
    """Rows of a store in buckets of `width_us` by a time column: read where they are needed, removed when too old."""

    def __init__(self, store: Store, time: str, width_us: int) -> None:
        self._store, self._time, self._width_us = store, time, width_us

    @property
    def rows(self) -> int:
        """How many there are."""
        return self._store.rows

    def load(self, points_us: Int64s, before_us: int, after_us: int, since_us: int = FOREVER_US) -> Loaded:
        """The rows of all chunks that may have one from `before` a point to `after` it, or one since a time."""
        points_us = np.sort(points_us)
        chosen = [
            chunk
            for chunk in self._store.chunks
            if chunk.ts_max_us >= since_us or _near(chunk, points_us, before_us, after_us)
        ]
        rows = [self._store.read(chunk) for chunk in chosen]
        return Loaded(concat_rows(rows) if rows else None, chosen)

    def append(self, rows: pa.RecordBatch) -> None:
        """Store rows, in any order."""
        if rows.num_rows == 0:
            return
        ts_us, order = sort_times(int64_view(rows.column(self._time)))
        rows = take_rows(rows, order)
        bucket = ts_us // self._width_us
        starts = np.flatnonzero(np.diff(bucket, prepend=bucket[0] - 1))
        for start, stop in zip(starts.tolist(), [*starts[1:].tolist(), len(ts_us)], strict=True):
            self._store.append(rows.slice(start, stop - start), ts_us[start:stop], int(bucket[start]))

    def update(self, loaded: Loaded, rows: pa.RecordBatch, changed: Bools, gone: Bools) -> None:
        """Write what changed of rows that were loaded, and leave out those that are gone."""
        touched = np.unique(loaded.chunk_of[changed | gone])
        self._store.drop(loaded.chunks[number] for number in touched.tolist())
        self.append(take_rows(rows, np.flatnonzero(np.isin(loaded.chunk_of, touched) & ~gone)))

    def expire(self, before_us: int) -> None:
        """Remove the rows before a time."""
        self._store.drop(chunk for chunk in self._store.chunks if chunk.ts_max_us < before_us)
        cut = [chunk for chunk in self._store.chunks if chunk.ts_min_us < before_us]
        for rows in list(self._store.take(cut)):
            self.append(take_rows(rows, np.flatnonzero(int64_view(rows.column(self._time)) >= before_us)))

    def unite(self) -> None:
        """Many small chunks of a bucket become one."""
        for group in small_groups(self._store.chunks, attrgetter("run")):
            self.append(concat_rows(list(self._store.take(group))))


def _near(chunk: Chunk, points_us: Int64s, before_us: int, after_us: int) -> bool:
    first = int(np.searchsorted(points_us, chunk.ts_min_us - after_us))
    return first < len(points_us) and int(points_us[first]) - before_us <= chunk.ts_max_us


def _times(rows: pa.RecordBatch | None, name: str) -> Int64s:
    return np.zeros(0, dtype=np.int64) if rows is None else int64_view(rows.column(name))


def _take_all(store: Store) -> pa.RecordBatch | None:
    """Read all rows of a part, and remove them."""
    rows = list(store.take(store.chunks))
    return concat_rows(rows) if rows else None


def _put(store: Store, rows: pa.RecordBatch, time: str) -> None:
    """Store rows in the order of their times."""
    if rows.num_rows:
        ts_us, order = sort_times(int64_view(rows.column(time)))
        store.append(take_rows(rows, order), ts_us, compressed=True)
