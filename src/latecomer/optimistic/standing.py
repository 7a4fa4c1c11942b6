"""Windows that are given at once: what stands of each, and what a micro-batch changes in that.

Of every window and key there is a partial result as long as the window may change. A micro-batch takes those that its
rows touch, puts others in their place, and gives the difference: first what is void, then what is new. Which windows
rows touch, and what comes of it, is different for windows of one size (`window_machine`) and sessions
(`session_machine`).

Invariants
1. After each micro-batch the changes so far add up to the aggregates of all rows so far, per window and key.
2. Changes are net: a window is voided and given at most once in a micro-batch, and not at all where it is as it was.
3. A window is final when the punctuation has passed its last time; then it is held no more.
4. What is read and written follows the windows that are touched: chunks are of a group of keys and a stretch of time.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from latecomer.chunks import ChunkStore
from latecomer.contract import Machine, check_held
from latecomer.events import (
    FOREVER_US,
    NEVER_US,
    Bools,
    EventBatch,
    Int8s,
    Int64s,
    Layout,
    concat_rows,
    equal_rows,
    int64_view,
    sort_times,
    take_rows,
)
from latecomer.optimistic.history import History, Past
from latecomer.optimistic.machine import RECOMPUTED, VOIDED, Turn
from latecomer.outputs import Output, Pane, pane_code, revisable
from latecomer.progress import Timeline
from latecomer.windows.folding import Folding

if TYPE_CHECKING:
    from latecomer.optimistic.windows import WindowsAtOnceSettings

_PUNCTUATION, _MARK = "punctuation_us", "mark_us"


class Touched(NamedTuple):
    """Windows that rows came to or left: what stood of them, by places among stored ones, and what stands now.

    group: of the key of each that stands now. successor: for each that stood, the place of the one that stands now
    instead; -1 where there is none.
    """

    past: Past | None
    old: Int64s
    now: pa.RecordBatch
    group: Int64s
    successor: Int64s


class WindowsAtOnce(Machine):
    """Gives windows at once. last: the column of partial results that says when a window ends, less a constant."""

    def __init__(
        self, settings: WindowsAtOnceSettings, store: ChunkStore, layout: Layout, folding: Folding, last: str
    ) -> None:
        super().__init__(store, layout)
        self._settings, self._folding, self._last = settings, folding, last
        self._standing = History(store.part(0, 3), last, settings.wait_us + settings.length_us)
        self._counts: dict[str, int] = {}

    @abstractmethod
    def _touch(self, batch: EventBatch, timeline: Timeline) -> Generator[Output, None, Touched | None]:
        """Take rows in: gives those that are too late, and returns the windows that the others touch."""

    @abstractmethod
    def _results(self, table: pa.RecordBatch) -> pa.RecordBatch:
        """What the user sees of partial results."""

    def _pass(self, passed_us: int, mark_us: int) -> Iterator[Output]:
        """The punctuation has come so far: what else is to be given then."""
        return iter(())

    def counters(self) -> dict[str, int]:
        return self._counts

    def punctuation(self, timeline: Timeline) -> int:
        return timeline.punctuation(self._settings.wait_us)

    def push(self, batch: EventBatch, timeline: Timeline) -> Iterator[Output]:
        self._counts = {VOIDED: 0, RECOMPUTED: 0}
        turn, mark_us = self._turn(self.punctuation(timeline)), int(timeline.mark_us[-1])
        touched = (yield from self._touch(batch, timeline)) if len(batch) else None
        if touched is not None:
            yield from self._changes(touched, turn.passed_us)
        yield from self._final(touched, turn)
        if touched is not None:
            self._store_now(touched, turn.passed_us)
        yield from self._pass(self.punctuation(timeline), mark_us)
        self._standing.expire(turn.passed_us)
        self.store.notes.update({_PUNCTUATION: self.punctuation(timeline), _MARK: mark_us})
        check_held(self.held, self._settings.max_held, "partial results and rows")

    def finish(self) -> Iterator[Output]:
        yield from self._final(None, self._turn(FOREVER_US))
        yield from self._pass(FOREVER_US, self.store.notes.get(_MARK, NEVER_US))
        self._standing.expire(FOREVER_US)

    def _turn(self, punctuation_us: int) -> Turn:
        """How far windows were final before, and how far they are now, in the column of their last times."""
        before_us = self.store.notes.get(_PUNCTUATION, NEVER_US)
        return Turn(self._settings.due_us(before_us), self._settings.due_us(punctuation_us))

    def _changes(self, touched: Touched, passed_us: int) -> Iterator[Output]:
        """What is void, and what is new; nothing of windows that are as they were."""
        now, known = self._results(touched.now), np.flatnonzero(touched.successor >= 0)
        given, panes = np.ones(now.num_rows, dtype=np.bool_), self._panes(touched, passed_us)
        if touched.past is not None and len(touched.old):
            stood = take_rows(touched.past.rows, touched.old)
            old, void = self._results(stood), np.ones(len(touched.old), dtype=np.bool_)
            after = touched.successor[known]
            same = equal_rows(take_rows(old, known), take_rows(now, after))
            void[known[same]], given[after[same]] = False, False
            self._counts[VOIDED], self._counts[RECOMPUTED] = int(void.sum()), len(void)
            revised = np.full(len(void), pane_code(Pane.REVISED), dtype=np.int8)
            yield from self._output((stood, old), void, -1, revised, passed_us)
        yield from self._output((touched.now, now), given, 1, panes, passed_us)

    def _panes(self, touched: Touched, passed_us: int) -> Int8s:
        """When what stands now is given: in place of another, for the first time, or when it is final already."""
        final = self._lasts(touched.now) <= passed_us
        panes = np.where(final, pane_code(Pane.ON_TIME), pane_code(Pane.EARLY)).astype(np.int8)
        panes[touched.successor[touched.successor >= 0]] = pane_code(Pane.REVISED)
        return panes

    def _output(
        self,
        windows: tuple[pa.RecordBatch, pa.RecordBatch],
        chosen: Bools,
        change: int,
        panes: Int8s,
        passed_us: int,
    ) -> Iterator[Output]:
        """Chosen windows, as partial results and as the user sees them, in the order in which they end."""
        if not chosen.any():
            return
        table, rows = windows
        places = np.flatnonzero(chosen)
        last_us, order = sort_times(self._lasts(table)[places])
        places = places[order]
        yield revisable(take_rows(rows, places), change, panes[places], pa.array(last_us <= passed_us))

    def _final(self, touched: Touched | None, turn: Turn) -> Iterator[Output]:
        """The windows that have become final, once, in the order in which they end."""
        if not self._settings.barrier or turn.passed_us <= turn.final_us:
            return
        parts = [] if touched is None else [take_rows(touched.now, np.flatnonzero(turn.ends(self._lasts(touched.now))))]
        stored = self._standing.between(*turn)
        if stored is not None:
            ends = turn.ends(self._lasts(stored.rows))
            if touched is not None and touched.past is not None:
                ends &= ~np.isin(stored.names, touched.past.names[touched.old])
            parts.append(take_rows(stored.rows, np.flatnonzero(ends)))
        if sum(part.num_rows for part in parts):
            table = concat_rows(parts)
            _, order = sort_times(self._lasts(table))
            yield revisable(self._results(take_rows(table, order)), None, Pane.ON_TIME, final=True)

    def _store_now(self, touched: Touched, passed_us: int) -> None:
        """Keep what stands now of windows that may change still, in place of what stood."""
        if touched.past is not None and len(touched.old):
            self._standing.remove(touched.past, touched.old, passed_us)
        if touched.now.num_rows:
            self._standing.put(touched.now, touched.group, passed_us)

    def _lasts(self, table: pa.RecordBatch) -> Int64s:
        return int64_view(table.column(self._last))
