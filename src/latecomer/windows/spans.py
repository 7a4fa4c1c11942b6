"""Which windows rows count in, and partial results of all of them: windows that overlap, each by itself.

Windows are numbered by their first slice. A row counts in those of its windows that are open when it comes, which
follow each other: a span. Rows of one span and key are folded once, and what comes of it is repeated for each window.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from latecomer.events import Int64s, take_rows
from latecomer.windows.folding import Folding, moved
from latecomer.windows.grouping import group_rows
from latecomer.windows.slices import Numbers, last_slice_of
from latecomer.windows.window import Window

_MOST_ROWS = 1 << 21  # that are made at a time where rows are repeated for the windows they are in


def last_closed(last_slice: Numbers, window: Window) -> Numbers:
    """The last window that is closed when a slice is; a window after the other is `step` slices further on."""
    return (last_slice - window.slices + 1) // window.step * window.step


def last_window(slices: Int64s, window: Window) -> Int64s:
    """The last window that each slice is in."""
    return slices // window.step * window.step


def first_window(slices: Int64s, window: Window) -> Int64s:
    """The first window that each slice is in."""
    return last_closed(slices - 1, window) + window.step


def open_from(punctuation_us: Numbers, window: Window) -> Numbers:
    """The first window that a punctuation, or each of several, has not passed."""
    return last_closed(last_slice_of(punctuation_us, window), window) + window.step


class Spans(NamedTuple):
    """For each row the first and the last window that it counts in; it counts in none where the last lies before."""

    first: Int64s
    last: Int64s

    def take(self, chosen: Int64s) -> Spans:
        """Those of some rows."""
        return Spans(self.first[chosen], self.last[chosen])


def spans_of(ts_us: Int64s, before_us: Int64s, window: Window) -> tuple[Spans, Int64s]:
    """The spans of rows at these times, given the punctuation before each came; and how many windows each missed."""
    slices = (ts_us - window.offset_us) // window.slice_us
    begins, last = first_window(slices, window), last_window(slices, window)
    first = np.maximum(begins, open_from(before_us, window))
    return Spans(first, last), (np.minimum(first, last + window.step) - begins) // window.step


def fold_spans(folding: Folding, window: Window, rows: pa.RecordBatch, time: str, spans: Spans) -> pa.RecordBatch:
    """Partial results of rows, one for each window and key: `_lc_slice` is the start of the window."""
    if not all(aggregate.mergeable for aggregate in folding.aggregates):
        rows, spans = _row_by_window(rows, spans, window)
    overlap = bool((spans.last > spans.first).any())
    groups = group_rows([spans.first, *([spans.last] if overlap else []), *(rows.column(key) for key in folding.keys)])
    table = folding.fold(rows, time, spans.first * window.slice_us, groups)
    if not overlap:
        return table
    bands = list(over_windows(folding, window, table, spans.take(groups.firsts)))
    return bands[0] if len(bands) == 1 else folding.merge(bands)


def over_windows(folding: Folding, window: Window, table: pa.RecordBatch, spans: Spans) -> Iterator[pa.RecordBatch]:
    """Partial results for each window of their spans; they are those of the first one before."""
    counts = _counts(spans, window)
    for start, stop in _bands(counts):
        row, number = _repeat(counts[start:stop])
        rows = moved(take_rows(table, start + row), number * (window.step * window.slice_us))
        yield folding.merge([rows])


def _row_by_window(rows: pa.RecordBatch, spans: Spans, window: Window) -> tuple[pa.RecordBatch, Spans]:
    """A row for each window that it counts in, where there are no partial results to repeat."""
    row, number = _repeat(_counts(spans, window))
    start = spans.first[row] + number * window.step
    return take_rows(rows, row), Spans(start, start)


def _counts(spans: Spans, window: Window) -> Int64s:
    """How many windows each span has."""
    return (spans.last - spans.first) // window.step + 1


def _repeat(counts: Int64s) -> tuple[Int64s, Int64s]:
    """The number of each thing so many times, and the number of each time."""
    row = np.repeat(np.arange(len(counts)), counts)
    return row, np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)


def _bands(counts: Int64s) -> Iterator[tuple[int, int]]:
    """Stretches of rows that become at most `_MOST_ROWS`, if each has no more by itself."""
    band = np.cumsum(counts) // _MOST_ROWS
    yield from pairwise([0, *(np.flatnonzero(np.diff(band)) + 1).tolist(), len(counts)])
