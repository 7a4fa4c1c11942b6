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

from latecomer._jit import kernel
from latecomer.chunks import CHUNK_BYTES, Chunk, Store, magnitude, small_groups
from latecomer.events import (
    FOREVER_US,
    NEVER_US,
    Int64s,
    Stretches,
    concat_rows,
    int64_view,
    put_rows,
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


class Dealt(NamedTuple):
    """Rows dealt into pieces that become chunks: the place of each among all, and where the pieces begin and end.

    group: of the keys of each piece.
    """

    place: Int64s
    bounds: list[int]
    group: list[int]

    @property
    def sizes(self) -> Int64s:
        """How many rows each piece has."""
        return np.diff(self.bounds)

    def pieces(self, rows: pa.RecordBatch) -> Iterator[tuple[pa.RecordBatch, int]]:
        """The rows of each piece, and the group of their keys."""
        dealt = put_rows(rows, self.place)
        for start, stop, group in zip(self.bounds, self.bounds[1:], self.group, strict=False):
            yield dealt.slice(start, stop - start), group


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

    def deal(self, ts_us: Int64s, group: Int64s, groups: int, row_bytes: int) -> Dealt:
        """Deal rows that are in order of time into pieces of one group and stretch, none much larger than a chunk.

        Rows of one time stay together: equal ones are told apart by their places in a chunk.
        """
        first, last = self.stretches.starts(ts_us[[0, -1]]) // self.stretches.length_us
        parts = self._parts(ts_us, group, groups, int(last - first) + 1)
        place, starts = deal(*parts)
        times = np.empty_like(ts_us)
        times[place] = ts_us
        most = max(1, CHUNK_BYTES // max(1, row_bytes))
        bounds = [0]
        owner: list[int] = []
        for number in np.flatnonzero(np.diff(starts)):
            end = int(starts[number + 1])
            while bounds[-1] < end:
                last_us = times[min(bounds[-1] + most, end) - 1]
                bounds.append(bounds[-1] + int(np.searchsorted(times[bounds[-1] : end], last_us, side="right")))
                owner.append(int(number) % groups)
        return Dealt(place, bounds, owner)

    def _parts(self, ts_us: Int64s, group: Int64s, groups: int, stretches: int) -> tuple[Int64s, int]:
        """The number of the group and stretch of each row, and how many there are."""
        if stretches > len(ts_us):  # far apart: those without a row have no number
            _, stretch = np.unique(self.stretches.starts(ts_us), return_inverse=True)
        else:
            first_us = self.stretches.starts(ts_us[:1])
            ends = np.searchsorted(ts_us, first_us + self.stretches.length_us * np.arange(1, stretches))
            stretch = np.repeat(np.arange(stretches), np.diff(ends, prepend=0, append=len(ts_us)))
        return stretch * groups + group, (int(stretch[-1]) + 1) * groups

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
        dealt = self.deal(ts_us, group, int(group.max()) + 1, row_bytes=1)
        for piece, of_group in dealt.pieces(rows):
            self._store.append(piece, int64_view(piece.column(self._time)), of_group)

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


@kernel
def deal(part: Int64s, parts: int) -> tuple[Int64s, Int64s]:
    """The place of each row when rows are dealt into numbered parts, in order within each, and where parts begin."""
    starts = np.zeros(parts + 1, dtype=np.int64)
    for i in range(len(part)):
        starts[part[i] + 1] += 1
    for number in range(parts):
        starts[number + 1] += starts[number]
    place, following = np.empty(len(part), dtype=np.int64), starts[:-1].copy()
    for i in range(len(part)):
        place[i] = following[part[i]]
        following[part[i]] += 1
    return place, starts


def _restated(rows: pa.RecordBatch, places: Int64s, states: pa.RecordBatch) -> pa.RecordBatch:
    """Rows with other states at some places."""
    index = np.arange(rows.num_rows)
    index[places] = rows.num_rows + np.arange(len(places))
    for name, column in zip(states.schema.names, states.columns, strict=True):
        place = rows.schema.get_field_index(name)
        together = pa.concat_arrays([rows.column(place), column]).take(pa.array(index))
        rows = rows.set_column(place, rows.schema.field(place), together)
    return rows
