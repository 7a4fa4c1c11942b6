"""What a punctuation sets free: the heads of all runs, cut and merged; and the loop that feeds a stream through.

What is given goes to the end of what was given before in the same call. Kernels that lack room to give do nothing, say
how much they need, and are called again.

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
    DEALT,
    FLOOR,
    FREE,
    GIVEN,
    HELD,
    LARGEST,
    MARK,
    PHASE,
    RUNS,
    SHIFT,
    Arrivals,
    Columns,
    Maybe,
    Packing,
    Runs,
    Switches,
    copy_event,
    deal,
    deal_keys,
    drop_empty_runs,
    last_key,
    measure_heads,
    take_head,
)

FEW = 32  # so many events are sorted by insertion, whatever runs they come from
ANY_MOVES = 1_000
MOST_MOVES = 10  # where merging would move an event more often on average, sorting anew is faster


class Room(NamedTuple):
    """Where events are merged that leave: the output, a spare buffer, and a plan with the run of each of its leaves."""

    out: Columns
    spare: Columns
    tree: Tree
    leaf_run: Int64s


class SortedKeys(NamedTuple):
    """Packed keys in order, none of them late; those before the cut may leave."""

    keys: Int64s
    cut: int


@bare_kernel
def release(runs: Runs, room: Room, key: int, switches: Switches, most_moves: int) -> tuple[int, bool]:
    """Give all events up to a key, in order.

    Gives the room that it needs where there is too little, else 0; and whether the events are in order: not where
    merging would move an event more than `most_moves` times on average.
    """
    if _release_few(runs, room, key, switches.drop_empty):
        return 0, True
    heads = measure_heads(runs, key, room.leaf_run, room.tree.size)
    total = _total(room.tree.size, heads)
    if total == 0 or not _fits(room, runs.state[GIVEN], total):
        return total, True
    in_order = _plan(room.tree, heads, total, switches.huffman, most_moves)
    _take_heads(runs, room, heads, switches.drop_empty)
    _give(runs.state, room, heads, total, in_order)
    return 0, in_order


@bare_kernel
def release_and_deal(
    runs: Runs, room: Room, key: int, fresh: SortedKeys, switches: Switches, most_moves: int
) -> tuple[int, bool, int, int]:
    """Give all events up to a key, and deal the keys from the cut on onto the runs.

    Of the keys before the cut, those are given with the events that an event may come after; the others stay where
    they are. Gives what `release` gives, how many keys were merged, and how far keys were dealt.
    """
    last = min(key, runs.tail[0]) if runs.state[HELD] else -1
    merged = lower_bound(fresh.keys, 0, fresh.cut, last + 1)
    if merged:
        needed, in_order = _release_with(runs, room, key, SortedKeys(fresh.keys, merged), switches, most_moves)
    else:
        needed, in_order = release(runs, room, key, switches, most_moves)
    if needed:
        return needed, in_order, merged, fresh.cut
    return 0, in_order, merged, deal_keys(runs, fresh.keys, fresh.cut, switches.speculative)


@bare_kernel
def _release_with(
    runs: Runs, room: Room, key: int, fresh: SortedKeys, switches: Switches, most_moves: int
) -> tuple[int, bool]:
    """As `release`, merged with the keys before the cut, of which there is at least one."""
    heads = measure_heads(runs, key, room.leaf_run, room.tree.size)
    room.tree.size[heads] = fresh.cut
    total = _total(room.tree.size, heads + 1)
    if not _fits(room, runs.state[GIVEN], total):
        return total, True
    in_order = _plan(room.tree, heads + 1, total, switches.huffman, most_moves)
    _take_keys(room, heads, runs.state[GIVEN], fresh)
    _take_heads(runs, room, heads, switches.drop_empty)
    _give(runs.state, room, heads + 1, total, in_order)
    return 0, in_order


@bare_kernel
def _total(sizes: Int64s, leaves: int) -> int:
    total = 0
    for leaf in range(leaves):
        total += sizes[leaf]
    return total


@bare_kernel
def _fits(room: Room, given: int, total: int) -> bool:
    return given + total <= len(room.out.key) and total <= len(room.spare.key)


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
def _take_heads(runs: Runs, room: Room, heads: int, drop_empty: bool) -> None:
    """Move the heads of the runs to where the plan wants them."""
    tree, out_at, empty = room.tree, runs.state[GIVEN], False
    for leaf in range(heads):
        run, size, place = room.leaf_run[leaf], tree.size[leaf], tree.place[leaf]
        if tree.depth[leaf] & 1:
            empty |= take_head(runs, run, size, room.spare, place)
        else:
            empty |= take_head(runs, run, size, room.out, out_at + place)
    if empty and drop_empty:
        drop_empty_runs(runs)


@bare_kernel
def _take_keys(room: Room, leaf: int, out_at: int, fresh: SortedKeys) -> None:
    """Copy keys that were never held to where the plan wants them."""
    place = room.tree.place[leaf]
    if room.tree.depth[leaf] & 1:
        for i in range(fresh.cut):
            room.spare.key[place + i] = fresh.keys[i]
    else:
        for i in range(fresh.cut):
            room.out.key[out_at + place + i] = fresh.keys[i]


@bare_kernel
def _give(state: Int64s, room: Room, leaves: int, total: int, in_order: bool) -> None:
    """Merge the pieces if they were planned to be, and count them as given."""
    if in_order:
        merge_pieces(room.tree, leaves, room.out, state[GIVEN], room.spare)
    state[GIVEN] += total


@bare_kernel
def _release_few(runs: Runs, room: Room, key: int, drop_empty: bool) -> bool:
    """Give all events up to a key where they are few; whether they are."""
    out_at = runs.state[GIVEN]
    if len(room.out.key) - out_at < FEW or not _few(runs, key):
        return False
    popped = _pop(runs, key, room.out, out_at, drop_empty)
    insert_sort(room.out, out_at, out_at + popped, room.spare)
    runs.state[GIVEN] += popped
    return True


@bare_kernel
def _pop(runs: Runs, key: int, out: Columns, out_at: int, drop_empty: bool) -> int:
    """Move all events up to a key, run by run and one by one; how many."""
    held, state = runs.held, runs.state
    to, empty = out_at, False
    for run in range(state[RUNS]):
        at, tail = runs.head_at[run], runs.tail_at[run]
        while at >= 0 and runs.head[run] <= key:
            copy_event(out, to, held, at)
            to += 1
            block, last = at >> SHIFT, at == tail
            at += 1
            if last or at & (BLOCK - 1) == 0:
                runs.free[state[FREE]] = block
                state[FREE] += 1
                at = -1 if last else runs.follower[block] << SHIFT
            runs.head_at[run] = at
            runs.head[run] = LARGEST if last else held.key[at]
            if last:
                runs.tail_at[run] = -1
                empty = True
    state[HELD] -= to - out_at
    if empty and drop_empty:
        drop_empty_runs(runs)
    return to - out_at


@bare_kernel
def _few(runs: Runs, key: int) -> bool:
    """Whether few events are up to a key."""
    keys, count = runs.held.key, 0
    for run in range(runs.state[RUNS]):
        if runs.head[run] <= key and runs.head_at[run] >= 0:
            at, tail = runs.head_at[run], runs.tail_at[run]
            while keys[at] <= key:
                count += 1
                if count > FEW:
                    return False
                if at == tail:
                    break
                at += 1
                if at & (BLOCK - 1) == 0:
                    at = runs.follower[(at - 1) >> SHIFT] << SHIFT
    return True


@bare_kernel
def feed(runs: Runs, room: Room, arrivals: Arrivals, every: int, latency_us: int, switches: Switches) -> int:
    """Deal events with a punctuation after every so many, at the largest time so far less the latency.

    Stops before the last event where there is no more room for runs. Gives the room to give that it needs where there
    is too little, else 0.
    """
    state, count = runs.state, len(arrivals.ts_us)
    while True:
        stop = min(count, state[DEALT] + every - state[PHASE])
        state[MARK] = _largest(arrivals.ts_us, state[DEALT], stop, state[MARK])
        if not deal(runs, arrivals, stop, switches) or state[PHASE] < every:
            return 0
        punctuation_us = state[MARK] - latency_us
        if punctuation_us > state[FLOOR]:
            key = _last_key(punctuation_us, Packing(arrivals.base_us, arrivals.bits), runs.held.number)
            needed, _ = release(runs, room, key, switches, ANY_MOVES)
            if needed:
                return needed
            state[FLOOR] = punctuation_us
        state[PHASE] = 0
        if stop == count:
            return 0


@bare_kernel
def _largest(ts_us: Int64s, start: int, stop: int, mark_us: int) -> int:
    for i in range(start, stop):
        mark_us = max(mark_us, ts_us[i])
    return mark_us


@bare_kernel
def _last_key(punctuation_us: int, packing: Packing, numbers: Maybe) -> int:
    """The largest key that a punctuation passes, in either form of keys."""
    if numbers is None:
        return last_key(punctuation_us, packing)
    return punctuation_us
