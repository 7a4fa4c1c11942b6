"""Columns as the values that Python functions see: what Arrow's `to_pylist` gives, faster where it is slow."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from datetime import datetime
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from latecomer.events import int64_view

Copy = Callable[[Any], Any]
_FIRST_US, _LAST_US = (
    (each - datetime(1970, 1, 1)) // datetime.resolution for each in (datetime(1, 1, 3), datetime(9999, 12, 29))
)

_CERTAIN = (
    pa.types.is_boolean,
    pa.types.is_integer,
    pa.types.is_float64,
    pa.types.is_float32,
    pa.types.is_decimal,
    pa.types.is_null,
    pa.types.is_binary,
    pa.types.is_large_binary,
)


def python_values(column: pa.Array) -> list[Any]:
    """The values of a column, null as None."""
    kind = column.type
    if pa.types.is_struct(kind):
        return _dicts(column)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _lists(column)
    if pa.types.is_timestamp(kind) and kind.unit == "us" and len(column) and _has_datetimes(column):
        return _datetimes(column)
    values: list[Any] = column.to_pylist()
    return values


def has_python_values(column: pa.Array) -> bool:
    """Whether it is certain, and was found out without making them, that all values of a column can be made."""
    kind = column.type
    if pa.types.is_struct(kind):
        return all(has_python_values(column.field(number)) for number in range(kind.num_fields))
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _is_text(column)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return has_python_values(column.flatten())
    if pa.types.is_timestamp(kind) and kind.unit == "us" and kind.tz in (None, "UTC"):
        return len(column) == 0 or _has_datetimes(column)
    return any(asked(kind) for asked in _CERTAIN)


def _is_text(column: pa.Array) -> bool:
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _dicts(column: pa.StructArray) -> list[Any]:
    names = [field.name for field in column.type]
    if len(set(names)) < len(names) or not names:
        values: list[Any] = column.to_pylist()
        return values
    children = [python_values(column.field(number)) for number in range(len(names))]
    found: list[Any] = [dict(zip(names, values, strict=True)) for values in zip(*children, strict=True)]
    return with_none(found, column)


def _lists(column: pa.Array) -> list[Any]:
    offsets = column.offsets.to_numpy()
    values = python_values(column.values.slice(offsets[0], offsets[-1] - offsets[0]))
    bounds = (offsets - offsets[0]).tolist()
    found: list[Any] = [values[start:stop] for start, stop in pairwise(bounds)]
    return with_none(found, column)


def with_none(values: list[Any], column: pa.Array) -> list[Any]:
    """Values of a column, None where it has nulls; in place."""
    if column.null_count:
        for place in np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False)).tolist():
            values[place] = None
    return values


def _has_datetimes(column: pa.Array) -> bool:
    """Whether Python's datetime reaches all times, in whatever zone."""
    times_us = int64_view(column.drop_null())
    return len(times_us) == 0 or bool(times_us.min() >= _FIRST_US and times_us.max() <= _LAST_US)


def _datetimes(column: pa.Array) -> list[Any]:
    naive: list[Any] = column.view(pa.timestamp("us")).to_numpy(zero_copy_only=False).tolist()
    if column.type.tz is None:
        return naive
    zone = pa.lib.string_to_tzinfo(column.type.tz)
    return [None if each is None else zone.fromutc(each.replace(tzinfo=zone)) for each in naive]


def is_immutable(kind: pa.DataType) -> bool:
    """Whether the values of a type are ones that nobody can change; of bytes there is a kind that can be."""
    return not (
        pa.types.is_nested(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_fixed_size_binary(kind)
        or pa.types.is_dictionary(kind)
    )


def copy_of(kind: pa.DataType) -> Copy:
    """A function that copies values of a type, and all that they hold."""
    if is_immutable(kind):
        return _same
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _list_copy(kind.value_type)
    return _dict_copy({field.name: copy_of(field.type) for field in kind}) if pa.types.is_struct(kind) else deepcopy


def _same(value: Any) -> Any:
    return value


def _list_copy(kind: pa.DataType) -> Copy:
    copy = copy_of(kind)
    if copy is _same:
        return lambda value: value[:] if type(value) is list else deepcopy(value)
    return lambda value: [copy(each) for each in value] if type(value) is list else deepcopy(value)


def _dict_copy(copies: dict[str, Copy]) -> Copy:
    if all(copy is _same for copy in copies.values()):
        return lambda value: dict(value) if type(value) is dict else deepcopy(value)

    def copied(value: Any) -> Any:
        if type(value) is not dict:
            return deepcopy(value)
        return {name: copies.get(name, deepcopy)(each) for name, each in value.items()}

    return copied
