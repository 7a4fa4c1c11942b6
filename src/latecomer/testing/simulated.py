"""A query of one or several stages without a JVM: pack, the shards of every stage and their state, in this process.

All code is that of a query on Spark; what Spark itself does is done here: rows are dealt to tasks, frames and packed
rows are shuffled (in any order: Spark promises none), state is kept between micro-batches, and a micro-batch that fails
is run again from the state before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

import numpy as np
import pandas as pd
import pyarrow as pa

from latecomer.spark.hold import HoldPlan
from latecomer.spark.pack import SHARD, PackPlan, PackTask
from latecomer.spark.processor import HoldProcessor
from latecomer.windows.hashing import shards_of


class MemoryState:
    """Spark's MapState, as far as it is used, and the handle that gives it."""

    def __init__(self, entries: dict[Any, Any] | None = None) -> None:
        self.entries = dict(entries or {})

    def getMapState(self, name: str, key: Any, value: Any) -> MemoryState:
        """A processor's call, as it asks Spark's handle."""
        return self

    def getValue(self, key: Any) -> Any:
        """A processor's call."""
        return self.entries.get(key)

    def updateValue(self, key: Any, value: Any) -> None:
        """A processor's call."""
        self.entries[key] = value

    def removeKey(self, key: Any) -> None:
        """A processor's call."""
        del self.entries[key]


class SimulatedQuery:
    """Runs micro-batches through the stages; `crash` throws away a micro-batch's changes, as a failure would.

    key: the columns whose values say which shard of the first stage a row goes to; without any, all go to one.
    """

    def __init__(self, pack: PackPlan, holds: Sequence[HoldPlan], key: Sequence[str]) -> None:
        self.pack, self.holds, self._key = pack, holds, key
        self._states = {(plan.stage, shard): MemoryState() for plan in holds for shard in pack.shard_keys}

    def run(self, rows: pa.RecordBatch, tasks: int, rng: np.random.Generator) -> pd.DataFrame:
        """One micro-batch, its rows spread over so many tasks; gives packed rows."""
        frames = self.packed(rows, tasks, rng)
        for plan in self.holds:
            shuffled = frames.sample(frac=1, random_state=int(rng.integers(2**31)))
            frames = pd.concat(list(self.held(plan, shuffled)), ignore_index=True)
        return frames

    def crash(self, rows: pa.RecordBatch, tasks: int, rng: np.random.Generator) -> None:
        """A micro-batch whose state is never committed."""
        before = {place: dict(state.entries) for place, state in self._states.items()}
        self.run(rows, tasks, rng)
        for place, entries in before.items():
            self._states[place].entries = entries

    def packed(self, rows: pa.RecordBatch, tasks: int, rng: np.random.Generator) -> pd.DataFrame:
        """What tasks send to the shards of the first stage."""
        shards = len(self.pack.shard_keys) if self._key else 1
        shard = shards_of([rows.column(name) for name in self._key], rows.num_rows, shards)
        rows = rows.append_column(SHARD, pa.array(shard.astype(np.int32)))
        owner = rng.integers(0, tasks, rows.num_rows)
        frames = []
        for number in range(tasks):
            task = PackTask(self.pack, number)
            frames += [*task.add(rows.take(pa.array(np.flatnonzero(owner == number)))), *task.close()]
        return pd.DataFrame(frames)

    def held(self, plan: HoldPlan, frames: pd.DataFrame) -> Iterator[pd.DataFrame]:
        """What the shards of a stage make of the frames that were sent to them, which come to each in two pieces."""
        processor = HoldProcessor(plan)
        for key in self.pack.shard_keys:
            processor.init(cast(Any, self._states[plan.stage, key]))
            own = frames[frames["shard"] == key]
            pieces = iter([own.iloc[: len(own) // 2], own.iloc[len(own) // 2 :]])
            yield from processor.handleInputRows((key,), pieces, cast(Any, None))
