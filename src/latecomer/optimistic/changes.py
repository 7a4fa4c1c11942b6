"""What a micro-batch changes: what stored rows gave before, compared with what they give now, bit for bit."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from latecomer.events import Bools, Int64s, equal_rows, order_by, take_rows
from latecomer.optimistic.arrangement import Arrangement
from latecomer.windows.key_steps import Ran, child_numbers

_MANY = 1 << 20


class Outputs(NamedTuple):
    """Outputs of a run: the place in the order of the row that each comes from, and its number among those."""

    rows: pa.RecordBatch
    place: Int64s
    child: Int64s

    @classmethod
    def of(cls, ran: Ran, places: Int64s) -> Outputs:
        """The outputs of rows at these places."""
        place = places[ran.owner]
        return cls(ran.outputs, place, child_numbers(place) if ran.child is None else ran.child)

    def standing_at(self, same: Int64s | None) -> Outputs:
        """The same at other places."""
        return self if same is None else self._replace(place=same[self.place])

    def take(self, chosen: Int64s) -> Outputs:
        """Some of them."""
        return Outputs(take_rows(self.rows, chosen), self.place[chosen], self.child[chosen])

    def in_order(self, arranged: Arrangement) -> Outputs:
        """The same in the total order of their rows; those of one row are in order already."""
        rank = arranged.rank[arranged.order[self.place]]
        if len(rank) == len(arranged.order) and not self.child.any():  # one for each row: the ranks are all numbers
            positions = np.empty(len(rank), dtype=np.int64)
            positions[rank] = np.arange(len(rank))
            return self.take(positions)
        return self.take(order_by(rank))


class Difference(NamedTuple):
    """What stood and stands no more, and what stands now and did not."""

    void: Outputs | None
    given: Outputs


def compare(arranged: Arrangement, ran: Ran, before: Ran | None, same: Int64s | None = None) -> Difference:
    """The difference between two runs, in the total order; same: for each place, the first that has its position."""
    new = Outputs.of(ran, arranged.run_places)
    if before is None:
        return Difference(None, new.in_order(arranged))
    old = Outputs.of(before, arranged.old_places)
    stays_old, stays_new = _alike(old.standing_at(same), new.standing_at(same))
    void, given = old.take(np.flatnonzero(~stays_old)), new.take(np.flatnonzero(~stays_new))
    return Difference(void.in_order(arranged), given.in_order(arranged))


def _alike(old: Outputs, new: Outputs) -> tuple[Bools, Bools]:
    """Which outputs of each run the other one has at the same place."""
    stays_old, stays_new = (np.zeros(len(each.place), dtype=np.bool_) for each in (old, new))
    if len(old.place) == 0 or len(new.place) == 0:
        return stays_old, stays_new
    old_child, new_child, most = _counted(old.child, new.child)
    codes = new.place * most + new_child  # rising: rows are run in their order
    wanted = old.place * most + old_child
    at = np.minimum(np.searchsorted(codes, wanted), len(codes) - 1)
    hit = np.flatnonzero(codes[at] == wanted)
    same = hit[equal_rows(take_rows(old.rows, hit), take_rows(new.rows, at[hit]))]
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
