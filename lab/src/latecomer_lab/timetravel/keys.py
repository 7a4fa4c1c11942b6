"""What a micro-batch of time travel costs that touches a hundredth of the keys, against a stream of only these keys.

Without Spark, in processor time, the machine built anew over its store for each micro-batch. Every key has spoken once;
then micro-batches a minute apart bring one event each of a hundredth of the keys: always the same ones, others
each time (at random), or keys that are new and never come again. No window closes while it is measured, for the windows
that close are as many as the keys that had events. The first micro-batches, up to the first large unions of what is
stored, do not count; what is stored is united now and then, so the figure is a mean.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from latecomer.events import TICK_FIELD, EventBatch, Int64s, Layout
from latecomer.report.shape import Report, Target
from latecomer.runner import Between, Runner
from latecomer.timetravel import Period, TimeTravel
from latecomer.windows import Sum, Window, WindowAggregation

MINUTE_US = 60_000_000
LAYOUT = Layout("ts", ("key",))
SHARE = 100  # one key in so many speaks
MOST = 1.5

SAME, RANDOM, NEW = "the same keys", "keys at random", "keys that are new"


@dataclass(frozen=True)
class KeysBench:
    """Sizes of the run."""

    keys: int = 1_000_000
    batches: int = 60
    warm: int = 10
    late: int = 20  # one event in so many is late in the second measurement
    seed: int = 0


def run_keys(settings: KeysBench, tell: Callable[[str], None]) -> Report:
    """All ways in which keys may speak, with events on time and with some late."""
    report = Report("timetravel keys", asdict(settings))
    for late in (0, settings.late):
        for way in (SAME, RANDOM, NEW):
            tell(f"{way}, {f'1 in {late} late' if late else 'on time'}")
            many = _milliseconds(settings, way, settings.keys, late)
            few = _milliseconds(settings, way, max(1, settings.keys // SHARE), late)
            ratio = round(float(many.mean() / few.mean()), 2)
            row = {"keys": way, "late": f"1 in {late}" if late else "none", "all_ms": round(float(many.mean()), 1)}
            row |= {"alone_ms": round(float(few.mean()), 1), "ratio": ratio}
            row |= {"all_median_ms": round(float(np.median(many)), 1), "all_most_ms": round(float(many.max()), 1)}
            report.results.append(row)
            name = f"{way}, {'some late' if late else 'on time'}: a batch against one of these keys alone"
            report.targets.append(Target(name, ratio, MOST, at_least=False))
    return report


def _milliseconds(settings: KeysBench, way: str, keys: int, late: int) -> npt.NDArray[np.float64]:
    """The processor's milliseconds of each micro-batch that counts."""
    window = WindowAggregation(Window("12 hours"), (Sum("value"),))
    runner = Runner(TimeTravel(window, "2 days", Period("1 day")), LAYOUT, between=Between.REBUILD)
    for batch in _first(keys):
        runner.push(batch)
    seconds = [runner.push(batch).seconds for batch in _batches(settings, way, keys, late)]
    return np.array(seconds[settings.warm :]) * 1_000


def _first(keys: int) -> Iterator[EventBatch]:
    """Every key once."""
    for start in range(0, keys, 100_000):
        key = np.arange(start, min(start + 100_000, keys))
        yield _batch(key, np.full(len(key), start // 100_000), 0)


def _batches(settings: KeysBench, way: str, keys: int, late: int) -> Iterator[EventBatch]:
    chance, size = np.random.default_rng(settings.seed), max(1, settings.keys // SHARE)
    same = np.sort(chance.choice(keys, size, replace=False)) if size < keys else np.arange(keys)
    for number in range(settings.warm + settings.batches):
        key = same
        if way == RANDOM and size < keys:
            key = chance.choice(keys, size, replace=False)
        elif way == NEW:
            key = settings.keys + number * size + np.arange(size)
        ts_us = np.full(size, (number + 1) * MINUTE_US) + np.arange(size)
        if late:
            ts_us[::late] -= 90_000_000
        yield _batch(key, ts_us, number + 1)


def _batch(key: Int64s, ts_us: Int64s, minute: int) -> EventBatch:
    columns = [pa.array(key), pa.array(ts_us).view(pa.timestamp("us", "UTC")), pa.array(np.ones(len(key)))]
    rows = pa.RecordBatch.from_arrays(columns, names=["key", "ts", "value"])
    return EventBatch(rows.append_column(TICK_FIELD, pa.array(np.full(len(key), minute))), LAYOUT)
