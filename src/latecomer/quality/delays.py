"""How soon results are right: logical latency and responsiveness.

Both are differences of event time: from a result's time, or from the mark that a late event met, to the mark at which
the right result was given. So they do not depend on how fast a machine is. Paper: TinTiN, section 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from latecomer.events import Int64s
from latecomer.quality.columns import ResultColumns, Rows, number_both, number_results, times_us

SHARES = (50, 90, 99, 100)  # percentiles


def logical_latencies(given: Rows, truth: Rows, columns: ResultColumns) -> Int64s:
    """For each place that got its exact result, from its time to the mark at which it first did."""
    rows, wanted = number_results(given, truth, columns)
    right = np.flatnonzero((columns.changes(given) >= 0) & (wanted[rows.place] == rows.value))
    _, firsts = np.unique(rows.place[right], return_index=True)
    chosen = right[firsts]
    latencies: Int64s = times_us(given, columns.mark)[chosen] - times_us(given, columns.time)[chosen]
    return latencies


class _Replays(NamedTuple):
    """Replayed results, by key and time."""

    ts_us: Int64s
    mark_us: Int64s


def responsiveness(
    late: Rows, replayed: Rows, columns: ResultColumns, reach_us: int, *, late_time: str, first: bool = False
) -> Int64s:
    """For each late event, from the mark that it met to the mark at which all results it touches had been replayed.

    `late` has the columns of the key, the mark, and the event's time under the name `late_time`. An event touches the
    results in (ts - reach, ts], and the last of them is replayed last; with `first`, the first replay of any of them
    counts. Late events none of whose results were replayed are left out.
    """
    of_late, of_replays = number_both(late, replayed, columns.key)
    replays = _by_key(of_replays, times_us(replayed, columns.time), times_us(replayed, columns.mark))
    ts_us, mark_us = times_us(late, late_time), times_us(late, columns.mark)
    found = []
    for key, event_us, met_us in zip(of_late.tolist(), ts_us.tolist(), mark_us.tolist(), strict=True):
        if key in replays:
            done_us = _replayed_at(replays[key], event_us, met_us, reach_us, first=first)
            if done_us is not None:
                found.append(done_us - met_us)
    return np.array(found, dtype=np.int64)


def _by_key(key: Int64s, ts_us: Int64s, mark_us: Int64s) -> dict[int, _Replays]:
    order = np.lexsort((ts_us, key))
    keys, starts = np.unique(key[order], return_index=True)
    bounds = [*starts.tolist(), len(order)]
    parts = (order[start:stop] for start, stop in pairwise(bounds))
    return {each: _Replays(ts_us[rows], mark_us[rows]) for each, rows in zip(keys.tolist(), parts, strict=True)}


def _replayed_at(replays: _Replays, ts_us: int, met_us: int, reach_us: int, *, first: bool) -> int | None:
    """The mark at which what an event touches had been replayed after it came."""
    start, stop = np.searchsorted(replays.ts_us, [ts_us - reach_us, ts_us], side="right")
    after = np.flatnonzero(replays.mark_us[start:stop] >= met_us) + start
    if len(after) == 0:
        return None
    last_us = replays.ts_us[after[-1]]
    counted = after if first else after[replays.ts_us[after] == last_us]
    return int(replays.mark_us[counted].min())


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
