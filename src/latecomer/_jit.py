"""The one door to numba: lazy signatures, a cache on disk, and two switches in the environment.

`LATECOMER_JIT=0` runs every kernel as plain Python (to debug it); `LATECOMER_JIT_CACHE=0` compiles anew
in each process. Where no folder for the cache can be written, kernels compile without one.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

import numba
import numba.core.errors

P = ParamSpec("P")
R = TypeVar("R")

NotCompilable = numba.core.errors.NumbaError
COMPILED = os.environ.get("LATECOMER_JIT", "1") != "0"


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a loop over arrays on its first call."""
    return _compiled(function)


def bare_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """A kernel that makes no array, not even a slice: numba need not count who uses which, and calls are cheap."""
    return _compiled(function, _nrt=False, forceinline=True)


def generated_kernel(text: str, names: dict[str, Any]) -> Callable[..., Any]:
    """Compile a kernel that was written by code, in this process only; nothing that it computes raises an error."""
    namespace = dict(names)
    exec(compile(text, "<kernel>", "exec"), namespace)
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": False}
    return cast(Callable[..., Any], numba.njit(namespace["kernel"], **options))


def _compiled(function: Callable[P, R], **options: Any) -> Callable[P, R]:
    if not COMPILED:
        return function
    cached = os.environ.get("LATECOMER_JIT_CACHE", "1") != "0"
    try:
        compiled = numba.njit(function, cache=cached, nogil=True, **options)
    except RuntimeError:  # numba found no folder it may write its cache to
        compiled = numba.njit(function, cache=False, nogil=True, **options)
        cached = False
    if cached:
        _stamp(compiled, function.__code__.co_filename)
    return cast(Callable[P, R], compiled)


def _stamp(compiled: Any, filename: str) -> None:
    """Let the cache forget a kernel when a file changes that it may call kernels of: one beside it, or one of the top.

    Numba looks at the kernel's own file only, and would run old code of another file that was compiled into it. The
    version is compared before anything else is read, which may name types that are gone.
    """
    file = compiled._cache._cache_file
    folders = (Path(filename).parent, Path(__file__).parent)
    file._version = (file._version, *(_folder_stamp(folder) for folder in folders))


@cache
def _folder_stamp(folder: Path) -> tuple[tuple[str, int, int], ...]:
    files = sorted(folder.glob("*.py"))
    return tuple((file.name, file.stat().st_mtime_ns, file.stat().st_size) for file in files)
