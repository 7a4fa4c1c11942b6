"""The rows that a join keeps: a run of its store for each source, and one for rows that only count as read.

A push reads the chunks that its rows can reach. Whole chunks leave without being read when their time has come.

Invariants
1. After a push the store has no row up to `gone_us`: such rows can find no partner, or have been kept long enough.
2. Chunks are sorted by time; rows of one time are in the order they were read in, which `_lc_read` tells.
3. Rows that can find no partner any more, since their key has read on, leave when they are half of a chunk that is
   read; and all chunks are read when the store has grown to twice the rows that it had when they last were.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from latecomer.chunks import Chunk, Store, small_groups
from latecomer.events import NEVER_US, Bools, Int64s, concat_rows, int64_view, order_by, take_rows

READ = "_lc_read"
_GONE, _READ, _SWEPT = "gone_us", "rows_read", "rows_after_sweep"
_FEW = 1 << 16  # rows that need not be looked at


class Kept(NamedTuple):
    """Rows of one run that a push can reach: the chunks they are in, one after the other, and their rows together."""

    chunks: list[Chunk]
    rows: pa.RecordBatch


class JoinState:
    """The rows of a join in a store."""

    def __init__(self, store: Store, time: str) -> None:
        self._store, self._time = store, time

    @property
    def gone_us(self) -> int:
        """Rows up to this time have left."""
        return self._store.notes.get(_GONE, NEVER_US)

    def number(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Rows with their place in the order of reading, as a last column."""
        first = self._store.notes.get(_READ, 0)
        self._store.notes[_READ] = first + rows.num_rows
        return rows.append_column(READ, pa.array(np.arange(first, first + rows.num_rows)))

    def ts_us(self, rows: pa.RecordBatch) -> Int64s:
        """The times of rows, a view."""
        return int64_view(rows.column(self._time))

    def near(self, run: int, ts_us: Int64s, within_us: int, like: pa.RecordBatch) -> Kept:
        """The rows of chunks that reach so near to any of these times, which ascend; with the columns of others."""
        chunks = []
        for chunk in self._chunks(run):
            first, after = np.searchsorted(ts_us, [chunk.ts_min_us - within_us, chunk.ts_max_us + within_us + 1])
            if first < after:
                chunks.append(chunk)
        return self._read(chunks, like)

    def since(self, run: int, from_us: int, like: pa.RecordBatch) -> Kept:
        """The rows of chunks that reach a time, with the columns of others."""
        return self._read([chunk for chunk in self._chunks(run) if chunk.ts_max_us >= from_us], like)

    @property
    def sweeps(self) -> bool:
        """Whether the store has grown so much that all chunks are to be looked at."""
        return self._store.rows > 2 * self._store.notes.get(_SWEPT, 0) + _FEW

    def swept(self) -> None:
        """All chunks have been looked at."""
        self._store.notes[_SWEPT] = self._store.rows

    def drop(self, kept: Kept, dead: Bools) -> None:
        """Let go rows that can find no partner, where they are half of their chunk."""
        start, rests = 0, []
        for chunk in kept.chunks:
            alive = start + np.flatnonzero(~dead[start : start + chunk.rows])
            start += chunk.rows
            if 2 * len(alive) <= chunk.rows:
                self._store.drop([chunk])
                rests.append(take_rows(kept.rows, alive))
        if rests:
            self.append(kept.chunks[0].run, rests)

    def append(self, run: int, parts: Sequence[pa.RecordBatch]) -> None:
        """Keep rows together, in order of time."""
        rows = concat_rows(parts)
        order = order_by(self.ts_us(rows), int64_view(rows.column(READ)))
        rows = take_rows(rows, order)
        self._store.append(rows, self.ts_us(rows), run)

    def leave(self, gone_us: int) -> None:
        """Let rows up to a time go; of chunks that they are a part of, the rest is put anew."""
        self._store.notes[_GONE] = gone_us
        touched = [chunk for chunk in self._store.chunks if chunk.ts_min_us <= gone_us]
        self._store.drop(chunk for chunk in touched if chunk.ts_max_us <= gone_us)
        cut = [chunk for chunk in touched if chunk.ts_max_us > gone_us]
        for run in sorted({chunk.run for chunk in cut}):
            taken = self._store.take([chunk for chunk in cut if chunk.run == run])
            self.append(run, [rows.slice(self._count(rows, gone_us)) for rows in taken])
        for run in sorted({chunk.run for chunk in self._store.chunks}):
            for group in small_groups(self._chunks(run)):
                self.append(run, list(self._store.take(group)))

    def _count(self, rows: pa.RecordBatch, upto_us: int) -> int:
        """How many rows of a chunk are not later than a time."""
        return int(np.searchsorted(self.ts_us(rows), upto_us, side="right"))

    def _chunks(self, run: int) -> list[Chunk]:
        return [chunk for chunk in self._store.chunks if chunk.run == run]

    def _read(self, chunks: list[Chunk], like: pa.RecordBatch) -> Kept:
        return Kept(chunks, concat_rows([*(self._store.read(chunk) for chunk in chunks), like.slice(0, 0)]))
