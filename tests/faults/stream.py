"""Streams to be killed: a query for each name in one process, which reads files one at a time and writes all lanes."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import latecomer as lc
from latecomer.spark.playback import playback
from tests.spark.streams import LATENCY_US, SCHEMA

SLACK = "slack"  # a join whose slack is changed on the way
OPTIMISTIC = "optimistic"  # a chain of two steps, by two keys
STRATEGIES = ("reorder", "tiers", "timetravel", "stages", SLACK, OPTIMISTIC)
CHANGED = "changed"  # a reorder whose latency is changed on the way
PLAYBACK = "playback"  # a reorder of a recording, paced
PACED = "3 seconds"  # between micro-batches of queries that are to be killed, so that many of them are busy then


def main(folder: str, out: str, speed: str, files: str, *names: str) -> None:
    """Run the queries until they are done."""
    run(lc.session("latecomer-faults", memory="1g"), Path(folder), out, *names, speed=speed, files=int(files))
    print("done", flush=True)


def run(spark: SparkSession, folder: Path, out: str, *names: str, speed: str = "max", files: int = 1) -> None:
    """Let the queries take what is there, all at the same time, and say when all have begun.

    speed: that of a playback; unless it is "max", the others take their time too, and come to no end by themselves.
    files: how many these read in a micro-batch.
    """
    queries = {}
    for name in names:
        if name == PLAYBACK and ended(checkpoint(folder, out, name)):
            continue
        queries[name] = begin(spark, folder, out, name, speed, files)
        _await_batch(queries[name], checkpoint(folder, out, name))
    print("begun", flush=True)
    for name, query in queries.items():
        while not _done(query, checkpoint(folder, out, name), paced=name == PLAYBACK):
            query = begin(spark, folder, out, name, speed, files)


def begin(spark: SparkSession, folder: Path, out: str, name: str, speed: str, files: int) -> StreamingQuery:
    """One of the queries, its lanes in folders of its own."""
    to, state = folder / out / name, checkpoint(folder, out, name)
    if name == PLAYBACK:
        return _played(spark, folder, speed).start(to, checkpoint=state)
    df = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", files).parquet(str(folder / "in"))
    events = lc.disordered(
        df, time="ts", key="key", source="source", arrival="arrival", order="id", max_ahead="1 hour", shards=2
    )
    views = {OPTIMISTIC: ("changes", "final")}.get(name, () if name in ("reorder", CHANGED, SLACK) else ("changes",))
    sinks = {view: str(to / view) for view in views}
    how: dict[str, Any] = {"available_now": True} if speed == "max" else {"every": PACED}
    return ask(events.where("key <> 3"), name).start(to, checkpoint=state, sinks=sinks, **how)


def checkpoint(folder: Path, out: str, name: str) -> Path:
    """Where the state of a query is."""
    return folder / f"{out}-checkpoints" / name


def ask(events: lc.Events, name: str) -> lc.Result:
    """One of the strategies on the same events."""
    if name in ("reorder", CHANGED):
        return events.reorder(f"{LATENCY_US} us")
    if name == SLACK:
        return events.join("a", "b", within="50 ms", keep="20 seconds").slack("1 second")
    if name == OPTIMISTIC:
        summed = events.scan(lc.running_sum("id"), lc.row_number()).by("source")
        return summed.scan(lc.lag("running_sum_id")).optimistic(f"{LATENCY_US} us", barrier=True)
    asked = (lc.count(), lc.max("id"))
    if name == "stages":
        sources = events.reorder(f"{LATENCY_US} us").by("source").hopping("3 seconds", "1 second")
        return sources.aggregate(*asked).tiers("1 ms")
    if name == "tiers":
        return (
            events.hopping("3 seconds", "1 second").aggregate(*asked).tiers(f"{LATENCY_US // 4} us", f"{LATENCY_US} us")
        )
    chain = lc.Chain(lc.WindowAggregation(lc.Window("3 seconds", "1 second"), asked))
    return events.app(chain).timetravel("4 seconds", holes=anywhere)


def anywhere(before: pa.RecordBatch, after: pa.RecordBatch) -> pa.Array:
    """Between any two events any number may be missing."""
    return pa.array(np.full(before.num_rows, -1))


def _played(spark: SparkSession, folder: Path, speed: str) -> lc.Result:
    df = playback(spark, str(folder / "recording"), speed=speed, end="ended", source="source")
    events = lc.disordered(
        df, time="ts", key="key", source="source", arrival="arrival", order="id", end="ended", shards=2
    )
    return events.select("id", "ts").reorder(f"{LATENCY_US} us")


def _await_batch(query: StreamingQuery, state: Path) -> None:
    """Wait until a query has begun a micro-batch, so that queries do not all start their processes at once."""
    begun = logged(state, "offsets")
    while query.isActive and logged(state, "offsets") == begun:
        time.sleep(0.1)


def _done(query: StreamingQuery, state: Path, *, paced: bool) -> bool:
    """Wait until a query is done; a playback goes on for ever, and is when its end has come through.

    Spark gives the Python process of a source ten seconds to come up: where they were too few, it is begun again.
    """
    try:
        if not paced:
            query.awaitTermination()
        while paced and not query.awaitTermination(1) and not ended(state):
            pass
    except lc.LatecomerError as error:
        if "worker to connect back" not in str(error):
            raise
        return False
    query.stop()
    return True


def ended(state: Path) -> bool:
    """Whether the end of a playback is in a micro-batch that was committed."""
    last = max(_batches(state, "commits"), default=None)
    return last is not None and '"ended": true' in (state / "offsets" / str(last)).read_text()


def logged(state: Path, log: str = "commits") -> int:
    """How many micro-batches stand in Spark's log of offsets or of commits."""
    return len(_batches(state, log))


def _batches(state: Path, log: str) -> list[int]:
    return [int(path.name) for path in (state / log).glob("[0-9]*") if path.name.isdigit()]


if __name__ == "__main__":
    main(*sys.argv[1:])
