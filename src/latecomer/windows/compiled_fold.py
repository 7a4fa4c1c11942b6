"""A user's fold as a compiled kernel over arrays, with what only Python can tell run as Python.

Invariants
1. Outputs, states and failed rows are bit for bit those of `python_fold`.
2. A stretch of rows for which the kernel is not sure is run again as a whole, as Python.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from latecomer import _jit
from latecomer.events import Bools, Int64s, concat_rows, take_rows
from latecomer.windows.fold_compiler.kernels import (
    Asked,
    Found,
    find_program,
    give_up,
    kernel_of,
    names_read,
    worth_a_kernel,
)
from latecomer.windows.fold_compiler.names import Input
from latecomer.windows.fold_compiler.program import Slot
from latecomer.windows.fold_compiler.values import Kind, kind_of
from latecomer.windows.key_steps import Ran, Work
from latecomer.windows.python_values import has_python_values

Arrays = list[npt.NDArray[Any]]
_DTYPES = {Kind.BOOL: np.bool_, Kind.INT: np.int64, Kind.FLOAT: np.float64}


class Written(NamedTuple):
    """What a kernel wrote: columns of outputs and their rows, states, and which stretches are to be run as Python."""

    outputs: list[pa.Array]
    owner: Int64s
    before: list[pa.Array]
    after: list[pa.Array]
    redo: Bools


def run_compiled(asked: Asked, initial: Any, work: Work) -> Written | None:
    """Run rows with a kernel; nothing where there is none, or it is not time for one."""
    rows = work.rows
    if not worth_a_kernel(asked.step, rows.num_rows) or len(set(rows.schema.names)) < rows.num_columns:
        return None
    begin = _begins(asked, initial, work)
    read = names_read(asked.step, asked.source)
    columns = {
        name: (column.type, column.null_count > 0)
        for name, column in zip(rows.schema.names, rows.columns, strict=True)
        if name in read
    }
    found = find_program(asked, columns, [each.null_count > 0 for each in begin])
    if isinstance(found, str) or not all(map(has_python_values, rows.columns)):
        return None
    try:
        return _run_kernel(found, begin, work)
    except _jit.NotCompilable:  # another numba may know less
        give_up(found)
        return None


def why_python(asked: Asked, initial: Any, columns: pa.Schema) -> str:
    """Why a fold on these columns is not compiled; nothing where it is."""
    if not _jit.COMPILED:
        return "LATECOMER_JIT is 0"
    begin = _state_columns(asked.states.array([asked.states.normal(initial)]), asked.states.shape is not None)
    read = names_read(asked.step, asked.source)
    types = {field.name: (field.type, False) for field in columns if field.name in read}
    found = find_program(asked, types, [each.null_count > 0 for each in begin])
    return found if isinstance(found, str) else ""


def _begins(asked: Asked, initial: Any, work: Work) -> list[pa.Array]:
    """The fields of the state before each stretch; where there is none, those of the initial one."""
    kept, states = work.state.column(0), asked.states
    first = states.array([states.normal(initial)])
    columns = _state_columns(kept, states.shape is not None)
    if not kept.null_count:
        return columns
    valid = kept.is_valid()
    pairs = zip(columns, _state_columns(first, states.shape is not None), strict=True)
    return [pc.if_else(valid, column, value[0].cast(column.type)) for column, value in pairs]


def _state_columns(kept: pa.StructArray, are_tuples: bool) -> list[pa.Array]:
    inner = kept.field(0)
    return [inner.field(place) for place in range(inner.type.num_fields)] if are_tuples else [inner]


def _run_kernel(found: Found, begin: list[pa.Array], work: Work) -> Written:
    program, stretches = found.program, len(work.starts) - 1
    inputs = [_input(each, work.rows) for each in program.inputs]
    places = [work.starts, work.wanted]
    nulls = (_nulls(each) for each, slot in zip(begin, program.state, strict=True) if slot.nullable)
    starting = [*map(_numbers, begin), *nulls]
    before, after = _empty(program.state, len(work.wanted)), _empty(program.state, stretches)
    room = work.rows.num_rows * program.most
    outputs, owner, redo = _empty(program.outputs, room), np.zeros(room, np.int64), np.zeros(stretches, np.bool_)
    given, begins = map(_fixed, (*places, *inputs)), map(_fixed, starting)
    count = kernel_of(found)(*given, *found.numbers, *begins, *before, *after, *outputs, owner, redo)
    written = [_cut(each, count) for each in outputs]
    return Written(
        _columns(program.outputs, written),
        _cut(owner, count),
        _columns(program.state, before),
        _columns(program.state, after),
        redo,
    )


def _input(wanted: Input, rows: pa.RecordBatch) -> npt.NDArray[Any]:
    column = rows.column(wanted.column)
    if wanted.text is not None:
        same = pc.fill_null(pc.equal(column, pa.scalar(wanted.text, column.type)), False)
        equal: npt.NDArray[Any] = same.to_numpy(zero_copy_only=False)
        return equal
    return _nulls(column) if wanted.null else _numbers(column)


def _numbers(column: pa.Array) -> npt.NDArray[Any]:
    """A column as numbers, zero where it is null."""
    kind = kind_of(column.type)
    assert kind is not None
    if column.null_count:
        column = column.fill_null(pa.scalar(0).cast(column.type))
    values: npt.NDArray[Any] = column.to_numpy(zero_copy_only=False)
    return np.ascontiguousarray(values, dtype=_DTYPES[kind])


def _fixed(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Values that nobody can change: a kernel is compiled anew for arrays that could be, or have gaps."""
    fixed = np.ascontiguousarray(values).view()
    fixed.flags.writeable = False
    return fixed


