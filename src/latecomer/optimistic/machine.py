"""The machine of optimistic processing: results at once, and what a late row voids is taken back.

A micro-batch is run as a whole. Rows that follow the last one of their key go on from the key's last state. Where a row
is late its key is run again from there on: what the rows after it gave before is compared with what they give now, and
the difference is given, first what is void, then what is new.

Invariants
1. After each micro-batch the changes so far add up to what the step gives for all rows so far, in order.
2. Changes are net: in a micro-batch nothing is voided that was given in it.
3. Too late is a row that the punctuation before its tick has passed.

Paper: Optimistic processing (Kuralenok et al.), section V.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from latecomer.chunks import ChunkStore
from latecomer.codec import widened
from latecomer.contract import Machine, check_held
from latecomer.events import FOREVER_US, NEVER_US, EventBatch, Int64s, Layout, int64_view
from latecomer.optimistic.arrangement import STATED, Arrangement
from latecomer.optimistic.changes import Outputs, changed_states, compare
from latecomer.optimistic.history import History
from latecomer.optimistic.keeping import last_states, plan_keeping, store_rows, wanted_states
from latecomer.optimistic.key_states import LAST, KeyStates, groups_of
from latecomer.outputs import Output, Pane, pane_code, refused, revisable
from latecomer.progress import Timeline
from latecomer.windows.key_steps import Ran

if TYPE_CHECKING:
    from latecomer.optimistic.settings import Optimistic

VOIDED, RECOMPUTED = "voided", "recomputed"


class Optimist(Machine):
    """Runs Optimistic settings."""

    def __init__(self, settings: Optimistic, store: ChunkStore, layout: Layout) -> None:
        super().__init__(store, layout)
        self._settings, self._step = settings, settings.key_step
        self._history = History(store.part(0, 2), layout.time, settings.bound_us)
        self._last = KeyStates(store.part(1, 2))
        self._counts = {VOIDED: 0, RECOMPUTED: 0}

    @property
    def held(self) -> int:
        """How many rows may still get a late one before them; not the last states of keys."""
        return self._history.rows

    def counters(self) -> dict[str, int]:
        return self._counts

    def punctuation(self, timeline: Timeline) -> int:
        return timeline.punctuation(self._settings.bound_us + 1)

    def passed(self, timeline: Timeline) -> Int64s:
        return timeline.punctuations(self._settings.bound_us + 1)

    def push(self, batch: EventBatch, timeline: Timeline) -> Iterator[Output]:
        passed_us = self.passed(timeline)
        before_us = timeline.before(batch.tick, passed_us)
        too_late = batch.ts_us <= before_us
        if too_late.any():
            yield from refused(batch, too_late, before_us, timeline)
            batch = batch.filter(~too_late)
        batch = EventBatch(widened(batch.rows), self.layout).sorted()
        if len(batch):
            yield from self._run(batch, int(passed_us[-1]))
        self._expire(int(passed_us[-1]))
        check_held(self.held, self._settings.max_held)

    def finish(self) -> Iterator[Output]:
        yield from ()
        self._expire(FOREVER_US)

    def _run(self, batch: EventBatch, passed_us: int) -> Iterator[Output]:
        """Put rows where they belong, run what follows them, and give what changes."""
        group, arranged = self._arranged(batch)
        keeping = plan_keeping(arranged, group, self._history, self._history.held_from(passed_us), self._step.every)
        wanted = wanted_states(arranged, keeping)
        ran = self._step.run(arranged.work(arranged.run_places, arranged.begin.state, wanted), self.layout)
        before = self._ran_before(arranged)
        difference = compare(arranged, ran, before)
        if difference.void is not None and len(difference.void.place):
            self._counts[VOIDED] += len(difference.void.place)
            yield self._output(arranged, difference.void, -1, passed_us)
        if len(difference.given.place):
            yield self._output(arranged, difference.given, 1, passed_us)
        if before is not None:
            self._restate(arranged, ran, wanted, before)
        store_rows(arranged, ran, wanted, keeping, self._history)
        self._last.put(last_states(arranged, ran, group))

    def _arranged(self, batch: EventBatch) -> tuple[Int64s, Arrangement]:
        """The groups of the rows' keys, and the rows among those that are stored."""
        states = self._step.state(batch.user_rows.schema, self.layout)
        group = groups_of(batch.rows, self.layout.key)
        fields = [*(batch.rows.schema.field(name) for name in self.layout.key), pa.field(LAST, pa.int64()), *states]
        last = self._last.take(np.unique(group), pa.schema(fields))
        alone = Arrangement.of(batch, None, last, states)
        behind = alone.behind
        if not behind.any():
            return group, alone
        late_group, at = np.unique(group[behind], return_inverse=True)
        from_us = np.full(len(late_group), FOREVER_US)
        np.minimum.at(from_us, at, batch.ts_us[behind])
        return group, Arrangement.of(batch, self._history.load(late_group, from_us), last, states)

    def _ran_before(self, arranged: Arrangement) -> Ran | None:
        """What the stored rows that are run again gave before."""
        places = arranged.old_places
        if len(places) == 0:
            return None
        work = arranged.work(places, arranged.begin.old_state, np.arange(len(places)))
        return self._step.run(work, self.layout)

    def _restate(self, arranged: Arrangement, ran: Ran, wanted: Int64s, before: Ran) -> None:
        """Store the states that have changed before stored rows."""
        assert arranged.past is not None
        changed, states = changed_states(arranged, ran, wanted, before)
        self._counts[RECOMPUTED] += len(changed)
        if STATED in arranged.past.rows.schema.names:
            stated = arranged.past.rows.column(STATED).to_numpy(zero_copy_only=False)[changed]
            changed, states = changed[stated], states.filter(pa.array(stated))
        self._history.restate(arranged.past, changed, states)

    def _output(self, arranged: Arrangement, outputs: Outputs, change: int, passed_us: int) -> Output:
        """Outputs with what they change."""
        final = int64_view(outputs.rows.column(self.layout.time)) <= passed_us
        first = np.where(final, pane_code(Pane.ON_TIME), pane_code(Pane.EARLY)).astype(np.int8)
        revised = arranged.is_old[outputs.place] | (change < 0)
        panes = np.where(revised, pane_code(Pane.REVISED), first).astype(np.int8)
        return revisable(outputs.rows, change, panes, pa.array(final))

    def _expire(self, passed_us: int) -> None:
        self._history.expire(passed_us)
        forget_us = self._settings.forget_us
        if passed_us == FOREVER_US:
            self._last.forget(FOREVER_US)
        elif forget_us is not None and passed_us > NEVER_US:
            self._last.forget(passed_us - forget_us + 2)
