"""What differs between the versions of Spark that we run on, 4.0 to 4.3. No other module asks which version it is.

A client over Spark Connect may have another version than its server: what is asked of the server takes the session.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
import pyspark
from pyspark.sql import types as T
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from latecomer.errors import InputError, must

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

OLDEST, NEWEST = (4, 0), (4, 3)
OLDEST_PANDAS = (2, 2)  # what the newest of them asks for; 3 is not refused, and from 4.2 on they warn of it


def release(version: str) -> tuple[int, int]:
    """The first two numbers of a version.

    >>> release("4.1.2"), release("4.3.0.dev1"), release("5")
    ((4, 1), (4, 3), (5, 0))
    """
    found = re.match(r"(\d+)(?:\.(\d+))?", version)
    return (int(found[1]), int(found[2] or 0)) if found else (0, 0)


HERE = release(pyspark.__version__)  # of this process, be it the driver or a worker


def check_here() -> None:
    """Refuse a PySpark that was never tried, and a pandas that it refuses itself, later and in more words."""
    check_spark(pyspark.__version__, "pyspark")
    with suppress(metadata.PackageNotFoundError):  # a platform may have it without its metadata
        pandas = metadata.version("pandas")
        if release(pandas) < OLDEST_PANDAS:
            raise InputError(must("pandas", "be 2.2 or newer", pandas, "pip install 'pandas>=2.2,<3'"))


def check_spark(version: str, what: str) -> None:
    """Refuse versions that were never tried."""
    if not OLDEST <= release(version) <= NEWEST:
        first, last = (".".join(map(str, each)) for each in (OLDEST, NEWEST))
        raise InputError(
            must(what, f"be of version {first} to {last}", version, f"use one of those, e.g. Spark {last}")
        )


def is_connect(spark: SparkSession) -> bool:
    """Whether a session is a client of Spark Connect, whose server may be on another machine."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


def check_connect(spark: SparkSession) -> None:
    """Refuse Spark Connect where it has no state in Python: before 4.1, unless the platform has brought it earlier."""
    if not is_connect(spark):
        return
    from pyspark.sql.connect.group import GroupedData

    if not hasattr(GroupedData, "transformWithStateInPandas"):
        advice = "use a session without Connect, or Spark 4.1 or newer"
        rule = "have transformWithStateInPandas, as it does from 4.1 on"
        raise InputError(must("Spark Connect", rule, pyspark.__version__, advice))


# Settings


def plain_file_manager(spark: SparkSession) -> str:
    """The file manager that starts no process on a local disk: since 4.1 in a package of its own."""
    package = "" if release(spark.version) < (4, 1) else "checkpointing."
    return f"org.apache.spark.sql.execution.streaming.{package}FileSystemBasedCheckpointFileManager"


AVAILABLE_NOW = "spark.sql.streaming.triggerAvailableNowWrapper.enabled"


def available_now_settings(spark: SparkSession) -> dict[str, str]:
    """What must be set until a query with `availableNow` has its sources (`await_sources`).

    Before 4.2 Python sources know nothing of it, and one such source would put all there is into a single micro-batch;
    with this, each source keeps its limits.
    """
    if release(spark.version) < (4, 2):
        return {AVAILABLE_NOW: "true"}
    return {}


def await_sources(query: StreamingQuery) -> None:
    """Wait until a query has its sources: before, it may still look at the session's settings."""
    while query.isActive and query.status["message"].startswith("Initializing"):
        time.sleep(0.02)


def prepare_batch(spark: SparkSession) -> None:
    """Let a batch have state: 4.1 and 4.2 look for a coordinator of stores that only the manager of queries starts."""
    if release(spark.version) in ((4, 1), (4, 2)):
        _ = spark.streams.active


# Types


def arrow_schema(schema: T.StructType) -> pa.Schema:
    """Spark's columns as Arrow's, times in UTC."""
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(schema, **_utc())


def arrow_type(kind: T.DataType) -> pa.DataType:
    """Spark's type as Arrow's, times in UTC."""
    from pyspark.sql.pandas.types import to_arrow_type

    return to_arrow_type(kind, **_utc())


