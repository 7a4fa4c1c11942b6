"""What a strategy gives back: one packed DataFrame, seen as lanes, and written whole in one query.

`.start` is one `foreachBatch`: keep the packed rows, read them all once, then write each lane. A repeated batch
replaces itself, lane by lane, so after any crash every row is there once.
"""

from __future__ import annotations

import os
import posixpath
import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.streaming.query import StreamingQuery

from latecomer.durations import duration_us
from latecomer.errors import InputError, LatecomerWarning, must
from latecomer.gives import CHANGES, RESULTS
from latecomer.outputs import CHANGE, FINAL, PANE, REVISION_COLUMNS, Pane
from latecomer.spark.compat import available_now_settings, await_sources
from latecomer.spark.counters import Counters, metric_name
from latecomer.spark.explain import Measured, measured, result_text
from latecomer.spark.failures import in_one_sentence
from latecomer.spark.jump_watch import JUMP_COUNTERS, JumpWatch
from latecomer.spark.lanes import Lanes, lane_of, rows_in
from latecomer.spark.packed import LANES
from latecomer.spark.planner import Query
from latecomer.spark.refusals import result_refusal
from latecomer.spark.schema import is_flat
from latecomer.spark.session import changed_settings, check_settings, settings_for_start, warn_of_refused
from latecomer.spark.shipping import check_workers
from latecomer.spark.sinks import BATCH, Discard, Files, SinkLike, as_sink
from latecomer.spark.started import started
from latecomer.spark.stored import bind, control_file, is_bound

if TYPE_CHECKING:
    from latecomer.spark.questions import StageEvents


