"""Who competes: our sorter in two forms, the algorithms of the paper, today's libraries, and one idea of our own.

All give the same events in the same order: by time, equal times by arrival. Ours, quicksort, timsort and patience sort
keys and move each payload once, which is faster than moving payloads along (that is `carrying`). `beyond` is no part
of any lead: it merges from the end of the sorted buffer, which nobody in the paper does, and shows how much of a
competitor's loss is owed to the paper's way of merging.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from functools import partial
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from latecomer.events import Int64s
from latecomer.sorter.sorter import ImpatienceSorter
from latecomer_lab.sorting.buffers import Records, pack
from latecomer_lab.sorting.heap import HeapSorter
from latecomer_lab.sorting.online import (
    PATIENCE,
    QUICKSORT,
    TIMSORT,
    Called,
    Compiled,
    Offline,
    Sort,
    sort_packed,
    unpacked,
)


class Output(Protocol):
    """What leaves."""

    @property
    def ts_us(self) -> Int64s:
        """Times."""

    @property
    def payload(self) -> Records | None:
        """One per time."""


class Sorter(Protocol):
    """What all competitors have in common."""

    def push(self, ts_us: Int64s, payload: Records, /) -> Output:
        """Take events in; what left."""

    def finish(self) -> Output:
        """All that is left."""


Make = Callable[[int, int | None], Sorter]  # latency in microseconds, events from punctuation to punctuation


class Kind(StrEnum):
    """What a competitor is compared as."""

    OURS = "ours"
    PAPER = "paper"
    MODERN = "modern"
    BEYOND = "beyond"
    WITHOUT = "without"  # the paper's Impatience sort without one of its parts


class Competitor(NamedTuple):
    """A name, a kind, and how to make a sorter."""

    name: str
    kind: Kind
    make: Make
    offline: bool = True
    online: bool = True


PRODUCT, IMPATIENCE = "latecomer", "impatience"
CARRYING = "carrying"
NO_HUFFMAN, NO_BOTH = "without HM", "without HM & SRS"


def sort_by_numpy(ts_us: Int64s) -> tuple[Int64s, Int64s]:
    """Packed keys by numpy's vectorised quicksort."""
    keys, base, bits = pack(ts_us)
    keys.sort()
    return unpacked(keys, base, bits)


def sort_by_argsort(ts_us: Int64s) -> tuple[Int64s, Int64s]:
    """numpy's stable argsort."""
    order = np.argsort(ts_us, kind="stable")
    return ts_us[order], order


def sort_by_arrow(ts_us: Int64s) -> tuple[Int64s, Int64s]:
    """Arrow's sort, which is stable."""
    order = pc.sort_indices(pa.array(ts_us)).to_numpy().view(np.int64)
    return ts_us[order], order


def _product(latency_us: int, every: int | None) -> Sorter:
    return ImpatienceSorter(latency_us, every=every)


def _paper(latency_us: int, every: int | None, *, huffman: bool = True, speculative: bool = True) -> Sorter:
    return ImpatienceSorter(latency_us, every=every, huffman=huffman, speculative=speculative, hardware=False)


def _carrying(latency_us: int, every: int | None) -> Sorter:
    return ImpatienceSorter(latency_us, every=every, hardware=False, carry=True)


def _scalar(which: int, latency_us: int, every: int | None, *, from_end: bool = False) -> Sorter:
    if every is None:
        return Offline(partial(sort_packed, which=which))
    return Compiled(latency_us, every, which, from_end=from_end)


def _library(sort: Sort, latency_us: int, every: int | None, *, from_end: bool = False) -> Sorter:
    return Offline(sort) if every is None else Called(latency_us, every, sort, from_end=from_end)


COMPETITORS = (
    Competitor(PRODUCT, Kind.OURS, _product),
    Competitor(IMPATIENCE, Kind.OURS, _paper),
    Competitor("heap", Kind.PAPER, HeapSorter),
    Competitor("quicksort", Kind.PAPER, partial(_scalar, QUICKSORT)),
    Competitor("timsort", Kind.PAPER, partial(_scalar, TIMSORT)),
    Competitor("patience", Kind.PAPER, partial(_scalar, PATIENCE)),
    Competitor("numpy", Kind.MODERN, partial(_library, sort_by_numpy)),
    Competitor("numpy stable", Kind.MODERN, partial(_library, sort_by_argsort)),
    Competitor("pyarrow", Kind.MODERN, partial(_library, sort_by_arrow)),
    Competitor("timsort from end", Kind.BEYOND, partial(_scalar, TIMSORT, from_end=True), offline=False),
    Competitor("numpy from end", Kind.BEYOND, partial(_library, sort_by_numpy, from_end=True), offline=False),
    Competitor(CARRYING, Kind.WITHOUT, _carrying),
    Competitor(NO_HUFFMAN, Kind.WITHOUT, partial(_paper, huffman=False), online=False),
    Competitor(NO_BOTH, Kind.WITHOUT, partial(_paper, huffman=False, speculative=False), online=False),
)


def competing(every: int | None) -> list[Competitor]:
    """Who competes in a cell."""
    return [each for each in COMPETITORS if (each.offline if every is None else each.online)]
