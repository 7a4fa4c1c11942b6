"""Columns as Python values, against Arrow's own, and copies of them."""

from __future__ import annotations

from copy import deepcopy
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from latecomer.windows.python_values import copy_of, python_values

NESTED = pa.list_(pa.struct([("a", pa.list_(pa.int64())), ("b", pa.binary())]))
COLUMNS = {
    "whole numbers": pa.array([1, None, -3]),
    "floats": pa.array([1.5, None, -0.0]),
    "texts": pa.array(["a", None, "ü"], pa.large_string()),
    "times": pa.array([0, None, -(10**15), 10**16]).view(pa.timestamp("us")),
    "no times": pa.array([None, None], pa.timestamp("us", "UTC")),
    "times in summer and winter": pa.array([1_700_000_000_000_000, None, 1_690_000_000_000_000]).view(
        pa.timestamp("us", "Europe/Berlin")
    ),
    "an hour twice": pa.array([1_698_539_400_000_000, 1_698_543_000_000_000]).view(pa.timestamp("us", "Europe/Berlin")),
    "times of an offset": pa.array([0, 10**15]).view(pa.timestamp("us", "+02:00")),
    "nanoseconds": pa.array([1, 2]).view(pa.timestamp("ns")),
    "dates": pa.array([date(2024, 2, 29), None]),
    "durations": pa.array([timedelta(seconds=1), None]),
    "decimals": pa.array([Decimal("1.50"), None]),
    "structs": pa.array([{"a": 1, "b": None}, None, {"a": None, "b": "x"}]),
    "empty structs": pa.array([{}, None], pa.struct([])),
    "lists": pa.array([[1, 2], None, [], [None]]),
    "long lists": pa.array([["a"], None, []], pa.large_list(pa.string())),
    "nested": pa.array([[{"a": [1], "b": b"x"}, None], None, [{"a": None, "b": None}]], NESTED),
    "maps": pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int64())),
    "dictionaries": pa.array(["a", "b", None]).dictionary_encode(),
    "nulls": pa.nulls(2),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_values_are_those_of_arrow(name: str) -> None:
    column = COLUMNS[name]
    for cut in (column, column.slice(1), column.slice(1, 1), column.slice(0, 0)):
        assert [(each, repr(each)) for each in python_values(cut)] == [(each, repr(each)) for each in cut.to_pylist()]


def test_times_that_python_does_not_know_are_refused_as_arrow_refuses_them() -> None:
    with pytest.raises((ValueError, OverflowError)):
        python_values(pa.array([2**62]).view(pa.timestamp("us")))


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pa.list_(pa.int64()), [1, 2]),
        (pa.struct([("a", pa.int64())]), {"a": 1}),
        (pa.struct([("a", pa.list_(pa.int64()))]), {"a": [1], "unknown": [2]}),
        (NESTED, [{"a": [1], "b": bytearray(b"x")}]),
        (NESTED, [{"a": (1, [2]), "b": None}, None]),
        (pa.map_(pa.string(), pa.list_(pa.int64())), [("a", [1])]),
        (pa.binary(), bytearray(b"x")),
    ],
)
def test_a_copy_shares_nothing_that_can_be_changed(kind: pa.DataType, value: Any) -> None:
    copy = copy_of(kind)(value)
    assert copy == value
    assert not _ids(copy) & _ids(value)


def _ids(value: Any) -> set[int]:
    """The identities of all that can be changed."""
    if isinstance(value, list | tuple):
        inner = set[int]().union(*map(_ids, value))
        return inner | {id(value)} if isinstance(value, list) else inner
    if isinstance(value, dict):
        return {id(value)}.union(*map(_ids, value.values()))
    return {id(value)} if isinstance(value, bytearray) else set()


def test_what_cannot_be_changed_is_not_copied() -> None:
    for kind, value in ((pa.int64(), 10**30), (pa.string(), "a" * 9), (pa.timestamp("us"), datetime(2024, 1, 1))):
        assert copy_of(kind)(value) is value
    assert deepcopy([1]) == copy_of(pa.list_(pa.int64()))([1])
