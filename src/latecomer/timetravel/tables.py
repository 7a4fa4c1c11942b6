"""The tables of a micro-batch: keys as small numbers, the same in all of them, and times searched key by key."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from latecomer._jit import kernel
from latecomer.events import Int64s, int64_view, take_rows
from latecomer.search import lower_bound
from latecomer.windows.grouping import number_keys
from latecomer.windows.hashing import hash_keys

ROLE = "_lc_role"  # of a stored event: why it is stored
RECENT, CONTEXT, LATE = range(3)
FROM, TO, FROM_NUMBER, TO_NUMBER = "_lc_from", "_lc_to", "_lc_from_number", "_lc_to_number"  # of a hole
MISSING, FILLED = "_lc_missing", "_lc_filled"
HOLE_COLUMNS = (FROM, TO, FROM_NUMBER, TO_NUMBER, MISSING, FILLED)
UNTIL, DONE, FIRE, FIRED = "_lc_until", "_lc_done", "_lc_fire", "_lc_fired"  # of a late event whose replay is pending

BUCKET = "_lc_bucket"  # of a stored row: the bucket of its key

_NOTHING: Int64s = np.zeros(0, dtype=np.int64)


class Tables:
    """Tables by name, and for each of their rows a number that stands for its key; without a key, zero."""

    def __init__(self, tables: Mapping[str, pa.RecordBatch | None], key: tuple[str, ...]) -> None:
        self._tables = {name: table for name, table in tables.items() if table is not None and table.num_rows}
        numbers, self.count, self._keys = number_keys(list(self._tables.values()), key)
        self._numbers = dict(zip(self._tables, numbers, strict=True))
        self._key = key

    def add(self, name: str, table: pa.RecordBatch | None) -> None:
        """One more table; keys that are new get the next numbers."""
        if table is None or table.num_rows == 0:
            return
        self._tables[name] = table
        known = [] if self._keys is None else [self._keys]
        numbers, count, keys = number_keys([*known, table], self._key)
        before = numbers[0] if known else _NOTHING
        order = np.full(count, -1)  # the number that each of these has
        order[before] = np.arange(len(before))
        new = np.flatnonzero(order < 0)
        order[new] = len(before) + np.arange(len(new))
        self._numbers[name] = order[numbers[-1]]
        self.count = count
        self._keys = None if keys is None else take_rows(keys, np.argsort(order))

    def get(self, name: str) -> pa.RecordBatch | None:
        """A table; None where there is none."""
        return self._tables.get(name)

    def key(self, name: str) -> Int64s:
        """The numbers of the keys of its rows."""
        return self._numbers.get(name, _NOTHING)

    def column(self, name: str, column: str) -> Int64s:
        """A column of whole numbers or times."""
        table = self._tables.get(name)
        return _NOTHING if table is None else int64_view(table.column(column))

    def roles(self, name: str) -> Int64s:
        """Why each row of a table of stored events is stored."""
        table = self._tables.get(name)
        return _NOTHING if table is None else table.column(ROLE).to_numpy().astype(np.int64)

    @property
    def buckets(self) -> npt.NDArray[np.uint32]:
        """The bucket of each key."""
        if self._keys is None:
            return np.zeros(self.count, dtype=np.uint32)
        return buckets_of(self._keys, self._key)

    def with_keys(self, key: Int64s, columns: Mapping[str, pa.Array]) -> pa.RecordBatch:
        """Rows with these keys and columns."""
        keys = [] if self._keys is None else take_rows(self._keys, key).columns
        names = [] if self._keys is None else self._keys.schema.names
        return pa.RecordBatch.from_arrays([*keys, *columns.values()], names=[*names, *columns])


def buckets_of(rows: pa.RecordBatch, key: tuple[str, ...]) -> npt.NDArray[np.uint32]:
    """The bucket of each row's key: the upper bits of its hash, as the lower ones are alike in a shard."""
    hashes = hash_keys([rows.column(name) for name in key], rows.num_rows)
    return (hashes >> np.uint64(32)).astype(np.uint32)


def with_buckets(rows: pa.RecordBatch, bucket: npt.NDArray[np.uint32]) -> pa.RecordBatch:
    """Rows with the buckets of their keys, as they are stored."""
    return rows.append_column(BUCKET, pa.array(bucket))


class GroupedTimes(NamedTuple):
    """Times in order within groups, such as keys: those of group g are `ts_us[starts[g]:starts[g + 1]]`."""

    ts_us: Int64s
    starts: Int64s


def group_starts(group: Int64s, count: int) -> Int64s:
    """Where each of so many groups begins, and where the last one ends, among rows in the order of their groups."""
    return np.searchsorted(group, np.arange(count + 1))


def places_from(times: GroupedTimes, group: Int64s, from_us: Int64s) -> Int64s:
    """For each group and time the place of the group's first time from then on, or the end of the group."""
    found = np.empty(len(group), dtype=np.int64)
    find_places(times, group, from_us, found)
    return found


def spread_out(first: Int64s, stop: Int64s) -> tuple[Int64s, Int64s]:
    """The places of stretches, one stretch after the other, and which of them each is of."""
    sizes = stop - first
    owner = np.repeat(np.arange(len(sizes)), sizes)
    place: Int64s = np.arange(len(owner)) - np.repeat(np.cumsum(sizes) - sizes, sizes) + first[owner]
    return place, owner


@kernel
def find_places(times: GroupedTimes, group: Int64s, from_us: Int64s, found: Int64s) -> None:
    """The loop of `places_from`."""
    for i in range(len(group)):
        found[i] = lower_bound(times.ts_us, times.starts[group[i]], times.starts[group[i] + 1], from_us[i])


def shift_times(rows: pa.RecordBatch, times: Iterable[str], by_us: Int64s | int) -> pa.RecordBatch:
    """The same rows at other times: those of these columns that they have."""
    for name in times:
        place = rows.schema.get_field_index(name)
        if place >= 0:
            field = rows.schema.field(place)
            rows = rows.set_column(place, field, pa.array(int64_view(rows.column(place)) + by_us).view(field.type))
    return rows