def spark_type(kind: pa.DataType) -> T.DataType:
    """Arrow's type as Spark's; before 4.1 what is inside lists and maps would forget that it cannot be null."""
    from pyspark.sql.pandas.types import from_arrow_type

    if HERE < (4, 1):
        if pa.types.is_list(kind):
            return T.ArrayType(spark_type(kind.value_type), kind.value_field.nullable)
        if pa.types.is_map(kind):
            return T.MapType(spark_type(kind.key_type), spark_type(kind.item_type), kind.item_field.nullable)
        if pa.types.is_struct(kind) and isinstance(from_arrow_type(kind), T.StructType):  # and no variant
            return T.StructType([T.StructField(each.name, spark_type(each.type), each.nullable) for each in kind])
    return from_arrow_type(kind, prefer_timestamp_ntz=True)


def _utc() -> dict[str, Any]:
    """The zone is a name since 4.2; before, UTC or none."""
    return {"timezone": "UTC"} if HERE >= (4, 2) else {"timestamp_utc": True}


# Types that cannot cross into Python, with the cast that helps; TIME is there since 4.1.
TIME_TYPES: tuple[type[T.DataType], ...] = (T.TimeType,) if hasattr(T, "TimeType") else ()


# Python sources: since 4.2 Spark says where a micro-batch begins, how much it may take, and when it is availableNow.

SOURCES_ARE_TOLD = HERE >= (4, 2)

if TYPE_CHECKING or SOURCES_ARE_TOLD:
    from pyspark.sql.streaming.datasource import ReadAllAvailable as ReadAllAvailable
    from pyspark.sql.streaming.datasource import ReadLimit as ReadLimit
    from pyspark.sql.streaming.datasource import ReadMaxRows as ReadMaxRows
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow as SupportsTriggerAvailableNow
else:

    class ReadLimit:
        """How much a micro-batch may take."""

    @dataclass
    class ReadAllAvailable(ReadLimit):
        """All there is."""

    @dataclass
    class ReadMaxRows(ReadLimit):
        """So many rows."""

        max_rows: int

    class SupportsTriggerAvailableNow:
        """A source that is told when it is to take what is there; nobody tells it before 4.2."""


Offset = dict[str, Any]


def check_read_limit(max_rows: int | None) -> None:
    """Refuse to limit the rows of a micro-batch before 4.2: with `availableNow` the rest would never be read."""
    if max_rows is not None and not SOURCES_ARE_TOLD:
        advice = "leave it out, or play at a pace: speed=10"
        raise InputError(must("maxRowsPerBatch", "come with Spark 4.2 or newer", max_rows, advice))


class Reader(Protocol):
    """A stream's reader as Spark wants it since 4.2."""

    def initialOffset(self) -> Offset:
        """Where a new query begins."""

    def getDefaultReadLimit(self) -> ReadLimit:
        """How much a micro-batch may take."""

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        """How far a micro-batch that begins at `start` may go now."""

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """What its tasks read."""

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The rows of one task."""

    def stop(self) -> None:
        """The query is over."""


def stream_reader(reader: Reader) -> DataSourceStreamReader:
    """A reader for the Spark that asks."""
    if isinstance(reader, DataSourceStreamReader) and SOURCES_ARE_TOLD:
        return reader
    return ReaderBefore42(reader)


class ReaderBefore42(DataSourceStreamReader):
    """Remembers where the next micro-batch begins: where the last one that was planned ends.

    After a restart Spark plans an empty micro-batch at the place where it goes on, before it asks for anything else;
    not so with `availableNow`, where it asks but once how far there is something.
    """

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._start: Offset | None = None

    def initialOffset(self) -> Offset:
        """Spark's call."""
        return self._reader.initialOffset()

    def latestOffset(self) -> Offset:  # type: ignore[override]
        """Spark's call, without arguments before 4.2."""
        start = self.initialOffset() if self._start is None else self._start
        return self._reader.latestOffset(start, self._reader.getDefaultReadLimit())

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """Spark's call."""
        self._start = end
        return self._reader.partitions(start, end)

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Spark's call, in a worker."""
        return self._reader.read(partition)

    def stop(self) -> None:
        """Spark's call."""
        self._reader.stop()
