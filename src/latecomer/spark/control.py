"""Control values as a streaming source of their own, which reads a small file in the checkpoint.

The source's offset carries the values themselves, so they stand in Spark's offset log: a repeated micro-batch sees the
same ones, whatever the file says by then. What was never set is as the query is started with. A new value makes a
micro-batch, also where nothing else has come.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from latecomer.control_file import Values, read_values
from latecomer.errors import LatecomerError
from latecomer.spark.compat import ReadAllAvailable, ReadLimit, SupportsTriggerAvailableNow, stream_reader

FORMAT = "latecomer-control"
VALUE = "_lc_value"  # control values, as JSON


class ControlSource(DataSource):
    """The data source behind `lc.control`."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return f"{VALUE} string"

    def streamReader(self, schema: Any) -> DataSourceStreamReader:
        """Spark's call."""
        return stream_reader(_ControlReader(self.options["file"]))


class _Changed(InputPartition):
    def __init__(self, values: Values) -> None:
        self.values = values


class _ControlReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, file: str) -> None:
        self._file = file
        self._last: dict[str, Any] | None = None

    def _now(self) -> dict[str, Any]:
        if self._last is not None:
            return self._last
        version, values = read_values(self._file)
        return {"version": version, "values": values}

    def _or_as_before(self, before: dict[str, Any]) -> dict[str, Any]:
        """What the file says, or what was known before where it cannot be read now: that must not stop the query."""
        try:
            return self._now()
        except (OSError, LatecomerError):
            return before

    def prepareForTriggerAvailableNow(self) -> None:
        """Spark's call: values that are written later wait for the next query."""
        self._last = self._or_as_before(self.initialOffset())

    def initialOffset(self) -> dict[str, Any]:
        """Spark's call."""
        return {"version": 0, "values": {}}

    def getDefaultReadLimit(self) -> ReadLimit:
        """Spark's call."""
        return ReadAllAvailable()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """Spark's call."""
        now = self._or_as_before(start)
        return now if now["version"] > start["version"] else start

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        before: Mapping[str, Any] = start["values"]
        changed = {name: value for name, value in end["values"].items() if before.get(name) != value}
        return [_Changed(changed)]

    def read(self, partition: InputPartition) -> Iterator[tuple[str]]:
        if isinstance(partition, _Changed) and partition.values:
            yield (json.dumps(partition.values),)


def control_stream(spark: SparkSession, file: str) -> DataFrame:
    """A stream of the control values in a file, a row for each time they change."""
    spark.dataSource.register(ControlSource)
    return spark.readStream.format(FORMAT).option("file", file).load()
