"""Reorder: a stream in event-time order, its sorted runs in the state store.

What arrives in a micro-batch is sorted; what the punctuation has passed leaves, merged with the heads of the runs
that are stored (`StoredRuns`).

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

from latecomer.chunks import ChunkStore
from latecomer.contract import Lane, Machine, Output, Settings, check_held, check_max_held, refused
from latecomer.durations import Duration, duration_us
from latecomer.errors import InputError, must
from latecomer.events import FOREVER_US, Bools, EventBatch, Int64s, Layout, aligned_punctuation
from latecomer.progress import Timeline
from latecomer.runs.stored_runs import StoredRuns
from latecomer.sorter.policy import Late, as_policy, stop_at

ADJUSTED = "adjusted_us"


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
        """The largest time that may leave."""
        return aligned_punctuation(punctuation_us, self.align_us)

    def added(self) -> dict[str, pa.DataType]:
        return {ADJUSTED: pa.int64()} if self.late == Late.ADJUST else {}

    def describe(self) -> dict[str, object]:
        policy = str(as_policy(self.late))
        return {"strategy": self.name, "latency_us": self.latency_us, "late": policy, "align_us": self.align_us}


class _Reorder(Machine):
    def __init__(self, settings: Reorder, store: ChunkStore, layout: Layout) -> None:
        super().__init__(store, layout)
        self._settings = settings
        self._stored = StoredRuns(store, layout)

    @property
    def runs(self) -> int:
        return len(self._stored)

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
        yield from self._release(None, FOREVER_US)

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

    def _release(self, arrived: EventBatch | None, ready_us: int) -> Iterator[Output]:
        leaving = self._stored.release(arrived, ready_us)
        if leaving is not None:
            yield self._output(leaving)

    def _output(self, batch: EventBatch) -> Output:
        return Output(Lane.RESULTS, batch.rows if self._settings.total else batch.user_rows)


def _adjusted(batch: EventBatch, earliest_us: Int64s) -> EventBatch:
    """Events moved to the first time that is not too late, with a column that says how far."""
    moved_us = np.maximum(batch.ts_us, earliest_us)
    far = pa.array(moved_us - batch.ts_us)
    place = batch.rows.schema.get_field_index(batch.layout.time)
    field = batch.rows.schema.field(place)
    rows = batch.rows.set_column(place, field, pa.array(moved_us).view(field.type))
    return EventBatch(rows.append_column(ADJUSTED, far), batch.layout)
