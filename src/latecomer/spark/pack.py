"""Pack: each task splits its rows by shard and sends blobs, then once a header, to every shard.

Progress is measured here, before the user's `where`: the condition comes as a column, a row's time counts, then the
row is dropped. Every shard gets a header from every task in every batch, even an empty one: the in-band punctuation.

Invariants
1. Every row of the input is a control row, filtered, quarantined or sent in exactly one EVENTS blob.
2. A row without a usable time or stamp never moves the progress.
3. Counts are sent once per task, to the first shard.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark import TaskContext

from latecomer.codec import cuts, rows_to_bytes
from latecomer.contract import REASON
from latecomer.events import NEVER_US, TICK_FIELD, Bools, Int64s, concat_rows, int64_view, take_rows
from latecomer.headers import HeaderBuilder
from latecomer.spark.frames import BLOB_BYTES, Kind
from latecomer.spark.workers import settle

SHARD, KEEP, BEAT, END, STAMP = "_lc_shard", "_lc_keep", "_lc_beat", "_lc_end", "_lc_stamp"


@dataclass(frozen=True)
class PackPlan:
    """What pack must know: where the roles stand, and what counts as absurd."""

    shard_keys: tuple[int, ...]
    time: str
    stamp: str | None
    source: str | None
    columns: tuple[str, ...]  # what travels: the user's columns and the carried ones
    user_columns: tuple[str, ...]
    filtering: bool
    beating: bool
    ending: bool
    tick_us: int
    idle_ticks: int | None
    earliest_us: int
    latest_us: int
    max_ahead_us: int | None


def packer(plan: PackPlan) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function that `mapInArrow` runs."""

    def pack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        task = _Task(plan, context.partitionId() if context is not None else 0)
        for batch in batches:
            yield from task.add(batch)
        yield from task.close()
        settle()

    return pack


