"""The keys of a sorted batch as small numbers, and those of last states beside them: every row is looked at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from latecomer.events import EventBatch, Int64s, take_rows
from latecomer.optimistic.key_states import LastStates, groups_of
from latecomer.windows.grouping import Groups, group_rows, number_keys


class BatchKeys(NamedTuple):
    """The rows of a batch, key by key and in order within each; the keys, and the group that each belongs to."""

    rows: Groups
    keys: pa.RecordBatch | None
    group: Int64s

    @classmethod
    def of(cls, batch: EventBatch) -> BatchKeys:
        """The keys of a sorted batch, which has rows; without a key, all rows have the same."""
        key = batch.layout.key
        if not key:
            return cls(Groups(np.arange(len(batch)), np.zeros(1, dtype=np.int64)), None, np.zeros(1, dtype=np.int64))
        rows = group_rows([batch.rows.column(name) for name in key])
        keys = take_rows(batch.rows.select(list(key)), rows.firsts)
        return cls(rows, keys, groups_of(keys, key))

    @property
    def groups(self) -> Int64s:
        """The groups that the keys belong to, each once."""
        return np.flatnonzero(np.bincount(self.group))

    def with_last(self, last: LastStates) -> LastKeys:
        """The keys of the batch and of last states, numbered alike."""
        size = len(self.group)
        if self.keys is None:
            return LastKeys(np.zeros(last.rows.num_rows, dtype=np.int64), self.group)
        names = tuple(self.keys.schema.names)
        (own, known), count, _ = number_keys([self.keys, last.rows], names)
        number = np.full(count, -1)
        number[own] = np.arange(size)
        others = np.flatnonzero(number < 0)
        number[others] = size + np.arange(len(others))
        numbers, group = number[known], np.append(self.group, np.empty(len(others), dtype=np.int64))
        group[numbers] = last.group
        return LastKeys(numbers, group)


class LastKeys(NamedTuple):
    """The number of the key of each last state, and the group of each key: those of a batch first, then others."""

    number: Int64s
    group: Int64s
