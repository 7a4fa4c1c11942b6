"""What a micro-batch changes: what stored rows gave before, compared with what they give now, bit for bit."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from latecomer.events import Bools, Int64s, equal_rows, order_by, put_rows, take_rows, users_columns
from latecomer.optimistic.arrangement import Arrangement
from latecomer.windows.key_steps import Ran, beside


class Outputs(NamedTuple):
    """Outputs of a run: the number of the row that each comes from, and its number among the outputs of that row.

    made: what the step has made; `rows` has the rows' own columns beside it where the step adds to them.
    """

    made: pa.RecordBatch
    row: Int64s
    child: Int64s

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


def child_numbers(owner: Int64s) -> Int64s:
    """For outputs of one owner after the other, the number of each among those of its owner."""
    first = np.flatnonzero(np.append(True, owner[1:] != owner[:-1])) if len(owner) else owner
    sizes = np.diff(first, append=len(owner))
    return np.arange(len(owner)) - np.repeat(first, sizes)


class Difference(NamedTuple):
    """What stood and stands no more, and what stands now and did not."""

    void: Outputs | None
    given: Outputs


def compare(arranged: Arrangement, ran: Ran, before: Ran | None, *, adds: bool) -> Difference:
    """The difference between two runs, in the total order; adds: each row has one output."""
    if before is None and adds:
        none = np.zeros(len(ran.owner), dtype=np.int64)
        return Difference(None, Outputs(ran.outputs, arranged.order[arranged.run_places], none).in_order(arranged))
    new_place = arranged.run_places[ran.owner]
    new = Outputs(ran.outputs, arranged.order[new_place], child_numbers(new_place))
    if before is None:
        return Difference(None, new.in_order(arranged))
    old_place = arranged.old_places[before.owner]
    old = Outputs(before.outputs, arranged.order[old_place], child_numbers(old_place))
    stays_old, stays_new = _alike(old, old_place, new, new_place)
    void, given = old.take(np.flatnonzero(~stays_old)), new.take(np.flatnonzero(~stays_new))
    return Difference(void.in_order(arranged), given.in_order(arranged))


def _alike(old: Outputs, old_place: Int64s, new: Outputs, new_place: Int64s) -> tuple[Bools, Bools]:
    """Which outputs of each run the other one has at the same place in the order."""
    stays_old, stays_new = (np.zeros(len(each), dtype=np.bool_) for each in (old_place, new_place))
    if len(old_place) == 0 or len(new_place) == 0:
        return stays_old, stays_new
    most = int(max(old.child.max(), new.child.max())) + 1
    codes = new_place * most + new.child  # rising: rows are run in their order
    wanted = old_place * most + old.child
    at = np.minimum(np.searchsorted(codes, wanted), len(codes) - 1)
    hit = np.flatnonzero(codes[at] == wanted)
    same = hit[equal_rows(take_rows(old.made, hit), take_rows(new.made, at[hit]))]
    stays_old[same], stays_new[at[same]] = True, True
    return stays_old, stays_new


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
