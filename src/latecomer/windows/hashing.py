"""A number for every key, the same in every process and version: it decides which shard of a further stage a key is in.

Values are hashed, not rows: equal keys have equal numbers whatever their neighbours (-0.0 is 0.0, every NaN is one key,
null is a key like others).
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from latecomer.codec import integers
from latecomer.events import Int64s, as_bits_or_null
from latecomer.windows.grouping import normal_keys

UInt64s = npt.NDArray[np.uint64]

_NULL = 0x9E3779B97F4A7C15
_ONE, _TWO = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def hash_keys(columns: Sequence[pa.Array], count: int) -> UInt64s:
    """A hash for each of so many rows, of the values in all columns together."""
    return _hashed([normal_keys(column) for column in columns], count)


def hash_rows(columns: Sequence[pa.Array], count: int) -> Int64s:
    """A hash for each of so many rows, of the bits of all values: rows that differ in a zero's sign differ."""
    return _hashed(columns, count).view(np.int64)


def hash_lists(columns: Sequence[pa.Array], owner: Int64s, nth: Int64s, count: int) -> Int64s:
    """A hash for each of so many rows, of the bits of all values that belong to it, in their order; NaN is like NaN.

    owner: for each line of the columns, rising, the row that it belongs to. nth: a number that tells it from the others
    of the row.
    """
    hashes = _mixed(_hashed([_with_one_nan(column) for column in columns], len(owner)) + nth.view(np.uint64))
    together = np.zeros(count, dtype=np.uint64)
    if len(owner):
        first = np.flatnonzero(np.append(True, owner[1:] != owner[:-1]))
        together[owner[first]] = np.add.reduceat(hashes, first)
    return together.view(np.int64)


def _with_one_nan(column: pa.Array) -> pa.Array:
    if not pa.types.is_floating(column.type):
        return column
    return pc.if_else(pc.is_nan(column), pa.scalar(float("nan"), column.type), column)


def _hashed(columns: Sequence[pa.Array], count: int) -> UInt64s:
    hashes = np.zeros(count, dtype=np.uint64)
    for column in columns:
        hashes = _mixed(hashes * np.uint64(31) + _hash_column(column))
    return hashes


def shards_of(columns: Sequence[pa.Array], count: int, shards: int) -> Int64s:
    """The number of the shard that each row's key is in."""
    return (hash_keys(columns, count) % np.uint64(shards)).astype(np.int64)


def _hash_column(column: pa.Array) -> UInt64s:
    bits = as_bits_or_null(column)
    if bits is not None:
        hashes = _mixed(bits.fill_null(0).to_numpy().astype(np.int64).view(np.uint64))
        return np.where(bits.is_null().to_numpy(zero_copy_only=False), np.uint64(_NULL), hashes)
    if pa.types.is_nested(column.type):
        column = pa.array([repr(value) for value in column.to_pylist()], pa.large_string())
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode("encode")
    values = encoded.dictionary.to_pylist()
    return np.array([_hash_value(value) for value in values], dtype=np.uint64)[integers(encoded.indices)]


def _hash_value(value: object) -> int:
    if value is None:
        return _NULL
    data = value if isinstance(value, bytes) else str(value).encode()
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "little")


def _mixed(values: UInt64s) -> UInt64s:
    """The finalizer of splitmix64: every bit of a value moves every bit of its hash."""
    values = values + np.uint64(_NULL)
    values = (values ^ (values >> np.uint64(30))) * _ONE
    values = (values ^ (values >> np.uint64(27))) * _TWO
    return values ^ (values >> np.uint64(31))
