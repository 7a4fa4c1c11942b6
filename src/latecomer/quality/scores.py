"""What one way to run a windowed query gave, scored against the same query on the sorted stream.

What was given comes micro-batch by micro-batch; `mark_us` of a row is the high-water mark after its micro-batch, and
FOREVER_US where only the end of the stream brought it. All delays are differences of marks, so they do not depend on
how fast a machine is, only on where micro-batches are cut.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from latecomer._jit import kernel
from latecomer.events import FOREVER_US, NEVER_US, Bools, Int64s
from latecomer.quality.classes import Classes, classify
from latecomer.quality.columns import MARK, NONE, ResultColumns, Rows, column, number_both, number_results, times_us
from latecomer.quality.delays import exact_marks, latest_marks, percentiles

QUANTILES = (50, 90, 99, 100)
SECOND_US = 1_000_000

Floats = np.ndarray[tuple[int], np.dtype[np.float64]]
Spread = tuple[float | None, ...]  # the quantiles, in seconds


class Stream(NamedTuple):
    """The stream that was run: the marks after its micro-batches, its late events (key, time, the mark each met).

    observed_us: delays are counted for windows that end by then, and for late events that came by then; what is later
    may come only after the stream has ended, whatever the way. cuts: how many rows had been given after each
    micro-batch; without it, those of its mark and of marks before it.
    """

    marks_us: Int64s
    late: Rows
    late_time: str
    observed_us: int = FOREVER_US
    cuts: Int64s | None = None


@dataclass(frozen=True)
class Scores:
    """How good, how soon, how often.

    windows: results of the sorted run. given: results given, without those that make others void. revisions: results
    given after the first of their window, for each window that was answered. completeness: after each micro-batch the
    share of the windows that had ended by then whose right result stood. first: from a window's end to its first
    answer; right: to the right answer that stayed; repaired: from a late event to the time at which all windows that
    it is in were right for good. Never is infinite, and counts.
    """

    windows: int
    given: int
    classes: Classes
    revisions: float
    completeness: tuple[float, ...]
    first: Spread
    right: Spread
    repaired: Spread

    @property
    def right_share(self) -> float:
        """The share of all windows whose right result stands in the end, wrong ones in other places counted too."""
        wrong = self.classes.omitted + self.classes.different_left
        places = self.windows + self.classes.spurious_left
        return (self.windows - wrong) / places if places else 1.0

    @property
    def exact(self) -> bool:
        """Whether in the end every result of the sorted run stands, and nothing else."""
        return (self.classes.omitted, self.classes.different_left, self.classes.spurious_left) == (0, 0, 0)


def score(given: Rows, truth: Rows, columns: ResultColumns, size_us: int, stream: Stream) -> Scores:
    """Score windows of one size; `columns.time` is their start, and they end `size_us` later."""
    is_result = columns.changes(given) >= 0
    starts_us, right_us = times_us(truth, columns.time), exact_marks(given, truth, columns)
    right_from = truth.select(list(columns.place)).append_column(MARK, pa.array(right_us))
    repaired_us = latest_marks(stream.late, right_from, columns, size_us, late_time=stream.late_time)
    met_us = times_us(stream.late, columns.mark)
    in_some = (repaired_us != NEVER_US) & (met_us <= stream.observed_us)
    ends_us = starts_us + size_us
    seen = ends_us <= stream.observed_us
    answered = len(np.unique(number_both(given, truth, columns.place)[0][is_result]))
    return Scores(
        windows=truth.num_rows,
        given=int(np.count_nonzero(is_result)),
        classes=classify(given, truth, columns),
        revisions=(int(np.count_nonzero(is_result)) - answered) / answered if answered else 0.0,
        completeness=tuple(completeness(given, truth, columns, size_us, stream).tolist()),
        first=_spread(ends_us[seen], first_marks(given, truth, columns)[seen]),
        right=_spread(ends_us[seen], right_us[seen]),
        repaired=_spread(met_us[in_some], repaired_us[in_some]),
    )


def first_marks(given: Rows, truth: Rows, columns: ResultColumns) -> Int64s:
    """For each row of the sorted run the mark at which its place got a first result; FOREVER_US if it never did."""
    place, place_of_truth = number_both(given, truth, columns.place)
    found = np.full(max(place.max(initial=NONE), place_of_truth.max(initial=NONE)) + 1, FOREVER_US, dtype=np.int64)
    results = np.flatnonzero(columns.changes(given) >= 0)[::-1]
    found[place[results]] = times_us(given, columns.mark)[results]  # the first of them is written last
    marks_us: Int64s = found[place_of_truth]
    return marks_us


def completeness(given: Rows, truth: Rows, columns: ResultColumns, size_us: int, stream: Stream) -> Floats:
    """After each micro-batch the share of the windows that had ended whose right result stood; 1 of none."""
    marks_us, cuts = stream.marks_us, stream.cuts
    rows, wanted = number_results(given, truth, columns)
    place = number_both(given, truth, columns.place)[1]
    order = np.argsort(times_us(truth, columns.time), kind="stable")
    ends_us = times_us(truth, columns.time)[order] + size_us
    ended = np.searchsorted(ends_us, marks_us, side="right")
    if cuts is None:
        cuts = np.searchsorted(times_us(given, columns.mark), marks_us, side="right")
    right = np.zeros(len(marks_us), dtype=np.int64)
    count_right((rows.place, rows.value, columns.changes(given) >= 0), wanted, place[order], (cuts, ended), right)
    return np.where(ended == 0, 1.0, right / np.maximum(ended, 1))


@kernel
def count_right(
    rows: tuple[Int64s, Int64s, Bools], wanted: Int64s, ending: Int64s, steps: tuple[Int64s, Int64s], right: Int64s
) -> None:
    """The loop of `completeness`: per step, take in rows, then let windows end; how many that ended are right."""
    place, value, is_result = rows
    cuts, ended = steps
    standing = np.full(len(wanted), NONE, dtype=np.int64)
    has_ended = np.zeros(len(wanted), dtype=np.bool_)
    row, end, count = 0, 0, 0
    for step in range(len(cuts)):
        while row < cuts[step]:
            p = place[row]
            before = has_ended[p] and standing[p] == wanted[p]
            if is_result[row]:
                standing[p] = value[row]
            elif standing[p] == value[row]:
                standing[p] = NONE
            count += (has_ended[p] and standing[p] == wanted[p]) - before
            row += 1
        while end < ended[step]:
            p = ending[end]
            has_ended[p] = True
            count += standing[p] == wanted[p]
            end += 1
        right[step] = count


def snapped(given: Rows, truth: Rows, columns: ResultColumns, rounding: Mapping[str, Floats]) -> Rows:
    """What was given, floats that differ from the sorted run's by rounding only set to those: sums depend on order.

    rounding: columns, and how far each row of the sorted run may be off.
    """
    if not rounding or given.num_rows == 0 or truth.num_rows == 0:
        return given
    place, place_of_truth = number_both(given, truth, columns.place)
    row_of = np.full(max(place.max(), place_of_truth.max()) + 1, NONE, dtype=np.int64)
    row_of[place_of_truth] = np.arange(truth.num_rows)
    rows = pa.array(np.where(row_of[place] == NONE, 0, row_of[place]))
    known = row_of[place] != NONE
    for name, allowed in rounding.items():
        ours, theirs = column(given, name), column(truth, name).take(rows)
        apart = np.abs(_floats(ours) - _floats(theirs))
        close = known & (apart <= allowed[rows.to_numpy()])
        near = pc.if_else(pa.array(close), theirs.cast(ours.type), ours)
        given = given.set_column(given.schema.get_field_index(name), name, near)
    return given


def _floats(values: pa.Array) -> Floats:
    found: Floats = values.cast(pa.float64()).to_numpy(zero_copy_only=False)
    return found


def _spread(from_us: Int64s, marks_us: Int64s) -> Spread:
    """Quantiles of delays, none of them negative: what was right before its window ended waited for nothing."""
    waited_us = np.where(marks_us == FOREVER_US, FOREVER_US, np.maximum(marks_us - from_us, 0))
    return tuple(percentiles(waited_us, SECOND_US, QUANTILES))
