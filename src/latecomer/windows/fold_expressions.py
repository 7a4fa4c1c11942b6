"""Expressions of a user's fold as generated code: those of which it is known that they give what Python gives."""

from __future__ import annotations

import ast
from functools import reduce
from typing import NamedTuple, TypeVar

from latecomer.windows.fold_arithmetic import CALLS, compare, extreme, negative, operate, sign_of, whole
from latecomer.windows.fold_lines import Lines
from latecomer.windows.fold_values import (
    ALWAYS,
    NEVER,
    Fields,
    Kind,
    NotCompiled,
    Outputs,
    RowValue,
    Scalar,
    Text,
    Value,
)

V = TypeVar("V", bound=Value)
_MOST = 2**63
CONSTANTS = ("math.pi", "math.e", "math.tau", "math.inf")


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


class Expressions:
    """Translates expressions, with the values that names have so far."""

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

    def scalar(self, node: ast.expr) -> Scalar:
        """The value of an expression that is a number, a truth value or None."""
        return _meant(self.value(node), Scalar)

    def condition(self, node: ast.expr) -> str:
        """Whether the value of an expression is true."""
        if not isinstance(node, ast.BoolOp):
            return self.lines.truth(self.value(node))
        stops_at, rest = isinstance(node.op, ast.Or), node.values[1:]
        truth = self.condition(node.values[0])
        if rest:
            stops = truth if stops_at else _opposite(self.lines, truth)
            other = ast.BoolOp(node.op, rest)
            known, unknown = Scalar(Kind.BOOL, str(stops_at)), lambda: Scalar(Kind.BOOL, self.condition(other))
            truth = _meant(self.lines.either(stops, lambda: known, unknown), Scalar).code
        return truth

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
            if f"math.{node.attr}" not in CONSTANTS:
                raise NotCompiled(f"math.{node.attr}")
            return Scalar(Kind.FLOAT, f"math.{node.attr}")
        value = self.value(node.value)
        if isinstance(value, RowValue):
            return self._column(node.attr)
        fields = _meant(value, Fields)
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
        fields, place = _meant(self.value(node.value), Fields), node.slice
        sign = 1
        if isinstance(place, ast.UnaryOp) and isinstance(place.op, ast.USub):
            sign, place = -1, place.operand
        if not isinstance(place, ast.Constant) or type(place.value) is not int:
            raise NotCompiled("an index that is no constant")
        index = sign * place.value
        if not -len(fields.items) <= index < len(fields.items):
            raise NotCompiled("an index that is not there")
        return fields.items[index]

    def _Tuple(self, node: ast.Tuple) -> Fields:
        return Fields(tuple(self.scalar(each) for each in node.elts))

    def _BinOp(self, node: ast.BinOp) -> Scalar:
        return operate(self.lines, sign_of(node.op), self.scalar(node.left), self.scalar(node.right))

    def _UnaryOp(self, node: ast.UnaryOp) -> Scalar:
        if isinstance(node.op, ast.Not):
            return Scalar(Kind.BOOL, _opposite(self.lines, self.condition(node.operand)))
        value = self.scalar(node.operand)
        if isinstance(node.op, ast.USub):
            if isinstance(node.operand, ast.Constant) and value.kind in (Kind.INT, Kind.FLOAT):
                return value._replace(code=f"(-{value.code})")
            return negative(self.lines, value)
        if isinstance(node.op, ast.UAdd):
            return whole(self.lines, self.lines.some(value))
        raise NotCompiled("the operator ~")

    def _IfExp(self, node: ast.IfExp) -> Value:
        truth = self.condition(node.test)
        return self.lines.either(truth, lambda: self.value(node.body), lambda: self.value(node.orelse))

    def _BoolOp(self, node: ast.BoolOp) -> Value:
        return self._chosen(node.values, stops_at=isinstance(node.op, ast.Or))

    def _chosen(self, nodes: list[ast.expr], *, stops_at: bool) -> Value:
        """The first value that is true (of `or`), or that is not (of `and`); else the last."""
        value = self.value(nodes[0])
        if len(nodes) == 1:
            return value
        truth, rest = self.lines.truth(value), nodes[1:]
        stops = truth if stops_at else _opposite(self.lines, truth)
        return self.lines.either(stops, lambda: value, lambda: self._chosen(rest, stops_at=stops_at))

    def _Compare(self, node: ast.Compare) -> Value:
        operands = [node.left, *node.comparators]
        return self._compared(self.value(node.left), operands[1:], node.ops)

    def _compared(self, left: Value, operands: list[ast.expr], signs: list[ast.cmpop]) -> Value:
        """A chain of comparisons, of which all must hold."""
        true, right = self._holds(left, signs[0], operands[0])
        if len(signs) == 1:
            return Scalar(Kind.BOOL, true)
        if right is None:
            raise NotCompiled("a chain of comparisons of something else than numbers")
        return self.lines.either(
            true, lambda: self._compared(right, operands[1:], signs[1:]), lambda: Scalar(Kind.BOOL, NEVER)
        )

    def _holds(self, left: Value, sign: ast.cmpop, operand: ast.expr) -> tuple[str, Value | None]:
        """Whether a comparison holds, and the value on its right."""
        if isinstance(sign, ast.Is | ast.IsNot):
            if not isinstance(operand, ast.Constant) or operand.value is not None:
                raise NotCompiled("is, of something else than None")
            null = self._is_none(left)
            return (null if isinstance(sign, ast.Is) else _opposite(self.lines, null)), None
        if isinstance(sign, ast.In | ast.NotIn):
            found = self._is_in(left, operand)
            return (found if isinstance(sign, ast.In) else _opposite(self.lines, found)), None
        if isinstance(left, Text):
            same = self._is_text(left, operand)
            if not isinstance(sign, ast.Eq | ast.NotEq):
                raise NotCompiled("the order of texts")
            return (same if isinstance(sign, ast.Eq) else _opposite(self.lines, same)), None
        right = self.scalar(operand)
        return compare(self.lines, sign_of(sign), _meant(left, Scalar), right), right

    def _is_none(self, value: Value) -> str:
        if isinstance(value, Text):
            return self._read(Input(value.column, null=True)) if self.known.columns[value.column][1] else NEVER
        return _meant(value, Scalar).null

    def _is_in(self, left: Value, operand: ast.expr) -> str:
        if not isinstance(operand, ast.Tuple | ast.List | ast.Set) or not operand.elts:
            raise NotCompiled("in, of something else than constants")
        tests = [self._holds(left, ast.Eq(), _constant(each))[0] for each in operand.elts]
        return self.lines.let(" or ".join(tests))

    def _is_text(self, left: Text, operand: ast.expr) -> str:
        if not isinstance(operand, ast.Constant) or type(operand.value) is not str:
            raise NotCompiled("a text beside something else than a constant text")
        if not operand.value.isprintable():
            raise NotCompiled("a text that is not plain")
        return self._read(Input(left.column, text=operand.value))

    def _Call(self, node: ast.Call) -> Value:
        name = self._called(node.func)
        if name == "state":
            return self._state(node)
        if name == "_replace":
            return self._replaced(node)
        if node.keywords or any(isinstance(each, ast.Starred) for each in node.args):
            raise NotCompiled(f"{name} with arguments by name")
        values = [self.lines.some(self.scalar(each)) for each in node.args]
        if name in ("min", "max") and len(values) > 1:
            sign = ">" if name == "max" else "<"
            return reduce(lambda one, other: extreme(self.lines, sign, one, other), values)
        if name in CALLS and len(values) == 1:
            return CALLS[name](self.lines, values[0])
        raise NotCompiled(f"{name} of {len(values)} values")

    def _called(self, node: ast.expr) -> str:
        if isinstance(node, ast.Name) and node.id not in self.local:
            name = self.known.free.get(node.id)
            if isinstance(name, str):
                return name
        if isinstance(node, ast.Attribute):
            return f"math.{node.attr}" if self._is_free(node.value, "math") else node.attr
        raise NotCompiled("a call of another function")

    def _state(self, node: ast.Call) -> Fields:
        """A state made by its class."""
        names, count = self.known.fields or (), len(node.args) + len(node.keywords)
        given: dict[str | None, ast.expr] = dict(zip(names, node.args, strict=False))
        given.update({each.arg: each.value for each in node.keywords})
        if count != len(names) or set(given) != set(names):
            raise NotCompiled("a state without all of its fields")
        return Fields(tuple(self.scalar(given[name]) for name in names), names)

    def _replaced(self, node: ast.Call) -> Fields:
        assert isinstance(node.func, ast.Attribute)
        fields = _meant(self.value(node.func.value), Fields)
        given = {each.arg: each.value for each in node.keywords}
        if node.args or not fields.names or not set(given) <= set(fields.names):
            raise NotCompiled("a state with other fields")
        pairs = zip(fields.names, fields.items, strict=True)
        return fields._replace(items=tuple(self.scalar(given[name]) if name in given else old for name, old in pairs))

    def outputs(self, node: ast.expr) -> Outputs:
        """The value of an expression that is a list of outputs."""
        if isinstance(node, ast.IfExp):
            truth = self.condition(node.test)
            found = self.lines.either(truth, lambda: self.outputs(node.body), lambda: self.outputs(node.orelse))
            return _meant(found, Outputs)
        if isinstance(node, ast.List | ast.Tuple):
            return Outputs(str(len(node.elts)), tuple(self.output(each) for each in node.elts))
        return _meant(self.value(node), Outputs)

    def output(self, node: ast.expr) -> tuple[Scalar, ...]:
        """The values of one output, in the order of the columns."""
        names = self.known.outputs
        if isinstance(node, ast.Dict):
            keys = [each.value if isinstance(each, ast.Constant) else None for each in node.keys]
            if sorted(map(repr, keys)) != sorted(map(repr, names)):
                raise NotCompiled("an output with other columns")
            by_name = dict(zip(keys, map(self.scalar, node.values), strict=True))
            return tuple(by_name[name] for name in names)
        if isinstance(node, ast.Tuple) and len(node.elts) == len(names):
            return _meant(self.value(node), Fields).items
        raise NotCompiled("an output that is no tuple of its columns")


def _meant(value: Value, kind: type[V]) -> V:
    if not isinstance(value, kind):
        raise NotCompiled(f"{type(value).__name__} where {kind.__name__} is meant")
    return value


def _opposite(lines: Lines, truth: str) -> str:
    return {ALWAYS: NEVER, NEVER: ALWAYS}.get(truth) or lines.let(f"not {truth}")


def _constant(node: ast.expr) -> ast.expr:
    known = node.operand if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) else node
    if not isinstance(known, ast.Constant) or known.value is None:
        raise NotCompiled("in, of something else than constants")
    return node
