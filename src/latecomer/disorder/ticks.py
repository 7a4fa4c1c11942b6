"""The index of a recording: rows by their arrival, arrival by row, and where its ticks begin and end.

Invariants
1. A recording is cut only between ticks, and `Ticks.border` is the only place where it is cut.
2. No more is in memory than the bounds of every row group and the arrival stamps of three of them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np

from latecomer.disorder.recording import Recording, RowGroup, Span, check_between, read_stamps
from latecomer.events import Int64s

STAMPS_KEPT = 3  # row groups: the last cut's, the next one's, and the one read ahead


class _Stamps:
    """The arrival stamps of a few row groups; the one after the last asked for is read ahead."""

    def __init__(self, groups: Sequence[RowGroup], arrival: str) -> None:
        self._groups, self._arrival = groups, arrival
        self._pool = ThreadPoolExecutor(max_workers=1)
        self._kept: OrderedDict[int, Future[Int64s]] = OrderedDict()

    def of(self, place: int) -> Int64s:
        """The stamps of the row group at a place."""
        wanted = self._ask(place)
        if place + 1 < len(self._groups):
            self._ask(place + 1)
        return wanted.result()

    def _ask(self, place: int) -> Future[Int64s]:
        if place not in self._kept:
            self._kept[place] = self._pool.submit(read_stamps, self._groups[place], self._arrival)
        self._kept.move_to_end(place)
        if len(self._kept) > STAMPS_KEPT:
            self._kept.popitem(last=False)
        return self._kept[place]

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)


class Ticks:
    """Finds rows, stamps and borders without holding the recording."""

    def __init__(self, recording: Recording, tick_us: int) -> None:
        self._tick_us = tick_us
        self._stamps = _Stamps(recording.groups, recording.arrival)
        self._groups = [self._bounded(place, group) for place, group in enumerate(recording.groups)]
        check_between(self._groups, recording.arrival)
        self._starts = np.cumsum([0, *(group.rows for group in self._groups)])
        self._low_us = np.array([group.low_us for group in self._groups], dtype=np.int64)
        self._high_us = np.array([group.high_us for group in self._groups], dtype=np.int64)
        self.rows = int(self._starts[-1])
        self.last_us = int(self._high_us[-1])

    def _bounded(self, place: int, group: RowGroup) -> RowGroup:
        """Where the statistics are silent, the stamps are read once before the playback begins."""
        if group.low_us is not None:
            return group
        values = self._stamps.of(place)
        return group._replace(low_us=int(values[0]), high_us=int(values[-1]))

    def arrival_us(self, row: int) -> int:
        """When a row arrived."""
        place = int(np.searchsorted(self._starts, row, side="right")) - 1
        if row == self._starts[place]:
            return int(self._low_us[place])
        if row + 1 == self._starts[place + 1]:
            return int(self._high_us[place])
        return int(self._stamps.of(place)[row - self._starts[place]])

    def rows_until(self, stamp_us: int) -> int:
        """How many rows arrived up to and with a stamp."""
        place = int(np.searchsorted(self._high_us, stamp_us, side="right"))
        if place == len(self._groups):
            return self.rows
        inside = 0
        if self._low_us[place] <= stamp_us:
            inside = int(np.searchsorted(self._stamps.of(place), stamp_us, side="right"))
        return int(self._starts[place]) + inside

    def border(self, row: int) -> int:
        """The last border between two ticks at or before a row."""
        if row <= 0 or row >= self.rows:
            return min(max(row, 0), self.rows)
        tick = self.arrival_us(row) // self._tick_us
        if self.arrival_us(row - 1) // self._tick_us != tick:
            return row
        return self.rows_until(tick * self._tick_us - 1)

    def end_of_tick(self, row: int) -> int:
        """The first row after a row's tick."""
        tick = self.arrival_us(row) // self._tick_us
        return self.rows_until((tick + 1) * self._tick_us - 1)

    def spans(self, start: int, stop: int) -> list[Span]:
        """Where the rows from `start` to before `stop` stand."""
        places = range(int(np.searchsorted(self._starts, start, side="right")) - 1, len(self._groups))
        found = []
        for place in places:
            begin, end = int(self._starts[place]), int(self._starts[place + 1])
            if begin >= stop:
                break
            found.append(Span(self._groups[place], max(start - begin, 0), min(stop, end) - begin))
        return [span for span in found if span.start < span.stop]

    def close(self) -> None:
        """Stop reading ahead."""
        self._stamps.close()
