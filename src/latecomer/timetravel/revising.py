"""What a replay changes: its results against those that were last given, context by context.

Results that were given and may change still are standing. A replay says anew what stands in the stretch that its late
events touch: what is equal stays, what is missing is voided, what is new is given. Contexts of one key follow each
other; those of different keys are compared together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from latecomer.events import Bools, Int64s, concat_rows, take_rows
from latecomer.timetravel.replay import Contexts, Results, touched_by
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


class Change(NamedTuple):
    """Results given or void by a replay, and the context of each."""

    results: Standing
    context: Int64s
    change: int


class Revised(NamedTuple):
    """What replays changed: changes in order, what stands after them, and how many results were given once more."""

    changes: list[Change]
    standing: Standing
    kept: Bools  # which of those that stood before stand still
    duplicates: int


def revise(standing: Standing, contexts: Contexts, results: Results | None, reach_us: int) -> Revised:
    """Compare replays with what stands, and say what changes."""
    before = len(standing.key)
    alive = np.ones(before, dtype=np.bool_)
    changes: list[Change] = []
    duplicates = 0
    for chosen in _rounds(contexts.key):
        of_key = np.full(int(contexts.key.max()) + 1, -1)
        of_key[contexts.key[chosen]] = chosen
        old = _seen(standing, alive, contexts, of_key, reach_us)
        new = _of(results, contexts, chosen)
        voided, given, same = _compare(standing.rows, old, new)
        duplicates += same
        if len(voided):
            void = standing.take(old[voided])
            changes.append(Change(void, of_key[void.key], VOID))
        if new is not None:
            fresh = Standing(new.rows, contexts.key[new.context], new.start_us)
            if len(given):
                changes.append(Change(fresh.take(given), new.context[given], GIVEN))
            standing = standing.joined(fresh)
            alive = np.append(alive, np.ones(len(fresh.key), dtype=np.bool_))
        alive[old] = False
    return Revised(changes, standing.take(np.flatnonzero(alive)), alive[:before], duplicates)


def repeat(contexts: Contexts, results: Results | None) -> list[Change]:
    """Every result of a replay, given again: the paper's way."""
    rounds = (_of(results, contexts, chosen) for chosen in _rounds(contexts.key))
    return [
        Change(Standing(new.rows, contexts.key[new.context], new.start_us), new.context, GIVEN)
        for new in rounds
        if new is not None
    ]


def _rounds(key: Int64s) -> list[Int64s]:
    """Contexts, so that each round has at most one of a key, in order."""
    if len(key) == 0:
        return []
    order = np.argsort(key, kind="stable")
    ranked = key[order]
    first = np.flatnonzero(np.diff(ranked, prepend=ranked[0] - 1))
    number = np.arange(len(key)) - np.repeat(first, np.diff(np.append(first, len(key))))
    rank = np.empty(len(key), dtype=np.int64)
    rank[order] = number
    return [np.flatnonzero(rank == each) for each in range(int(rank.max()) + 1)]


def _seen(standing: Standing, alive: Bools, contexts: Contexts, of_key: Int64s, reach_us: int) -> Int64s:
    """The places of standing results that the contexts of a round speak of."""
    known = np.flatnonzero(alive & (standing.key < len(of_key)))
    known = known[of_key[standing.key[known]] >= 0]
    return known[touched_by(contexts, of_key[standing.key[known]], standing.start_us[known], reach_us)]


def _of(results: Results | None, contexts: Contexts, chosen: Int64s) -> Results | None:
    """The results of some contexts."""
    if results is None:
        return None
    wanted = np.zeros(len(contexts), dtype=np.bool_)
    wanted[chosen] = True
    places = np.flatnonzero(wanted[results.context])
    if len(places) == 0:
        return None
    return Results(take_rows(results.rows, places), results.context[places], results.start_us[places])


def _compare(rows: pa.RecordBatch, old: Int64s, new: Results | None) -> tuple[Int64s, Int64s, int]:
    """Which of the old results are void, which of the new ones are given, and how many are equal."""
    fresh = 0 if new is None else len(new.context)
    if fresh == 0 or len(old) == 0:
        return np.arange(len(old)), np.arange(fresh), 0
    assert new is not None
    both = concat_rows([take_rows(rows, old), new.rows])
    groups = group_rows(list(both.columns))
    is_new = groups.order >= len(old)
    first = np.repeat(groups.starts, groups.sizes)
    news: Int64s = np.cumsum(is_new) - is_new  # how many new ones stand before, in all
    news_before: Int64s = news - news[first]
    olds_before = np.arange(len(is_new)) - first - news_before
    news_of = np.repeat(np.add.reduceat(is_new.astype(np.int64), groups.starts), groups.sizes)
    olds_of = np.repeat(groups.sizes, groups.sizes) - news_of
    voided = np.sort(groups.order[~is_new & (olds_before >= news_of)])
    given = np.sort(groups.order[is_new & (news_before >= olds_of)]) - len(old)
    return voided, given, len(old) - len(voided)
