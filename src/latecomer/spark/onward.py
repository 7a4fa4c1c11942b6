"""From one stage to the next: results become the events of a further stage, with the progress that holds for them.

Where the next stage knows every source by itself, the results are one source, and rows of sources that this stage does
not take go on beside them, each in its own tick.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa

from latecomer.codec import wide_type
from latecomer.events import EVENT_CHANGE, SOURCE, TICK, TICK_FIELD, Int64s, int64_view
from latecomer.gives import Onward
from latecomer.headers import encode_sources
from latecomer.progress import Timeline
from latecomer.spark.frames import Frame, Kind, Splitter
from latecomer.spark.packed import GROUP_BYTES, Packer, letters
from latecomer.windows.hashing import shards_of


@dataclass(frozen=True)
class AsSources:
    """Results and what is passed on as sources of the next stage.

    results: the name of the results. passing: the sources that are passed on. time, source: which columns of their rows
    have the time and the source's name.
    """

    results: str
    passing: tuple[str, ...]
    time: str
    source: str | None


@dataclass(frozen=True)
class NextStage:
    """The stage that takes the results: its shards, the columns it takes, and which of them are time and key.

    together: all rows go to one shard, where they must meet and have no key. sources: where it knows every source.
    """

    shard_keys: tuple[int, ...]
    columns: pa.Schema
    time: str
    key: tuple[str, ...]
    together: bool = False
    sources: AsSources | None = None


def timeline_after(
    stage: NextStage, timeline: Timeline, passed_us: Int64s | None, certain_us: Int64s | None
) -> Timeline:
    """The progress of the next stage; passed_us: as for `Sender`, certain_us: up to where no result is missing."""
    if passed_us is None:
        return timeline
    if stage.sources is None:
        return timeline.passed_on(passed_us)
    return timeline.passed_on_as(stage.sources.results, passed_us, stage.sources.passing, certain_us)


class Sender:
    """Sends the results of one shard and micro-batch on.

    timeline: the progress of the next stage. passed_us: after each tick, the time up to which results had come; None
    where they go on at once. A result's tick is the one in which it was given.
    """

    def __init__(
        self, stage: NextStage, key: int, timeline: Timeline, onward: Onward, passed_us: Int64s | None
    ) -> None:
        self._stage, self._onward, self._passed_us = stage, onward, passed_us
        self._timeline = timeline
        self._splitter = Splitter(stage.shard_keys, key)
        self._frames: list[Frame] = []

    def add(self, rows: pa.RecordBatch, packer: Packer, *, finished: bool = False) -> Iterator[pd.DataFrame]:
        """Take results in, those of the end of the stream where it is `finished`; gives frames that are many enough."""
        ticks, sources = self._ticks(rows, finished=finished), self._stage.sources
        source = None if sources is None else pa.repeat(pa.scalar(sources.results, pa.large_string()), rows.num_rows)
        yield from self._send(rows, ticks, source, packer)

    def pass_on(self, rows: pa.RecordBatch, packer: Packer) -> Iterator[pd.DataFrame]:
        """Take in rows of sources that this stage does not take."""
        sources, place = self._stage.sources, rows.schema.get_field_index(self._stage.time)
        assert sources is not None
        assert sources.source is not None
        names, codes = encode_sources(rows.column(sources.source), rows.num_rows)
        if place < 0:
            rows = rows.append_column(self._stage.time, rows.column(sources.time))
        yield from self._send(rows, int64_view(rows.column(TICK)), names.take(pa.array(codes)), packer)

    def close(self, packer: Packer) -> Iterator[pd.DataFrame]:
        """The rest of the frames, and the progress for every shard."""
        self._frames += self._splitter.rest()
        progress = self._timeline.to_bytes()
        for shard in range(len(self._stage.shard_keys)):
            sent = self._splitter.sent[shard] + 1
            self._frames.append(self._splitter.frame(Kind.TIMELINE, shard, sent, progress))
        yield letters(self._frames, packer.counters)

    def _send(
        self, rows: pa.RecordBatch, ticks: Int64s, source: pa.Array | None, packer: Packer
    ) -> Iterator[pd.DataFrame]:
        stage, shards = self._stage, len(self._stage.shard_keys)
        names = stage.key or (() if stage.together else (stage.time,))
        shard = shards_of([rows.column(name) for name in names], rows.num_rows, shards if names else 1)
        fitted = _fitted(rows, stage.columns, source).append_column(TICK_FIELD, pa.array(ticks))
        self._frames += self._splitter.add(Kind.EVENTS, fitted, shard, None)
        if sum(len(frame.blob or b"") for frame in self._frames) > GROUP_BYTES:
            yield letters(self._frames, packer.counters)
            self._frames = []

    def _ticks(self, rows: pa.RecordBatch, *, finished: bool) -> Int64s:
        """The tick after which each result was given; those given at the end of the stream come after all ticks."""
        if finished:
            return np.full(rows.num_rows, self._timeline.tick[-1] + 1)
        if self._onward is not Onward.IN_ORDER:
            return int64_view(rows.column(TICK))
        assert self._passed_us is not None
        ticks = np.append(self._timeline.tick, self._timeline.tick[-1] + 1)
        place = np.searchsorted(self._passed_us, int64_view(rows.column(self._stage.time)), side="left")
        return ticks[np.maximum(place, 1)]


def _fitted(rows: pa.RecordBatch, columns: pa.Schema, source: pa.Array | None) -> pa.RecordBatch:
    """Rows with the columns of the next stage but the tick; where it knows sources, all of them, in their types."""
    wanted = [each for each in columns if each.name != TICK]
    if source is None:
        return rows.select([each.name for each in wanted])
    rows = rows.select([name for name in rows.schema.names if name != SOURCE]).append_column(SOURCE, source)
    fields = [pa.field(each.name, wide_type(each.type)) for each in wanted]
    return pa.RecordBatch.from_arrays([_column(rows, each) for each in fields], schema=pa.schema(fields))


def _column(rows: pa.RecordBatch, field: pa.Field) -> pa.Array:
    """A column in a type; null where the rows lack it, +1 for what was not retracted."""
    if field.name in rows.schema.names:
        found = rows.column(field.name)
        return found if found.type == field.type else found.cast(field.type)
    if field.name == EVENT_CHANGE:
        return pa.repeat(pa.scalar(1, field.type), rows.num_rows)
    return pa.nulls(rows.num_rows, field.type)
