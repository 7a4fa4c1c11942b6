"""Times in the columns of results, also inside structs and arrays: where they are, and how they are moved."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from datetime import date, datetime, timedelta
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from latecomer.spark.declare import quoted

TimePath = tuple[str, ...]  # names from a column to a part of it; EACH for the elements of an array
Move = Callable[[Column, Column, T.DataType], Column]
EACH = "*"
_TIMES = (T.TimestampType, T.TimestampNTZType, T.DateType)


def time_paths(kind: T.DataType, path: TimePath = ()) -> Iterator[tuple[TimePath, T.DataType]]:
    """All times and dates in a type; those in maps are left out."""
    if isinstance(kind, T.StructType):
        for field in kind.fields:
            yield from time_paths(field.dataType, (*path, field.name))
    elif isinstance(kind, T.ArrayType):
        yield from time_paths(kind.elementType, (*path, EACH))
    elif isinstance(kind, _TIMES):
        yield path, kind


def time_at(path: TimePath) -> Column:
    """The time at a path without arrays."""
    return F.col(".".join(quoted(name) for name in path))


def with_times_moved(schema: T.StructType, paths: Collection[TimePath], by_us: Column, move: Move) -> list[Column]:
    """All columns, with the times at these paths so much later."""
    columns = []
    for field in schema.fields:
        below = {path[1:] for path in paths if path[0] == field.name}
        column = F.col(quoted(field.name))
        moved = _moved(column, field.dataType, below, lambda time, kind: move(time, by_us, kind)) if below else column
        columns.append(moved.alias(field.name))
    return columns


def _moved(
    value: Column, kind: T.DataType, paths: Collection[TimePath], move: Callable[[Column, T.DataType], Column]
) -> Column:
    if () in paths:
        return move(value, kind)
    if isinstance(kind, T.ArrayType):
        below, element = {path[1:] for path in paths}, kind.elementType
        return F.transform(value, lambda each: _moved(each, element, below, move))
    assert isinstance(kind, T.StructType)
    for name in {path[0] for path in paths}:
        below = {path[1:] for path in paths if path[0] == name}
        value = value.withField(quoted(name), _moved(value.getField(name), kind[name].dataType, below, move))
    return value


def values_at(value: Any, path: TimePath) -> Iterator[Any]:
    """The values at a path of a value of Python's, without those that are null."""
    if value is None:
        return
    if not path:
        yield value
    elif path[0] == EACH:
        for each in value:
            yield from values_at(each, path[1:])
    else:
        yield from values_at(value[path[0]], path[1:])


def moved_value(value: Any, path: TimePath, by_us: int) -> Any:
    """The same value of Python's with the times at a path so much later."""
    if value is None:
        return None
    if not path:
        return later(value, by_us)
    if path[0] == EACH:
        return [moved_value(each, path[1:], by_us) for each in value]
    return {**value, path[0]: moved_value(value[path[0]], path[1:], by_us)}


def later(time: date | datetime, by_us: int) -> date | datetime:
    """A time, or a date, so much later."""
    return time + timedelta(microseconds=by_us)
