"""Lateness over the blocks of a stream: what each wait keeps, exact quantiles, and the picture's cells."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from latecomer.disorder.measures import Marks
from latecomer.disorder.profile import QUANTILES, Wait, positions_needed, rank, shortest_waits, waits
from latecomer.disorder.profiler import COLUMNS, ROWS, count_cells
from latecomer.events import FOREVER_US, Int64s
from latecomer.spark.profiling.blocks import Batches, Blocks, Piece, Walker

BINS = 4_096
SHIPPED = 100_000  # values of one range that a quantile may bring to the driver
FINE_BITS = 10
FINE = 1 << FINE_BITS  # coarse bins between two powers of two


@dataclass(frozen=True)
class Walked:
    """How many events each wait loses, the longest lateness, its coarse law, and the cells of the picture."""

    waits: list[int]
    lost: Int64s
    longest_us: int
    coarse: Int64s
    cells: Int64s


def lateness_of(walker: Walker, batches: Batches) -> Iterator[tuple[Piece, Int64s]]:
    """Each piece with the lateness of its events."""
    marks: dict[int, Marks] = {}
    for piece in walker.pieces(batches):
        before = marks.setdefault(piece.at.number, piece.at.marks())
        ticks = None if walker.tick_us is None else piece.batch["arrival_us"].to_numpy() // walker.tick_us
        yield piece, before.lateness(piece.ts_us, ticks)


def walk(blocks: Blocks) -> Walked:
    """One pass over all rows."""
    ladder = waits(FOREVER_US)
    walker, span = blocks.walker(), blocks.span
    wide = blocks.wide or (0, max(0, blocks.events - 1))
    by_position = blocks.wide is None

    def task(batches: Batches) -> Iterator[dict[str, Any]]:
        lost, longest = np.zeros(len(ladder), dtype=np.int64), 0
        cells, coarse = np.zeros(COLUMNS * ROWS, dtype=np.int64), np.zeros(64 * FINE, dtype=np.int64)
        for piece, late_us in lateness_of(walker, batches):
            late = np.sort(late_us[late_us > 0])
            lost += len(late) - np.searchsorted(late, ladder, side="left")
            longest = max(longest, int(late[-1]) if len(late) else 0)
            coarse += np.bincount(coarse_bin(late), minlength=64 * FINE)
            across = piece.position if by_position else piece.batch["arrival_us"].to_numpy()
            cells += count_cells(piece.ts_us, across, span, wide)
        yield {"lost": lost, "longest": np.array([longest]), "coarse": coarse, "cells": cells}

    sent = blocks.gather(task, *([] if by_position else ["arrival_us"]))
    longest_us = max(int(arrays["longest"][0].as_py()) for arrays in sent)
    steps = waits(longest_us)
    lost = _sum(sent, "lost")[: len(steps)]
    return Walked(steps, lost, longest_us, _sum(sent, "coarse"), _sum(sent, "cells"))


def _sum(sent: list[dict[str, pa.Array]], name: str) -> Int64s:
    total: Int64s = np.sum([arrays[name].to_numpy() for arrays in sent], axis=0)
    return total


def coarse_bin(late_us: Int64s) -> Int64s:
    """A bin for each positive lateness: its highest bit and the ten bits after it."""
    top = np.frexp(late_us.astype(np.float64))[1].astype(np.int64) - 1
    top -= (late_us >> np.minimum(top, 62)) == 0  # where rounding to a float went up to the next power
    rest = np.where(
        top >= FINE_BITS, late_us >> np.maximum(top - FINE_BITS, 0), late_us << np.maximum(FINE_BITS - top, 0)
    )
    found: Int64s = top * FINE + rest % FINE
    return found


def bin_range(place: int) -> tuple[int, int]:
    """The lateness values of a coarse bin, from the first to before the last."""
    top, rest = divmod(place, FINE)
    if top >= FINE_BITS:
        width = 1 << (top - FINE_BITS)
        return (FINE + rest) * width, (FINE + rest + 1) * width
    low = (FINE + rest) >> (FINE_BITS - top)
    return low, low + 1


@dataclass(frozen=True)
class Sought:
    """A quantile on its way: it is the value at `position` among the `count` values from `low` to before `high`."""

    low: int
    high: int
    count: int
    position: int


def exact_quantiles(blocks: Blocks, walked: Walked) -> tuple[dict[str, int], list[Wait]]:
    """Quantiles of the lateness of late events, and the shortest waits that keep given shares of all events."""
    late = int(walked.coarse.sum())
    needed = positions_needed(blocks.events, late)
    quantiles = {name: rank(late, share) for name, share in QUANTILES.items()} if late else {}
    found = _values_at(blocks, walked, sorted({*quantiles.values(), *(place for place in needed if place >= 0)}))
    waits_found = [found[place] if place >= 0 else (0, 0) for place in needed]
    values = {name: found[quantiles[name]][0] if late else 0 for name in QUANTILES}
    return {**values, "max": walked.longest_us}, shortest_waits(waits_found, blocks.events, late)


def _values_at(blocks: Blocks, walked: Walked, positions: list[int]) -> dict[int, tuple[int, int]]:
    """The lateness at positions in sorted order, and how many are not later: from coarse bins to the value itself."""
    upto = np.cumsum(walked.coarse)
    sought = {}
    for position in positions:
        place = int(np.searchsorted(upto, position, side="right"))
        count = int(walked.coarse[place])
        sought[position] = Sought(*bin_range(place), count, position - int(upto[place]) + count)
    while any(one.count > SHIPPED and one.high - one.low > 1 for one in sought.values()):
        sought = _narrowed(blocks, sought)
    values = _values_in(blocks, sorted({(one.low, one.high) for one in sought.values() if one.high - one.low > 1}))
    found = {}
    for position, one in sought.items():
        inside = _at(values[one.low, one.high], one.position) if one.high - one.low > 1 else (one.low, one.count)
        found[position] = (inside[0], position - one.position + inside[1])
    return found


def _narrowed(blocks: Blocks, sought: dict[int, Sought]) -> dict[int, Sought]:
    """Cut ranges that hold too many values to be sent into BINS, and keep the bin that matters."""
    wide = sorted({(one.low, one.high) for one in sought.values() if one.count > SHIPPED and one.high - one.low > 1})
    walker = blocks.walker()

    def task(batches: Batches) -> Iterator[dict[str, Any]]:
        counts = {f"{low}": np.zeros(BINS, dtype=np.int64) for low, _ in wide}
        for _, late_us in lateness_of(walker, batches):
            for low, high in wide:
                inside = late_us[(late_us >= low) & (late_us < high)]
                counts[f"{low}"] += np.bincount((inside - low) // _width(low, high), minlength=BINS)
        yield counts

    sent = blocks.gather(task)
    bins = {pair: _sum(sent, f"{pair[0]}") for pair in wide}
    return {name: _inside(one, bins.get((one.low, one.high))) for name, one in sought.items()}


def _width(low: int, high: int) -> int:
    return -(-(high - low) // BINS)


def _inside(one: Sought, counts: Int64s | None) -> Sought:
    if counts is None:
        return one
    upto = np.cumsum(counts)
    place = int(np.searchsorted(upto, one.position, side="right"))
    low = one.low + place * _width(one.low, one.high)
    before = int(upto[place] - counts[place])
    high = min(low + _width(one.low, one.high), one.high)
    return Sought(low, high, int(counts[place]), one.position - before)


def _at(counted: tuple[Int64s, Int64s], position: int) -> tuple[int, int]:
    """The value at a position among values with their counts, which may repeat; and how many are not larger."""
    values, counts = counted
    order = np.argsort(values)
    value = int(values[order][np.searchsorted(np.cumsum(counts[order]), position, side="right")])
    return value, int(counts[values <= value].sum())


def _values_in(blocks: Blocks, ranges: list[tuple[int, int]]) -> dict[tuple[int, int], tuple[Int64s, Int64s]]:
    """The different values in some ranges and how often they occur."""
    if not ranges:
        return {}
    walker = blocks.walker()

    def task(batches: Batches) -> Iterator[dict[str, Any]]:
        kept: dict[int, list[Int64s]] = {low: [] for low, _ in ranges}
        for _, late_us in lateness_of(walker, batches):
            for low, high in ranges:
                kept[low].append(late_us[(late_us >= low) & (late_us < high)])
        arrays = {}
        for low, parts in kept.items():
            together = np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)
            arrays[f"values{low}"], arrays[f"counts{low}"] = np.unique(together, return_counts=True)
        yield arrays

    sent = blocks.gather(task)

    def united(name: str) -> Int64s:
        return np.concatenate([arrays[name].to_numpy() for arrays in sent])

    return {(low, high): (united(f"values{low}"), united(f"counts{low}")) for low, high in ranges}
