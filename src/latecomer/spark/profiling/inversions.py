"""Inversions, distance and interleaved over blocks that no single process holds at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F

from latecomer.disorder import measures
from latecomer.events import NEVER_US, Int64s
from latecomer.spark.profiling.blocks import Batches, Blocks, Walker

RANGE = 1 << 20  # about how many rows a range of time holds


def count_inversions(blocks: Blocks) -> int:
    """Pairs out of order, wherever they stand."""
    inside = sum(note.inversions for note in blocks.notes)
    if len(blocks.notes) < 2:
        return inside
    bounds = _ranges(blocks)
    counts = _counts(blocks, bounds)
    return inside + _between_ranges(counts) + _inside_ranges(blocks, bounds, counts)


def _ranges(blocks: Blocks) -> Int64s:
    """Times that cut the rows into ranges of about equal size."""
    sample = np.sort(np.concatenate([note.sample for note in blocks.notes]))
    parts = max(2, -(-blocks.events // RANGE))
    return np.unique(sample[np.arange(1, parts) * len(sample) // parts])


def _counts(blocks: Blocks, bounds: Int64s) -> Int64s:
    """How many rows of each block (down) fall into each range of time (across)."""
    walker, ranges = blocks.walker(), len(bounds) + 1

    def task(batches: Batches) -> Iterator[dict[str, Any]]:
        for at, ts_us in walker.blocks(batches):
            inside = np.searchsorted(bounds, ts_us, side="right")
            yield {"block": np.array([at.number]), "counts": np.bincount(inside, minlength=ranges)}

    table = np.zeros((len(blocks.notes), ranges), dtype=np.int64)
    for arrays in blocks.gather(task):
        table[arrays["block"][0].as_py()] += arrays["counts"].to_numpy()
    return table


def _between_ranges(counts: Int64s) -> int:
    """Pairs of an earlier block and a later range with a later block and an earlier range."""
    earlier = np.cumsum(counts, axis=0) - counts
    above = np.cumsum(earlier[:, ::-1], axis=1)[:, ::-1] - earlier  # earlier blocks, later ranges
    return int((counts.astype(object) * above.astype(object)).sum())


def _inside_ranges(blocks: Blocks, bounds: Int64s, counts: Int64s) -> int:
    """Pairs of different blocks inside one range of time; ranges that one block has to itself have none."""
    shared = np.count_nonzero(counts, axis=0) > 1
    walker = blocks.walker()

    def send(batches: Batches) -> Batches:
        for piece in walker.pieces(batches):
            inside = np.searchsorted(bounds, piece.ts_us, side="right")
            keep = shared[inside]
            columns = {
                "range": pa.array(inside[keep].astype(np.int32)),
                "block": pa.array(np.full(np.count_nonzero(keep), piece.at.number)),
                "position": pa.array(piece.position[keep]),
                "ts_us": pa.array(piece.ts_us[keep]),
            }
            yield pa.RecordBatch.from_pydict(columns)

    sent = blocks.pick().mapInArrow(send, "range int, block bigint, position bigint, ts_us bigint")
    found = sent.groupBy("range").applyInArrow(_across_blocks, "inversions string").collect()
    return sum(int(row["inversions"]) for row in found)


def _across_blocks(table: pa.Table) -> pa.Table:
    block, position, ts_us = (table[name].to_numpy() for name in ("block", "position", "ts_us"))
    order = np.argsort(position)
    block, ts_us = block[order], ts_us[order]
    inside = sum(measures.count_inversions(part) for part in np.split(ts_us, np.flatnonzero(np.diff(block)) + 1))
    return pa.table({"inversions": [str(measures.count_inversions(ts_us) - inside)]})


def farthest(blocks: Blocks) -> int:
    """The largest distance of an inversion."""
    best = max((note.distance for note in blocks.notes), default=0)
    pairs = _candidates(blocks, best)
    if not pairs:
        return best
    sent = blocks.pick().mapInArrow(
        _stairs(blocks.walker(), pairs), "pair int, left boolean, position bigint, ts_us bigint"
    )
    found = sent.groupBy("pair").applyInArrow(_farthest_pair, "distance bigint").collect()
    return max([best, *(int(row["distance"]) for row in found)])


def _candidates(blocks: Blocks, best: int) -> list[tuple[int, int]]:
    """Pairs of blocks that may hold the farthest inversion, judged by their first and last positions."""
    ends = np.cumsum([note.rows for note in blocks.notes]) - 1
    starts = np.array([0, *(ends[:-1] + 1)], dtype=np.int64)
    least = np.array([note.least for note in blocks.notes])
    found = []
    for left, note in enumerate(blocks.notes):
        for right in range(len(blocks.notes) - 1, left, -1):
            if ends[right] - starts[left] <= best:
                break
            if least[right] < note.most:
                found.append((left, right))
                best = max(best, int(starts[right] - ends[left]))
    return [(left, right) for left, right in found if ends[right] - starts[left] > best]


def _stairs(walker: Walker, pairs: list[tuple[int, int]]) -> Callable[[Batches], Batches]:
    """The records of each block of a pair: rising maxima from the left one, minima to come from the right one."""

    def send(batches: Batches) -> Batches:
        for at, ts_us in walker.blocks(batches):
            for number, pair in enumerate(pairs):
                if at.number not in pair:
                    continue
                left = pair[0] == at.number
                records = _rises(ts_us) if left else _falls(ts_us)
                columns = {
                    "pair": pa.array(np.full(len(records), number, dtype=np.int32)),
                    "left": pa.array(np.full(len(records), left)),
                    "position": pa.array(at.position + records),
                    "ts_us": pa.array(ts_us[records]),
                }
                yield pa.RecordBatch.from_pydict(columns)

    return send


def _rises(ts_us: Int64s) -> Int64s:
    """Where the largest time so far rises."""
    marks = np.maximum.accumulate(ts_us)
    return np.flatnonzero(np.diff(marks, prepend=NEVER_US) > 0)


def _falls(ts_us: Int64s) -> Int64s:
    """Where the smallest time still to come is."""
    return len(ts_us) - 1 - _rises(-ts_us[::-1])[::-1]


def _farthest_pair(table: pa.Table) -> pa.Table:
    left, position, ts_us = (table[name].to_numpy(zero_copy_only=False) for name in ("left", "position", "ts_us"))
    first = np.argsort(position[left])
    rises, rise_at = ts_us[left][first], position[left][first]
    after = np.searchsorted(rises, ts_us[~left], side="right")
    there = after < len(rises)
    reach = position[~left][there] - rise_at[after[there]]
    return pa.table({"distance": [int(reach.max(initial=0))]})


def interleaved(blocks: Blocks) -> int:
    """Greedy patience over all rows in order, in one task that keeps only the tails."""
    if not blocks.notes:
        return 0
    in_order = blocks.pick().repartition(1).sortWithinPartitions("part", "place")
    found = in_order.mapInArrow(_deal, "runs bigint").agg(F.max("runs").alias("runs")).collect()
    return int(found[0]["runs"])


def _deal(batches: Batches) -> Batches:
    dealer, runs = measures.Dealer(), 0
    for batch in batches:
        runs = dealer.deal(batch["ts_us"].to_numpy())
    yield pa.RecordBatch.from_pydict({"runs": pa.array([runs], pa.int64())})
