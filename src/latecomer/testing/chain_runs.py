"""A query run on rows in memory, with any shards, cuts and crashes, and what it gave."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from latecomer.codec import rows_from_bytes
from latecomer.errors import InputError, must
from latecomer.outputs import Lane, Output, consolidate
from latecomer.spark.counters import total
from latecomer.spark.lanes import lane_of
from latecomer.spark.packed import LANES
from latecomer.spark.planner import Query
from latecomer.spark.shards import check_shards
from latecomer.spark.unpack import UNPACK_COLUMNS, unpacker
from latecomer.testing.declared_rows import DeclaredRows, Question
from latecomer.testing.simulated import SimulatedQuery

Row = dict[str, Any]
_FIRST_KEY = 100  # of the shards: any numbers that differ


@dataclass(frozen=True)
class Spread:
    """Over how many shards rows are spread, at which of them micro-batches are cut, and which of those crash once."""

    shards: int = 1
    cuts: tuple[int, ...] = ()
    crashes: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        check_shards(self.shards)
        if list(self.cuts) != sorted(set(self.cuts)) or min(self.cuts, default=0) < 0:
            raise InputError(must("cuts", "be positions in the rows that rise", list(self.cuts), "e.g. [10, 20]"))
        if not set(self.crashes) <= set(range(len(self.cuts) + 1)):
            rule = f"be numbers of micro-batches, of which there are {len(self.cuts) + 1}"
            raise InputError(must("crashes", rule, list(self.crashes), "they are counted from zero"))


def check_lane(name: str, names: Iterable[str]) -> None:
    """Refuse a name that is no lane or view of a query."""
    if name not in names:
        raise InputError(must("rows", f"be those of {', '.join(names)}", name, "correct the name"))


@dataclass(frozen=True)
class ChainRun:
    """What a query gave, micro-batch by micro-batch: `packed` rows, to be looked at lane by lane."""

    query: Query = field(repr=False)
    packed: tuple[pd.DataFrame, ...] = field(repr=False)

    def rows(self, name: str, batch: int | None = None) -> list[Row]:
        """The rows of a lane (`late`, `quarantine`) or view (`changes`, `final`, ...), of all micro-batches or one."""
        rows: list[Row] = self.table(name, batch).to_pylist()
        return rows

    def columns(self, name: str) -> list[str]:
        """The columns of a lane or view."""
        check_lane(name, self.query.lanes.names)
        names: list[str] = self.query.lanes.plan(name).schema.names
        return names

    def table(self, name: str, batch: int | None = None) -> pa.Table:
        """The same as a table of Arrow's."""
        lanes = self.query.lanes
        check_lane(name, lanes.names)
        plan, bit, found = lanes.plan(name), lanes.bit(name), list[pa.RecordBatch]()
        for packed in self.packed if batch is None else [self.packed[batch]]:
            chosen = packed[packed["lane"] == int(LANES[lane_of(name)])]
            chosen = chosen if bit is None else chosen[chosen["views"] & bit != 0]
            blobs = pa.RecordBatch.from_pandas(chosen[UNPACK_COLUMNS], preserve_index=False)
            found += unpacker(plan)(iter([blobs]))
        empty = plan.schema.empty_table()
        return pa.concat_tables([empty, *map(_alone, found)], promote_options="permissive")

    def standing(self) -> list[Row]:
        """The results that stand in the end, in an order of their own."""
        blobs = [blob for packed in self.packed for blob in packed[packed["lane"] == int(Lane.RESULTS)]["blob"]]
        outputs = [Output(Lane.RESULTS, rows_from_bytes(blob)) for blob in blobs]
        table = consolidate(outputs, self.query.stages[-1].gives.how)
        found: list[Row] = [] if table is None else table.to_pylist()
        return found

    @property
    def counters(self) -> dict[str, int]:
        """The counters of the whole run, as `lc.read_counters` names them."""
        counters = self.query.counters
        return total([counters.counted(packed) for packed in self.packed], counters.tallies)


def _alone(rows: pa.RecordBatch) -> pa.Table:
    return pa.Table.from_batches([rows])


def run_rows(question: Question, rows: DeclaredRows, spread: Spread) -> ChainRun:
    """Run a question on rows, to the end of the stream."""
    query, whole = rows.ask(question), rows.for_pack
    if query.pack.beating:
        rule = "be run on Spark: its slack follows how long micro-batches take"
        raise InputError(must("slack with a deadline", rule, "rows in memory", "give a slack, e.g. slack('5 seconds')"))
    if max(spread.cuts, default=0) > rows.rows.num_rows:
        rule = f"be positions in the rows, of which there are {rows.rows.num_rows}"
        raise InputError(must("cuts", rule, list(spread.cuts), "leave out those beyond them"))
    keys = tuple(range(_FIRST_KEY, _FIRST_KEY + spread.shards))
    key = () if query.together else query.declared.roles.key or (query.declared.roles.time,)
    simulated = SimulatedQuery(replace(query.pack, shard_keys=keys), query.holds(keys), key)
    rng = np.random.default_rng([spread.shards, *spread.cuts])
    return ChainRun(query, tuple(_packed(simulated, whole, spread, rng)))


def _packed(
    simulated: SimulatedQuery, whole: pa.RecordBatch, spread: Spread, rng: np.random.Generator
) -> Iterator[pd.DataFrame]:
    for number, (start, stop) in enumerate(pairwise((0, *spread.cuts, whole.num_rows))):
        batch, tasks = whole.slice(start, stop - start), int(rng.integers(1, 4))
        if number in spread.crashes:
            simulated.crash(batch, tasks, rng)
        yield simulated.run(batch, tasks, rng)
