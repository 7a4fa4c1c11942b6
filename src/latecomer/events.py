"""Events as a struct of arrays over Arrow buffers, and the total order between them.

An EventBatch is an Arrow RecordBatch plus a Layout that says which column plays which role. Views of time
and tick are numpy arrays over Arrow's own buffers: nothing is copied.

Invariants
1. Time is int64 microseconds since 1970, ticks are int64; both without nulls.
2. The total order is (ts, source, tick, order). Where no `order` column is given, the row's own values
   break ties, column by column; rows that are still tied are equal, so their order does not matter.
3. Task numbers and positions in a task never decide anything.
4. An event may be a retraction: its `change` is then -1, and voids one given before with the same values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from latecomer.radix import sort_bits

Int64s = npt.NDArray[np.int64]
Int8s = npt.NDArray[np.int8]
Bools = npt.NDArray[np.bool_]

NEVER_US = -(2**62)  # below every time and tick; half the range, so that subtracting cannot overflow
FOREVER_US = 2**62

TIME, TICK, SOURCE, ORDER = "_lc_ts", "_lc_tick", "_lc_source", "_lc_order"
EVENT_CHANGE = "_lc_change"
CARRIED_PREFIX = "_lc_"
TICK_FIELD = pa.field(TICK, pa.int64())
EVENT_CHANGE_FIELD = pa.field(EVENT_CHANGE, pa.int8())


@dataclass(frozen=True, slots=True)
class Layout:
    """Which column of a batch plays which role; columns named `_lc_*` are carried for us, not the user's.

    `window` and `window_end`: the start and the end of the event's window, where one was asked for and the column is
    still that.
    """

    time: str
    key: tuple[str, ...] = ()
    source: str | None = None
    order: tuple[str, ...] = ()
    window: str | None = None
    window_end: str | None = None


@dataclass(frozen=True, slots=True)
class EventBatch:
    """Rows with a time and a tick each."""

    rows: pa.RecordBatch
    layout: Layout

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    @property
    def ts_us(self) -> Int64s:
        """Event times, a view."""
        return int64_view(self.rows.column(self.layout.time))

    @property
    def tick(self) -> Int64s:
        """Arrival ticks, a view."""
        return int64_view(self.rows.column(TICK))

    @property
    def change(self) -> Int8s:
        """+1 for an event, -1 for the retraction of one."""
        if EVENT_CHANGE not in self.rows.schema.names:
            return np.ones(len(self), dtype=np.int8)
        changes: Int8s = self.rows.column(EVENT_CHANGE).to_numpy()
        return changes

    @property
    def user_rows(self) -> pa.RecordBatch:
        """The user's columns only."""
        return users_columns(self.rows)

    def without(self, column: str) -> EventBatch:
        """The same rows without a column."""
        names = [name for name in self.rows.schema.names if name != column]
        return self if len(names) == self.rows.num_columns else EventBatch(self.rows.select(names), self.layout)

    def take(self, positions: npt.NDArray[np.int64]) -> EventBatch:
        """The rows at these positions, in this order."""
        return EventBatch(take_rows(self.rows, positions), self.layout)

    def filter(self, mask: Bools) -> EventBatch:
        """The rows where the mask is true."""
        return self if mask.all() else self.take(np.flatnonzero(mask))

    def slice(self, start: int, stop: int) -> EventBatch:
        """Rows start to stop, a view."""
        return EventBatch(self.rows.slice(start, stop - start), self.layout)

    def sorted(self) -> EventBatch:
        """The same rows in the total order."""
        positions = total_order(self)
        if np.array_equal(positions, np.arange(len(positions))):
            return self
        return self.take(positions)


def users_columns(rows: pa.RecordBatch) -> pa.RecordBatch:
    """The rows without the columns that are carried for us."""
    names = [name for name in rows.schema.names if not name.startswith(CARRIED_PREFIX)]
    return rows if len(names) == rows.num_columns else rows.select(names)


def int64_view(column: pa.Array) -> Int64s:
    """See an Arrow column of 64-bit integers or timestamps as numpy int64, without copying."""
    if column.type != pa.int64():
        column = column.view(pa.int64())
    values: Int64s = column.to_numpy(zero_copy_only=column.null_count == 0)
    return values


def take_rows(rows: pa.RecordBatch, positions: npt.NDArray[np.int64]) -> pa.RecordBatch:
    """Take rows column by column; numpy moves flat columns without nulls faster than Arrow does."""
    indices: pa.Array | None = None
    columns = []
    for column in rows.columns:
        bits = as_bits(column)
        if bits is not None:
            columns.append(pa.array(bits.to_numpy().take(positions)).view(column.type))
            continue
        if indices is None:
            indices = pa.array(positions)
        columns.append(column.take(indices))
    return pa.RecordBatch.from_arrays(columns, schema=rows.schema)


