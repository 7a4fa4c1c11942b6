"""A stream's rows sorted by arrival, cached, in blocks that follow one another.

Input rows have `ts_us` (null: no usable time) and may have `arrival_us`, `key`, `source` and `order0`, `order1`, ...
They are sorted by arrival, then order, then time. A block is at most SIZE rows of one partition of the sorted rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.storagelevel import StorageLevel

from latecomer.codec import dump_arrays, load_arrays
from latecomer.disorder.measures import count_inversions, distance, runs
from latecomer.events import NEVER_US, Int64s

SIZE = 1 << 20
SAMPLE = 1 << 12  # one time in so many is brought to the driver, to cut time into ranges

Batches = Iterator[pa.RecordBatch]
_COUNTS = ("part", "place", "rows", "first", "last", "least", "most", "runs", "inversions", "distance")


@dataclass(frozen=True)
class Place:
    """Where a block stands: its number, the position of its first row, and the mark before it."""

    number: int
    position: int
    mark_us: int


@dataclass(frozen=True)
class Piece:
    """Rows of one block that follow one another."""

    at: Place
    position: Int64s
    ts_us: Int64s
    batch: pa.RecordBatch


@dataclass(frozen=True)
class Walker:
    """Walks over cached rows inside Spark's tasks and knows where each block stands."""

    places: dict[tuple[int, int], Place]
    size: int

    def pieces(self, batches: Batches) -> Iterator[Piece]:
        """All rows of a task, in order, cut between blocks."""
        for batch in batches:
            part, place = batch["part"].to_numpy(), batch["place"].to_numpy()
            block = place // self.size
            cuts = np.flatnonzero((np.diff(block) != 0) | (np.diff(part) != 0)) + 1
            for start, stop in zip([0, *cuts], [*cuts, len(place)], strict=True):
                if start == stop:
                    continue
                at = self.places[int(part[start]), int(block[start])]
                rows = batch.slice(start, stop - start)
                position = at.position + place[start:stop] % self.size
                yield Piece(at, position, rows["ts_us"].to_numpy(), rows)

    def blocks(self, batches: Batches) -> Iterator[tuple[Place, Int64s]]:
        """Whole blocks: the event times of each."""
        at: Place | None = None
        times: list[Int64s] = []
        for piece in self.pieces(batches):
            if at is not None and piece.at != at:
                yield at, np.concatenate(times)
                times = []
            at = piece.at
            times.append(piece.ts_us)
        if at is not None:
            yield at, np.concatenate(times)


@dataclass(frozen=True)
class Note:
    """What the driver learns of one block."""

    part: int
    place: int
    rows: int
    first: int
    last: int
    least: int
    most: int
    runs: int
    inversions: int
    distance: int
    sample: Int64s = field(repr=False)


@dataclass(frozen=True)
class Blocks:
    """The sorted rows and what is known of each block, in order."""

    rows: DataFrame
    cached: DataFrame
    notes: list[Note]
    without_time: int
    wide: tuple[int, int] | None
    size: int

    @property
    def has_key(self) -> bool:
        """Whether rows have a key."""
        return "key" in self.rows.columns

    @property
    def has_source(self) -> bool:
        """Whether rows have a source."""
        return "source" in self.rows.columns

    @property
    def events(self) -> int:
        """How many rows have a time."""
        return sum(note.rows for note in self.notes)

    @property
    def span(self) -> tuple[int, int]:
        """First and last event time."""
        if not self.notes:
            return 0, 0
        return min(note.least for note in self.notes), max(note.most for note in self.notes)

    def walker(self) -> Walker:
        """For the tasks."""
        places, position, mark_us = {}, 0, NEVER_US
        for number, note in enumerate(self.notes):
            places[note.part, note.place] = Place(number, position, mark_us)
            position, mark_us = position + note.rows, max(mark_us, note.most)
        return Walker(places, self.size)

    def runs(self) -> int:
        """Non-descending stretches over all blocks."""
        joined = sum(1 for a, b in zip(self.notes, self.notes[1:], strict=False) if b.first >= a.last)
        return sum(note.runs for note in self.notes) - joined

    def pick(self, *columns: str) -> DataFrame:
        """Where rows stand, their times, and some more columns: no pass reads what it does not need."""
        return self.rows.select("part", "place", "ts_us", *columns)

    def gather(self, task: Callable[[Batches], Iterator[dict[str, Any]]], *columns: str) -> list[dict[str, Any]]:
        """Let every task send a few arrays to the driver."""

        def send(batches: Batches) -> Batches:
            for arrays in task(batches):
                yield pa.RecordBatch.from_pydict({"blob": [dump_arrays(arrays)]})

        return [load_arrays(row["blob"]) for row in self.pick(*columns).mapInArrow(send, "blob binary").collect()]

    def close(self) -> None:
        """Give the cache back."""
        self.cached.unpersist()


