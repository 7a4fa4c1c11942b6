"""The rows that may still get a late one before them, with the state before each, or before some of them.

Rows are stored in chunks, each of one group of keys and one stretch of time, an eighth of the bound. A late row needs
the chunks of its group from its stretch on; a stretch that the punctuation has passed is dropped unread.

Invariants
1. The first row of a key in a chunk has its state. So a row of a chunk never needs an older chunk to be run again.
2. Chunks of a stretch stay until the punctuation has passed the whole of it: no row between two that are stored is
   missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from latecomer.chunks import CHUNK_BYTES, Chunk, Store, magnitude, small_groups
from latecomer.events import (
    FOREVER_US,
    NEVER_US,
    Int64s,
    Stretches,
    concat_rows,
    int64_view,
    order_by,
    sort_times,
    take_rows,
)

_PARTS = 8  # of the bound


class Past(NamedTuple):
    """Stored rows with their states, the number of the chunk that each is in, and its place there."""

    rows: pa.RecordBatch
    chunk: Int64s
    place: Int64s
    chunks: list[Chunk]

    @property
    def group(self) -> Int64s:
        """The group of each row's key."""
        return np.array([chunk.run for chunk in self.chunks], dtype=np.int64)[self.chunk]

    @property
    def names(self) -> Int64s:
        """A number for each row that no other stored row has."""
        number = np.array([chunk.number for chunk in self.chunks], dtype=np.int64)
        return (number[self.chunk] << 32) | self.place

    def take(self, chosen: Int64s) -> Past:
        """Some of the rows."""
        return Past(take_rows(self.rows, chosen), self.chunk[chosen], self.place[chosen], self.chunks)


class Piece(NamedTuple):
    """Rows that become a chunk: their places, in order of time, and the group of their keys."""

    places: Int64s
    group: int


