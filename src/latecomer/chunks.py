"""What a machine holds: columnar chunks with a directory, in any key-value store.

A machine keeps all its state here and nowhere else, so that a restart loses nothing. Rows are cut into chunks of at
most `CHUNK_BYTES`; compressed ones may have more, but take no more than twice that in the store. The directory knows
each chunk's time range and size, so that a punctuation reads and deletes only the chunks it touches, and the cost of a
batch follows what arrives and what leaves, not what is held.

Invariants
1. Between two `flush` calls the store sees no write; a chunk put and deleted in between never reaches it.
2. Chunks are never changed in place: a chunk that is cut is deleted and its rest put anew.
3. The directory alone says what exists; the store is never iterated.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, MutableMapping
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from latecomer.codec import (
    Choose,
    cuts,
    dump_arrays,
    integers,
    load_arrays,
    narrow,
    rows_from_bytes,
    rows_to_bytes,
)
from latecomer.events import TICK, TICK_FIELD, Int64s, int64_view

CHUNK_BYTES = 1_000_000
MANY = 8  # small chunks that are worth uniting
_MOST_SAVED = 8  # a chunk has at most so many times its bytes before compression


class Chunk(NamedTuple):
    """A directory entry; (run, number) is the chunk's key in the store, `size` its bytes before compression."""

    run: int
    number: int
    ts_min_us: int
    ts_max_us: int
    rows: int
    size: int


def magnitude(chunk: Chunk) -> int:
    """The same for chunks of about one size."""
    return chunk.size.bit_length() // 2


def small_groups(chunks: Iterable[Chunk], alike: Callable[[Chunk], int] = magnitude) -> list[list[Chunk]]:
    """Groups of small chunks, of about one size or alike otherwise, that are worth uniting: the directory stays short.

    Where chunks of about one size are united, rows are written anew only as often as their chunk grows by as much.
    """
    groups: dict[int, list[Chunk]] = {}
    for chunk in chunks:
        if chunk.size < CHUNK_BYTES // 2:
            groups.setdefault(alike(chunk), []).append(chunk)
    return [group for group in groups.values() if len(group) >= MANY]


class ChunkBackend(Protocol):
    """Where chunks are stored: Spark's MapState, or a dict."""

    def get(self, run: int, number: int) -> bytes:
        """The bytes of a chunk that exists."""

    def put(self, run: int, number: int, data: bytes) -> None:
        """Write a chunk."""

    def delete(self, run: int, number: int) -> None:
        """Remove a chunk that exists."""


class MemoryBackend:
    """Chunks in a dict: tests, simulations, batch."""

    def __init__(self, chunks: dict[tuple[int, int], bytes] | None = None) -> None:
        self.chunks = dict(chunks or {})

    def get(self, run: int, number: int) -> bytes:
        return self.chunks[run, number]

    def put(self, run: int, number: int, data: bytes) -> None:
        self.chunks[run, number] = data

    def delete(self, run: int, number: int) -> None:
        del self.chunks[run, number]


class Store(ABC):
    """Chunks of rows, and small notes of integers: a machine's state, or a part of it."""

    notes: MutableMapping[str, int]

    @property
    @abstractmethod
    def chunks(self) -> list[Chunk]:
        """The directory, oldest first."""

    @abstractmethod
    def append(
        self, rows: pa.RecordBatch, ts_us: Int64s, run: int = 0, *, compressed: bool = False, whole: bool = False
    ) -> None:
        """Keep rows in as many chunks as they need, compressed if wished; best sorted by time: a chunk has a range.

        whole: in one chunk, whatever its size, where the caller has cut them.
        """

    @abstractmethod
    def take(self, chunks: Iterable[Chunk]) -> Iterator[pa.RecordBatch]:
        """Read chunks and remove them."""

    @abstractmethod
    def read(self, chunk: Chunk, choose: Choose | None = None) -> pa.RecordBatch:
        """Read a chunk and keep it; choose: which of its rows, of which it sees columns of fixed size."""

    @abstractmethod
    def drop(self, chunks: Iterable[Chunk]) -> None:
        """Remove chunks."""

    @property
    def rows(self) -> int:
        """How many rows are held."""
        return sum(chunk.rows for chunk in self.chunks)

    def part(self, number: int, of: int) -> Store:
        """One of several stores in this one, each with runs and notes of its own; writing is the whole's business."""
        return _Part(self, number, of)


