"""Pack: each task splits its rows by shard and sends blobs, then once a header, to every shard.

Progress is measured here, before the user's `where`: the condition comes as a column, a row's time counts, then the
row is dropped. Every shard gets a header from every task in every batch, even an empty one: the in-band punctuation.

Invariants
1. Every row of the input is a control row, filtered, quarantined or sent in exactly one EVENTS blob.
2. A row without a usable time or stamp never moves the progress.
3. Counts are sent once per task, to the first shard.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark import TaskContext

from latecomer.codec import rows_to_bytes
from latecomer.events import EVENT_CHANGE_FIELD, NEVER_US, TICK_FIELD, Bools, Int64s, int64_view, take_rows
from latecomer.headers import HeaderBuilder
from latecomer.outputs import REASON
from latecomer.spark.control import VALUE
from latecomer.spark.frames import Frame, Kind, Splitter
from latecomer.spark.heartbeat import BEAT
from latecomer.spark.workers import end_task

SHARD, KEEP, END = "_lc_shard", "_lc_keep", "_lc_end"
STAMP, NOW = "_lc_stamp", "_lc_now"  # when a row came; when its micro-batch began, by Spark's offset log
CHANGED = "_lc_changed"  # +1 or -1


@dataclass(frozen=True)
class PackPlan:
    """What pack must know: where the roles stand, and what counts as absurd.

    now: the column that times are compared with where `max_ahead` is asked for and rows have no stamp.
    """

    shard_keys: tuple[int, ...]
    time: str
    stamp: str | None
    source: str | None
    columns: tuple[str, ...]  # what travels: the user's columns and the carried ones
    user_columns: tuple[str, ...]
    filtering: bool
    beating: bool
    controlled: bool
    ending: bool
    tick_us: int
    idle_ticks: int | None
    earliest_us: int
    latest_us: int
    max_ahead_us: int | None
    change: str | None = None
    now: str | None = None


def packer(plan: PackPlan) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The function that `mapInArrow` runs."""

    def pack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        task = PackTask(plan, context.partitionId() if context is not None else 0)
        for batch in batches:
            yield from map(_as_batch, task.add(batch))
        yield from map(_as_batch, task.close())
        end_task()

    return pack


class PackTask:
    """One task's packing, batch after batch."""

    def __init__(self, plan: PackPlan, number: int) -> None:
        self._plan = plan
        self._splitter = Splitter(plan.shard_keys, number)
        self._header = HeaderBuilder(plan.idle_ticks)
        self._empty: pa.RecordBatch | None = None
        self._counts = {Kind.SEEN: 0, Kind.FILTERED: 0, Kind.CONTROL: 0}

    def add(self, batch: pa.RecordBatch) -> Iterator[Frame]:
        """Take in a batch; gives the frames that are full."""
        batch = self._without_control(batch)
        self._counts[Kind.SEEN] += batch.num_rows
        ts_us, stamp_us, reasons = _read_times(self._plan, batch)
        usable = reasons == 0
        tick = None if stamp_us is None else stamp_us // self._plan.tick_us
        self._measure(batch, ts_us, tick, usable)
        wanted = self._wanted(batch)
        self._counts[Kind.FILTERED] += int(batch.num_rows - wanted.sum())
        shard = batch.column(SHARD).to_numpy()
        rows = _normal(batch.select(list(self._plan.columns)))
        if self._plan.change is not None:
            rows = rows.append_column(EVENT_CHANGE_FIELD, batch.column(self._plan.change).cast(pa.int8(), safe=False))
        if tick is not None:
            rows = rows.append_column(TICK_FIELD, pa.array(tick))
        self._empty = rows.slice(0, 0)
        chosen = usable & wanted
        yield from self._splitter.add(Kind.EVENTS, rows, shard, None if chosen.all() else np.flatnonzero(chosen))
        if not usable.all():
            rejected = _normal(batch.select(list(self._plan.user_columns)))
            rejected = rejected.append_column(REASON, _REASONS.take(pa.array(reasons)))
            yield from self._splitter.add(Kind.QUARANTINE, rejected, shard, np.flatnonzero(~usable & wanted))

    def close(self) -> Iterator[Frame]:
        """The rest of the blobs, then the header for every shard and the counts for the first."""
        splitter = self._splitter
        yield from splitter.rest()
        header = self._header.build().to_bytes()
        for shard in range(len(self._plan.shard_keys)):
            if self._empty is not None and shard not in splitter.addressed:
                yield splitter.frame(Kind.EVENTS, shard, 0, rows_to_bytes(self._empty))
            yield splitter.frame(Kind.HEADER, shard, 0, header)
        for kind, count in self._counts.items():
            if count:
                yield splitter.frame(kind, 0, count, None)

    def _without_control(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Hear heartbeats, control values and ends, and leave the events."""
        if self._plan.beating:
            beats = batch.column(BEAT)
            heard = beats.is_valid().to_numpy(zero_copy_only=False)
            if heard.any():
                self._header.hear(int(int64_view(beats.filter(pa.array(heard))).max()))
                batch = take_rows(batch, np.flatnonzero(~heard))
        if self._plan.controlled:
            values = batch.column(VALUE)
            heard = values.is_valid().to_numpy(zero_copy_only=False)
            if heard.any():
                for text in values.filter(pa.array(heard)).to_pylist():
                    for name, value in json.loads(text).items():
                        self._header.control(name, json.dumps(value))
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

    def _wanted(self, batch: pa.RecordBatch) -> Bools:
        """The rows that the user's conditions keep."""
        if not self._plan.filtering:
            return np.ones(batch.num_rows, dtype=np.bool_)
        keep: Bools = batch.column(KEEP).fill_null(False).to_numpy(zero_copy_only=False)
        return keep


def _as_batch(frame: Frame) -> pa.RecordBatch:
    columns = zip(Frame._fields, frame, strict=True)
    return pa.RecordBatch.from_pydict({name: pa.array([value], _FRAME_TYPES[name]) for name, value in columns})


_FRAME_TYPES = {
    "shard": pa.int32(),
    "task": pa.int64(),
    "part": pa.int32(),
    "kind": pa.int32(),
    "n": pa.int64(),
    "blob": pa.binary(),
}

_REASONS = pa.array(
    ["", "null_time", "too_early", "too_far", "null_arrival", "absurd_arrival", "ahead_of_arrival", "bad_change"],
    pa.string(),
)
_NULL_TIME, _TOO_EARLY, _TOO_FAR, _NULL_ARRIVAL, _ABSURD_ARRIVAL, _AHEAD, _BAD_CHANGE = range(1, 8)


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
    if plan.change is not None:
        change = batch.column(plan.change).cast(pa.int64()).fill_null(0).to_numpy()
        reasons[(change != 1) & (change != -1)] = _BAD_CHANGE
    ahead_of = plan.stamp or plan.now
    if plan.max_ahead_us is not None and ahead_of is not None:
        reasons[ts_us - plan.max_ahead_us > _without_nulls(batch.column(ahead_of))] = _AHEAD
    stamp_us = None
    if plan.stamp is not None:
        stamps = batch.column(plan.stamp)
        stamp_us = _without_nulls(stamps)
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
