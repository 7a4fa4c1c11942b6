"""Starting a query: everything is looked at before anything is written.

1. A start that we refuse leaves checkpoint and folders as they are; one that Spark refuses has claimed the folders.
2. Folders are claimed before Spark's offset log is read: see `lane_log.py`.
3. Settings of the session are other than the user's only while Spark copies them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from latecomer.durations import duration_us
from latecomer.errors import InputError, StateError, must
from latecomer.spark.batches import BatchWriter, LaneWriter
from latecomer.spark.compat import available_now_settings, await_sources
from latecomer.spark.failures import in_one_sentence
from latecomer.spark.jump_watch import JumpWatch
from latecomer.spark.lane_files import FileLane, check_lanes, claim_lane
from latecomer.spark.lane_log import LaneLog
from latecomer.spark.lanes import Lanes
from latecomer.spark.planner import Query
from latecomer.spark.records import whole_file
from latecomer.spark.session import PARTITIONS, check_provider_at_start, settings_for_start
from latecomer.spark.shipping import check_workers
from latecomer.spark.sinks import Files, Target
from latecomer.spark.started import started
from latecomer.spark.stored import control_file, find_checkpoint, last_planned, question


@dataclass(frozen=True)
class Start:
    """What a user asks for when starting a query."""

    checkpoint: str
    targets: dict[str, Target]
    trigger: dict[str, Any]
    name: str | None
    tune: bool
    from_here_on: bool
    metric: str


def start_query(query: Query, asked: Start, *, flat: bool) -> StreamingQuery:
    """Start a streaming query, or refuse to with everything as it was."""
    spark = query.declared.df.sparkSession
    if not asked.checkpoint:
        raise InputError(must("checkpoint", "be a folder", asked.checkpoint, "give a path that stays"))
    if asked.name is not None and asked.name in [running.name for running in spark.streams.active]:
        advice = "stop that query before, or choose another name"
        raise InputError(must("name", "be that of no query that runs in this session", asked.name, advice))
    check_workers(spark)
    found = find_checkpoint(spark, asked.checkpoint, query.stored.get("format"))
    new = found.must_be_written(spark, query.stored, from_here_on=asked.from_here_on)
    check_provider_at_start(spark, tune=asked.tune)
    check_lanes(spark, found.id, _files(asked.targets).values())
    if new:
        found.write(spark, query.stored)
    lanes = _claimed(spark, found.id, asked.targets, query.lanes)
    lanes = _going_on(spark, lanes, asked)
    return _started(query, asked, lanes, flat=flat)


def _started(query: Query, asked: Start, lanes: dict[str, LaneWriter], *, flat: bool) -> StreamingQuery:
    spark = query.declared.df.sparkSession
    control = control_file(spark, asked.checkpoint)
    root = control.rsplit("/", 1)[0]
    packed = query.counters.observed(query.packed(control if query.controlled else None), asked.metric)
    writer = packed.writeStream.option("checkpointLocation", asked.checkpoint)
    if asked.name is not None:
        writer = writer.queryName(asked.name)
    if asked.trigger:
        writer = writer.trigger(**asked.trigger)
    more = available_now_settings(spark) if asked.tune and "availableNow" in asked.trigger else {}
    local = control.startswith("file:")
    with settings_for_start(spark, query.shards, flat=flat, local=local, tune=asked.tune, more=more) as refused:
        check = PartitionsCheck(root, query.shards) if asked.tune and PARTITIONS not in refused else None
        spool, watch = f"{root}/latecomer-packed", _watch(query)
        write = BatchWriter(query.lanes, lanes, query.counters, watch, spool=spool, check=check)
        running = writer.foreachBatch(write).start()
        if more:
            await_sources(running)
    return started(running)


def _watch(query: Query) -> JumpWatch:
    return JumpWatch(guarded=query.pack.max_ahead_us is not None)


def write_once(query: Query, targets: dict[str, Target], *, flat: bool, tune: bool) -> dict[str, int]:
    """Run a batch query and write its lanes; the same question again replaces what it wrote."""
    spark, owner = query.declared.df.sparkSession, f"batch {question(query.stored)}"
    check_workers(spark)
    check_provider_at_start(spark, tune=tune)
    check_lanes(spark, owner, _files(targets).values())
    lanes = _claimed(spark, owner, targets, query.lanes, again=0)
    write = BatchWriter(query.lanes, lanes, query.counters, _watch(query), tuple(query.counters.tallies))
    with settings_for_start(spark, query.shards, flat=flat, tune=tune), in_one_sentence():
        return write.write(query.packed(), 0)


def _files(targets: dict[str, Target]) -> dict[str, Files]:
    return {name: target for name, target in targets.items() if isinstance(target, Files)}


def _claimed(
    spark: SparkSession, owner: str, targets: dict[str, Target], lanes: Lanes, again: int = -1
) -> dict[str, LaneWriter]:
    """The lanes' sinks, with those that are folders in the hands of a new run."""
    return {
        name: claim_lane(spark, owner, target, lanes.schema(name), again) if isinstance(target, Files) else target
        for name, target in targets.items()
    }


def _going_on(spark: SparkSession, lanes: dict[str, LaneWriter], asked: Start) -> dict[str, LaneWriter]:
    """The same lanes, with what lies beyond the checkpoint set aside; one run may have left files in any of them."""
    through, files = last_planned(spark, asked.checkpoint), _files(asked.targets)
    found = {
        name: lane.set_aside(spark, LaneLog.of(spark, files[name].path), through)
        for name, lane in lanes.items()
        if isinstance(lane, FileLane)
    }
    again = max((lane.again for lane in found.values()), default=through)
    return {**lanes, **{name: replace(lane, again=again) for name, lane in found.items()}}


@dataclass(frozen=True)
class PartitionsCheck:
    """Stop a query that was started with another number of partitions than it has shards, before it writes.

    Settings belong to the session: whoever changes them in the moment of a start changes them for that query too.
    """

    checkpoint: str
    shards: int

    def __call__(self, packed: DataFrame, batch: int) -> None:
        """Look at what Spark has written down for a batch; where it cannot be read, go on."""
        lines = whole_file(packed.sparkSession, f"{self.checkpoint}/offsets/{batch}")
        try:
            got = json.loads(lines[1])["conf"][PARTITIONS]
        except (IndexError, ValueError, KeyError, TypeError):
            return
        if got != str(self.shards):
            advice = (
                f"another thread has set it while the query started: start with another checkpoint ({self.checkpoint})"
            )
            raise StateError(must(PARTITIONS, f"be {self.shards}, one for each shard", got, advice))


def trigger_of(every: str | None, *, available_now: bool) -> dict[str, Any]:
    """What `DataStreamWriter.trigger` is given."""
    if not isinstance(available_now, bool):
        raise InputError(must("available_now", "be True or False", available_now, "leave it out for False"))
    if every is not None and available_now:
        raise InputError(must("start", "have one trigger", (every, "available_now"), "drop one of them"))
    if available_now:
        return {"availableNow": True}
    if every is None:
        return {}
    every_us = duration_us(every, "every")
    if every_us < 1_000:
        raise InputError(must("every", "be at least a millisecond", every, "leave it out for as often as possible"))
    return {"processingTime": f"{every_us // 1_000} milliseconds"}
