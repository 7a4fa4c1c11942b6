"""Exact sums of whole numbers and decimals: partial sums have room to spare, only the whole is asked whether it fits.

The sum of whole numbers is kept in two columns of int64, low and high, and is `high * 2**64 + low`; that of decimals
of precision p in one decimal256 of precision p + 38. There is one way to write each sum, so parts may be added in any
order and in any number of steps. As in Spark with ANSI mode, what does not fit into the result's type is an error.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from latecomer.errors import InputError, must
from latecomer.events import Bools, Int64s
from latecomer.windows.grouping import Groups

MOST_DIGITS = 38  # of Spark's decimals
_SMALL = 1 << 40  # whole numbers of which a window's slices cannot add up to too much
_HALF = 0xFFFF_FFFF
_WORDS = 8  # of 32 bits, in a decimal256
_DIVIDED = MOST_DIGITS + 1  # the scale to which Spark divides before it rounds to the type of a mean


def whole_numbers(values: pa.Array) -> list[pa.Array]:
    """The sums of single whole numbers: low and high."""
    if values.type == pa.uint64():
        low = values.view(pa.int64())
        return [low, pc.less(low, 0).fill_null(False).cast(pa.int64())]
    return [values.cast(pa.int64()), pa.array(np.zeros(len(values), dtype=np.int64))]


def add_whole_numbers(low: pa.Array, high: pa.Array, groups: Groups) -> list[pa.Array]:
    """The sums of groups; null where there is nothing to add."""
    parts, wide = low.fill_null(0).to_numpy(), high.to_numpy()
    if _stay_small(parts, groups) and not wide.any():
        sums, carried = groups.reduce(np.add, parts), np.zeros(len(groups), dtype=np.int64)
    else:
        small, large = groups.reduce(np.add, parts & _HALF), groups.reduce(np.add, parts >> 32)
        large += small >> 32
        sums = (large << 32) | (small & _HALF)
        carried = groups.reduce(np.add, wide) + ((large + 2**31) >> 32)
    return [pa.array(sums, mask=_nothing(low, groups)), pa.array(carried)]


def can_accumulate(low: pa.Array, high: pa.Array) -> bool:
    """Whether sums are so small that a window's worth of them can be added up by themselves."""
    return _largest(low.fill_null(0).to_numpy()) <= _SMALL and not high.to_numpy().any()


def as_bigint(low: pa.Array, high: pa.Array, name: str) -> pa.Array:
    """Sums of whole numbers as users see them."""
    wide = np.flatnonzero(high.to_numpy())
    if len(wide):
        exact = (high[int(wide[0])].as_py() << 64) + low[int(wide[0])].as_py()
        raise InputError(must(name, "fit into a bigint", exact, "cast the column to decimal(38) or double before"))
    return low


def is_decimal(kind: pa.DataType) -> bool:
    """Whether values are decimals as Spark has them."""
    return bool(pa.types.is_decimal(kind) and kind.precision <= MOST_DIGITS)


def sum_type(kind: pa.DataType) -> pa.DataType:
    """The type of a sum of decimals, as Spark gives it."""
    return pa.decimal128(min(kind.precision + 10, MOST_DIGITS), kind.scale)


def mean_type(kind: pa.DataType) -> pa.DataType:
    """The type of a mean of decimals, as Spark gives it."""
    return pa.decimal128(min(kind.precision + 4, MOST_DIGITS), min(kind.scale + 4, MOST_DIGITS))


def kept_type(kind: pa.DataType) -> pa.DataType:
    """The type in which a sum of decimals is kept: room for 10**38 of them."""
    return pa.decimal256(kind.precision + MOST_DIGITS, kind.scale)


def summed_type(kept: pa.DataType) -> pa.DataType:
    """The type of the decimals that are added up in one that is kept."""
    return pa.decimal128(kept.precision - MOST_DIGITS, kept.scale)


