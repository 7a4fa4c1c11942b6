"""Frames: what travels from pack to the first stage, and from each stage to the next.

A frame is (kind, n, blob) addressed to a shard; (task, part) number the frames of one task. Rows travel as blobs of
columns, split by shard; progress as a header (from pack) or as a timeline (from a stage); what a stage has finished
(rows of `late` and `quarantine`, counters) travels on untouched.

Invariants
1. Nothing is acted on before all frames of a micro-batch are there, and they are read in the order of tasks and parts.
2. A stage tells each shard of the next how many frames it sent; one that is missing is an error.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from latecomer.codec import cuts, rows_from_bytes, rows_to_bytes
from latecomer.errors import LatecomerError, must
from latecomer.events import Int64s, concat_rows, take_rows
from latecomer.headers import Header
from latecomer.progress import Timeline

# For flat rows Spark fills an Arrow batch by rows alone (its limit by bytes costs a measurement per row), so
# ARROW_ROWS blobs must stay below the 2 GB that a binary column can take.
BLOB_BYTES = 250_000
ARROW_ROWS = 8_192

FRAME_SCHEMA = "shard int, task bigint, part int, kind int, n bigint, blob binary"


class Kind(IntEnum):
    """What a frame brings: rows as blobs, progress, a bare count, or what an earlier stage has finished."""

    HEADER = 0
    EVENTS = 1
    QUARANTINE = 2
    SEEN = 3
    FILTERED = 4
    CONTROL = 5
    TIMELINE = 6
    FINISHED = 7


class Frame(NamedTuple):
    """One frame on its way; `shard` is the key that Spark sends to the shard's partition."""

    shard: int
    task: int
    part: int
    kind: int
    n: int
    blob: bytes | None


class Splitter:
    """Splits rows by shard into blobs of one task."""

    def __init__(self, shard_keys: tuple[int, ...], task: int) -> None:
        self._shard_keys, self._task, self._part = shard_keys, task, 0
        self._waiting: dict[tuple[Kind, int], list[pa.RecordBatch]] = {}
        self._bytes: Counter[tuple[Kind, int]] = Counter()
        self.sent: Counter[int] = Counter()  # frames by shard
        self.addressed: set[int] = set()  # shards that were sent events

    def add(self, kind: Kind, rows: pa.RecordBatch, shard: Int64s, chosen: Int64s | None) -> Iterator[Frame]:
        """Queue rows, those at the chosen places if not all, for their shards; gives the blobs that are full."""
        shards = len(self._shard_keys)
        small = shard.astype(np.uint8 if shards <= 256 else np.uint16)  # numpy sorts these by radix
        if chosen is None:
            positions = np.argsort(small, kind="stable")
        else:
            positions = chosen[np.argsort(small[chosen], kind="stable")]
        sorted_rows = take_rows(rows, positions)
        bounds = np.searchsorted(small[positions], np.arange(shards + 1))
        for number in range(shards):
            start, stop = int(bounds[number]), int(bounds[number + 1])
            if start < stop:
                yield from self._queue(kind, number, sorted_rows.slice(start, stop - start))

    def rest(self) -> Iterator[Frame]:
        """The blobs that are not full."""
        for kind, shard in list(self._waiting):
            yield from self._send_rows(kind, shard)

    def frame(self, kind: Kind, shard: int, count: int, blob: bytes | None) -> Frame:
        """A frame for a shard, by its number."""
        self._part += 1
        self.sent[shard] += 1
        return Frame(self._shard_keys[shard], self._task, self._part, int(kind), count, blob)

    def _queue(self, kind: Kind, shard: int, rows: pa.RecordBatch) -> Iterator[Frame]:
        self._waiting.setdefault((kind, shard), []).append(rows)
        self._bytes[kind, shard] += rows.nbytes
        if self._bytes[kind, shard] >= BLOB_BYTES:
            yield from self._send_rows(kind, shard)

    def _send_rows(self, kind: Kind, shard: int) -> Iterator[Frame]:
        rows = concat_rows(self._waiting.pop((kind, shard)))
        self._bytes[kind, shard] = 0
        if kind is Kind.EVENTS:
            self.addressed.add(shard)
        for start, stop in cuts(rows, BLOB_BYTES):
            piece = rows.slice(start, stop - start)
            yield self.frame(kind, shard, piece.num_rows, rows_to_bytes(piece))


@dataclass
class Received:
    """All that came for a shard in one micro-batch."""

    headers: list[Header] = field(default_factory=list)
    events: list[pa.RecordBatch] = field(default_factory=list)
    quarantine: list[tuple[int, bytes]] = field(default_factory=list)
    counts: Counter[Kind] = field(default_factory=Counter)
    timeline: Timeline | None = None
    finished: list[pd.DataFrame] = field(default_factory=list)


def read_frames(frames: Iterable[pd.DataFrame], senders: int | None = None) -> Received:
    """Everything that came, in the order of tasks and parts; from a stage, so many shards must have sent something."""
    read = Received()
    found: list[tuple[Any, ...]] = []
    for frame in frames:
        if senders is not None:
            finished = frame["kind"] == Kind.FINISHED
            if finished.any():
                read.finished.append(frame[finished])
        columns = (frame[name] for name in ("task", "part", "kind", "n", "blob"))
        found.extend(zip(*columns, strict=True))
    found.sort(key=lambda row: (row[0], row[1]))
    for _, _, number, count, blob in found:
        _read_frame(read, Kind(number), count, blob)
    if senders is not None:
        _check_complete(found, senders)
    return read


def _read_frame(read: Received, kind: Kind, count: Any, blob: bytes) -> None:
    if kind is Kind.HEADER:
        read.headers.append(Header.from_bytes(blob))
    elif kind is Kind.EVENTS:
        read.events.append(rows_from_bytes(blob))
    elif kind is Kind.QUARANTINE:
        read.quarantine.append((int(count), blob))
    elif kind is Kind.TIMELINE:
        read.timeline = Timeline.from_bytes(blob) if read.timeline is None else read.timeline
    elif kind is not Kind.FINISHED:
        read.counts[kind] += int(count)


def _check_complete(found: list[tuple[Any, ...]], senders: int) -> None:
    """Every shard before says in its timeline's frame how many it sent; all have come to the same time."""
    came = Counter(row[0] for row in found if row[2] != Kind.FINISHED)
    said = {row[0]: (int(row[3]), bytes(row[4])) for row in found if row[2] == Kind.TIMELINE}
    advice = "restart the query: Spark repeats the micro-batch"
    if len(said) != senders or any(came[task] != count for task, (count, _) in said.items()):
        got = f"{sum(came.values())} frames of {len(said)} shards"
        sent = f"{sum(count for count, _ in said.values())} of {senders}"
        raise LatecomerError(must("a stage", f"get all frames of the one before it ({sent})", got, advice))
    if len({progress for _, progress in said.values()}) != 1:
        raise LatecomerError(must("all shards", "come to the same time", "several", advice))
