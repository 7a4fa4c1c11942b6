"""What a query does with each micro-batch: keep the packed rows, read them all once, write each lane, publish them.

1. Nothing of a batch can be read with `lc.read` before all its lanes are written.
2. A repeated batch replaces itself, lane by lane, so after any crash every row is there once.
3. A run takes its folders with its first batch, which may be one that an earlier run began: all its lanes are
   written, also those that are empty.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from pyspark.sql import Column, DataFrame, Observation

from latecomer.errors import LatecomerWarning, StateError
from latecomer.gives import RESULTS
from latecomer.spark.counters import Counters
from latecomer.spark.lane_files import FileLane, take_over
from latecomer.spark.lanes import Lanes, lane_of, rows_in
from latecomer.spark.packed import LANES
from latecomer.spark.records import whole
from latecomer.spark.sinks import Discard
from latecomer.spark.steering import Steered
from latecomer.spark.stored import last_batch

LaneWriter = Callable[[DataFrame, int], object]


class Watch(Protocol):
    """What looks at the counters of every micro-batch, and warns where something seems to be wrong."""

    @property
    def counters(self) -> tuple[str, ...]:
        """What it looks at."""

    def look(self, counters: Mapping[str, Any]) -> None:
        """Take in the counters of a micro-batch."""


@dataclass
class BatchWriter:
    """The function that `foreachBatch` runs; `write` gives the counters named.

    The first action must read every packed row, or Spark's state store refuses the batch: our own sinks do, a
    user's callable may not. An empty lane is written in a run's first batch only. checkpoint: its whole path, None in a
    batch. steered: what looks at counters and changes
    settings. check: what is looked at before a run begins.
    """

    lanes: Lanes
    targets: dict[str, LaneWriter]
    counters: Counters
    watches: tuple[Watch, ...]
    names: tuple[str, ...] = ()
    checkpoint: str | None = None
    steered: Steered | None = None
    check: Callable[[DataFrame, int], None] | None = None
    _said: list[str] = field(default_factory=list)
    _begun: bool = False

    def __call__(self, packed: DataFrame, batch: int) -> None:
        """Spark's call."""
        self.write(packed, batch)

    @property
    def spool(self) -> str | None:
        """Where the packed rows of a stream go on a platform that keeps none."""
        return None if self.checkpoint is None else f"{self.checkpoint}/latecomer-packed"

    def write(self, packed: DataFrame, batch: int) -> dict[str, int]:
        """Write all lanes of a batch and let them be read."""
        if not self._begun:
            self._begin(packed, batch)
        packed, kept = _kept(packed, self.spool, self._said)
        try:
            counts, written = self._write_lanes(packed, batch)
            self._publish(packed, batch, written)
        finally:
            if kept:
                packed.unpersist()
        self._begun = True
        if self.steered is not None:
            self.steered.after(counts)
        return {name: counts[name] for name in self.names}

    def _begin(self, packed: DataFrame, batch: int) -> None:
        """Take the folders, after a last look."""
        spark, files = packed.sparkSession, {n: each for n, each in self.targets.items() if isinstance(each, FileLane)}
        if self.check is not None:
            self.check(packed, batch)
        offsets = None if self.checkpoint is None else whole(f"{self.checkpoint}/offsets")
        planned = None if offsets is None else partial(last_batch, spark, offsets)
        self.targets = {**self.targets, **take_over(spark, files, planned)}

    def _write_lanes(self, packed: DataFrame, batch: int) -> tuple[dict[str, int], list[str]]:
        watched = [name for watch in self.watches for name in watch.counters]
        steering = () if self.steered is None else self.steered.names
        asked = tuple(dict.fromkeys([*self.names, *watched, *steering]))
        counted = [*self.counters.columns(asked), *map(rows_in, LANES)]
        if self.lanes.gives.after is None:
            first = next(name for name in self.lanes.gives.all_views if name in self.targets)
            counts, written = self._write_first(packed, batch, first, counted), [first]
        else:
            counts, written = self._write_finished(packed, batch, counted)
        rows = {lane: counts.pop(f"rows in {lane}") for lane in LANES}
        for name in self.lanes.names:
            if name not in written and name in self.targets and (rows[lane_of(name)] or not self._begun):
                self.targets[name](self.lanes.rows(packed, name), batch)
                written.append(name)
        for watch in self.watches:
            watch.look(counts)
        return counts, written

    def _write_first(self, packed: DataFrame, batch: int, name: str, counted: list[Column]) -> dict[str, int]:
        """Write the results, or a view of them, and count all lanes, in one action where the sink allows it."""
        sink = self.targets[name]
        if isinstance(sink, FileLane | Discard):
            observation = Observation(f"latecomer lanes of batch {batch}")
            sink(self.lanes.rows(packed.observe(observation, *counted), name), batch)
            return dict(observation.get)
        counts: dict[str, int] = packed.agg(*counted).collect()[0].asDict()
        if counts[f"rows in {RESULTS}"] or not self._begun:
            sink(self.lanes.rows(packed, name), batch)
        return counts

    def _write_finished(self, packed: DataFrame, batch: int, counted: list[Column]) -> tuple[dict[str, int], list[str]]:
        """Count all lanes, finish the results, if there is something to do, and write all their views."""
        counts: dict[str, int] = packed.agg(*counted).collect()[0].asDict()
        names = [name for name in self.lanes.gives.all_views if name in self.targets]
        finished = self.lanes.finished(packed) if counts[f"rows in {RESULTS}"] or not self._begun else None
        if finished is None:
            return counts, []
        finished, kept = _kept(finished, None, self._said) if len(names) > 1 else (finished, False)
        try:
            for name in names:
                self.targets[name](self.lanes.chosen(finished, name), batch)
        finally:
            if kept:
                finished.unpersist()
        return counts, names

    def _publish(self, packed: DataFrame, batch: int, written: list[str]) -> None:
        """Let the batch be read; a run that another has taken the place of takes its rows out again, and stops."""
        spark = packed.sparkSession
        files = [lane for name in written if isinstance(lane := self.targets[name], FileLane)]
        try:
            for lane in files:
                lane.log.check_latest(spark, lane.run)
        except StateError:
            for lane in files:
                lane.empty(spark, batch)
            raise
        for lane in files:
            lane.publish(spark, batch)


def _kept(packed: DataFrame, spool: str | None, said: list[str]) -> tuple[DataFrame, bool]:
    """Keep the packed rows for all lanes, and whether Spark does so.

    Where the platform refuses it, those of a stream are written to its checkpoint and read again: the state must not
    run twice. A batch runs anew for every lane. `said`: what the query has been warned of.
    """
    try:
        return packed.persist(), True
    except Exception:  # platforms have errors of their own for this
        cost = "packed rows go to the checkpoint and are read again" if spool else "the batch runs anew for every lane"
        if cost not in said:
            said.append(cost)
            text = f"this platform keeps no data between actions: {cost}"
            warnings.warn(text, LatecomerWarning, stacklevel=2)
    if spool is None:
        return packed, False
    packed.write.mode("overwrite").parquet(spool)
    return packed.sparkSession.read.schema(packed.schema).parquet(spool), False
