"""Helpers for folds that are compiled: run one as Python and compiled, and compare bits."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa

from latecomer import _jit
from latecomer.errors import LatecomerError
from latecomer.events import Layout
from latecomer.windows import Fold
from latecomer.windows.fold_compiler import kernels
from latecomer.windows.key_steps import Ran, Work

LAYOUT = Layout("ts", ("key",))
_NUMBERS = count()


@contextmanager
def compiling(after: int) -> Iterator[None]:
    """Folds are compiled after so many rows."""
    with kernels.compiling_after(after), patch.object(_jit, "COMPILED", True):
        yield


@contextmanager
def interpreted() -> Iterator[None]:
    """Kernels of folds run as they are written, on numbers of 64 bits: no time is spent on compiling."""

    def kernel(text: str, names: dict[str, Any]) -> Callable[..., Any]:
        namespace = {**names, "int": np.int64, "float": np.float64}
        exec(text, namespace)

        def run(*arrays: Any) -> Any:
            wide = {int: np.int64, float: np.float64}
            return namespace["kernel"](*(wide.get(type(each), lambda same: same)(each) for each in arrays))

        return run

    with (
        patch.object(_jit, "generated_kernel", kernel),
        patch.object(kernels, "_kernels", {}),
        np.errstate(all="ignore"),
    ):
        yield


def function_of(text: str, **names: Any) -> Callable[..., Any]:
    """The function `step` of a text, which Python knows the source of."""
    filename = f"<fold {next(_NUMBERS)}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    namespace = dict(names)
    exec(compile(text, filename, "exec"), namespace)
    function: Callable[..., Any] = namespace["step"]
    return function


def work_of(
    fold: Fold, columns: dict[str, pa.Array], sizes: Sequence[int], wanted: Sequence[int] = (), state: Any = None
) -> Work:
    """Stretches of so many rows each, from no state or from these."""
    size = sum(sizes)
    keys = [f"k{number}" for number, each in enumerate(sizes) for _ in range(each)]
    rows = pa.RecordBatch.from_pydict({"ts": pa.array(range(size), pa.int64()), "key": pa.array(keys), **columns})
    kinds = fold.state(rows.schema, LAYOUT)
    none = pa.RecordBatch.from_arrays([pa.nulls(len(sizes), each.type) for each in kinds], schema=kinds)
    starts = np.append(0, np.cumsum(sizes)).astype(np.int64)
    return Work(rows, starts, none if state is None else state, np.array(wanted, np.int64), "ts")


def bits(column: pa.Array) -> list[Any]:
    """The values of a column, floats as the bits that they are."""
    if pa.types.is_struct(column.type):
        valid = column.is_valid().to_pylist()
        fields = [bits(column.field(number)) for number in range(column.type.num_fields)]
        return [each if there else None for there, each in zip(valid, zip(*fields, strict=True), strict=True)]
    if pa.types.is_float64(column.type):
        column = column.view(pa.int64())
    values: list[Any] = column.to_pylist()
    return values


def outcome(fold: Fold, work: Work) -> Any:
    """All that a run gives, in bits, or the error that it ends with."""
    try:
        ran = fold.run(work, LAYOUT)
    except LatecomerError as error:
        return str(error)
    return told(ran)


def told(ran: Ran) -> Any:
    """A run in bits."""
    parts = (ran.outputs, ran.before, ran.after)
    schemas = [part.schema for part in parts]
    return (
        [str(schema) for schema in schemas],
        [[bits(column) for column in part.columns] for part in parts],
        (ran.owner.tolist(), ran.failed.tolist(), ran.reasons),
    )


class Both:
    """A fold that is run as Python and compiled; how often a kernel was called, and how many stretches it left."""

    def __init__(self, fold: Fold) -> None:
        self.fold, self.calls, self.left = fold, 0, 0

    def same(self, work: Work) -> Any:
        """What both give, which must be the same."""
        with compiling(10**12):
            python = outcome(self.fold, work)
        with compiling(0), self._counting():
            compiled = outcome(self.fold, work)
        assert compiled == python
        return python

    @contextmanager
    def _counting(self) -> Iterator[None]:
        found = kernels.kernel_of

        def kernel_of(asked: Any) -> Callable[..., Any]:
            kernel = found(asked)

            def counted(*arrays: Any) -> Any:
                size = kernel(*arrays)
                self.calls += 1
                self.left += int(arrays[-1].sum())
                return size

            return counted

        with patch("latecomer.windows.compiled_fold.kernel_of", kernel_of):
            yield
