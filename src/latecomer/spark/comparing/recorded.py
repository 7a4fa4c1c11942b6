"""A recorded stream, cut into micro-batches that every way gets alike: one file each, and a last one that ends it.

Rows come in the order of arrival, cut between ticks. The last file holds no event but one row for each source that says
it has ended, so that every way gives all it has. Where arrival is not known, all rows of a micro-batch come at once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from latecomer.disorder.ahead import too_far_ahead
from latecomer.disorder.measures import lateness
from latecomer.durations import instant_us
from latecomer.errors import InputError, must
from latecomer.events import NEVER_US, Bools, Int64s, Layout, take_rows
from latecomer.quality import MARK, Stream
from latecomer.spark.declare import USUAL_SPAN
from latecomer.spark.stream_files import read_batches, write_batches

TIMESTAMP = pa.timestamp("us", "UTC")
LEAST_ROWS = 3
MOST_BATCHES = 20_000  # a micro-batch takes some milliseconds without Spark
MOST_ON_SPARK = 90  # Spark remembers the progress of a hundred micro-batches


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
class Pace:
    """How rows come: in ticks, and in micro-batches, so many or each of so long; if neither is said, `usual` many."""

    tick_us: int
    batches: int | None = None
    trigger_us: int | None = None
    usual: int = 24


@dataclass(frozen=True)
class RecordedStream:
    """Rows in the order of arrival, times as timestamps, and where micro-batches are cut."""

    rows: pa.RecordBatch
    roles: Roles
    ts_us: Int64s
    cuts: Int64s  # the row after each micro-batch
    tick: Int64s
    tick_us: int
    ahead: Bools  # rows too far ahead of their arrival, which Spark's own query is spared too
    aside: Bools  # these, and rows whose times are none that a query of ours takes: they move nothing
    arrival_us: Int64s | None = None
    left_out: int = 0  # rows without a time, which are in no micro-batch

    @property
    def batches(self) -> int:
        """How many micro-batches have events."""
        return len(self.cuts)

    @property
    def marks_us(self) -> Int64s:
        """The high-water mark after each micro-batch."""
        return self._marks(~self.aside)

    @property
    def sparks_marks_us(self) -> Int64s:
        """What Spark's own query takes for it."""
        return self._marks(~self.ahead)

    @property
    def span_us(self) -> tuple[int, int]:
        """The first and the last time that count."""
        counted_us = self.ts_us[~self.aside]
        return int(counted_us.min()), int(counted_us.max())

    def _marks(self, counted: Bools) -> Int64s:
        marks: Int64s = np.maximum.accumulate(np.where(counted, self.ts_us, NEVER_US))[self.cuts - 1]
        return marks

    def recut(self, batches: int) -> RecordedStream:
        """The same rows in so many micro-batches."""
        tick, cuts = _cut(len(self.ts_us), self.arrival_us, Pace(self.tick_us, batches))
        return replace(self, tick=tick, cuts=cuts)

    @property
    def batch_us(self) -> int | None:
        """How much time passes between micro-batches, in the middle; None if nobody knows when rows came."""
        if self.arrival_us is None:
            return None
        ends_us = self.arrival_us[self.cuts - 1]
        return int(np.median(np.diff(ends_us))) if len(ends_us) > 1 else int(ends_us[-1] - self.arrival_us[0])

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
    table: pa.Table, roles: Roles, times: tuple[Int64s, Int64s | None], pace: Pace, max_ahead_us: int | None = None
) -> RecordedStream:
    """A table with its times of events and of arrival in microseconds, in micro-batches."""
    ts_us, arrival_us = times
    order = np.arange(len(ts_us)) if arrival_us is None else np.argsort(arrival_us, kind="stable")
    ts_us = ts_us[order]
    stamps, ahead, aside = {roles.time: ts_us}, np.zeros(len(order), dtype=np.bool_), _outside(ts_us)
    if arrival_us is not None:
        arrival_us = arrival_us[order]
        stamps[str(roles.arrival)] = arrival_us
        ahead = too_far_ahead(ts_us, arrival_us, max_ahead_us)
        aside = aside | ahead | _outside(arrival_us)
    if (~aside).sum() < LEAST_ROWS:
        rule = f"have at least {LEAST_ROWS} rows with a time from {USUAL_SPAN[0]} to {USUAL_SPAN[1]}"
        got = f"{int((~aside).sum())} of {len(order)}"
        raise InputError(must("the stream", f"{rule}, none too far ahead", got, "look at unit, and at max_ahead"))
    tick, cuts = _cut(len(ts_us), arrival_us, pace)
    nullable = pa.schema([each.with_nullable(True).with_metadata(None) for each in table.schema])
    taken = table.cast(nullable).take(pa.array(order)).combine_chunks()
    for name, us in stamps.items():
        taken = taken.set_column(taken.schema.get_field_index(name), name, pa.array(us).view(TIMESTAMP))
    return RecordedStream(taken.to_batches()[0], roles, ts_us, cuts, tick, pace.tick_us, ahead, aside, arrival_us)


def _outside(times_us: Int64s) -> Bools:
    """Which times no query takes that does not say `earliest` or `latest`."""
    earliest_us, latest_us = (instant_us(each, "time") for each in USUAL_SPAN)
    return np.asarray((times_us < earliest_us) | (times_us >= latest_us))


def _cut(rows: int, arrival_us: Int64s | None, pace: Pace) -> tuple[Int64s, Int64s]:
    """The tick of each row, in order of arrival, and the row after each micro-batch: none ends within a tick."""
    if pace.trigger_us is not None:
        if arrival_us is None or pace.batches is not None:
            rule = "come with arrival and without batches"
            raise InputError(must("trigger", rule, f"{pace.trigger_us} us", "name the column, or leave it out"))
        tick, batch = arrival_us // pace.tick_us, arrival_us // pace.trigger_us
        ends, wanted = _ends(tick), _ends(batch)
    else:
        batches = min(pace.usual, rows) if pace.batches is None else pace.batches
        wanted = np.arange(1, batches + 1) * rows // max(1, batches)
        tick = (
            np.searchsorted(wanted, np.arange(rows), side="right") if arrival_us is None else arrival_us // pace.tick_us
        )
        ends = _ends(tick)
        if not 2 <= batches <= min(MOST_BATCHES, rows):
            rule = f"be from 2 to {min(MOST_BATCHES, rows):,}"
            raise InputError(must("batches", rule, batches, "choose another number"))
    cuts = np.unique(ends[np.searchsorted(ends, wanted)])
    if len(cuts) > MOST_BATCHES:
        rule = f"make at most {MOST_BATCHES:,} micro-batches"
        raise InputError(must("trigger", rule, f"{len(cuts):,}", "give a longer one, or a shorter part of the stream"))
    return tick, cuts


def _ends(numbers: Int64s) -> Int64s:
    """The row after each stretch of equal numbers."""
    return np.append(np.flatnonzero(np.diff(numbers)) + 1, len(numbers))
