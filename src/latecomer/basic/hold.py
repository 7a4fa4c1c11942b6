"""Hold events until a punctuation passes them, then give them in the total order.

The plainest buffer-and-sort: what arrives is sorted, what the punctuation has passed leaves at once, the rest is
kept as a sorted run of chunks. A punctuation reads only chunks that begin at or before it; of a chunk that it cuts
in two the rest is merged with the rests of the others, so that wide chunks become narrow ones. Many small chunks of
about one size become one, so a long latency over small micro-batches does not fill the directory.

Paper: Impatience (Chandramouli, Goldstein, Li), section III-A, the sorting operator's contract.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from latecomer.chunks import Chunk, ChunkStore
from latecomer.contract import Machine, Output, Settings, check_held, down, late
from latecomer.durations import Duration, duration_us
from latecomer.errors import InputError, must
from latecomer.events import FOREVER_US, EventBatch, Int64s, Layout, concat_events
from latecomer.progress import Timeline

TOO_LATE = "too_late"
AFTER_END = "after_end"


@dataclass(frozen=True)
class Hold(Settings):
    """Wait `latency` for what is late; what is later still goes to the `late` lane.

    `max_held` is the most events one shard may hold; past it the query stops with an error.
    """

    latency: Duration
    max_held: int | None = None
    name: ClassVar[str] = "hold"

    def __post_init__(self) -> None:
        duration_us(self.latency, "latency")
        whole = isinstance(self.max_held, int) and not isinstance(self.max_held, bool)
        if self.max_held is not None and not (whole and self.max_held > 0):
            raise InputError(must("max_held", "be a whole number above zero", self.max_held, "or leave it out"))

    @property
    def latency_us(self) -> int:
        """The latency in microseconds."""
        return duration_us(self.latency, "latency")

    def build(self, store: ChunkStore, layout: Layout) -> Machine:
        return _Hold(self, store, layout)

    def most_held(self, accepted_ts_us: Int64s, timeline: Timeline) -> int:
        return int((accepted_ts_us > self.punctuation(timeline)).sum())

    def punctuation(self, timeline: Timeline) -> int:
        return timeline.punctuation(self.latency_us)

    def describe(self) -> dict[str, object]:
        return {"strategy": self.name, "latency_us": self.latency_us}


class _Hold(Machine):
    def __init__(self, settings: Hold, store: ChunkStore, layout: Layout) -> None:
        super().__init__(store, layout)
        self._settings = settings

    def push(self, batch: EventBatch, timeline: Timeline) -> Iterator[Output]:
        latency_us = self._settings.latency_us
        punctuation_us = timeline.punctuation_before(batch.tick, latency_us)
        too_late = batch.ts_us <= punctuation_us
        ended = punctuation_us == FOREVER_US
        for refused, reason in ((too_late & ~ended, TOO_LATE), (ended, AFTER_END)):
            if refused.any():
                yield _refused(batch.filter(refused).sorted(), timeline, reason)
        yield from self._release(batch.filter(~too_late).sorted(), timeline.punctuation(latency_us))
        check_held(self.held, self._settings.max_held)

    def finish(self) -> Iterator[Output]:
        if self.held:
            yield down(self._taken(self.store.chunks))

    def _release(self, arrived: EventBatch, punctuation_us: int) -> Iterator[Output]:
        """Give what the punctuation has passed and keep the rest; what leaves at once is never stored."""
        leaving = [chunk for chunk in self.store.chunks if chunk.ts_min_us <= punctuation_us]
        heads, rests = [], []
        for rows in self.store.take(leaving):
            batch = EventBatch(rows, self.layout)
            cut = _cut(batch, punctuation_us)
            heads.append(batch.slice(0, cut))
            if cut < len(batch):
                rests.append(batch.slice(cut, len(batch)))
        cut = _cut(arrived, punctuation_us)
        heads.append(arrived.slice(0, cut))
        self._keep(arrived.slice(cut, len(arrived)))
        if rests:
            self._keep(concat_events(rests).sorted())
        for crowd in self.store.crowds():
            self._keep(self._taken(crowd))
        released = concat_events(heads)
        if len(released):
            yield down(released if len(heads) == 1 else released.sorted())

    def _taken(self, chunks: list[Chunk]) -> EventBatch:
        return concat_events(EventBatch(rows, self.layout) for rows in self.store.take(chunks)).sorted()

    def _keep(self, batch: EventBatch) -> None:
        if len(batch):
            self.store.append(batch.rows, batch.ts_us)


def _refused(batch: EventBatch, timeline: Timeline, reason: str) -> Output:
    return late(batch, np.maximum(timeline.mark_before(batch.tick) - batch.ts_us, 0), reason)


def _cut(batch: EventBatch, punctuation_us: int) -> int:
    """How many events of a sorted batch the punctuation has passed."""
    return int(np.searchsorted(batch.ts_us, min(punctuation_us, FOREVER_US), side="right"))
