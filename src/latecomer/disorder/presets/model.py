"""What every made stream has in common: numbered rows, blocks of them, and a table in the order of arrival.

Invariants
1. A row depends on nothing but the preset's settings and its number: blocks that are made apart are equal to one block
   cut into pieces, whatever process makes them.
2. Columns `ts` (event time) and `arrival` are always there, in microseconds UTC, and no row arrives before its time.
3. A block is in the order of the numbers; only `table()` sorts by arrival, and equal arrivals keep the numbers' order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
import pyarrow as pa

from latecomer.errors import InputError, must
from latecomer.events import Int64s, int64_view

START_US = 1_760_000_000_000_000  # all made streams begin here: 2025-10-09 08:53:20 UTC
TIMESTAMP = pa.timestamp("us", "UTC")
TIMES = (pa.field("ts", TIMESTAMP), pa.field("arrival", TIMESTAMP))  # the columns every schema begins with
_PIECE = 1 << 20  # rows that table() makes at a time


class Preset(ABC):
    """A made stream: rows are numbered 0 to rows - 1 and each depends on nothing but the seed and its number."""

    @property
    @abstractmethod
    def rows(self) -> int:
        """How many row numbers there are."""

    @property
    @abstractmethod
    def schema(self) -> pa.Schema:
        """The columns of a block, `ts` and `arrival` among them."""

    @abstractmethod
    def block(self, start: int, stop: int) -> pa.Table:
        """The rows with numbers from start to stop - 1, in the order of their numbers; some may be missing."""

    def table(self) -> pa.Table:
        """All rows in the order of their arrival."""
        rows = self._all_rows()
        return rows.take(pa.array(arrival_order(rows)))

    def _all_rows(self) -> pa.Table:
        """All rows in the order of their numbers, made piece by piece to save memory."""
        starts = range(0, self.rows, _PIECE)
        pieces = [self.block(start, min(start + _PIECE, self.rows)) for start in starts]
        return pa.concat_tables(pieces).combine_chunks()


def arrival_order(rows: pa.Table) -> Int64s:
    """The positions of rows in the order of arrival; where two arrive at once, the first comes first."""
    arrival = rows.column("arrival").combine_chunks()
    return np.argsort(int64_view(arrival), kind="stable").astype(np.int64, copy=False)


def timestamps(us: Int64s) -> pa.Array:
    """Microseconds since 1970 as an Arrow column."""
    return pa.array(us, type=pa.int64()).view(TIMESTAMP)


def check_at_least(where: str, got: int, least: int) -> None:
    """Refuse a size that is too small or no whole number."""
    if not _is_whole(got) or got < least:
        raise InputError(must(where, f"be a whole number of at least {least}", got, f"use {least} or more"))


def check_seed(seed: int) -> None:
    """Refuse a seed that is no whole number."""
    if not _is_whole(seed):
        raise InputError(must("seed", "be a whole number", seed, "e.g. 7"))


def _is_whole(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)
