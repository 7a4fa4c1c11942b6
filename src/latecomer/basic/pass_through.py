"""Let every event through as it comes: what Spark does without a watermark, and the speed of light for a machine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from latecomer.chunks import ChunkStore
from latecomer.contract import Machine, Settings
from latecomer.events import EVENT_CHANGE, EventBatch, Int64s, Layout
from latecomer.gives import CHANGES, Explained, Gives, Line, Onward, Verb, View, own_columns
from latecomer.outputs import CHANGE, Lane, Output, results_of
from latecomer.progress import Timeline


@dataclass(frozen=True)
class PassThrough(Settings):
    """Every event is a result at once; nothing is held and nothing is too late. Retractions pass too, as changes."""

    name: ClassVar[str] = "pass_through"
    verb: ClassVar[Verb | None] = Verb("pass_through()", "give rows as they come")
    takes_changes: ClassVar[bool] = True

    def build(self, store: ChunkStore, layout: Layout) -> Machine:
        return _PassThrough(store, layout)

    def gives(self, columns: pa.Schema, layout: Layout) -> Gives:
        own = own_columns(columns)
        views = {}
        if EVENT_CHANGE in columns.names:
            own.append(pa.field(CHANGE, pa.int8()))
            views = {CHANGES: View()}
        explained = Explained("no sort", (Line(self.name, "give rows as they come"),))
        return Gives(pa.schema(own), explained, views, time=layout.time, rows=True)

    def most_held(self, accepted_ts_us: Int64s, timeline: Timeline) -> int:
        return 0

    @property
    def onward(self) -> Onward:
        return Onward.AT_ONCE


class _PassThrough(Machine):
    def push(self, batch: EventBatch, timeline: Timeline) -> Iterator[Output]:
        if len(batch) == 0:
            return
        if EVENT_CHANGE in batch.rows.schema.names:
            yield Output(Lane.RESULTS, batch.rows.append_column(CHANGE, batch.rows.column(EVENT_CHANGE)))
        else:
            yield results_of(batch)

    def finish(self) -> Iterator[Output]:
        yield from ()
