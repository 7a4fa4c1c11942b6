"""A user's fold as the text of a kernel: its statements, in a loop over the rows of every stretch.

Invariants
1. A row for which Python would raise, or of which it is not sure that the kernel does what Python does, is bad: its
   stretch is marked and leaves nothing.
2. What a return gives is written before the state changes, which may be part of it.
"""

from __future__ import annotations

import ast

import numpy as np
import pyarrow as pa

from latecomer.windows.fold_compiler.expressions import Expressions
from latecomer.windows.fold_compiler.names import Known
from latecomer.windows.fold_compiler.program import Program, Slot, arguments_of, kernel_text
from latecomer.windows.fold_compiler.source import Definition
from latecomer.windows.fold_compiler.values import (
    ALWAYS,
    NEVER,
    Fields,
    Kind,
    NotCompiled,
    Outputs,
    RowValue,
    Scalar,
    Value,
    kind_of,
)

MOST_OUTPUTS = 16


def translate(definition: Definition, known: Known, state: tuple[Slot, ...], outputs: tuple[Slot, ...]) -> Program:
    """The program of a fold; raises where it cannot be one."""
    while True:
        statements = _Statements(definition, known, state, outputs)
        statements.follow()
        found = statements.state, statements.outputs
        if found == (state, outputs):
            inputs = tuple(statements.says.inputs)
            text = kernel_text(statements.lines.lines, arguments_of(known, len(inputs), state, outputs), state)
            return Program(text, inputs, state, outputs, max(1, statements.most))
        state, outputs = found  # one of them may be None after all


