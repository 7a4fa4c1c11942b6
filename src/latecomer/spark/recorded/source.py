"""A source on disk as numbered rows in Spark.

Spark packs the blocks of files into tasks by size, so neither the task nor its order says where a row stands. Text is
read by Spark, and a row's number comes from its file, its block's first byte and its place in the block; the lines of
each block are counted first. Parquet is read row group by row group, whose first rows the files' own footers tell.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from latecomer.disorder.load import Part, parquet_part, text_part
from latecomer.disorder.source import Source, open_parquet
from latecomer.errors import InputError, must
from latecomer.events import Int64s

_ROWS = 65_536
_TASKS = 1_000  # more row groups than that share tasks


@dataclass(frozen=True)
class Block:
    """A piece of a file: its place among all blocks, its first line, and how many rows are in the files before."""

    place: int
    file: str
    line: int
    before: int
    group: int = 0


@dataclass(frozen=True)
class Reader:
    """Reads the rows of raw blocks inside Spark's tasks."""

    source: Source
    blocks: dict[int, Block]

    def parts(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, Part]]:
        """Every row of a task, with the place of its block."""
        return self._text(batches) if self.source.form is not None else self._parquet(batches)

    def _text(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, Part]]:
        assert self.source.form is not None
        done: dict[int, int] = {}
        for batch in batches:
            keys = batch["block"].to_numpy()
            for start, stop in stretches(keys):
                key = int(keys[start])
                block = self.blocks[key]
                lines = batch["value"].slice(start, stop - start).to_pylist()
                line = block.line + done.get(key, 0)
                yield block.place, text_part(block.file, lines, line, block.before, self.source.form)
                done[key] = done.get(key, 0) + len(lines)

    def _parquet(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, Part]]:
        for batch in batches:
            for key in batch["block"].to_pylist():
                yield from self._row_group(self.blocks[key])

    def _row_group(self, block: Block) -> Iterator[tuple[int, Part]]:
        line = block.line
        with open_parquet(block.file) as file:
            for batch in file.iter_batches(_ROWS, row_groups=[block.group]):
                yield block.place, parquet_part(block.file, batch, line, block.before, self.source)
                line += len(batch)


def stretches(values: Int64s) -> list[tuple[int, int]]:
    """Where equal neighbours begin and end."""
    if len(values) == 0:
        return []
    cuts = [0, *(np.flatnonzero(np.diff(values)) + 1).tolist(), len(values)]
    return list(itertools.pairwise(cuts))


def raw_blocks(spark: SparkSession, source: Source) -> tuple[DataFrame, Reader]:
    """The source's bytes as blocks, and the reader that makes rows of them."""
    if source.form is None:
        return _row_groups(spark, source)
    for path in source.files:
        if path.name.startswith(("_", ".")) or ":" in path.name:
            advice = "rename it, or use the engine python"
            raise InputError(must("file", "not begin with _ or . nor have a : for Spark", str(path), advice))
    paths = [_escaped(path) for path in source.files]
    lines = spark.read.text(paths, lineSep="\n")
    file, start = F.col("_metadata.file_path"), F.col("_metadata.file_block_start")
    key = F.xxhash64(file, start)
    counted = lines.groupBy(file.alias("file"), start.alias("start"), key.alias("block")).count().collect()
    found = sorted((_place(row["file"], source), row["start"], row["block"], row["count"]) for row in counted)
    return lines.select(key.alias("block"), F.col("value").cast("binary")), Reader(source, _number(found, source))


def _escaped(path: Path) -> str:
    """Spark takes paths for patterns; this one is meant as it stands."""
    text = os.path.abspath(path)
    return "".join(f"\\{letter}" if letter in "*?[]{}\\" else letter for letter in text)


def _place(uri: str, source: Source) -> int:
    """Which of the source's files a URI of Spark's is."""
    path = unquote(urlsplit(uri).path)
    return next(place for place, file in enumerate(source.files) if os.path.abspath(file) == path)


def _number(found: list[tuple[int, int, int, int]], source: Source) -> dict[int, Block]:
    blocks, before, line, last = {}, 0, 0, -1
    for place, (file, _, key, count) in enumerate(found):
        if file != last:
            before, line, last = before + line, 0, file
        blocks[key] = Block(place, str(source.files[file]), line, before)
        line += count
    return blocks


def _row_groups(spark: SparkSession, source: Source) -> tuple[DataFrame, Reader]:
    blocks: dict[int, Block] = {}
    before = 0
    for path in source.files:
        line = 0
        with open_parquet(path) as file:
            footer = file.metadata
        for group in range(footer.num_row_groups):
            blocks[len(blocks)] = Block(len(blocks), os.path.abspath(path), line, before, group)
            line += footer.row_group(group).num_rows
        before += line
    frame = spark.range(0, len(blocks), 1, max(1, min(len(blocks), _TASKS))).withColumnRenamed("id", "block")
    return frame, Reader(source, blocks)
