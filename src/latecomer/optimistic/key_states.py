"""The state after the last row of each key, in groups of keys: a micro-batch reads those that its rows belong to."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from latecomer.chunks import Store
from latecomer.codec import widened
from latecomer.events import Bools, Int64s, concat_rows, int64_view, take_rows
from latecomer.windows.hashing import shards_of

LAST = "_lc_last"  # the time of the key's last row
GROUPS = 16


def groups_of(rows: pa.RecordBatch, key: tuple[str, ...]) -> Int64s:
    """The group that each row's key belongs to."""
    # not the hash modulo the groups: keys of one shard have one remainder already, by the number of shards
    return shards_of([rows.column(name) for name in key], rows.num_rows, GROUPS * 257 - 1) % GROUPS


class LastStates(NamedTuple):
    """Keys with the time of their last row and the state after it, and the group of each."""

    rows: pa.RecordBatch
    group: Int64s

    @property
    def last_us(self) -> Int64s:
        """The times of the last rows."""
        return int64_view(self.rows.column(LAST))


class KeyStates:
    """All last states, in a store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def take(self, groups: Int64s, columns: pa.Schema) -> LastStates:
        """The states of groups, which are to be put back."""
        chosen = [chunk for chunk in self._store.chunks if chunk.run in set(groups.tolist())]
        parts = list(self._store.take(chosen))
        group = np.repeat([chunk.run for chunk in chosen], [part.num_rows for part in parts]).astype(np.int64)
        empty = widened(pa.RecordBatch.from_pylist([], schema=columns))
        return LastStates(concat_rows(parts) if parts else empty, group)

    def put(self, states: LastStates) -> None:
        """Keep the states of whole groups."""
        order = np.argsort(states.group, kind="stable")
        starts = np.searchsorted(states.group[order], np.arange(GROUPS + 1)).tolist()
        rows, last_us = take_rows(states.rows, order), states.last_us[order]
        for group, (start, stop) in enumerate(pairwise(starts)):
            self._store.append(rows.slice(start, stop - start), last_us[start:stop], group)

    def read(self) -> Iterator[pa.RecordBatch]:
        """All states, as they are stored."""
        return (self._store.read(chunk) for chunk in self._store.chunks)

    def forget(self, before_us: int) -> None:
        """Keys whose last row was before a time are no more."""
        for chunk in self._store.chunks:
            if chunk.ts_min_us >= before_us:
                continue
            (rows,) = self._store.take([chunk])
            last_us = int64_view(rows.column(LAST))
            left: Bools = last_us >= before_us
            if left.any():
                self._store.append(take_rows(rows, np.flatnonzero(left)), last_us[left], chunk.run)