class History:
    """Stored rows of all keys."""

    def __init__(self, store: Store, time: str, bound_us: int) -> None:
        self._store, self._time = store, time
        self.stretches = Stretches(max(1, bound_us // _PARTS))

    @property
    def rows(self) -> int:
        """How many rows are stored."""
        return self._store.rows

    def load(self, group: Int64s, from_us: Int64s) -> Past | None:
        """The rows of some groups, each from the stretch of a time on."""
        first_us = dict(zip(group.tolist(), self.stretches.starts(from_us).tolist(), strict=True))
        return self._read([chunk for chunk in self._store.chunks if chunk.ts_max_us >= first_us.get(chunk.run, 2**63)])

    def load_near(self, group: Int64s, from_us: Int64s, upto_us: Int64s) -> Past | None:
        """The rows of the chunks that reach into what is asked for: a group, and a time up to another, each."""
        least_us, most_us = np.full(int(group.max()) + 1, FOREVER_US), np.full(int(group.max()) + 1, NEVER_US)
        np.minimum.at(least_us, group, from_us)
        np.maximum.at(most_us, group, upto_us)
        near = [chunk for chunk in self._store.chunks if chunk.run < len(least_us)]
        return self._read([c for c in near if c.ts_max_us >= least_us[c.run] and c.ts_min_us <= most_us[c.run]])

    def between(self, after_us: int, upto_us: int) -> Past | None:
        """The rows of the stretches that hold what lies after a time and up to another."""
        first_us = after_us if after_us == NEVER_US else int(self.stretches.starts(np.array([after_us + 1]))[0])
        return self._read(
            [chunk for chunk in self._store.chunks if chunk.ts_max_us >= first_us and chunk.ts_min_us <= upto_us]
        )

    def _read(self, chosen: list[Chunk]) -> Past | None:
        if not chosen:
            return None
        parts = [self._store.read(chunk) for chunk in chosen]
        sizes = [part.num_rows for part in parts]
        place = np.concatenate([np.arange(size) for size in sizes])
        return Past(concat_rows(parts), np.repeat(np.arange(len(chosen)), sizes), place, chosen)

    def cut(self, ts_us: Int64s, group: Int64s, row_bytes: int) -> Iterator[Piece]:
        """Cut rows that are in order of time into pieces of one group and stretch, none much larger than a chunk.

        Rows of one time stay together: equal ones are told apart by their places in a chunk.
        """
        most = max(1, CHUNK_BYTES // max(1, row_bytes))
        stretch = self.stretches.starts(ts_us)
        stretch = (stretch - stretch[0]) // self.stretches.length_us  # times are in order: the first is the least
        number = group * (int(stretch[-1]) + 1) + stretch
        order = order_by(number)
        ends = np.flatnonzero(np.diff(number[order])) + 1
        for places in np.split(order, ends):
            start, times = 0, ts_us[places]
            while start < len(places):
                last_us = times[min(start + most, len(places)) - 1]
                stop = int(np.searchsorted(times, last_us, side="right"))
                yield Piece(places[start:stop], int(group[places[0]]))
                start = stop

    def append(self, rows: pa.RecordBatch, group: int) -> None:
        """Store rows of one group and one stretch."""
        self._store.append(rows, int64_view(rows.column(self._time)), group, whole=True)

    def remove(self, past: Past, gone: Int64s, passed_us: int) -> None:
        """Store rows, by number, no longer; their chunks are written anew, without what lies up to a time."""
        lost = np.zeros(len(past.chunks), dtype=np.bool_)
        lost[past.chunk[gone]] = True
        left = lost[past.chunk]
        left[gone] = False
        self._store.drop([past.chunks[number] for number in np.flatnonzero(lost)])
        self.put(take_rows(past.rows, np.flatnonzero(left)), past.group[left], passed_us)

    def put(self, rows: pa.RecordBatch, group: Int64s, passed_us: int) -> None:
        """Store rows of any groups and stretches, but for those up to a time."""
        ts_us, order = sort_times(int64_view(rows.column(self._time)))
        start = int(np.searchsorted(ts_us, passed_us, side="right"))
        if start == len(order):
            return
        rows, ts_us, group = take_rows(rows, order[start:]), ts_us[start:], group[order[start:]]
        for places, of_group in self.cut(ts_us, group, row_bytes=1):
            self._store.append(take_rows(rows, places), ts_us[places], of_group)

    def change(self, past: Past, changed: Int64s, states: pa.RecordBatch, gone: Int64s) -> None:
        """Give stored rows other states, and store some of them no longer; both are rows by number."""
        for number in np.flatnonzero(np.bincount(past.chunk[np.append(changed, gone)])):
            chunk, chosen = past.chunks[number], np.flatnonzero(past.chunk[changed] == number)
            rows = _restated(self._store.read(chunk), past.place[changed[chosen]], take_rows(states, chosen))
            left = np.ones(rows.num_rows, dtype=np.bool_)
            left[past.place[gone[past.chunk[gone] == number]]] = False
            self._store.drop([chunk])
            if left.any():
                self.append(rows if left.all() else take_rows(rows, np.flatnonzero(left)), chunk.run)

    def expire(self, passed_us: int) -> None:
        """Drop stretches that the punctuation has passed, unread; unite small chunks."""
        last_us = self.stretches.passed(passed_us)
        self._store.drop([chunk for chunk in self._store.chunks if chunk.ts_max_us <= last_us])
        least_us = min((chunk.ts_min_us for chunk in self._store.chunks), default=0)
        for small in small_groups(self._store.chunks, lambda chunk: self._alike(chunk, least_us)):
            self.append(concat_rows(list(self._store.take(small))), small[0].run)

    def _alike(self, chunk: Chunk, least_us: int) -> int:
        """The same for chunks of one group and stretch, of about one size."""
        stretch = (chunk.ts_min_us - self.stretches.offset_us) // self.stretches.length_us
        first = (least_us - self.stretches.offset_us) // self.stretches.length_us
        return ((stretch - first) * 64 + magnitude(chunk)) * 4096 + chunk.run

    def held_from(self, passed_us: int) -> int:
        """The least time of rows that may be stored after a punctuation."""
        last_us = self.stretches.passed(passed_us)
        return last_us if last_us == NEVER_US else last_us + 1


def _restated(rows: pa.RecordBatch, places: Int64s, states: pa.RecordBatch) -> pa.RecordBatch:
    """Rows with other states at some places."""
    index = np.arange(rows.num_rows)
    index[places] = rows.num_rows + np.arange(len(places))
    for name, column in zip(states.schema.names, states.columns, strict=True):
        place = rows.schema.get_field_index(name)
        together = pa.concat_arrays([rows.column(place), column]).take(pa.array(index))
        rows = rows.set_column(place, rows.schema.field(place), together)
    return rows
