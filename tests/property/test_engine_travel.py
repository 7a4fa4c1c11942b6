"""Time travel for a query of the engine's own: what its calls add up to is the query on the sorted events."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from latecomer.events import NEVER_US, TICK_FIELD, EventBatch, Layout
from latecomer.outputs import Lane
from latecomer.runner import Between, Runner
from latecomer.timetravel import Anywhere, EngineTravel, Enumerator, Holes, Period, Trigger
from tests.naive_engine import ChainedQuery, Event, call, random_query

LAYOUT = Layout("ts", ("key",))
COLUMNS = pa.schema([("ts", pa.int64()), ("key", pa.int32()), ("value", pa.int64()), ("number", pa.int64())])


def after_a_while(late: pa.RecordBatch) -> pa.Array:
    """A trigger of a user's: some time after the event."""
    return pa.array(late.column("ts").to_numpy() // 7 * 7 + 21)


def arrivals(rng: np.random.Generator) -> pa.RecordBatch:
    """Events of a few keys, or of many that hardly speak twice, one in three delayed, in the order they come in."""
    count, keys = int(rng.integers(1, 80)), int(rng.integers(1, 4) if rng.random() < 0.7 else 60)
    ts = np.sort(rng.integers(0, 120, count))
    key, late = rng.integers(0, keys, count), rng.random(count) < 0.35
    number = [int(np.sum(key[:place] == key[place])) for place in range(count)]
    tick = ts + np.where(late, rng.integers(0, 60, count), 0)
    order = np.argsort(tick, kind="stable")
    columns: list[Any] = [ts, key.astype(np.int32), rng.integers(0, 5, count), np.array(number)]
    rows = pa.RecordBatch.from_arrays([pa.array(each[order]) for each in columns], schema=COLUMNS)
    return rows.append_column(TICK_FIELD, pa.array(tick[order]))


def events_of(rows: pa.RecordBatch) -> Counter[Event]:
    return Counter(zip(*(rows.column(name).to_pylist() for name in ("ts", "key", "value")), strict=True))


def settings_of(rng: np.random.Generator, query: ChainedQuery) -> EngineTravel:
    holes: list[Holes] = [Anywhere(), Period("3 us"), Enumerator("number")]
    triggers: list[Trigger] = ["eager", "lazy", after_a_while]
    described = query.described(sides_known=rng.random() < 0.8)
    bound = int(rng.integers(40, 90))
    return EngineTravel(described, f"{bound} us", holes[int(rng.integers(0, 3))], triggers[int(rng.integers(0, 3))])


@pytest.mark.parametrize("seed", range(60))
def test_calls_add_up_to_the_query_on_sorted_events(seed: int) -> None:
    for part in range(5):
        rng = np.random.default_rng([seed, part])
        query, rows = random_query(rng), arrivals(rng)
        settings = settings_of(rng, query)
        cuts = [0, *np.sort(rng.integers(0, rows.num_rows + 1, int(rng.integers(0, 9)))).tolist(), rows.num_rows]
        runner = Runner(settings, LAYOUT, between=Between.RESTORE)
        total: Counter[tuple[Any, ...]] = Counter()
        refused: Counter[Event] = Counter()
        given = NEVER_US
        for start, stop in pairwise(cuts):
            outputs = runner.push(EventBatch(rows.slice(start, stop - start), LAYOUT)).outputs
            refused += sum((events_of(each.rows) for each in outputs if each.lane is Lane.LATE), Counter())
            total.update(call(query, outputs))
            assert min(total.values(), default=0) >= 0
            closed = runner.store.notes["closed_us"]
            so_far = query.results((events_of(rows.slice(0, stop)) - refused).elements())
            came = Counter({each: n for each, n in so_far.items() if each[1] <= closed})
            if settings.trigger == "eager":  # what stands is what has come
                assert +total == came
            else:  # what is given for the first time is
                assert {each for each in +total if each[1] > given} == {each for each in came if each[1] > given}
            given = closed
        total.update(call(query, runner.finish()))
        assert +total == query.results((events_of(rows) - refused).elements())
