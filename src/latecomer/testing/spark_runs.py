"""A scenario on Spark: one file to a micro-batch, every lane and view collected batch by batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, cast

import pyarrow as pa

from latecomer.outputs import Lane, Output, consolidate
from latecomer.spark.counters import read_counters, total
from latecomer.spark.disordered import disordered
from latecomer.spark.stream_files import END, read_batches, write_batches
from latecomer.testing.chain_runs import Row, check_lane
from latecomer.testing.declared_rows import Question, Roled


@dataclass
class SparkRun:
    """What a query gave on Spark."""

    lanes: dict[str, dict[int, pa.Table]] = field(default_factory=dict)
    counters: dict[str, int] = field(default_factory=dict)
    how: tuple[str, ...] = ()

    def rows(self, name: str, batch: int | None = None) -> list[Row]:
        """The rows of a lane or view, of all micro-batches or one."""
        check_lane(name, self.lanes)
        batches = self.lanes[name]
        chosen = sorted(batches) if batch is None else [batch] if batch in batches else []
        return [row for each in chosen for row in batches[each].to_pylist()]

    def columns(self, name: str) -> list[str]:
        """The columns of a lane or view."""
        check_lane(name, self.lanes)
        names: list[str] = next(iter(self.lanes[name].values())).schema.names
        return names

    def standing(self) -> list[Row]:
        """The results that stand in the end."""
        name = "changes" if "changes" in self.lanes else "results"
        outputs = [
            Output(Lane.RESULTS, rows)
            for _, table in sorted(self.lanes[name].items())
            for rows in table.combine_chunks().to_batches()
        ]
        table = consolidate(outputs, self.how)
        found: list[Row] = [] if table is None else table.to_pylist()
        return found


class RecordedRows(NamedTuple):
    """Rows, the row after each micro-batch, and what they are declared with."""

    rows: pa.RecordBatch
    cuts: Sequence[int]
    declared: Roled


def run_on_spark(spark: Any, question: Question, recorded: RecordedRows, folder: Path, shards: int) -> SparkRun:
    """Write the micro-batches as files, ask the question of them as a stream, and collect what it gives."""
    rows, cuts, declared = recorded
    by = {"arrival": declared.get("arrival"), "source": declared.get("source")}
    stream = read_batches(spark, write_batches(rows, cuts, folder / "events", **by), rows.schema)
    result = question(disordered(stream, **cast(Any, declared), end=END, shards=shards))
    names = result.planned.lanes.names
    found = SparkRun({name: {} for name in names}, how=result.planned.stages[-1].gives.how)
    sinks = {name: partial(_keep, found.lanes[name]) for name in names}
    query = result.start(checkpoint=str(folder / "checkpoint"), sinks=cast(Any, sinks), available_now=True)
    query.awaitTermination()
    found.counters = total([each for event in query.recentProgress if (each := read_counters(event)) is not None])
    return found


def _keep(batches: dict[int, pa.Table], rows: Any, batch: int) -> None:
    batches[batch] = rows.toArrow()
