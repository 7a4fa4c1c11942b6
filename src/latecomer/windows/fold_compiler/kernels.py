"""Which folds are compiled, and when: the kernel of a function for columns, states and constants of certain kinds.

Invariants
1. Whether a fold is compiled changes nothing but its speed.
2. Numbers that a function reads and does not define are read when it runs, as Python does.
3. A function is compiled once in a process, after so many rows that Python has spent about as long on them.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, FunctionType
from typing import Any, NamedTuple

import pyarrow as pa

from latecomer import _jit
from latecomer.windows.fold_compiler.float_division import float_floor, float_remainder
from latecomer.windows.fold_compiler.names import Known
from latecomer.windows.fold_compiler.program import Program, Slot
from latecomer.windows.fold_compiler.source import Definition, definition_of, free_names
from latecomer.windows.fold_compiler.statements import translate
from latecomer.windows.fold_compiler.values import Kind, NotCompiled, kind_of
from latecomer.windows.fold_states import FoldStates

ROWS_TO_COMPILE = 1_000_000  # that a function has followed in this process
_LEAST_ROWS = 500  # that are worth a call of a kernel
_NAMES = {"math": math, "LEAST": -(2**63), "float_floor": float_floor, "float_remainder": float_remainder}
_BUILT_IN = {getattr(builtins, name): name for name in ("min", "max", "abs", "int", "float", "bool")}
_GETTER = type(NamedTuple("_Example", [("field", int)]).field)  # type: ignore[attr-defined]
_UNKNOWN = ("?",)
_KINDS = {bool: Kind.BOOL, int: Kind.INT, float: Kind.FLOAT}

_definitions: dict[tuple[CodeType, str], Definition | None] = {}
_programs: dict[Any, Program | str] = {}
_kernels: dict[Any, Callable[..., Any]] = {}
_followed: dict[CodeType, int] = {}


class Asked(NamedTuple):
    """A fold to be compiled."""

    step: Callable[..., Any]
    source: str | None
    states: FoldStates
    returns: pa.Schema


class Found(NamedTuple):
    """A program, and the numbers that its function reads now."""

    program: Program
    numbers: list[Any]
    key: Any


def find_program(asked: Asked, columns: dict[str, tuple[pa.DataType, bool]], state_nulls: list[bool]) -> Found | str:
    """The program of a fold on columns of these types, with nulls or without; or why there is none."""
    definition = _definition(asked.step, asked.source)
    if definition is None or not isinstance(asked.step, FunctionType):
        return "its source is not known"
    fields, types = _fields(asked.states), _state_types(asked.states)
    if fields == _UNKNOWN or any(kind_of(kind) in (None, Kind.TEXT) for kind in (*types, *asked.returns.types)):
        return "its states or outputs are not numbers"
    values = _free_values(asked.step, free_names(definition, asked.step.__code__))
    kinds = {name: _kind_of_free(value, asked.states.shape) for name, value in values.items()}
    known = Known(
        {name: (kind_of(kind), nulls) for name, (kind, nulls) in columns.items()},
        {name: kind for name, kind in kinds.items() if kind is not None},
        fields,
        tuple(asked.returns.names),
    )
    state, outputs = tuple(map(Slot, types, state_nulls)), tuple(map(Slot, asked.returns.types))
    key = (asked.step.__code__, *(tuple(each.items()) for each in known[:2]), *known[2:], state, outputs)
    if key not in _programs:
        _programs[key] = _translated(definition, known, state, outputs)
    program = _programs[key]
    numbers = [value for name, value in values.items() if isinstance(kinds[name], Kind)]
    return program if isinstance(program, str) else Found(program, numbers, key)


def _translated(
    definition: Definition, known: Known, state: tuple[Slot, ...], outputs: tuple[Slot, ...]
) -> Program | str:
    try:
        return translate(definition, known, state, outputs)
    except NotCompiled as reason:
        return str(reason)


def worth_a_kernel(step: Callable[..., Any], rows: int) -> bool:
    """Whether it is time for a function to be compiled, which has so many rows to follow now."""
    if not _jit.COMPILED or type(step) is not FunctionType:
        return False
    followed = _followed[step.__code__] = _followed.get(step.__code__, 0) + rows
    return followed >= ROWS_TO_COMPILE and rows >= max(1, min(_LEAST_ROWS, ROWS_TO_COMPILE))


@contextmanager
def compiling_after(rows: int) -> Iterator[None]:
    """Folds are compiled after so many rows, in measurements and tests."""
    global ROWS_TO_COMPILE
    before, ROWS_TO_COMPILE = ROWS_TO_COMPILE, rows
    try:
        yield
    finally:
        ROWS_TO_COMPILE = before


def kernel_of(found: Found) -> Callable[..., Any]:
    """The kernel of a program."""
    if found.key not in _kernels:
        _kernels[found.key] = _jit.generated_kernel(found.program.text, _NAMES)
    return _kernels[found.key]


def give_up(found: Found) -> None:
    """Run a fold as Python from now on."""
    _programs[found.key] = "numba does not compile it"


def names_read(step: Callable[..., Any], source: str | None) -> set[str]:
    """The names of which some are the columns that a function reads."""
    known = isinstance(step, FunctionType) and _definition(step, source) is not None
    return set(step.__code__.co_names) if known and isinstance(step, FunctionType) else set()


def _definition(function: Callable[..., Any], source: str | None) -> Definition | None:
    if type(function) is not FunctionType or source is None:
        return None
    code = function.__code__
    if function.__defaults__ or function.__kwdefaults__:
        return None
    if (code, source) not in _definitions:
        _definitions[code, source] = definition_of(code, source)
    return _definitions[code, source]


def _state_types(states: FoldStates) -> list[pa.DataType]:
    return [states.type] if states.shape is None else [field.type for field in states.type]


def _fields(states: FoldStates) -> tuple[str, ...] | None:
    """The names of the fields of a state that is a tuple, where its class does no more than to name them."""
    shape = states.shape
    if shape is None or shape is tuple:
        return None if shape is None else ()
    names: tuple[str, ...] = getattr(shape, "_fields", ())
    made = getattr(shape.__new__, "__globals__", {}).get("__name__") == f"namedtuple_{shape.__name__}"
    plain = shape.__bases__ == (tuple,) and all(type(vars(shape).get(name)) is _GETTER for name in names)
    return names if names and made and plain else _UNKNOWN


def _free_values(function: FunctionType, names: tuple[str, ...]) -> dict[str, Any]:
    """What the names are now that a function reads and does not define; of one that is not there, the name."""
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    found = {}
    for name in names:
        if name in cells:
            found[name] = _content(cells[name], name)
        else:
            found[name] = function.__globals__.get(name, getattr(builtins, name, name))
    return found


def _content(cell: Any, name: str) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return name


def _kind_of_free(value: Any, shape: type | None) -> Kind | str | None:
    if value is math:
        return "math"
    if type(value) in _KINDS:
        return _KINDS[type(value)] if not isinstance(value, int) or -(2**63) <= value < 2**63 else None
    if shape is not None and shape is not tuple and value is shape:
        return "state"
    return _BUILT_IN.get(value) if isinstance(value, type | type(min)) else None
