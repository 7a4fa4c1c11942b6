"""What replays change: their results compared with those that were last given, context by context.

Results that were given and may change still are standing. A replay gives anew what stands in the stretch that its late
events touch: what is equal stays, what is missing is voided, what is new is given. So every point, a key and a time,
has versions: what stood before, and what each context that touches it gives, in order. Each is compared with the one
before it, all points and all versions at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from latecomer.events import Bools, Int64s, concat_rows, take_rows
from latecomer.timetravel.contexts import Contexts
from latecomer.timetravel.replay import Results
from latecomer.timetravel.tables import GroupedTimes, Tables, group_starts, places_from, spread_out
from latecomer.windows.grouping import group_rows

GIVEN, VOID = 1, -1


@dataclass(frozen=True)
class Standing:
    """Results that were given and may change still, with the number of the key and the time of each."""

    rows: pa.RecordBatch
    key: Int64s
    start_us: Int64s

    def take(self, chosen: Int64s) -> Standing:
        """Some of them."""
        return Standing(take_rows(self.rows, chosen), self.key[chosen], self.start_us[chosen])

    def joined(self, other: Standing) -> Standing:
        """These and others."""
        rows = concat_rows([self.rows, other.rows])
        key, start_us = np.concatenate([self.key, other.key]), np.concatenate([self.start_us, other.start_us])
        return Standing(rows, key, start_us)


class Changes(NamedTuple):
    """Results that replays gave or voided, those of one point in order, with the context and the change of each."""

    results: Standing
    context: Int64s
    change: npt.NDArray[np.int8]


class Comparison(NamedTuple):
    """What replays changed, what stands after them, and how many results they gave as they were."""

    changes: Changes
    standing: Standing
    stands: Bools  # which of those that stood before stand still
    duplicates: int


class _Versions(NamedTuple):
    """Per row the number of its version, 0 being what stood before, that of the last, and the contexts that touch it.

    Those are `contexts[first:first + last]`, in order.
    """

    number: Int64s
    first: Int64s
    last: Int64s
    contexts: Int64s


def standing_results(tables: Tables, time: str) -> Standing | None:
    """The results that were given before and those that the live instance gave now; None without any."""
    parts = []
    for name in ("results", "young_results", "live"):
        rows = tables.get(name)
        if rows is not None:
            parts.append(Standing(rows, tables.key(name), tables.column(name, time)))
    return reduce(Standing.joined, parts) if parts else None


def replayed_results(contexts: Contexts, results: Results) -> Standing:
    """The results of replays."""
    return Standing(results.rows, contexts.key[results.context], results.start_us)


def compare(standing: Standing | None, contexts: Contexts, results: Results | None) -> Comparison | None:
    """Compare replays with what stands: what changes; None if there is nothing of either."""
    replayed = None if results is None else replayed_results(contexts, results)
    parts = [part for part in (standing, replayed) if part is not None]
    if not parts:
        return None
    before = 0 if standing is None else len(standing.key)
    context = np.append(np.full(before, -1), results.context) if results is not None else np.full(before, -1)
    standing = reduce(Standing.joined, parts)
    versions = _versions(standing, context, contexts)
    chosen = np.flatnonzero(versions.last)
    given, void = np.zeros(len(context), dtype=np.bool_), np.zeros(len(context), dtype=np.bool_)
    given[chosen], void[chosen] = _differing(take_rows(standing.rows, chosen), versions, chosen)
    voided, added = np.flatnonzero(void), np.flatnonzero(given)
    by = versions.contexts[versions.first[voided] + versions.number[voided]]  # that of the next version
    stands = versions.number == versions.last
    duplicates = len(context) - before - len(added)
    changes = _in_order(standing, (voided, by, VOID), (added, context[added], GIVEN))
    return Comparison(changes, standing.take(np.flatnonzero(stands)), stands[:before], duplicates)


def repeat(contexts: Contexts, results: Results | None) -> Changes | None:
    """Every result of a replay, given again, as in the paper."""
    if results is None:
        return None
    standing = replayed_results(contexts, results)
    return _in_order(standing, (np.arange(len(results.context)), results.context, GIVEN))


def _versions(standing: Standing, context: Int64s, contexts: Contexts) -> _Versions:
    """The versions of all points of keys that were replayed; of other results there is one."""
    number, first, last = (np.zeros(len(context), dtype=np.int64) for _ in range(3))
    replayed = np.zeros(int(max(standing.key.max(initial=0), contexts.key.max(initial=0))) + 1, dtype=np.bool_)
    replayed[contexts.key] = True
    rows = np.flatnonzero(replayed[standing.key])
    rows = rows[np.lexsort((standing.start_us[rows], standing.key[rows]))]
    key, start_us = standing.key[rows], standing.start_us[rows]
    new = np.ones(len(rows), dtype=np.bool_)
    new[1:] = (key[1:] != key[:-1]) | (start_us[1:] != start_us[:-1])
    point = np.cumsum(new) - 1
    points = GroupedTimes(start_us[new], group_starts(key[new], len(replayed)))
    touching = _touching(points, contexts)
    touched, by = np.divmod(touching, max(len(contexts), 1))
    first[rows] = np.searchsorted(touched, point)
    last[rows] = np.searchsorted(touched, point, side="right") - first[rows]
    given = context[rows] >= 0
    place = np.searchsorted(touching, point[given] * len(contexts) + context[rows[given]])
    number[rows[given]] = place - first[rows[given]] + 1
    return _Versions(number, first, last, by)


def _touching(points: GroupedTimes, contexts: Contexts) -> Int64s:
    """Which points, in the order of keys and times, which contexts give anew: point * contexts + context, in order."""
    low_us, high_us, owner = contexts.results.low_us, contexts.results.high_us, contexts.results.group
    first = places_from(points, contexts.key[owner], low_us + 1)
    stop = places_from(points, contexts.key[owner], high_us + 1)
    point, interval = spread_out(first, stop)
    touching: Int64s = np.unique(point * len(contexts) + owner[interval])
    return touching


def _differing(rows: pa.RecordBatch, versions: _Versions, chosen: Int64s) -> tuple[Bools, Bools]:
    """Of rows of points that were replayed: which the version before does not have, and which the next does not."""
    if len(chosen) == 0:
        return np.zeros(0, dtype=np.bool_), np.zeros(0, dtype=np.bool_)
    groups = group_rows(list(rows.columns))
    number, last = versions.number[chosen], versions.last[chosen]
    most = int(last.max()) + 2
    code = groups.spread(np.arange(len(groups))) * most + number  # of equal rows in one version
    codes, inverse, sizes = np.unique(code, return_inverse=True, return_counts=True)
    order = np.argsort(inverse, kind="stable")
    nth = np.empty(len(code), dtype=np.int64)
    nth[order] = np.arange(len(code)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    given = (number > 0) & (nth >= _count_of(code - 1, codes, sizes))
    void = (number < last) & (nth >= _count_of(code + 1, codes, sizes))
    return given, void


def _count_of(code: Int64s, codes: Int64s, sizes: Int64s) -> Int64s:
    place = np.minimum(np.searchsorted(codes, code), len(codes) - 1)
    counts: Int64s = np.where(codes[place] == code, sizes[place], 0)
    return counts


def _in_order(standing: Standing, *parts: tuple[Int64s, Int64s, int]) -> Changes:
    """Rows by their contexts, and of each in the order of these parts."""
    rows, context = (np.concatenate([part[each] for part in parts]) for each in (0, 1))
    change = np.repeat(np.array([part[2] for part in parts], dtype=np.int8), [len(part[0]) for part in parts])
    order = np.argsort(context, kind="stable")
    return Changes(standing.take(rows[order]), context[order], change[order])
