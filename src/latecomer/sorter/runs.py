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
3. `head_at` is negative in a run that holds nothing (there only where empty runs are not removed).
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

# Places in `Runs.state`: how many runs there are, which was dealt to last, how many blocks are free and events held;
# the largest time seen, the last punctuation, how many events came since; and of this call, how many arrivals it has
# dealt, how many events it has given, and how many were too late.
RUNS, LAST, FREE, HELD, MARK, FLOOR, PHASE, DEALT, GIVEN, LATE = range(10)


class Columns(NamedTuple):
    """Events: keys, the numbers that break ties, and payloads."""

    key: Int64s
    number: Maybe
    cells: Maybe


class Runs(NamedTuple):
    """Per run its last and first key, and where its first and last event stand; a few numbers; and what they hold.

    Events are held in blocks: which follows each, and a stack of those that are free.
    """

    tail: Int64s
    head: Int64s
    head_at: Int64s
    tail_at: Int64s
    state: Int64s
    follower: Int64s
    free: Int64s
    held: Columns


class Packing(NamedTuple):
    """How a time and a number make a key: (time - base) << bits | number."""

    base_us: int
    bits: int


class Arrivals(NamedTuple):
    """Events as they arrive, numbered from `first_number` on, and room for the places of those that are too late.

    Base and bits are those of the Packing: the fewer tuples there are in tuples, the cheaper is a call from Python.
    """

    ts_us: Int64s
    cells: Maybe
    first_number: int
    base_us: int
    bits: int
    late: Int64s


class Switches(NamedTuple):
    """The paper's optimisations, each of which can be switched off, and what to do with the late."""

    huffman: bool
    speculative: bool
    drop_empty: bool
    adjust: bool  # a too-late event is moved to the first time that is not too late


def new_runs(runs: int, held: Columns) -> Runs:
    """Room for so many runs and the events they hold; there are none yet."""
    blocks = len(held.key) // BLOCK
    state = np.zeros(LATE + 1, dtype=np.int64)
    state[FREE], state[MARK], state[FLOOR] = blocks, NEVER_US, NEVER_US
    tail, head, head_at, tail_at = (np.empty(runs, dtype=np.int64) for _ in range(4))
    return Runs(tail, head, head_at, tail_at, state, *new_blocks(blocks), held)


def new_blocks(count: int) -> tuple[Int64s, Int64s]:
    """Which follows each block, and the stack of free ones: all of them."""
    return np.full(count, -1, dtype=np.int64), np.arange(count - 1, -1, -1, dtype=np.int64)


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
def next_place(runs: Runs, run: int, key: int) -> int:
    """Where the next event of a run goes; a run one past the last is opened. -1 where there is no room."""
    if run == runs.state[RUNS]:
        if run == len(runs.tail) or runs.state[FREE] == 0:
            return -1
        runs.head_at[run] = runs.tail_at[run] = -1
        runs.state[RUNS] += 1
    at: int = runs.tail_at[run] + 1
    if at & (BLOCK - 1) != 0:
        return at
    if runs.state[FREE] == 0:
        return -1
    runs.state[FREE] -= 1
    block: int = runs.free[runs.state[FREE]]
    if runs.head_at[run] < 0:
        runs.head_at[run] = block << SHIFT
        runs.head[run] = key
    else:
        runs.follower[runs.tail_at[run] >> SHIFT] = block
    return block << SHIFT


@bare_kernel
def deal(runs: Runs, arrivals: Arrivals, stop: int, switches: Switches) -> bool:
    """Deal events up to a position onto the runs; those not after the floor are noted as late, and dealt if adjusted.

    Gives whether all of them found room.
    """
    held, state = runs.held, runs.state
    i, last, floor, placed = state[DEALT], state[LAST], state[FLOOR], 0
    while i < stop:
        t = arrivals.ts_us[i]
        is_late = t <= floor
        if is_late:
            if not switches.adjust:
                _note_late(arrivals.late, state, i)
                i += 1
                continue
            t = floor + 1
        key = _key_of(arrivals, i, t, held.number)
        last = choose_run(runs.tail, state[RUNS], last, key, switches.speculative)
        at = next_place(runs, last, key)
        if at < 0:
            break
        _put_event(held, at, key, arrivals, i)
        if is_late:
            _note_late(arrivals.late, state, i)
        i += 1
        placed += 1
        if switches.speculative:
            more, key = _deal_on(runs, arrivals, i, stop, last, at)
            i, at, placed = i + more, at + more, placed + more
        runs.tail_at[last] = at
        runs.tail[last] = key
    state[PHASE] += i - state[DEALT]
    state[DEALT], state[LAST] = i, last
    state[HELD] += placed
    return bool(i == stop)


