"""A join at work: a push, from the rows that come to the pairs they make, and what is kept of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from latecomer.chunks import Store
from latecomer.codec import widened
from latecomer.errors import InputError, must
from latecomer.events import NEVER_US, TICK, Int64s, Layout, concat_rows, int64_view, order_by, sort_times, take_rows
from latecomer.outputs import REASON
from latecomer.windows.grouping import group_rows
from latecomer.windows.join_candidates import (
    ASIDE,
    LEFT,
    RIGHT,
    Grouped,
    Reach,
    Reads,
    Rows,
    kinds,
    latest_times,
    pairs_in_pieces,
    partners,
)
from latecomer.windows.join_pairs import PairColumns, PairTables, Tested
from latecomer.windows.join_state import READ, JoinState, Kept
from latecomer.windows.operators import Clocks, OrderedRows, Running, Stretch

if TYPE_CHECKING:
    from latecomer.windows.join import Join

COMPARISONS, CUT_SHORT = "comparisons", "cut_short"


class _Arrived(NamedTuple):
    """The rows of a push: their sources and times, and a table for each source and for what may be set aside.

    first: the number of the first row in the order of reading.
    """

    columns: PairColumns
    side: Int64s
    ts_us: Int64s
    tables: list[pa.RecordBatch]

    @property
    def first(self) -> int:
        return int(self.tables[ASIDE].column(READ)[0].as_py())


class _Parts(NamedTuple):
    """Rows by the stretch that gives them, the first one first."""

    rows: pa.RecordBatch | None
    stretch: Int64s

    def of(self, number: int) -> pa.RecordBatch | None:
        """The rows of one stretch, if it has any."""
        start, stop = np.searchsorted(self.stretch, [number, number + 1]).tolist()
        return None if self.rows is None or start == stop else self.rows.slice(start, stop - start)


_NO_ROWS = np.empty(0, dtype=np.int64)


class _Met(NamedTuple):
    """Kept rows, and those that came after them, in a table for each source and one for what is set aside.

    key: by number, of each row of the tables, one after the other. reads: the rows that came, in order.
    """

    tables: list[pa.RecordBatch]
    key: Int64s
    reads: Reads
    grouped: Grouped


class Joining(Running):
    """Runs a Join."""

    def __init__(self, operator: Join, store: Store, layout: Layout) -> None:
        self._operator, self._layout = operator, layout
        self._state = JoinState(store, layout.time)
        self._within_us, self._keeps = operator.within_us, operator.keep_us is not None
        self._counted = {COMPARISONS: 0, CUT_SHORT: 0}

    def counters(self) -> dict[str, int]:
        return dict(self._counted)

    def push(self, rows: pa.RecordBatch | None, clocks: Clocks) -> OrderedRows:
        (given,) = self.push_stretches([Stretch(rows, clocks)])
        return given

    def push_stretches(self, stretches: Sequence[Stretch]) -> Iterator[OrderedRows]:
        """All stretches at once: each row meets what was read before it, and had not left when its stretch began."""
        if not stretches:
            return
        gone_us = np.array([self._operator.gone(each.clocks) for each in stretches], dtype=np.int64)
        full = [(number, rows) for number, (rows, _) in enumerate(stretches) if rows is not None and rows.num_rows]
        results, quarantined = _Parts(None, _NO_ROWS), _Parts(None, _NO_ROWS)
        if full:
            rows = concat_rows([rows for _, rows in full])
            stretch = np.repeat([number for number, _ in full], [rows.num_rows for _, rows in full])
            results, quarantined = self._joined(rows, stretch, gone_us)
        self._state.leave(int(gone_us[-1]))
        for number, each in enumerate(stretches):
            yield OrderedRows(results.of(number), each.clocks, quarantined.of(number))

    def _joined(self, rows: pa.RecordBatch, stretch: Int64s, gone_us: Int64s) -> tuple[_Parts, _Parts]:
        """The pairs that rows make, and those of them that are for quarantine; the others are kept."""
        arrived = self._arrived(rows, stretch)
        sweeps = not self._keeps and self._state.sweeps
        kept = self._kept(arrived, everything=sweeps)
        met = self._met(kept, arrived)
        before_us, latest_us = latest_times(met.grouped)
        left_us = np.append(self._state.gone_us, gone_us)[stretch]  # when each row comes, rows up to here have left
        floors_us = left_us + 1 + self._within_us
        reach = Reach(self._within_us, floors_us, before_us, not self._keeps, bool(stretch[0] == stretch[-1]))
        tables = PairTables(arrived.columns, met.tables[LEFT], met.tables[RIGHT])
        tested = self._tested(tables, met, reach)
        if not self._keeps:
            self._drop_passed(kept, met, latest_us)
        self._keep(arrived, np.array(list(tested.reasons), dtype=np.int64), int(gone_us[-1]))
        if sweeps:
            self._state.swept()
        return _results(tables, tested, rows, stretch), _quarantined(rows, tested.reasons, stretch)

    def _arrived(self, rows: pa.RecordBatch, stretch: Int64s) -> _Arrived:
        """The rows of each source with the columns that are needed, numbered in the order they are read in."""
        columns, side = self._operator.pair_columns(rows.schema, self._layout), self._operator.sides(rows, self._layout)
        ts_us = int64_view(rows.column(self._layout.time))
        if bool(((np.diff(ts_us) < 0) & (np.diff(stretch) == 0)).any()):
            raise InputError(must("rows of a push of join", "be in order of time", "others", "sort them before"))
        needed = dict.fromkeys([*columns.held(LEFT), *columns.held(RIGHT)])
        plain = self._state.number(_plain(rows.select(list(needed))))
        tables = []
        for of in (LEFT, RIGHT):
            own = plain.select([*columns.held(of), READ])
            tables.append(take_rows(own, np.flatnonzero(side == of)))
        tables.append(plain.select([*self._layout.key, self._layout.time, READ]))
        return _Arrived(columns, side, ts_us, tables)

    def _kept(self, arrived: _Arrived, *, everything: bool) -> list[Kept]:
        """What is kept of each source, and set aside, that rows can reach.

        Where a key's own reads evict, its latest time must be known too, which may lie beyond.
        """
        left, right, aside = arrived.tables
        if self._keeps:
            of_left, of_right = (sort_times(arrived.ts_us[arrived.side == of])[0] for of in (LEFT, RIGHT))
            return [
                self._state.near(LEFT, of_right, self._within_us, left),
                self._state.near(RIGHT, of_left, self._within_us, right),
                Kept([], aside.slice(0, 0)),
            ]
        from_us = NEVER_US if everything else int(arrived.ts_us.min()) - self._within_us
        return [self._state.since(run, from_us, like) for run, like in enumerate(arrived.tables)]

    def _met(self, kept: list[Kept], arrived: _Arrived) -> _Met:
        """All rows that can meet, by key, kind and time."""
        news = [*arrived.tables[:ASIDE], arrived.tables[ASIDE].slice(0, 0)]
        tables = [concat_rows([old.rows, new]) for old, new in zip(kept, news, strict=True)]
        key, keys = self._key_numbers(tables)
        reads, parts, start = np.empty((2, len(arrived.side)), dtype=np.int64), [], 0
        for side, (old, table) in enumerate(zip(kept, tables, strict=True)):
            count, ts_us = old.rows.num_rows, int64_view(table.column(self._layout.time))
            read = int64_view(table.column(READ))
            row = _in_order(ts_us, read, count)
            parts.append(Rows(key[start + row], kinds(side, row >= count), ts_us[row], row, read[row] - arrived.first))
            mine = np.flatnonzero(arrived.side == side)
            reads[:, mine] = key[start + count : start + table.num_rows], np.arange(count, table.num_rows)
            start += table.num_rows
        rows = Rows(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
        read_key, read_row = reads
        return _Met(tables, key, Reads(read_key, arrived.side, arrived.ts_us, read_row), rows.grouped(keys))

    def _key_numbers(self, tables: list[pa.RecordBatch]) -> tuple[Int64s, int]:
        """The key of each row of tables by number, and how many there are."""
        if not self._layout.key:
            return np.zeros(sum(table.num_rows for table in tables), dtype=np.int64), 1
        columns = [pa.concat_arrays([table.column(name) for table in tables]) for name in self._layout.key]
        groups = group_rows(columns)
        return groups.spread(np.arange(len(groups))), len(groups)

    def _tested(self, tables: PairTables, met: _Met, reach: Reach) -> Tested:
        """The pairs of rows in reach that the predicate takes."""
        reads, grouped = met.reads, met.grouped
        tested = Tested(tables, self._operator.when, reads)
        tested.add(pairs_in_pieces(reads, grouped, partners(reads, grouped, reach)))
        self._counted[CUT_SHORT] += int((reach.read_us > reads.ts_us).sum())
        self._counted[COMPARISONS] += tested.comparisons
        return tested

    def _drop_passed(self, kept: list[Kept], met: _Met, latest_us: Int64s) -> None:
        """Let go kept rows that can find no partner, since their key has read on."""
        start = 0
        for old, table in zip(kept, met.tables, strict=True):
            key = met.key[start : start + old.rows.num_rows]
            self._state.drop(old, self._state.ts_us(old.rows) < latest_us[key] - self._within_us)
            start += table.num_rows

    def _keep(self, arrived: _Arrived, failed: Int64s, gone_us: int) -> None:
        """Keep the rows that came; those that failed are set aside where a key's own reads evict."""
        stays = arrived.ts_us > gone_us
        stays[failed] = False
        for side in (LEFT, RIGHT):
            chosen = np.flatnonzero(stays[arrived.side == side])
            self._state.append(side, [take_rows(arrived.tables[side], chosen)])
        if len(failed) and not self._keeps:
            self._state.append(ASIDE, [take_rows(arrived.tables[ASIDE], failed)])


