"""The sorted runs of Impatience sort, as kernels over flat arrays.

A run is a chain of blocks in a pool. An event goes to the first run whose tail is not after it, so tails descend
strictly and a binary search finds the run; speculation tries the last one first, then the first few. A punctuation
cuts the head off each run and gives its blocks back; a run that becomes empty is removed.

What is ordered is a key. Packed, it is the time above the event's number in the order of arrival, one integer, all
different; where the two don't fit into 63 bits the key is the time, and numbers stand beside it to break ties. Where
there are `cells`, a payload moves with each event. Numba compiles each of these forms on its own.

Paper: Impatience (Chandramouli, Goldstein, Li), sections III-B, III-D and III-E2.

Invariants
1. Tails descend strictly; keys in a run ascend, equal ones in order of arrival.
2. A kernel that runs out of room changes nothing it could not finish, says where it stopped, and is called again.
3. `head_at` is negative in a run that holds nothing (kept only where empty runs are not removed).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from latecomer._jit import bare_kernel
from latecomer.events import NEVER_US, Int64s
from latecomer.search import lower_bound, lower_bound_descending

Cells = npt.NDArray[np.generic]
Maybe = Any  # an array, or None where events have no such column

SHIFT = 8
BLOCK = 1 << SHIFT  # events in a block
FIRST = 4  # so many runs are tried in turn before the binary search: most events belong to the first few
LARGEST = 2**63 - 1  # above every key
READY = -1  # instead of the bits of a Packing: these are keys already, none of them late

# Places in `Table.state`.
RUNS, LAST, FREE, HELD, MARK, FLOOR = range(6)


class Columns(NamedTuple):
    """Events: keys, the numbers that break ties, and payloads."""

    key: Int64s
    number: Maybe
    cells: Maybe


class Blocks(NamedTuple):
    """Events are held in blocks: which follows each, and a stack of those that are free."""

    follower: Int64s
    free: Int64s


class Table(NamedTuple):
    """The runs: last and first key of each, where its first and last event stand, and a few numbers."""

    tail: Int64s
    head: Int64s
    head_at: Int64s
    tail_at: Int64s
    state: Int64s


class Packing(NamedTuple):
    """How a time and a number make a key: (time - base) << bits | number."""

    base_us: int
    bits: int


def new_blocks(count: int) -> Blocks:
    """Blocks, all free."""
    return Blocks(np.full(count, -1, dtype=np.int64), np.arange(count - 1, -1, -1, dtype=np.int64))


def new_table(runs: int, blocks: int) -> Table:
    """No runs yet."""
    tail, head, head_at, tail_at = (np.empty(runs, dtype=np.int64) for _ in range(4))
    state = np.array([0, 0, blocks, 0, NEVER_US, NEVER_US], dtype=np.int64)
    return Table(tail, head, head_at, tail_at, state)


@bare_kernel
def last_key(punctuation_us: int, packing: Packing) -> int:
    """The largest key a punctuation passes; below all keys if it passes none."""
    past = punctuation_us - packing.base_us
    if past < 0:
        return -1
    if past >= LARGEST >> packing.bits:
        return LARGEST
    return ((past + 1) << packing.bits) - 1


@bare_kernel
def copy_event(to: Columns, k: int, events: Columns, i: int) -> None:
    """Copy an event from one place to another."""
    to.key[k] = events.key[i]
    copy_cell(to.number, k, events.number, i)
    copy_cell(to.cells, k, events.cells, i)


@bare_kernel
def copy_cell(to: Maybe, k: int | np.uint64, values: Maybe, i: int | np.uint64) -> None:
    """Copy a value, where events have such a column; or one in each of several columns."""
    if to is None:
        return
    if values is None:
        return
    if to.ndim == 2:
        for column in range(to.shape[0]):
            to[column, k] = values[column, i]
    else:
        to[k] = values[i]


@bare_kernel
def choose_run(tail: Int64s, count: int, last: int, key: int, speculative: bool) -> int:
    """The first run whose tail is not after a key; `count` if there is none."""
    low = 0
    if speculative:
        if last < count and tail[last] <= key and (last == 0 or tail[last - 1] > key):
            return last
        while low < count and low < FIRST and tail[low] > key:
            low += 1
        if low < FIRST:
            return low
    return lower_bound_descending(tail, low, count, key)


@bare_kernel
def next_place(table: Table, blocks: Blocks, run: int, key: int) -> int:
    """Where the next event of a run goes; a run one past the last is opened. -1 where there is no room."""
    if run == table.state[RUNS]:
        if run == len(table.tail) or table.state[FREE] == 0:
            return -1
        table.head_at[run] = table.tail_at[run] = -1
        table.state[RUNS] += 1
    at: int = table.tail_at[run] + 1
    if at & (BLOCK - 1) != 0:
        return at
    if table.state[FREE] == 0:
        return -1
    table.state[FREE] -= 1
    block: int = blocks.free[table.state[FREE]]
    if table.head_at[run] < 0:
        table.head_at[run] = block << SHIFT
        table.head[run] = key
    else:
        blocks.follower[table.tail_at[run] >> SHIFT] = block
    return block << SHIFT


@bare_kernel
def deal(
    ts_us: Int64s,
    first_number: int,
    packing: Packing,
    cells: Maybe,
    span: tuple[int, int],
    table: Table,
    blocks: Blocks,
    held: Columns,
    late: Int64s,
    late_count: int,
    speculative: bool,
    adjust: bool,
) -> tuple[int, int]:
    """Deal events onto the runs; those not after the floor are noted in `late`, and left out unless adjusted.

    Gives the position it stopped at, before the end where there is no more room, and how many are late.
    """
    state, last, floor, placed = table.state, table.state[LAST], table.state[FLOOR], 0
    i = span[0]
    while i < span[1]:
        key, is_late = ts_us[i], False
        if packing.bits != READY:
            is_late = key <= floor
            if is_late:
                if not adjust:
                    late[late_count] = i
                    late_count += 1
                    i += 1
                    continue
                key = floor + 1
            key = _packed(key, first_number + i, packing, held.number)
        last = choose_run(table.tail, state[RUNS], last, key, speculative)
        at = next_place(table, blocks, last, key)
        if at < 0:
            break
        held.key[at] = key
        _put(held.number, at, first_number + i)
        copy_cell(held.cells, at, cells, i)
        if is_late:
            late[late_count] = i
            late_count += 1
        i += 1
        placed += 1
        if speculative:
            more, key = _deal_on(ts_us, first_number, packing, cells, (i, span[1]), table.tail, last, key, held, at)
            i, at, placed = i + more, at + more, placed + more
        table.tail_at[last] = at
        table.tail[last] = key
    state[LAST] = last
    state[HELD] += placed
    return i, late_count


@bare_kernel
def _deal_on(
    ts_us: Int64s,
    first_number: int,
    packing: Packing,
    cells: Maybe,
    span: tuple[int, int],
    tail: Int64s,
    run: int,
    key: int,
    held: Columns,
    at: int,
) -> tuple[int, int]:
    """Deal events as long as they go to the run, and into the block, of the one before them, which has this key.

    Gives how many, and the last key. Nothing is looked up for them, and none of them can be late.
    """
    above = tail[run - 1] if run > 0 else LARGEST
    stop = min(span[1], span[0] + (BLOCK - 1) - (at & (BLOCK - 1)))
    i, to = span[0], at + 1
    while i < stop:
        following = ts_us[i]
        if packing.bits != READY:
            following = _packed(following, first_number + i, packing, held.number)
        if following < key or following >= above:
            break
        held.key[to] = key = following
        _put(held.number, to, first_number + i)
        copy_cell(held.cells, to, cells, i)
        i += 1
        to += 1
    return i - span[0], key


@bare_kernel
def _packed(t: int, number: int, packing: Packing, numbers: Maybe) -> int:
    if numbers is None:
        return ((t - packing.base_us) << packing.bits) | number
    return t


@bare_kernel
def _put(to: Maybe, k: int, value: int) -> None:
    if to is not None:
        to[k] = value


@bare_kernel
def measure_heads(table: Table, blocks: Blocks, keys: Int64s, key: int, leaf_run: Int64s, leaf_size: Int64s) -> int:
    """Find the head of every run, up to a key: which runs, how long; gives how many."""
    leaves = 0
    for run in range(table.state[RUNS]):
        if table.head[run] <= key and table.head_at[run] >= 0:
            leaf_run[leaves] = run
            leaf_size[leaves] = _head_size(blocks, keys, table.head_at[run], table.tail_at[run], key)
            leaves += 1
    return leaves


@bare_kernel
def _head_size(blocks: Blocks, keys: Int64s, at: int, tail: int, key: int) -> int:
    size = 0
    while True:
        stop = _stop_in_block(at, tail)
        if keys[stop - 1] > key:
            return size + lower_bound(keys, at, stop - 1, key + 1) - at
        size += stop - at
        if stop == tail + 1:
            return size
        at = blocks.follower[at >> SHIFT] << SHIFT


@bare_kernel
def _stop_in_block(at: int, tail: int) -> int:
    """Where the part of a run that lies in one block ends."""
    if at >> SHIFT == tail >> SHIFT:
        return tail + 1
    return ((at >> SHIFT) + 1) << SHIFT


@bare_kernel
def take_head(table: Table, blocks: Blocks, held: Columns, run: int, size: int, to: Columns, place: int) -> bool:
    """Move the head of a run elsewhere and give back the blocks it leaves empty; whether the run is empty now."""
    state = table.state
    at, tail = table.head_at[run], table.tail_at[run]
    state[HELD] -= size
    while size > 0:
        stop = min(_stop_in_block(at, tail), at + size)
        for source in range(at, stop):
            copy_event(to, place, held, source)
            place += 1
        size -= stop - at
        block, empty = at >> SHIFT, stop == tail + 1
        at = stop
        if empty or stop & (BLOCK - 1) == 0:
            blocks.free[state[FREE]] = block
            state[FREE] += 1
            at = -1 if empty else blocks.follower[block] << SHIFT
    table.head_at[run] = at
    if at < 0:
        table.head[run] = LARGEST
        table.tail_at[run] = -1
        return True
    table.head[run] = held.key[at]
    return False


@bare_kernel
def drop_empty_runs(table: Table) -> None:
    """Remove runs that hold nothing; the others keep their order."""
    kept = 0
    for run in range(table.state[RUNS]):
        if table.head_at[run] >= 0:
            if kept != run:
                table.tail[kept] = table.tail[run]
                table.head[kept] = table.head[run]
                table.head_at[kept] = table.head_at[run]
                table.tail_at[kept] = table.tail_at[run]
            kept += 1
    table.state[RUNS] = kept
    table.state[LAST] = 0
