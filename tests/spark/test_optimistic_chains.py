"""Chains of optimistic steps by several keys against their slow twin, with any number of shards, tasks and cuts."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import latecomer as lc
from latecomer.codec import widened
from latecomer.events import concat_rows
from latecomer.optimistic import Optimistic
from latecomer.outputs import ITEM, Lane
from latecomer.spark.counters import unaccounted
from latecomer.spark.declare import Further, Stage
from latecomer.spark.further import further_stage
from latecomer.spark.schema import spark_schema
from latecomer.spark.stream_files import age_by_name
from latecomer.windows import Fold, KeyStep, Lag, Mapped, RowNumber, RunningSum, Scan
from latecomer.windows.hashing import hash_rows
from tests.naive_optimistic import By, Event, Item, Skipped
from tests.naive_optimistic import Fold as NaiveFold
from tests.naive_optimistic import Map as NaiveMap
from tests.naive_optimistic import Optimistic as Naive
from tests.spark.simulated import COLUMNS, LAYOUT, counts, lane_rows, simulated

BOUND = 900_000
TICK = 100_000
NUMBER = pa.schema([("twice", pa.int64()), ("place", pa.string())])
LISTED = pa.schema([("seen", pa.list_(pa.int64())), ("size", pa.int64())])
TOTAL = pa.schema([("id", pa.int64()), ("total", pa.int64())])


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


def total(state: int, row: Any) -> tuple[int, list[tuple[int, int]]]:
    """A sum that refuses some rows, and says others three times."""
    if row.id % 11 == 5:
        raise ValueError("no such id")
    return state + row.id, [(row.id, state + row.id + extra) for extra in range(3 if row.id % 4 == 0 else 1)]


def by_parity(row: Any) -> list[tuple[int, str]]:
    """Raises or not, by a sum that late rows change."""
    if row.total % 5 == 3:
        raise LookupError(f"total {row.total}")
    return [(row.total, "even" if row.id % 2 == 0 else "odd")]


def carefully_listed(state: list[int], row: Any) -> tuple[list[int], list[tuple[list[int], int]]]:
    """The same, but one value in six cannot follow those before it; the state is changed all the same."""
    state, outputs = listed(state, row)
    if sum(state) % 6 == 1:
        raise ValueError("such a sum")
    return state, outputs


def at_most_twelve(row: Any) -> list[tuple[int]]:
    return [(12 // (row.row_number % 3),)]


RAISING = (
    (Mapped(Fold(total, 0, state=pa.int64(), returns=TOTAL), by_parity, NUMBER), ("key",)),
    (Fold(carefully_listed, [], state=pa.list_(pa.int64()), returns=LISTED), ("place",)),
    (Mapped(Scan(RowNumber()), at_most_twelve, pa.schema([("twelfth", pa.int64())])), ("size",)),
)


def naive_total(state: int, row: dict[str, Any]) -> tuple[int, list[dict[str, Any]]]:
    if row["id"] % 11 == 5:
        raise ValueError("no such id")
    total, times = state + row["id"], 3 if row["id"] % 4 == 0 else 1
    kept = {"key": row["key"], "ts": row["ts"], "id": row["id"]}
    return total, [{**kept, "total": total + extra} for extra in range(times)]


def naive_by_parity(row: dict[str, Any]) -> list[dict[str, Any]]:
    if row["total"] % 5 == 3:
        raise LookupError(f"total {row['total']}")
    place = "even" if row["id"] % 2 == 0 else "odd"
    return [{"key": row["key"], "ts": row["ts"], "twice": row["total"], "place": place}]


def naive_carefully_listed(state: list[int], row: dict[str, Any]) -> tuple[list[int], list[dict[str, Any]]]:
    state, outputs = naive_listed(state, row)
    if sum(state) % 6 == 1:
        raise ValueError("such a sum")
    return state, outputs


def naive_number(state: int, row: dict[str, Any]) -> tuple[int, list[dict[str, Any]]]:
    return state + 1, [{**row, "row_number": state + 1}]


def naive_twelfth(row: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"size": row["size"], "ts": row["ts"], "twelfth": 12 // (row["row_number"] % 3)}]


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
    "functions that raise": (
        RAISING,
        [
            *(NaiveFold(naive_total, 0), NaiveMap(naive_by_parity), By(lambda row: row["place"])),
            *(NaiveFold(naive_carefully_listed, []), By(lambda row: row["size"])),
            *(NaiveFold(naive_number, 0), NaiveMap(naive_twelfth)),
        ],
        ("ts", "size", "twelfth"),
    ),
}
STAGES = [0, 0, 0, 1, 1, 2, 2]  # of the twin's steps, where functions raise


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


def shown(skipped: Skipped) -> str:
    """What the twin has skipped, as the lane `quarantine` has it: rows of the user by their ids, all else as items."""
    payload, first = skipped.item.payload, skipped.step == 1
    return str((STAGES[skipped.step - 1], payload["id"] if first else payload))


def quarantined(packed: pd.DataFrame) -> list[str]:
    """What is in quarantine, by stage; counted where it belongs."""
    found = []
    for stage in sorted(set(packed["stage"])):
        rows = lane_rows(packed, Lane.QUARANTINE, stage)
        items = [row for row in rows if ITEM in row]
        found += [str((stage, json.loads(row[ITEM]))) for row in items]
        found += [str((stage, row["id"])) for row in rows if ITEM not in row]
        assert all("Error: " in row["reason"] for row in rows)
        assert counts(packed, stage)["quarantined"] == len(rows) - len(items)
        assert int(packed["quarantined_items"][packed["stage"] == stage].sum()) == len(items)
    return sorted(found)


class Compared:
    """A chain and its twin, side by side."""

    def __init__(self, name: str, shards: int, seed: int) -> None:
        chain, self.steps, self.names = CHAINS[name]
        self.rng = np.random.default_rng([seed, shards])
        self.query, self.twin = simulated(stages(*chain), shards), Naive(self.steps, BOUND)
        self.recomputed = [0] * len(chain)
        self._rows = self._quarantined = 0

    def push(self, number: int) -> None:
        """A micro-batch, sometimes repeated: all that comes of it is what comes of it in the twin."""
        rows = random_rows(self.rng, number, self._rows)
        self._rows += rows.num_rows
        if self.rng.random() < 0.3:
            self.query.crash(rows, 2, self.rng)
        packed = self.query.run(rows, int(self.rng.integers(1, 4)), self.rng)
        tombstones, new = self.twin.push(as_events(rows))
        given = lane_rows(packed, Lane.RESULTS)
        for change, expected in ((-1, tombstones), (1, new), (None, self.twin.barrier())):
            found = sorted(str([row[each] for each in self.names]) for row in given if row["change"] == change)
            assert found == said(expected, self.names), (number, change)
        self._check_doors(packed, rows.num_rows)
        for stage in range(len(self.recomputed)):
            self.recomputed[stage] += int(packed["recomputed"][packed["stage"] == stage].sum())
        folds = [place for place, step in enumerate(self.steps) if isinstance(step, NaiveFold)]
        assert self.recomputed == [self.twin.recomputed[place] for place in folds]

    def _check_doors(self, packed: pd.DataFrame, rows: int) -> None:
        late = sorted(row["id"] for row in lane_rows(packed, Lane.LATE))
        assert late == sorted(event.payload["id"] for event, _ in self.twin.late)
        self.twin.late.clear()
        doors = counts(packed, 0)
        assert sum(doors[door] for door in ("accepted", "late", "quarantined")) == rows
        assert quarantined(packed) == sorted(map(shown, self.twin.quarantined[self._quarantined :]))
        self._quarantined = len(self.twin.quarantined)


@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize("shards", [1, 2, 3])
def test_every_change_of_a_chain_is_that_of_the_twin(name: str, shards: int) -> None:
    voided, recomputed, skipped = 0, 0, Counter[int]()
    for seed in range(5):
        compared = Compared(name, shards, seed)
        for number in range(1, 7):
            compared.push(number)
        voided, recomputed = voided + compared.twin.voided, recomputed + sum(compared.recomputed[1:])
        skipped += Counter(each.step for each in compared.twin.quarantined)
    assert voided > 30
    assert recomputed > 20
    assert sorted(skipped) == ([1, 2, 4, 7] if name == "functions that raise" else [])


@pytest.mark.parametrize("name", CHAINS)
def test_a_batch_of_a_chain_ends_as_the_twin_does(name: str) -> None:
    chain, steps, names = CHAINS[name]
    rng = np.random.default_rng(7)
    batches = [random_rows(rng, number, 100 * number) for number in (1, 2, 3)]
    twin, rows = Naive(steps, BOUND), concat_rows(batches)
    twin.push(as_events(rows))
    final = [*twin.barrier(), *twin.finish()]
    packed = simulated(stages(*chain), 2, finishing=True).run(rows, 2, rng)
    given = lane_rows(packed, Lane.RESULTS)
    assert sorted(str([row[each] for each in names]) for row in given if row["change"] is None) == said(final, names)
    assert quarantined(packed) == sorted(map(shown, twin.quarantined))
    assert (len(twin.quarantined) > 10) == (name == "functions that raise")


def test_on_spark_a_chain_gives_voids_and_recomputes_what_the_twin_does(spark: SparkSession, tmp_path: Path) -> None:
    rng, batches, first = np.random.default_rng(319), [], 0
    (tmp_path / "in").mkdir()
    for number in (1, 2):
        batches.append(random_rows(rng, number, first))
        first += batches[-1].num_rows
        pq.write_table(pa.Table.from_batches(batches[-1:]), tmp_path / "in" / f"{number}.parquet")
    age_by_name(tmp_path / "in")
    steps = CHAINS["functions that raise"][1][:4]
    twin = Naive(steps, BOUND)
    changes = [twin.push(as_events(rows)) for rows in batches]
    names = ("ts", "place", "seen", "size")
    expected = [[said(items, names) for items in pair] for pair in changes]
    assert min(twin.voided, twin.recomputed[0], twin.recomputed[3], len(twin.quarantined)) > 3
    for shards in (1, 2, 3):
        seen, folder = SeenChanges(names), tmp_path / str(shards)
        query = raising_chain(spark, tmp_path / "in", shards).start(
            folder / "out", checkpoint=folder / "checkpoint", sinks={"changes": seen}, available_now=True
        )
        query.awaitTermination()
        assert list(seen.batches.values()) == expected
        counted = [each for each in map(lc.read_counters, query.recentProgress) if each is not None]
        total = {name: sum(each[name] for each in counted) for name in counted[0]}
        assert (total["given"], total["optimistic_2.voided"]) == (twin.given, twin.voided)
        assert (total["optimistic.recomputed"], total["optimistic_2.recomputed"]) == tuple(twin.recomputed[0::3])
        assert unaccounted(total) == 0
        check_quarantine(lc.read(spark, str(folder / "out"), "quarantine"), twin, total)


class SeenChanges:
    """The changes that a sink was given, micro-batch by micro-batch: what is void, and what is new."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names, self.batches = names, dict[int, list[list[str]]]()

    def __call__(self, rows: DataFrame, batch: int) -> None:
        found = [(row.change, str([row[name] for name in self.names])) for row in rows.collect()]
        self.batches[batch] = [sorted(text for each, text in found if each == change) for change in (-1, 1)]