@bare_kernel
def _deal_on(runs: Runs, arrivals: Arrivals, start: int, stop: int, run: int, at: int) -> tuple[int, int]:
    """Deal events as long as they go to the run, and into the block, of the one before them, which stands at `at`.

    Gives how many, and the last key. Nothing is looked up for them, and none of them can be late.
    """
    held, key = runs.held, runs.held.key[at]
    above = runs.tail[run - 1] if run > 0 else LARGEST
    stop = min(stop, start + (BLOCK - 1) - (at & (BLOCK - 1)))
    i, to = start, at + 1
    while i < stop:
        following = _key_of(arrivals, i, arrivals.ts_us[i], held.number)
        if following < key or following >= above:
            break
        key = following
        _put_event(held, to, key, arrivals, i)
        i += 1
        to += 1
    return i - start, key


@bare_kernel
def _note_late(late: Int64s, state: Int64s, i: int) -> None:
    late[state[LATE]] = i
    state[LATE] += 1


@bare_kernel
def _key_of(arrivals: Arrivals, i: int, t: int, numbers: Maybe) -> int:
    """The key of the event at i, if its time is t."""
    if numbers is None:
        return ((t - arrivals.base_us) << arrivals.bits) | (arrivals.first_number + i)
    return t


@bare_kernel
def _put_event(held: Columns, at: int, key: int, arrivals: Arrivals, i: int) -> None:
    held.key[at] = key
    _put(held.number, at, arrivals.first_number + i)
    copy_cell(held.cells, at, arrivals.cells, i)


@bare_kernel
def _put(to: Maybe, k: int, value: int) -> None:
    if to is not None:
        to[k] = value


@bare_kernel
def deal_keys(runs: Runs, keys: Int64s, start: int, speculative: bool) -> int:
    """Deal packed keys that are in order and none of them late, from a position on; gives where it had no more room."""
    held, state = runs.held, runs.state
    i, last = start, state[LAST]
    while i < len(keys):
        last = choose_run(runs.tail, state[RUNS], last, keys[i], speculative)
        at = next_place(runs, last, keys[i])
        if at < 0:
            break
        above = runs.tail[last - 1] if last > 0 else LARGEST
        stop = min(len(keys), i + BLOCK - (at & (BLOCK - 1))) if speculative else i + 1
        held.key[at] = keys[i]
        i += 1
        while i < stop and keys[i] < above:
            at += 1
            held.key[at] = keys[i]
            i += 1
        runs.tail_at[last] = at
        runs.tail[last] = keys[i - 1]
    state[LAST] = last
    state[HELD] += i - start
    return i


@bare_kernel
def measure_heads(runs: Runs, key: int, leaf_run: Int64s, leaf_size: Int64s) -> int:
    """Find the head of every run, up to a key: which runs, how long; gives how many."""
    leaves = 0
    for run in range(runs.state[RUNS]):
        if runs.head[run] <= key and runs.head_at[run] >= 0:
            leaf_run[leaves] = run
            leaf_size[leaves] = _head_size(runs, runs.head_at[run], runs.tail_at[run], key)
            leaves += 1
    return leaves


@bare_kernel
def _head_size(runs: Runs, at: int, tail: int, key: int) -> int:
    keys, size = runs.held.key, 0
    while True:
        stop = _stop_in_block(at, tail)
        if keys[stop - 1] > key:
            return size + lower_bound(keys, at, stop - 1, key + 1) - at
        size += stop - at
        if stop == tail + 1:
            return size
        at = runs.follower[at >> SHIFT] << SHIFT


@bare_kernel
def _stop_in_block(at: int, tail: int) -> int:
    """Where the part of a run that lies in one block ends."""
    if at >> SHIFT == tail >> SHIFT:
        return tail + 1
    return ((at >> SHIFT) + 1) << SHIFT


@bare_kernel
def take_head(runs: Runs, run: int, size: int, to: Columns, place: int) -> bool:
    """Move the head of a run elsewhere and give back the blocks it leaves empty; whether the run is empty now."""
    held, state = runs.held, runs.state
    at, tail = runs.head_at[run], runs.tail_at[run]
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
            runs.free[state[FREE]] = block
            state[FREE] += 1
            at = -1 if empty else runs.follower[block] << SHIFT
    runs.head_at[run] = at
    if at < 0:
        runs.head[run] = LARGEST
        runs.tail_at[run] = -1
        return True
    runs.head[run] = held.key[at]
    return False


@bare_kernel
def drop_empty_runs(runs: Runs) -> None:
    """Remove runs that hold nothing; the others keep their order."""
    left = 0
    for run in range(runs.state[RUNS]):
        if runs.head_at[run] >= 0:
            if left != run:
                runs.tail[left] = runs.tail[run]
                runs.head[left] = runs.head[run]
                runs.head_at[left] = runs.head_at[run]
                runs.tail_at[left] = runs.tail_at[run]
            left += 1
    runs.state[RUNS] = left
    runs.state[LAST] = 0
