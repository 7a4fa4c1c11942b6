"""Input files that Spark's file source must read in a known order."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from latecomer.spark.compat import spark_type

END = "latecomer_end"  # in files of micro-batches: whether the row says that its source has ended


def age_by_name(folder: Path) -> None:
    """Let Spark's file source take a folder's files by name.

    It takes them by age, in milliseconds: files written in one go may be of one age and come in any order. Files are
    made a second apart, the last one now; later files are younger than all of them.
    """
    paths = sorted(folder.glob("*.parquet"))
    for place, path in enumerate(reversed(paths)):
        moment = time.time() - place
        os.utime(path, (moment, moment))


def write_batches(
    rows: pa.RecordBatch, cuts: Sequence[int], folder: Path, *, arrival: str | None, source: str | None
) -> Path:
    """Rows in order, one file to a micro-batch, and a last one that ends the stream; cuts: the row after each."""
    folder.mkdir(parents=True)
    parts = [rows.slice(start, stop - start) for start, stop in pairwise((0, *cuts))]
    marked = [part.append_column(END, pa.array(np.zeros(part.num_rows, np.bool_))) for part in parts]
    for number, part in enumerate([*marked, _ending(rows, arrival, source)]):
        pq.write_table(pa.Table.from_batches([part]), folder / f"{number:05d}.parquet")
    age_by_name(folder)
    return folder


def read_batches(spark: SparkSession, folder: Path, schema: pa.Schema) -> DataFrame:
    """Such files as a stream, one to a micro-batch; schema: of the rows."""
    columns = ", ".join(f"`{each.name}` {spark_type(each.type).simpleString()}" for each in schema)
    return spark.readStream.schema(f"{columns}, {END} boolean").option("maxFilesPerTrigger", 1).parquet(str(folder))


def _ending(rows: pa.RecordBatch, arrival: str | None, source: str | None) -> pa.RecordBatch:
    """A row for each source, which comes with the last event."""
    sources = [None] if source is None else rows.column(source).unique().to_pylist()
    known = {} if source is None else {source: sources}
    if arrival is not None and rows.num_rows:
        known[arrival] = [rows.column(arrival)[-1].as_py()] * len(sources)
    columns = [pa.array(known.get(each.name, [None] * len(sources)), each.type) for each in rows.schema]
    ending = pa.RecordBatch.from_arrays(columns, schema=rows.schema)
    return ending.append_column(END, pa.array([True] * len(sources)))
