"""`latecomer bench slack`: what the gate costs beside the sort, and what a second shard is worth to a join.

Processor time of machines in this process, so that it says the same on a machine that has other work: what Spark adds
is the same for both. All paths take turns in every round; the fastest round of each counts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from latecomer.contract import Settings
from latecomer.events import TICK, EventBatch, Layout
from latecomer.reorder import Reorder
from latecomer.report.shape import Report, Target
from latecomer.runner import Between, Runner, header_of
from latecomer.slack import Slack
from latecomer.windows import Join

LAYOUT = Layout("ts", ("key",), "source", ("id",))
MOST_TIMES_REORDER, LEAST_OF_TWO_SHARDS = 1.25, 1.6
_TICK_US, _LAG_US = 100_000, 800_000


@dataclass(frozen=True)
class SlackBench:
    """Rows in a micro-batch, micro-batches, rounds; comparisons of a row in the join."""

    rows: int = 200_000
    batches: int = 8
    rounds: int = 3
    comparisons: int = 200
    seed: int = 0


def stream(rows: int, batches: int, keys: int, step_us: int, seed: int) -> list[EventBatch]:
    """Micro-batches of two sources, of which one lags: rows of both come with a little disorder of arrival."""
    rng, count = np.random.default_rng(seed), rows * batches
    arrival_us = 1_700_000_000_000_000 + np.arange(count) * step_us
    source = rng.integers(0, 2, count)
    columns = {
        "ts": pa.array(arrival_us - source * _LAG_US),
        "key": pa.array(rng.integers(0, keys, count)),
        "source": pa.array(np.array(["on time", "lags"])[source]),
        "id": pa.array(np.arange(count)),
        "value": pa.array(rng.random(count)),
        TICK: pa.array(arrival_us // _TICK_US),
    }
    whole = pa.RecordBatch.from_pydict(columns)
    return [EventBatch(whole.slice(start, rows), LAYOUT) for start in range(0, count, rows)]


class Work(NamedTuple):
    """What a machine did: processor time, and comparisons of its join."""

    seconds: float
    comparisons: int


def work(settings: Settings, batches: list[EventBatch], shard: int = 0, shards: int = 1) -> Work:
    """The work of a machine that is built anew for every micro-batch, as on Spark; of one of several shards."""
    runner = Runner(settings, LAYOUT, between=Between.REBUILD)
    taken, comparisons = 0.0, 0
    for batch in batches:
        pushed = runner.push(batch.filter(batch.rows.column("key").to_numpy() % shards == shard), header_of(batch))
        taken += pushed.seconds
        comparisons += pushed.counters.get("comparisons", 0)
    return Work(taken, comparisons)


def slowest(settings: Settings, batches: list[EventBatch], shards: int) -> float:
    """The processor time of the shard that takes longest."""
    return max(work(settings, batches, shard, shards).seconds for shard in range(shards))


def join_of(comparisons: int, keys: int, step_us: int) -> Slack:
    """A join that compares each row of `stream` with so many."""
    within_us = 2 * comparisons * keys * step_us  # half of the rows are of the other source, and a pair has two
    return Slack("1 s", Join("on time", "lags", f"{within_us} us", _few, f"{within_us + 2 * _LAG_US} us"))


def run(bench: SlackBench, tell: Callable[[str], None]) -> Report:
    """Measure all paths in turns."""
    report = Report("slack", asdict(bench))
    rows = stream(bench.rows, bench.batches, 20_000, 5, bench.seed)
    gate, reorder = Slack("1 s", sources=("on time", "lags")), Reorder("1 s")
    few = max(1_000, bench.rows // 10)
    joined, join = stream(few, bench.batches, 64, 50, bench.seed), join_of(bench.comparisons, 64, 50)
    paths: dict[str, Callable[[], float]] = {
        "reorder": lambda: slowest(reorder, rows, 1),
        "gate": lambda: slowest(gate, rows, 1),
        "join, one shard": lambda: slowest(join, joined, 1),
        "join, two shards": lambda: slowest(join, joined, 2),
    }
    found = dict.fromkeys(paths, float("inf"))
    for number in range(bench.rounds + 1):  # the first one compiles
        for name, path in paths.items():
            tell(f"round {number} of {bench.rounds}: {name}")
            found[name] = min(found[name], path()) if number else float("inf")
    report.results = [{"path": name, "processor_seconds": round(value, 4)} for name, value in found.items()]
    times, shards = found["gate"] / found["reorder"], found["join, one shard"] / found["join, two shards"]
    report.targets = [
        Target("the gate's time against reordering", round(times, 3), MOST_TIMES_REORDER, at_least=False),
        Target("join, two shards against one", round(shards, 3), LEAST_OF_TWO_SHARDS),
    ]
    return report


def _few(pairs: pa.RecordBatch) -> pa.Array:
    """One pair in a thousand."""
    return pc.greater(pc.multiply(pairs.column("on time_value"), pairs.column("lags_value")), 0.99)