class _Statements:
    def __init__(
        self, definition: Definition, known: Known, state: tuple[Slot, ...], outputs: tuple[Slot, ...]
    ) -> None:
        arguments = definition.args
        if len(arguments.args) != 2 or arguments.posonlyargs or arguments.kwonlyargs or arguments.vararg:
            raise NotCompiled("arguments that are not a state and a row")
        if any(isinstance(node, ast.Global | ast.Nonlocal) for node in ast.walk(definition)):
            raise NotCompiled("a name outside that it changes")
        first, second = (each.arg for each in arguments.args)
        self._body, self.state, self.outputs, self.most = definition.body, state, outputs, 0
        values: dict[str, Value] = {first: _state_value(state, known.fields), second: RowValue()}
        stored = (node.id for node in ast.walk(definition) if isinstance(node, ast.Name) and _is_stored(node))
        self.says = Expressions(known, values, (first, second, *stored))
        self.lines = self.says.lines

    def follow(self) -> None:
        """Translate the body."""
        if isinstance(self._body, ast.expr):
            self._give(self._body)
        elif self._run(self._body):
            self._fail()

    def _run(self, body: list[ast.stmt]) -> bool:
        """Translate statements; whether what follows them is reached."""
        return all(self._statement(each) for each in body)

    def _statement(self, node: ast.stmt) -> bool:
        match node:
            case ast.Pass() | ast.Expr(value=ast.Constant()):
                return True
            case ast.Raise():
                return self._fail()
            case ast.Return(value=ast.expr() as value):
                return self._give(value)
            case ast.If():
                return self._if(node)
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append"), args=[output])):
                return self._append(name, output, node.value)
            case _:
                return self._assign(node)

    def _fail(self) -> bool:
        self.lines.put("bad = True")
        self.lines.put("continue")
        return False

    def _assign(self, node: ast.stmt) -> bool:
        match node:
            case ast.Assign(targets=targets, value=value):
                found = self._value(value)
                if len(targets) > 1 and isinstance(found, Outputs):
                    raise NotCompiled("a list with two names")
                for target in targets:
                    self._put(target, found)
            case ast.AnnAssign(target=ast.Name() as target, value=ast.expr() as value):
                self._put(target, self._value(value))
            case ast.AugAssign(target=ast.Name(id=name) as target, op=op, value=value):
                both = ast.BinOp(ast.Name(name, ast.Load()), op, value)
                self._put(target, self.says.value(both))
            case _:
                raise NotCompiled(f"a statement of the kind {type(node).__name__}")
        return True

    def _value(self, node: ast.expr) -> Value:
        if _is_list(node):
            return self.says.outputs(node)
        found = self.says.value(node)
        if isinstance(found, Outputs):
            raise NotCompiled("a list with two names")
        return found

    def _put(self, target: ast.expr, value: Value) -> None:
        match target:
            case ast.Name(id=name):
                self.says.values[name] = value
            case ast.Tuple(elts=names) | ast.List(elts=names) if isinstance(value, Fields):
                if len(names) != len(value.items) or not all(isinstance(each, ast.Name) for each in names):
                    raise NotCompiled("names for the fields of a tuple that are not as many")
                for each, item in zip(names, value.items, strict=True):
                    self._put(each, item)
            case _:
                raise NotCompiled("an assignment to something else than a name")

    def _append(self, name: str, output: ast.expr, call: ast.expr) -> bool:
        value = self.says.values.get(name)
        if not isinstance(value, Outputs) or (isinstance(call, ast.Call) and call.keywords):
            raise NotCompiled("append to something else than a list of outputs")
        row = self.says.output(output)
        if value.size.isdecimal():
            self.says.values[name] = Outputs(str(int(value.size) + 1), (*value.rows, row))
            return True
        rows = [*value.rows, tuple(Scalar(each.kind, each.kind.zero) for each in row)]
        for place, old in enumerate(rows):
            here = self.lines.let(f"{value.size} == {place}")
            rows[place] = self._either(here, row, old)
        self.says.values[name] = Outputs(self.lines.let(f"{value.size} + 1"), tuple(rows))
        return True

    def _either(self, truth: str, one: tuple[Scalar, ...], other: tuple[Scalar, ...]) -> tuple[Scalar, ...]:
        found = self.lines.either(truth, lambda: Fields(one), lambda: Fields(other))
        assert isinstance(found, Fields)
        return found.items

    def _if(self, node: ast.If) -> bool:
        truth = self.says.condition(node.test)
        if truth in (ALWAYS, NEVER):
            return self._run(node.body if truth == ALWAYS else node.orelse)
        before = self.says.values
        self.says.values = dict(before)
        with self.lines.block() as one:
            goes_on = self._run(node.body)
        first, self.says.values = self.says.values, dict(before)
        with self.lines.block() as other:
            other_goes_on = self._run(node.orelse)
        if goes_on and other_goes_on:
            self.says.values = self._joined((first, one), (self.says.values, other))
        elif goes_on:
            self.says.values = first
        self.lines.branch(truth, one, other)
        return goes_on or other_goes_on

    def _joined(
        self, one: tuple[dict[str, Value], list[str]], other: tuple[dict[str, Value], list[str]]
    ) -> dict[str, Value]:
        """What names are after two branches; one of two kinds, or that only one branch knows, is not known."""
        joined: dict[str, Value] = {}
        for name in one[0].keys() & other[0].keys():
            try:
                joined[name] = self.lines.join((one[0][name], one[1]), (other[0][name], other[1]))
            except NotCompiled:
                continue
        return joined

    def _give(self, node: ast.expr) -> bool:
        """Translate what a function returns: the state and the outputs."""
        match node:
            case ast.IfExp(test=test, body=body, orelse=orelse):
                choice = ast.If(test, [ast.Return(body)], [ast.Return(orelse)])
                return self._if(choice)
            case ast.Tuple(elts=[state, outputs]):
                after = self._fitted_state(self.says.value(state))
                self._write(self.says.outputs(outputs))
                for place, value in enumerate(after):
                    self.lines.put(f"s{place} = {value.code}")
                    if self.state[place].nullable:
                        self.lines.put(f"sn{place} = {value.null}")
                self.lines.put("continue")
                return False
            case _:
                raise NotCompiled("a result that is not written as a state and outputs")

    def _fitted_state(self, value: Value) -> list[Scalar]:
        alone = self.says.known.fields is None
        items = (value,) if isinstance(value, Scalar) else value.items if isinstance(value, Fields) else ()
        if len(items) != len(self.state) or alone != isinstance(value, Scalar):
            raise NotCompiled("a state of another shape")
        fitted = [self._fitted(item, slot) for item, slot in zip(items, self.state, strict=True)]
        self.state = _with_nulls(self.state, fitted)
        return [each._replace(code=self.lines.let(each.code), null=self._named(each.null)) for each in fitted]

    def _named(self, null: str) -> str:
        return null if null in (ALWAYS, NEVER) else self.lines.let(null)

    def _write(self, outputs: Outputs) -> None:
        """Write the outputs of a row."""
        self.most = max(self.most, len(outputs.rows))
        if self.most > MOST_OUTPUTS:
            raise NotCompiled("many outputs for a row")
        for number, row in enumerate(outputs.rows):
            with self.lines.block() as written:
                fitted = [self._fitted(item, slot) for item, slot in zip(row, self.outputs, strict=True)]
                self.outputs = _with_nulls(self.outputs, fitted)
                for place, value in enumerate(fitted):
                    self.lines.put(f"o{place}[m] = {value.code}")
                    if self.outputs[place].nullable:
                        self.lines.put(f"on{place}[m] = {value.null}")
                self.lines.put("owner[m] = i")
                self.lines.put("m += 1")
            if outputs.size.isdecimal():
                self.lines.lines += written
            else:
                self.lines.branch(f"{number} < {outputs.size}", written, [])

    def _fitted(self, value: Scalar, slot: Slot) -> Scalar:
        """A value as one of an Arrow type; one that the type would change is bad."""
        kind = kind_of(slot.type)
        assert kind is not None
        if value.kind is Kind.NONE:
            return Scalar(kind, kind.zero, ALWAYS)
        if kind is Kind.FLOAT and value.kind in (Kind.INT, Kind.NUMBER):
            return self.lines.exact(value)._replace(kind=kind)
        if value.kind is not kind:
            raise NotCompiled(f"{value.kind.value} where {slot.type} is promised")
        if kind is Kind.INT and slot.type != pa.int64():
            limits = np.iinfo(slot.type.to_pandas_dtype())
            self.lines.bad(f"({value.code} > {limits.max}) | ({value.code} < {limits.min})")
        return value


def _is_stored(node: ast.Name) -> bool:
    return not isinstance(node.ctx, ast.Load)


def _is_list(node: ast.expr) -> bool:
    if isinstance(node, ast.IfExp):
        return _is_list(node.body) and _is_list(node.orelse)
    return isinstance(node, ast.List)


def _with_nulls(slots: tuple[Slot, ...], values: list[Scalar]) -> tuple[Slot, ...]:
    pairs = zip(slots, values, strict=True)
    return tuple(slot._replace(nullable=slot.nullable or value.null != NEVER) for slot, value in pairs)


def _state_value(state: tuple[Slot, ...], fields: tuple[str, ...] | None) -> Value:
    """The state before a row, in its variables."""
    items = []
    for place, slot in enumerate(state):
        kind = kind_of(slot.type)
        assert kind is not None
        items.append(Scalar(kind, f"s{place}", f"sn{place}" if slot.nullable else NEVER))
    return items[0] if fields is None else Fields(tuple(items), fields)
