"""Lateness over the blocks of a stream: what each wait keeps, exact quantiles, and the picture's cells."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from latecomer.disorder.measures import lateness
from latecomer.disorder.profile import QUANTILES, rank, waits
from latecomer.disorder.profiler import COLUMNS, ROWS, count_cells
from latecomer.events import FOREVER_US, Int64s
from latecomer.spark.profiling.blocks import Batches, Blocks, Piece, Walker

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
    marks: dict[int, int] = {}
    for piece in walker.pieces(batches):
        mark_us = marks.get(piece.at.number, piece.at.mark_us)
        marks[piece.at.number] = max(mark_us, int(piece.ts_us.max()))
        yield piece, lateness(piece.ts_us, mark_us)


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


def exact_quantiles(blocks: Blocks, walked: Walked) -> dict[str, int]:
    """Quantiles of the lateness of late events: the coarse bins that hold them are looked at again, value by value."""
    upto = np.cumsum(walked.coarse)
    late = int(upto[-1])
    if late == 0:
        return {**dict.fromkeys(QUANTILES, 0), "max": 0}
    positions = {name: rank(late, share) for name, share in QUANTILES.items()}
    bins = {name: int(np.searchsorted(upto, position, side="right")) for name, position in positions.items()}
    values = _values_in(blocks, sorted(set(bins.values())))
    found = {}
    for name, place in bins.items():
        before = int(upto[place] - walked.coarse[place])
        found[name] = _at(values[place], positions[name] - before)
    return {**found, "max": walked.longest_us}


def _at(counted: tuple[Int64s, Int64s], position: int) -> int:
    """The value at a position among values with their counts."""
    values, counts = counted
    order = np.argsort(values)
    return int(values[order][np.searchsorted(np.cumsum(counts[order]), position, side="right")])


def _values_in(blocks: Blocks, places: list[int]) -> dict[int, tuple[Int64s, Int64s]]:
    """The different values in some coarse bins (each a thousandth of its size wide) and how often they occur."""
    walker, ranges = blocks.walker(), {place: bin_range(place) for place in places}

    def task(batches: Batches) -> Iterator[dict[str, Any]]:
        kept: dict[int, list[Int64s]] = {place: [] for place in places}
        for _, late_us in lateness_of(walker, batches):
            for place, (low, high) in ranges.items():
                kept[place].append(late_us[(late_us >= low) & (late_us < high)])
        arrays = {}
        for place, parts in kept.items():
            together = np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)
            arrays[f"values{place}"], arrays[f"counts{place}"] = np.unique(together, return_counts=True)
        yield arrays

    sent = blocks.gather(task)
    return {
        place: (
            np.concatenate([arrays[f"values{place}"].to_numpy() for arrays in sent]),
            np.concatenate([arrays[f"counts{place}"].to_numpy() for arrays in sent]),
        )
        for place in places
    }
