"""Let every event through as it comes: what Spark does without a watermark, and the speed of light for a machine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from latecomer.chunks import ChunkStore
from latecomer.contract import Machine, Output, Settings, results_of
from latecomer.events import EventBatch, Int64s, Layout
from latecomer.progress import Timeline


@dataclass(frozen=True)
class PassThrough(Settings):
    """Every event is a result at once; nothing is held and nothing is too late."""

    name: ClassVar[str] = "pass_through"

    def build(self, store: ChunkStore, layout: Layout) -> Machine:
        return _PassThrough(store, layout)

    def most_held(self, accepted_ts_us: Int64s, timeline: Timeline) -> int:
        return 0


class _PassThrough(Machine):
    def push(self, batch: EventBatch, timeline: Timeline) -> Iterator[Output]:
        if len(batch):
            yield results_of(batch)

    def finish(self) -> Iterator[Output]:
        yield from ()