class Result:
    """The lanes of a strategy's output, and the views of its results."""

    def __init__(self, query: Query) -> None:
        self._query, self._lanes, self._counters = query, query.lanes, query.counters
        self._spark, self._streaming = query.declared.df.sparkSession, query.declared.df.isStreaming
        self._metric = metric_name()

    @property
    def metric(self) -> str:
        """What the names of its counters in Spark's progress events begin with."""
        return self._metric

    @property
    def results(self) -> DataFrame:
        """The results; those that may change with `pane` and `final`; with tiers, those of all, and the `tier`."""
        return self.view("results")

    @property
    def changes(self) -> DataFrame:
        """The results with `change` (+1, or -1: that earlier result is void), `pane` and `final`."""
        if CHANGES in self._lanes.names:
            return self.view(CHANGES)
        given = {CHANGE: F.lit(1).cast("tinyint"), PANE: F.lit(str(Pane.ON_TIME)), FINAL: F.lit(True)}
        return self.results.withColumns(given)  # results that never change

    def tier(self, number: int) -> DataFrame:
        """The answer of one tier, counted from one: every window, with all events within the tier's latency.

        `pane` says how it came about, `final` whether it is the last tier.
        """
        tiers = sum(name.startswith("tier_") for name in self._lanes.names)
        if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= tiers:
            rule = f"be from 1 to {tiers}" if tiers else "be asked of a result of .tiers(...)"
            raise InputError(must("tier", rule, number, "tiers are counted from the shortest latency"))
        return self.view(f"tier_{number}")

    def view(self, name: str) -> DataFrame:
        """A lane, or a view of the results, by its name."""
        if name not in self._lanes.names:
            rule = f"be one of {', '.join(self._lanes.names)}"
            raise InputError(must("view", rule, name, "other strategies have other views"))
        self._check_alone(name)
        return self._lanes.rows(self._counters.observed(self._query.packed(), self.metric), name)

    @property
    def late(self) -> DataFrame:
        """The rows that came too late, with `lateness_us` and `reason`."""
        return self.view("late")

    @property
    def quarantine(self) -> DataFrame:
        """The rows that cannot be placed in time, with the `reason`."""
        return self.view("quarantine")

    def by(self, *key: str) -> StageEvents:
        """The results as the events of a further stage of the same query, by a key of their own, or without one."""
        from latecomer.spark.questions import StageEvents  # which asks for results itself

        return StageEvents.of(self._query, key)

    def start(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        checkpoint: str | os.PathLike[str],
        sinks: Mapping[str, SinkLike] | None = None,
        every: str | None = None,
        available_now: bool = False,
        name: str | None = None,
        tune: bool = True,
    ) -> StreamingQuery:
        """Start one query that writes every lane: to `path/<lane>` as Parquet, or to the lane's own sink.

        Spark's query, but where it fails, `awaitTermination` raises one sentence, Spark's error behind it.
        Where results may change, `sinks` may also name `changes`; with tiers, any of `tier_1`, `tier_2`, ... too, and
        `results` has the answers of all.
        `every` is the time between micro-batches; with `available_now` the query takes what is there and stops.
        Spark's settings are changed for the moment of the start, where they may be; with `tune=False` none is touched.
        """
        if not self._streaming:
            raise InputError(must("start", "be called on a stream", "a batch DataFrame", "call .write instead"))
        checkpoint = _text(checkpoint, "checkpoint") or ""
        if not checkpoint:
            raise InputError(must("checkpoint", "be a folder", checkpoint, "give a path that stays"))
        targets = _sinks(_text(path, "path"), sinks or {}, self._lanes)
        trigger = _trigger(every, available_now=available_now)
        spark, stored = self._spark, self._query.stored
        check_workers(spark)
        if not is_bound(spark, checkpoint, stored):
            for sink in targets.values():
                if isinstance(sink, Files):
                    sink.check_new(spark)
            bind(spark, checkpoint, stored)
        control = control_file(spark, checkpoint)
        packed = self._query.packed(control if self._query.controlled else None)
        packed = self._counters.observed(packed, self.metric)
        spool = control.rsplit("/", 1)[0] + "/latecomer-packed"
        write = _without_result(_batch_writer(self._lanes, targets, self._counters, self._watch(), (), spool))
        writer = packed.writeStream.foreachBatch(write).option("checkpointLocation", checkpoint)
        if name is not None:
            writer = writer.queryName(name)
        if trigger:
            writer = writer.trigger(**trigger)
        local = control.startswith("file:")
        lasting = available_now_settings(spark) if available_now and tune else {}
        with changed_settings(spark, lasting) as refused:
            warn_of_refused(refused, lasting)
            with settings_for_start(spark, self._query.shards, flat=self._flat(), local=local, tune=tune):
                query = writer.start()
            if lasting:
                await_sources(query)
        return started(query)

    def write(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        sinks: Mapping[str, SinkLike] | None = None,
        tune: bool = True,
    ) -> dict[str, int]:
        """Run a batch once, write every lane as `start` does, and give the counters."""
        if self._streaming:
            raise InputError(must("write", "be called on a batch DataFrame", "a stream", "call .start instead"))
        targets = _sinks(_text(path, "path"), sinks or {}, self._lanes)
        counts = tuple(self._counters.tallies)
        check_workers(self._spark)
        settings = settings_for_start(self._spark, self._query.shards, flat=self._flat(), tune=tune)
        with settings, in_one_sentence():
            write = _batch_writer(self._lanes, targets, self._counters, self._watch(), counts)
            return write(self._query.packed(), 0)

    def explain(self, counters: Measured = None) -> None:
        """Print where the sort stands and what the steps before it save.

        With a query, one of its progress events, or the counters that `write` gives: also what they saved.
        """
        print(self.explained(counters))

    def explained(self, counters: Measured = None) -> str:
        """The text that `explain` prints."""
        return result_text(self._query.stories, measured(counters, self._counters.tallies, self))

    if not TYPE_CHECKING:  # so that a type checker refuses these calls too

        def __getattr__(self, name: str) -> Any:
            raise result_refusal(name)

    def _watch(self) -> JumpWatch:
        return JumpWatch(guarded=self._query.pack.max_ahead_us is not None)

    def _flat(self) -> bool:
        """Whether no value of the user's can be large; what we say of each result is short."""
        own = T.StructType([each for each in self._lanes.results.fields if each.name not in REVISION_COLUMNS])
        return all(map(is_flat, [*self._lanes.inputs.values(), own]))

    def _check_alone(self, name: str) -> None:
        check_settings(self._spark, self._query.shards)
        check_workers(self._spark)
        if self._streaming:
            others = ", ".join(lane for lane in LANES if lane != lane_of(name))
            text = f".{name} alone writes one lane: rows of {others} are then only counted, and a foreachBatch must "
            text += "read its batch whole (take, limit and isEmpty stop Spark's state); "
            warnings.warn(text + ".start(...) writes all lanes in one query", LatecomerWarning, stacklevel=4)


