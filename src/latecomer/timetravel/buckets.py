"""Rows of the past in a store, in buckets of time: read where they are needed, removed when their time is over."""

from __future__ import annotations

from dataclasses import dataclass
from operator import attrgetter

import numpy as np
import pyarrow as pa

from latecomer.chunks import Chunk, Store, small_groups
from latecomer.events import FOREVER_US, Bools, Int64s, concat_rows, int64_view, sort_times, take_rows


@dataclass(frozen=True)
class Loaded:
    """Rows that were read, and the number of the chunk that each is in."""

    rows: pa.RecordBatch | None
    chunks: list[Chunk]

    @property
    def chunk_of(self) -> Int64s:
        """Which chunk each row is in."""
        return np.repeat(np.arange(len(self.chunks)), [chunk.rows for chunk in self.chunks])


class Buckets:
    """Rows in buckets of `width_us` by a time column."""

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
        """Keep rows, in any order."""
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
