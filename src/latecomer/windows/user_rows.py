"""What functions of users see of rows and give back: named tuples in, dicts or tuples out."""

from __future__ import annotations

import re
from collections import namedtuple
from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from functools import lru_cache, partial
from keyword import iskeyword
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa

from latecomer.codec import widened
from latecomer.errors import InputError, must
from latecomer.events import Int64s, Layout, take_rows
from latecomer.windows.fold_states import WRONG
from latecomer.windows.python_values import is_immutable, python_values

_SIMPLE = (int, float, str, bytes, bool, type(None))


@lru_cache(maxsize=64)
def row_type(names: tuple[str, ...]) -> Any:
    """The named tuple that user's functions see a row as."""
    for name in names:
        if not re.fullmatch(r"[A-Za-z]\w*", name) or iskeyword(name):
            advice = "rename it before (with_columns, select), or leave it out"
            raise InputError(must("columns of a fold", "be names of attributes (row.amount)", name, advice))
    return namedtuple("Row", names, rename=True)


class UserRows:
    """Rows as a user's function sees them; it may change what it gets as it likes."""

    def __init__(self, rows: pa.RecordBatch) -> None:
        self._rows, self._make = rows, partial(tuple.__new__, row_type(tuple(rows.schema.names)))

    def __iter__(self) -> Iterator[Any]:
        return map(self._make, zip(*map(python_values, self._rows.columns), strict=True))

    def row(self, place: int) -> Any:
        """One of them, as it was before a function changed it."""
        return next(iter(UserRows(self._rows.slice(place, 1))))


class UserOutputs:
    """What a user's function returns, as columns; they are copied at once where it could change them later."""

    def __init__(self, returns: pa.Schema, where: str) -> None:
        self._returns, self._where = returns, where
        self._names, self._width = returns.names, len(returns)
        self._odd = not all(is_immutable(field.type) for field in returns)
        self.careful = True  # until some are seen that are lists of tuples, and need no copy

    def taken(self, outputs: Iterable[Any]) -> list[tuple[Any, ...]]:
        """The outputs for one row, each with a value for every column."""
        given: list[Any] = outputs if type(outputs) is list else list(outputs)
        for output in given:
            if self._odd or type(output) is not tuple or len(output) != self._width:
                self._odd = self.careful = True
                return [self._tuple(output) for output in given]
        self.careful = self._odd or (self.careful and not given)
        return given

    def are_tuples(self, outputs: Sequence[Any]) -> bool:
        """Whether all outputs are what they should be; where not, each is to be taken by itself from now on."""
        if set(map(type, outputs)) <= {tuple} and set(map(len, outputs)) <= {self._width}:
            return True
        self._odd = self.careful = True
        return False

    def _tuple(self, output: Any) -> tuple[Any, ...]:
        if isinstance(output, dict):
            if set(output) != set(self._names):
                rule = f"have the columns {', '.join(self._names)}"
                raise InputError(must("an output", rule, list(output), "or change returns="))
            return tuple(_copied(output[name]) for name in self._names)
        if not isinstance(output, list | tuple) or len(output) != self._width:
            rule = f"be a dict or a tuple with {', '.join(self._names)}"
            raise InputError(must("an output", rule, output, "return a list of outputs, or change returns="))
        return tuple(map(_copied, output))

    def beside(self, rows: pa.RecordBatch, owner: Int64s, outputs: Sequence[tuple[Any, ...]]) -> pa.RecordBatch:
        """Outputs beside columns of the rows that they come from."""
        try:
            values = [list(map(itemgetter(place), outputs)) for place in range(self._width)]
            arrays = [_column(each, field.type) for each, field in zip(values, self._returns, strict=True)]
        except WRONG as error:
            rule = "return values of the types that it says it returns"
            raise InputError(must(self._where, rule, str(error), "change it, or returns=")) from error
        return self.columns_beside(rows, owner, arrays)

    def columns_beside(self, rows: pa.RecordBatch, owner: Int64s, columns: Sequence[pa.Array]) -> pa.RecordBatch:
        """Outputs that are columns by now, beside columns of the rows that they come from."""
        return joined(take_rows(rows, owner), columns, self._returns.names)


def joined(rows: pa.RecordBatch, columns: Sequence[pa.Array], names: Sequence[str]) -> pa.RecordBatch:
    """Rows with further columns."""
    further = widened(pa.RecordBatch.from_arrays(list(columns), names=list(names)))
    for name, column in zip(names, further.columns, strict=True):
        rows = rows.append_column(name, column)
    return rows


def key_and_time(rows: pa.RecordBatch, layout: Layout) -> pa.RecordBatch:
    """The columns that are added to what a function returns."""
    return rows.select(list(dict.fromkeys((*layout.key, layout.time))))


def check_not_added(columns: pa.Schema, returns: pa.Schema, layout: Layout, where: str) -> list[pa.Field]:
    """The key and the time, which are added to what a function returns; refuses one that returns them itself."""
    added = [columns.field(name) for name in dict.fromkeys((*layout.key, layout.time))]
    for each in returns:
        if each.name.lower() in {field.name.lower() for field in added}:
            advice = "leave it out: key and time are added by themselves"
            raise InputError(must(f"returns of {where}", "not have the key or the time", each.name, advice))
    return added


def owners(counts: Sequence[int]) -> Int64s:
    """For rows with so many outputs each, the place of the row of every output."""
    return np.repeat(np.arange(len(counts)), np.array(counts, dtype=np.int64))


def _copied(value: Any) -> Any:
    return value if isinstance(value, _SIMPLE) else deepcopy(value)


def _column(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """Values as a column; Arrow would cut what is behind the point where whole numbers are promised."""
    if pa.types.is_integer(kind) and not set(map(type, values)) <= {int, type(None)}:
        for each in values:
            if isinstance(each, float) and not each.is_integer():
                raise ValueError(f"a number with a fraction where {kind} was promised")
    return pa.array(values, kind)
