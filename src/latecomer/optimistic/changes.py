"""What a micro-batch changes: what stored rows gave before, compared with what they give now, bit for bit."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from latecomer.events import Bools, Int64s, equal_rows, inverse, order_by, put_rows, take_rows, users_columns
from latecomer.optimistic.arrangement import Arrangement
from latecomer.windows.key_steps import Ran, beside, child_numbers

_MANY = 1 << 20


class Outputs(NamedTuple):
    """Outputs of a run: the number of the row that each comes from, and its number among the outputs of that row.

    made: what the step has made; `rows` has the rows' own columns beside it where the step adds to them.
    """

    made: pa.RecordBatch
    row: Int64s
    child: Int64s

    @classmethod
    def of(cls, ran: Ran, rows: Int64s) -> Outputs:
        """The outputs of these rows."""
        return cls(ran.outputs, rows[ran.owner], child_numbers(ran.owner) if ran.child is None else ran.child)

    def take(self, chosen: Int64s) -> Outputs:
        """Some of them."""
        return Outputs(take_rows(self.made, chosen), self.row[chosen], self.child[chosen])

    def in_order(self, arranged: Arrangement) -> Outputs:
        """The same in the total order of their rows; those of one row are in order already."""
        if arranged.past is None and len(self.row) == len(arranged.order) and not self.child.any():  # one for each row
            return Outputs(put_rows(self.made, self.row), np.arange(len(self.row)), self.child)
        return self.take(order_by(arranged.rank[self.row]))

    def rows(self, arranged: Arrangement, *, adds: bool) -> pa.RecordBatch:
        """The outputs as rows."""
        if not adds:
            return self.made
        own = users_columns(arranged.rows)
        as_they_are = len(self.row) == own.num_rows and bool((self.row[1:] > self.row[:-1]).all())
        return beside(own if as_they_are else take_rows(own, self.row), self.made)


class Difference(NamedTuple):
    """What stood and stands no more, and what stands now and did not."""

    void: Outputs | None
    given: Outputs


def compare(
    arranged: Arrangement, ran: Ran, before: Ran | None, same: Int64s | None = None, *, adds: bool
) -> Difference:
    """The difference between two runs, in the total order.

    same: for each row, the first place that has its position. adds: the step adds to rows, each has one output.
    """
    if before is None and adds:
        none = np.zeros(len(ran.owner), dtype=np.int64)
        return Difference(None, Outputs(ran.outputs, arranged.order[arranged.run_places], none).in_order(arranged))
    new = Outputs.of(ran, arranged.order[arranged.run_places])
    if before is None:
        return Difference(None, new.in_order(arranged))
    old = Outputs.of(before, arranged.order[arranged.old_places])
    place = inverse(arranged.order) if same is None else same
    stays_old, stays_new = _alike(arranged, old, new, place, adds=adds and same is not None)
    void, given = old.take(np.flatnonzero(~stays_old)), new.take(np.flatnonzero(~stays_new))
    return Difference(void.in_order(arranged), given.in_order(arranged))


def _alike(arranged: Arrangement, old: Outputs, new: Outputs, place: Int64s, *, adds: bool) -> tuple[Bools, Bools]:
    """Which outputs of each run the other one has at the same place; adds: rows at one place may differ too."""
    stays_old, stays_new = (np.zeros(len(each.row), dtype=np.bool_) for each in (old, new))
    if len(old.row) == 0 or len(new.row) == 0:
        return stays_old, stays_new
    old_child, new_child, most = _counted(old.child, new.child)
    codes = place[new.row] * most + new_child  # rising: rows are run in their order
    wanted = place[old.row] * most + old_child
    at = np.minimum(np.searchsorted(codes, wanted), len(codes) - 1)
    hit = np.flatnonzero(codes[at] == wanted)
    one, other = (each.rows(arranged, adds=adds) for each in (old.take(hit), new.take(at[hit])))
    same = hit[equal_rows(one, other)]
    stays_old[same], stays_new[at[same]] = True, True
    return stays_old, stays_new


def _counted(old: Int64s, new: Int64s) -> tuple[Int64s, Int64s, int]:
    """Numbers of children from zero on, and how many there may be; large ones are counted anew."""
    most = int(max(old.max(), new.max())) + 1
    if most <= _MANY:
        return old, new, most
    known, number = np.unique(np.concatenate([old, new]), return_inverse=True)
    return number[: len(old)], number[len(old) :], len(known)


class Restated(NamedTuple):
    """Stored rows that were run again, by number, and the states before each, now and then."""

    rows: Int64s
    now: pa.RecordBatch
    then: pa.RecordBatch

    def take(self, chosen: Int64s) -> Restated:
        """Some of them."""
        return Restated(self.rows[chosen], take_rows(self.now, chosen), take_rows(self.then, chosen))


def states_again(arranged: Arrangement, ran: Ran, wanted: Int64s, before: Ran) -> Restated:
    """The states before stored rows that were run again."""
    row = arranged.order[arranged.run_places[wanted]]
    is_old = np.flatnonzero(row < arranged.stored)
    old_row = arranged.order[arranged.old_places]
    at = np.empty(arranged.stored, dtype=np.int64)
    at[old_row] = np.arange(len(old_row))
    return Restated(row[is_old], take_rows(ran.before, is_old), take_rows(before.before, at[row[is_old]]))
