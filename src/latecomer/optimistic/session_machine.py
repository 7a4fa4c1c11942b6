"""Sessions that are given at once: a row may begin one, lengthen one, or make one of several, which are all taken back.

A row joins the sessions that are open when it comes and lie no further from it than the gap; one that is near a session
that is final founds another. It is too late when the session that it would found alone is final, and none is open near
it.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from latecomer.chunks import ChunkStore
from latecomer.codec import widened
from latecomer.events import FOREVER_US, EventBatch, Int64s, Layout, order_by, take_rows
from latecomer.optimistic.history import Past
from latecomer.optimistic.key_states import groups_of
from latecomer.optimistic.standing import Touched, WindowsAtOnce
from latecomer.outputs import Output, refused
from latecomer.progress import Timeline
from latecomer.windows import SessionWindow
from latecomer.windows.folding import Folding, state_name
from latecomer.windows.fragments import Came, Fragments, LastTime, Scene, Sessions, session_results, together
from latecomer.windows.grouping import Groups
from latecomer.windows.session_joining import REFUSED

if TYPE_CHECKING:
    from latecomer.optimistic.windows import OptimisticSessions


class SessionsAtOnce(WindowsAtOnce):
    """Gives sessions at once."""

    def __init__(self, settings: OptimisticSessions, window: SessionWindow, store: ChunkStore, layout: Layout) -> None:
        folding = Folding(layout.key, (LastTime(), *settings.aggregates))
        super().__init__(settings, store, layout, folding, state_name(0, 0))
        self._gap_us = window.gap_us

    def _touch(self, batch: EventBatch, timeline: Timeline) -> Generator[Output, None, Touched | None]:
        batch = EventBatch(widened(batch.rows), self.layout).sorted()  # so sums of floats are added in one order
        before_us = timeline.punctuation_before(batch.tick, self._settings.wait_us)
        past = self._near(batch)
        scene = Scene(
            Came(batch.rows, batch.ts_us, batch.tick, [before_us]), [None if past is None else past.rows], self._keys
        )
        known = np.zeros(len(batch), dtype=np.bool_)
        session = scene.joined(0, known, FOREVER_US, self._gap_us, strict=False).session
        too_late = session[: len(batch)] == REFUSED
        if too_late.any():
            yield from refused(batch, too_late, before_us, timeline)
        if too_late.all():
            return None
        return self._joined(batch, np.flatnonzero(~too_late), past, session)

    @property
    def _keys(self) -> tuple[str, ...]:
        return self.layout.key

    def _near(self, batch: EventBatch) -> Past | None:
        """The sessions that may be open and near rows: those of their groups of keys that end after them."""
        group = groups_of(batch.rows, self._keys)
        last_us = np.full(len(batch), FOREVER_US)  # a long session that ends much later may have a row in it
        past = self._standing.load_near(group, batch.ts_us - self._gap_us, last_us)
        if past is None:
            return None
        still_open = np.flatnonzero(self._lasts(past.rows) > self._turn(FOREVER_US).final_us)
        return past.take(still_open)

    def _joined(self, batch: EventBatch, rows: Int64s, past: Past | None, session: Int64s) -> Touched:
        """Sessions that rows join or found, and those that stood instead."""
        order = order_by(session[rows], batch.ts_us[rows])
        number = session[rows][order]
        groups = Groups(order, np.flatnonzero(np.append(True, np.diff(number) != 0)))
        table = self._folding.fold(take_rows(batch.rows, rows), self.layout.time, batch.ts_us[rows], groups)
        parts, numbers = [Fragments(table, rows[groups.firsts])], number[groups.starts]
        old, successor = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        if past is not None:
            held = session[len(batch) :]
            old = np.flatnonzero(np.isin(held, numbers))
            successor = np.searchsorted(numbers, held[old])
            parts.insert(0, Fragments(take_rows(past.rows, old), len(batch) + old))
        fragments = together(parts)
        assert fragments is not None
        now = Sessions.of(fragments, session[fragments.item]).reduced(self._folding).table
        return Touched(past, old, now, groups_of(now, self._keys), successor)

    def _results(self, table: pa.RecordBatch) -> pa.RecordBatch:
        return session_results(self._folding, table, self._gap_us)
