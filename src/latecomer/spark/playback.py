"""`spark.readStream.format("latecomer-playback")`: recorded events, played back as they arrived.

An event is due at the start plus its distance from the first one, divided by `speed`; micro-batches are cut between
ticks only. The offset says how many rows were played, whether the end was, and by which tick they were cut: it stands
in Spark's offset log, so a repeated batch reads the same rows, and a restart goes on with the next row, at once. Files
are read where the tasks run, so every worker must reach them by the same path.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from latecomer.durations import Duration, duration_us
from latecomer.errors import InputError, must
from latecomer.spark.compat import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
    check_read_limit,
    stream_reader,
)
from latecomer.spark.failures import readable

if TYPE_CHECKING:
    import pyarrow as pa

    from latecomer.disorder.player import Options, Player
    from latecomer.disorder.recording import Span
    from latecomer.disorder.ticks import Ticks

FORMAT = "latecomer-playback"
PIECE_ROWS = 10_000  # a smaller piece is not worth a task of its own
Offset = dict[str, Any]


class Playback(DataSource):
    """The data source; Spark makes one when a DataFrame is made."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        """Spark's call: the recording's columns, and `end` if it is asked for."""
        from latecomer.disorder.player import read_options
        from latecomer.disorder.recording import open_recording
        from latecomer.spark.playback_rows import spark_schema

        options = read_options(self.options)
        return spark_schema(open_recording(options.path, options.arrival), options)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Spark's call."""
        from latecomer.disorder.player import read_options

        options = read_options(self.options)
        check_read_limit(options.max_rows)
        return stream_reader(PlaybackReader(options, schema))


class Piece(InputPartition):
    """What one task reads: rows of the recording, or its end."""

    def __init__(self, spans: Sequence[Span], last_us: int | None = None) -> None:
        self.spans, self.last_us = spans, last_us


class PlaybackReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """One for a query in a process of the driver, which keeps the time; copies of it read where the tasks run.

    The recording is opened when it is first needed: a copy that only reads never does, and travels light.
    """

    def __init__(self, options: Options, schema: StructType, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self._options, self._schema, self._clock = options, schema, clock
        self._ticks: Ticks | None = None
        self._player: Player | None = None

    def _open(self) -> tuple[Ticks, Player]:
        from latecomer.disorder.player import Player
        from latecomer.disorder.recording import open_recording
        from latecomer.disorder.ticks import Ticks
        from latecomer.spark.playback_rows import spark_schema

        if self._ticks is None or self._player is None:
            options = self._options
            recording = open_recording(options.path, options.arrival)
            if spark_schema(recording, options).simpleString() != self._schema.simpleString():
                got = self._schema.simpleString()
                raise InputError(must("schema", "be the recording's own", got, "leave out .schema(...)"))
            self._ticks = Ticks(recording, options.tick_us)
            self._player = Player(self._ticks, options.speed, self._clock)
        return self._ticks, self._player

    @property
    def started(self) -> tuple[int, int] | None:
        """By the clock, when the playback started, and the arrival of the row it started with."""
        player = self._player
        return None if player is None or player.started_ns is None else (player.started_ns, player.first_us)

    def initialOffset(self) -> Offset:
        """Spark's call."""
        return self._offset(0, ended=False)

    def getDefaultReadLimit(self) -> ReadLimit:
        """Spark's call."""
        limit = self._options.max_rows
        return ReadAllAvailable() if limit is None else ReadMaxRows(limit)

    def prepareForTriggerAvailableNow(self) -> None:
        """Spark's call: what is left is played at once."""
        self._open()[1].play_all()

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        """Spark's call, again and again: how far the playback may go now."""
        ticks, player = self._open()
        self._check(start, ticks)
        stop = player.due(start["rows"], limit.max_rows if isinstance(limit, ReadMaxRows) else None)
        return self._offset(stop, ended=start["ended"] or (stop == ticks.rows and self._options.end is not None))

    def reportLatestOffset(self) -> Offset | None:
        """Spark's call, for its progress reports: how far the playback could be."""
        if self._ticks is None or self._player is None or self._player.started_ns is None:
            return None
        rows = self._player.reached()
        return self._offset(rows, ended=rows == self._ticks.rows and self._options.end is not None)

    def _offset(self, rows: int, *, ended: bool) -> Offset:
        return {"rows": rows, "ended": ended, "tick_us": self._options.tick_us}

    def _check(self, start: Offset, ticks: Ticks) -> None:
        """The checkpoint must fit the recording and its tick."""
        if start["tick_us"] != self._options.tick_us:
            advice = f"go on with '{start['tick_us']} us', or with a new checkpoint"
            raise InputError(must("tick", "stay what the checkpoint began with", self._options.tick_us, advice))
        rows = start["rows"]
        if rows > ticks.rows or (start["ended"] and rows < ticks.rows):
            rule = f"hold the {rows} rows that the checkpoint has played" + (", no more" if start["ended"] else "")
            advice = "give the same recording, or a new checkpoint"
            raise InputError(must("recording", rule, ticks.rows, advice))

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        """Spark's call: the pieces of a micro-batch."""
        ticks, player = self._open()
        if end["rows"] < start["rows"]:
            advice = "before Spark 4.2 a source is not told of availableNow: play with speed='max', or without it"
            raise InputError(must("playback", f"go on from row {start['rows']}", end["rows"], advice))
        if end["rows"] == 0:
            player.wait()  # a query's first batch is empty and slow, as the JVM warms up: play when it is over
        rows = end["rows"] - start["rows"]
        pieces = max(1, min(self._options.partitions, rows // PIECE_ROWS))
        cuts = [start["rows"] + rows * number // pieces for number in range(pieces + 1)]
        found: list[InputPartition] = [
            Piece(ticks.spans(cuts[i], cuts[i + 1])) for i in range(pieces) if cuts[i] < cuts[i + 1]
        ]
        if end["ended"] and not start["ended"]:
            whole = ticks.spans(0, ticks.rows) if self._options.source is not None else []
            found.append(Piece(whole, ticks.last_us))
        return found

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Spark's call, in a worker."""
        from latecomer.spark.playback_rows import read_end, read_rows

        if isinstance(partition, Piece):
            if partition.last_us is None:
                yield from read_rows(partition.spans, self._options, self._schema)
            else:
                yield from read_end(partition.spans, partition.last_us, self._options, self._schema)

    def stop(self) -> None:
        """Spark's call."""
        if self._ticks is not None:
            self._ticks.close()


def register_playback(spark: SparkSession) -> None:
    """Let a session know the source, for `spark.readStream.format("latecomer-playback")`."""
    spark.dataSource.register(Playback)


def playback(
    spark: SparkSession,
    path: str | os.PathLike[str],
    *,
    arrival: str = "arrival",
    speed: float | str = 1.0,
    tick: Duration = "100 ms",
    max_rows_per_batch: int | None = None,
    end: str | None = None,
    source: str | None = None,
) -> DataFrame:
    """A stream of recorded events that come as they once arrived.

    path: a Parquet file, or a folder of them in name order, sorted by `arrival` (a timestamp or microseconds).
    speed: 1 as recorded, 10 ten times as fast, "max" as fast as they are taken. tick: batches are cut between ticks.
    max_rows_per_batch: no more rows in a micro-batch, unless one tick has more.
    end: the name of a boolean column to add; after the last event comes one row, or one for each value of the column
    `source`, in which it is true: see `disordered(end=)`.
    """
    from latecomer.disorder.player import read_options

    check_read_limit(max_rows_per_batch)
    register_playback(spark)
    options = {
        "path": _absolute(os.fspath(path)),
        "arrival": arrival,
        "speed": str(speed),
        "tick": f"{duration_us(tick, 'tick')} us",
        "maxRowsPerBatch": None if max_rows_per_batch is None else str(max_rows_per_batch),
        "end": end,
        "source": source,
    }
    chosen = {name: value for name, value in options.items() if value is not None}
    read_options(chosen)
    try:
        return spark.readStream.format(FORMAT).options(**chosen).load()
    except PySparkException as error:
        raise readable(error) from None


def _absolute(path: str) -> str:
    """A relative path means the same to every worker; an address is left as it is."""
    return path if not path or "://" in path else os.path.abspath(path)
