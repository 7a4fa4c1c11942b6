"""`latecomer bench optimistic`: what results at once cost beside a fold that keeps no history.

Processor time of machines in this process, so that it says the same on a machine that has other work: what Spark adds
is the same for both. All paths take turns in every round; the fastest round of each counts.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from latecomer.chunks import ChunkStore, MemoryBackend
from latecomer.events import TICK, EventBatch, Layout, concat_rows, order_by, take_rows
from latecomer.optimistic import Optimistic
from latecomer.progress import Measure, Progress
from latecomer.report.shape import Report, Target
from latecomer.runner import Between, Runner, header_of
from latecomer.windows import Fold, KeyStep, RunningSum, Scan
from latecomer.windows.fold_compiler.kernels import compiling_after
from latecomer.windows.key_steps import NO_ROWS, Work, whole_outputs

LAYOUT = Layout("ts", ("key",))
MOST_TIMES, MOST_TIMES_OWN, MOST_TIMES_BOUND, MOST_READ = 2.0, 1.5, 1.3, 0.1
COMPILED, PYTHON = 0, 1 << 60  # after how many rows own folds are compiled
_SPAN_US = 400_000_000  # of event time, in a micro-batch


@dataclass(frozen=True)
class OptimisticBench:
    """Rows in a micro-batch, keys, micro-batches (the first two do not count), rounds."""

    rows: int = 400_000
    keys: int = 20_000
    batches: int = 7
    rounds: int = 3
    seed: int = 0


def stream(bench: OptimisticBench, rows: int, late: float = 0.0) -> list[EventBatch]:
    """Micro-batches in order, but for a share of rows that come up to one micro-batch late."""
    rng, found = np.random.default_rng(bench.seed), []
    for number in range(bench.batches):
        ts_us = np.sort(rng.integers(number * _SPAN_US, (number + 1) * _SPAN_US, rows))
        ts_us -= np.where(rng.random(rows) < late, rng.integers(0, _SPAN_US, rows), 0)
        columns = {
            "ts": pa.array(ts_us),
            "key": pa.array(rng.integers(0, bench.keys, rows)),
            "n": pa.array(rng.random(rows)),
            TICK: pa.array(np.full(rows, number + 1)),
        }
        found.append(EventBatch(pa.RecordBatch.from_pydict(columns), LAYOUT))
    return found


def plain(step: KeyStep, batches: list[EventBatch], keys: int) -> float:
    """The processor time of a micro-batch of the step without history: last states of keys, outputs in order."""
    states = step.state(batches[0].user_rows.schema, LAYOUT)
    kept = pa.RecordBatch.from_arrays([pa.nulls(keys, each.type) for each in states], schema=states)
    taken = []
    for batch in batches:
        began = time.process_time()
        rows = batch.sorted().user_rows
        key = rows.column("key").to_numpy()
        order = order_by(key)
        starts = np.flatnonzero(np.append(True, np.diff(key[order]) != 0))
        own = key[order[starts]]
        work = Work(take_rows(rows, order), np.append(starts, len(key)), take_rows(kept, own), NO_ROWS, "ts")
        ran = step.run(work, LAYOUT)
        places = np.arange(keys)
        places[own] = keys + np.arange(len(own))
        kept = take_rows(concat_rows([kept, ran.after.cast(kept.schema)]), places)
        take_rows(whole_outputs(step, ran, work.rows), order_by(order[ran.owner]))
        taken.append(time.process_time() - began)
    return float(np.median(taken[2:]))


def optimistic(settings: Optimistic, batches: list[EventBatch]) -> float:
    """The processor time of a micro-batch of a machine that is built anew for each, as on Spark."""
    runner = Runner(settings, LAYOUT, between=Between.REBUILD)
    return float(np.median([runner.push(batch).seconds for batch in batches][2:]))


class _Counting(MemoryBackend):
    """Counts the bytes that are read."""

    read = 0

    def get(self, run: int, number: int) -> bytes:
        data = super().get(run, number)
        self.read += len(data)
        return data


def share_read(settings: Optimistic, batches: list[EventBatch]) -> float:
    """Of the bytes that are held, the share that one late row reads which ten rows of its key follow."""
    backend, progress, measure = _Counting(), Progress(), Measure(None)
    directory: bytes | None = None
    for batch in [*batches, _late_row(batches)]:
        store = ChunkStore(backend, directory)
        progress, timeline = progress.advance([header_of(batch)], measure)
        backend.read, held = 0, sum(map(len, backend.chunks.values()))
        for _ in settings.build(store, LAYOUT).push(batch, timeline):
            pass
        directory = store.flush()
    return backend.read / held


def _late_row(batches: list[EventBatch]) -> EventBatch:
    """A row before the last ten of a key."""
    key = batches[-1].rows.column("key").to_numpy()
    own = np.sort(np.concatenate([each.ts_us[each.rows.column("key").to_numpy() == key[0]] for each in batches]))
    values = {"ts": [int(own[-10]) - 1], "key": [int(key[0])], "n": [1.0], TICK: [len(batches) + 1]}
    return EventBatch(pa.RecordBatch.from_pydict(values), LAYOUT)


def added(state: float, row: Any) -> tuple[float, list[tuple[float]]]:
    """The running sum, as a user would write it."""
    return state + row.n, [(state + row.n,)]


def run(bench: OptimisticBench, tell: Callable[[str], None]) -> Report:
    """Measure all paths in turns."""
    report, scan = Report("optimistic", asdict(bench)), Scan(RunningSum("n"))
    own = Fold(added, 0.0, state=pa.float64(), returns=pa.schema([("total", pa.float64())]))
    rows, late, few = stream(bench, bench.rows), stream(bench, bench.rows, 0.01), stream(bench, bench.rows // 8)
    paths: dict[str, Callable[[], float]] = {
        "fold without history": lambda: plain(scan, rows, bench.keys),
        "optimistic, in order": lambda: optimistic(Optimistic(scan, "1 hour"), rows),
        "optimistic, ten times the bound": lambda: optimistic(Optimistic(scan, "10 hours"), rows),
        "optimistic, 1 % late": lambda: optimistic(Optimistic(scan, "1 hour"), late),
        "optimistic, with barrier": lambda: optimistic(Optimistic(scan, "1 hour", barrier=True), rows),
        "own fold without history": _as(PYTHON, lambda: plain(own, few, bench.keys)),
        "own fold, optimistic": _as(PYTHON, lambda: optimistic(Optimistic(own, "1 hour"), few)),
        "own fold compiled, without history": _as(COMPILED, lambda: plain(own, few, bench.keys)),
        "own fold compiled, optimistic": _as(COMPILED, lambda: optimistic(Optimistic(own, "1 hour"), few)),
    }
    found = dict.fromkeys(paths, float("inf"))
    for number in range(bench.rounds + 1):  # the first one compiles
        for name, path in paths.items():
            tell(f"round {number} of {bench.rounds}: {name}")
            found[name] = min(found[name], path()) if number else float("inf")
    sizes = {name: bench.rows // 8 if "own" in name else bench.rows for name in paths}
    report.results = [
        {"path": name, "processor_seconds": round(value, 4), "rows_per_second": round(sizes[name] / value)}
        for name, value in found.items()
    ]
    read = share_read(Optimistic(scan, "1 hour"), rows)
    report.targets = [
        _times("in order against no history", found, "optimistic, in order", "fold without history", MOST_TIMES),
        _times(
            "own fold in order against without",
            found,
            "own fold, optimistic",
            "own fold without history",
            MOST_TIMES_OWN,
        ),
        _times(
            "ten times the bound", found, "optimistic, ten times the bound", "optimistic, in order", MOST_TIMES_BOUND
        ),
        Target("share of held bytes read by a row ten deep", round(read, 4), MOST_READ, at_least=False),
    ]
    return report


def _as(rows: int, path: Callable[[], float]) -> Callable[[], float]:
    """A path on which own folds are compiled after so many rows."""

    def run() -> float:
        with compiling_after(rows):
            return path()

    return run


def _times(name: str, found: dict[str, float], one: str, other: str, most: float) -> Target:
    return Target(name, round(found[one] / found[other], 3), most, at_least=False)
