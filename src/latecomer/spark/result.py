"""What a strategy gives back: one packed DataFrame, seen as lanes, and written whole in one query."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.streaming.query import StreamingQuery

from latecomer.errors import InputError, LatecomerWarning, must
from latecomer.gives import CHANGES
from latecomer.outputs import CHANGE, FINAL, PANE, REVISION_COLUMNS, Pane
from latecomer.spark.counters import metric_name, read_values
from latecomer.spark.explain import Measured, measured, result_text
from latecomer.spark.lanes import lane_of
from latecomer.spark.packed import LANES
from latecomer.spark.planner import Query
from latecomer.spark.refusals import result_refusal
from latecomer.spark.schema import is_flat
from latecomer.spark.session import check_settings
from latecomer.spark.shipping import check_workers
from latecomer.spark.sinks import SinkLike, folder_of
from latecomer.spark.starting import Start, start_query, trigger_of, write_once
from latecomer.spark.targets import targets_of

if TYPE_CHECKING:
    from latecomer.spark.questions import StageEvents


class Result:
    """The lanes of a strategy's output, and the views of its results."""

    def __init__(self, query: Query) -> None:
        self._query, self._lanes, self._counters = query, query.lanes, query.counters
        self._spark, self._streaming = query.declared.df.sparkSession, query.declared.df.isStreaming
        self._metric = metric_name()

    @property
    def planned(self) -> Query:
        """Its stages, and what it takes to run them: for tests that run them without Spark."""
        return self._query

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
        """The answer of one tier, counted from one: every window, with all events that had come by then.

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
        if self._streaming and self._lanes.gives.after is not None:
            advice = "call .start(...), which writes all lanes; a sink may be a function of yours"
            raise InputError(must(f".{name}", "be written by .start(...)", "a function's results on a stream", advice))
        return self._lanes.rows(self._counters.observed(self._query.packed(), self.metric), name)

    @property
    def late(self) -> DataFrame:
        """The rows that came too late, with `lateness_us` and `reason`."""
        return self.view("late")

    @property
    def quarantine(self) -> DataFrame:
        """The rows that cannot be placed in time or that your function could not take, with the `reason`.

        In chains of steps and after `map`, what is no row of yours has all its columns in `item_json`.
        """
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
        sinks: Mapping[str, SinkLike | None] | None = None,
        every: str | None = None,
        available_now: bool = False,
        name: str | None = None,
        tune: bool = True,
        from_here_on: bool = False,
    ) -> StreamingQuery:
        """Start one query that writes every lane: to `path/<lane>` as Parquet, or to the lane's own sink.

        Spark's query, but where it fails, `awaitTermination` raises one sentence, Spark's error behind it.
        `sinks` are folders, `lc.Files`, or functions `(DataFrame, batch id)`; docs/lanes.md says what they may rely on.
        Where results may change, `sinks` may also name `changes`; with tiers, any of `tier_1`, `tier_2`, ... too, and
        `results` has the answers of all, and may be None where a view is named: it is not written then.
        `every` is the time between micro-batches; with `available_now` the query takes what is there and stops.
        Spark's settings are changed for the moment of the start, where they may be; with `tune=False` none is touched.
        A query goes on with the settings of its checkpoint. With `from_here_on`, what is done to rows before the
        strategy (`where`, `select`, `with_columns`, `max_ahead`, `earliest`, `latest`) may have changed: for all
        micro-batches that are not finished yet.
        """
        if not self._streaming:
            raise InputError(must("start", "be called on a stream", "a batch DataFrame", "call .write instead"))
        asked = Start(
            folder_of(checkpoint, "checkpoint"),
            targets_of(_folder(path), sinks or {}, self._lanes),
            trigger_of(every, available_now=available_now),
            name,
            tune,
            from_here_on,
            self.metric,
        )
        return start_query(self._query, asked, flat=self._flat())

    def write(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        sinks: Mapping[str, SinkLike | None] | None = None,
        tune: bool = True,
    ) -> dict[str, int]:
        """Run a batch once, write every lane as `start` does, and give the counters.

        The same question asked again replaces what it wrote; a folder that another query has filled is refused.
        """
        if self._streaming:
            raise InputError(must("write", "be called on a batch DataFrame", "a stream", "call .start instead"))
        targets = targets_of(_folder(path), sinks or {}, self._lanes)
        return write_once(self._query, targets, flat=self._flat(), tune=tune)

    def explain(self, counters: Measured = None) -> None:
        """Print where the sort stands and what the steps before it save.

        With a query, one of its progress events, or the counters that `write` gives: also what they saved, and, where
        sources are waited for, which one holds things up, how far behind it is, and which have never been seen.
        """
        print(self.explained(counters))

    def explained(self, counters: Measured = None) -> str:
        """The text that `explain` prints."""
        found = measured(counters, self._counters.tallies, self)
        return result_text(self._query.stories, found, None if found is None else read_values(counters, self))

    if not TYPE_CHECKING:  # so that a type checker refuses these calls too

        def __getattr__(self, name: str) -> Any:
            raise result_refusal(name)

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


def _folder(path: str | os.PathLike[str] | None) -> str | None:
    return None if path is None else folder_of(path, "path")
