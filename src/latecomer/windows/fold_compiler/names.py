"""What names mean in a user's fold: constants, columns of the row, fields of the state, numbers from outside."""

from __future__ import annotations

import ast
from typing import NamedTuple, TypeVar

from latecomer.windows.fold_compiler.lines import Lines
from latecomer.windows.fold_compiler.values import (
    ALWAYS,
    NEVER,
    Fields,
    Kind,
    NotCompiled,
    RowValue,
    Scalar,
    Text,
    Value,
)

V = TypeVar("V", bound=Value)
_MOST = 2**63
_CONSTANTS = ("math.pi", "math.e", "math.tau", "math.inf")


class Input(NamedTuple):
    """An array that a compiled fold reads: a column, whether it is null, or whether it is a certain text."""

    column: str
    null: bool = False
    text: str | None = None


class Known(NamedTuple):
    """What is known before a fold runs.

    columns: the kind of each column that it may read, and whether there are nulls. free: what its other names are:
    the kind of a number, the name of a built-in function, `math`, or `state` for the class of its states.
    fields: the names of the fields of a state that is a tuple, where they have some. outputs: the names of the columns.
    """

    columns: dict[str, tuple[Kind | None, bool]]
    free: dict[str, Kind | str]
    fields: tuple[str, ...] | None
    outputs: tuple[str, ...]


class Names:
    """The values that names have so far, and the arrays that were read for them."""

    def __init__(self, known: Known, values: dict[str, Value], local: tuple[str, ...]) -> None:
        self.lines, self.known, self.values, self.local = Lines(), known, values, local
        self.inputs: dict[Input, str] = {}

    def value(self, node: ast.expr) -> Value:
        """The value of an expression."""
        translate = getattr(self, f"_{type(node).__name__}", None)
        if translate is None:
            raise NotCompiled(f"an expression of the kind {type(node).__name__}")
        found: Value = translate(node)
        return found

    def _Constant(self, node: ast.Constant) -> Scalar:
        value = node.value
        if value is None:
            return Scalar(Kind.NONE, "0", ALWAYS)
        if type(value) is bool:
            return Scalar(Kind.BOOL, str(value))
        if type(value) is int and value < _MOST:
            return Scalar(Kind.INT, str(value))
        if type(value) is float and value < float("inf"):
            return Scalar(Kind.FLOAT, repr(value))
        raise NotCompiled(f"the constant {value!r}")

    def _Name(self, node: ast.Name) -> Value:
        if node.id in self.values:
            return self.values[node.id]
        kind = self.known.free.get(node.id)
        if node.id in self.local or not isinstance(kind, Kind):
            raise NotCompiled(f"the name {node.id}")
        return Scalar(kind, f"p_{node.id}")

    def _Attribute(self, node: ast.Attribute) -> Value:
        if self._is_free(node.value, "math"):
            if f"math.{node.attr}" not in _CONSTANTS:
                raise NotCompiled(f"math.{node.attr}")
            return Scalar(Kind.FLOAT, f"math.{node.attr}")
        value = self.value(node.value)
        if isinstance(value, RowValue):
            return self._column(node.attr)
        fields = meant(value, Fields)
        if node.attr not in fields.names:
            raise NotCompiled(f"the attribute {node.attr}")
        return fields.items[fields.names.index(node.attr)]

    def _is_free(self, node: ast.expr, what: str) -> bool:
        return isinstance(node, ast.Name) and node.id not in self.local and self.known.free.get(node.id) == what

    def _column(self, name: str) -> Value:
        kind, nulls = self.known.columns.get(name, (None, False))
        if kind is None:
            raise NotCompiled(f"the column {name}")
        if kind is Kind.TEXT:
            return Text(name)
        null = self._read(Input(name, null=True)) if nulls else NEVER
        return Scalar(kind, self._read(Input(name)), null)

    def _read(self, wanted: Input) -> str:
        array = self.inputs.setdefault(wanted, f"c{len(self.inputs)}")
        return self.lines.let(f"{array}[i]")

    def _Subscript(self, node: ast.Subscript) -> Scalar:
        fields, place = meant(self.value(node.value), Fields), node.slice
        sign = 1
        if isinstance(place, ast.UnaryOp) and isinstance(place.op, ast.USub):
            sign, place = -1, place.operand
        if not isinstance(place, ast.Constant) or type(place.value) is not int:
            raise NotCompiled("an index that is no constant")
        index = sign * place.value
        if not -len(fields.items) <= index < len(fields.items):
            raise NotCompiled("an index that is not there")
        return fields.items[index]


def meant(value: Value, kind: type[V]) -> V:
    """A value that must be of a kind."""
    if not isinstance(value, kind):
        raise NotCompiled(f"{type(value).__name__} where {kind.__name__} is meant")
    return value
