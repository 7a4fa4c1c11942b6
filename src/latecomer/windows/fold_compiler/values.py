"""What a compiled fold works on: values whose kind is known before it runs, as names in generated code.

Invariants
1. A value that is null has the code of a zero.
2. A NUMBER is a float, or a whole number that a float holds: Python would know which, and no result depends on it.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple, TypeAlias

import pyarrow as pa

NEVER, ALWAYS = "False", "True"


class Kind(Enum):
    """What a value is in Python."""

    BOOL = "bool"
    INT = "int"
    FLOAT = "float"
    NUMBER = "number"
    NONE = "none"
    TEXT = "text"

    @property
    def zero(self) -> str:
        """Its zero, as code."""
        return {"bool": "False", "int": "0"}.get(self.value, "0.0")


class NotCompiled(Exception):
    """A function does what is not translated: it runs as Python."""


class Scalar(NamedTuple):
    """One value: its code is a name or a literal, and so is whether it is None."""

    kind: Kind
    code: str
    null: str = NEVER


class Fields(NamedTuple):
    """A tuple of values, perhaps a named one."""

    items: tuple[Scalar, ...]
    names: tuple[str, ...] = ()


class Outputs(NamedTuple):
    """A list of outputs, of which the first `size` are there."""

    size: str
    rows: tuple[tuple[Scalar, ...], ...]


class Text(NamedTuple):
    """The value of a column of text: it can be compared with constants."""

    column: str


class RowValue(NamedTuple):
    """The row."""


Value: TypeAlias = Scalar | Fields | Outputs | Text | RowValue


def kind_of(kind: pa.DataType) -> Kind | None:
    """What values of an Arrow type are in Python, where a fold can be compiled for them."""
    if pa.types.is_boolean(kind):
        return Kind.BOOL
    if pa.types.is_integer(kind) and kind != pa.uint64():
        return Kind.INT
    if pa.types.is_float64(kind):
        return Kind.FLOAT
    return Kind.TEXT if pa.types.is_string(kind) or pa.types.is_large_string(kind) else None