def sorted_blocks(rows: DataFrame, size: int = SIZE) -> Blocks:
    """Sort and cache the rows, and note what each block is like."""
    order = [
        name
        for name in (
            "arrival_us",
            *sorted((n for n in rows.columns if n.startswith("order")), key=lambda n: int(n[5:])),
        )
        if name in rows.columns
    ]
    kept: list[str] = [name for name in ("ts_us", "arrival_us", "key", "source") if name in rows.columns]
    fields = ", ".join(f"{name} {'string' if name in ('key', 'source') else 'bigint'}" for name in kept)
    ordered = rows.orderBy(*order, "ts_us").select(*kept)
    cached = ordered.mapInArrow(_number_rows(size, kept), f"part int, place bigint, {fields}, note binary")
    cached = cached.persist(StorageLevel.DISK_ONLY)
    sent = [load_arrays(row["note"]) for row in cached.where(F.col("note").isNotNull()).select("note").collect()]
    notes = [_read_note(arrays) for arrays in sent if "counts" in arrays]
    tasks = [arrays["task"].to_pylist() for arrays in sent if "task" in arrays]
    times = [task for task in tasks if task[1] <= task[2]]
    wide = (min(task[1] for task in times), max(task[2] for task in times)) if "arrival_us" in kept and times else None
    return Blocks(
        rows=cached.where(F.col("note").isNull()).drop("note"),
        cached=cached,
        notes=sorted(notes, key=lambda note: (note.part, note.place)),
        without_time=sum(task[0] for task in tasks),
        wide=wide,
        size=size,
    )


def _read_note(arrays: dict[str, Any]) -> Note:
    counts = dict(zip(_COUNTS, arrays["counts"].to_pylist(), strict=True))
    return Note(**counts, sample=arrays["sample"].to_numpy())


def _number_rows(size: int, kept: list[str]) -> Callable[[Batches], Batches]:
    """Give each row its place in its partition; send a note on each block, and one on the task, after them."""

    def number(batches: Batches) -> Batches:
        context = TaskContext.get()
        part = 0 if context is None else context.partitionId()
        done, without_time, arrivals = 0, 0, [-NEVER_US, NEVER_US]
        times: list[Int64s] = []
        for batch in batches:
            usable = batch.filter(batch["ts_us"].is_valid())
            without_time += len(batch) - len(usable)
            if len(usable) == 0:
                continue
            if "arrival_us" in kept:
                arrivals = [min(arrivals[0], usable["arrival_us"][0].as_py()), usable["arrival_us"][-1].as_py()]
            times.append(usable["ts_us"].to_numpy())
            yield _placed(usable, part, done, kept)
            done += len(usable)
        whole = np.concatenate(times) if times else np.zeros(0, dtype=np.int64)
        for start in range(0, done, size):
            yield _note(part, start // size, whole[start : start + size], kept)
        yield _noted({"task": np.array([without_time, *arrivals])}, kept)

    return number


def _placed(rows: pa.RecordBatch, part: int, done: int, kept: list[str]) -> pa.RecordBatch:
    count = len(rows)
    columns = [
        pa.array(np.full(count, part, dtype=np.int32)),
        pa.array(done + np.arange(count)),
        *(rows[name] for name in kept),
        pa.nulls(count, pa.binary()),
    ]
    return pa.RecordBatch.from_arrays(columns, names=["part", "place", *kept, "note"])


def _note(part: int, place: int, ts_us: Int64s, kept: list[str]) -> pa.RecordBatch:
    counts = [part, place, len(ts_us), ts_us[0], ts_us[-1], ts_us.min(), ts_us.max()]
    counts += [runs(ts_us), count_inversions(ts_us), distance(ts_us)]
    return _noted({"counts": np.array(counts, dtype=np.int64), "sample": ts_us[::SAMPLE].copy()}, kept)


def _noted(arrays: dict[str, Any], kept: list[str]) -> pa.RecordBatch:
    kinds = [pa.string() if name in ("key", "source") else pa.int64() for name in kept]
    columns = [
        pa.nulls(1, pa.int32()),
        pa.nulls(1, pa.int64()),
        *(pa.nulls(1, kind) for kind in kinds),
        pa.array([dump_arrays(arrays)], pa.binary()),
    ]
    return pa.RecordBatch.from_arrays(columns, names=["part", "place", *kept, "note"])
