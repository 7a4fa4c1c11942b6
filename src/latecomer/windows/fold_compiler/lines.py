"""Lines of generated code: values with names of their own, branches, and what two branches leave.

A line says `bad` where it cannot tell what Python would do, or Python would raise: the stretch of rows is then run as
Python. What follows such a line in the same row is of no account.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count, zip_longest
from typing import TypeVar

from latecomer.windows.fold_compiler.values import ALWAYS, NEVER, Fields, Kind, NotCompiled, Outputs, Scalar, Value

T = TypeVar("T")
EXACT = "9007199254740992"  # 2 ** 53: floats hold all whole numbers below it
_NUMBERS = {Kind.INT, Kind.FLOAT, Kind.NUMBER}


class Lines:
    """The lines of one function."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._numbers = count()

    def put(self, line: str) -> None:
        """Add a line."""
        self.lines.append(line)

    def let(self, expression: str) -> str:
        """A new name for an expression."""
        name = f"t{next(self._numbers)}"
        self.put(f"{name} = {expression}")
        return name

    def bad(self, condition: str) -> None:
        """Say where the rows are to be run as Python."""
        if condition != NEVER:
            self.put(f"bad |= {condition}")

    def some(self, value: Scalar) -> Scalar:
        """A value that is used as one: None is not."""
        if value.kind in (Kind.NONE, Kind.TEXT):
            raise NotCompiled("None is used as a value")
        self.bad(value.null)
        return value._replace(null=NEVER)

    def exact(self, value: Scalar) -> Scalar:
        """A number as one that a float holds, whatever Python has."""
        if value.kind is not Kind.INT:
            return value
        number = value.code.strip("()")
        if number.lstrip("-").isdecimal() and abs(int(number)) < int(EXACT):
            return Scalar(Kind.NUMBER, f"({float(int(number))!r})", value.null)
        self.bad(f"({value.code} >= {EXACT}) | ({value.code} <= -{EXACT})")
        return Scalar(Kind.NUMBER, self.let(f"float({value.code})"), value.null)

    def rounded(self, value: Scalar) -> Scalar:
        """A number as the float that Python makes of it beside a float."""
        return Scalar(Kind.FLOAT, self.let(f"float({value.code})")) if value.kind is Kind.INT else value

    def truth(self, value: Value) -> str:
        """Whether a value is true."""
        if not isinstance(value, Scalar):
            raise NotCompiled("whether something is true that is no number")
        if value.kind is Kind.NONE:
            return NEVER
        true = value.code if value.kind is Kind.BOOL else self.let(f"{value.code} != 0")
        return true if value.null == NEVER else self.let(f"(not {value.null}) and {true}")

    @contextmanager
    def block(self) -> Iterator[list[str]]:
        """Lines that are put elsewhere."""
        outer, self.lines = self.lines, []
        try:
            yield self.lines
        finally:
            self.lines = outer

    def branch(self, truth: str, one: list[str], other: list[str]) -> None:
        """Put lines of two branches."""
        for head, lines in ((f"if {truth}:", one), ("else:", other)):
            self.put(head)
            self.lines += [f"    {line}" for line in lines or ["pass"]]

    def either(self, truth: str, one: Callable[[], Value], other: Callable[[], Value]) -> Value:
        """The value of one of two expressions."""
        if truth in (ALWAYS, NEVER):
            return one() if truth == ALWAYS else other()
        with self.block() as first:
            left = one()
        with self.block() as second:
            right = other()
        joined = self.join((left, first), (right, second))
        self.branch(truth, first, second)
        return joined

    def join(self, one: tuple[Value, list[str]], other: tuple[Value, list[str]]) -> Value:
        """What is left of two values, each with the lines at whose end it is known."""
        (left, first), (right, second) = one, other
        if left == right:
            return left
        if isinstance(left, Scalar) and isinstance(right, Scalar):
            return self._join_scalars((left, first), (right, second))
        if isinstance(left, Fields) and isinstance(right, Fields) and len(left.items) == len(right.items):
            names = left.names if left.names == right.names else ()
            return Fields(self._join_all((left.items, first), (right.items, second)), names)
        if isinstance(left, Outputs) and isinstance(right, Outputs):
            return self._join_outputs((left, first), (right, second))
        raise NotCompiled("values of different kinds meet")

    def _join_all(
        self, one: tuple[tuple[Scalar, ...], list[str]], other: tuple[tuple[Scalar, ...], list[str]]
    ) -> tuple[Scalar, ...]:
        pairs = zip(one[0], other[0], strict=True)
        return tuple(self._join_scalars((left, one[1]), (right, other[1])) for left, right in pairs)

    def _join_outputs(self, one: tuple[Outputs, list[str]], other: tuple[Outputs, list[str]]) -> Outputs:
        (left, first), (right, second) = one, other
        rows = []
        for mine, others in zip_longest(left.rows, right.rows):
            if mine is None or others is None:
                known = mine or others
                zeros = tuple(Scalar(each.kind, each.kind.zero) for each in known)
                mine, others = mine or zeros, others or zeros
            rows.append(self._join_all((mine, first), (others, second)))
        name = f"t{next(self._numbers)}"
        first.append(f"{name} = {left.size}")
        second.append(f"{name} = {right.size}")
        return Outputs(name if left.size != right.size else left.size, tuple(rows))

    def _join_scalars(self, one: tuple[Scalar, list[str]], other: tuple[Scalar, list[str]]) -> Scalar:
        left, right = one[0], other[0]
        if left == right:
            return left
        kind = _joined_kind(left.kind, right.kind)
        name = f"t{next(self._numbers)}"
        null = NEVER if left.null == right.null == NEVER else f"n{name}"
        for value, lines in one, other:
            outer, self.lines = self.lines, lines
            fitted = self.exact(value) if kind is Kind.NUMBER and value.kind is Kind.INT else value
            self.put(f"{name} = {kind.zero if value.kind is Kind.NONE else fitted.code}")
            if null != NEVER:
                self.put(f"{null} = {value.null}")
            self.lines = outer
        return Scalar(kind, name, null)


def _joined_kind(one: Kind, other: Kind) -> Kind:
    if one is other or other is Kind.NONE:
        return one
    if one is Kind.NONE:
        return other
    if {one, other} <= _NUMBERS:
        return Kind.NUMBER
    raise NotCompiled("values of different kinds meet")
