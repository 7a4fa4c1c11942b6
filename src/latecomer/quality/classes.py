"""Results by class, against those of the sorted stream.

A result has one place, its time and key. The sorted run has at most one result in a place; what is measured may give
several, one after the other, and void some of them. Rows are in the order in which they were given.

1. In each place the last result stands, unless a later row voids it: a change of -1 with the same values.
2. Exact, different, duplicate and spurious add up to the results given; exact and omitted do not add up to the sorted
   run, since a place may first have had its result and lost it, or never have had it and have another.
3. Values are equal as Spark groups them: null equals null, NaN equals NaN, 0.0 equals -0.0.

Paper: TinTiN, section 4, for the first four classes. The fifth, spurious, is ours: the paper has no name for a result
in a place where the sorted run has none, as one given too early and made void later.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from latecomer.events import Bools, Int64s
from latecomer.quality.columns import NONE, Numbered, ResultColumns, Rows, number_results


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


def classify(given: Rows, truth: Rows, columns: ResultColumns) -> Classes:
    """Put what was given, in order, with its changes or consolidated, into classes."""
    rows, wanted = number_results(given, truth, columns)
    is_result = columns.changes(given) >= 0
    place, value = rows.place[is_result], rows.value[is_result]
    known = wanted[place] != NONE
    right = known & (wanted[place] == value)
    exact = len(np.unique(place[right]))
    standing = _standing(rows, is_result, len(wanted))
    expected, stands = wanted != NONE, standing != NONE
    return Classes(
        exact=exact,
        omitted=_count(expected & ~stands),
        different=_count(known & ~right),
        duplicate=_count(right) - exact,
        spurious=_count(~known),
        different_left=_count(expected & stands & (standing != wanted)),
        spurious_left=_count(~expected & stands),
    )


def exact_rows(given: Rows, truth: Rows, columns: ResultColumns) -> Bools:
    """Which rows that were given are results of the sorted run."""
    rows, wanted = number_results(given, truth, columns)
    exact: Bools = (columns.changes(given) >= 0) & (wanted[rows.place] == rows.value)
    return exact


def _standing(rows: Numbered, is_result: Bools, places: int) -> Int64s:
    """By the number of a place the value that stands there in the end."""
    last = np.full(places, NONE, dtype=np.int64)
    results, voids = np.flatnonzero(is_result), np.flatnonzero(~is_result)
    np.maximum.at(last, rows.place[results], results)
    standing = np.where(last == NONE, NONE, rows.value[last] if len(rows.value) else NONE)
    where = rows.place[voids]
    void = (voids > last[where]) & (rows.value[voids] == standing[where])
    standing[where[void]] = NONE
    return standing


def _count(chosen: Bools) -> int:
    return int(np.count_nonzero(chosen))
