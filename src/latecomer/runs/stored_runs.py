"""Sorted runs in a store: what arrives is dealt onto them a stretch at a time, a punctuation takes their heads.

What may leave at once is merged with the heads of the runs and never touches the store. The rest is dealt as
Impatience sort deals events, but a sorted stretch at a time: what follows the largest tail goes to that run, what is
earlier to the first run whose tail it does not precede, or to a new one. A run is stored as chunks of narrow ranges of
time, so a punctuation reads only the head of each run. Heads that it cuts in two leave their rests together as one run;
many small chunks become one.

Paper: Impatience (Chandramouli, Goldstein, Li), section III-D.
"""

from __future__ import annotations

import numpy as np

from latecomer.chunks import Chunk, Store, small_groups
from latecomer.codec import widened
from latecomer.events import FOREVER_US, EventBatch, Layout
from latecomer.runs.merging import merge_events

_NEXT_RUN = "next_run"


class StoredRuns:
    """The sorted runs in a store, which may be a part of a larger one."""

    def __init__(self, store: Store, layout: Layout) -> None:
        self._store, self._layout = store, layout

    def __len__(self) -> int:
        return len({chunk.run for chunk in self._store.chunks})

    def release(self, arrived: EventBatch | None, ready_us: int) -> EventBatch | None:
        """Take in events in order, and give all up to a time, in order; None where there are none."""
        passed = [chunk for chunk in self._store.chunks if chunk.ts_min_us <= ready_us]
        leaving: list[EventBatch] = []
        rests: list[tuple[int, EventBatch]] = []
        for chunk, rows in zip(passed, self._store.take(passed), strict=True):
            held = EventBatch(rows, self._layout)
            cut = _cut(held, ready_us)
            leaving.append(held.slice(0, cut))
            if cut < len(held):
                rests.append((chunk.run, held.slice(cut, len(held))))
        if len(rests) == 1:
            self._keep(rests[0][1], rests[0][0])
        elif rests:
            self._keep(merge_events([rest for _, rest in rests]), self._new_run())
        if arrived is not None:
            arrived = EventBatch(widened(arrived.rows), arrived.layout)  # as what was stored: text may come narrow
            cut = _cut(arrived, ready_us)
            leaving.append(arrived.slice(0, cut))
            self._deal(arrived.slice(cut, len(arrived)))
        for group in small_groups(self._store.chunks):
            self._keep(self._taken(group), self._new_run())
        leaving = [part for part in leaving if len(part)]
        return merge_events(leaving) if leaving else None

    def _deal(self, batch: EventBatch) -> None:
        """Deal a sorted stretch: to the run it follows, or to a new one."""
        if len(batch) == 0:
            return
        tails = self._tails()
        ts_us = batch.ts_us
        at = int(np.searchsorted(ts_us, tails[0][0], side="left")) if tails else 0
        for start, stop in ((0, at), (at, len(batch))):
            if start < stop:
                fitting = (run for tail, run in tails if tail <= ts_us[start])
                self._keep(batch.slice(start, stop), next(fitting, None))

    def _tails(self) -> list[tuple[int, int]]:
        """The last time of every run, and the run; descending."""
        tails: dict[int, int] = {}
        for chunk in self._store.chunks:
            tails[chunk.run] = max(chunk.ts_max_us, tails.get(chunk.run, chunk.ts_max_us))
        return sorted(((tail, run) for run, tail in tails.items()), reverse=True)

    def _new_run(self) -> int:
        run = self._store.notes.get(_NEXT_RUN, 0)
        self._store.notes[_NEXT_RUN] = run + 1
        return run

    def _keep(self, batch: EventBatch, run: int | None) -> None:
        self._store.append(batch.rows, batch.ts_us, self._new_run() if run is None else run)

    def _taken(self, chunks: list[Chunk]) -> EventBatch:
        return merge_events([EventBatch(rows, self._layout) for rows in self._store.take(chunks)])


def _cut(batch: EventBatch, ready_us: int) -> int:
    """How many events of a sorted batch may leave."""
    return int(np.searchsorted(batch.ts_us, min(ready_us, FOREVER_US), side="right"))
