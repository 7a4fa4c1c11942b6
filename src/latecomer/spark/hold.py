"""Hold: what happens in a shard. It gathers the shard's frames, lets the machine act and keeps its state.

Invariants
1. Nothing happens before all frames of the micro-batch are read: blobs are put in order and headers merged first.
2. Only state that changed is written, to one MapState: the machine's chunks, and everything small in one more entry.
3. State of another format or of other settings is refused, never reinterpreted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import MapState

from latecomer.chunks import ChunkStore
from latecomer.codec import (
    batch_from_bytes,
    batch_to_bytes,
    bytes_to_text,
    cuts,
    rows_from_bytes,
    rows_to_bytes,
    text_to_bytes,
)
from latecomer.contract import CHANGE, PANE, Lane, Machine, Output, Settings
from latecomer.errors import StateError, must
from latecomer.events import NEVER_US, TICK, TICK_FIELD, EventBatch, Layout, concat_rows
from latecomer.headers import Header
from latecomer.progress import Progress, Timeline
from latecomer.spark.frames import BLOB_BYTES, COUNTERS, COUNTS_LANE, GROUP_BYTES, LARGEST, Kind

FORMAT_VERSION = 3
SMALL = (0, -1)  # the key of what is small: numbers of chunks are not negative


@dataclass(frozen=True)
class HoldPlan:
    """What a shard must know.

    `stamped`: the user has an arrival column. `finishing`: in batch, where the stream is over after its one batch.
    """

    settings: Settings
    layout: Layout
    idle_ticks: int | None
    fingerprint: str
    stamped: bool
    finishing: bool


@dataclass
class _Frames:
    """All that came for a shard in one micro-batch."""

    headers: list[Header]
    events: list[pa.RecordBatch]
    quarantine: list[tuple[int, bytes]]
    counts: Counter[Kind]


class Shard:
    """A machine at work on one shard's micro-batch."""

    def __init__(self, plan: HoldPlan, state: MapState) -> None:
        self._plan = plan
        self._state = state

    def run(self, rows: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        """Take in the frames of one micro-batch; gives packed rows."""
        frames = _read_frames(rows)
        progress, store = self._load()
        before = progress
        progress, timeline = progress.advance(frames.headers, self._plan.idle_ticks)
        machine = self._plan.settings.build(store, self._plan.layout)
        counters: Counter[str] = Counter()
        for count, blob in frames.quarantine:
            counters["quarantined"] += count
            yield _packed(Lane.QUARANTINE, [count], [blob])
        for output in self._outputs(machine, frames, before, timeline, counters):
            counters["late" if output.lane is Lane.LATE else "given"] += output.standing
            yield from _packed_pieces(output)
        self._save(progress, store)
        yield self._count(frames, machine, timeline, counters)

    def _outputs(
        self,
        machine: Machine,
        frames: _Frames,
        before: Progress,
        timeline: Timeline,
        counters: Counter[str],
    ) -> Iterator[Output]:
        if frames.events:
            rows = concat_rows(frames.events)
            frames.events.clear()
            rows, moved = _with_open_ticks(rows, before)
            counters["stamps_back"] = moved if self._plan.stamped else 0
            batch = EventBatch(rows, self._plan.layout)
            counters["pushed"] = len(batch)
            yield from machine.push(batch, timeline)
        if self._plan.finishing:
            yield from machine.finish()

    def _load(self) -> tuple[Progress, ChunkStore]:
        if self._plan.finishing:
            return Progress(), ChunkStore()
        backend = _MapBackend(self._state)
        stored = backend.find(*SMALL)
        if stored is None:
            return Progress(), ChunkStore(backend)
        small = batch_from_bytes(stored).to_pylist()[0]
        if small["format"] != FORMAT_VERSION:
            advice = "use the version of latecomer that wrote it, or a new checkpoint"
            raise StateError(must("stored state", f"have format {FORMAT_VERSION}", small["format"], advice))
        if small["fingerprint"] != self._plan.fingerprint:
            advice = "start with the settings the checkpoint was made with, or with a new checkpoint"
            raise StateError(must("stored state", "belong to this query", "another query's", advice))
        return Progress.from_bytes(small["progress"]), ChunkStore(backend, small["directory"])

    def _save(self, progress: Progress, store: ChunkStore) -> None:
        if self._plan.finishing:
            return
        small = [FORMAT_VERSION], [self._plan.fingerprint], [progress.to_bytes()], [store.flush()]
        names = ["format", "fingerprint", "progress", "directory"]
        _MapBackend(self._state).put(*SMALL, batch_to_bytes(pa.RecordBatch.from_arrays(list(small), names=names)))

    def _count(self, frames: _Frames, machine: Machine, timeline: Timeline, counters: Counter[str]) -> pd.DataFrame:
        counts = {
            "seen": frames.counts[Kind.SEEN],
            "control": frames.counts[Kind.CONTROL],
            "filtered": frames.counts[Kind.FILTERED],
            "quarantined": counters["quarantined"],
            "late": counters["late"],
            "dropped": machine.dropped,
            "accepted": counters["pushed"] - counters["late"] - machine.dropped,
            "given": counters["given"],
            "held": machine.held,
            "runs": machine.runs,
            "stamps_back": counters["stamps_back"],
            "mark_us": int(timeline.mark_us[-1]),
            "punctuation_us": self._plan.settings.punctuation(timeline),
        }
        return _packed(COUNTS_LANE, [0], [None], counts)


class _MapBackend:
    """Bytes in Spark's MapState, as text."""

    def __init__(self, state: MapState) -> None:
        self._state = state

    def find(self, run: int, number: int) -> bytes | None:
        """What there is under a key, if anything."""
        value = self._state.getValue((run, number))
        if value is None:
            return None
        size, text = value
        try:
            return text_to_bytes(text, size)
        except ValueError as error:
            raise _damaged(run, number, f"{len(text)} characters for {size} bytes") from error

    def get(self, run: int, number: int) -> bytes:
        data = self.find(run, number)
        if data is None:
            raise _damaged(run, number, None)
        return data

    def put(self, run: int, number: int, data: bytes) -> None:
        self._state.updateValue((run, number), (len(data), bytes_to_text(data)))

    def delete(self, run: int, number: int) -> None:
        self._state.removeKey((run, number))


def _damaged(run: int, number: int, found: object) -> StateError:
    advice = "the checkpoint is damaged: restore it from a copy, or start with a new one"
    return StateError(must("stored state", f"hold chunk {run}/{number}", found, advice))


def _read_frames(frames: Iterable[pd.DataFrame]) -> _Frames:
    """Everything that came, blobs in the order of tasks and parts."""
    found: list[tuple[Any, ...]] = []
    for frame in frames:
        columns = (frame[name] for name in ("task", "part", "kind", "n", "blob"))
        found.extend(zip(*columns, strict=True))
    found.sort(key=lambda row: (row[0], row[1]))
    read = _Frames([], [], [], Counter())
    for _, _, number, count, blob in found:
        kind = Kind(number)
        if kind is Kind.HEADER:
            read.headers.append(Header.from_bytes(blob))
        elif kind is Kind.EVENTS:
            read.events.append(rows_from_bytes(blob))
        elif kind is Kind.QUARANTINE:
            read.quarantine.append((int(count), blob))
        else:
            read.counts[kind] += int(count)
    return read


def _with_open_ticks(rows: pa.RecordBatch, progress: Progress) -> tuple[pa.RecordBatch, int]:
    """Give every row an open tick, and say how many had one that was closed."""
    if TICK not in rows.schema.names:
        ticks = np.full(rows.num_rows, progress.closed_tick + 1)
        return rows.append_column(TICK_FIELD, pa.array(ticks)), 0
    stamped = rows.column(TICK).to_numpy()
    moved = int((stamped <= progress.closed_tick).sum())
    place = rows.schema.get_field_index(TICK)
    return rows.set_column(place, TICK_FIELD, pa.array(progress.open_ticks(stamped))), moved


def _packed_pieces(output: Output) -> Iterator[pd.DataFrame]:
    """An output as packed rows, many small blobs to a frame."""
    rows = output.rows
    if output.change is not None:
        rows = rows.append_column(CHANGE, pa.array(output.change))
    if output.panes is not None:
        rows = rows.append_column(PANE, output.panes)
    for start, stop in cuts(rows, GROUP_BYTES):
        group = rows.slice(start, stop - start)
        pieces = [group.slice(first, last - first) for first, last in cuts(group, BLOB_BYTES)]
        counts = [piece.num_rows for piece in pieces]
        blobs = [rows_to_bytes(piece) for piece in pieces]
        yield _packed(output.lane, counts, blobs, pane=str(output.pane), final=output.final, tier=output.tier)


def _packed(
    lane: int,
    counts: list[int],
    blobs: Sequence[bytes | None],
    counters: dict[str, int] | None = None,
    *,
    pane: str = "",
    final: bool = False,
    tier: int = 0,
) -> pd.DataFrame:
    """Packed rows of one lane."""
    known = counters or {}
    columns: dict[str, Any] = {
        "lane": int(lane),
        "n": counts,
        "pane": pane,
        "final": final,
        "tier": tier,
        "blob": blobs,
    }
    columns.update({name: known.get(name, NEVER_US if name in LARGEST else 0) for name in COUNTERS})
    return pd.DataFrame(columns)