def put_rows(rows: pa.RecordBatch, positions: npt.NDArray[np.int64]) -> pa.RecordBatch:
    """The same rows, each at its position: what `take_rows` undoes, for positions that are all numbers once."""
    taken: npt.NDArray[np.int64] | None = None
    columns = []
    for column in rows.columns:
        bits = as_bits(column)
        if bits is not None:
            values = bits.to_numpy()
            moved = np.empty_like(values)
            moved[positions] = values
            columns.append(pa.array(moved).view(column.type))
            continue
        if taken is None:
            taken = inverse(positions)
        columns.append(column.take(pa.array(taken)))
    return pa.RecordBatch.from_arrays(columns, schema=rows.schema)


def inverse(order: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The place of each number in an order of all numbers."""
    places = np.empty(len(order), dtype=np.int64)
    places[order] = np.arange(len(order))
    return places


def as_bits(column: pa.Array) -> pa.Array | None:
    """A flat column without nulls, seen as integers of the same width; None for others."""
    return None if column.null_count else as_bits_or_null(column)


def as_bits_or_null(column: pa.Array) -> pa.Array | None:
    """A flat column seen as integers of the same width, nulls where it has them; None for others."""
    return column.view(_as_integer(column.type)) if _is_flat(column.type) else None


def _is_flat(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_timestamp(kind)
        or pa.types.is_date(kind)
        or pa.types.is_duration(kind)
    )


def _as_integer(kind: pa.DataType) -> pa.DataType:
    return {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}[kind.bit_width]


def concat_rows(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Put batches of one schema together as one."""
    if len(batches) == 1:
        return batches[0]
    columns = zip(*(batch.columns for batch in batches), strict=True)
    return pa.RecordBatch.from_arrays([pa.concat_arrays(each) for each in columns], schema=batches[0].schema)


def concat_events(batches: Iterable[EventBatch]) -> EventBatch:
    """Put event batches of one layout together as one."""
    parts = list(batches)
    full = [part for part in parts if len(part)] or parts[:1]
    return EventBatch(concat_rows([part.rows for part in full]), full[0].layout)


# The total order. Sort by time first, then refine only the rows that are still tied.


def sort_times(ts_us: Int64s) -> tuple[Int64s, Int64s]:
    """Sort times, stably: the times in order, and the positions they had.

    Time and position are packed into one integer, sorted by the time's bits. Where they don't fit into 63 bits,
    numpy's stable sort does it.
    """
    size = len(ts_us)
    if size == 0 or bool((ts_us[1:] >= ts_us[:-1]).all()):
        return ts_us, np.arange(size)
    first, bits = int(ts_us.min()), size.bit_length()
    range_bits = (int(ts_us.max()) - first).bit_length()
    if range_bits + bits > 63:
        positions = np.argsort(ts_us, kind="stable")
        return ts_us[positions], positions
    packed = ts_us - first
    packed <<= bits
    packed |= np.arange(size)
    packed = sort_bits(packed, bits, range_bits)
    positions = packed & ((1 << bits) - 1)
    packed >>= bits
    packed += first
    return packed, positions


def order_by(*columns: Int64s) -> Int64s:
    """Positions in order of the first column, where equal of the next, and so on; stable."""
    _, order = sort_times(columns[-1])
    for column in reversed(columns[:-1]):
        _, positions = sort_times(column[order])
        order = order[positions]
    return order


def floor_times(ts_us: Int64s, length_us: int, offset_us: int = 0) -> Int64s:
    """The starts of the stretches of time that times lie in: at the offset, and every length before and after it."""
    return (ts_us - offset_us) // length_us * length_us + offset_us


class Stretches(NamedTuple):
    """Time cut into stretches of one length, one of which begins at the offset; rows of one leave together."""

    length_us: int
    offset_us: int = 0

    def starts(self, ts_us: Int64s) -> Int64s:
        """The start of the stretch that each time lies in."""
        return floor_times(ts_us, *self)

    def lasts(self, ts_us: Int64s) -> Int64s:
        """The last time of the stretch that each time lies in."""
        return self.starts(ts_us) + (self.length_us - 1)

    def passed(self, punctuation_us: int) -> int:
        """The last time of the last stretch that a punctuation has passed: up to it everything may leave.

        The end of time has no stretch after it: then everything may leave.
        """
        if punctuation_us in (NEVER_US, FOREVER_US):
            return punctuation_us
        return (punctuation_us + 1 - self.offset_us) // self.length_us * self.length_us + self.offset_us - 1


def total_order(batch: EventBatch) -> Int64s:
    """Positions of the rows in the total order."""
    return refine_ties(batch, *sort_times(batch.ts_us))


def refine_ties(batch: EventBatch, ranked: Int64s, positions: Int64s) -> Int64s:
    """Positions that are in order of the times `ranked`, put into the total order where times are equal; in place."""
    tied = ranked[1:] == ranked[:-1]
    for rank in _tie_breakers(batch):
        if not tied.any():
            break
        tied = _refine(positions, tied, rank)
    return positions


def _tie_breakers(batch: EventBatch) -> Iterable[Callable[[Int64s], Int64s]]:
    rows, layout = batch.rows, batch.layout
    if layout.source is not None:
        yield _column_rank(rows, layout.source)
    yield lambda chosen: batch.tick[chosen]
    names = layout.order or batch.user_rows.schema.names
    flat = [name for name in names if _is_rankable(rows.schema.field(name).type)]
    for name in flat + [name for name in names if name not in flat]:
        yield _column_rank(rows, name)


def _refine(positions: Int64s, tied: Bools, rank: Callable[[Int64s], Int64s]) -> Bools:
    """Sort each group of tied neighbours by rank, in place, and say which neighbours are tied still."""
    member = np.zeros(len(positions), dtype=np.bool_)
    member[1:] = tied
    member[:-1] |= tied
    where = np.flatnonzero(member)
    first_of_group = np.ones(len(where), dtype=np.bool_)
    first_of_group[1:] = ~tied[where[1:] - 1]
    group = np.cumsum(first_of_group)
    ranks = rank(positions[where])
    order = np.lexsort((ranks, group))
    positions[where] = positions[where][order]
    ranks = ranks[order]
    still = np.zeros(len(tied), dtype=np.bool_)
    same = (ranks[1:] == ranks[:-1]) & ~first_of_group[1:]
    still[where[1:] - 1] = same
    return still


def _column_rank(rows: pa.RecordBatch, name: str) -> Callable[[Int64s], Int64s]:
    return lambda chosen: value_rank(rows.column(name).take(pa.array(chosen)))


def equal_rows(left: pa.RecordBatch, right: pa.RecordBatch) -> Bools:
    """Which rows of two batches are the same: null is like null and NaN like NaN, but -0.0 is not 0.0."""
    same = np.ones(left.num_rows, dtype=np.bool_)
    for one, other in zip(left.columns, right.columns, strict=True):
        same &= _equal_values(one, other)
    return same


def _equal_values(one: pa.Array, other: pa.Array) -> Bools:
    if pa.types.is_nested(one.type):
        pairs = zip(one.to_pylist(), other.to_pylist(), strict=True)
        return np.array([repr(left) == repr(right) for left, right in pairs], dtype=np.bool_)
    if pa.types.is_null(one.type):
        return np.ones(len(one), dtype=np.bool_)
    if pa.types.is_floating(one.type):
        one, other = _ordered_bits(one), _ordered_bits(other)
    same = pc.fill_null(pc.equal(one, other), False)
    same = pc.or_(same, pc.and_(pc.is_null(one), pc.is_null(other)))
    equal: Bools = same.to_numpy(zero_copy_only=False)
    return equal


def value_rank(column: pa.Array) -> Int64s:
    """Numbers that order the values of a column as the values themselves, nulls last."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if not _is_rankable(column.type):
        column = pa.array([repr(value) for value in column.to_pylist()], pa.large_string())
    elif pa.types.is_floating(column.type):
        column = _ordered_bits(column)
    elif pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    ranks: Int64s = pc.rank(column, tiebreaker="dense").to_numpy().astype(np.int64)
    return ranks


def _ordered_bits(column: pa.Array) -> pa.Array:
    """Integers in the order of the floats, NaN last; by bits, since -0.0 and 0.0 are different rows."""
    column = pc.if_else(pc.is_nan(column), pa.scalar(float("nan"), column.type), column)
    bits = column.view(_as_integer(column.type)).cast(pa.int64())
    low = pa.scalar(2 ** (column.type.bit_width - 1) - 1, pa.int64())
    return pc.if_else(pc.less(bits, 0), pc.bit_wise_xor(bits, low), bits)


def _is_rankable(kind: pa.DataType) -> bool:
    return bool(
        _is_flat(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_time(kind)
        or pa.types.is_fixed_size_binary(kind)
        or pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_decimal(kind)
        or (pa.types.is_dictionary(kind) and _is_rankable(kind.value_type))
    )
