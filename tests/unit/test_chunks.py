"""Chunks and their directory."""

import itertools

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from latecomer.chunks import CHUNK_BYTES, MANY, Chunk, ChunkStore, MemoryBackend, small_groups
from latecomer.codec import (
    bytes_to_text,
    cuts,
    dump_arrays,
    integers,
    load_arrays,
    rows_from_bytes,
    rows_to_bytes,
    text_to_bytes,
)
from latecomer.events import TICK


def rows(count: int, first: int = 0) -> tuple[pa.RecordBatch, np.ndarray[tuple[int], np.dtype[np.int64]]]:
    ts_us = np.arange(first, first + count)
    batch = pa.RecordBatch.from_pydict({"ts": pa.array(ts_us), TICK: pa.array(ts_us + 10**12)})
    return batch, ts_us


class Watched(MemoryBackend):
    """Counts what reaches the store."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[str] = []

    def get(self, run: int, number: int) -> bytes:
        self.calls.append("get")
        return super().get(run, number)

    def put(self, run: int, number: int, data: bytes) -> None:
        self.calls.append("put")
        super().put(run, number, data)

    def delete(self, run: int, number: int) -> None:
        self.calls.append("delete")
        super().delete(run, number)


def test_what_leaves_in_its_own_batch_never_touches_the_store() -> None:
    backend = Watched()
    store = ChunkStore(backend)
    store.append(*rows(10))
    taken = list(store.take(store.chunks))
    store.flush()
    assert backend.calls == []
    assert taken[0].equals(rows(10)[0])


def test_only_chunks_that_are_taken_are_read() -> None:
    backend = Watched()
    store = ChunkStore(backend)
    store.append(*rows(10))
    store.append(*rows(10, first=100))
    directory = store.flush()
    again = ChunkStore(backend, directory)
    backend.calls.clear()
    early = [chunk for chunk in again.chunks if chunk.ts_min_us <= 50]
    list(again.take(early))
    again.flush()
    assert backend.calls == ["get", "delete"]
    assert again.rows == 10


def test_small_chunks_are_worth_uniting_where_there_are_many_alike() -> None:
    sizes = [100] * MANY + [10_000] * (MANY - 1) + [CHUNK_BYTES] * MANY
    chunks = [Chunk(number % 2, number, 0, 0, 1, size) for number, size in enumerate(sizes)]
    assert small_groups(chunks) == [chunks[:MANY]]
    small = chunks[: 2 * MANY - 1]
    assert small_groups(chunks, lambda chunk: chunk.run) == [small[::2]]
    assert small_groups(chunks[1:]) == []


def test_large_batches_become_chunks_of_at_most_a_megabyte() -> None:
    store = ChunkStore()
    store.append(*rows(300_000))
    assert store.rows == 300_000
    store.flush()
    snapshot = store.snapshot()
    assert max(len(data) for name, data in snapshot.items() if name != "directory") < 1.1 * CHUNK_BYTES
    spans = [(chunk.ts_min_us, chunk.ts_max_us) for chunk in store.chunks]
    assert all(left[1] < right[0] for left, right in itertools.pairwise(spans))


def test_what_compresses_well_goes_into_fewer_chunks_and_what_does_not_into_small_ones() -> None:
    rng = np.random.default_rng(0)
    even, uneven = np.zeros(1_000_000, dtype=np.int64), rng.integers(0, 2**62, 1_000_000)
    for values, most in ((even, 3), (np.concatenate([even, uneven]), 14)):
        store = ChunkStore()
        batch = pa.RecordBatch.from_pydict({"value": values})
        store.append(batch, np.arange(len(values)), compressed=True)
        assert len(store.chunks) <= most
        assert (
            pa.Table.from_batches(store.read(chunk) for chunk in store.chunks).combine_chunks().to_batches()[0] == batch
        )
        parts = store.snapshot()
        assert max(len(data) for name, data in parts.items() if name != "directory") <= 2 * CHUNK_BYTES


def test_equal_columns_are_stored_once_bit_for_bit() -> None:
    value = np.random.default_rng(0).random(1_000)
    zeros, below = np.zeros(1_000), np.full(1_000, -0.0)
    nan = np.full(1_000, np.nan)
    columns = {"a": value, "b": value, "z": zeros, "y": below, "n": nan, "m": nan, "i": value.view(np.int64)}
    schema = pa.schema([pa.field(name, pa.array(v).type, nullable=name != "b") for name, v in columns.items()])
    schema = schema.set(1, schema.field(1).with_metadata({"k": "v"}))
    batch = pa.RecordBatch.from_arrays([pa.array(v) for v in columns.values()], schema=schema)
    data = rows_to_bytes(batch, compressed=True)
    assert len(data) < 2.5 * value.nbytes
    back = rows_from_bytes(data)
    assert back.schema.equals(schema, check_metadata=True)
    assert all(back.column(name).to_numpy().tobytes() == values.tobytes() for name, values in columns.items())


def test_uneven_values_are_cut_finer() -> None:
    values = ["x" * 10] * 1_000 + ["y" * 400_000] * 10
    batch = pa.RecordBatch.from_pydict({"text": pa.array(values)})
    pieces = [batch.slice(start, stop - start).nbytes for start, stop in cuts(batch, CHUNK_BYTES)]
    assert max(pieces) <= 2 * CHUNK_BYTES
    assert sum(stop - start for start, stop in cuts(batch, CHUNK_BYTES)) == len(batch)


def test_snapshot_and_restore_keep_rows_and_notes() -> None:
    store = ChunkStore()
    store.notes["seen"] = 42
    store.append(*rows(5), run=3)
    again = ChunkStore.restore(store.snapshot())
    assert again.notes == {"seen": 42}
    assert again.read(again.chunks[0]).equals(rows(5)[0])
    assert again.chunks == store.chunks


def test_repeating_text_travels_light_and_arrives_unchanged() -> None:
    names = pa.array([None if i % 5 == 0 else f"name number {i % 7}" for i in range(10_000)])
    unique = pa.array([f"name number {i}" for i in range(10_000)])
    schema = pa.schema(
        [pa.field("name", pa.string(), metadata={"k": "v"}), pa.field("raw", pa.binary(), nullable=False)]
    )
    for text in (names, unique):
        raw = text.fill_null("").cast(pa.binary())
        rows = pa.RecordBatch.from_arrays([text, raw], schema=schema)
        data = rows_to_bytes(rows)
        assert rows_from_bytes(data, wide=False).equals(rows, check_metadata=True)
        wide = rows_from_bytes(data)
        assert [str(kind) for kind in wide.schema.types] == ["large_string", "large_binary"]
        assert rows_from_bytes(rows_to_bytes(wide), wide=False).equals(rows, check_metadata=True)
        assert (len(data) < rows.nbytes / 2) == (text is names)


def test_arrays_survive_the_journey() -> None:
    arrays = {"small": np.array([1, -2]), "large": np.array([2**61]), "none": np.array([], dtype=np.int64)}
    back = {name: integers(values).tolist() for name, values in load_arrays(dump_arrays(arrays)).items()}
    assert back == {"small": [1, -2], "large": [2**61], "none": []}


@given(st.binary(max_size=300))
def test_bytes_survive_as_plain_text_a_sixth_longer(data: bytes) -> None:
    text = bytes_to_text(data)
    assert text.isascii()
    assert len(text) <= len(data) * 7 / 6 + 4
    assert text_to_bytes(text, len(data)) == data
