"""The runs of a sorter with all their room, which grows as it is needed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from latecomer.events import Int64s
from latecomer.sorter.arguments import as_bytes
from latecomer.sorter.merge import new_tree
from latecomer.sorter.release import NO_ROOM_FOR_RUNS, NO_ROOM_TO_GIVE, Switches, feed, settle
from latecomer.sorter.runs import (
    BLOCK,
    FLOOR,
    FREE,
    HELD,
    LARGEST,
    MARK,
    READY,
    RUNS,
    Columns,
    Maybe,
    Packing,
    deal,
    new_blocks,
    new_table,
)

GROWTH = 4  # memory that is never touched costs nothing
SLACK = 3  # bits kept free in a key, so that it need not be packed anew too often

_NOTHING: Int64s = np.zeros(0, dtype=np.int64)


class Given(NamedTuple):
    """Events that left, as views that the next call overwrites, and whether they are in order.

    With keys of the caller's, also how many of those are among them.
    """

    events: Columns
    in_order: bool = True
    merged: int = 0


class Pile:
    """Sorted runs. With `dtype`, payloads of that type move with the events: one each, or one in each of `columns`."""

    def __init__(self, switches: Switches, dtype: npt.DTypeLike | None = None, columns: int = 0) -> None:
        blocks, runs, room = 1024, 64, 1024
        self._switches = switches
        self._blocks, self._table = new_blocks(blocks), new_table(runs, blocks)
        self._tree, self._leaf_run = new_tree(runs + 1), np.empty(runs, dtype=np.int64)
        self._held, self._out, self._spare = (_columns(size, dtype, columns) for size in (blocks * BLOCK, room, room))
        self._phase = 0
        self.packing = Packing(0, 20)

    @property
    def runs(self) -> int:
        """How many runs there are."""
        return int(self._table.state[RUNS])

    @property
    def held(self) -> int:
        """How many events they hold."""
        return int(self._table.state[HELD])

    @property
    def mark_us(self) -> int:
        """The largest time seen."""
        return int(self._table.state[MARK])

    @property
    def floor_us(self) -> int:
        """The last punctuation."""
        return int(self._table.state[FLOOR])

    @property
    def packed(self) -> bool:
        """Whether a key holds both time and number."""
        return self._held.number is None

    def see(self, mark_us: int) -> None:
        """Move the mark on."""
        self._table.state[MARK] = max(self.mark_us, mark_us)

    def move_floor(self, punctuation_us: int) -> None:
        """What is not after this time is too late from now on."""
        self._table.state[FLOOR] = max(self.floor_us, punctuation_us)

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
            low_us = min(low_us, (int(self._table.head[: self.runs].min()) >> bits) + base_us)
            high_us = max(high_us, (int(self._table.tail[0]) >> bits) + base_us)
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
        numbers = np.empty_like(self._held.key)
        np.bitwise_and(held, (1 << bits) - 1, out=numbers[: len(held)])
        for keys in (held, *others):
            keys >>= bits
            keys += base_us
        self._mark_empty()
        self._held = self._held._replace(number=numbers)
        self._out, self._spare = (
            columns._replace(number=np.empty_like(columns.key)) for columns in (self._out, self._spare)
        )

    def _all_keys(self) -> tuple[Int64s, Int64s, Int64s]:
        """Views of all keys there are; blocks that were never used, which stand first in the stack, are left alone."""
        blocks = len(self._blocks.follower)
        free = self._blocks.free[: self._table.state[FREE]]
        used = free != np.arange(blocks - 1, blocks - 1 - len(free), -1)
        unused = int(used.argmax()) if used.any() else len(free)
        runs = self.runs
        return self._held.key[: (blocks - unused) * BLOCK], self._table.head[:runs], self._table.tail[:runs]

    def _mark_empty(self) -> None:
        """Empty runs have no head."""
        runs = self.runs
        self._table.head[:runs][self._table.head_at[:runs] < 0] = LARGEST

    def times(self) -> list[list[int]]:
        """The times held, run by run; slow, to look at."""
        return [self._run_times(run) for run in range(self.runs)]

    def _run_times(self, run: int) -> list[int]:
        found: list[Int64s] = []
        at, tail = int(self._table.head_at[run]), int(self._table.tail_at[run])
        while at >= 0:
            block, last = at // BLOCK, at // BLOCK == tail // BLOCK
            found.append(self._held.key[at : tail + 1 if last else (block + 1) * BLOCK])
            at = -1 if last else int(self._blocks.follower[block]) * BLOCK
        keys = np.concatenate(found) if found else _NOTHING
        times: list[int] = (keys if not self.packed else (keys >> self.packing.bits) + self.packing.base_us).tolist()
        return times

    def settle(self, punctuation_us: int, keys: Int64s, cut: int, most_moves: int) -> Given:
        """Give what the punctuation has passed; of some sorted keys, take those from `cut` on in.

        Those before it that come after all that is given are left to the caller, the others are merged with it.
        Where merging would move an event more than `most_moves` times on average, the events come unmerged.
        """
        key, switches = self.key_of(punctuation_us), self._switches
        while True:
            stop, needed, in_order, merged, at = settle(
                self._table,
                self._blocks,
                self._held,
                key,
                keys,
                cut,
                self._tree,
                self._leaf_run,
                self._out,
                self._spare,
                switches,
                most_moves,
            )
            if stop == needed:
                break
            self._make_room_to_give(0, needed)
        self.move_floor(punctuation_us)
        while at < len(keys):
            self._make_room_for_runs()
            at = self._deal(keys, at)
        return Given(_first(self._out, stop), in_order, merged)

    def _deal(self, keys: Int64s, at: int) -> int:
        span, ready, speculative = (at, len(keys)), Packing(0, READY), self._switches.speculative
        at, _ = deal(keys, 0, ready, None, span, self._table, self._blocks, self._held, keys, 0, speculative, False)
        return at

    def feed(self, ts_us: Int64s, first_number: int, cells: Maybe, every: int, latency_us: int) -> tuple[Given, Int64s]:
        """Take events in, with a punctuation after every so many; also the positions of those that came too late."""
        late, count, at, stop = np.empty(len(ts_us), dtype=np.int64), 0, 0, 0
        while True:
            status, needed, at, self._phase, stop, count = feed(
                ts_us,
                first_number,
                self.packing,
                cells,
                at,
                self._phase,
                every,
                latency_us,
                self._table,
                self._blocks,
                self._held,
                self._tree,
                self._leaf_run,
                self._out,
                stop,
                self._spare,
                late,
                count,
                self._switches,
            )
            if status == NO_ROOM_FOR_RUNS:
                self._make_room_for_runs()
            elif status == NO_ROOM_TO_GIVE:
                self._make_room_to_give(stop, needed)
            else:
                return Given(_first(self._out, stop)), late[:count]

    def _make_room_for_runs(self) -> None:
        if self._table.state[FREE] == 0:
            count = len(self._blocks.follower)
            old, self._blocks = self._blocks, new_blocks(GROWTH * count)
            self._blocks.follower[:count] = old.follower
            self._held = _grown(self._held, GROWTH * count * BLOCK, count * BLOCK)
            self._table.state[FREE] = (GROWTH - 1) * count  # the new ones, which stand first in the stack
        if self.runs == len(self._table.tail):
            room = GROWTH * self.runs
            old_table, self._table = self._table, new_table(room, 0)
            for new, values in zip(self._table, old_table, strict=True):
                new[: len(values)] = values
            self._tree, self._leaf_run = new_tree(room + 1), np.empty(room, dtype=np.int64)

    def _make_room_to_give(self, filled: int, needed: int) -> None:
        if len(self._spare.key) < needed:
            self._spare = _grown(self._spare, 2 * needed, 0)
        if len(self._out.key) < filled + needed:
            self._out = _grown(self._out, 2 * (filled + needed), filled)


def _columns(size: int, dtype: npt.DTypeLike | None, columns: int) -> Columns:
    """Room for events with packed keys."""
    shape = (columns, size) if columns else size
    return Columns(np.empty(size, dtype=np.int64), None, None if dtype is None else np.empty(shape, dtype=dtype))


def _first(columns: Columns, stop: int) -> Columns:
    """The first events, as views."""
    key, number, cells = columns
    return Columns(key[:stop], None if number is None else number[:stop], None if cells is None else cells[..., :stop])


def _grown(columns: Columns, size: int, kept: int) -> Columns:
    """More room; the first events stay."""
    return Columns(*(_longer(values, size, kept) for values in columns))


def _longer(values: Maybe, size: int, kept: int) -> Maybe:
    if values is None:
        return None
    longer = np.empty((*values.shape[:-1], size), dtype=values.dtype)
    as_bytes(longer)[..., : kept * values.itemsize] = as_bytes(values)[..., : kept * values.itemsize]
    return longer
