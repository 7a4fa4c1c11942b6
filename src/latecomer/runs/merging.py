"""Merging sorted batches of events: the smallest first, in the total order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from latecomer.events import EventBatch, Int64s, concat_events, refine_ties, sort_times
from latecomer.sorter.merge import merge_pieces, new_tree, plan
from latecomer.sorter.release import MOST_MOVES
from latecomer.sorter.runs import Columns

KEY_BITS = 63


def merge_events(batches: Sequence[EventBatch]) -> EventBatch:
    """Sorted batches as one sorted batch."""
    if len(batches) == 1:
        return batches[0]
    together = concat_events(batches)
    sizes = np.array([len(batch) for batch in batches if len(batch)], dtype=np.int64)
    ranked, positions = merge_order(together.ts_us, sizes)
    return together.take(refine_ties(together, ranked, positions))


def merge_order(ts_us: Int64s, sizes: Int64s) -> tuple[Int64s, Int64s]:
    """Sort times that are sorted pieces one after the other: times in order, and the positions they had."""
    leaves, size = len(sizes), len(ts_us)
    tree = new_tree(leaves)
    tree.size[:leaves] = sizes
    first = int(ts_us.min()) if size else 0
    bits = size.bit_length()
    if leaves < 2 or (int(ts_us.max()) - first).bit_length() + bits > KEY_BITS:
        return sort_times(ts_us)
    if plan(tree, leaves, True) > MOST_MOVES * size:
        return sort_times(ts_us)
    keys = ((ts_us - first) << bits) | np.arange(size)
    out, spare = np.empty_like(keys), np.empty_like(keys)
    start = 0
    for leaf in range(leaves):
        place, length = tree.place[leaf], tree.size[leaf]
        (spare if tree.depth[leaf] & 1 else out)[place : place + length] = keys[start : start + length]
        start += length
    merge_pieces(tree, leaves, Columns(out, None, None), 0, Columns(spare, None, None))
    return (out >> bits) + first, out & ((1 << bits) - 1)
