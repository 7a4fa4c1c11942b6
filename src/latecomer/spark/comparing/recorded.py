"""A recorded stream, cut into micro-batches that every way gets alike: one file each, and a last one that ends it.

Rows come in the order of arrival, cut between ticks. The last file holds no event but one row for each source that says
it has ended, so that every way gives all it has. Where arrival is not known, all rows of a micro-batch come at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from latecomer.disorder.measures import lateness
from latecomer.errors import InputError, must
from latecomer.events import NEVER_US, Bools, Int64s, Layout, take_rows
from latecomer.quality import MARK, Stream
from latecomer.spark.stream_files import read_batches, write_batches

TIMESTAMP = pa.timestamp("us", "UTC")
MOST_BATCHES = 90  # Spark remembers the progress of a hundred


@dataclass(frozen=True)
class Roles:
    """Which columns matter."""

    time: str
    key: tuple[str, ...]
    arrival: str | None = None
    source: str | None = None

    @property
    def layout(self) -> Layout:
        """What operators know of the rows."""
        return Layout(self.time, self.key, self.source)


@dataclass(frozen=True)
class RecordedStream:
    """Rows in the order of arrival, times as timestamps, and where micro-batches are cut."""

    rows: pa.RecordBatch
    roles: Roles
    ts_us: Int64s
    cuts: Int64s  # the row after each micro-batch
    tick: Int64s
    tick_us: int
    aside: Bools  # rows that are too far ahead of their arrival: they move nothing

    @property
    def batches(self) -> int:
        """How many micro-batches have events."""
        return len(self.cuts)

    @property
    def marks_us(self) -> Int64s:
        """The high-water mark after each micro-batch."""
        counted_us = np.where(self.aside, NEVER_US, self.ts_us)
        marks: Int64s = np.maximum.accumulate(counted_us)[self.cuts - 1]
        return marks

    @property
    def counted(self) -> tuple[pa.RecordBatch, Int64s]:
        """The rows that are not set aside, and their times."""
        chosen = np.flatnonzero(~self.aside)
        return take_rows(self.rows, chosen), self.ts_us[chosen]

    def stream(self) -> Stream:
        """What scores need of it."""
        counted, ts_us = self.counted
        late_us = lateness(ts_us, self.tick[~self.aside])
        late = np.flatnonzero(late_us)
        columns = [self.roles.time, *self.roles.key]
        met = pa.array(ts_us[late] + late_us[late])
        rows = pa.Table.from_batches([counted.select(columns)]).take(pa.array(late)).append_column(MARK, met)
        return Stream(self.marks_us, rows, self.roles.time)

    def write(self, folder: Path) -> Path:
        """One file for each micro-batch, and one that ends the stream."""
        return write_batches(
            self.rows, self.cuts.tolist(), folder, arrival=self.roles.arrival, source=self.roles.source
        )

    def read(self, spark: SparkSession, folder: Path) -> DataFrame:
        """The files as a stream, one to a micro-batch."""
        return read_batches(spark, folder, self.rows.schema)


def recorded(
    table: pa.Table,
    roles: Roles,
    times: tuple[Int64s, Int64s | None],
    batches: int,
    tick_us: int,
    max_ahead_us: int | None = None,
) -> RecordedStream:
    """A table with its times of events and of arrival in microseconds, in so many micro-batches, or fewer."""
    ts_us, arrival_us = times
    most = min(MOST_BATCHES, len(ts_us))
    if not 2 <= batches <= most:
        raise InputError(must("batches", f"be from 2 to {most}", batches, "choose another number"))
    order = np.arange(len(ts_us)) if arrival_us is None else np.argsort(arrival_us, kind="stable")
    equal = np.arange(1, batches + 1) * len(ts_us) // batches
    stamps = {roles.time: ts_us[order]}
    tick = np.searchsorted(equal, order, side="right")
    if arrival_us is not None:
        stamps[str(roles.arrival)] = arrival_us[order]
        tick = arrival_us[order] // tick_us
    ends = np.append(np.flatnonzero(np.diff(tick)) + 1, len(tick))  # the row after each tick
    cuts = np.unique(ends[np.searchsorted(ends, equal)])
    nullable = pa.schema([each.with_nullable(True).with_metadata(None) for each in table.schema])
    taken = table.cast(nullable).take(pa.array(order)).combine_chunks()
    for name, us in stamps.items():
        taken = taken.set_column(taken.schema.get_field_index(name), name, pa.array(us).view(TIMESTAMP))
    aside = np.zeros(len(order), dtype=np.bool_)
    if arrival_us is not None and max_ahead_us is not None:
        aside = ts_us[order] > arrival_us[order] + max_ahead_us
    return RecordedStream(taken.to_batches()[0], roles, ts_us[order], cuts, tick, tick_us, aside)
