"""What time travel keeps between batches, in parts of a store."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from latecomer.chunks import Store
from latecomer.events import FOREVER_US, NEVER_US, Layout, concat_rows, int64_view, sort_times, take_rows
from latecomer.timetravel.buckets import Buckets

if TYPE_CHECKING:
    from latecomer.timetravel.settings import TimeTravel

ROLE = "_lc_role"  # of an event that is kept: why
RECENT, CONTEXT, LATE = range(3)
FROM, TO, FROM_NUMBER, TO_NUMBER = "_lc_from", "_lc_to", "_lc_from_number", "_lc_to_number"  # of a hole
MISSING, FILLED = "_lc_missing", "_lc_filled"
FIRE, FIRED = "_lc_fire", "_lc_fired"  # of a late event that waits
MARK, DUPLICATES = "mark_us", "duplicates"

_PARTS = 7
_BUCKETS = 16  # within the bound


class Kept:
    """Recent events, contexts, holes, late events that wait, and results that may change."""

    def __init__(self, store: Store, settings: TimeTravel, layout: Layout) -> None:
        parts = [store.part(number, _PARTS) for number in range(_PARTS)]
        self._parts = parts
        self._recent, contexts, holes, self._long, self._waiting, self._undecided, near = parts
        self.width_us = max(settings.reach.us, settings.bound_us // _BUCKETS)
        self.contexts = Buckets(contexts, layout.time, self.width_us)
        self.holes = Buckets(holes, TO, self.width_us)
        self.near = Buckets(near, settings.operator.layout_after(layout).time, self.width_us)
        self._time, self._start = layout.time, settings.operator.layout_after(layout).time
        self._notes = store.notes

    @property
    def events(self) -> int:
        """How many events are kept."""
        return self._recent.rows + self.contexts.rows

    @property
    def mark_us(self) -> int:
        """The mark when it was last kept."""
        return self._notes.get(MARK, NEVER_US)

    def note_mark(self, mark_us: int) -> None:
        """Keep the mark."""
        self._notes[MARK] = mark_us

    def note_duplicates(self, count: int) -> None:
        """Count results that replays gave once more."""
        if count:
            self._notes[DUPLICATES] = self._notes.get(DUPLICATES, 0) + count

    @property
    def duplicates(self) -> int:
        """How many results replays found to be as they were."""
        return self._notes.get(DUPLICATES, 0)

    def clear(self) -> None:
        """Nothing is needed any more."""
        for part in self._parts:
            for _ in part.take(part.chunks):
                pass

    def recent(self) -> pa.RecordBatch | None:
        """The recent events, in the order of their times."""
        return _taken(self._recent)

    def keep_recent(self, rows: pa.RecordBatch) -> None:
        """Keep recent events."""
        _put(self._recent, rows, self._time)

    def long_holes(self) -> pa.RecordBatch | None:
        """The holes that are longer than a bucket, or have no end yet."""
        return _taken(self._long)

    def keep_holes(self, holes: pa.RecordBatch) -> None:
        """Keep holes that are new or were long."""
        from_us, to_us = int64_view(holes.column(FROM)), int64_view(holes.column(TO))
        long = (from_us == NEVER_US) | (to_us == FOREVER_US) | (to_us - from_us > self.width_us)
        _put(self._long, take_rows(holes, np.flatnonzero(long)), TO)
        self.holes.append(take_rows(holes, np.flatnonzero(~long)))

    def waiting(self) -> pa.RecordBatch | None:
        """The late events that wait for their replay."""
        return _taken(self._waiting)

    def keep_waiting(self, rows: pa.RecordBatch) -> None:
        """Keep late events that wait."""
        _put(self._waiting, rows, self._time)

    def undecided(self) -> pa.RecordBatch | None:
        """Results given when the key's own events had not come so far."""
        return _taken(self._undecided)

    def keep_undecided(self, rows: pa.RecordBatch) -> None:
        """Keep such results."""
        _put(self._undecided, rows, self._start)


def _taken(store: Store) -> pa.RecordBatch | None:
    rows = list(store.take(store.chunks))
    return concat_rows(rows) if rows else None


def _put(store: Store, rows: pa.RecordBatch, time: str) -> None:
    if rows.num_rows:
        ts_us, order = sort_times(int64_view(rows.column(time)))
        store.append(take_rows(rows, order), ts_us, compressed=True)