def raising_chain(spark: SparkSession, folder: Path, shards: int) -> lc.Result:
    schema = "ts bigint, arrival bigint, key bigint, area string, id bigint"
    rows = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))
    events = lc.disordered(
        rows, time="ts", key="key", arrival="arrival", tick="1 us", earliest="1960-01-01", shards=shards
    )
    totals = events.scan(Fold(total, 0, state=pa.int64(), returns=TOTAL)).map(by_parity, returns=NUMBER)
    listed = totals.by("place").scan(Fold(carefully_listed, [], state=pa.list_(pa.int64()), returns=LISTED))
    return listed.optimistic(f"{BOUND} us")


def check_quarantine(lane: DataFrame, twin: Naive, counted: dict[str, int]) -> None:
    """The lane has the twin's skipped rows as rows, and its skipped items as JSON; both are counted."""
    assert lane.columns == ["ts", "arrival", "key", "area", "id", "reason", ITEM, "stage", "batch"]
    rows = lane.collect()
    found = sorted(
        str((STAGE_NUMBERS[row.stage], row.id if row[ITEM] is None else json.loads(row[ITEM]))) for row in rows
    )
    assert found == sorted(map(shown, twin.quarantined))
    items = Counter(row.stage for row in rows if row[ITEM] is not None)
    assert counted["quarantined"] == len(rows) - sum(items.values())
    assert counted["quarantined_items"] == sum(items.values())
    for stage in STAGE_NUMBERS:
        assert counted[f"{stage}.quarantined_items"] == items[stage] > 0


STAGE_NUMBERS = {"optimistic": 0, "optimistic_2": 1}
