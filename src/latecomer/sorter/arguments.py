"""What a sorter may be given: times, payloads, latencies and punctuations, checked and brought into one form."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import numpy.typing as npt

from latecomer.durations import Duration, duration_us
from latecomer.errors import InputError, must
from latecomer.events import FOREVER_US, NEVER_US, Int64s
from latecomer.sorter.runs import Cells

_WORDS = {1: "u1", 2: "u2", 4: "u4", 8: "u8", 16: "c16"}
_LARGEST = 1_024  # bytes; larger payloads had better stay where they are


def times_of(values: Any) -> Int64s:
    """Times as 64-bit integers; also numpy's datetime64, in its own unit."""
    times = np.asarray(values)
    if times.ndim != 1:
        raise InputError(
            must("times", "be a list of numbers", f"an array of shape {times.shape}", "give one per event")
        )
    if times.dtype.kind not in "iuM" and len(times):
        raise InputError(must("times", "be whole numbers", times.dtype.name, "round them, e.g. to microseconds"))
    if times.dtype == np.uint64 and len(times) and int(times.max()) >= FOREVER_US:
        raise InputError(must("times", "lie below 2**62", int(times.max()), "count from a later moment"))
    return np.ascontiguousarray(times.astype(np.int64, copy=False))


def check_span(low_us: int, high_us: int) -> None:
    """Refuse times that could be taken for the beginning or the end of time."""
    for time in (low_us, high_us):
        if not NEVER_US < time < FOREVER_US:
            raise InputError(must("times", "lie between -2**62 and 2**62", time, "count from another moment"))


def payload_of(values: Any, count: int) -> Cells:
    """One element per event."""
    payload = np.asarray(values)
    if payload.shape != (count,):
        raise InputError(must("payload", "have one element per event", payload.shape, f"give {count}"))
    if payload.dtype.hasobject or not 0 < payload.dtype.itemsize <= _LARGEST:
        rule = f"have elements of 1 to {_LARGEST} bytes and no Python objects"
        raise InputError(must("payload", rule, payload.dtype, "push row numbers, and take the rows when they come out"))
    return payload


def plain(payload: Cells) -> Cells:
    """The same bytes as a type that numpy and numba move at once: a number, or several side by side."""
    size = payload.dtype.itemsize
    kind: Any = _WORDS.get(size)
    if kind is None:
        words = ["u8"] * (size // 8) + [word for bytes_, word in ((4, "u4"), (2, "u2"), (1, "u1")) if size & bytes_]
        kind = np.dtype([(f"word{place}", word) for place, word in enumerate(words)])
    return np.ascontiguousarray(payload).view(kind)


def as_bytes(payload: Cells) -> npt.NDArray[np.uint8]:
    """The same memory, which numpy copies several times faster than it copies elements of several numbers."""
    return payload.view(np.uint8)


def punctuation_of(value: Any) -> int:
    """A whole number within the range of times."""
    try:
        punctuation = operator.index(value)
    except TypeError:
        raise InputError(must("punctuation", "be a whole number", value, "round it down")) from None
    if not NEVER_US <= punctuation < FOREVER_US:
        raise InputError(must("punctuation", "lie between -2**62 and 2**62", value, "call finish() at the end"))
    return punctuation


def latency_of(latency: Duration | int | None, every: int | None) -> int:
    """The latency as a whole number; it is needed where punctuations come by themselves."""
    if every is not None and (isinstance(every, bool) or not isinstance(every, int | np.integer) or every < 1):
        raise InputError(must("every", "be a whole number above zero", every, "e.g. every=10_000"))
    if latency is None:
        if every is not None:
            raise InputError(must("latency", "be given with every", None, "e.g. latency='10 seconds'"))
        return 0
    if isinstance(latency, bool):
        raise InputError(must("latency", "be a duration", latency, "give microseconds or text"))
    if isinstance(latency, int | np.integer):
        if not 0 <= latency < FOREVER_US:
            raise InputError(must("latency", "not be negative, and below 2**62", latency, "give microseconds or text"))
        return int(latency)
    return duration_us(latency, "latency", zero=True)
