"""How soon results are right: logical latency, responsiveness, and when each result is right for good.

All are differences of event time: from a result's time, or from the mark that a late event met, to the mark at which
the right result was given. So they do not depend on how fast a machine is. What never comes is FOREVER_US, and counts:
a percentile that it reaches is infinite. Paper: TinTiN, section 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import NamedTuple

import numpy as np

from latecomer._jit import kernel
from latecomer.events import FOREVER_US, NEVER_US, Int64s
from latecomer.quality.classes import exact_rows
from latecomer.quality.columns import NONE, ResultColumns, Rows, number_both, number_results, times_us
from latecomer.search import lower_bound

SHARES = (50, 90, 99, 99.8, 100)  # percentiles


def logical_latencies(given: Rows, truth: Rows, columns: ResultColumns) -> Int64s:
    """For each place that got its exact result, from its time to the mark at which it first did."""
    right = np.flatnonzero(exact_rows(given, truth, columns))
    place = number_both(given, truth, columns.place)[0]
    _, firsts = np.unique(place[right], return_index=True)
    chosen = right[firsts]
    latencies: Int64s = times_us(given, columns.mark)[chosen] - times_us(given, columns.time)[chosen]
    return latencies


def exact_marks(given: Rows, truth: Rows, columns: ResultColumns) -> Int64s:
    """For each row of the sorted run the mark from which on its result stood for good; FOREVER_US if it never did."""
    rows, wanted = number_results(given, truth, columns)
    place_of_truth = number_both(given, truth, columns.place)[1]
    is_result, right = columns.changes(given) >= 0, wanted[rows.place] == rows.value
    wrong = np.flatnonzero(is_result != right)  # another result, or the right one voided
    last_wrong = np.full(len(wanted), NONE, dtype=np.int64)
    np.maximum.at(last_wrong, rows.place[wrong], wrong)
    chosen = np.flatnonzero(is_result & right)
    chosen = chosen[chosen > last_wrong[rows.place[chosen]]][::-1]
    marks_us = np.full(len(wanted), FOREVER_US, dtype=np.int64)
    marks_us[rows.place[chosen]] = times_us(given, columns.mark)[chosen]  # the first of them is written last
    found: Int64s = marks_us[place_of_truth]
    return found


class _Late(NamedTuple):
    """Late events: the key's number, the time, and the mark that each met."""

    key: Int64s
    ts_us: Int64s
    met_us: Int64s


class _Answers(NamedTuple):
    """Results by key and time, and where each key's begin."""

    starts: Int64s
    ts_us: Int64s
    mark_us: Int64s


def responsiveness(
    late: Rows, replayed: Rows, columns: ResultColumns, reach_us: int, *, late_time: str, first: bool = False
) -> Int64s:
    """For each late event, from the mark that it met to the mark at which all results it touches had been replayed.

    `late` has the columns of the key, the mark, and the event's time under the name `late_time`. An event touches the
    results in (ts - reach, ts]. Of each, the first replay after the event came counts, and of those the last; with
    `first`, the first. FOREVER_US for an event none of whose results was replayed.
    """
    events, answers = _by_key(late, replayed, columns, late_time)
    found = np.full(len(events.key), FOREVER_US, dtype=np.int64)
    find_replays(events, answers, reach_us, first, found)
    return found


def latest_marks(late: Rows, results: Rows, columns: ResultColumns, reach_us: int, *, late_time: str) -> Int64s:
    """For each late event the largest mark of the results that it touches; NEVER_US if it touches none."""
    events, answers = _by_key(late, results, columns, late_time)
    found = np.full(len(events.key), NEVER_US, dtype=np.int64)
    find_latest_marks(events, answers, reach_us, found)
    return found


def _by_key(late: Rows, results: Rows, columns: ResultColumns, late_time: str) -> tuple[_Late, _Answers]:
    of_late, of_results = number_both(late, results, columns.key)
    ts_us, mark_us = times_us(results, columns.time), times_us(results, columns.mark)
    order = np.lexsort((mark_us, ts_us, of_results))
    keys = int(max(of_late.max(initial=NONE), of_results.max(initial=NONE))) + 1
    starts = np.searchsorted(of_results[order], np.arange(keys + 1))
    events = _Late(of_late, times_us(late, late_time), times_us(late, columns.mark))
    return events, _Answers(starts, ts_us[order], mark_us[order])


@kernel
def find_replays(late: _Late, answers: _Answers, reach_us: int, first: bool, found: Int64s) -> None:
    """The loop of `responsiveness`; results of one key and time are in the order of their marks."""
    for i in range(len(late.key)):
        start, stop = answers.starts[late.key[i]], answers.starts[late.key[i] + 1]
        place = lower_bound(answers.ts_us, start, stop, late.ts_us[i] - reach_us + 1)
        end = lower_bound(answers.ts_us, place, stop, late.ts_us[i] + 1)
        counted_us = NEVER_US
        while place < end:
            ts_us, mark_us = answers.ts_us[place], answers.mark_us[place]
            place += 1
            if mark_us < late.met_us[i] or ts_us == counted_us:
                continue
            counted_us, delay_us = ts_us, mark_us - late.met_us[i]
            if found[i] == FOREVER_US or (delay_us < found[i]) == first:
                found[i] = delay_us


@kernel
def find_latest_marks(late: _Late, answers: _Answers, reach_us: int, found: Int64s) -> None:
    """The loop of `latest_marks`."""
    for i in range(len(late.key)):
        start, stop = answers.starts[late.key[i]], answers.starts[late.key[i] + 1]
        place = lower_bound(answers.ts_us, start, stop, late.ts_us[i] - reach_us + 1)
        while place < stop and answers.ts_us[place] <= late.ts_us[i]:
            found[i] = max(found[i], answers.mark_us[place])
            place += 1


def percentiles(values: Int64s, unit_us: int, shares: Sequence[float] = SHARES) -> list[float | None]:
    """Percentiles in a unit of time, to tenths of a per cent: the smallest value that so many do not exceed.

    None where there is no value; infinite where it is FOREVER_US.

    >>> percentiles(np.array([10, 30, 20, FOREVER_US]), 10, (50, 75, 99.8))
    [2.0, 3.0, inf]
    """
    if len(values) == 0:
        return [None] * len(shares)
    ranked = np.sort(values)
    places = [max(0, -(-round(10 * share) * len(ranked) // 1_000) - 1) for share in shares]
    return [inf if ranked[place] == FOREVER_US else round(int(ranked[place]) / unit_us, 2) for place in places]
