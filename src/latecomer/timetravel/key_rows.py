"""Rows of keys in several tables, so stored that a micro-batch reads and writes those of some keys only.

Keys are told apart by buckets: 32 bits of their hash, so that hardly ever two share one. Every micro-batch adds a
generation: the buckets that it touched, with all the rows that they have now. What older generations have of those
buckets is void. So what is not touched is not written; and an index, the buckets of each generation in order, tells
which generations are to be read. Few are where keys that speak go on speaking, or are new.

Invariants
1. The rows of a bucket are those of the newest generation that replaces it, and what newer ones add.
2. Generations of about one size are united, eight at a time; all of them where more rows are void than are not. So a
   row is written a few times only, however many keys there are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from latecomer._jit import kernel
from latecomer.chunks import MANY, Chunk, Store
from latecomer.codec import cuts
from latecomer.events import Bools, Int64s, concat_rows, take_rows
from latecomer.search import lower_bound
from latecomer.timetravel.tables import BUCKET, spread_out

Buckets = npt.NDArray[np.uint32]
Rows = list[pa.RecordBatch | None]  # of each table

_REPLACES, _ALIVE = "_lc_replaces", "alive"
_SLACK = 10_000  # void rows that are not worth a look
_SMALL = 256
_CHUNK_BYTES = 8_000_000


class Touched(NamedTuple):
    """Buckets of a generation in order; those that it does not replace it adds rows to."""

    bucket: Buckets
    replaces: Bools


class Generation(NamedTuple):
    """The chunks of a generation: of the index, and of each table."""

    number: int
    listed: list[Chunk]
    tables: list[list[Chunk]]

    @property
    def rows(self) -> int:
        """How many rows its tables have."""
        return sum(chunk.rows for chunks in self.tables for chunk in chunks)

    @property
    def level(self) -> int:
        """The same for generations of about one size."""
        return max(_SMALL, self.rows + sum(chunk.rows for chunk in self.listed)).bit_length() // 3


class KeyRows:
    """Tables of rows by key in a store; `times` gives what each row of a table is removed by."""

    def __init__(self, store: Store, times: Sequence[Callable[[pa.RecordBatch], Int64s]]) -> None:
        self._store, self._times = store, times
        self._runs = 1 + len(times)

    def alive(self, table: int) -> int:
        """How many rows a table has."""
        return self._store.notes.get(f"{_ALIVE}{table}", 0)

    def buckets(self) -> Buckets:
        """All buckets that may have rows."""
        return distinct(*(self._touched(each).bucket for each in self._generations()))

    def take(self, buckets: Buckets) -> Rows:
        """The rows of buckets, which are in order; they are void now, and the buckets are to be put."""
        rows = self.read(buckets)
        for table, part in enumerate(rows):
            self._count(table, 0 if part is None else -part.num_rows)
        for generation in self._generations():
            few = sum(chunk.rows for chunk in generation.listed) <= len(buckets)
            if few and among(self._touched(generation).bucket, buckets).all():  # all of it is void
                self._drop(generation)
        return rows

    def read(self, buckets: Buckets) -> Rows:
        """The rows of buckets, which are in order."""
        parts: list[list[list[pa.RecordBatch]]] = [[] for _ in self._times]
        for generation in reversed(self._generations()):
            if len(buckets) == 0:
                break
            here, replaced = np.zeros((2, len(buckets)), dtype=np.bool_)
            for chunk in generation.listed:
                find_touched(buckets, *self._index(chunk), here, replaced)
            wanted = buckets[here]
            for table, chunks in enumerate(generation.tables if len(wanted) else []):
                parts[table].append([self._store.read(chunk, partial(places_of, wanted)) for chunk in chunks])
            buckets = buckets[~replaced]
        return [_together(each) for each in parts]

    def put(self, tables: Rows, replaced: Buckets) -> None:
        """Store the rows of buckets that were taken; rows of others are added to what these have."""
        tables = [None if rows is None or rows.num_rows == 0 else rows for rows in tables]
        generations, present = self._generations(), [_buckets_of(rows) for rows in tables if rows is not None]
        if generations:
            present.append(replaced)  # those without rows too: older generations may have some
        bucket = distinct(*present)
        if len(bucket) == 0:
            return
        for table, rows in enumerate(tables):
            self._count(table, 0 if rows is None else rows.num_rows)
        number = generations[-1].number + 1 if generations else 0
        self._write(number, Touched(bucket, among(bucket, replaced)), tables)
        self._tidy()

    def expire(self, before_us: Sequence[int]) -> None:
        """Remove the rows of each table whose times are before a time."""
        generations = self._generations()
        old = (
            chunk.ts_min_us < limit_us
            for each in generations
            for chunks, limit_us in zip(each.tables, before_us, strict=True)
            for chunk in chunks
        )
        if any(old):
            self._unite(generations, before_us)

    def clear(self) -> None:
        """Remove everything."""
        self._store.drop(self._store.chunks)
        for table in range(len(self._times)):
            self._count(table, -self.alive(table))

    def _count(self, table: int, more: int) -> None:
        if more:
            self._store.notes[f"{_ALIVE}{table}"] = self.alive(table) + more

    def _generations(self) -> list[Generation]:
        """All generations, the oldest first."""
        found: dict[int, Generation] = {}
        for chunk in self._store.chunks:
            number, place = divmod(chunk.run, self._runs)
            if number not in found:
                found[number] = Generation(number, [], [[] for _ in self._times])
            (found[number].listed if place == 0 else found[number].tables[place - 1]).append(chunk)
        return [found[number] for number in sorted(found)]

    def _drop(self, generation: Generation) -> None:
        self._store.drop([*generation.listed, *(chunk for chunks in generation.tables for chunk in chunks)])

    def _index(self, chunk: Chunk) -> tuple[Buckets, Bools]:
        rows = self._store.read(chunk)
        return _buckets_of(rows), rows.column(_REPLACES).to_numpy().view(np.bool_)

    def _touched(self, generation: Generation) -> Touched:
        parts = [self._index(chunk) for chunk in generation.listed]
        bucket, replaces = (np.concatenate(each) for each in zip(*parts, strict=True))
        return Touched(bucket, replaces)

    def _write(self, number: int, touched: Touched, tables: Rows) -> None:
        """Store a generation; rows of a bucket stay in their order."""
        columns = [pa.array(touched.bucket), pa.array(touched.replaces.view(np.uint8))]
        index = pa.RecordBatch.from_arrays(columns, names=[BUCKET, _REPLACES])
        self._append(index, np.zeros(index.num_rows, dtype=np.int64), number * self._runs)
        for table, rows in enumerate(tables):
            if rows is not None:
                rows = take_rows(rows, np.argsort(_buckets_of(rows), kind="stable"))
                self._append(rows, self._times[table](rows), number * self._runs + 1 + table)

    def _append(self, rows: pa.RecordBatch, ts_us: Int64s, run: int) -> None:
        """Store rows in few chunks: what a micro-batch needs of a large generation is in all of them."""
        for start, stop in cuts(rows, _CHUNK_BYTES):
            self._store.append(rows.slice(start, stop - start), ts_us[start:stop], run, whole=True)

    def _tidy(self) -> None:
        """Unite generations of about one size at the end, and all if most rows are void."""
        generations = self._generations()
        alive = sum(self.alive(table) for table in range(len(self._times)))
        if sum(each.rows for each in generations) > 2 * alive + _SLACK:
            self._unite(generations)
            return
        while True:
            level = max((each.level for each in generations[-1:]), default=0)
            first = len(generations)
            while first > 0 and generations[first - 1].level <= level:
                first -= 1
            if len(generations) - first < MANY:
                return
            self._unite(generations[first:], oldest=first == 0)
            generations = self._generations()

    def _unite(
        self, generations: list[Generation], before_us: Sequence[int] | None = None, *, oldest: bool = True
    ) -> None:
        """One generation for some, of which the last is the newest of all, without what is void or before a time."""
        tables: list[list[list[pa.RecordBatch]]] = [[] for _ in self._times]
        every, covered = [], np.zeros(0, dtype=np.uint32)
        for generation in reversed(generations):
            touched = self._touched(generation)
            for table, chunks in enumerate(generation.tables):
                tables[table].append([_without(self._store.read(chunk), covered) for chunk in chunks])
            every.append(touched.bucket)
            if generation is not generations[0]:
                covered = distinct(covered, touched.bucket[touched.replaces])
        replacing = distinct(covered, self._replaced(generations[0]))
        for generation in generations:
            self._drop(generation)
        rows = [_together(each) for each in tables]
        if before_us is not None:
            rows = [self._from(table, part, before_us[table]) for table, part in enumerate(rows)]
        kept = [_buckets_of(part) for part in rows if part is not None] if oldest else every
        bucket = distinct(*kept)
        if len(bucket):
            replaces = among(bucket, replacing) | oldest
            self._write(generations[-1].number, Touched(bucket, replaces), rows)

    def _replaced(self, generation: Generation) -> Buckets:
        touched = self._touched(generation)
        return touched.bucket[touched.replaces]

    def _from(self, table: int, rows: pa.RecordBatch | None, from_us: int) -> pa.RecordBatch | None:
        """The rows from a time on; the others are counted no more."""
        if rows is None:
            return None
        kept = np.flatnonzero(self._times[table](rows) >= from_us)
        self._count(table, len(kept) - rows.num_rows)
        return take_rows(rows, kept) if len(kept) else None


def places_of(buckets: Buckets, rows: pa.RecordBatch) -> Int64s:
    """Which rows, in the order of their buckets, are in some of them."""
    of_rows = _buckets_of(rows)
    from_, to = np.searchsorted(buckets, of_rows[0]), np.searchsorted(buckets, of_rows[-1], side="right")
    first, stop = np.zeros((2, to - from_), dtype=np.int64)
    find_stretches(buckets[from_:to], of_rows, first, stop)
    return spread_out(first, stop)[0]


def distinct(*parts: Buckets) -> Buckets:
    """The buckets of all parts, each once, in order."""
    buckets = np.sort(np.concatenate(parts)) if parts else np.zeros(0, dtype=np.uint32)
    new = np.ones(len(buckets), dtype=np.bool_)
    np.not_equal(buckets[1:], buckets[:-1], out=new[1:])
    return buckets[new]


def among(buckets: Buckets, others: Buckets) -> Bools:
    """Which of some buckets are among others; both are in order."""
    here, replaced = np.zeros((2, len(buckets)), dtype=np.bool_)
    find_touched(buckets, others, np.ones(len(others), dtype=np.bool_), here, replaced)
    return here


def _buckets_of(rows: pa.RecordBatch) -> Buckets:
    found: Buckets = rows.column(BUCKET).to_numpy()
    return found


def _without(rows: pa.RecordBatch, covered: Buckets) -> pa.RecordBatch:
    """Rows in the order of their buckets, without those of some."""
    gone = among(_buckets_of(rows), covered)
    return take_rows(rows, np.flatnonzero(~gone)) if gone.any() else rows


def _together(generations: Sequence[list[pa.RecordBatch]]) -> pa.RecordBatch | None:
    """The rows of generations, the newest first, as one table."""
    found = [rows for parts in reversed(generations) for rows in parts if rows.num_rows]
    return concat_rows(found) if found else None


@kernel
def find_touched(buckets: Buckets, touched: Buckets, replaces: Bools, here: Bools, replaced: Bools) -> None:
    """Which buckets are among those touched, and which of them were replaced; both are in order."""
    at, size = 0, len(touched)
    for i in range(len(buckets)):
        step = 1
        while at + step < size and touched[at + step] < buckets[i]:
            step *= 2
        at = lower_bound(touched, at, min(at + step + 1, size), buckets[i])
        if at == size:
            return
        if touched[at] == buckets[i]:
            here[i], replaced[i] = True, replaces[at]


@kernel
def find_stretches(buckets: Buckets, of_rows: Buckets, first: Int64s, stop: Int64s) -> None:
    """Where the rows of each bucket stand among rows in the order of their buckets."""
    at, size = 0, len(of_rows)
    for i in range(len(buckets)):
        step = 1
        while at + step < size and of_rows[at + step] < buckets[i]:
            step *= 2
        at = lower_bound(of_rows, at, min(at + step + 1, size), buckets[i])
        first[i] = at
        while at < size and of_rows[at] == buckets[i]:
            at += 1
        stop[i] = at
