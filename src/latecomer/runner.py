"""Run a machine in a plain Python process: micro-batches in, what it gives and how time moved out.

It does what a shard does on Spark, without Spark: the headers of a micro-batch move the progress on, events of a tick
that an earlier batch has closed join the first open one, and the machine acts. Between batches the machine may go on as
it is, be built anew over its store (as on Spark), or be restored from its snapshot.

>>> from latecomer.basic import PassThrough
>>> runner = Runner(PassThrough(), Layout("ts"))
>>> rows = pa.RecordBatch.from_pydict({"ts": [5, 3], TICK: [1, 1]})
>>> pushed = runner.push(EventBatch(rows, runner.layout))
>>> [output.rows.num_rows for output in pushed.outputs], pushed.mark_us, pushed.held
([2], 5, 0)
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

import numpy as np
import pyarrow as pa

from latecomer.chunks import ChunkStore
from latecomer.contract import Machine, Settings
from latecomer.events import TICK, EventBatch, Layout
from latecomer.headers import Header, HeaderBuilder
from latecomer.outputs import Output
from latecomer.progress import Measure, Progress, Timeline


class Between(Enum):
    """What happens to the machine between two batches."""

    KEEP = "it goes on as it is"
    REBUILD = "it is built anew over its store, which is written"
    RESTORE = "it is built anew over a store that is restored from a snapshot"


@dataclass(frozen=True)
class Pushed:
    """What one batch did: its events in open ticks, how time moved, what came out, counters, processor's seconds."""

    events: EventBatch
    timeline: Timeline
    outputs: list[Output]
    mark_us: int
    held: int
    counters: Mapping[str, int]
    seconds: float


class Runner:
    """A machine, its store, and the progress of its stream."""

    def __init__(
        self,
        settings: Settings,
        layout: Layout,
        *,
        idle_ticks: int | None = None,
        merged: bool = False,
        declared: tuple[str, ...] = (),
        between: Between = Between.KEEP,
    ) -> None:
        self.settings, self.layout, self._idle_ticks, self._between = settings, layout, idle_ticks, between
        self._measure = Measure(idle_ticks, merged=merged, per_source=settings.per_source, declared=declared)
        self.progress = Progress()
        self.machine: Machine = settings.build(ChunkStore(), layout)
        self._dropped = 0

    @property
    def store(self) -> ChunkStore:
        """All the state there is."""
        return self.machine.store

    @property
    def dropped(self) -> int:
        """How many events were dropped so far."""
        return self._dropped + self.machine.dropped

    def push(self, events: EventBatch, header: Header | None = None) -> Pushed:
        """One micro-batch; without a header of the whole stream, its progress is that of these events."""
        header = header_of(events, self._idle_ticks) if header is None else header
        opened = _in_open_ticks(events, self.progress)
        self.progress, timeline = self.progress.advance([header], self._measure)
        started = time.process_time()
        outputs = list(self.machine.push(opened, timeline))
        held, counters = self.machine.held, self.machine.counters()
        self._go_on()
        seconds = time.process_time() - started
        return Pushed(opened, timeline, outputs, self.progress.mark_us, held, counters, seconds)

    def finish(self) -> list[Output]:
        """The stream is over: what is left."""
        return list(self.machine.finish())

    def _go_on(self) -> None:
        """The machine for the next batch."""
        if self._between is Between.KEEP:
            return
        self._dropped += self.machine.dropped
        if self._between is Between.REBUILD:
            self.store.flush()
            self.machine = self.settings.build(self.store, self.layout)
        else:
            self.machine = self.settings.restore(self.machine.snapshot(), self.layout)


def header_of(events: EventBatch, idle_ticks: int | None = None) -> Header:
    """What a task that saw these events says of time."""
    source = events.layout.source
    builder = HeaderBuilder(idle_ticks)
    builder.add(events.ts_us, events.tick, None if source is None else events.rows.column(source))
    return builder.build()


def _in_open_ticks(events: EventBatch, progress: Progress) -> EventBatch:
    """The events with ticks that are closed already moved to the first open one."""
    ticks = progress.open_ticks(events.tick)
    if np.array_equal(ticks, events.tick):
        return events
    place = events.rows.schema.get_field_index(TICK)
    return EventBatch(events.rows.set_column(place, TICK, pa.array(ticks)), events.layout)
