"""Stages and events with which queries are run without a JVM, and what came of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, cast

import pandas as pd
import pyarrow as pa

from latecomer.codec import rows_from_bytes
from latecomer.contract import Settings
from latecomer.events import Int64s, Layout
from latecomer.outputs import Lane
from latecomer.progress import Measure
from latecomer.spark.declare import Further, Stage
from latecomer.spark.further import further_stage
from latecomer.spark.pack import PackPlan
from latecomer.spark.packed import COUNTS_LANE
from latecomer.spark.planner import hold_plans
from latecomer.spark.processor import HoldProcessor
from latecomer.spark.schema import spark_schema
from latecomer.testing.simulated import MemoryState, SimulatedQuery

COLUMNS = pa.schema(
    [("ts", pa.int64()), ("arrival", pa.int64()), ("key", pa.int64()), ("area", pa.string()), ("id", pa.int64())]
)
LAYOUT = Layout("ts", ("key",))


def two_stages(first: Settings, second: Settings, key: tuple[str, ...]) -> tuple[Stage, ...]:
    """A strategy by `key`, and one by another key on what it gives."""
    gives = first.gives(COLUMNS, LAYOUT)
    one = Stage(first.name, first, LAYOUT, COLUMNS, spark_schema(COLUMNS), gives, ())
    return one, further_stage(Further(cast(Any, None), (one,), key), second)


class ProcessorTester:
    """A processor with one shard and its state; Spark has a tester of its own only since 4.2."""

    def __init__(self, processor: HoldProcessor, key: int, entries: dict[Any, Any] | None = None) -> None:
        self.state = MemoryState(entries)
        self._processor, self._key = processor, key
        processor.init(cast(Any, self.state))

    def run(self, rows: pd.DataFrame) -> pd.DataFrame:
        """One micro-batch."""
        given = self._processor.handleInputRows((self._key,), iter([rows]), cast(Any, None))
        return pd.concat(list(given), ignore_index=True)


def simulated(
    stages: tuple[Stage, ...],
    shards: int,
    *,
    finishing: bool = False,
    measure: Measure | None = None,
    ending: bool = False,
) -> SimulatedQuery:
    """Stages that run without a JVM."""
    keys, measure = tuple(range(100, 100 + shards)), measure or Measure()
    plans = hold_plans(stages, keys, "query", finishing=finishing, measure=measure)
    return SimulatedQuery(_pack_plan(keys, stages[0], measure.idle_ticks, ending=ending), plans, ("key",))


def lane_rows(packed: pd.DataFrame, lane: Lane, stage: int | None = None) -> list[dict[str, Any]]:
    """The rows of a lane, of all stages or of one."""
    chosen = packed[packed["lane"] == int(lane)] if "kind" not in packed else packed
    chosen = chosen if stage is None else chosen[chosen["stage"] == stage]
    return [row for blob in chosen["blob"] for row in rows_from_bytes(blob).to_pylist()]


def counts(packed: pd.DataFrame, stage: int) -> dict[str, int]:
    """The summed counters of a stage."""
    own = packed[(packed["lane"] == COUNTS_LANE) & (packed["stage"] == stage)]
    names = ("seen", "late", "dropped", "accepted", "given", "held", "quarantined")
    return {name: int(own[name].sum()) for name in names}


def batch_of(ts: Iterable[int], arrival: Iterable[int], key: Iterable[int], first_id: int) -> pa.RecordBatch:
    """Events; the area of an event follows from its id."""
    columns = [list(ts), list(arrival), list(key)]
    ids = list(range(first_id, first_id + len(columns[0])))
    areas = [None if number % 5 == 4 else f"area {number % 3}" for number in ids]
    return pa.RecordBatch.from_arrays(
        [pa.array(values, field.type) for values, field in zip([*columns, areas, ids], COLUMNS, strict=True)],
        schema=COLUMNS,
    )


def split_at(rows: pa.RecordBatch, cuts: Sequence[int]) -> list[pa.RecordBatch]:
    """Rows in pieces."""
    places = [0, *cuts, rows.num_rows]
    return [rows.slice(start, stop - start) for start, stop in pairwise(places)]


def ticks_of(rows: pa.RecordBatch) -> Int64s:
    """The ticks of events: their arrivals."""
    ticks: Int64s = rows.column("arrival").to_numpy()
    return ticks


def _pack_plan(keys: tuple[int, ...], stage: Stage, idle_ticks: int | None, *, ending: bool) -> PackPlan:
    names = tuple(stage.user.names)
    return PackPlan(
        shard_keys=keys,
        time="ts",
        stamp="arrival",
        source=stage.layout.source,
        columns=names,
        user_columns=names,
        filtering=False,
        beating=False,
        controlled=False,
        ending=ending,
        tick_us=1,
        idle_ticks=idle_ticks,
        earliest_us=-(2**60),
        latest_us=2**60,
        max_ahead_us=None,
    )
