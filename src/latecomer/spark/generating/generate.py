"""Make disorder from a source of any size: Spark does the work, the driver sees a few numbers per block.

The rows are the same as those of `disorder/generate.py`: each row's chance depends on its number alone, late events are
counted exactly, and the search for the share to delay sees only those counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from latecomer.disorder.delays import Rows
from latecomer.disorder.generate import Experiment, Outcome, Sums, Tell, hash_devices, summarise, target_of
from latecomer.disorder.lines import KINDS, typed
from latecomer.disorder.load import Part, device_names
from latecomer.disorder.measures import Marks
from latecomer.disorder.source import Source
from latecomer.disorder.target import hit
from latecomer.disorder.write import TIMESTAMP, Destination
from latecomer.disorder.write import as_text as as_csv_text
from latecomer.errors import InputError, must
from latecomer.events import NEVER_US, Int64s
from latecomer.spark.compat import arrow_schema, spark_type
from latecomer.spark.recorded.scan import Bounds, Scanned, scan
from latecomer.spark.recorded.source import stretches
from latecomer.spark.session import changed_settings, small_rows

PART = 2_000_000  # rows that one task sorts
_NUMBER, _ARRIVAL = "_lc_number", "_lc_arrival"
_TIMES_AS = "spark.sql.parquet.outputTimestampType"
Batches = Iterator[pa.RecordBatch]


def make_on_spark(
    spark: SparkSession, source: Source, experiments: list[Experiment], destination: Destination, tell: Tell
) -> list[Outcome]:
    """Make every experiment of a source of any size."""
    if source.schema is not None:
        _spark_schema(list(source.schema))
    tell("reading")
    scanned = scan(spark, source)
    parts = max(4, -(-scanned.events // PART))
    settings = {"spark.sql.shuffle.partitions": str(parts)}
    try:
        with changed_settings(spark, settings):
            if scanned.bad:
                scanned.bad_rows().write.parquet(str(destination.folder / "quarantine.parquet"), compression="zstd")
            return [_make(experiment, scanned, destination, tell) for experiment in experiments]
    finally:
        scanned.close()


def _make(experiment: Experiment, scanned: Scanned, destination: Destination, tell: Tell) -> Outcome:
    tell(f"{experiment.name}: looking for the share to delay")
    counting = Counting(scanned, experiment)
    events = scanned.events
    target = target_of(experiment.config.factor, events)
    found = hit(lambda share: counting.at(share).late, events, target, counting.at(0.0).late)
    tell(f"{experiment.name}: writing")
    frame = arrived(scanned, experiment, found.share, destination)
    write(frame, destination, experiment.name)
    return summarise(experiment, found, events, counting.at(0.0).late, counting.at(found.share))


@dataclass(frozen=True)
class Arriving:
    """Gives arrival times inside Spark's tasks; carries the running maximum along each block."""

    experiment: Experiment
    share: float
    before: dict[int, int]
    span: tuple[int, int]

    def walk(self, pieces: Iterable[tuple[int, Rows]]) -> Iterator[tuple[Rows, Int64s, Int64s]]:
        """Rows, running maxima and arrivals of pieces that come block by block, in order."""
        marks = dict(self.before)
        for block, rows in pieces:
            base_us = np.maximum(np.maximum.accumulate(rows.ts_us), marks[block])
            marks[block] = int(base_us[-1])
            yield rows, base_us, self.experiment.arrivals(rows, base_us, self.share)

    def of_batches(self, batches: Batches) -> Iterator[tuple[int, Rows]]:
        """The scanned rows of a task, block by block."""
        for batch in batches:
            blocks = batch["block"].to_numpy()
            for start, stop in stretches(blocks):
                part = batch.slice(start, stop - start)
                device = None
                if part["device"].null_count == 0:
                    device = part["device"].to_numpy().view(np.uint64)
                yield int(blocks[start]), Rows(part["number"].to_numpy(), part["ts_us"].to_numpy(), device, *self.span)


