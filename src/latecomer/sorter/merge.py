"""Merging sorted pieces two at a time, the smallest first (Huffman) or in turn.

The tree of merges is planned first, from the sizes alone. Every node of it covers a stretch of the output; nodes of
even depth are written to the output, those of odd depth to a spare buffer of the same size, so that no event is
moved more often than the tree is deep.

Paper: Impatience (Chandramouli, Goldstein, Li), section III-E1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from latecomer._jit import bare_kernel
from latecomer.events import Int64s
from latecomer.sorter.runs import Columns, Maybe, copy_cell, copy_event


class Tree(NamedTuple):
    """Room for a plan: per node its size, children, depth and place; leaves come first, the root last."""

    size: Int64s
    left: Int64s
    right: Int64s
    depth: Int64s
    place: Int64s


def new_tree(leaves: int) -> Tree:
    """Room for the merges of so many pieces."""
    return Tree(*(np.zeros(2 * leaves + 2, dtype=np.int64) for _ in range(5)))


@bare_kernel
def plan(tree: Tree, leaves: int, huffman: bool) -> int:
    """Plan the merges of pieces whose sizes stand in `tree.size`; gives how many moves of an event they take."""
    waiting = tree.left  # leaves have no children: their places are free
    _line_up(tree.size, waiting, leaves, huffman)
    taken, merged, moves = 0, leaves, 0
    for node in range(leaves, 2 * leaves - 1):
        for side in range(2):
            from_leaves = taken < leaves
            if from_leaves and merged < node:
                from_leaves = not huffman or tree.size[waiting[taken]] <= tree.size[merged]
            if from_leaves:
                child = waiting[taken]
                taken += 1
            else:
                child = merged
                merged += 1
            if side == 0:
                tree.left[node] = child
            else:
                tree.right[node] = child
        tree.size[node] = tree.size[tree.left[node]] + tree.size[tree.right[node]]
        moves += tree.size[node]
    root = 2 * leaves - 2
    tree.depth[root] = tree.place[root] = 0
    for node in range(root, leaves - 1, -1):
        left, right = tree.left[node], tree.right[node]
        tree.depth[left] = tree.depth[right] = tree.depth[node] + 1
        tree.place[left] = tree.place[node]
        tree.place[right] = tree.place[node] + tree.size[left]
    return moves


@bare_kernel
def _line_up(size: Int64s, waiting: Int64s, leaves: int, huffman: bool) -> None:
    """The pieces in the order in which they are merged: by size, or as they come."""
    for leaf in range(leaves):
        waiting[leaf] = leaf
    gap = 1
    while huffman and 3 * gap < leaves:
        gap = 3 * gap + 1
    while huffman and gap > 0:  # Shell's sort: in place, and few pieces are a plain insertion sort
        for i in range(gap, leaves):
            leaf, j = waiting[i], i
            while j >= gap and size[waiting[j - gap]] > size[leaf]:
                waiting[j] = waiting[j - gap]
                j -= gap
            waiting[j] = leaf
        gap //= 3


@bare_kernel
def merge_pieces(tree: Tree, leaves: int, out: Columns, out_at: int, spare: Columns) -> None:
    """Do the merges planned, from `out_at` on; leaves stand at their places, in the buffer of their depth."""
    for node in range(leaves, 2 * leaves - 1):
        start, left, size = tree.place[node], tree.size[tree.left[node]], tree.size[node]
        if tree.depth[node] & 1:
            _merge(out, out_at + start, left, size, spare, start)
        else:
            _merge(spare, start, left, size, out, out_at + start)


@bare_kernel
def _merge(events: Columns, i: int, left: int, size: int, to: Columns, k: int) -> None:
    """Merge two sorted neighbours that begin at i into another buffer, at k."""
    if _packed(events.number):
        _merge_packed(events, np.uint64(i), np.uint64(i + left), np.uint64(i + size), to, np.uint64(k))
        return
    j, stop = i + left, i + size
    middle = j
    while i < middle and j < stop:
        if _precedes(events.key, events.number, j, i):
            copy_event(to, k, events, j)
            j += 1
        else:
            copy_event(to, k, events, i)
            i += 1
        k += 1
    if i == middle:
        i, middle = j, stop
    for rest in range(i, middle):
        copy_event(to, k, events, rest)
        k += 1


@bare_kernel
def _packed(number: Maybe) -> bool:
    return number is None


@bare_kernel
def _merge_packed(events: Columns, i: np.uint64, middle: np.uint64, stop: np.uint64, to: Columns, k: np.uint64) -> None:
    """Merge two neighbours of packed keys from both ends at once, without a branch to be mispredicted.

    As long as both sides have 2n keys left, n can be taken from either end. Unsigned places spare numba the check
    for negative ones.
    """
    keys, merged, one = events.key, to.key, np.uint64(1)
    j, p, q = middle, middle - one, stop - one
    r = k + (stop - i) - one
    pairs = min(middle - i, stop - middle) >> one
    while pairs > 0:
        for _ in range(pairs):
            a, b = keys[i], keys[j]
            right = np.uint64(b < a)
            merged[k] = min(a, b)
            copy_cell(to.cells, k, events.cells, j if b < a else i)
            j += right
            i += one - right
            k += one
            a, b = keys[p], keys[q]
            left = np.uint64(a > b)
            merged[r] = max(a, b)
            copy_cell(to.cells, r, events.cells, p if a > b else q)
            p -= left
            q -= one - left
            r -= one
        pairs = min(p + one - i, q + one - j) >> one
    middle, stop = p + one, q + one
    while i < middle or j < stop:
        if j == stop or (i < middle and keys[i] < keys[j]):
            merged[k] = keys[i]
            copy_cell(to.cells, k, events.cells, i)
            i += one
        else:
            merged[k] = keys[j]
            copy_cell(to.cells, k, events.cells, j)
            j += one
        k += one


@bare_kernel
def _precedes(key: Int64s, number: Maybe, j: int, i: int) -> bool:
    """Whether event j comes before event i."""
    if number is None:
        return bool(key[j] < key[i])
    return bool(key[j] < key[i] or (key[j] == key[i] and number[j] < number[i]))


@bare_kernel
def insert_sort(events: Columns, start: int, stop: int, spare: Columns) -> None:
    """Sort a few events in place."""
    for i in range(start + 1, stop):
        if _precedes(events.key, events.number, i, i - 1):
            copy_event(spare, 0, events, i)
            j = i
            while j > start and _comes_after(events.key, events.number, j - 1, spare.key, spare.number):
                copy_event(events, j, events, j - 1)
                j -= 1
            copy_event(events, j, spare, 0)


@bare_kernel
def _comes_after(key: Int64s, number: Maybe, i: int, other_key: Int64s, other_number: Maybe) -> bool:
    """Whether event i comes after the first of the others."""
    if number is None:
        return bool(key[i] > other_key[0])
    return bool(key[i] > other_key[0] or (key[i] == other_key[0] and number[i] > other_number[0]))
