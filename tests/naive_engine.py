"""A query of the engine's own as a slow obvious twin: windows of windows over rows, and what calls of it add up to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from latecomer.events import Stretches
from latecomer.outputs import Lane, Output
from latecomer.timetravel import EngineQuery
from latecomer.timetravel.engine_rows import AFTER, BEFORE, HIGH, LIVE, LOW, ROLES, SLOT
from latecomer.windows import Window

Event = tuple[int, Any, int]  # time, key, value
CHANGES = {LIVE: 1, BEFORE: -1, AFTER: 1}


class Windows(NamedTuple):
    """Windows of one size, one every `advance`, the first at the offset."""

    size: int
    advance: int
    offset: int = 0

    def starts(self, ts: int) -> Iterable[int]:
        """Where the windows begin that have a time."""
        last = (ts - self.offset) // self.advance * self.advance + self.offset
        return range(last, ts - self.size, -self.advance)


class ChainedQuery(NamedTuple):
    """Per key and window the sum and the number of values, then of these; the next time is the start, or the last."""

    windows: tuple[Windows, ...]
    by_start: bool = True

    def results(self, events: Iterable[Event]) -> Counter[tuple[Any, ...]]:
        """What the query says of events: key, start of the last window, sum and number."""
        rows = [(ts, key, value, 1) for ts, key, value in events]
        for number, window in enumerate(self.windows):
            groups: dict[tuple[Any, int], list[tuple[int, int]]] = {}
            for ts, key, value, _ in rows:
                for start in window.starts(ts):
                    groups.setdefault((key, start), []).append((value, 1))
            last = number + 1 == len(self.windows)
            moved = 0 if last or self.by_start else window.size - 1
            rows = [(start + moved, key, sum(v for v, _ in each), len(each)) for (key, start), each in groups.items()]
        return Counter((key, ts, value, count) for ts, key, value, count in rows)

    def described(self, *, sides_known: bool = True) -> EngineQuery:
        """As time travel wants to know it."""
        sizes, count = [window.size for window in self.windows], len(self.windows)
        before, after = 0, sum(sizes) - count + 1
        if not self.by_start:
            before, after = sum(sizes[:-1]) - (count - 1), sizes[-1]
        if not sides_known:
            before = after = sum(sizes)
        last = self.windows[-1]
        windows = tuple(Window(f"{each.size} us", f"{each.advance} us", f"{each.offset} us") for each in self.windows)
        return EngineQuery("chained", windows, before, after, Stretches(last.advance, last.offset), pa.schema([]))


def call(query: ChainedQuery, outputs: Sequence[Output]) -> Counter[tuple[Any, ...]]:
    """What one micro-batch changes: the query on each slot by itself, results between low and high, summed."""
    total: Counter[tuple[Any, ...]] = Counter()
    slots: dict[int, list[dict[str, Any]]] = {}
    for output in outputs:
        if output.lane is Lane.RESULTS:
            for row in output.rows.set_column(0, "ts", output.rows.column("ts").cast(pa.int64())).to_pylist():
                slots.setdefault(row[SLOT], []).append(row)
    for slot, rows in slots.items():
        change, low, high = CHANGES[slot % len(ROLES)], rows[0][LOW], rows[0][HIGH]
        for result, count in query.results((row["ts"], row["key"], row["value"]) for row in rows).items():
            if low < result[1] <= high:
                total[result] += change * count
    return total


def random_query(rng: np.random.Generator) -> ChainedQuery:
    """One aggregate or two, of windows that may hop."""
    windows = []
    for _ in range(int(rng.integers(1, 3))):
        size = int(rng.integers(1, 9))
        advance = int(rng.integers(1, size + 1))
        windows.append(Windows(size, advance, int(rng.integers(0, advance))))
    return ChainedQuery(tuple(windows), bool(rng.integers(0, 2)))
