"""Random functions of users, on random numbers: compiled they give what Python gives, bit for bit."""

from __future__ import annotations

import math
import re
from typing import Any, NamedTuple

import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from latecomer.windows import Fold
from tests.compiled_folds import Both, function_of, interpreted, work_of

STATE = pa.struct([("a", pa.int64()), ("b", pa.float64())])
RETURNS = pa.schema([("whole", pa.int64()), ("number", pa.float64()), ("flag", pa.bool_())])
MOST = 2**63 - 1
INTS = st.one_of(
    st.integers(-5, 5),
    st.sampled_from([MOST, -MOST - 1, MOST // 2, 2**53, 2**53 + 1, -(2**53) - 1, 2**31, 2**32, 3037000500]),
    st.integers(-MOST - 1, MOST),
)
SMALL, PLAIN = st.integers(-5, 5), st.sampled_from([0.0, -0.0, 1.0, -1.5, 0.1, 3.0, 7.25, -1e9])
FLOATS = st.one_of(
    st.sampled_from([0.0, -0.0, 1.0, -1.5, 0.1, float("nan"), float("inf"), -float("inf"), 5e-324, 1e308, 2.0**53]),
    st.floats(),
)
LARGE = 3.5


class Pair(NamedTuple):
    a: int
    b: float


LEAVES = {
    "I": ["row.i", "row.j", "a", "state.a", "u", "0", "1", "-3", "7", "LIMIT"],
    "F": ["row.x", "row.y", "b", "state[1]", "v", "0.5", "-0.0", "2.0", "SHARE"],
    "T": ["row.f", "(row.j is None)", "(row.y is not None)", "True", "(row.k == 'up')"],
}
FORMS = {
    "I": [
        *(f"(I {sign} I)" for sign in ("+", "-", "*", "//", "%", "&", "|", "^")),
        *("min(I, I)", "max(I, I)", "abs(I)", "(-I)", "int(N)", "(I if T else I)", "(T + I)", "math.floor(N)", "(+T)"),
    ],
    "F": [
        *(f"(N {sign} N)" for sign in ("+", "-", "*", "/")),
        *("(F // N)", "(F % N)", "min(N, N)", "max(N, N, N)", "abs(F)", "(-F)", "float(N)", "math.sqrt(N)"),
        *("(N if T else N)", "(N or N)", "(N and F)", "(F + N)", "(N * F)"),
    ],
    "T": [
        *(f"(N {sign} N)" for sign in ("<", "<=", ">", ">=", "==", "!=")),
        *(
            "(N < N <= N)",
            "(T and T)",
            "(T or T)",
            "(not T)",
            "bool(N)",
            "(I in (1, -2, 3))",
            "math.isnan(F)",
            "(T & T)",
        ),
        *("(N and T)", "(row.k not in ('up', ''))"),
    ],
}
OUTPUTS = [
    "[]",
    "[(I, F, T)]",
    "[(I, F, T)] if T else []",
    "[(I, F, T), (I, N, T)]",
    "out",
    "[{'number': F, 'flag': T, 'whole': I}]",
]
STATES = ["state", "(I, N)", "Pair(a=I, b=F)", "Pair(I, F)", "state._replace(b=N)", "(I, None) if T else state"]


def _filled(draw: Any, form: str, depth: int) -> str:
    """A form with expressions in it."""

    def expression(kind: str) -> str:
        kind = draw(st.sampled_from("IF")) if kind == "N" else kind
        if depth == 0 or draw(st.integers(0, 3)) == 0:
            return str(draw(st.sampled_from(LEAVES[kind])))
        return _filled(draw, draw(st.sampled_from(FORMS[kind])), depth - 1)

    return re.sub(r"\b[NIFT]\b", lambda found: expression(found.group()), form)


@st.composite
def functions(draw: Any) -> str:
    """A function of a state and a row."""
    lines = [
        "def step(state, row):",
        "    a, b = state",
        "    u, v = 1, 0.25",
        "    out = []",
        "    if T:",
        "        u = I",
        "        out.append((I, F, T))",
        "    elif T:",
        "        v = F",
        f"        b {draw(st.sampled_from(['+=', '-=', '*=']))} N",
        "    if T:",
        "        out.append((I, N, T))",
        f"        return {draw(st.sampled_from(STATES))}, {draw(st.sampled_from(OUTPUTS))}",
        "    if T:",
        "        raise ValueError(f'not {row.i}')" if draw(st.booleans()) else "        pass",
        f"    return {draw(st.sampled_from(STATES))}, {draw(st.sampled_from(OUTPUTS))}",
    ]
    return _filled(draw, "\n".join(lines) + "\n", draw(st.integers(0, 2)))


@st.composite
def columns(draw: Any, size: int) -> dict[str, pa.Array]:
    """Columns with plain numbers, or with all that there are."""
    ints, floats = draw(st.sampled_from([(SMALL, PLAIN), (SMALL, PLAIN), (INTS, FLOATS)]))

    def some(values: Any, *, nulls: bool = False) -> list[Any]:
        values = st.one_of(st.none(), values, values, values) if nulls else values
        found: list[Any] = draw(st.lists(values, min_size=size, max_size=size))
        return found

    return {
        "i": pa.array(some(ints), pa.int64()),
        "j": pa.array(some(st.integers(-128, 127), nulls=draw(st.booleans())), pa.int8()),
        "x": pa.array(some(floats), pa.float64()),
        "y": pa.array(some(floats, nulls=draw(st.booleans())), pa.float64()),
        "f": pa.array(some(st.booleans()), pa.bool_()),
        "k": pa.array(some(st.sampled_from(["up", "down", ""]), nulls=True), pa.string()),
    }


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(functions(), st.lists(st.integers(1, 4), min_size=1, max_size=4), st.data())
def test_a_random_function_gives_the_same_compiled(text: str, sizes: list[int], data: st.DataObject) -> None:
    step = function_of(
        text, math=math, Pair=Pair, LIMIT=data.draw(st.one_of(SMALL, INTS)), SHARE=data.draw(st.one_of(PLAIN, FLOATS))
    )
    fold = Fold(step, Pair(data.draw(st.integers(-2, 2)), 0.5), state=STATE, returns=RETURNS)
    both = Both(fold)
    with interpreted():
        for _ in range(3):
            wanted = [place for place in range(sum(sizes)) if data.draw(st.booleans())]
            both.same(work_of(fold, data.draw(columns(sum(sizes))), sizes, wanted))
