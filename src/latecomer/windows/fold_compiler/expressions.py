"""Expressions of a user's fold as generated code: those of which it is known that they give what Python gives."""

from __future__ import annotations

import ast
from functools import reduce

from latecomer.windows.fold_compiler.arithmetic import CALLS, compare, extreme, negative, operate, sign_of, whole
from latecomer.windows.fold_compiler.lines import Lines
from latecomer.windows.fold_compiler.names import Input, Names, meant
from latecomer.windows.fold_compiler.values import (
    ALWAYS,
    NEVER,
    Fields,
    Kind,
    NotCompiled,
    Outputs,
    Scalar,
    Text,
    Value,
)


class Expressions(Names):
    """Translates expressions, with the values that names have so far."""

    def scalar(self, node: ast.expr) -> Scalar:
        """The value of an expression that is a number, a truth value or None."""
        return meant(self.value(node), Scalar)

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
            truth = meant(self.lines.either(stops, lambda: known, unknown), Scalar).code
        return truth

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
        return compare(self.lines, sign_of(sign), meant(left, Scalar), right), right

    def _is_none(self, value: Value) -> str:
        if isinstance(value, Text):
            return self._read(Input(value.column, null=True)) if self.known.columns[value.column][1] else NEVER
        return meant(value, Scalar).null

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
        fields = meant(self.value(node.func.value), Fields)
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
            return meant(found, Outputs)
        if isinstance(node, ast.List | ast.Tuple):
            return Outputs(str(len(node.elts)), tuple(self.output(each) for each in node.elts))
        return meant(self.value(node), Outputs)

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
            return meant(self.value(node), Fields).items
        raise NotCompiled("an output that is no tuple of its columns")


def _opposite(lines: Lines, truth: str) -> str:
    return {ALWAYS: NEVER, NEVER: ALWAYS}.get(truth) or lines.let(f"not {truth}")


def _constant(node: ast.expr) -> ast.expr:
    known = node.operand if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) else node
    if not isinstance(known, ast.Constant) or known.value is None:
        raise NotCompiled("in, of something else than constants")
    return node