class ChunkStore(Store):
    """All of a machine's state, which can be written."""

    def __init__(self, backend: ChunkBackend | None = None, directory: bytes | None = None) -> None:
        self._backend = MemoryBackend() if backend is None else backend
        self._entries: dict[tuple[int, int], Chunk] = {}
        self._pending: dict[tuple[int, int], bytes] = {}
        self._removed: list[tuple[int, int]] = []
        self._fetched: dict[tuple[int, int], bytes] = {}
        self._next = 0
        self.notes = {}
        if directory is not None:
            self._load(directory)

    @property
    def chunks(self) -> list[Chunk]:
        return list(self._entries.values())

    def append(
        self, rows: pa.RecordBatch, ts_us: Int64s, run: int = 0, *, compressed: bool = False, whole: bool = False
    ) -> None:
        done, most = 0, CHUNK_BYTES
        while done < rows.num_rows:
            count = rows.num_rows if whole else next(cuts(rows.slice(done), most))[1]
            piece = _narrow_ticks(rows.slice(done, count))
            data = rows_to_bytes(piece, compressed=compressed)
            if len(data) > 2 * CHUNK_BYTES and most > CHUNK_BYTES and not whole:
                most = CHUNK_BYTES  # compressed less well than the piece before it
                continue
            key, times = (run, self._next), ts_us[done : done + count]
            self._next += 1
            self._pending[key] = data
            self._entries[key] = Chunk(*key, int(times.min()), int(times.max()), count, piece.nbytes)
            done += count
            most = CHUNK_BYTES * min(max(1, piece.nbytes // len(data)), _MOST_SAVED) if compressed else CHUNK_BYTES

    def take(self, chunks: Iterable[Chunk]) -> Iterator[pa.RecordBatch]:
        for chunk in list(chunks):
            rows = self.read(chunk)
            self.drop([chunk])
            yield rows

    def read(self, chunk: Chunk, choose: Choose | None = None) -> pa.RecordBatch:
        key = (chunk.run, chunk.number)
        data = self._pending.get(key)
        if data is None:
            data = self._fetched.get(key)
        if data is None:
            data = self._fetched[key] = self._backend.get(*key)
        return _wide_ticks(rows_from_bytes(data, choose=choose))

    def drop(self, chunks: Iterable[Chunk]) -> None:
        for chunk in list(chunks):
            key = (chunk.run, chunk.number)
            del self._entries[key]
            self._fetched.pop(key, None)
            if self._pending.pop(key, None) is None:
                self._removed.append(key)

    def flush(self) -> bytes:
        """Write what changed; returns the directory to be stored beside it."""
        for key in self._removed:
            self._backend.delete(*key)
        for key, data in self._pending.items():
            self._backend.put(*key, data)
        self._removed, self._pending, self._fetched = [], {}, {}
        return self._dump()

    def snapshot(self) -> dict[str, bytes]:
        """Everything held, as named bytes."""
        directory = self.flush()
        parts = {f"{run}/{number}": self._backend.get(run, number) for run, number in self._entries}
        return {"directory": directory, **parts}

    @classmethod
    def restore(cls, snapshot: dict[str, bytes]) -> ChunkStore:
        """A store in memory, as it was when the snapshot was taken."""
        chunks = {}
        for name, data in snapshot.items():
            if name != "directory":
                run, number = name.split("/")
                chunks[int(run), int(number)] = data
        return cls(MemoryBackend(chunks), snapshot["directory"])

    def _dump(self) -> bytes:
        table = np.array([tuple(chunk) for chunk in self._entries.values()], dtype=np.int64)
        columns = table.reshape(-1, len(Chunk._fields)).T
        arrays: dict[str, Int64s | pa.Array] = dict(zip(Chunk._fields, columns, strict=True))
        arrays["next"] = np.array([self._next])
        arrays["note_names"] = pa.array(list(self.notes), pa.string())
        arrays["note_values"] = np.array(list(self.notes.values()), dtype=np.int64)
        return dump_arrays(arrays)

    def _load(self, directory: bytes) -> None:
        arrays = load_arrays(directory)
        names = arrays.pop("note_names").to_pylist()
        numbers = {name: integers(values).tolist() for name, values in arrays.items()}
        self._next = numbers["next"][0]
        self.notes = dict(zip(names, numbers["note_values"], strict=True))
        for fields in zip(*(numbers[name] for name in Chunk._fields), strict=True):
            chunk = Chunk(*fields)
            self._entries[chunk.run, chunk.number] = chunk


class _Part(Store):
    """Every so many-th run of a store."""

    def __init__(self, whole: Store, number: int, of: int) -> None:
        self.notes = _Notes(whole.notes, f"{number}/{of}/")
        self._whole: Store = whole
        self._number, self._of = number, of
        if isinstance(whole, _Part):  # a part of a part is a part of the whole, found at once
            self._whole = whole._whole
            self._number, self._of = number * whole._of + whole._number, of * whole._of

    @property
    def chunks(self) -> list[Chunk]:
        own = (chunk for chunk in self._whole.chunks if chunk.run % self._of == self._number)
        return [Chunk(chunk[0] // self._of, *chunk[1:]) for chunk in own]

    def append(
        self, rows: pa.RecordBatch, ts_us: Int64s, run: int = 0, *, compressed: bool = False, whole: bool = False
    ) -> None:
        self._whole.append(rows, ts_us, self._outside(run), compressed=compressed, whole=whole)

    def take(self, chunks: Iterable[Chunk]) -> Iterator[pa.RecordBatch]:
        return self._whole.take([chunk._replace(run=self._outside(chunk.run)) for chunk in chunks])

    def read(self, chunk: Chunk, choose: Choose | None = None) -> pa.RecordBatch:
        return self._whole.read(chunk._replace(run=self._outside(chunk.run)), choose)

    def drop(self, chunks: Iterable[Chunk]) -> None:
        self._whole.drop([chunk._replace(run=self._outside(chunk.run)) for chunk in chunks])

    def _outside(self, run: int) -> int:
        return run * self._of + self._number


class _Notes(MutableMapping[str, int]):
    """The notes whose names begin alike."""

    def __init__(self, all_notes: MutableMapping[str, int], prefix: str) -> None:
        self._all, self._prefix = all_notes, prefix

    def __getitem__(self, name: str) -> int:
        return self._all[self._prefix + name]

    def __setitem__(self, name: str, value: int) -> None:
        self._all[self._prefix + name] = value

    def __delitem__(self, name: str) -> None:
        del self._all[self._prefix + name]

    def __iter__(self) -> Iterator[str]:
        return (name.removeprefix(self._prefix) for name in self._all if name.startswith(self._prefix))

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _narrow_ticks(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Store ticks as small offsets: they differ little within a chunk."""
    if TICK not in rows.schema.names:
        return rows
    place = rows.schema.get_field_index(TICK)
    ticks = int64_view(rows.column(place))
    base = int(ticks.min())
    small = pa.array(narrow(ticks - base))
    thin = rows.set_column(place, pa.field(TICK, small.type), small)
    return thin.replace_schema_metadata({"tick": str(base)})


def _wide_ticks(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Undo `_narrow_ticks`."""
    if TICK not in rows.schema.names:
        return rows
    place = rows.schema.get_field_index(TICK)
    base = int(rows.schema.metadata[b"tick"])
    ticks = pa.array(integers(rows.column(place)) + base)
    wide = rows.set_column(place, TICK_FIELD, ticks)
    return wide.replace_schema_metadata(None)
