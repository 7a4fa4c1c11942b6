"""Sorted runs in memory with all their room, which grows as it is needed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from latecomer.events import Int64s
from latecomer.sorter.arguments import as_bytes
from latecomer.sorter.merge import new_tree
from latecomer.sorter.release import Room, SortedKeys, feed, release, release_and_deal
from latecomer.sorter.runs import (
    BLOCK,
    DEALT,
    FLOOR,
    FREE,
    GIVEN,
    HELD,
    LARGEST,
    LATE,
    MARK,
    RUNS,
    Arrivals,
    Columns,
    Maybe,
    Packing,
    Switches,
    deal_keys,
    new_blocks,
    new_runs,
)

GROWTH = 4  # memory that is never touched costs nothing
SLACK = 3  # bits left free in a key, so that it need not be packed anew too often

_NOTHING: Int64s = np.zeros(0, dtype=np.int64)


class Leaving(NamedTuple):
    """Events that left, as views that the next call overwrites, and whether they are in order.

    With keys of the caller's, also how many of those are among them.
    """

    events: Columns
    in_order: bool = True
    merged: int = 0


class MemoryRuns:
    """Sorted runs. With `dtype`, payloads of that type move with the events: one each, or one in each of `columns`."""

    def __init__(self, switches: Switches, dtype: npt.DTypeLike | None = None, columns: int = 0) -> None:
        blocks, runs, room = 1024, 64, 1024
        held, out, spare = (_columns(size, dtype, columns) for size in (blocks * BLOCK, room, room))
        self._switches = switches
        self._runs = new_runs(runs, held)
        self._room = Room(out, spare, new_tree(runs + 1), np.empty(runs, dtype=np.int64))
        self.packing = Packing(0, 20)

    @property
    def runs(self) -> int:
        """How many runs there are."""
        return self._runs.state.item(RUNS)

    @property
    def held(self) -> int:
        """How many events they hold."""
        return self._runs.state.item(HELD)

    @property
    def mark_us(self) -> int:
        """The largest time seen."""
        return self._runs.state.item(MARK)

    @property
    def floor_us(self) -> int:
        """The last punctuation."""
        return self._runs.state.item(FLOOR)

    @property
    def packed(self) -> bool:
        """Whether a key holds both time and number."""
        return self._runs.held.number is None

    def see(self, mark_us: int) -> None:
        """Move the mark on."""
        self._runs.state[MARK] = max(self.mark_us, mark_us)

    def move_floor(self, punctuation_us: int) -> None:
        """What is not after this time is too late from now on."""
        self._runs.state[FLOOR] = max(self.floor_us, punctuation_us)

    def key_of(self, punctuation_us: int) -> int:
        """The largest key that a punctuation passes."""
        if not self.packed:
            return punctuation_us
        past = punctuation_us - self.packing.base_us
        return min(((past + 1) << self.packing.bits) - 1, LARGEST) if past >= 0 else -1

    def fit(self, low_us: int, high_us: int, oldest: int, stop: int) -> int:
        """Make sure that keys can hold these times and numbers below `stop`, none of those held being below `oldest`.

        Numbers may be counted anew for that: gives by how much less they are from now on.
        """
        base_us, bits = self.packing
        fits = base_us <= low_us and high_us - base_us < LARGEST >> bits and stop < 1 << bits
        if fits or not self.packed:
            return 0
        if self.held:
            low_us = min(low_us, (int(self._runs.head[: self.runs].min()) >> bits) + base_us)
            high_us = max(high_us, (int(self._runs.tail[0]) >> bits) + base_us)
        most = 62 - (high_us - low_us + 1).bit_length()
        need = (stop - oldest).bit_length()
        if need > most:
            self._unpack()
            return 0
        self._pack_anew(Packing(low_us, need + min(SLACK, (most - need) // 2)), oldest)
        return oldest

    def _pack_anew(self, packing: Packing, less: int) -> None:
        (old_us, old_bits), (new_us, new_bits) = self.packing, packing
        for keys in self._all_keys():
            numbers = keys & ((1 << old_bits) - 1)
            keys >>= old_bits
            keys += old_us - new_us
            keys <<= new_bits
            keys += numbers - less
        self._mark_empty()
        self.packing = packing

    def _unpack(self) -> None:
        """Times and numbers apart: they don't fit into a key any more."""
        base_us, bits = self.packing
        held, *others = self._all_keys()
        numbers = np.empty_like(self._runs.held.key)
        np.bitwise_and(held, (1 << bits) - 1, out=numbers[: len(held)])
        for keys in (held, *others):
            keys >>= bits
            keys += base_us
        self._mark_empty()
        self._runs = self._runs._replace(held=self._runs.held._replace(number=numbers))
        self._room = self._room._replace(out=_numbered(self._room.out), spare=_numbered(self._room.spare))

    def _all_keys(self) -> tuple[Int64s, Int64s, Int64s]:
        """Views of all keys there are; blocks that were never used, which stand first in the stack, are left alone."""
        held, blocks = self._runs.held, len(self._runs.follower)
        free = self._runs.free[: self._runs.state[FREE]]
        used = free != np.arange(blocks - 1, blocks - 1 - len(free), -1)
        unused = int(used.argmax()) if used.any() else len(free)
        runs = self.runs
        return held.key[: (blocks - unused) * BLOCK], self._runs.head[:runs], self._runs.tail[:runs]

    def _mark_empty(self) -> None:
        """Empty runs have no head."""
        runs = self.runs
        self._runs.head[:runs][self._runs.head_at[:runs] < 0] = LARGEST

    def times(self) -> list[list[int]]:
        """The times held, run by run; slow, to look at."""
        return [self._run_times(run) for run in range(self.runs)]

    def _run_times(self, run: int) -> list[int]:
        found: list[Int64s] = []
        at, tail = int(self._runs.head_at[run]), int(self._runs.tail_at[run])
        while at >= 0:
            block, last = at // BLOCK, at // BLOCK == tail // BLOCK
            found.append(self._runs.held.key[at : tail + 1 if last else (block + 1) * BLOCK])
            at = -1 if last else int(self._runs.follower[block]) * BLOCK
        keys = np.concatenate(found) if found else _NOTHING
        times: list[int] = (keys if not self.packed else (keys >> self.packing.bits) + self.packing.base_us).tolist()
        return times

    def release(self, punctuation_us: int, most_moves: int) -> Leaving:
        """Give what the punctuation has passed.

        Where merging would move an event more than `most_moves` times on average, the events come unmerged.
        """
        key = self.key_of(punctuation_us)
        self._runs.state[GIVEN] = 0
        needed, in_order = release(self._runs, self._room, key, self._switches, most_moves)
        while needed:
            self._make_room_to_give(needed)
            needed, in_order = release(self._runs, self._room, key, self._switches, most_moves)
        self.move_floor(punctuation_us)
        return Leaving(self._given(), in_order)

    def release_and_deal(self, punctuation_us: int, fresh: SortedKeys, most_moves: int) -> Leaving:
        """As `release`; of some sorted keys, take those from the cut on in.

        Those before it that come after all that is given are left to the caller, the others are merged with it.
        """
        key, needed, in_order, merged, at = self.key_of(punctuation_us), -1, True, 0, 0
        self._runs.state[GIVEN] = 0
        while needed:
            needed, in_order, merged, at = release_and_deal(
                self._runs, self._room, key, fresh, self._switches, most_moves
            )
            self._make_room_to_give(needed)
        self.move_floor(punctuation_us)
        while at < len(fresh.keys):
            self._make_room_for_runs()
            at = deal_keys(self._runs, fresh.keys, at, self._switches.speculative)
        return Leaving(self._given(), in_order, merged)

    def feed(
        self, ts_us: Int64s, first_number: int, cells: Maybe, every: int, latency_us: int
    ) -> tuple[Columns, Int64s]:
        """Take events in, with a punctuation after every so many; what left, and the positions of the late ones."""
        state, late = self._runs.state, np.empty(len(ts_us), dtype=np.int64)
        arrivals = Arrivals(ts_us, cells, first_number, *self.packing, late)
        state[DEALT] = state[GIVEN] = state[LATE] = 0
        needed = feed(self._runs, self._room, arrivals, every, latency_us, self._switches)
        while needed or state[DEALT] < len(ts_us):
            if needed:
                self._make_room_to_give(needed)
            else:
                self._make_room_for_runs()
            needed = feed(self._runs, self._room, arrivals, every, latency_us, self._switches)
        return self._given(), late[: state[LATE]]

    def _given(self) -> Columns:
        """What was given in this call, as views."""
        key, number, cells = self._room.out
        stop = int(self._runs.state[GIVEN])
        numbers, payloads = None if number is None else number[:stop], None if cells is None else cells[..., :stop]
        return Columns(key[:stop], numbers, payloads)

    def _make_room_for_runs(self) -> None:
        old = self._runs
        if old.state[FREE] == 0:
            count = len(old.follower)
            follower, free = new_blocks(GROWTH * count)
            follower[:count] = old.follower
            held = _grown(old.held, GROWTH * count * BLOCK, count * BLOCK)
            self._runs = old._replace(follower=follower, free=free, held=held)
            old.state[FREE] = (GROWTH - 1) * count  # the new ones, which stand first in the stack
        if self.runs == len(old.tail):
            room = GROWTH * self.runs
            tail, head, head_at, tail_at = (_longer(values, room, self.runs) for values in old[:4])
            self._runs = self._runs._replace(tail=tail, head=head, head_at=head_at, tail_at=tail_at)
            self._room = self._room._replace(tree=new_tree(room + 1), leaf_run=np.empty(room, dtype=np.int64))

    def _make_room_to_give(self, needed: int) -> None:
        given, (out, spare, _, _) = int(self._runs.state[GIVEN]), self._room
        if len(spare.key) < needed:
            self._room = self._room._replace(spare=_grown(spare, 2 * needed, 0))
        if len(out.key) < given + needed:
            self._room = self._room._replace(out=_grown(out, 2 * (given + needed), given))


def _columns(size: int, dtype: npt.DTypeLike | None, columns: int) -> Columns:
    """Room for events with packed keys."""
    shape = (columns, size) if columns else size
    return Columns(np.empty(size, dtype=np.int64), None, None if dtype is None else np.empty(shape, dtype=dtype))


def _numbered(columns: Columns) -> Columns:
    """The same room, with numbers beside the keys."""
    return columns._replace(number=np.empty_like(columns.key))


def _grown(columns: Columns, size: int, filled: int) -> Columns:
    """More room; the first events stay."""
    return Columns(*(_longer(values, size, filled) for values in columns))


def _longer(values: Maybe, size: int, filled: int) -> Maybe:
    if values is None:
        return None
    longer = np.empty((*values.shape[:-1], size), dtype=values.dtype)
    as_bytes(longer)[..., : filled * values.itemsize] = as_bytes(values)[..., : filled * values.itemsize]
    return longer
