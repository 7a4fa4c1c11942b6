"""What a punctuation sets free: the heads of all runs, cut and merged; and the loop that feeds a stream through.

Paper: Impatience (Chandramouli, Goldstein, Li), section III-D.
"""

from __future__ import annotations

from typing import NamedTuple

from latecomer._jit import bare_kernel
from latecomer.events import Int64s
from latecomer.search import lower_bound
from latecomer.sorter.merge import Tree, insert_sort, merge_pieces, plan
from latecomer.sorter.runs import (
    BLOCK,
    FLOOR,
    FREE,
    HELD,
    LARGEST,
    MARK,
    READY,
    RUNS,
    SHIFT,
    Blocks,
    Columns,
    Maybe,
    Packing,
    Table,
    copy_event,
    deal,
    drop_empty_runs,
    last_key,
    measure_heads,
    take_head,
)

FEW = 32  # so many events are sorted by insertion, whatever runs they come from
ANY_MOVES = 1_000
MOST_MOVES = 10  # where merging would move an event more often on average, sorting anew is faster

DONE, NO_ROOM_FOR_RUNS, NO_ROOM_TO_GIVE = range(3)


class Switches(NamedTuple):
    """The paper's optimisations, each of which can be switched off, and what to do with the late."""

    huffman: bool
    speculative: bool
    drop_empty: bool
    adjust: bool  # a too-late event is moved to the first time that is not too late


@bare_kernel
def release(
    table: Table,
    blocks: Blocks,
    held: Columns,
    key: int,
    extra: Int64s,
    extras: int,
    tree: Tree,
    leaf_run: Int64s,
    out: Columns,
    out_at: int,
    spare: Columns,
    switches: Switches,
    most_moves: int,
) -> tuple[int, int, bool]:
    """Give all events up to a key, and the first so many of the sorted packed keys `extra`, in order.

    Gives how far the output is filled then, how much room was needed (where there was too little, nothing is done),
    and whether the events are in order: not where merging would move an event more than `most_moves` times on average.
    """
    if extras == 0 and len(out.key) - out_at >= FEW:
        popped = pop_few(table, blocks, held, key, out, out_at, switches.drop_empty)
        if popped >= 0:
            insert_sort(out, out_at, out_at + popped, spare)
            return out_at + popped, popped, True
    heads = measure_heads(table, blocks, held.key, key, leaf_run, tree.size)
    tree.size[heads] = extras
    leaves = heads + 1 if extras else heads
    total = 0
    for leaf in range(leaves):
        total += tree.size[leaf]
    if total == 0 or out_at + total > len(out.key) or total > len(spare.key):
        return out_at, total, True
    in_order = _plan(tree, leaves, total, switches.huffman, most_moves)
    empty = _take_heads(table, blocks, held, tree, heads, leaf_run, out, out_at, spare)
    _take_extra(tree, heads, extra, extras, out.key, out_at, spare.key)
    if in_order:
        merge_pieces(tree, leaves, out, out_at, spare)
    if empty and switches.drop_empty:
        drop_empty_runs(table)
    return out_at + total, total, in_order


@bare_kernel
def settle(
    table: Table,
    blocks: Blocks,
    held: Columns,
    key: int,
    keys: Int64s,
    cut: int,
    tree: Tree,
    leaf_run: Int64s,
    out: Columns,
    spare: Columns,
    switches: Switches,
    most_moves: int,
) -> tuple[int, int, bool, int, int]:
    """Give all events up to a key, and deal some sorted packed keys from `cut` on onto the runs.

    Of the keys before the cut, those are given with the events that an event may come after; the others stay where
    they are. Gives what `release` gives, how many keys were merged, and how far keys were dealt.
    """
    merged = _merged(keys, cut, min(key, table.tail[0]) if table.state[HELD] else -1)
    stop, needed, in_order = release(
        table, blocks, held, key, keys, merged, tree, leaf_run, out, 0, spare, switches, most_moves
    )
    if stop != needed:
        return stop, needed, in_order, merged, cut
    ready, span, speculative = Packing(0, READY), (cut, len(keys)), switches.speculative
    at, _ = deal(keys, 0, ready, None, span, table, blocks, held, keys, 0, speculative, False)
    return stop, needed, in_order, merged, at


@bare_kernel
def _merged(keys: Int64s, cut: int, last: int) -> int:
    """How many of the sorted keys before a cut are up to the last that is given with them."""
    return lower_bound(keys, 0, cut, last + 1)


@bare_kernel
def _plan(tree: Tree, leaves: int, total: int, huffman: bool, most_moves: int) -> bool:
    """Plan the merges; where they would move events too often, only where each piece goes, one after the other."""
    if plan(tree, leaves, huffman) <= most_moves * total:
        return True
    place = 0
    for leaf in range(leaves):
        tree.place[leaf], tree.depth[leaf] = place, 0
        place += tree.size[leaf]
    return False


