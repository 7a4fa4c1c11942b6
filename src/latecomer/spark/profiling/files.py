"""Profile files of any size: rows are numbered in file order, then measured as any DataFrame is."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from latecomer.disorder.load import Part, check_rows
from latecomer.disorder.profile import Clock, Profile
from latecomer.disorder.source import Source
from latecomer.spark.profiling.blocks import Batches, sorted_blocks
from latecomer.spark.profiling.frame import profile_blocks
from latecomer.spark.recorded.scan import scan
from latecomer.spark.recorded.source import Reader, raw_blocks


def profile_files(
    spark: SparkSession,
    source: Source,
    *,
    key: str | None = None,
    by_source: str | None = None,
    period_us: int | None = None,
    clock: Clock,
    name: str,
) -> Profile:
    """Measure the disorder of files; bad rows are an error unless the source quarantines them."""
    raw, reader = raw_blocks(spark, source)
    roles = {role: column for role, column in (("key", key), ("source", by_source)) if column is not None}
    schema = "ts_us bigint, order0 bigint, cut bigint"
    schema += ", arrival_us bigint" if source.arrival is not None else ""
    schema += "".join(f", {role} string" for role in roles)
    blocks = sorted_blocks(raw.mapInArrow(_rows(reader, roles), schema), clock=clock)
    try:
        if blocks.without_time and not source.quarantining:
            scan(spark, source).close()  # finds the first bad row and names it
        check_rows(blocks.events, blocks.without_time, source.files)
        return profile_blocks(blocks, name, period_us)
    finally:
        blocks.close()


def _rows(reader: Reader, roles: dict[str, str]) -> Callable[[Batches], Batches]:
    def read(batches: Batches) -> Iterator[pa.RecordBatch]:
        for _, part in reader.parts(batches):
            yield _batch(part, roles)

    return read


def _batch(part: Part, roles: dict[str, str]) -> pa.RecordBatch:
    """The rows of a part; bad ones follow without a time."""
    bad = len(part.bad)
    cut = np.zeros(len(part.ts_us), dtype=np.int64)
    cut[:1] = part.cut
    columns = {"ts_us": _padded(part.ts_us, bad), "order0": _padded(part.number, bad), "cut": _padded(cut, bad)}
    if part.arrival_us is not None:
        columns["arrival_us"] = _padded(part.arrival_us, bad)
    for role, column in roles.items():
        values = part.columns[column].cast(pa.string())
        columns[role] = pa.concat_arrays([values, pa.nulls(bad, pa.string())]) if bad else values
    return pa.RecordBatch.from_pydict(columns)


def _padded(values: np.ndarray[tuple[int], np.dtype[np.int64]], more: int) -> pa.Array:
    return pa.concat_arrays([pa.array(values), pa.nulls(more, pa.int64())])
