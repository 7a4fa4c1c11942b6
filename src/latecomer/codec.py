"""To bytes and back: named arrays (headers, small state), rows, and bytes as text.

Named arrays are one Arrow record batch of one row, a list column per array, compressed: delta-encoded arrays take a
byte or less per element.
"""

from __future__ import annotations

from binascii import a2b_base64, b2a_base64
from collections.abc import Callable, Iterator, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from latecomer.events import Int64s, as_bits, take_rows

Arrays = Mapping[str, "Int64s | pa.Array"]
Choose = Callable[[pa.RecordBatch], Int64s]  # places of rows

_COMPRESSED = pa.ipc.IpcWriteOptions(compression=pa.Codec("zstd", compression_level=1))


def dump_arrays(arrays: Arrays) -> bytes:
    """Write arrays as bytes."""
    columns = []
    for values in arrays.values():
        if isinstance(values, np.ndarray):
            values = pa.array(values)
        offsets = pa.array([0, len(values)], pa.int32())
        columns.append(pa.ListArray.from_arrays(offsets, values))
    return batch_to_bytes(pa.RecordBatch.from_arrays(columns, names=list(arrays)), _COMPRESSED)


def load_arrays(data: bytes) -> dict[str, pa.Array]:
    """Read what `dump_arrays` wrote."""
    batch = batch_from_bytes(data)
    return {name: batch.column(name).flatten() for name in batch.schema.names}


def integers(column: pa.Array) -> Int64s:
    """An array of integers as int64."""
    values: Int64s = column.to_numpy(zero_copy_only=False).astype(np.int64)
    return values


def narrow(values: Int64s) -> npt.NDArray[np.signedinteger]:
    """The same integers in the smallest type that holds them."""
    if len(values) == 0:
        return values.astype(np.int8)
    low, high = int(values.min()), int(values.max())
    for kind in (np.int8, np.int16, np.int32):
        info = np.iinfo(kind)
        if info.min <= low and high <= info.max:
            return values.astype(kind)
    return values


def deltas(values: Int64s) -> Int64s:
    """First differences, the first value itself in front."""
    return np.diff(values, prepend=np.int64(0))


def undo_deltas(differences: Int64s) -> Int64s:
    """What `deltas` was given."""
    return np.cumsum(differences)


