"""How good results are that come in several versions, against those of the sorted stream; and how soon they come.

A result has one place, its key and time. The sorted run has at most one result in a place; what is measured may give
several, one after the other, and void some of them. The fifth class is ours: the paper's four have no name for a result
in a place where the sorted run has none.

Paper: TinTiN, section 4.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from latecomer.events import Int64s

Place = tuple[int, int]

SHARES = (50, 90, 99, 100)  # percentiles


class Result(NamedTuple):
    """A result, the mark at which it was given, and 1, or -1 where it was made void."""

    key: int
    ts_us: int
    values: tuple[Any, ...]
    mark_us: int = 0
    change: int = 1

    @property
    def place(self) -> Place:
        """What the sorted run has at most one result for."""
        return self.key, self.ts_us


class Late(NamedTuple):
    """A late event, and the mark that it met."""

    key: int
    ts_us: int
    mark_us: int


class Classes(NamedTuple):
    """Results by class.

    exact: places that got the sorted run's result. omitted: places of the sorted run where nothing stands in the end.
    different, duplicate, spurious: results given that are not the sorted run's, that are once more, or that are in a
    place where it has none. Left are those places where they stand in the end.
    """

    exact: int
    omitted: int
    different: int
    duplicate: int
    spurious: int
    different_left: int
    spurious_left: int


def classify(given: Iterable[Result], truth: Iterable[Result]) -> Classes:
    """Put what was given, in order, into classes; in each place the last result stands unless it is void."""
    wanted = {result.place: result.values for result in truth}
    standing: dict[Place, tuple[Any, ...]] = {}
    exact: set[Place] = set()
    kinds: Counter[str] = Counter()
    for result in given:
        if result.change < 0:
            standing.pop(result.place, None)
            continue
        standing[result.place] = result.values
        kind = _kind(result, wanted, exact)
        kinds[kind] += 1
        if kind == "exact":
            exact.add(result.place)
    return Classes(
        exact=kinds["exact"],
        omitted=len(wanted.keys() - standing.keys()),
        different=kinds["different"],
        duplicate=kinds["duplicate"],
        spurious=kinds["spurious"],
        different_left=sum(standing[place] != wanted[place] for place in wanted.keys() & standing.keys()),
        spurious_left=len(standing.keys() - wanted.keys()),
    )


def _kind(result: Result, wanted: dict[Place, tuple[Any, ...]], exact: set[Place]) -> str:
    if result.place not in wanted:
        return "spurious"
    if result.values != wanted[result.place]:
        return "different"
    return "duplicate" if result.place in exact else "exact"


def logical_latencies(given: Iterable[Result], truth: Iterable[Result]) -> Int64s:
    """For each place that got its exact result, from its time to the mark at which it did."""
    wanted = {result.place: result.values for result in truth}
    first: dict[Place, int] = {}
    for result in given:
        if result.change > 0 and wanted.get(result.place) == result.values:
            first.setdefault(result.place, result.mark_us - result.ts_us)
    return np.array(list(first.values()), dtype=np.int64)


def responsiveness(late: Iterable[Late], replayed: Iterable[Result], reach_us: int, *, first: bool = False) -> Int64s:
    """For each late event, from the mark that it met to the mark at which all results it touches had been replayed.

    It touches those in (ts - reach, ts], and the last of them is replayed last; with `first`, the first replay of any
    of them counts. Late events none of whose results were replayed are left out.
    """
    of_key: dict[int, list[Result]] = {}
    for result in replayed:
        of_key.setdefault(result.key, []).append(result)
    found = []
    for event in late:
        touched = [
            result
            for result in of_key.get(event.key, [])
            if event.ts_us - reach_us < result.ts_us <= event.ts_us and result.mark_us >= event.mark_us
        ]
        if touched:
            last_us = max(result.ts_us for result in touched)
            done_us = min(result.mark_us for result in touched if first or result.ts_us == last_us)
            found.append(done_us - event.mark_us)
    return np.array(found, dtype=np.int64)


def percentiles(values: Int64s, unit_us: int, shares: Sequence[int] = SHARES) -> list[float | None]:
    """Percentiles in a unit of time: the smallest value that so many per cent do not exceed; None where there is none.

    >>> percentiles(np.array([10, 30, 20]), 10)
    [2.0, 3.0, 3.0, 3.0]
    """
    if len(values) == 0:
        return [None] * len(shares)
    ranked = np.sort(values)
    places = [max(0, -(-share * len(ranked) // 100) - 1) for share in shares]
    return [round(int(ranked[place]) / unit_us, 1) for place in places]
