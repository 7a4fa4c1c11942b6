"""The states of a user's fold: values of an Arrow type, or tuples of the fields of a struct.

Invariants
1. A state is kept as it is: what its type would change is refused, and a number of another kind that is equal becomes
   one of its type before the function sees it again. So it does not matter which states are kept, and when.
2. Nobody else can change a state that is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from functools import cached_property
from typing import Any

import pyarrow as pa

from latecomer.errors import InputError, must
from latecomer.windows.python_values import Copy, copy_of, is_immutable, python_values

WRONG = (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, ValueError, OverflowError)
_KINDS = (
    (pa.types.is_boolean, bool),
    (pa.types.is_integer, int),
    (pa.types.is_floating, float),
    (pa.types.is_decimal, Decimal),
    (pa.types.is_timestamp, datetime),
    (pa.types.is_date, date),
    (pa.types.is_string, str),
    (pa.types.is_large_string, str),
    (pa.types.is_binary, bytes),
    (pa.types.is_large_binary, bytes),
    (pa.types.is_struct, dict),
    (pa.types.is_list, list),
    (pa.types.is_large_list, list),
)


@dataclass(frozen=True)
class FoldStates:
    """How the states of one fold are kept; shape: their class, where they are tuples."""

    fold: str
    type: pa.DataType
    shape: type[tuple[Any, ...]] | None = None

    @classmethod
    def like(cls, fold: str, kind: pa.DataType, initial: Any) -> FoldStates:
        """States like the initial one, which is refused where its type does not keep it."""
        shape = type(initial) if isinstance(initial, tuple) and pa.types.is_struct(kind) else None
        states = cls(fold, kind, shape)
        names = getattr(shape, "_fields", None)
        if names is not None and list(names) != [field.name for field in kind]:
            raise states._refusal(initial, "name the fields of the struct as those of the tuple")
        states.array([states.normal(initial)])
        return states

    @cached_property
    def kind(self) -> type:
        """The class of a state."""
        return self.shape or _kind_of(self.type)

    @cached_property
    def kinds(self) -> tuple[type, ...]:
        """The classes of the fields of a state that is a tuple."""
        return tuple(_kind_of(field.type) for field in self.type) if self.shape is not None else ()

    @cached_property
    def immutable(self) -> bool:
        """Whether a function cannot change a state in place."""
        return all(map(is_immutable, self._types))

    @cached_property
    def copy(self) -> Copy:
        """Copies a state that a function can change in place."""
        return copy_of(self.type)

    @cached_property
    def _types(self) -> list[pa.DataType]:
        return [self.type] if self.shape is None else [field.type for field in self.type]

    def is_normal(self, state: Any) -> bool:
        """Whether a state is of the class of its type, and so are its fields."""
        if self.kind is object:
            return True
        return type(state) is self.kind and (not self.kinds or tuple(map(type, state)) == self.kinds)

    def normal(self, state: Any) -> Any:
        """A state as it comes back when it was kept; refuses what does not."""
        if self.shape is None:
            return state if state is None or self.is_normal(state) else self._kept([state], self.type)[0]
        if not isinstance(state, tuple) or len(state) != len(self._types):
            raise self._refusal(state, f"return a tuple of {len(self._types)} values, as the first state is one")
        fields = [self._kept([value], kind)[0] for value, kind in zip(state, self._types, strict=True)]
        return self._made(fields)

    def _made(self, fields: Any) -> Any:
        shape = self.shape or tuple
        return getattr(shape, "_make", shape)(fields)

    def array(self, states: Sequence[Any]) -> pa.StructArray:
        """States as they are kept: a struct, so that a null is no state at all."""
        if self.shape is None:
            return self.of_columns([self._column(states, self.type)])
        columns = [[state[place] for state in states] for place in range(len(self._types))]
        return self.of_columns([self._column(each, kind) for each, kind in zip(columns, self._types, strict=True)])

    def of_columns(self, columns: Sequence[pa.Array]) -> pa.StructArray:
        """States whose fields are columns by now, as they are kept."""
        tuples = self.shape is not None
        values = pa.StructArray.from_arrays(list(columns), fields=list(self.type)) if tuples else columns[0]
        return pa.StructArray.from_arrays([values], names=["state"])

    def values(self, column: pa.StructArray) -> list[Any]:
        """States that were kept, as the function sees them, whatever stands where there was none."""
        kept = column.field(0)
        if self.shape is None:
            return python_values(kept)
        fields = [python_values(kept.field(place)) for place in range(len(self._types))]
        return [self._made(each) for each in zip(*fields, strict=True)]

    def _column(self, values: Sequence[Any], kind: pa.DataType) -> pa.Array:
        array, kept = self._array(values, kind)
        if kept != list(values):
            _same(self, kept, values)
        return array

    def _kept(self, values: Sequence[Any], kind: pa.DataType) -> list[Any]:
        _, kept = self._array(values, kind)
        _same(self, kept, values)
        return kept

    def _array(self, values: Sequence[Any], kind: pa.DataType) -> tuple[pa.Array, list[Any]]:
        try:
            array = pa.array(values, kind)
        except WRONG as error:
            raise self._refusal(str(error), "change the type or the fold") from error
        return array, python_values(array)

    def _refusal(self, got: object, advice: str) -> InputError:
        return InputError(must(f"state of fold {self.fold}", f"be kept as it is by its type, {self.type}", got, advice))


def _same(states: FoldStates, kept: Sequence[Any], values: Sequence[Any]) -> None:
    """Refuse states that come back as others."""
    for after, before in zip(kept, values, strict=True):
        if after != before and repr(after) != repr(before):  # the first is false of NaN
            advice = f"it comes back as {after!r}: give every field of a struct, lists for tuples, a wider type"
            raise states._refusal(before, advice)


def _kind_of(kind: pa.DataType) -> type:
    return next((found for asked, found in _KINDS if asked(kind)), object)
