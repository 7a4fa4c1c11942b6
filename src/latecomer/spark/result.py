"""What a strategy gives back: one packed DataFrame, seen as lanes, and written whole in one query.

`.start` is one `foreachBatch`: keep the packed rows, read them all once, then write each lane. A repeated batch
replaces itself, lane by lane, so after any crash every row is there once.
"""

from __future__ import annotations

import os
import posixpath
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import DataFrame, Observation
from pyspark.sql.streaming.query import StreamingQuery

from latecomer.contract import Lane
from latecomer.durations import duration_us
from latecomer.errors import InputError, LatecomerWarning, must
from latecomer.spark.counters import counter_columns, observed
from latecomer.spark.explain import Measured, Story, result_text
from latecomer.spark.frames import COUNTERS, LANES, ROWS_OF
from latecomer.spark.lanes import LaneSchemas, View, lane_rows
from latecomer.spark.schema import is_flat
from latecomer.spark.session import check_settings, settings_for_start
from latecomer.spark.sinks import BATCH, Discard, Files, SinkLike, as_sink
from latecomer.spark.stored import Stored, bind, is_bound, is_local


class Result:
    """The lanes of a strategy's output."""

    def __init__(self, packed: DataFrame, schemas: LaneSchemas, shards: int, stored: Stored, story: Story) -> None:
        self._packed = packed
        self._schemas = schemas
        self._shards = shards
        self._stored = stored
        self._story = story

    @property
    def results(self) -> DataFrame:
        """The results; those that may change with `pane` and `final`; with tiers, those of all, and the `tier`."""
        self._check_alone("results")
        return self._shown(View(Lane.RESULTS))

    @property
    def changes(self) -> DataFrame:
        """The results with `change` (+1, or -1: that earlier result is void), `pane` and `final`."""
        self._check_alone("changes")
        return self._shown(View(Lane.RESULTS, changes=True))

    def tier(self, number: int) -> DataFrame:
        """The answer of one tier, counted from one: every window, with all events within the tier's latency.

        `pane` says how it came about, `final` whether it is the last tier.
        """
        tiers = self._schemas.tiers
        if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= tiers:
            rule = f"be from 1 to {tiers}" if tiers else "be asked of a result of .tiers(...)"
            raise InputError(must("tier", rule, number, "tiers are counted from the shortest latency"))
        self._check_alone(f"tier({number})")
        return self._shown(View(Lane.RESULTS, tier=number))

    @property
    def late(self) -> DataFrame:
        """The rows that came too late, with `lateness_us` and `reason`."""
        self._check_alone("late")
        return self._shown(View(Lane.LATE))

    @property
    def quarantine(self) -> DataFrame:
        """The rows that cannot be placed in time, with the `reason`."""
        self._check_alone("quarantine")
        return self._shown(View(Lane.QUARANTINE))

    def start(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        checkpoint: str | os.PathLike[str],
        sinks: Mapping[str, SinkLike] | None = None,
        every: str | None = None,
        available_now: bool = False,
        name: str | None = None,
    ) -> StreamingQuery:
        """Start one query that writes every lane: to `path/<lane>` as Parquet, or to the lane's own sink.

        Where results may change, `sinks` may also name `changes`; with tiers, any of `tier_1`, `tier_2`, ... too, and
        `results` has the answers of all.
        `every` is the time between micro-batches; with `available_now` the query takes what is there and stops.
        """
        if not self._packed.isStreaming:
            raise InputError(must("start", "be called on a stream", "a batch DataFrame", "call .write instead"))
        checkpoint = _text(checkpoint) or ""
        if not checkpoint:
            raise InputError(must("checkpoint", "be a folder", checkpoint, "give a path that stays"))
        targets = _sinks(_text(path), sinks or {}, self._schemas)
        trigger = _trigger(every, available_now=available_now)
        spark = self._packed.sparkSession
        if not is_bound(spark, checkpoint, self._stored):
            for sink in targets.values():
                if isinstance(sink, Files):
                    sink.check_new(spark)
            bind(spark, checkpoint, self._stored)
        write = _without_result(_batch_writer(self._schemas, targets, tuple(ROWS_OF.values())))
        writer = observed(self._packed).writeStream.foreachBatch(write)
        writer = writer.option("checkpointLocation", checkpoint)
        if name is not None:
            writer = writer.queryName(name)
        if trigger:
            writer = writer.trigger(**trigger)
        with settings_for_start(spark, self._shards, flat=self._flat(), local=is_local(spark, checkpoint)):
            return writer.start()

    def write(
        self, path: str | os.PathLike[str] | None = None, *, sinks: Mapping[str, SinkLike] | None = None
    ) -> dict[str, int]:
        """Run a batch once, write every lane as `start` does, and give the counters."""
        if self._packed.isStreaming:
            raise InputError(must("write", "be called on a batch DataFrame", "a stream", "call .start instead"))
        targets = _sinks(_text(path), sinks or {}, self._schemas)
        with settings_for_start(self._packed.sparkSession, self._shards, flat=self._flat()):
            return _batch_writer(self._schemas, targets, COUNTERS)(self._packed, 0)

    def explain(self, counters: Measured = None) -> None:
        """Print where the sort stands and what the steps before it save.

        With a query, one of its progress events, or the counters that `write` gives: also what they saved.
        """
        print(self.explained(counters))

    def explained(self, counters: Measured = None) -> str:
        """The text that `explain` prints."""
        return result_text(self._story, counters)

    def _shown(self, view: View) -> DataFrame:
        return lane_rows(observed(self._packed), view, self._schemas)

    def _flat(self) -> bool:
        return is_flat(self._schemas.user) and is_flat(self._schemas.results)

    def _check_alone(self, lane: str) -> None:
        check_settings(self._packed.sparkSession, self._shards)
        if self._packed.isStreaming:
            others = ", ".join(name for name in LANES if name not in (lane, "results" if lane == "changes" else lane))
            text = f".{lane} alone writes one lane: rows of {others} are then only counted; "
            warnings.warn(text + ".start(...) writes all lanes in one query", LatecomerWarning, stacklevel=3)