def batch_to_bytes(batch: pa.RecordBatch, options: pa.ipc.IpcWriteOptions | None = None) -> bytes:
    """One record batch, its schema included, as bytes."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=options) as writer:
        writer.write_batch(batch)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def batch_from_bytes(data: bytes | pa.Buffer) -> pa.RecordBatch:
    """A record batch that points into the bytes it is read from."""
    return pa.ipc.open_stream(data).read_next_batch()


def bytes_to_text(data: bytes) -> str:
    """Bytes as ASCII, a sixth longer: the low seven bits of each where it stands, then all high bits in base64."""
    values = np.frombuffer(data, np.uint8)
    low = (values & 0x7F).tobytes()
    return (low + b2a_base64(np.packbits(values >> 7).tobytes(), newline=False)).decode("ascii")


def text_to_bytes(text: str, size: int) -> bytes:
    """What `bytes_to_text` was given, `size` bytes."""
    data = text.encode("ascii")
    values = np.unpackbits(np.frombuffer(a2b_base64(data[size:]), np.uint8), count=size)
    values <<= 7
    values |= np.frombuffer(data, np.uint8, count=size)
    return values.tobytes()


_SAMPLE = 256
_TWIN = b"latecomer.twin"
_WIDE = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}
_NARROW = {wide: narrow for narrow, wide in _WIDE.items()}


def rows_to_bytes(rows: pa.RecordBatch, *, compressed: bool = False) -> bytes:
    """Rows as bytes, text with small offsets and, where it repeats itself, dictionary-encoded.

    Compressed, a column that has the same values as one before it is stored once: those of slices with one event each.
    """
    rows = _retyped(rows, _NARROW)
    for place, column in enumerate(rows.columns):
        if _is_text(column.type) and _repeats(column):
            encoded = column.dictionary_encode()
            rows = rows.set_column(place, rows.schema.field(place).with_type(encoded.type), encoded)
    return batch_to_bytes(_without_twins(rows), _COMPRESSED) if compressed else batch_to_bytes(rows)


def rows_from_bytes(data: bytes | pa.Buffer, *, wide: bool = True, choose: Choose | None = None) -> pa.RecordBatch:
    """What `rows_to_bytes` was given, or some of it; flat columns point into the bytes unless they are compressed.

    Wide text has 64-bit offsets, so that many pieces can be put together to more than 2 GB.
    """
    rows = _with_twins(batch_from_bytes(data))
    if choose is not None:
        rows = take_rows(rows, choose(rows))
    for place, column in enumerate(rows.columns):
        if pa.types.is_dictionary(column.type):
            plain = column.dictionary_decode()
            rows = rows.set_column(place, rows.schema.field(place).with_type(plain.type), plain)
    return widened(rows) if wide else rows


def _without_twins(rows: pa.RecordBatch) -> pa.RecordBatch:
    """The same with nothing in the columns whose values are, bit for bit, those of another; they say of which."""
    met: list[tuple[int, pa.Array]] = []
    for place, column in enumerate(rows.columns):
        bits = as_bits(column)
        if bits is None:
            continue
        twin = next((at for at, other in met if rows.columns[at].type == column.type and other.equals(bits)), None)
        if twin is None:
            met.append((place, bits))
        else:
            field = rows.schema.field(place)
            marked = field.with_type(pa.null()).with_metadata({**(field.metadata or {}), _TWIN: str(twin)})
            rows = rows.set_column(place, marked, pa.nulls(rows.num_rows))
    return rows


def _with_twins(rows: pa.RecordBatch) -> pa.RecordBatch:
    for place, field in enumerate(rows.schema):
        said = dict(field.metadata or {})
        twin = said.pop(_TWIN, None)
        if twin is not None:
            column = rows.column(int(twin))
            rows = rows.set_column(place, field.with_type(column.type).with_metadata(said or None), column)
    return rows


def wide_type(kind: pa.DataType) -> pa.DataType:
    """The type that a column has when it comes out of a store."""
    return _WIDE.get(kind, kind)


def widened(rows: pa.RecordBatch) -> pa.RecordBatch:
    """The same rows with wide text, as they come out of a store."""
    return _retyped(rows, _WIDE)


def _retyped(rows: pa.RecordBatch, types: Mapping[pa.DataType, pa.DataType]) -> pa.RecordBatch:
    for place, column in enumerate(rows.columns):
        other = types.get(column.type)
        if other is not None:
            changed = _compact(column).cast(other)
            rows = rows.set_column(place, rows.schema.field(place).with_type(other), changed)
    return rows


def _compact(text: pa.Array) -> pa.Array:
    """A piece of more than 2 GB of text, cut loose: its offsets would not fit 32 bits."""
    values = text.buffers()[2]
    if values is None or values.size < 2**31:
        return text
    return text.take(pa.array(np.arange(len(text))))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_binary(kind))


def _repeats(column: pa.Array) -> bool:
    """Whether a sample of the column has few distinct values: encoding unique ones costs more than it saves."""
    if len(column) < _SAMPLE:
        return False
    sample = column.take(pa.array(np.linspace(0, len(column) - 1, _SAMPLE).astype(np.int64)))
    return len(sample.unique()) <= _SAMPLE // 2


def cuts(rows: pa.RecordBatch, most_bytes: int) -> Iterator[tuple[int, int]]:
    """Where to cut rows so that no piece is much larger than `most_bytes`."""
    count = rows.num_rows
    if count == 0:
        return
    pieces = max(1, -(-rows.nbytes // most_bytes))
    size = -(-count // pieces)
    for start in range(0, count, size):
        yield from _halved(rows, start, min(start + size, count), most_bytes)


def _halved(rows: pa.RecordBatch, start: int, stop: int, most_bytes: int) -> Iterator[tuple[int, int]]:
    """Cut further where values of uneven size make a piece too large."""
    if stop - start == 1 or rows.slice(start, stop - start).nbytes <= 2 * most_bytes:
        yield start, stop
        return
    middle = (start + stop) // 2
    yield from _halved(rows, start, middle, most_bytes)
    yield from _halved(rows, middle, stop, most_bytes)
