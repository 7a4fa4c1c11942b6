"""From one stage to the next: results become the events of a further stage, with the progress that holds for them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa

from latecomer.events import EVENT_CHANGE, TICK, TICK_FIELD, Int64s, int64_view
from latecomer.progress import Timeline
from latecomer.spark.frames import Frame, Kind, Splitter
from latecomer.spark.packed import GROUP_BYTES, Packer, letters
from latecomer.windows.hashing import shards_of


@dataclass(frozen=True)
class NextStage:
    """The stage that takes the results: its shards, the columns it takes, and which of them are time and key.

    together: all rows go to one shard, where they must meet and have no key.
    """

    shard_keys: tuple[int, ...]
    columns: tuple[str, ...]
    time: str
    key: tuple[str, ...]
    together: bool = False


class Sender:
    """Sends the results of one shard and micro-batch on.

    `passed_us`: after each tick, the time up to which all results were given; None where they go on as they came, each
    with its own tick. A result's tick is the one in which it was given.
    """

    def __init__(self, stage: NextStage, key: int, timeline: Timeline, passed_us: Int64s | None) -> None:
        self._stage, self._passed_us = stage, passed_us
        self._timeline = timeline if passed_us is None else timeline.passed_on(passed_us)
        self._splitter = Splitter(stage.shard_keys, key)
        self._frames: list[Frame] = []

    def add(self, rows: pa.RecordBatch, packer: Packer) -> Iterator[pd.DataFrame]:
        """Take results in; gives frames that are many enough."""
        stage, shards = self._stage, len(self._stage.shard_keys)
        names = stage.key or (() if stage.together else (stage.time,))
        shard = shards_of([rows.column(name) for name in names], rows.num_rows, shards if names else 1)
        columns = [name for name in (*stage.columns, EVENT_CHANGE) if name in rows.schema.names]
        ticks = rows.column(TICK) if self._passed_us is None else pa.array(self._ticks(rows, self._passed_us))
        self._frames += self._splitter.add(
            Kind.EVENTS, rows.select(columns).append_column(TICK_FIELD, ticks), shard, None
        )
        if sum(len(frame.blob or b"") for frame in self._frames) > GROUP_BYTES:
            yield letters(self._frames, packer.counters)
            self._frames = []

    def close(self, packer: Packer) -> Iterator[pd.DataFrame]:
        """The rest of the frames, and the progress for every shard."""
        self._frames += self._splitter.rest()
        progress = self._timeline.to_bytes()
        for shard in range(len(self._stage.shard_keys)):
            sent = self._splitter.sent[shard] + 1
            self._frames.append(self._splitter.frame(Kind.TIMELINE, shard, sent, progress))
        yield letters(self._frames, packer.counters)

    def _ticks(self, rows: pa.RecordBatch, passed_us: Int64s) -> Int64s:
        """The tick after which each result was given; those given at the end of the stream come after all ticks."""
        ticks = np.append(self._timeline.tick, self._timeline.tick[-1] + 1)
        place = np.searchsorted(passed_us, int64_view(rows.column(self._stage.time)), side="left")
        return ticks[np.maximum(place, 1)]