def _text(path: str | os.PathLike[str] | None, where: str) -> str | None:
    if path is not None and not isinstance(path, str | os.PathLike):
        raise InputError(must(where, "be a folder", path, "give its path as text"))
    return None if path is None else os.fspath(path)


Writer = Callable[[DataFrame, int], dict[str, int]]
Targets = dict[str, Callable[[DataFrame, int], object]]


def _batch_writer(
    lanes: Lanes,
    targets: Targets,
    counters: Counters,
    watch: JumpWatch,
    names: tuple[str, ...],
    spool: str | None = None,
) -> Writer:
    """The function that `foreachBatch` runs; it gives the counters named.

    The first action must read every packed row, or Spark's state store refuses the batch: our own sinks do, a
    user's callable may not. An empty lane is written in the first batch only, for its schema.
    """

    said: list[str] = []

    def write_batch(packed: DataFrame, batch: int) -> dict[str, int]:
        packed, kept = _kept(packed, spool, said)
        try:
            asked = tuple(dict.fromkeys([*names, *JUMP_COUNTERS]))
            counted = [*counters.columns(asked), *map(rows_in, LANES)]
            counts = _write_results(packed, batch, lanes, targets[RESULTS], counted)
            rows = {lane: counts.pop(f"rows in {lane}") for lane in LANES}
            for name in lanes.names:
                if name != RESULTS and name in targets and (rows[lane_of(name)] or batch == 0):
                    targets[name](lanes.rows(packed, name), batch)
            watch.look(counts)
            return {name: counts[name] for name in names}
        finally:
            if kept:
                packed.unpersist()

    return write_batch


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


def _without_result(write: Writer) -> Callable[[DataFrame, int], None]:
    def write_batch(packed: DataFrame, batch: int) -> None:
        write(packed, batch)

    return write_batch


def _write_results(
    packed: DataFrame, batch: int, lanes: Lanes, sink: Callable[[DataFrame, int], object], counted: list[Column]
) -> dict[str, int]:
    """Write the results and count all lanes, in one action where the sink allows it."""
    if isinstance(sink, Files | Discard):
        observation = Observation(f"latecomer lanes of batch {batch}")
        sink(lanes.rows(packed.observe(observation, *counted), RESULTS), batch)
        return dict(observation.get)
    counts: dict[str, int] = packed.agg(*counted).collect()[0].asDict()
    if counts[f"rows in {RESULTS}"] or batch == 0:
        sink(lanes.rows(packed, RESULTS), batch)
    return counts


def _sinks(path: str | None, given: Mapping[str, SinkLike], lanes: Lanes) -> Targets:
    for name in given:
        if name not in lanes.names:
            raise InputError(must("sinks", f"be for {', '.join(lanes.names)}", name, "correct the name"))
    missing = [lane for lane in LANES if lane not in given]
    if path is None and missing:
        advice = f"give a path, or sinks for {', '.join(missing)} too"
        raise InputError(must("every lane", "have somewhere to go", sorted(given), advice))
    root = (path or "").rstrip("/")
    chosen = {**{lane: f"{root}/{lane}" for lane in LANES}, **given}
    targets = {name: as_sink(sink, f"sinks[{name!r}]") for name, sink in chosen.items()}
    files = {name: sink for name, sink in targets.items() if isinstance(sink, Files)}
    _check_folders(files, [name for schema in (*lanes.inputs.values(), lanes.results) for name in schema.names])
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
