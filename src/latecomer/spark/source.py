"""A source on disk as numbered rows in Spark.

Spark packs the blocks of files into tasks by size, so neither the task nor its order says where a row stands. Text is
read by Spark, and a row's number comes from its file, its block's first byte and its place in the block; the lines of
each block are counted first. Parquet is read row group by row group, whose first rows the files' own footers tell.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from latecomer.disorder.lines import Bad, parse_lines
from latecomer.disorder.load import bad_times
from latecomer.disorder.source import Source
from latecomer.disorder.times import column_us
from latecomer.events import Int64s

_ROWS = 65_536
_TASKS = 1_000  # more row groups than that share tasks


@dataclass(frozen=True)
class Block:
    """A piece of a file: its place among all blocks, and the number of its first row, in all and in its file."""

    place: int
    file: str
    number: int
    line: int
    group: int = 0


@dataclass(frozen=True)
class Piece:
    """Some rows of one block, in file order."""

    block: int
    number: Int64s
    ts_us: Int64s
    columns: dict[str, pa.Array]
    kinds: list[str]
    bad: list[tuple[str, Bad]]


@dataclass(frozen=True)
class Reader:
    """Reads the rows of raw blocks inside Spark's tasks."""

    source: Source
    blocks: dict[int, Block]

    def pieces(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Piece]:
        """Every row of a task, in pieces."""
        return self._text(batches) if self.source.form is not None else self._parquet(batches)

    def _text(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Piece]:
        assert self.source.form is not None
        done: dict[int, int] = {}
        for batch in batches:
            keys = batch["block"].to_numpy()
            cuts = [0, *(np.flatnonzero(np.diff(keys)) + 1).tolist(), len(keys)]
            for start, stop in itertools.pairwise(cuts):
                if start == stop:
                    continue
                key = int(keys[start])
                lines = batch["value"].slice(start, stop - start).to_pylist()
                yield self._parse(self.blocks[key], lines, done.get(key, 0))
                done[key] = done.get(key, 0) + len(lines)

    def _parse(self, block: Block, lines: list[bytes], done: int) -> Piece:
        form = self.source.form
        assert form is not None
        parsed = parse_lines(lines, block.line + done, form)
        columns = dict(zip(form.names, parsed.columns, strict=True))
        numbers = block.number - block.line + parsed.line
        return Piece(
            block.place, numbers, parsed.ts_us, columns, parsed.kinds, [(block.file, bad) for bad in parsed.bad]
        )

    def _parquet(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Piece]:
        for batch in batches:
            for key in batch["block"].to_pylist():
                yield from self._row_group(self.blocks[key])

    def _row_group(self, block: Block) -> Iterator[Piece]:
        done = 0
        time = self.source.time
        with pq.ParquetFile(block.file) as file:
            for batch in file.iter_batches(_ROWS, row_groups=[block.group]):
                ts_us, good = column_us(batch[time], self.source.unit, f"time field {time!r}")
                places = np.flatnonzero(good)
                bad = bad_times(pa.table(batch), np.flatnonzero(~good), time, block.line + done)
                kept = batch if len(places) == len(batch) else batch.take(pa.array(places))
                columns = dict(zip(kept.schema.names, kept.columns, strict=True))
                rows = [(block.file, row) for row in bad]
                yield Piece(block.place, block.number + done + places, ts_us[places], columns, [], rows)
                done += len(batch)


def raw_blocks(spark: SparkSession, source: Source) -> tuple[DataFrame, Reader]:
    """The source's bytes as blocks, and the reader that makes rows of them."""
    if source.form is None:
        return _row_groups(spark, source)
    paths = [_escaped(path) for path in source.files]
    lines = spark.read.text(paths, lineSep="\n")
    file, start = F.col("_metadata.file_path"), F.col("_metadata.file_block_start")
    key = F.xxhash64(file, start)
    counted = lines.groupBy(file.alias("file"), start.alias("start"), key.alias("block")).count().collect()
    found = sorted((_place(row["file"], source), row["start"], row["block"], row["count"]) for row in counted)
    return lines.select(key.alias("block"), F.col("value").cast("binary")), Reader(source, _number(found, source))


def _escaped(path: Path) -> str:
    """Spark takes paths for patterns; this one is meant as it stands."""
    text = str(path.resolve())
    return "".join(f"\\{letter}" if letter in "*?[]{}\\" else letter for letter in text)


def _place(uri: str, source: Source) -> int:
    """Which of the source's files a URI of Spark's is."""
    path = Path(unquote(urlsplit(uri).path))
    return next(place for place, file in enumerate(source.files) if file.resolve() == path)


def _number(found: list[tuple[int, int, int, int]], source: Source) -> dict[int, Block]:
    blocks, number, line, last = {}, 0, 0, -1
    for order, (file, _, key, count) in enumerate(found):
        line = 0 if file != last else line
        blocks[key] = Block(order, str(source.files[file]), number, line)
        number, line, last = number + count, line + count, file
    return blocks


def _row_groups(spark: SparkSession, source: Source) -> tuple[DataFrame, Reader]:
    blocks: dict[int, Block] = {}
    number = 0
    for path in source.files:
        line = 0
        footer = pq.read_metadata(path)
        for group in range(footer.num_row_groups):
            blocks[len(blocks)] = Block(len(blocks), str(path.resolve()), number, line, group)
            line += footer.row_group(group).num_rows
            number += footer.row_group(group).num_rows
    frame = spark.range(0, len(blocks), 1, max(1, min(len(blocks), _TASKS))).withColumnRenamed("id", "block")
    return frame, Reader(source, blocks)
