"""Chance that depends on nothing but a seed, a purpose and a row's number.

The number of a row is mixed with the seed (the finaliser of SplitMix64, twice), so that row 17 draws the same whatever
process, partition or machine asks, and in whatever order. A purpose is a short name: two purposes never share draws.
"""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt

from latecomer._jit import kernel
from latecomer.events import Int64s

Floats = npt.NDArray[np.float64]
Hashes = npt.NDArray[np.uint64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_30, _27, _31, _11 = np.uint64(30), np.uint64(27), np.uint64(31), np.uint64(11)


def draws(seed: int, purpose: str, numbers: Int64s | Hashes) -> Floats:
    """One number in [0, 1) for each row number.

    >>> import numpy as np
    >>> bool(np.all(draws(1, "delay", np.arange(9))[3:6] == draws(1, "delay", np.arange(3, 6))))
    True
    """
    return _unit(hashes(seed, purpose, numbers))


def hashes(seed: int, purpose: str, numbers: Int64s | Hashes) -> Hashes:
    """64 random bits for each row number."""
    digest = hashlib.blake2b(f"{seed}/{purpose}".encode(), digest_size=8).digest()
    return _mix(np.ascontiguousarray(numbers).view(np.uint64), np.uint64(int.from_bytes(digest, "little")))


def normals(seed: int, purpose: str, numbers: Int64s | Hashes) -> Floats:
    """One number from the standard normal distribution for each row number (Box and Muller)."""
    radius = np.sqrt(-2.0 * np.log1p(-draws(seed, purpose + "/radius", numbers)))
    normal: Floats = radius * np.cos(2.0 * np.pi * draws(seed, purpose + "/angle", numbers))
    return normal


@kernel
def _mix(numbers: Hashes, key: np.uint64) -> Hashes:
    out = np.empty(len(numbers), dtype=np.uint64)
    for i in range(len(numbers)):
        x = key + numbers[i] * _GOLDEN
        for _ in range(2):
            x = (x ^ (x >> _30)) * _FIRST
            x = (x ^ (x >> _27)) * _SECOND
            x = (x ^ (x >> _31)) + key
        out[i] = x
    return out


@kernel
def _unit(bits: Hashes) -> Floats:
    out = np.empty(len(bits), dtype=np.float64)
    for i in range(len(bits)):
        out[i] = (bits[i] >> _11) * (1.0 / 9007199254740992.0)
    return out