def _plain(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Rows as they come out of a store: wide text, and no dictionaries."""
    for place, column in enumerate(rows.columns):
        if pa.types.is_dictionary(column.type):
            plain = column.dictionary_decode()
            rows = rows.set_column(place, rows.schema.field(place).with_type(plain.type), plain)
    return widened(rows).replace_schema_metadata(None)


def _in_order(ts_us: Int64s, read: Int64s, kept: int) -> Int64s:
    """Positions of rows in order of time, then of reading: first of so many that were kept, then of the new ones."""
    return np.concatenate([order_by(ts_us[:kept], read[:kept]), kept + order_by(ts_us[kept:], read[kept:])])


def _results(tables: PairTables, tested: Tested, rows: pa.RecordBatch, stretch: Int64s) -> _Parts:
    """The pairs of each stretch in order of time, with the tick of the row that was read last."""
    pairs = tested.pairs()
    if len(pairs.read) == 0:
        return _Parts(None, _NO_ROWS)
    pairs = pairs.take(order_by(stretch[pairs.read], tables.times(pairs)))
    tick = int64_view(rows.column(TICK)) if TICK in rows.schema.names else None
    return _Parts(tables.batch(pairs, tick), stretch[pairs.read])


def _quarantined(rows: pa.RecordBatch, reasons: dict[int, str], stretch: Int64s) -> _Parts:
    """Rows for which the predicate failed, with the reason."""
    if not reasons:
        return _Parts(None, _NO_ROWS)
    places = np.array(list(reasons))
    failed = take_rows(rows, places).append_column(REASON, pa.array(list(reasons.values()), pa.string()))
    return _Parts(failed, stretch[places])
