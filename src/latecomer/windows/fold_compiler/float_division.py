"""Floor and remainder of floats as Python has them.

The floor is a whole number, the remainder has the sign of the divisor; CPython, Objects/floatobject.c, `float_divmod`.
"""

from __future__ import annotations

import math

import numpy as np

from latecomer._jit import bare_kernel


@bare_kernel
def float_remainder(value: float, divisor: float) -> float:
    """What `value % divisor` is; the divisor is not zero."""
    left = np.fmod(value, divisor)
    if left == 0.0:
        return math.copysign(0.0, divisor)
    return float(left + divisor if (divisor < 0.0) != (left < 0.0) else left)


@bare_kernel
def float_floor(value: float, divisor: float) -> float:
    """What `value // divisor` is; the divisor is not zero."""
    left = np.fmod(value, divisor)
    quotient = (value - left) / divisor
    if left != 0.0 and (divisor < 0.0) != (left < 0.0):
        quotient -= 1.0
    if quotient == 0.0:
        return math.copysign(0.0, value / divisor)
    floor = float(math.floor(quotient)) if abs(quotient) < 4503599627370496.0 else quotient
    return float(floor + 1.0 if quotient - floor > 0.5 else floor)