class _Task:
    """One task's packing, batch after batch."""

    def __init__(self, plan: PackPlan, number: int) -> None:
        self._plan = plan
        self._number = number
        self._part = 0
        self._header = HeaderBuilder(plan.idle_ticks)
        self._waiting: dict[tuple[Kind, int], list[pa.RecordBatch]] = {}
        self._bytes: dict[tuple[Kind, int], int] = {}
        self._addressed: set[int] = set()
        self._empty: pa.RecordBatch | None = None
        self._counts = {Kind.SEEN: 0, Kind.FILTERED: 0, Kind.CONTROL: 0}

    def add(self, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Take in a batch; gives the frames that are full."""
        batch = self._without_control(batch)
        self._counts[Kind.SEEN] += batch.num_rows
        ts_us, stamp_us, reasons = _read_times(self._plan, batch)
        usable = reasons == 0
        tick = None if stamp_us is None else stamp_us // self._plan.tick_us
        self._measure(batch, ts_us, tick, usable)
        kept = self._kept(batch)
        self._counts[Kind.FILTERED] += int(batch.num_rows - kept.sum())
        shard = batch.column(SHARD).to_numpy()
        rows = _normal(batch.select(list(self._plan.columns)))
        if tick is not None:
            rows = rows.append_column(TICK_FIELD, pa.array(tick))
        self._empty = rows.slice(0, 0)
        yield from self._split(Kind.EVENTS, rows, shard, usable & kept)
        if not usable.all():
            rejected = _normal(batch.select(list(self._plan.user_columns)))
            rejected = rejected.append_column(REASON, _REASONS.take(pa.array(reasons)))
            yield from self._split(Kind.QUARANTINE, rejected, shard, ~usable & kept)

    def close(self) -> Iterator[pa.RecordBatch]:
        """The rest of the blobs, then the header for every shard and the counts for the first."""
        for kind, shard in list(self._waiting):
            yield from self._send_rows(kind, shard)
        header = self._header.build().to_bytes()
        for shard in range(len(self._plan.shard_keys)):
            if self._empty is not None and shard not in self._addressed:
                yield self._frame(Kind.EVENTS, shard, 0, rows_to_bytes(self._empty))
            yield self._frame(Kind.HEADER, shard, 0, header)
        for kind, count in self._counts.items():
            if count:
                yield self._frame(kind, 0, count, None)

    def _without_control(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Hear heartbeats and ends, and leave the events."""
        if self._plan.beating:
            beats = batch.column(BEAT)
            heard = beats.is_valid().to_numpy(zero_copy_only=False)
            if heard.any():
                latest = int(int64_view(beats.filter(pa.array(heard))).max())
                self._header.hear(latest // self._plan.tick_us)
                batch = take_rows(batch, np.flatnonzero(~heard))
        if self._plan.ending:
            ends = batch.column(END).fill_null(False).to_numpy(zero_copy_only=False)
            if ends.any():
                self._end(take_rows(batch, np.flatnonzero(ends)))
                batch = take_rows(batch, np.flatnonzero(~ends))
        return batch

    def _end(self, rows: pa.RecordBatch) -> None:
        plan = self._plan
        tick = None
        if plan.stamp is not None:
            stamp_us = _without_nulls(rows.column(plan.stamp))
            sane = (stamp_us >= plan.earliest_us) & (stamp_us < plan.latest_us)
            tick = np.where(sane, stamp_us // plan.tick_us, NEVER_US)
        source = None if plan.source is None else rows.column(plan.source)
        self._header.add_ends(tick, rows.num_rows, source)
        self._counts[Kind.CONTROL] += rows.num_rows

    def _measure(self, batch: pa.RecordBatch, ts_us: Int64s, tick: Int64s | None, usable: Bools) -> None:
        source = None if self._plan.source is None else batch.column(self._plan.source)
        if not usable.all():
            ts_us = ts_us[usable]
            tick = None if tick is None else tick[usable]
            source = None if source is None else source.filter(pa.array(usable))
        self._header.add(ts_us, tick, source)

    def _kept(self, batch: pa.RecordBatch) -> Bools:
        if not self._plan.filtering:
            return np.ones(batch.num_rows, dtype=np.bool_)
        keep: Bools = batch.column(KEEP).fill_null(False).to_numpy(zero_copy_only=False)
        return keep

    def _split(self, kind: Kind, rows: pa.RecordBatch, shard: Int64s, chosen: Bools) -> Iterator[pa.RecordBatch]:
        """Queue the chosen rows for their shards; gives the blobs that are full."""
        shards = len(self._plan.shard_keys)
        small = shard.astype(np.uint8 if shards <= 256 else np.uint16)  # numpy sorts these by radix
        if chosen.all():
            positions = np.argsort(small, kind="stable")
        else:
            positions = np.flatnonzero(chosen)
            positions = positions[np.argsort(small[positions], kind="stable")]
        sorted_rows = take_rows(rows, positions)
        bounds = np.searchsorted(small[positions], np.arange(shards + 1))
        for number in range(shards):
            start, stop = int(bounds[number]), int(bounds[number + 1])
            if start < stop:
                yield from self._queue(kind, number, sorted_rows.slice(start, stop - start))

    def _queue(self, kind: Kind, shard: int, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        self._waiting.setdefault((kind, shard), []).append(rows)
        self._bytes[kind, shard] = self._bytes.get((kind, shard), 0) + rows.nbytes
        if self._bytes[kind, shard] >= BLOB_BYTES:
            yield from self._send_rows(kind, shard)

    def _send_rows(self, kind: Kind, shard: int) -> Iterator[pa.RecordBatch]:
        rows = concat_rows(self._waiting.pop((kind, shard)))
        self._bytes[kind, shard] = 0
        if kind is Kind.EVENTS:
            self._addressed.add(shard)
        for start, stop in cuts(rows, BLOB_BYTES):
            piece = rows.slice(start, stop - start)
            yield self._frame(kind, shard, piece.num_rows, rows_to_bytes(piece))

    def _frame(self, kind: Kind, shard: int, count: int, blob: bytes | None) -> pa.RecordBatch:
        self._part += 1
        return pa.RecordBatch.from_pydict(
            {
                "shard": pa.array([self._plan.shard_keys[shard]], pa.int32()),
                "task": pa.array([self._number], pa.int64()),
                "part": pa.array([self._part], pa.int32()),
                "kind": pa.array([int(kind)], pa.int32()),
                "n": pa.array([count], pa.int64()),
                "blob": pa.array([blob], pa.binary()),
            }
        )


_REASONS = pa.array(
    ["", "null_time", "too_early", "too_far", "null_arrival", "absurd_arrival", "ahead_of_arrival"], pa.string()
)
_NULL_TIME, _TOO_EARLY, _TOO_FAR, _NULL_ARRIVAL, _ABSURD_ARRIVAL, _AHEAD = range(1, 7)


def _normal(rows: pa.RecordBatch) -> pa.RecordBatch:
    """The same rows in a schema that depends on no session: times in UTC, text with small offsets, nulls allowed.

    What is held from an earlier run must fit what comes in a later one.
    """
    schema = pa.schema([pa.field(field.name, _normal_type(field.type)) for field in rows.schema])
    pairs = zip(rows.columns, schema.types, strict=True)
    columns = [column if column.type == kind else column.cast(kind) for column, kind in pairs]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _normal_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind) and kind.tz is not None:
        return pa.timestamp(kind.unit, "UTC")
    if pa.types.is_large_string(kind):
        return pa.string()
    if pa.types.is_large_binary(kind):
        return pa.binary()
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_normal_type(field.type)) for field in kind])
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(kind.value_field.with_type(_normal_type(kind.value_type)))
    if pa.types.is_map(kind):
        key, item = (field.with_type(_normal_type(field.type)) for field in (kind.key_field, kind.item_field))
        return pa.map_(key, item)
    return kind


