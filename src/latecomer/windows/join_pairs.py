"""Pairs of rows as columns, which of them the user's predicate takes, and the rows for which it fails."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from latecomer.errors import InputError, error_text, must
from latecomer.events import TICK, Bools, Int64s, int64_view, take_rows
from latecomer.windows.grouping import normal_keys
from latecomer.windows.join_candidates import LEFT, Pairs, Reads

Predicate = Callable[[pa.RecordBatch], Any]


@dataclass(frozen=True)
class PairColumns:
    """The columns of pairs: keys, the time, then those of each source under the names they have in results."""

    key: tuple[str, ...]
    time: str
    named: tuple[Mapping[str, str], Mapping[str, str]]  # of each source, its columns and their names in results

    @property
    def names(self) -> list[str]:
        """The names of all columns, in order."""
        left, right = self.named
        return [*self.key, self.time, *left.values(), *right.values()]

    def held(self, side: int) -> list[str]:
        """The columns that are needed of the rows of a source."""
        return list(dict.fromkeys([*self.key, self.time, *self.named[side]]))

    def schema(self, columns: pa.Schema) -> pa.Schema:
        """The columns of pairs of rows that have these."""
        fields = [columns.field(name) for name in (*self.key, self.time)]
        for named in self.named:
            fields += [columns.field(name).with_name(called) for name, called in named.items()]
        return pa.schema([_plain(each) for each in fields])


def _plain(kind: pa.Field) -> pa.Field:
    return kind.with_type(kind.type.value_type) if pa.types.is_dictionary(kind.type) else kind


@dataclass(frozen=True)
class PairTables:
    """The rows of both sources that pairs are made of."""

    columns: PairColumns
    left: pa.RecordBatch
    right: pa.RecordBatch

    def times(self, pairs: Pairs) -> Int64s:
        """The time of each pair: the later one of its two rows."""
        left, right = (int64_view(table.column(self.columns.time)) for table in (self.left, self.right))
        return np.maximum(left[pairs.left], right[pairs.right])

    def batch(self, pairs: Pairs, tick: Int64s | None = None) -> pa.RecordBatch:
        """The pairs as rows; with the tick of each row of the push, if there is one, as a last column."""
        keys = [] if not self.columns.key else take_rows(self.left.select(list(self.columns.key)), pairs.left).columns
        time = pa.array(self.times(pairs)).view(self.left.schema.field(self.columns.time).type)
        arrays, names = [*(normal_keys(key) for key in keys), time], self.columns.names
        for table, named, rows in zip((self.left, self.right), self.columns.named, pairs[:2], strict=True):
            arrays += take_rows(table.select(list(named)), rows).columns if named else []
        if tick is not None:
            arrays, names = [*arrays, pa.array(tick[pairs.read])], [*names, TICK]
        return pa.RecordBatch.from_arrays(arrays, names=names)


class Tested:
    """The pairs that a predicate takes, and the rows of the push for which it fails.

    Such a row is in no pair: neither in those that it makes when it is read, nor in those of rows read after it.
    """

    def __init__(self, tables: PairTables, when: Predicate | None, reads: Reads) -> None:
        self._tables, self._when, self._reads = tables, when, reads
        self._taken: list[Pairs] = []
        self._failed = np.zeros(len(reads.key), dtype=np.bool_)
        self._failed_rows = tuple(np.zeros(table.num_rows, dtype=np.bool_) for table in (tables.left, tables.right))
        self.comparisons = 0
        self.reasons: dict[int, str] = {}  # of rows that failed, in the order they were read in

    def add(self, pieces: Iterable[Pairs]) -> None:
        """Test pairs, in the order in which their second rows are read."""
        for pairs in pieces:
            there = self._without_failed(pairs)
            self.comparisons += len(there.read)
            if not self._try(there):
                self._one_by_one(there)

    def pairs(self) -> Pairs:
        """All pairs that were taken."""
        if not self._taken:
            return Pairs(*np.zeros((3, 0), dtype=np.int64))
        together = Pairs(*(np.concatenate(columns) for columns in zip(*self._taken, strict=True)))
        return together.take(np.flatnonzero(~self._failed[together.read])) if self.reasons else together

    def _one_by_one(self, pairs: Pairs) -> None:
        """Test the pairs of each row that is read by themselves."""
        bounds = [0, *(np.flatnonzero(np.diff(pairs.read)) + 1).tolist(), len(pairs.read)]
        for start, stop in pairwise(bounds):
            there = self._without_failed(pairs.slice(start, stop))
            self.comparisons -= stop - start - len(there.read)
            self._try(there, alone=True)

    def _try(self, pairs: Pairs, *, alone: bool = False) -> bool:
        """Add the pairs that the predicate takes; false if it fails. For pairs of one row alone, the row fails then."""
        if self._when is None:
            self._taken.append(Pairs(*(column.copy() for column in pairs)))
            return True
        if self.reasons:
            pairs = pairs.take(np.flatnonzero(~self._failed[pairs.read]))
        if len(pairs.read) == 0:
            return True
        batch = self._tables.batch(pairs)
        try:
            given = self._when(batch)
        except MemoryError:
            raise
        except Exception as error:
            if alone:
                self._fail(int(pairs.read[0]), f"when: {error_text(error)}")
            return False
        self._taken.append(pairs.take(np.flatnonzero(_as_mask(given, batch.num_rows))))
        return True

    def _fail(self, read: int, reason: str) -> None:
        self.reasons[read] = reason
        self._failed[read] = True
        self._failed_rows[self._reads.side[read]][self._reads.row[read]] = True

    def _without_failed(self, pairs: Pairs) -> Pairs:
        """The pairs whose first rows are not among those that have failed."""
        if not self.reasons:
            return pairs
        left, right = self._failed_rows
        first_failed = np.where(self._reads.side[pairs.read] == LEFT, right[pairs.right], left[pairs.left])
        return pairs.take(np.flatnonzero(~first_failed))


def _as_mask(given: Any, count: int) -> Bools:
    """What a predicate gave, if it is a truth for each pair; null is false."""
    rule = "return a boolean Arrow or numpy array, a value for each pair"
    advice = "e.g. return pc.greater(pairs['scats_flow'], 600)"
    if isinstance(given, pa.ChunkedArray):
        given = given.combine_chunks()
    if isinstance(given, pa.Array) and pa.types.is_boolean(given.type):
        given = given.fill_null(False).to_numpy(zero_copy_only=False)
    if not (isinstance(given, np.ndarray) and given.dtype == np.bool_ and given.ndim == 1):
        kind = getattr(given, "type", getattr(given, "dtype", None))
        got = type(given).__name__ if kind is None else f"{type(given).__name__} of {kind}"
        raise InputError(must("when of join", rule, got, advice))
    if len(given) != count:
        raise InputError(must("when of join", rule, f"{len(given)} values for {count} pairs", advice))
    return given
