"""The rows of a playback: their columns, and what its tasks do: read a recording, or make the rows of its end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql.types import BooleanType, DataType, StructType

from latecomer.disorder.player import Options
from latecomer.disorder.recording import Recording, Span, open_parquet, read_span
from latecomer.errors import InputError, must
from latecomer.spark.compat import arrow_schema, spark_type


def spark_schema(recording: Recording, options: Options) -> StructType:
    """The recording's columns, all nullable as the end's are null, and `end` if it is asked for."""
    schema = StructType()
    for field in recording.schema:
        schema = schema.add(field.name, _spark_type(field), nullable=True)
    if options.source is not None and options.source not in schema.names:
        advice = f"the columns are {', '.join(schema.names)}"
        raise InputError(must("source", "name a column", options.source, advice))
    if options.end is None:
        return schema
    if not options.end or options.end.lower() in [name.lower() for name in schema.names]:
        advice = f"besides {', '.join(schema.names)}"
        raise InputError(must("end", "name a new column", options.end, advice))
    return schema.add(options.end, BooleanType(), nullable=True)


def _spark_type(field: pa.Field) -> DataType:
    try:
        return spark_type(field.type)
    except PySparkException as error:
        advice = "cast it when you record"
        where = f"column '{field.name}'"
        raise InputError(must(where, "have a type Spark knows", str(field.type), advice)) from error


def read_rows(spans: Sequence[Span], options: Options, schema: StructType) -> Iterator[pa.RecordBatch]:
    """The rows of some spans in the types that Spark wants: times in microseconds, those with a zone in UTC."""
    target = arrow_schema(schema)
    for span in spans:
        for batch in read_span(span, options.arrival):
            fields = [field for field in target if field.name != options.end]
            columns = [batch.column(field.name).cast(field.type, safe=False) for field in fields]
            if options.end is not None:
                columns.append(pa.array(np.zeros(batch.num_rows, dtype=np.bool_)))
            yield pa.RecordBatch.from_arrays(columns, schema=target)


def read_end(spans: Sequence[Span], last_us: int, options: Options, schema: StructType) -> Iterator[pa.RecordBatch]:
    """One row that says the recording is over, or one for each source; it arrives with the last events."""
    target = arrow_schema(schema)
    sources = None if options.source is None else _distinct(spans, options.source)
    rows = 1 if sources is None else len(sources)
    known = {options.end: pa.array([True] * rows), options.arrival: pa.array([last_us] * rows, pa.int64())}
    if sources is not None and options.source is not None:
        known.setdefault(options.source, sources)
    columns = [
        known[field.name].cast(field.type, safe=False) if field.name in known else pa.nulls(rows, field.type)
        for field in target
    ]
    yield pa.RecordBatch.from_arrays(columns, schema=target)


def _distinct(spans: Sequence[Span], column: str) -> pa.Array:
    """The values of a column in the order in which they first come, read a row group at a time."""
    found: pa.Array | None = None
    for span in spans:
        with open_parquet(span.group.file) as parquet:
            values = parquet.read_row_group(span.group.number, columns=[column]).column(column)
        plain = values.cast(values.type.value_type) if pa.types.is_dictionary(values.type) else values
        new = plain.unique()
        found = new if found is None else pa.concat_arrays([found, new]).unique()
    return found