def _text(path: str | os.PathLike[str] | None) -> str | None:
    return None if path is None else os.fspath(path)


Writer = Callable[[DataFrame, int], dict[str, int]]
Targets = dict[str, Callable[[DataFrame, int], object]]


def _batch_writer(schemas: LaneSchemas, targets: Targets, counters: tuple[str, ...]) -> Writer:
    """The function that `foreachBatch` runs; it gives the `counters` named, of which those of the lanes must be some.

    The first action must read every packed row, or Spark's state store refuses the batch: our own sinks do, a
    user's callable may not. An empty lane is written in the first batch only, for its schema.
    """

    def write_batch(packed: DataFrame, batch: int) -> dict[str, int]:
        packed = packed.persist()
        try:
            counts = _write_results(packed, batch, schemas, targets["results"], counters)
            for name, view in schemas.views.items():
                lane = name if name in LANES else "results"
                if name != "results" and name in targets and (counts[ROWS_OF[lane]] or batch == 0):
                    targets[name](lane_rows(packed, view, schemas), batch)
            return counts
        finally:
            packed.unpersist()

    return write_batch


def _without_result(write: Writer) -> Callable[[DataFrame, int], None]:
    def write_batch(packed: DataFrame, batch: int) -> None:
        write(packed, batch)

    return write_batch


def _write_results(
    packed: DataFrame,
    batch: int,
    schemas: LaneSchemas,
    sink: Callable[[DataFrame, int], object],
    counters: tuple[str, ...],
) -> dict[str, int]:
    """Write the results and count all lanes, in one action where the sink allows it."""
    if isinstance(sink, Files | Discard):
        counted = Observation(f"latecomer lanes of batch {batch}")
        sink(lane_rows(packed.observe(counted, *counter_columns(counters)), View(Lane.RESULTS), schemas), batch)
        return dict(counted.get)
    counts: dict[str, int] = packed.agg(*counter_columns(counters)).collect()[0].asDict()
    if counts[ROWS_OF["results"]] or batch == 0:
        sink(lane_rows(packed, View(Lane.RESULTS), schemas), batch)
    return counts


def _sinks(path: str | None, given: Mapping[str, SinkLike], schemas: LaneSchemas) -> Targets:
    for name in given:
        if name not in schemas.views:
            raise InputError(must("sinks", f"be for {', '.join(schemas.views)}", name, "correct the name"))
    missing = [lane for lane in LANES if lane not in given]
    if path is None and missing:
        advice = f"give a path, or sinks for {', '.join(missing)} too"
        raise InputError(must("every lane", "have somewhere to go", sorted(given), advice))
    root = (path or "").rstrip("/")
    chosen = {**{lane: f"{root}/{lane}" for lane in LANES}, **given}
    targets = {name: as_sink(sink, f"sinks[{name!r}]") for name, sink in chosen.items()}
    files = {name: sink for name, sink in targets.items() if isinstance(sink, Files)}
    _check_folders(files, [*schemas.user.names, *schemas.results.names])
    return targets


def _check_folders(files: dict[str, Files], columns: list[str]) -> None:
    """Lanes overwrite their batches, so no lane may write into another's folder."""
    folders = {lane: posixpath.normpath(sink.path) + "/" for lane, sink in files.items()}
    for lane, folder in folders.items():
        inside = [other for other in folders if other != lane and folder.startswith(folders[other])]
        if inside:
            rule = f"not lie in that of lane '{inside[0]}'"
            raise InputError(must(f"folder of lane '{lane}'", rule, files[lane].path, "give each its own"))
    if files and BATCH in [column.lower() for column in columns]:
        advice = f"the folders are named {BATCH}=<id>: rename the column, or give your own sinks"
        raise InputError(must("columns written to files", f"not be named {BATCH}", BATCH, advice))


def _trigger(every: str | None, *, available_now: bool) -> dict[str, Any]:
    if every is not None and available_now:
        raise InputError(must("start", "have one trigger", (every, "available_now"), "drop one of them"))
    if available_now:
        return {"availableNow": True}
    if every is None:
        return {}
    return {"processingTime": f"{duration_us(every, 'every') // 1_000} milliseconds"}
