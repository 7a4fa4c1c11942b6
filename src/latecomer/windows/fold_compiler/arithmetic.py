"""Python's arithmetic as lines of generated code that give the same bits, or say `bad`.

Whole numbers of Python grow; here one that leaves 64 bits is bad, and so is every division by zero. A float that is
not a number is bad where it is computed: which of the many NaN comes out is not the same everywhere.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from latecomer.windows.fold_compiler.lines import EXACT, Lines
from latecomer.windows.fold_compiler.values import Kind, NotCompiled, Scalar

_SIGNS: dict[type[ast.AST], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.BitAnd: "&",
    ast.BitOr: "|",
    ast.BitXor: "^",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}
_OVERFLOWS = {
    "+": "(({a} ^ {t}) & ({b} ^ {t})) < 0",
    "-": "(({a} ^ {b}) & ({a} ^ {t})) < 0",
    "*": "abs(float({a}) * float({b})) >= 9e18",  # the product of the floats is off by less than the distance to 2**63
}
_RANGE = "9.2e18"


def sign_of(operation: ast.AST) -> str:
    """An operator as text."""
    sign = _SIGNS.get(type(operation))
    if sign is None:
        raise NotCompiled(f"the operator {type(operation).__name__}")
    return sign


def operate(lines: Lines, sign: str, one: Scalar, other: Scalar) -> Scalar:
    """An operator between two numbers."""
    one, other = lines.some(one), lines.some(other)
    if sign in ("&", "|", "^"):
        return _bits(lines, sign, one, other)
    a, b = whole(lines, one), whole(lines, other)
    kinds = {a.kind, b.kind}
    if kinds == {Kind.INT}:
        return _operate_ints(lines, sign, a.code, b.code)
    if Kind.FLOAT in kinds:
        return _operate_floats(lines, sign, lines.rounded(a).code, lines.rounded(b).code)
    return _operate_numbers(lines, sign, lines.exact(a).code, lines.exact(b).code)


def _bits(lines: Lines, sign: str, one: Scalar, other: Scalar) -> Scalar:
    if one.kind is other.kind is Kind.BOOL:
        return Scalar(Kind.BOOL, lines.let(f"{one.code} {sign} {other.code}"))
    one, other = whole(lines, one), whole(lines, other)
    if one.kind is not Kind.INT or other.kind is not Kind.INT:
        raise NotCompiled(f"the operator {sign} between floats")
    return Scalar(Kind.INT, lines.let(f"{one.code} {sign} {other.code}"))


def _operate_ints(lines: Lines, sign: str, a: str, b: str) -> Scalar:
    if sign == "/":  # of numbers that floats hold it is rounded once, as Python does
        return _operate_floats(lines, sign, *(lines.exact(Scalar(Kind.INT, each)).code for each in (a, b)))
    if sign in ("//", "%"):
        wrong = lines.let(f"({b} == 0) | ({b} == -1)")  # the least number has no negative
        lines.bad(wrong)
        return Scalar(Kind.INT, lines.let(f"{a} {sign} (1 if {wrong} else {b})"))
    result = lines.let(f"{a} {sign} {b}")
    lines.bad(f"({_OVERFLOWS[sign].format(a=a, b=b, t=result)})")
    return Scalar(Kind.INT, result)


def _operate_floats(lines: Lines, sign: str, a: str, b: str) -> Scalar:
    if sign in ("/", "//", "%"):
        lines.bad(f"({b} == 0.0)")
        b = lines.let(f"1.0 if {b} == 0.0 else {b}")
    call = {"//": f"float_floor({a}, {b})", "%": f"float_remainder({a}, {b})"}.get(sign, f"{a} {sign} {b}")
    result = lines.let(call)
    lines.bad(f"({result} != {result})")
    return Scalar(Kind.FLOAT, result)


def _operate_numbers(lines: Lines, sign: str, a: str, b: str) -> Scalar:
    """Between numbers of which both may be whole in Python: what comes out must be exact, and no zero with a sign."""
    if sign in ("//", "%"):
        raise NotCompiled(f"the operator {sign} between numbers of more than one kind")
    result = _operate_floats(lines, sign, a, b)
    if sign == "/":
        return result
    lines.bad(f"(not (abs({result.code}) < {EXACT}.0))")
    if sign == "*":
        lines.bad(f"(({result.code} == 0.0) & (math.copysign(1.0, {result.code}) < 0.0))")
    return result._replace(kind=Kind.NUMBER)


def whole(lines: Lines, value: Scalar) -> Scalar:
    """A value in arithmetic, where true is 1."""
    return Scalar(Kind.INT, lines.let(f"1 if {value.code} else 0")) if value.kind is Kind.BOOL else value


def compare(lines: Lines, sign: str, one: Scalar, other: Scalar) -> str:
    """A comparison, which is exact in Python also between whole numbers and floats."""
    a, b = (whole(lines, lines.some(each)) for each in (one, other))
    if a.kind is not b.kind:
        a, b = lines.exact(a), lines.exact(b)
    return lines.let(f"{a.code} {sign} {b.code}")


def extreme(lines: Lines, sign: str, one: Scalar, other: Scalar) -> Scalar:
    """The larger (`>`) or smaller (`<`) of two numbers: the first where the second is not, also beside a NaN."""
    a, b = lines.some(one), lines.some(other)
    if Kind.BOOL in (a.kind, b.kind):
        raise NotCompiled("min or max of truth values")
    if a.kind is not b.kind:
        a, b = (lines.exact(each)._replace(kind=Kind.NUMBER) for each in (a, b))
    return Scalar(a.kind, lines.let(f"{b.code} if {b.code} {sign} {a.code} else {a.code}"))


def negative(lines: Lines, value: Scalar) -> Scalar:
    """A number with the other sign."""
    value = whole(lines, lines.some(value))
    wrong = {Kind.INT: "{x} == LEAST", Kind.NUMBER: "not ({x} < 0.0 or {x} > 0.0)", Kind.FLOAT: "{x} != {x}"}
    lines.bad(f"({wrong[value.kind].format(x=value.code)})")
    return Scalar(value.kind, lines.let(f"-{value.code}"))


def _absolute(lines: Lines, value: Scalar) -> Scalar:
    value = whole(lines, value)
    if value.kind is Kind.INT:
        lines.bad(f"({value.code} == LEAST)")
        return Scalar(Kind.INT, lines.let(f"-{value.code} if {value.code} < 0 else {value.code}"))
    lines.bad(f"({value.code} != {value.code})")
    return Scalar(value.kind, lines.let(f"abs({value.code})"))


def _to_int(lines: Lines, value: Scalar, call: str = "int") -> Scalar:
    value = whole(lines, value)
    if value.kind is Kind.INT:
        return value
    fits = lines.let(f"abs({value.code}) < {_RANGE}")
    lines.bad(f"(not {fits})")
    return Scalar(Kind.INT, lines.let(f"int({call}({value.code} if {fits} else 0.0))"))


def _to_float(lines: Lines, value: Scalar) -> Scalar:
    return lines.rounded(whole(lines, value))._replace(kind=Kind.FLOAT)


def _to_bool(lines: Lines, value: Scalar) -> Scalar:
    return Scalar(Kind.BOOL, lines.truth(value))


def _root(lines: Lines, value: Scalar) -> Scalar:
    value = _to_float(lines, value)
    fits = lines.let(f"{value.code} >= 0.0")
    lines.bad(f"(not {fits})")
    return Scalar(Kind.FLOAT, lines.let(f"math.sqrt({value.code} if {fits} else 0.0)"))


def _asked(test: str) -> Callable[[Lines, Scalar], Scalar]:
    return lambda lines, value: Scalar(Kind.BOOL, lines.let(test.format(x=_to_float(lines, value).code)))


CALLS: dict[str, Callable[[Lines, Scalar], Scalar]] = {
    "abs": _absolute,
    "int": _to_int,
    "float": _to_float,
    "bool": _to_bool,
    "math.sqrt": _root,
    "math.fabs": lambda lines, value: _absolute(lines, _to_float(lines, value)),
    "math.floor": lambda lines, value: _to_int(lines, value, "math.floor"),
    "math.ceil": lambda lines, value: _to_int(lines, value, "math.ceil"),
    "math.isnan": _asked("{x} != {x}"),
    "math.isinf": _asked("abs({x}) == math.inf"),
    "math.isfinite": _asked("abs({x}) < math.inf"),
}
