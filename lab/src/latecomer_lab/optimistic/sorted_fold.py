"""A step without history, to measure against: rows wait a latency, are put in order, and run from their keys' states.

Nothing is repaired: what comes later than the latency is refused, as `reorder` refuses it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from latecomer.chunks import ChunkStore
from latecomer.contract import Machine, Settings
from latecomer.durations import Duration, duration_us
from latecomer.events import FOREVER_US, EventBatch, Int64s, Layout, put_rows
from latecomer.gives import Explained, Gives, Line, own_columns
from latecomer.optimistic.arrangement import Arrangement
from latecomer.optimistic.batch_keys import BatchKeys
from latecomer.optimistic.keeping import last_states
from latecomer.optimistic.key_states import LAST, KeyStates
from latecomer.outputs import Lane, Output, refused
from latecomer.progress import Timeline
from latecomer.runs import StoredRuns
from latecomer.windows.key_steps import NO_ROWS, KeyStep, Work, beside


@dataclass(frozen=True)
class SortedFold(Settings):
    """A step that adds to rows, after a latency; without one, on rows that come in order."""

    step: KeyStep
    latency: Duration | None = None
    name: ClassVar[str] = "sorted_fold"

    @property
    def latency_us(self) -> int | None:
        """The latency in microseconds."""
        return None if self.latency is None else duration_us(self.latency, "latency")

    def build(self, store: ChunkStore, layout: Layout) -> Machine:
        return _SortedFold(self, store, layout)

    def gives(self, columns: pa.Schema, layout: Layout) -> Gives:
        own = pa.schema(own_columns(columns))
        lines = (Line("fold", self.step.shown()),)
        return Gives(self.step.output(own, layout), Explained("the sort", lines), time=layout.time, by_key=True)

    def most_held(self, accepted_ts_us: Int64s, timeline: Timeline) -> int:
        return len(accepted_ts_us)


class _SortedFold(Machine):
    """Runs SortedFold settings."""

    def __init__(self, settings: SortedFold, store: ChunkStore, layout: Layout) -> None:
        super().__init__(store, layout)
        self._step, self._latency_us = settings.step, settings.latency_us
        self._last, self._runs = KeyStates(store.part(0, 2)), StoredRuns(store.part(1, 2), layout)

    def push(self, batch: EventBatch, timeline: Timeline) -> Iterator[Output]:
        if self._latency_us is None:
            yield from self._run(batch.sorted())
            return
        before_us = timeline.punctuation_before(batch.tick, self._latency_us)
        too_late = batch.ts_us <= before_us
        yield from refused(batch, too_late, before_us, timeline)
        ready_us = timeline.punctuation(self._latency_us)
        yield from self._run(self._runs.release(batch.filter(~too_late).sorted(), ready_us))

    def finish(self) -> Iterator[Output]:
        if self._latency_us is not None:
            yield from self._run(self._runs.release(None, FOREVER_US))

    def _run(self, batch: EventBatch | None) -> Iterator[Output]:
        """Run rows that are in order."""
        if batch is None or len(batch) == 0:
            return
        states = self._step.state(batch.user_rows.schema, self.layout)
        keys = BatchKeys.of(batch)
        fields = [*(batch.rows.schema.field(name) for name in self.layout.key), pa.field(LAST, pa.int64()), *states]
        last = self._last.take(keys.groups, pa.schema(fields))
        arranged = Arrangement.of_new(batch, keys, last, keys.with_last(last), states)
        ran = self._step.run(_work(arranged, self._step), self.layout)
        self._last.put(last_states(arranged, ran))
        yield Output(Lane.RESULTS, beside(batch.user_rows, put_rows(ran.outputs, arranged.order)))


def _work(arranged: Arrangement, step: KeyStep) -> Work:
    """All rows, without the states before them."""
    return arranged.work(step, arranged.run_places, arranged.begin.state, NO_ROWS)
