"""Chains of optimistic steps by several keys against their slow twin, with any number of shards, tasks and cuts."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest

from latecomer.codec import widened
from latecomer.optimistic import Optimistic
from latecomer.outputs import Lane
from latecomer.spark.declare import Further, Stage
from latecomer.spark.further import further_stage
from latecomer.spark.schema import spark_schema
from latecomer.windows import Fold, KeyStep, Lag, Mapped, RowNumber, RunningSum, Scan
from latecomer.windows.hashing import hash_rows
from tests.naive_optimistic import By, Event, Item
from tests.naive_optimistic import Fold as NaiveFold
from tests.naive_optimistic import Map as NaiveMap
from tests.naive_optimistic import Optimistic as Naive
from tests.spark.simulated import COLUMNS, LAYOUT, SimulatedQuery, counts, lane_rows

BOUND = 900_000
TICK = 100_000
NUMBER = pa.schema([("twice", pa.int64()), ("place", pa.string())])
LISTED = pa.schema([("seen", pa.list_(pa.int64())), ("size", pa.int64())])


def twice(row: Any) -> list[tuple[int, str]]:
    """None, one or two rows for each, by the parity of a sum."""
    return [(row.running_sum_id + extra, "even" if row.row_number % 2 == 0 else "odd") for extra in range(row.id % 3)]


def listed(state: list[int], row: Any) -> tuple[list[int], list[tuple[list[int], int]]]:
    """The last four values, a state changed in place."""
    state.append(row.twice)
    del state[:-4]
    return state, [(state, len(state))]


def stages(*steps: tuple[KeyStep, tuple[str, ...]], barrier: bool = True) -> tuple[Stage, ...]:
    """A chain: each step, and the key by which it goes."""
    made: tuple[Stage, ...] = ()
    for number, (step, key) in enumerate(steps):
        last = number + 1 == len(steps)
        asked = Optimistic(step, f"{BOUND} us", barrier and last, goes_on=not last, derived=number > 0)
        if number == 0:
            gives = asked.gives(COLUMNS, LAYOUT)
            made = (Stage("optimistic", asked, LAYOUT, COLUMNS, spark_schema(COLUMNS), gives, ()),)
        else:
            made = (*made, further_stage(Further(cast(Any, None), made, key), asked))
    return made


CHAIN = (
    (Mapped(Scan(RunningSum("id"), RowNumber()), twice, NUMBER), ("key",)),
    (Scan(Lag("twice"), RunningSum("twice")), ("place",)),
)
LONG = (
    (Mapped(Scan(RunningSum("id"), RowNumber()), twice, NUMBER), ("key",)),
    (Fold(listed, [], state=pa.list_(pa.int64()), returns=LISTED), ("place",)),
    (Scan(RowNumber(), Lag("place")), ("size",)),
)


def sums(state: tuple[int, int], row: dict[str, Any]) -> tuple[tuple[int, int], list[dict[str, Any]]]:
    total, count = state[0] + row["id"], state[1] + 1
    return (total, count), [{**row, "running_sum_id": total, "row_number": count}]


def naive_twice(row: dict[str, Any]) -> list[dict[str, Any]]:
    place = "even" if row["row_number"] % 2 == 0 else "odd"
    made = [{"twice": row["running_sum_id"] + extra, "place": place} for extra in range(row["id"] % 3)]
    return [{"ts": row["ts"], "key": row["key"], **each} for each in made]


def naive_lag(state: tuple[Any, Any], row: dict[str, Any]) -> tuple[Any, list[dict[str, Any]]]:
    last, total = state
    total = row["twice"] + (total or 0)
    return (row["twice"], total), [{**row, "lag_twice": last, "running_sum_twice": total}]


def naive_listed(state: list[int], row: dict[str, Any]) -> tuple[list[int], list[dict[str, Any]]]:
    state = [*state, row["twice"]][-4:]
    return state, [{"place": row["place"], "ts": row["ts"], "seen": state, "size": len(state)}]


def naive_numbers(state: tuple[int, Any], row: dict[str, Any]) -> tuple[Any, list[dict[str, Any]]]:
    return (state[0] + 1, row["place"]), [{**row, "row_number": state[0] + 1, "lag_place": state[1]}]


FIRST = [NaiveFold(sums, (0, 0)), NaiveMap(naive_twice), By(lambda row: row["place"])]
CHAINS: dict[str, tuple[Any, list[Any], tuple[str, ...]]] = {
    "two steps": (
        CHAIN,
        [*FIRST, NaiveFold(naive_lag, (None, None))],
        ("ts", "place", "twice", "lag_twice", "running_sum_twice"),
    ),
    "three steps": (
        LONG,
        [*FIRST, NaiveFold(naive_listed, []), By(lambda row: row["size"]), NaiveFold(naive_numbers, (0, None))],
        ("ts", "place", "seen", "row_number", "lag_place"),
    ),
}


def random_rows(rng: np.random.Generator, number: int, first: int) -> pa.RecordBatch:
    """A micro-batch of rows, some of them late, with equal times."""
    size = int(rng.integers(0, 30))
    arrival = (number * 10 + np.sort(rng.integers(0, 10, size))) * TICK
    ts = (arrival - rng.choice([0, 0, 0, 2, 5, 8, 12], size) * TICK) // 50_000 * 50_000
    columns = [
        ts,
        arrival,
        rng.integers(0, 4, size),
        np.array(["a", "b"])[rng.integers(0, 2, size)],
        first + np.arange(size),
    ]
    arrays = [pa.array(values, each.type) for values, each in zip(columns, COLUMNS, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=COLUMNS)


def as_events(rows: pa.RecordBatch) -> list[Event]:
    wide = widened(rows)
    hashes = hash_rows(wide.columns, rows.num_rows).tolist()
    return [
        Event(row["ts"], 0, row["arrival"], place, row["key"], row)
        for row, place in zip(rows.to_pylist(), hashes, strict=True)
    ]


def said(items: list[Item], names: tuple[str, ...]) -> list[str]:
    return sorted(str([item.payload[each] for each in names]) for item in items)


@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize("shards", [1, 2, 3])
def test_every_change_of_a_chain_is_that_of_the_twin(name: str, shards: int) -> None:
    chain, steps, names = CHAINS[name]
    voided = recomputed = 0
    for seed in range(8):
        rng = np.random.default_rng([seed, shards])
        query, twin = SimulatedQuery(stages(*chain), shards), Naive(steps, BOUND)
        first = 0
        for number in range(1, 7):
            rows = random_rows(rng, number, first)
            first += rows.num_rows
            if rng.random() < 0.3:
                query.crash(rows, 2, rng)
            packed = query.run(rows, int(rng.integers(1, 4)), rng)
            tombstones, new = twin.push(as_events(rows))
            given = lane_rows(packed, Lane.RESULTS)
            for change, expected in ((-1, tombstones), (1, new), (None, twin.barrier())):
                found = sorted(str([row[each] for each in names]) for row in given if row["change"] == change)
                assert found == said(expected, names), (seed, number, change)
            late = sorted(row["id"] for row in lane_rows(packed, Lane.LATE))
            assert late == sorted(event.payload["id"] for event, _ in twin.late)
            twin.late.clear()
            assert counts(packed, 0)["accepted"] + counts(packed, 0)["late"] == rows.num_rows
        voided, recomputed = voided + twin.voided, recomputed + twin.recomputed[3]
    assert voided > 100
    assert recomputed > 30
