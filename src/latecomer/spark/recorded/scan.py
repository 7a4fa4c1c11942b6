"""One pass over a source: its rows as numbers in a cached DataFrame, and a small summary of each of its blocks."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.storagelevel import StorageLevel

from latecomer.disorder.generate import hash_devices
from latecomer.disorder.lines import Bad, join_kinds
from latecomer.disorder.load import QUARANTINE_SCHEMA, BadRows, Part, check_rows, device_names, refuse
from latecomer.disorder.source import Source
from latecomer.events import NEVER_US, Int64s
from latecomer.spark.recorded.source import Reader, raw_blocks

ROWS_SCHEMA = "block int, number bigint, ts_us bigint, device bigint, note string"
LANDMARK = 65_536  # rows between two notes of how far time got


@dataclass
class Summary:
    """What the driver learns of one block."""

    block: int
    rows: int = 0
    min_us: int = -NEVER_US
    max_us: int = NEVER_US
    landmarks: list[tuple[int, int]] = field(default_factory=list)  # (mark, row number)
    kinds: list[str] = field(default_factory=list)
    bad: int = 0
    first_bad: list[Any] | None = None

    def add(self, part: Part) -> None:
        """Take rows in."""
        if part.bad and self.first_bad is None:
            self.first_bad = [part.bad[0][0], *part.bad[0][1]]
        self.bad += len(part.bad)
        if len(part.ts_us) == 0:
            return
        self.kinds = _join(self.kinds, part.kinds)
        marks = np.maximum(np.maximum.accumulate(part.ts_us), self.max_us)
        first = -self.rows % LANDMARK
        self.landmarks += list(zip(marks[first::LANDMARK].tolist(), part.number[first::LANDMARK].tolist(), strict=True))
        self.rows += len(part.ts_us)
        self.min_us, self.max_us = min(self.min_us, int(part.ts_us.min())), int(marks[-1])


@dataclass(frozen=True)
class Bounds:
    """Rows in order of arrival, cut into parts: each bound is the first (arrival, row number) of a part."""

    arrival_us: Int64s
    number: Int64s

    def part_of(self, arrival_us: Int64s, number: Int64s) -> Int64s:
        """The part of each row; where many arrive at once, their numbers decide."""
        low = np.searchsorted(self.arrival_us, arrival_us, side="left")
        high = np.searchsorted(self.arrival_us, arrival_us, side="right")
        part: Int64s = high.copy()
        for bound in np.unique(low[high > low]).tolist():
            tied = (low == bound) & (high > low)
            stop = int(high[tied][0])
            part[tied] = bound + np.searchsorted(self.number[bound:stop], number[tied], side="right")
        return part


def _join(kinds: list[str], more: list[str]) -> list[str]:
    return [join_kinds({a, b}) for a, b in zip(kinds, more, strict=True)] if kinds else more


@dataclass(frozen=True)
class Scanned:
    """A source after the first pass; `rows` is cached until `close`."""

    source: Source
    raw: DataFrame
    reader: Reader
    rows: DataFrame
    summaries: list[Summary]

    @property
    def events(self) -> int:
        """How many rows there are."""
        return sum(summary.rows for summary in self.summaries)

    @property
    def bad(self) -> int:
        """How many rows are bad."""
        return sum(summary.bad for summary in self.summaries)

    @property
    def span(self) -> tuple[int, int]:
        """The first and last event time."""
        filled = [summary for summary in self.summaries if summary.rows]
        return min(summary.min_us for summary in filled), max(summary.max_us for summary in filled)

    def marks_before(self) -> dict[int, int]:
        """For each block, the high-water mark of all blocks before it."""
        before, mark = {}, NEVER_US
        for summary in self.summaries:
            before[summary.block] = mark
            mark = max(mark, summary.max_us)
        return before

    def kinds(self) -> list[str]:
        """The kind of each text column."""
        joined: list[str] = []
        for summary in self.summaries:
            joined = _join(joined, summary.kinds) if summary.kinds else joined
        return joined

    def bounds(self, parts: int) -> Bounds:
        """Arrivals that cut the rows into about equal parts, were none delayed."""
        found = np.array([pair for summary in self.summaries for pair in summary.landmarks], dtype=np.int64)
        marks, numbers = np.maximum.accumulate(found[:, 0]), found[:, 1]
        places = np.unique(np.arange(1, parts) * len(marks) // parts)
        return Bounds(marks[places], numbers[places])

    def bad_rows(self) -> DataFrame:
        """The bad rows, read again."""
        reader = self.reader

        def collect(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for _, part in reader.parts(batches):
                if part.bad:
                    yield from BadRows.of(part.bad).table.to_batches()

        return self.raw.mapInArrow(collect, _spark_text(QUARANTINE_SCHEMA))

    def close(self) -> None:
        """Give the cache back."""
        self.rows.unpersist()


def _spark_text(schema: pa.Schema) -> str:
    return ", ".join(f"{column.name} {'bigint' if column.type == pa.int64() else 'string'}" for column in schema)


def scan(spark: SparkSession, source: Source) -> Scanned:
    """Read the source once; a bad row is an error unless the source quarantines."""
    raw, reader = raw_blocks(spark, source)
    rows = raw.mapInArrow(_scanner(reader), ROWS_SCHEMA).persist(StorageLevel.DISK_ONLY)
    notes = rows.where(F.col("note").isNotNull()).select("note").collect()
    merged: dict[int, Summary] = {}
    for note in notes:
        summary = Summary(**json.loads(note["note"]))
        merged[summary.block] = summary
    scanned = Scanned(source, raw, reader, rows, [merged[block] for block in sorted(merged)])
    _check(scanned)
    return scanned


def _check(scanned: Scanned) -> None:
    first = next((summary.first_bad for summary in scanned.summaries if summary.first_bad), None)
    try:
        if first is not None and not scanned.source.quarantining:
            raise refuse(first[0], Bad(*first[1:]), scanned.bad)
        check_rows(scanned.events, scanned.bad, scanned.source.files)
    except Exception:
        scanned.close()
        raise


def _scanner(reader: Reader) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Rows as numbers, and after them a note on each block."""
    device = reader.source.device

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        summaries: dict[int, Summary] = {}
        for block, part in reader.parts(batches):
            summaries.setdefault(block, Summary(block)).add(part)
            hashed = None if device is None else hash_devices(device_names(part, device)).view(np.int64)
            yield _rows(block, part, hashed)
        for summary in summaries.values():
            yield _note(summary)

    return read


def _rows(block: int, part: Part, device: Int64s | None) -> pa.RecordBatch:
    count = len(part.number)
    columns = [
        pa.array(np.full(count, block, dtype=np.int32)),
        pa.array(part.number),
        pa.array(part.ts_us),
        pa.nulls(count, pa.int64()) if device is None else pa.array(device),
        pa.nulls(count, pa.string()),
    ]
    return pa.RecordBatch.from_arrays(columns, names=["block", "number", "ts_us", "device", "note"])


def _note(summary: Summary) -> pa.RecordBatch:
    columns = [
        pa.array([summary.block], pa.int32()),
        *(pa.nulls(1, pa.int64()) for _ in range(3)),
        pa.array([json.dumps(summary.__dict__)]),
    ]
    return pa.RecordBatch.from_arrays(columns, names=["block", "number", "ts_us", "device", "note"])