def _read_times(plan: PackPlan, batch: pa.RecordBatch) -> tuple[Int64s, Int64s | None, Int64s]:
    """Event times, arrival stamps, and per row why it cannot be used (0: it can)."""
    reasons = np.zeros(batch.num_rows, dtype=np.int64)
    ts_us = _without_nulls(batch.column(plan.time))
    stamp_us = None
    if plan.stamp is not None:
        stamps = batch.column(plan.stamp)
        stamp_us = _without_nulls(stamps)
        if plan.max_ahead_us is not None:
            reasons[ts_us - plan.max_ahead_us > stamp_us] = _AHEAD
        _mark_outside(plan, stamp_us, reasons, (_ABSURD_ARRIVAL, _ABSURD_ARRIVAL))
        _mark_nulls(stamps, reasons, _NULL_ARRIVAL)
    _mark_outside(plan, ts_us, reasons, (_TOO_EARLY, _TOO_FAR))
    _mark_nulls(batch.column(plan.time), reasons, _NULL_TIME)
    return ts_us, stamp_us, reasons


def _without_nulls(column: pa.Array) -> Int64s:
    if column.null_count:
        column = column.fill_null(pa.scalar(0, pa.int64()).cast(column.type))
    return int64_view(column)


def _mark_outside(plan: PackPlan, times_us: Int64s, reasons: Int64s, why: tuple[int, int]) -> None:
    if len(times_us) and times_us.min() < plan.earliest_us:
        reasons[times_us < plan.earliest_us] = why[0]
    if len(times_us) and times_us.max() >= plan.latest_us:
        reasons[times_us >= plan.latest_us] = why[1]


def _mark_nulls(column: pa.Array, reasons: Int64s, why: int) -> None:
    if column.null_count:
        reasons[~column.is_valid().to_numpy(zero_copy_only=False)] = why
