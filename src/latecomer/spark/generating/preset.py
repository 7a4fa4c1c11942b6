"""A preset of any size as a DataFrame: each task makes its own rows, Spark sorts them by arrival."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import LongType, TimestampType

from latecomer.disorder.presets import Preset
from latecomer.errors import InputError, must

PIECE = 1_000_000  # rows that are made at once
_PLACE = "_lc_place"


def as_csv(frame: DataFrame) -> DataFrame:
    """Instants as whole microseconds, as everything that latecomer writes as CSV has them."""
    instants = [field.name for field in frame.schema if isinstance(field.dataType, TimestampType)]
    return frame.withColumns({name: F.unix_micros(name) for name in instants})


def preset_frame(spark: SparkSession, preset: Preset, *, pieces: int | None = None) -> DataFrame:
    """All rows of a preset, in order of arrival; the content does not depend on the number of pieces."""
    count = pieces or max(1, -(-preset.rows // PIECE))
    if count < 1:
        raise InputError(must("pieces", "be at least 1", pieces, "leave it out"))
    size = -(-preset.rows // count)
    schema = from_arrow_schema(preset.schema, prefer_timestamp_ntz=True).add(_PLACE, LongType())

    def make(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for piece in batch["id"].to_pylist():
                start = piece * size
                rows = preset.block(start, max(start, min(start + size, preset.rows)))
                places = pa.array(range(start, start + len(rows)), pa.int64())
                yield from rows.append_column(_PLACE, places).to_batches(max_chunksize=65_536)

    made = spark.range(0, count, 1, count).mapInArrow(make, schema)
    return made.orderBy("arrival", _PLACE).drop(_PLACE)
