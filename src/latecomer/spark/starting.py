"""Starting a query: everything is looked at before anything is written.

1. A start that we refuse leaves checkpoint and folders as they are.
2. One that Spark refuses, at once or in the query's own thread, takes nothing: a run is announced in its folders, and
   takes them with its first batch (`lane_log.py`). A query that has them runs on, and a later start finds them as
   they were. In a checkpoint that has batches, changed input is stored when Spark has accepted the query; in one that
   has none, settings bind nothing.
3. Settings of the session are other than the user's only while Spark copies them.
"""

from __future__ import annotations

import json
import posixpath
import warnings
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from latecomer.contract import Steering
from latecomer.durations import duration_us
from latecomer.errors import InputError, LatecomerWarning, StateError, must
from latecomer.spark.batches import BatchWriter, LaneWriter
from latecomer.spark.compat import available_now_settings, await_sources
from latecomer.spark.failures import in_one_sentence
from latecomer.spark.jump_watch import JumpWatch
from latecomer.spark.lane_files import announce_lane, check_lanes
from latecomer.spark.lane_log import Claim
from latecomer.spark.planner import Query
from latecomer.spark.records import whole, whole_file
from latecomer.spark.session import PARTITIONS, check_provider_at_start, settings_for_start
from latecomer.spark.shipping import check_workers, imported_by_server
from latecomer.spark.sinks import Files, Target
from latecomer.spark.started import started
from latecomer.spark.steering import Steered
from latecomer.spark.stored import control_file, find_checkpoint, last_batch, question
from latecomer.spark.unseen_watch import UnseenWatch


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

    @property
    def every_us(self) -> int:
        """The time between micro-batches, 0 where they come as they can."""
        every = self.trigger.get("processingTime")
        return 0 if every is None else duration_us(every, "every")


def start_query(query: Query, asked: Start, *, flat: bool) -> StreamingQuery:
    """Start a streaming query, or refuse to with everything as it was."""
    spark = query.declared.df.sparkSession
    if asked.name is not None and asked.name in [running.name for running in spark.streams.active]:
        advice = "stop that query before, or choose another name"
        raise InputError(must("name", "be that of no query that runs in this session", asked.name, advice))
    steering = query.steering
    if steering is not None:
        steering.check_every(asked.every_us)
    check_workers(spark)
    found = find_checkpoint(spark, asked.checkpoint, query.stored.get("format"))
    new = found.must_be_written(spark, query.stored, from_here_on=asked.from_here_on)
    check_provider_at_start(spark, tune=asked.tune)
    claims = _claims(query, found.id, asked.targets)
    check_lanes(spark, _files(asked.targets), claims)
    if new and not found.bound:
        found.write(spark, query.stored)
    running = _started(query, asked, _announced(spark, asked.targets, claims), steering, flat=flat)
    if new and found.bound:
        found.write(spark, query.stored)
    return running


def _started(
    query: Query, asked: Start, lanes: dict[str, LaneWriter], steering: Steering | None, *, flat: bool
) -> StreamingQuery:
    spark = query.declared.df.sparkSession
    control = control_file(spark, asked.checkpoint)
    root = control.rsplit("/", 1)[0]
    packed = query.packed(control if query.controlled else None, asked.every_us)
    packed = query.counters.observed(packed, asked.metric)
    writer = packed.writeStream.option("checkpointLocation", asked.checkpoint)
    if asked.name is not None:
        writer = writer.queryName(asked.name)
    if asked.trigger:
        writer = writer.trigger(**asked.trigger)
    more = available_now_settings(spark) if asked.tune and "availableNow" in asked.trigger else {}
    local = control.startswith("file:")
    with settings_for_start(spark, query.shards, flat=flat, local=local, tune=asked.tune, more=more) as refused:
        check = PartitionsCheck(root, query.shards) if asked.tune and PARTITIONS not in refused else None
        names = tuple(stage.name for stage in query.stages)
        steered = None if steering is None else Steered(steering, names, control)
        watches = (_jump_watch(query), _unseen_watch(query))
        write = BatchWriter(query.lanes, lanes, query.counters, watches, checkpoint=root, steered=steered, check=check)
        with imported_by_server():
            running = writer.foreachBatch(write).start()
        if more:
            await_sources(running)
    return started(running)


def _jump_watch(query: Query) -> JumpWatch:
    return JumpWatch(guarded=query.pack.max_ahead_us is not None)


def _unseen_watch(query: Query) -> UnseenWatch:
    several = len(query.stages) > 1
    return UnseenWatch([stage.name if several else None for stage in query.stages if stage.waits])


def write_once(query: Query, targets: dict[str, Target], *, flat: bool, tune: bool) -> dict[str, int]:
    """Run a batch query and write its lanes; the same question of the same input again replaces what it wrote."""
    spark, owner = query.declared.df.sparkSession, f"batch {question(query.stored)}"
    check_workers(spark)
    check_provider_at_start(spark, tune=tune)
    claims = _claims(query, owner, targets)
    check_lanes(spark, _files(targets), claims)
    lanes = _announced(spark, targets, claims)
    write = BatchWriter(query.lanes, lanes, query.counters, (_jump_watch(query),), tuple(query.counters.tallies))
    with settings_for_start(spark, query.shards, flat=flat, tune=tune), in_one_sentence():
        return write.write(query.packed(), 0)


def _files(targets: dict[str, Target]) -> dict[str, Files]:
    return {name: target for name, target in targets.items() if isinstance(target, Files)}


def _claims(query: Query, owner: str, targets: dict[str, Target]) -> dict[str, Claim]:
    """What is said of each lane's folder."""
    df = query.declared.df
    read = None if df.isStreaming else tuple(sorted({posixpath.dirname(path) for path in df.inputFiles()}))
    return {
        name: Claim(owner, name, query.lanes.schema(name).json(), files.format, read)
        for name, files in _files(targets).items()
    }


def _announced(spark: SparkSession, targets: dict[str, Target], claims: dict[str, Claim]) -> dict[str, LaneWriter]:
    """The lanes' sinks, with those that are folders ready for a new run."""
    return {
        name: announce_lane(spark, target, claims[name]) if isinstance(target, Files) else target
        for name, target in targets.items()
    }


@dataclass(frozen=True)
class PartitionsCheck:
    """Stop a query that was started with another number of partitions than it has shards, before it writes.

    Settings belong to the session: whoever changes them in the moment of a start changes them for that query too. A
    checkpoint that was begun with `tune=False` keeps the number it has: batches are committed, and a warning says so.
    """

    checkpoint: str
    shards: int

    def __call__(self, packed: DataFrame, batch: int) -> None:
        """Look at what Spark has written down for a batch; where it cannot be read, go on."""
        spark = packed.sparkSession
        lines = whole_file(spark, f"{self.checkpoint}/offsets/{batch}")
        try:
            got = json.loads(lines[1])["conf"][PARTITIONS]
        except (IndexError, ValueError, KeyError, TypeError):
            return
        if got == str(self.shards):
            return
        if last_batch(spark, whole(f"{self.checkpoint}/commits")) < 0:
            advice = "another thread has set it while the query started, or it was begun with tune=False: start with "
            advice += f"another checkpoint, or with tune=False ({self.checkpoint})"
            raise StateError(must(PARTITIONS, f"be {self.shards}, one for each shard", got, advice))
        text = f"the checkpoint {self.checkpoint} has {got} partitions for {self.shards} shards, as it was begun with "
        text += "(tune=False), and Spark keeps them: with another checkpoint each shard has one, which is faster"
        warnings.warn(text, LatecomerWarning, stacklevel=2)


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
