"""The one door to numba: lazy signatures, a cache on disk, and two switches in the environment.

`LATECOMER_JIT=0` runs every kernel as plain Python (to debug it); `LATECOMER_JIT_CACHE=0` compiles anew
in each process. Where no folder for the cache can be written, kernels compile without one.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

import numba

P = ParamSpec("P")
R = TypeVar("R")


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile a loop over arrays on its first call."""
    if os.environ.get("LATECOMER_JIT", "1") == "0":
        return function
    cached = os.environ.get("LATECOMER_JIT_CACHE", "1") != "0"
    try:
        compiled = numba.njit(function, cache=cached, nogil=True)
    except RuntimeError:  # numba found no folder it may write its cache to
        compiled = numba.njit(function, cache=False, nogil=True)
    return cast(Callable[P, R], compiled)