def add_decimals(sums: pa.Array, groups: Groups) -> pa.Array:
    """The sums of groups of kept sums; null where there is nothing to add."""
    words = _words(sums)
    low = words[:, 0]
    if _stay_small(low, groups) and (words[:, 1:] == (low >> 63)[:, None]).all():
        added = groups.reduce(np.add, low)
        wide = np.repeat(added >> 63, _WORDS // 2).reshape(-1, _WORDS // 2)
        wide[:, 0] = added
    else:
        wide = _carried(groups.reduce(np.add, words.view(np.uint32).astype(np.int64)))
    return _decimals(wide, sums.type, _nothing(sums, groups))


def as_sum(sums: pa.Array, name: str) -> pa.Array:
    """Sums of decimals as users see them."""
    return _fitting(_integers(sums), sum_type(summed_type(sums.type)), name)


def as_mean(sums: pa.Array, counts: pa.Array, name: str) -> pa.Array:
    """Means of decimals as users see them: divided and rounded as Spark does it, null where there is nothing."""
    kind = mean_type(summed_type(sums.type))
    more, less = 10 ** (_DIVIDED - sums.type.scale), 10 ** (_DIVIDED - kind.scale)
    means = (
        None if total is None else _rounded(_rounded(total * more, count), less)
        for total, count in zip(_integers(sums), counts.to_pylist(), strict=True)
    )
    return _fitting(list(means), kind, name)


def _rounded(number: int, by: int) -> int:
    """A quotient, halves away from zero."""
    nearest = (2 * abs(number) + by) // (2 * by)
    return nearest if number >= 0 else -nearest


def _fitting(integers: list[int | None], kind: pa.DataType, name: str) -> pa.Array:
    """Decimals of their digits; refuses those that have too many."""
    beyond = 10**kind.precision
    for number in integers:
        if number is not None and not -beyond < number < beyond:
            found = f"{number}e-{kind.scale}"
            raise InputError(must(name, f"fit into {kind}", found, "cast the column to double before"))
    words = b"".join((number or 0).to_bytes(16, "little", signed=True) for number in integers)
    nothing = np.fromiter((number is None for number in integers), np.bool_, len(integers))
    return _decimals(np.frombuffer(words, dtype=np.int64).reshape(-1, 2), kind, nothing)


def _integers(decimals: pa.Array) -> list[int | None]:
    """The digits of each decimal, as one whole number."""
    words = _words(decimals)
    size = words.shape[1] * 8
    data, known = words.tobytes(), decimals.is_valid().to_pylist()
    return [
        int.from_bytes(data[place * size : (place + 1) * size], "little", signed=True) if there else None
        for place, there in enumerate(known)
    ]


def _words(decimals: pa.Array) -> Int64s:
    """The digits of decimals as whole numbers, in words of 64 bits, the lowest first; zero for nulls."""
    filled = decimals.fill_null(pa.scalar(0, decimals.type)) if decimals.null_count else decimals
    width = decimals.type.bit_width // 64
    words: Int64s = np.frombuffer(filled.buffers()[1], dtype=np.int64).reshape(-1, width)
    return words[filled.offset : filled.offset + len(filled)]


def _decimals(words: Int64s, kind: pa.DataType, nothing: Bools) -> pa.Array:
    """Decimals from such words."""
    valid = pa.array(~nothing).buffers()[1] if nothing.any() else None
    return pa.Array.from_buffers(kind, len(words), [valid, pa.py_buffer(np.ascontiguousarray(words))])


def _carried(halves: Int64s) -> Int64s:
    """Words of 64 bits from sums of halves of them, which may be larger than a half."""
    for place in range(_WORDS - 1):
        halves[:, place + 1] += halves[:, place] >> 32
    words: Int64s = (halves & _HALF).astype(np.uint32).view(np.int64)
    return words


def _nothing(values: pa.Array, groups: Groups) -> Bools:
    """In which groups all values are null."""
    if values.null_count == 0:
        return np.zeros(len(groups), dtype=np.bool_)
    valid = values.is_valid().to_numpy(zero_copy_only=False).astype(np.int64)
    nothing: Bools = groups.reduce(np.add, valid) == 0
    return nothing


def _largest(numbers: npt.NDArray[np.int64]) -> int:
    """How far from zero numbers are, at most."""
    return max(-int(numbers.min()), int(numbers.max())) if len(numbers) else 0


def _stay_small(numbers: npt.NDArray[np.int64], groups: Groups) -> bool:
    """Whether no group's sum can leave the range of an int64."""
    largest = _largest(numbers)
    return largest * len(numbers) < 2**63 or largest * int(groups.sizes.max()) < 2**63
