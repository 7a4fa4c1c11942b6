"""Rows in buckets of time: read where late events need them, of the keys that are touched, and removed when too old."""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter

import numpy as np
import pyarrow as pa

from latecomer._jit import kernel
from latecomer.chunks import Chunk, Store, small_groups
from latecomer.events import FOREVER_US, NEVER_US, Bools, Int64s, concat_rows, int64_view, sort_times, take_rows
from latecomer.search import lower_bound
from latecomer.timetravel.key_rows import Buckets, distinct
from latecomer.timetravel.tables import BUCKET, with_buckets

_DUE = "_lc_due"
_LONG_AGO_US = NEVER_US // 1_024  # what is due at once: numbers of buckets stay small, however narrow these are


@dataclass(frozen=True)
class Loaded:
    """Rows that were read, the bucket of each one's key, the chunk it is in, by number, and its place there."""

    rows: pa.RecordBatch | None
    bucket: Buckets
    chunk_of: Int64s
    place: Int64s
    chunks: list[Chunk]


class TimeBuckets:
    """Rows of a store in buckets of `width_us` by a time column."""

    def __init__(self, store: Store, time: str, width_us: int) -> None:
        self._store, self._time, self._width_us = store, time, width_us

    @property
    def rows(self) -> int:
        """How many there are."""
        return self._store.rows

    def load(
        self, touched: Buckets, points_us: Int64s, reach_us: tuple[int, int], since_us: int = FOREVER_US
    ) -> Loaded:
        """The rows of keys in some buckets: of all chunks that may have one from so long before a point to so long
        after it, or one since a time."""
        points_us = np.sort(points_us)
        chosen = [
            chunk
            for chunk in self._store.chunks
            if len(touched) and (chunk.ts_max_us >= since_us or _near(chunk, points_us, *reach_us))
        ]
        places: list[Int64s] = []

        def choose(rows: pa.RecordBatch) -> Int64s:
            places.append(places_among(touched, rows))
            return places[-1]

        parts = [self._store.read(chunk, choose) for chunk in chosen]
        none = np.zeros(0, dtype=np.int64)
        chunk_of = np.repeat(np.arange(len(parts)), [len(each) for each in places])
        place = np.concatenate([none, *places])
        if len(place) == 0:
            return Loaded(None, none.astype(np.uint32), chunk_of, place, chosen)
        rows = concat_rows([part for part in parts if part.num_rows])
        return Loaded(without_bucket(rows), rows.column(BUCKET).to_numpy(), chunk_of, place, chosen)

    def buckets(self, since_us: int) -> Buckets:
        """The buckets of keys that have rows in chunks with one since a time."""
        chosen = [chunk for chunk in self._store.chunks if chunk.ts_max_us >= since_us]
        none = np.zeros(0, dtype=np.uint32)
        return distinct(none, *(self._store.read(chunk).column(BUCKET).to_numpy() for chunk in chosen))

    def append(self, rows: pa.RecordBatch) -> None:
        """Store rows with the buckets of their keys, in any order."""
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
        for number in np.unique(loaded.chunk_of[changed | gone]).tolist():
            mine = loaded.chunk_of == number
            (whole,) = self._store.take([loaded.chunks[number]])
            others = np.ones(whole.num_rows, dtype=np.bool_)
            others[loaded.place[mine]] = False
            kept = np.flatnonzero(mine & ~gone)
            parts = [take_rows(whole, np.flatnonzero(others)), with_buckets(take_rows(rows, kept), loaded.bucket[kept])]
            self.append(concat_rows([part for part in parts if part.num_rows] or parts[:1]))

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


class Alarms:
    """When to look at buckets of keys again, whether these speak or not."""

    def __init__(self, store: Store, width_us: int) -> None:
        self._store, self._rows = store, TimeBuckets(store, _DUE, width_us)

    def set(self, bucket: Buckets, due_us: Int64s) -> None:
        """Look at buckets when the clock has come so far; never where that is FOREVER_US."""
        some = np.flatnonzero(due_us < FOREVER_US)
        rows = pa.RecordBatch.from_arrays([pa.array(np.maximum(due_us[some], _LONG_AGO_US))], names=[_DUE])
        self._rows.append(with_buckets(rows, bucket[some]))
        self._rows.unite()

    def due(self, clock_us: int) -> Buckets:
        """The buckets to look at when the clock has come so far; they are not told again."""
        found = [np.zeros(0, dtype=np.uint32)]
        for rows in list(self._store.take([chunk for chunk in self._store.chunks if chunk.ts_min_us <= clock_us])):
            due = int64_view(rows.column(_DUE)) <= clock_us
            found.append(rows.column(BUCKET).to_numpy()[due])
            self._rows.append(take_rows(rows, np.flatnonzero(~due)))
        return distinct(*found)


def without_bucket(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Stored rows without the buckets of their keys, which stand last."""
    return rows.select(rows.schema.names[:-1])


def places_among(touched: Buckets, rows: pa.RecordBatch) -> Int64s:
    """Which rows, in any order, are of keys in some buckets, which are in order."""
    bucket = rows.column(BUCKET).to_numpy()
    among = np.zeros(len(bucket), dtype=np.bool_)
    find_among(touched, bucket, np.zeros(1 << 16, dtype=np.bool_), among)
    return np.flatnonzero(among)


@kernel
def find_among(touched: Buckets, bucket: Buckets, beginnings: Bools, among: Bools) -> None:
    """The loop of `places_among`; a table of how buckets may begin answers for most."""
    for i in range(len(touched)):
        beginnings[touched[i] >> 16] = True
    for i in range(len(bucket)):
        if beginnings[bucket[i] >> 16]:
            at = lower_bound(touched, 0, len(touched), bucket[i])
            among[i] = at < len(touched) and touched[at] == bucket[i]


def _near(chunk: Chunk, points_us: Int64s, before_us: int, after_us: int) -> bool:
    first = int(np.searchsorted(points_us, chunk.ts_min_us - after_us))
    return first < len(points_us) and int(points_us[first]) - before_us <= chunk.ts_max_us
