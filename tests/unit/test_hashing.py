"""Hashes of rows and of lists of rows."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from latecomer.windows.hashing import hash_lists

OTHER_NAN = struct.unpack("<d", b"\x01\x00\x00\x00\x00\x00\xf8\xff")[0]


def hashed(*lists: list[Any], kind: pa.DataType | None = None) -> list[int]:
    """A hash for each list of values."""
    values = pa.array([value for each in lists for value in each], kind)
    owner = np.repeat(np.arange(len(lists)), [len(each) for each in lists])
    nth = np.array([number for each in lists for number in range(len(each))], dtype=np.int64)
    return [int(each) for each in hash_lists([values], owner, nth, len(lists))]


@pytest.mark.parametrize(
    ("lists", "kind"),
    [
        ([[1.0], [-0.0], [0.0], [None], [float("nan")], [], [1.0, 1.0], [1.0, 2.0], [2.0, 1.0]], pa.float64()),
        ([[1], [2], [None], [1, None], [None, 1], [0], [0, 0], [0, 0, 0], []], pa.int32()),
        ([[True], [False], [None], [True, False], [False, True]], pa.bool_()),
        ([["a"], ["b"], ["ab"], [""], [None], ["a", "b"], ["b", "a"]], pa.string()),
        ([[[1]], [[2]], [[]], [None], [[1], [2]], [[1, 2]]], pa.list_(pa.int64())),
    ],
)
def test_lists_that_differ_have_other_hashes(lists: list[list[Any]], kind: pa.DataType) -> None:
    found = hashed(*lists, kind=kind)
    assert len(set(found)) == len(lists)
    assert hashed(*reversed(lists), kind=kind) == found[::-1]


def test_nan_is_like_nan_whatever_its_bits() -> None:
    one, other = (pa.array(np.array([value])) for value in (float("nan"), OTHER_NAN))
    assert one.view(pa.int64()) != other.view(pa.int64())
    zero = np.zeros(1, dtype=np.int64)
    assert hash_lists([one], zero, zero, 1) == hash_lists([other], zero, zero, 1)


def test_a_row_without_values_has_the_hash_zero() -> None:
    assert hashed([], [1], []) == [0, hashed([1])[0], 0]
