"""The state of a shard in Spark's state store: a machine's chunks in one MapState, everything small in one more entry.

State of another format, stage or query is refused, never reinterpreted.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import MapState

from latecomer.chunks import ChunkStore
from latecomer.codec import batch_from_bytes, batch_to_bytes, bytes_to_text, text_to_bytes
from latecomer.errors import StateError, must
from latecomer.progress import Progress

FORMAT_VERSION = 7
SMALL = (0, -1)  # the key of what is small: numbers of chunks are not negative


@dataclass(frozen=True)
class ShardState:
    """Where a shard's progress and chunks are; `fingerprint` names the query and the stage."""

    state: MapState
    fingerprint: str

    def load(self) -> tuple[Progress, ChunkStore]:
        """What was saved, or a new beginning."""
        backend = _MapBackend(self.state)
        stored = backend.find(*SMALL)
        if stored is None:
            return Progress(), ChunkStore(backend)
        small = batch_from_bytes(stored).to_pylist()[0]
        if small["format"] != FORMAT_VERSION:
            advice = "use the version of latecomer that wrote it, or a new checkpoint"
            raise StateError(must("stored state", f"have format {FORMAT_VERSION}", small["format"], advice))
        if small["fingerprint"] != self.fingerprint:
            advice = "start with the settings the checkpoint was made with, or with a new checkpoint"
            raise StateError(must("stored state", "belong to this query", "another query's", advice))
        return Progress.from_bytes(small["progress"]), ChunkStore(backend, small["directory"])

    def save(self, progress: Progress, store: ChunkStore) -> None:
        """Write what changed."""
        small = [FORMAT_VERSION], [self.fingerprint], [progress.to_bytes()], [store.flush()]
        names = ["format", "fingerprint", "progress", "directory"]
        _MapBackend(self.state).put(*SMALL, batch_to_bytes(pa.RecordBatch.from_arrays(list(small), names=names)))


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
