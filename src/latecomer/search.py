"""Binary search in kernels, over a part of a sorted array."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from latecomer._jit import bare_kernel

Int64s = npt.NDArray[np.int64]
Whole = Int64s | npt.NDArray[np.uint32]


@bare_kernel
def lower_bound(values: Whole, low: int, high: int, wanted: int) -> int:
    """The first place in [low, high) whose value is not below `wanted`; `high` if there is none."""
    while low < high:
        middle = (low + high) >> 1
        if values[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


@bare_kernel
def lower_bound_descending(values: Int64s, low: int, high: int, wanted: int) -> int:
    """As `lower_bound` where values descend: the first place whose value is not above `wanted`."""
    while low < high:
        middle = (low + high) >> 1
        if values[middle] > wanted:
            low = middle + 1
        else:
            high = middle
    return low
