"""Groups that are undone: a short one stands until its key has a next row, so at most that of the key's last row does.

A run gives the short group of a key's last row, and no other one. What it does not say is what became of the row before
its first one: where the key had ended there, that row's short group stood, and is void now; where all rows after it
were taken back, it stands again. Both are known from the state after that row, which is the group itself.

A short group is final when nothing can follow it: at the end of the stream.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from latecomer.chunks import ChunkStore
from latecomer.events import FOREVER_US, Bools, Layout, concat_rows, int64_view, sort_times, take_rows
from latecomer.optimistic.arrangement import Arrangement
from latecomer.optimistic.final_rows import RunRows
from latecomer.optimistic.machine import VOIDED, Optimist, Turn
from latecomer.outputs import Lane, Output, Pane, changes_of, revisable
from latecomer.windows.key_steps import Ran
from latecomer.windows.row_groups import Group

if TYPE_CHECKING:
    from latecomer.optimistic.settings import Optimistic


class UndoingOptimist(Optimist):
    """Runs groups that are undone."""

    def __init__(self, settings: Optimistic, store: ChunkStore, layout: Layout) -> None:
        super().__init__(settings, store, layout)
        assert isinstance(settings.step, Group)
        self._group = settings.step

    def _are_final(self, outputs: pa.RecordBatch, passed_us: int) -> Bools:
        final = super()._are_final(outputs, passed_us)
        return final if passed_us == FOREVER_US else final & ~self._group.short(outputs)

    def _changes(self, arranged: Arrangement, ran: Ran, before: Ran | None, passed_us: int) -> Iterator[Output]:
        outputs = [output.rows for output in super()._changes(arranged, ran, before, passed_us)]
        void, again = self._short_before(arranged)
        self._counts[VOIDED] += void.num_rows
        for change, rows in ((-1, void), (1, again)):
            final = pa.array(self._are_final(rows, passed_us))
            short = [revisable(rows, change, Pane.REVISED, final).rows] if rows.num_rows else []
            yield from self._in_order([*short, *(each for each in outputs if changes_of(each)[0] == change)])

    def _short_before(self, arranged: Arrangement) -> tuple[pa.RecordBatch, pa.RecordBatch]:
        """Short groups of the rows just before those that are run: which are void now, and which stand again."""
        had_next, has_next = arranged.begin.old < FOREVER_US, np.zeros(len(arranged.starts), dtype=np.bool_)
        has_next[arranged.segment[arranged.run_places]] = True
        void, again = (np.flatnonzero(each) for each in (~had_next & has_next, had_next & ~has_next))
        found = (take_rows(arranged.states, arranged.begin.state[chosen]) for chosen in (void, again))
        one, other = (self._group.standing(states, self.layout) for states in found)
        return one, other

    def _finish(self, final: list[RunRows], turn: Turn, mark_us: int) -> Iterator[Output]:
        ends = turn.passed_us == FOREVER_US and self._settings.barrier
        rows = list(self._left()) if ends else []
        for output in super()._finish([self._full(part) for part in final], turn, mark_us):
            if output.lane is Lane.RESULTS:
                rows.append(output.rows)
            else:
                yield output
        yield from self._in_order(rows)

    def _full(self, part: RunRows) -> RunRows:
        """Without the short groups."""
        kept = np.flatnonzero(~self._group.short(part.ran.outputs))
        ran = part.ran._replace(outputs=take_rows(part.ran.outputs, kept), owner=part.ran.owner[kept])
        return part._replace(ran=ran)

    def _left(self) -> Iterator[pa.RecordBatch]:
        """The short groups that stand at the end."""
        for states in self._last.read():
            rows = self._group.standing(states, self.layout)
            if rows.num_rows:
                yield revisable(rows, None, Pane.ON_TIME, final=True).rows

    def _in_order(self, parts: list[pa.RecordBatch]) -> Iterator[Output]:
        """Several parts as one, in order of time; what is at one time stays in its order."""
        if parts:
            rows = concat_rows(parts)
            _, order = sort_times(int64_view(rows.column(self.layout.time)))
            yield Output(Lane.RESULTS, take_rows(rows, order))