@bare_kernel
def _take_heads(
    table: Table,
    blocks: Blocks,
    held: Columns,
    tree: Tree,
    heads: int,
    leaf_run: Int64s,
    out: Columns,
    out_at: int,
    spare: Columns,
) -> bool:
    """Move the heads of the runs to where the plan wants them; whether a run is empty now."""
    empty = False
    for leaf in range(heads):
        run, size, place = leaf_run[leaf], tree.size[leaf], tree.place[leaf]
        if tree.depth[leaf] & 1:
            empty |= take_head(table, blocks, held, run, size, spare, place)
        else:
            empty |= take_head(table, blocks, held, run, size, out, out_at + place)
    return empty


@bare_kernel
def _take_extra(tree: Tree, leaf: int, extra: Int64s, extras: int, out: Int64s, out_at: int, spare: Int64s) -> None:
    """Copy keys that were never held to where the plan wants them."""
    if extras:
        odd = tree.depth[leaf] & 1
        place = tree.place[leaf] if odd else out_at + tree.place[leaf]
        for i in range(extras):
            if odd:
                spare[place + i] = extra[i]
            else:
                out[place + i] = extra[i]


@bare_kernel
def pop_few(table: Table, blocks: Blocks, held: Columns, key: int, out: Columns, out_at: int, drop_empty: bool) -> int:
    """Move all events up to a key, run by run, where they are few: how many; -1 where they are more, and none moved."""
    if not _few(table, blocks, held.key, key):
        return -1
    state, to, empty = table.state, out_at, False
    for run in range(state[RUNS]):
        at, tail = table.head_at[run], table.tail_at[run]
        while at >= 0 and table.head[run] <= key:
            copy_event(out, to, held, at)
            to += 1
            block, last = at >> SHIFT, at == tail
            at += 1
            if last or at & (BLOCK - 1) == 0:
                blocks.free[state[FREE]] = block
                state[FREE] += 1
                at = -1 if last else blocks.follower[block] << SHIFT
            table.head_at[run] = at
            table.head[run] = LARGEST if last else held.key[at]
            if last:
                table.tail_at[run] = -1
                empty = True
    state[HELD] -= to - out_at
    if empty and drop_empty:
        drop_empty_runs(table)
    return to - out_at


@bare_kernel
def _few(table: Table, blocks: Blocks, keys: Int64s, key: int) -> bool:
    """Whether few events are up to a key."""
    count = 0
    for run in range(table.state[RUNS]):
        if table.head[run] <= key and table.head_at[run] >= 0:
            at, tail = table.head_at[run], table.tail_at[run]
            while keys[at] <= key:
                count += 1
                if count > FEW:
                    return False
                if at == tail:
                    break
                at += 1
                if at & (BLOCK - 1) == 0:
                    at = blocks.follower[(at - 1) >> SHIFT] << SHIFT
    return True


@bare_kernel
def feed(
    ts_us: Int64s,
    first_number: int,
    packing: Packing,
    cells: Maybe,
    start: int,
    phase: int,
    every: int,
    latency_us: int,
    table: Table,
    blocks: Blocks,
    held: Columns,
    tree: Tree,
    leaf_run: Int64s,
    out: Columns,
    out_at: int,
    spare: Columns,
    late: Int64s,
    late_count: int,
    switches: Switches,
) -> tuple[int, int, int, int, int, int]:
    """Deal a stream with a punctuation after every so many events.

    Gives why it stopped, the room it needs, and where it stands: position, phase, output, late events.
    """
    state, speculative, adjust = table.state, switches.speculative, switches.adjust
    i = start
    while True:
        stop = min(len(ts_us), i + every - phase)
        state[MARK] = _largest(ts_us, i, stop, state[MARK])
        span = (i, stop)
        i, late_count = deal(
            ts_us, first_number, packing, cells, span, table, blocks, held, late, late_count, speculative, adjust
        )
        phase += i - span[0]
        if i < stop:
            return NO_ROOM_FOR_RUNS, 0, i, phase, out_at, late_count
        if phase < every:
            return DONE, 0, i, phase, out_at, late_count
        punctuation_us = state[MARK] - latency_us
        if punctuation_us > state[FLOOR]:
            key = _key_of(punctuation_us, packing, held.number)
            given, needed, _ = release(
                table, blocks, held, key, ts_us, 0, tree, leaf_run, out, out_at, spare, switches, ANY_MOVES
            )
            if given - out_at != needed:
                return NO_ROOM_TO_GIVE, needed, i, phase, out_at, late_count
            out_at = given
            state[FLOOR] = punctuation_us
        phase = 0
        if i == len(ts_us):
            return DONE, 0, i, phase, out_at, late_count


@bare_kernel
def _largest(ts_us: Int64s, start: int, stop: int, mark_us: int) -> int:
    for i in range(start, stop):
        mark_us = max(mark_us, ts_us[i])
    return mark_us


@bare_kernel
def _key_of(punctuation_us: int, packing: Packing, numbers: Maybe) -> int:
    if numbers is None:
        return last_key(punctuation_us, packing)
    return punctuation_us
