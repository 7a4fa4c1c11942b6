"""Lateness over the blocks of a stream: what each wait keeps, exact quantiles, and the picture's cells."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from latecomer.disorder.measures import lateness
from latecomer.disorder.profile import QUANTILES, rank, waits
from latecomer.disorder.profiler import COLUMNS, ROWS, count_cells
from latecomer.events import FOREVER_US, Int64s
from latecomer.spark.profiling.blocks import Batches, Blocks, Piece, Walker

BINS = 4_096


@dataclass(frozen=True)
class Walked:
    """How many events each wait loses, the longest lateness, and the cells of the picture."""

    waits: list[int]
    lost: Int64s
    longest_us: int
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
        cells = np.zeros(COLUMNS * ROWS, dtype=np.int64)
        for piece, late_us in lateness_of(walker, batches):
            late = np.sort(late_us[late_us > 0])
            lost += len(late) - np.searchsorted(late, ladder, side="left")
            longest = max(longest, int(late[-1]) if len(late) else 0)
            across = piece.position if by_position else piece.batch["arrival_us"].to_numpy()
            cells += count_cells(piece.ts_us, across, span, wide)
        yield {"lost": lost, "longest": np.array([longest]), "cells": cells}

    sent = blocks.gather(task)
    longest_us = max(int(arrays["longest"][0].as_py()) for arrays in sent)
    steps = waits(longest_us)
    lost = _sum(sent, "lost")[: len(steps)]
    return Walked(steps, lost, longest_us, _sum(sent, "cells"))


def _sum(sent: list[dict[str, pa.Array]], name: str) -> Int64s:
    total: Int64s = np.sum([arrays[name].to_numpy() for arrays in sent], axis=0)
    return total


def exact_quantiles(blocks: Blocks, late: int, longest_us: int) -> dict[str, int]:
    """Quantiles of the lateness of late events: the ranges that hold them are counted ever finer, down to one value."""
    ranks = {name: rank(late, share) for name, share in QUANTILES.items()}
    ranges = dict.fromkeys(ranks, (1, longest_us + 1))
    while late and any(high - low > 1 for low, high in ranges.values()):
        wanted = sorted({pair for pair in ranges.values() if pair[1] - pair[0] > 1})
        counted = _histograms(blocks, wanted)
        for name, pair in ranges.items():
            if pair in counted:
                ranges[name], ranks[name] = _narrow(pair, counted[pair], ranks[name])
    found = {name: low if late else 0 for name, (low, _) in ranges.items()}
    return {**found, "max": longest_us}


def _narrow(pair: tuple[int, int], counts: Int64s, position: int) -> tuple[tuple[int, int], int]:
    """The bin of a range in which the position lies, and the position inside it."""
    upto = np.cumsum(counts)
    place = int(np.searchsorted(upto, position, side="right"))
    width = _width(pair)
    low = pair[0] + place * width
    return (low, min(low + width, pair[1])), position - int(upto[place] - counts[place])


def _width(pair: tuple[int, int]) -> int:
    return -(-(pair[1] - pair[0]) // BINS)


def _histograms(blocks: Blocks, wanted: list[tuple[int, int]]) -> dict[tuple[int, int], Int64s]:
    sent = blocks.gather(_counter(blocks.walker(), wanted))
    return {pair: _sum(sent, str(number)) for number, pair in enumerate(wanted)}


def _counter(walker: Walker, wanted: list[tuple[int, int]]) -> Callable[[Batches], Iterator[dict[str, Any]]]:
    def task(batches: Batches) -> Iterator[dict[str, Any]]:
        counts = {str(number): np.zeros(BINS, dtype=np.int64) for number in range(len(wanted))}
        for _, late_us in lateness_of(walker, batches):
            for number, (low, high) in enumerate(wanted):
                inside = late_us[(late_us >= low) & (late_us < high)]
                counts[str(number)] += np.bincount((inside - low) // _width((low, high)), minlength=BINS)
        yield counts

    return task