def _nulls(column: pa.Array) -> npt.NDArray[Any]:
    nulls: npt.NDArray[Any] = column.is_null().to_numpy(zero_copy_only=False)
    return nulls


def _empty(slots: tuple[Slot, ...], size: int) -> Arrays:
    """Room for numbers, and for whether those are null that may be."""
    kinds = [kind_of(slot.type) for slot in slots]
    values: Arrays = [np.zeros(size, _DTYPES[kind]) for kind in kinds if kind is not None]
    return [*values, *(np.zeros(size, np.bool_) for slot in slots if slot.nullable)]


def _cut(values: npt.NDArray[Any], size: int) -> npt.NDArray[Any]:
    return values[:size] if 2 * size > len(values) else values[:size].copy()


def _columns(slots: tuple[Slot, ...], arrays: Arrays) -> list[pa.Array]:
    nulls, found = iter(arrays[len(slots) :]), []
    for slot, values in zip(slots, arrays, strict=False):
        mask = next(nulls) if slot.nullable else None
        fits = values if values.dtype == np.bool_ else values.astype(slot.type.to_pandas_dtype(), copy=False)
        some = mask is not None and bool(mask.any())
        found.append(pa.array(fits, slot.type, mask=mask if some else None, from_pandas=False))
    return found


def mended(ran: Ran, redo: Bools, work: Work, run: Callable[[Work], Ran]) -> Ran:
    """What a kernel made of rows, with the stretches that it was not sure of run otherwise."""
    if not redo.any():
        return ran
    sizes = np.diff(work.starts)
    if 2 * sizes[redo].sum() > work.rows.num_rows:
        return run(work)
    stretches, again = np.flatnonzero(redo), np.repeat(redo, sizes)
    rows, wanted = np.flatnonzero(again), np.flatnonzero(again[work.wanted])
    starts, places = np.append(0, np.cumsum(sizes[redo])), np.searchsorted(rows, work.wanted[wanted])
    other = run(Work(take_rows(work.rows, rows), starts, take_rows(work.state, stretches), places, work.time))
    owner = np.append(ran.owner, rows[other.owner])
    order = np.argsort(owner, kind="stable")
    return Ran(
        take_rows(concat_rows([ran.outputs, other.outputs]), order),
        owner[order],
        _with_rows(ran.before, wanted, other.before),
        _with_rows(ran.after, stretches, other.after),
        rows[other.failed],
        other.reasons,
    )


def _with_rows(rows: pa.RecordBatch, places: Int64s, others: pa.RecordBatch) -> pa.RecordBatch:
    """Rows with others at some places."""
    chosen = np.arange(rows.num_rows)
    chosen[places] = rows.num_rows + np.arange(len(places))
    return take_rows(concat_rows([rows, others]), chosen)
