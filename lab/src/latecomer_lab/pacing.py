"""How exactly a playback keeps time: at the source, polled as Spark polls it, and at the sink of a real query.

A tick is due when its last event is. Its delay at the source is the time from then until a poll of the reader shows
it; at the sink, until `foreachBatch` has its rows in hand. Spark asks the source only between micro-batches, so what
the sink sees depends on how long those take; the source answers for itself alone.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSourceStreamReader
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit
from pyspark.sql.types import StructType

import latecomer as lc
from latecomer.disorder.player import read_options
from latecomer.events import Int64s
from latecomer.report.shape import Report, Target
from latecomer.spark.playback import Offset, Playback, PlaybackReader
from latecomer_lab.files import scratch

START_US = 1_700_000_000_000_000
TICK_US = 100_000
POLL_S = 0.01  # as Spark does
LOG = "log"


@dataclass(frozen=True)
class PacingBench:
    """Sizes of the run: seconds by the clock, and events per second of the recording."""

    seconds: float = 6.0
    events_per_s: int = 50_000
    speed: float = 1.0
    row_group: int = 40_000
    seed: int = 0


def measure_pacing(settings: PacingBench, tell: Callable[[str], None]) -> Report:
    """Play a recording to a polling loop and to a Spark query, and compare with when each tick was due."""
    with scratch("latecomer-pacing-") as folder:
        stamps_us = write_recording(Path(folder) / "recording.parquet", settings)
        tell("the source, polled")
        source = delays_ms(stamps_us, settings, *poll_reader(f"{folder}/recording.parquet", settings))
        tell("a Spark query")
        polled, sink = run_query(lc.session(), Path(folder), settings)
        spark_source, spark_sink = (delays_ms(stamps_us, settings, polled[0], seen) for seen in (polled[1], sink))
    report = Report("pacing", asdict(settings))
    named = {"source": source, "source, as Spark asks": spark_source, "sink": spark_sink}
    report.results = [_summary(name, delays) for name, delays in named.items()]
    early = sum(delay < 0 for delays in named.values() for delay in delays)
    report.targets = [
        Target("largest delay of a tick at the source in ms", round(max(source), 2), 50, at_least=False),
        Target("ticks shown before they were due", early, 0, at_least=False),
    ]
    return report


def write_recording(path: Path, settings: PacingBench) -> Int64s:
    """Events at random moments; gives their arrival stamps."""
    length_us = int(settings.seconds * settings.speed * 1_000_000)
    rng = np.random.default_rng(settings.seed)
    count = max(2, int(settings.events_per_s * settings.seconds * settings.speed))
    stamps_us = START_US + np.sort(rng.integers(0, length_us, count))
    columns = {"id": pa.array(np.arange(count)), "arrival": pa.array(stamps_us, pa.timestamp("us", "UTC"))}
    pq.write_table(pa.table(columns), path, row_group_size=settings.row_group)
    return stamps_us


Seen = list[tuple[int, int]]  # by the clock, how many rows were there


def poll_reader(path: str, settings: PacingBench) -> tuple[int, Seen]:
    """Poll a reader until all is played: when its clock started, and what it showed when."""
    options = {"path": path, "speed": str(settings.speed), "tick": f"{TICK_US} us"}
    reader = PlaybackReader(read_options(options), Playback(options).schema())
    offset, seen = reader.initialOffset(), []
    rows = pq.read_metadata(path).num_rows
    while offset["rows"] < rows:
        latest = reader.latestOffset(offset, ReadAllAvailable())
        if latest != offset:
            seen.append((time.monotonic_ns(), latest["rows"]))
        offset = latest
        time.sleep(POLL_S)
    reader.stop()
    return (reader.started or (0, 0))[0], seen


class WatchedPlayback(Playback):
    """A playback that writes down when Spark asks and what it is told."""

    @classmethod
    def name(cls) -> str:
        return "latecomer-playback-watched"

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Spark's call."""
        return _WatchedReader(self.options.pop(LOG), dict(self.options), schema)

    def schema(self) -> StructType:
        """Spark's call."""
        return Playback({name: value for name, value in self.options.items() if name != LOG}).schema()


class _WatchedReader(PlaybackReader):
    def __init__(self, log: str, options: dict[str, str], schema: StructType) -> None:
        super().__init__(read_options(options), schema)
        self._log = log

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        latest = super().latestOffset(start, limit)
        if latest != start:
            with open(self._log, "a") as log:
                log.write(json.dumps([(self.started or (0, 0))[0], time.monotonic_ns(), latest["rows"]]) + "\n")
        return latest


def run_query(spark: SparkSession, folder: Path, settings: PacingBench) -> tuple[tuple[int, Seen], Seen]:
    """Play through Spark: when the clock started and what Spark was told when, and what the sink had when."""
    spark.dataSource.register(WatchedPlayback)
    stream = spark.readStream.format(WatchedPlayback.name()).option(LOG, str(folder / LOG))
    df = stream.options(speed=str(settings.speed), tick=f"{TICK_US} us").load(str(folder / "recording.parquet"))
    total = pq.read_metadata(folder / "recording.parquet").num_rows
    sink: Seen = []

    def take(rows: DataFrame, batch: int) -> None:
        before = sink[-1][1] if sink else 0
        sink.append((time.monotonic_ns(), before + rows.count()))
        sink[-1] = (time.monotonic_ns(), sink[-1][1])

    query = df.writeStream.foreachBatch(take).option("checkpointLocation", str(folder / "checkpoint")).start()
    while query.isActive and not (sink and sink[-1][1] >= total):
        time.sleep(POLL_S)
    query.stop()
    polls = [json.loads(line) for line in (folder / LOG).read_text().splitlines()]
    return (polls[0][0], [(now, rows) for _, now, rows in polls]), sink


def delays_ms(stamps_us: Int64s, settings: PacingBench, started_ns: int, seen: Seen) -> list[float]:
    """For each tick, from when its last event was due until its rows were seen."""
    ticks = stamps_us // TICK_US
    last = np.flatnonzero(np.append(ticks[1:] != ticks[:-1], True))
    due_ns = started_ns + (stamps_us[last] - stamps_us[0]) * 1_000 / settings.speed
    moments, rows = np.array(seen, dtype=np.int64).T
    shown_ns = moments[np.searchsorted(rows, last + 1)]
    delays: list[float] = ((shown_ns - due_ns) / 1_000_000).tolist()
    return delays


def _summary(name: str, delays: list[float]) -> dict[str, Any]:
    figures = {"smallest": min(delays), "median": statistics.median(delays), "largest": max(delays)}
    return {"where": name, "ticks": len(delays)} | {f"{key}_ms": round(value, 2) for key, value in figures.items()}
