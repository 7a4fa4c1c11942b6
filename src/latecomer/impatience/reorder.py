"""Reorder: a stream in event-time order, its sorted runs kept in the state store.

What arrives in a micro-batch is sorted; what the punctuation has passed leaves at once, merged with the heads of the
runs, and never touches the store. The rest is dealt onto runs as Impatience sort deals events, but a stretch at a
time: what follows the largest tail goes to that run, what is earlier to the first run whose tail it does not precede,
or to a new one. A run is kept as chunks of narrow ranges of time, so a punctuation reads only the head of each run.
Heads that it cuts in two leave their rests together as one run; many small chunks become one.

With `align_us` rows leave a window at a time: when the punctuation has passed the end of the stretch of that length
their time lies in. Ordered by window and then by time is ordered by time, so the sort itself is the same.

Paper: Impatience (Chandramouli, Goldstein, Li), sections III-D and IV-A2.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from latecomer.chunks import Chunk, ChunkStore
from latecomer.contract import Lane, Machine, Output, Settings, check_held, check_max_held, refused
from latecomer.durations import Duration, duration_us
from latecomer.errors import InputError, must
from latecomer.events import FOREVER_US, Bools, EventBatch, Int64s, Layout
from latecomer.impatience.merging import merge_events
from latecomer.impatience.policy import Late, as_policy, stop_at
from latecomer.progress import Timeline

ADJUSTED = "adjusted_us"
_NEXT_RUN = "next_run"


@dataclass(frozen=True)
class Reorder(Settings):
    """Wait `latency` for what is late, and give events in order.

    late: what happens to an event that is later still: "side" (the lane `late`), "drop", "adjust" (it is moved to
    the first time that is not too late; a column `adjusted_us` says how far), "raise" (the query stops).
    max_held: the most events one shard may hold; past it the query stops with an error.
    align_us: rows of a stretch of this length leave together. total: rows keep what a later merge of shards needs.
    """

    latency: Duration
    late: str = "side"
    max_held: int | None = None
    align_us: int | None = None
    total: bool = False
    name: ClassVar[str] = "reorder"

    def __post_init__(self) -> None:
        duration_us(self.latency, "latency")
        as_policy(self.late)
        check_max_held(self.max_held)
        if self.align_us is not None and self.align_us <= 0:
            raise InputError(must("align_us", "be above zero", self.align_us, "or leave it out"))
        if not isinstance(self.total, bool):
            raise InputError(must("total", "be True or False", self.total, "leave it out for False"))

    @property
    def latency_us(self) -> int:
        """The latency in microseconds."""
        return duration_us(self.latency, "latency")

    def build(self, store: ChunkStore, layout: Layout) -> Machine:
        return _Reorder(self, store, layout)

    def most_held(self, accepted_ts_us: Int64s, timeline: Timeline) -> int:
        return int((accepted_ts_us > self.ready(self.punctuation(timeline))).sum())

    def punctuation(self, timeline: Timeline) -> int:
        return timeline.punctuation(self.latency_us)

    def ready(self, punctuation_us: int) -> int:
        """The largest time that may leave: with `align_us`, the end of the last stretch that has been passed."""
        if self.align_us is None:
            return punctuation_us
        return (punctuation_us + 1) // self.align_us * self.align_us - 1

    def added(self) -> dict[str, pa.DataType]:
        return {ADJUSTED: pa.int64()} if self.late == Late.ADJUST else {}

    def describe(self) -> dict[str, object]:
        policy = str(as_policy(self.late))
        return {"strategy": self.name, "latency_us": self.latency_us, "late": policy, "align_us": self.align_us}


class _Reorder(Machine):
    def __init__(self, settings: Reorder, store: ChunkStore, layout: Layout) -> None:
        super().__init__(store, layout)
        self._settings = settings

    @property
    def runs(self) -> int:
        return len({chunk.run for chunk in self.store.chunks})

    def push(self, batch: EventBatch, timeline: Timeline) -> Iterator[Output]:
        settings = self._settings
        punctuation_us = timeline.punctuation_before(batch.tick, settings.latency_us)
        too_late = batch.ts_us <= punctuation_us
        if settings.late == Late.ADJUST:
            batch = _adjusted(batch, np.where(punctuation_us < FOREVER_US, punctuation_us + 1, batch.ts_us))
            too_late &= punctuation_us == FOREVER_US
        if too_late.any():
            yield from self._refuse(batch, too_late, punctuation_us, timeline)
            batch = batch.filter(~too_late)
        yield from self._release(batch.sorted(), settings.ready(settings.punctuation(timeline)))
        check_held(self.held, settings.max_held)

    def finish(self) -> Iterator[Output]:
        if self.held:
            yield self._down(self._taken(self.store.chunks))

    def _refuse(
        self, batch: EventBatch, too_late: Bools, punctuation_us: Int64s, timeline: Timeline
    ) -> Iterator[Output]:
        """What happens to events that came too late."""
        policy = self._settings.late
        if policy == Late.RAISE:
            first = int(np.flatnonzero(too_late)[0])
            raise stop_at(int(too_late.sum()), int(batch.ts_us[first]))
        if policy == Late.DROP:
            self.dropped += int(too_late.sum())
            return
        yield from refused(batch.without(ADJUSTED), too_late, punctuation_us, timeline)

    def _release(self, arrived: EventBatch, ready_us: int) -> Iterator[Output]:
        """Give what may leave and keep the rest; what leaves at once is never stored."""
        passed = [chunk for chunk in self.store.chunks if chunk.ts_min_us <= ready_us]
        heads: list[EventBatch] = []
        rests: list[tuple[int, EventBatch]] = []
        for chunk, rows in zip(passed, self.store.take(passed), strict=True):
            held = EventBatch(rows, self.layout)
            cut = _cut(held, ready_us)
            heads.append(held.slice(0, cut))
            if cut < len(held):
                rests.append((chunk.run, held.slice(cut, len(held))))
        cut = _cut(arrived, ready_us)
        leaving = [part for part in (*heads, arrived.slice(0, cut)) if len(part)]
        if leaving:
            yield self._down(merge_events(leaving))
        if len(rests) == 1:
            self._keep(rests[0][1], rests[0][0])
        elif rests:
            self._keep(merge_events([rest for _, rest in rests]), self._new_run())
        self._deal(arrived.slice(cut, len(arrived)))
        for crowd in self.store.crowds():
            self._keep(self._taken(crowd), self._new_run())

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
        for chunk in self.store.chunks:
            tails[chunk.run] = max(chunk.ts_max_us, tails.get(chunk.run, chunk.ts_max_us))
        return sorted(((tail, run) for run, tail in tails.items()), reverse=True)

    def _new_run(self) -> int:
        run = self.store.notes.get(_NEXT_RUN, 0)
        self.store.notes[_NEXT_RUN] = run + 1
        return run

    def _keep(self, batch: EventBatch, run: int | None) -> None:
        self.store.append(batch.rows, batch.ts_us, self._new_run() if run is None else run)

    def _taken(self, chunks: list[Chunk]) -> EventBatch:
        held = [EventBatch(rows, self.layout) for rows in self.store.take(chunks)]
        return merge_events(held)

    def _down(self, batch: EventBatch) -> Output:
        return Output(Lane.DOWN, batch.rows if self._settings.total else batch.user_rows)


def _cut(batch: EventBatch, ready_us: int) -> int:
    """How many events of a sorted batch may leave."""
    return int(np.searchsorted(batch.ts_us, min(ready_us, FOREVER_US), side="right"))


def _adjusted(batch: EventBatch, earliest_us: Int64s) -> EventBatch:
    """Events moved to the first time that is not too late, with a column that says how far."""
    moved_us = np.maximum(batch.ts_us, earliest_us)
    far = pa.array(moved_us - batch.ts_us)
    place = batch.rows.schema.get_field_index(batch.layout.time)
    field = batch.rows.schema.field(place)
    rows = batch.rows.set_column(place, field, pa.array(moved_us).view(field.type))
    return EventBatch(rows.append_column(ADJUSTED, far), batch.layout)
