"""Binary search inside kernels."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from latecomer._jit import bare_kernel


@bare_kernel
def lower_bound(values: npt.NDArray[np.int64], low: int, high: int, wanted: int) -> int:
    """The first place in [low, high) whose value is not below `wanted`, or `high`; values there are in order."""
    while low < high:
        middle = (low + high) >> 1
        if values[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low