class Counting:
    """Counts, for a share of units to delay, how many events come late; every count is kept."""

    def __init__(self, scanned: Scanned, experiment: Experiment) -> None:
        self._scanned, self._experiment = scanned, experiment
        self._rows = scanned.rows.where(F.col("note").isNull()).drop("note")
        self._bounds = scanned.bounds(max(4, -(-scanned.events // PART)))
        self._before = scanned.marks_before()
        self._kept: dict[float, Sums] = {}

    def at(self, share: float) -> Sums:
        """Totals over all rows if this share is delayed."""
        if share not in self._kept:
            arriving = Arriving(self._experiment, share, self._before, self._scanned.span)
            with small_rows(self._rows.sparkSession):
                self._kept[share] = self._count(arriving)
        return self._kept[share]

    def _count(self, arriving: Arriving) -> Sums:
        delays = self._rows.mapInArrow(_delays_by_part(arriving, self._bounds), _DELAYS_SCHEMA).collect()
        highest: dict[int, int] = {}
        for row in delays:
            highest[row["part"]] = max(highest.get(row["part"], NEVER_US), row["max_ts_us"])
        mark, before = NEVER_US, {}
        for part in sorted(highest):
            before[part] = mark
            mark = max(mark, highest[part])
        sent = self._rows.mapInArrow(_send(arriving, self._bounds), _SENT_SCHEMA)
        late = sent.groupBy("part").applyInArrow(_count_late(before), _LATE_SCHEMA).collect()
        return Sums(
            delayed=sum(row["delayed"] for row in delays),
            delay_us=sum(int(row["delay_us"]) for row in delays),
            delay_max_us=max(row["delay_max_us"] for row in delays),
            late=sum(row["late"] for row in late),
            lateness_us=sum(int(row["lateness_us"]) for row in late),
            lateness_max_us=max(row["lateness_max_us"] for row in late),
        )


_DELAYS_SCHEMA = "part int, max_ts_us bigint, delayed bigint, delay_us string, delay_max_us bigint"
_SENT_SCHEMA = "part int, arrival_us bigint, number bigint, ts_us bigint"
_LATE_SCHEMA = "late bigint, lateness_us string, lateness_max_us bigint"


def _batch(schema: str, columns: list[Any]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(columns, names=[column.split()[0] for column in schema.split(", ")])


def _delays_by_part(arriving: Arriving, bounds: Bounds) -> Callable[[Batches], Batches]:
    """For each part of arrival time the largest event time, and what was delayed."""

    def count(batches: Batches) -> Batches:
        totals: dict[int, list[int]] = {}
        for rows, base_us, arrival_us in arriving.walk(arriving.of_batches(batches)):
            delay = arrival_us - base_us
            part = bounds.part_of(arrival_us, rows.number)
            order = np.argsort(part, kind="stable")
            for start, stop in stretches(part[order]):
                mine = order[start:stop]
                total = totals.setdefault(int(part[mine[0]]), [NEVER_US, 0, 0, 0])
                total[0] = max(total[0], int(rows.ts_us[mine].max()))
                total[1] += int(np.count_nonzero(delay[mine]))
                total[2] += int(delay[mine].sum())
                total[3] = max(total[3], int(delay[mine].max()))
        for place, (highest, delayed, delay_us, most) in totals.items():
            values = [[place], [highest], [delayed], [str(delay_us)], [most]]
            kinds = [pa.int32(), pa.int64(), pa.int64(), pa.string(), pa.int64()]
            yield _batch(_DELAYS_SCHEMA, [pa.array(v, kind) for v, kind in zip(values, kinds, strict=True)])

    return count


def _send(arriving: Arriving, bounds: Bounds) -> Callable[[Batches], Batches]:
    """Each row to the part of arrival time it falls into."""

    def send(batches: Batches) -> Batches:
        for rows, _, arrival_us in arriving.walk(arriving.of_batches(batches)):
            part = bounds.part_of(arrival_us, rows.number).astype(np.int32)
            yield _batch(_SENT_SCHEMA, [pa.array(column) for column in (part, arrival_us, rows.number, rows.ts_us)])

    return send


def _count_late(before: dict[int, int]) -> Callable[[pa.Table], pa.Table]:
    """Sort a part by arrival and count its late events, from the mark of all parts before it."""

    def count(table: pa.Table) -> pa.Table:
        arrival_us, number, ts_us = (table[name].to_numpy() for name in ("arrival_us", "number", "ts_us"))
        order = np.lexsort((number, arrival_us))
        late_us = Marks(before[table["part"][0].as_py()]).lateness(ts_us[order])
        late_us = late_us[late_us > 0]
        values = [len(late_us), str(int(late_us.sum(dtype=object)) if len(late_us) else 0), int(late_us.max(initial=0))]
        return pa.table([[value] for value in values], names=["late", "lateness_us", "lateness_max_us"])

    return count


def arrived(scanned: Scanned, experiment: Experiment, share: float, destination: Destination) -> DataFrame:
    """All columns of the source with the arrival time added, in order of arrival."""
    source = scanned.source
    kinds = scanned.kinds()
    fields = _columns(source, kinds, as_text=destination.format == "csv")
    stamp = TIMESTAMP if destination.format == "parquet" else pa.int64()
    fields += [pa.field(name, stamp) for name in destination.added(source)]
    fields += [pa.field(_ARRIVAL, pa.int64()), pa.field(_NUMBER, pa.int64())]
    schema = _spark_schema(fields)
    arriving = Arriving(experiment, share, scanned.marks_before(), scanned.span)
    finish = _finish(scanned, arriving, arrow_schema(schema), destination)
    frame = scanned.raw.mapInArrow(finish, schema)
    return frame.orderBy(_ARRIVAL, _NUMBER).drop(_ARRIVAL, _NUMBER)


def _spark_schema(fields: list[pa.Field]) -> StructType:
    """The columns as Spark knows them; what it cannot take is an error before any work."""
    schema, seen = StructType(), set[str]()
    for column in fields:
        where, advice = f"column {column.name!r}", "use the engine python, or change the column"
        if column.name.lower() in seen:
            raise InputError(must(where, "differ from others in more than case for Spark", column.name, advice))
        seen.add(column.name.lower())
        try:
            schema = schema.add(column.name, spark_type(column.type))
        except PySparkException:
            raise InputError(must(where, "have a type Spark knows", str(column.type), advice)) from None
    return schema


def _columns(source: Source, kinds: list[str], *, as_text: bool) -> list[pa.Field]:
    if source.schema is not None:
        empty = [pa.array([], column.type) for column in source.schema]
        shown = [as_csv_text(column).type if as_text else column.type for column in empty]
        return [pa.field(name, kind) for name, kind in zip(source.names, shown, strict=True)]
    return [
        pa.field(name, pa.string() if as_text else KINDS[kind]) for name, kind in zip(source.names, kinds, strict=True)
    ]


def _finish(
    scanned: Scanned, arriving: Arriving, schema: pa.Schema, destination: Destination
) -> Callable[[Batches], Batches]:
    reader, device = scanned.reader, scanned.source.device
    kinds = dict(zip(scanned.source.names, scanned.kinds(), strict=False)) if scanned.source.form is not None else {}
    added = destination.added(scanned.source)
    as_text = destination.format == "csv"

    def finish(batches: Batches) -> Batches:
        waiting: list[Part] = []

        def rows() -> Iterator[tuple[int, Rows]]:
            for block, part in reader.parts(batches):
                if len(part.ts_us):
                    waiting.append(part)
                    hashed = None if device is None else hash_devices(device_names(part, device))
                    yield block, Rows(part.number, part.ts_us, hashed, *arriving.span)

        for _, _, arrival_us in arriving.walk(rows()):
            part = waiting.pop()
            columns = [_shown(column, kinds.get(name), as_text=as_text) for name, column in part.columns.items()]
            stamps = {destination.event_time: part.ts_us, destination.arrival: arrival_us}
            columns += [pa.array(stamps[name]) for name in added]
            columns += [pa.array(arrival_us), pa.array(part.number)]
            cast = [column.cast(kind, safe=False) for column, kind in zip(columns, schema.types, strict=True)]
            yield from pa.Table.from_arrays(cast, schema=schema).to_batches()

    return finish


def _shown(column: pa.Array, kind: str | None, *, as_text: bool) -> pa.Array:
    """A column as it is written: text of a kind becomes values, in CSV all becomes text."""
    if as_text:
        return as_csv_text(column)
    return column if kind is None else typed(column, kind)


def write(frame: DataFrame, destination: Destination, name: str) -> None:
    """One experiment's rows, file after file in order of arrival."""
    folder = str(destination.folder / name)
    if destination.format == "parquet":
        with changed_settings(frame.sparkSession, {_TIMES_AS: "TIMESTAMP_MICROS"}) as refused:
            if refused:
                advice = "set it before, or use engine='python'"
                raise InputError(must(_TIMES_AS, "be TIMESTAMP_MICROS", "another that may not be changed", advice))
            frame.write.parquet(folder, compression="zstd")
    else:
        writer = frame.write.options(ignoreLeadingWhiteSpace=False, ignoreTrailingWhiteSpace=False)
        writer.csv(folder, header=True, sep=destination.separator, quote='"', escape='"', emptyValue="")
