"""Which rows of two sources are in reach of each other: ranges by binary search, then pairs, a piece at a time.

The rows of a push are read one after the other. Each meets the rows of its key and of the other source that were kept
before the push, and those of the push that were read before it. Rows are sorted by key, by kind (which source, kept or
new) and by time, so that the partners of a row are two ranges: of the kept rows and of the new ones. Where rows are
read out of order, some of the new ones in reach are read later, and are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from latecomer._jit import kernel
from latecomer.events import NEVER_US, Bools, Int64s, sort_times
from latecomer.search import lower_bound

LEFT, RIGHT, ASIDE = range(3)  # the two sources; rows that are set aside count as read, and have no partners
_KINDS = 6  # of each of them those that were kept, and then those that are new
MOST_PAIRS = 1 << 16  # made at a time: few enough that memory is used again and again


class Reads(NamedTuple):
    """The rows of a push in the order they are read: key by number, source, time, and row in its source's table."""

    key: Int64s
    side: Int64s
    ts_us: Int64s
    row: Int64s


class Grouped(NamedTuple):
    """All rows by key, kind and time: their times, their rows in tables, and where each kind of each key starts.

    place: of new rows, in the order they are read in; of kept ones below zero.
    """

    ts_us: Int64s
    row: Int64s
    place: Int64s
    starts: Int64s


class Reach(NamedTuple):
    """Which rows can be met: at most `within_us` apart, and not older than that before a floor.

    read_us: the floor of each row that is read; where a key's own reads evict (`evicts`), it is raised to the latest of
    them. key_us: of each key, the latest time that was read before. in_order: all rows are read in order of time.
    """

    within_us: int
    read_us: Int64s
    key_us: Int64s
    evicts: bool
    in_order: bool


class Ranges(NamedTuple):
    """The partners of every row that is read, in places of `Grouped`."""

    kept_from: Int64s
    kept_to: Int64s
    new_from: Int64s
    new_to: Int64s

    @property
    def total(self) -> int:
        """How many pairs there are at most."""
        return int((self.kept_to - self.kept_from).sum() + (self.new_to - self.new_from).sum())


class Pairs(NamedTuple):
    """Pairs of rows of the two tables, and which row of the push made each: those of one stand together."""

    left: Int64s
    right: Int64s
    read: Int64s

    def take(self, chosen: Int64s) -> Pairs:
        """Some of the pairs."""
        return Pairs(*(column[chosen] for column in self))

    def slice(self, start: int, stop: int) -> Pairs:
        """Pairs start to stop."""
        return Pairs(*(column[start:stop] for column in self))


class Rows(NamedTuple):
    """Rows of all tables, those of each kind in order of time: key by number, kind, time, row in its table, and place.

    place: in the order they are read in, for new rows; below zero for kept ones.
    """

    key: Int64s
    kind: Int64s
    ts_us: Int64s
    row: Int64s
    place: Int64s

    def grouped(self, keys: int) -> Grouped:
        """The rows by key, of so many, and kind."""
        together = self.key * _KINDS + self.kind
        starts = np.zeros(keys * _KINDS + 1, dtype=np.int64)
        np.cumsum(np.bincount(together, minlength=keys * _KINDS), out=starts[1:])
        _, order = sort_times(together)
        return Grouped(self.ts_us[order], self.row[order], self.place[order], starts)


def kinds(side: int, new: Bools) -> Int64s:
    """The kinds of rows of a source, or set aside, of which some are new."""
    return 2 * side + new.astype(np.int64)


def latest_times(grouped: Grouped) -> tuple[Int64s, Int64s]:
    """The latest time of each key, of rows kept before the push and of all; NEVER_US where there is none."""
    last = np.full(len(grouped.starts) - 1, NEVER_US)
    there = np.flatnonzero(np.diff(grouped.starts))
    last[there] = grouped.ts_us[grouped.starts[there + 1] - 1]
    by_kind = last.reshape(-1, _KINDS)
    before: Int64s = by_kind[:, ::2].max(axis=1)
    everything: Int64s = by_kind.max(axis=1)
    return before, everything


def partners(reads: Reads, grouped: Grouped, reach: Reach) -> Ranges:
    """The partners of every read row; floors that its key's own reads have raised are written to `reach`."""
    ranges = Ranges(*np.zeros((4, len(reads.key)), dtype=np.int64))
    _find_partners(reads, grouped, reach, ranges)
    return ranges


@kernel
def _find_partners(reads: Reads, grouped: Grouped, reach: Reach, ranges: Ranges) -> None:
    """Binary searches for each row; of new rows in order, those of its key that were read before are counted."""
    seen, latest_us, within_us = np.zeros(2 * len(reach.key_us), dtype=np.int64), reach.key_us.copy(), reach.within_us
    for place in range(len(reads.key)):
        key, other, ts_us = reads.key[place], 1 - reads.side[place], reads.ts_us[place]
        if reach.evicts:
            reach.read_us[place] = max(reach.read_us[place], latest_us[key])
            latest_us[key] = max(latest_us[key], ts_us)
        low_us, high_us = max(ts_us, reach.read_us[place]) - within_us, ts_us + within_us + 1
        first = _KINDS * key + 2 * other
        start, stop, end = grouped.starts[first], grouped.starts[first + 1], grouped.starts[first + 2]
        kept_from = lower_bound(grouped.ts_us, start, stop, low_us)
        ranges.kept_from[place] = kept_from
        ranges.kept_to[place] = lower_bound(grouped.ts_us, kept_from, stop, high_us)
        new_to = stop + seen[2 * key + other] if reach.in_order else lower_bound(grouped.ts_us, stop, end, high_us)
        ranges.new_from[place] = lower_bound(grouped.ts_us, stop, new_to, low_us)
        ranges.new_to[place] = new_to
        seen[2 * key + reads.side[place]] += 1


def pairs_in_pieces(reads: Reads, grouped: Grouped, ranges: Ranges) -> Iterator[Pairs]:
    """All pairs, by the row that is read, then by the time of the other and the order it was read in.

    A piece is valid until the next one is asked for.
    """
    room = min(ranges.total, MOST_PAIRS)
    if room == 0:
        return
    pairs = Pairs(*np.empty((3, room), dtype=np.int64))
    cursor = np.array([0, ranges.kept_from[0], ranges.new_from[0]])
    while count := _fill_pairs(reads, grouped, ranges, cursor, pairs):
        yield pairs.slice(0, count)


@kernel
def _fill_pairs(reads: Reads, grouped: Grouped, ranges: Ranges, cursor: Int64s, pairs: Pairs) -> int:
    """Write the next pairs, as many as there is room for: both ranges of each row merged by time, kept rows first."""
    count, room, ts_us = 0, len(pairs.read), grouped.ts_us
    place, kept, new = cursor[0], cursor[1], cursor[2]
    while True:
        kept_to, new_to = ranges.kept_to[place], ranges.new_to[place]
        is_left, own = reads.side[place] == LEFT, reads.row[place]
        while count < room and (kept < kept_to or new < new_to):
            if new == new_to or (kept < kept_to and ts_us[kept] <= ts_us[new]):
                other = grouped.row[kept]
                kept += 1
            else:
                other, later = grouped.row[new], grouped.place[new] > place
                new += 1
                if later:
                    continue
            pairs.left[count] = own if is_left else other
            pairs.right[count] = other if is_left else own
            pairs.read[count] = place
            count += 1
        if count == room or place + 1 == len(reads.key):
            break
        place += 1
        kept, new = ranges.kept_from[place], ranges.new_from[place]
    cursor[0], cursor[1], cursor[2] = place, kept, new
    return count
