"""A query of several stages without a JVM: pack, the shards of every stage and their state, in this process."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, cast

import numpy as np
import pandas as pd
import pyarrow as pa

from latecomer.codec import rows_from_bytes
from latecomer.contract import Settings
from latecomer.events import Int64s, Layout
from latecomer.outputs import Lane
from latecomer.progress import Measure
from latecomer.spark.declare import Further, Stage
from latecomer.spark.further import further_stage
from latecomer.spark.hold import HoldPlan, Shard
from latecomer.spark.pack import PackPlan, _Task
from latecomer.spark.packed import COUNTS_LANE
from latecomer.spark.planner import hold_plans
from latecomer.spark.processor import HoldProcessor
from latecomer.spark.schema import spark_schema
from latecomer.windows.hashing import shards_of

COLUMNS = pa.schema(
    [("ts", pa.int64()), ("arrival", pa.int64()), ("key", pa.int64()), ("area", pa.string()), ("id", pa.int64())]
)
LAYOUT = Layout("ts", ("key",))


def two_stages(first: Settings, second: Settings, key: tuple[str, ...]) -> tuple[Stage, ...]:
    """A strategy by `key`, and one by another key on what it gives."""
    gives = first.gives(COLUMNS, LAYOUT)
    one = Stage(first.name, first, LAYOUT, COLUMNS, spark_schema(COLUMNS), gives, ())
    return one, further_stage(Further(cast(Any, None), (one,), key), second)


class FakeState:
    """Spark's MapState, as far as it is used."""

    def __init__(self) -> None:
        self.entries: dict[Any, Any] = {}

    def getValue(self, key: Any) -> Any:
        return self.entries.get(key)

    def updateValue(self, key: Any, value: Any) -> None:
        self.entries[key] = value

    def removeKey(self, key: Any) -> None:
        del self.entries[key]


class ProcessorTester:
    """A processor with one shard and its state; Spark has a tester of its own only since 4.2."""

    def __init__(self, processor: HoldProcessor, key: int, entries: dict[Any, Any] | None = None) -> None:
        self.state = FakeState()
        self.state.entries.update(entries or {})
        self._processor, self._key = processor, key
        processor.init(cast(Any, self))

    def getMapState(self, name: str, key: Any, value: Any) -> FakeState:
        """The processor's call, as it would ask Spark's handle."""
        return self.state

    def run(self, rows: pd.DataFrame) -> pd.DataFrame:
        """One micro-batch."""
        given = self._processor.handleInputRows((self._key,), iter([rows]), cast(Any, None))
        return pd.concat(list(given), ignore_index=True)


class SimulatedQuery:
    """Runs micro-batches through the stages; `crash` throws away a micro-batch's changes, as a failure would."""

    def __init__(
        self,
        stages: tuple[Stage, ...],
        shards: int,
        *,
        finishing: bool = False,
        measure: Measure | None = None,
        ending: bool = False,
    ) -> None:
        self._keys, measure = tuple(range(100, 100 + shards)), measure or Measure()
        self._plans = hold_plans(stages, self._keys, "query", finishing=finishing, measure=measure)
        self._pack = _pack_plan(self._keys, stages[0], measure.idle_ticks, ending=ending)
        self._states = {(plan.stage, key): FakeState() for plan in self._plans for key in self._keys}

    def run(self, rows: pa.RecordBatch, tasks: int, rng: np.random.Generator) -> pd.DataFrame:
        """One micro-batch, its rows spread over so many tasks; gives packed rows."""
        frames = self._packed(rows, tasks, rng)
        for plan in self._plans:
            shuffled = frames.sample(
                frac=1, random_state=int(rng.integers(2**31))
            )  # Spark delivers blocks in any order
            frames = pd.concat(list(self._stage(plan, shuffled)), ignore_index=True)
        return frames

    def crash(self, rows: pa.RecordBatch, tasks: int, rng: np.random.Generator) -> None:
        """A micro-batch whose state is never committed."""
        before = {place: dict(state.entries) for place, state in self._states.items()}
        self.run(rows, tasks, rng)
        for place, entries in before.items():
            self._states[place].entries = entries

    def _packed(self, rows: pa.RecordBatch, tasks: int, rng: np.random.Generator) -> pd.DataFrame:
        shard = shards_of([rows.column("key")], rows.num_rows, len(self._keys))
        rows = rows.append_column("_lc_shard", pa.array(shard.astype(np.int32)))
        owner = rng.integers(0, tasks, rows.num_rows)
        frames = []
        for number in range(tasks):
            task = _Task(self._pack, number)
            own = rows.take(pa.array(np.flatnonzero(owner == number)))
            frames += [*task.add(own), *task.close()]
        return pd.DataFrame(frames)

    def _stage(self, plan: HoldPlan, frames: pd.DataFrame) -> Iterator[pd.DataFrame]:
        for key in self._keys:
            own = frames[frames["shard"] == key]
            pieces = [own.iloc[: len(own) // 2], own.iloc[len(own) // 2 :]]
            yield from Shard(plan, cast(Any, self._states[plan.stage, key]), key).run(pieces)


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
