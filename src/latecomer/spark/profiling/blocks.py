"""A stream's rows sorted by arrival, cached, in blocks that follow one another.

Input rows have `ts_us` (null: no usable time) and may have `cut` (how many times were cut to microseconds, in any row),
`arrival_us`, `key`, `source` and `order0`, `order1`, ... They are sorted by arrival, then order, then time. A
block is at most SIZE rows of one partition of the sorted rows.
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
from latecomer.disorder.ahead import count_ahead, too_far_ahead, unite_ahead
from latecomer.disorder.measures import Marks, count_inversions, distance, runs
from latecomer.disorder.profile import EACH_ALONE, Ahead, Clock
from latecomer.events import NEVER_US, Int64s

SIZE = 1 << 20
SAMPLE = 1 << 12  # one time in so many is brought to the driver, to cut time into ranges

Batches = Iterator[pa.RecordBatch]
_COUNTS = ("part", "place", "rows", "first", "last", "least", "most", "runs", "inversions", "distance")
_TICKS = ("first_tick", "last_tick", "before_last_us")


@dataclass(frozen=True)
class Place:
    """Where a block stands: its number, the position of its first row, the mark before it, and the tick then open."""

    number: int
    position: int
    mark_us: int
    tick: int
    before_us: int

    def marks(self) -> Marks:
        """How far time has come before it."""
        return Marks(self.mark_us, self.tick, self.before_us)


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
    tick_us: int | None

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
    """What the driver learns of one block; `before_last_us`: the latest time in it before its last tick."""

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
    first_tick: int
    last_tick: int
    before_last_us: int
    sample: Int64s = field(repr=False)


@dataclass(frozen=True)
class Blocks:
    """The sorted rows and what is known of each block, in order."""

    rows: DataFrame
    cached: DataFrame
    notes: list[Note]
    without_time: int
    cut: int
    ahead: Ahead | None
    wide: tuple[int, int] | None
    size: int
    clock: Clock

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
        places, position = {}, 0
        mark_us, tick, before_us = NEVER_US, NEVER_US, NEVER_US
        for number, note in enumerate(self.notes):
            places[note.part, note.place] = Place(number, position, mark_us, tick, before_us)
            if note.last_tick != tick:
                before_us = max(mark_us, note.before_last_us)
            position, mark_us, tick = position + note.rows, max(mark_us, note.most), note.last_tick
        return Walker(places, self.size, self.tick_us)

    @property
    def tick_us(self) -> int | None:
        """The tick of arrival, where there is arrival."""
        return self.clock.tick_us if self.wide is not None else None

    def runs(self) -> int:
        """Non-descending stretches over all blocks."""
        joined = sum(1 for a, b in zip(self.notes, self.notes[1:], strict=False) if b.first >= a.last)
        return sum(note.runs for note in self.notes) - joined

    def pick(self, *columns: str) -> DataFrame:
        """Where rows stand, their times, and some more columns: no pass reads what it does not need."""
        more = columns if self.tick_us is None else dict.fromkeys([*columns, "arrival_us"])
        return self.rows.select("part", "place", "ts_us", *more)

    def gather(self, task: Callable[[Batches], Iterator[dict[str, Any]]], *columns: str) -> list[dict[str, Any]]:
        """Let every task send a few arrays to the driver."""

        def send(batches: Batches) -> Batches:
            for arrays in task(batches):
                yield pa.RecordBatch.from_pydict({"blob": [dump_arrays(arrays)]})

        return [load_arrays(row["blob"]) for row in self.pick(*columns).mapInArrow(send, "blob binary").collect()]

    def close(self) -> None:
        """Give the cache back."""
        self.cached.unpersist()


def sorted_blocks(rows: DataFrame, size: int = SIZE, clock: Clock = EACH_ALONE) -> Blocks:
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
    ordered = rows.orderBy(*order, "ts_us").select(*kept, *(["cut"] if "cut" in rows.columns else []))
    cached = ordered.mapInArrow(_number_rows(size, kept, clock), f"part int, place bigint, {fields}, note binary")
    cached = cached.persist(StorageLevel.DISK_ONLY)
    sent = [load_arrays(row["note"]) for row in cached.where(F.col("note").isNotNull()).select("note").collect()]
    notes = [_read_note(arrays) for arrays in sent if "counts" in arrays]
    tasks = [arrays["task"].to_pylist() for arrays in sent if "task" in arrays]
    times = [task for task in tasks if task[1] <= task[2]]
    wide = (min(task[1] for task in times), max(task[2] for task in times)) if "arrival_us" in kept and times else None
    events = sum(note.rows for note in notes)
    ahead = [arrays["ahead"].to_numpy() for arrays in sent if "ahead" in arrays]
    return Blocks(
        rows=cached.where(F.col("note").isNull()).drop("note"),
        cached=cached,
        notes=sorted(notes, key=lambda note: (note.part, note.place)),
        without_time=sum(task[0] for task in tasks),
        cut=sum(task[3] for task in tasks),
        ahead=unite_ahead(ahead, events, clock.max_ahead_us) if ahead else None,
        wide=wide,
        size=size,
        clock=clock,
    )


def _read_note(arrays: dict[str, Any]) -> Note:
    counts = dict(zip((*_COUNTS, *_TICKS), arrays["counts"].to_pylist(), strict=True))
    return Note(**counts, sample=arrays["sample"].to_numpy())


def _number_rows(size: int, kept: list[str], clock: Clock) -> Callable[[Batches], Batches]:
    """Give each row its place in its partition; send a note on each block, and one on the task, after them."""

    def number(batches: Batches) -> Batches:
        context = TaskContext.get()
        task = _Task(0 if context is None else context.partitionId(), kept, clock)
        for batch in batches:
            usable = task.usable(batch)
            if len(usable):
                yield task.placed(usable)
        yield from task.notes(size)

    return number


class _Task:
    """What one task sees: rows that it places, and what the driver is to know of them."""

    def __init__(self, part: int, kept: list[str], clock: Clock) -> None:
        self._part, self._kept, self._clock = part, kept, clock
        self._arriving = "arrival_us" in kept
        self._done, self._without_time, self._cut = 0, 0, 0
        self._times: list[Int64s] = []
        self._arrivals: list[Int64s] = []
        self._aside = 0

    def usable(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows that are measured."""
        if "cut" in batch.schema.names:
            self._cut += int(np.sum(batch["cut"].fill_null(0).to_numpy(zero_copy_only=False)))
        timed = batch.filter(batch["ts_us"].is_valid())
        self._without_time += len(batch) - len(timed)
        if not self._arriving or self._clock.max_ahead_us is None:
            return timed
        far = too_far_ahead(timed["ts_us"].to_numpy(), timed["arrival_us"].to_numpy(), self._clock.max_ahead_us)
        self._aside += int(far.sum())
        return timed.filter(pa.array(~far))

    def placed(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """The rows with their places."""
        self._times.append(rows["ts_us"].to_numpy())
        if self._arriving:
            self._arrivals.append(rows["arrival_us"].to_numpy())
        self._done += len(rows)
        return _placed(rows, self._part, self._done - len(rows), self._kept)

    def notes(self, size: int) -> Batches:
        """A note on each block, then one on the task."""
        ts_us, arrival_us = _joined(self._times), _joined(self._arrivals)
        ticks = arrival_us // (self._clock.tick_us or 1) if self._arriving else np.zeros(len(ts_us), dtype=np.int64)
        for start in range(0, self._done, size):
            stop = start + size
            yield _note(self._part, start // size, ts_us[start:stop], ticks[start:stop], self._kept)
        first, last = (arrival_us[0], arrival_us[-1]) if len(arrival_us) else (-NEVER_US, NEVER_US)
        arrays = {"task": np.array([self._without_time, first, last, self._cut])}
        if self._arriving:
            arrays["ahead"] = count_ahead(ts_us, arrival_us, self._aside)
        yield _noted(arrays, self._kept)


def _joined(parts: list[Int64s]) -> Int64s:
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)


def _placed(rows: pa.RecordBatch, part: int, done: int, kept: list[str]) -> pa.RecordBatch:
    count = len(rows)
    columns = [
        pa.array(np.full(count, part, dtype=np.int32)),
        pa.array(done + np.arange(count)),
        *(rows[name] for name in kept),
        pa.nulls(count, pa.binary()),
    ]
    return pa.RecordBatch.from_arrays(columns, names=["part", "place", *kept, "note"])


def _note(part: int, place: int, ts_us: Int64s, ticks: Int64s, kept: list[str]) -> pa.RecordBatch:
    counts = [part, place, len(ts_us), ts_us[0], ts_us[-1], ts_us.min(), ts_us.max()]
    counts += [runs(ts_us), count_inversions(ts_us), distance(ts_us)]
    counts += [ticks[0], ticks[-1], ts_us[ticks < ticks[-1]].max(initial=NEVER_US)]
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
