"""The machine of optimistic processing: results at once, and what a late row voids is taken back.

A micro-batch is run as a whole. Rows that follow the last one of their key go on from the key's last state. Where a row
is late its key is run again from there on: what the rows after it gave before is compared with what they give now, and
the difference is given, first what is void, then what is new.

Invariants
1. After each micro-batch the changes so far add up to what the step gives for all rows so far, in order.
2. Changes are net: in a micro-batch nothing is voided that was given in it.
3. Too late is a row that the punctuation before its tick has passed.
4. Behind the barrier every row comes once, when nothing can change it any more, in the total order.

Paper: Optimistic processing (Kuralenok et al.), section V.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from latecomer.chunks import ChunkStore
from latecomer.codec import widened
from latecomer.contract import Machine, check_held
from latecomer.errors import StateError, must
from latecomer.events import (
    EVENT_CHANGE,
    FOREVER_US,
    NEVER_US,
    Bools,
    EventBatch,
    Int64s,
    Layout,
    equal_rows,
    int64_view,
    take_rows,
    users_columns,
)
from latecomer.optimistic.arrangement import STATED, Arrangement, last_times
from latecomer.optimistic.batch_keys import BatchKeys
from latecomer.optimistic.changes import Outputs, Restated, compare, states_again
from latecomer.optimistic.final_rows import RunRows, in_total_order, run_stored
from latecomer.optimistic.history import History, Past
from latecomer.optimistic.keeping import last_states, plan_keeping, store_rows, wanted_states
from latecomer.optimistic.key_states import GROUPS, LAST, KeyStates
from latecomer.optimistic.positions import HASH, as_events, first_of_position, with_hash
from latecomer.optimistic.quarantine import quarantined
from latecomer.optimistic.repetition import GIVEN, check_before, given_by_row, with_given
from latecomer.optimistic.retractions import Matched, Waiting, match_retractions
from latecomer.outputs import Lane, Output, Pane, pane_code, refused, revisable
from latecomer.progress import Timeline
from latecomer.windows.forgetting import nulled
from latecomer.windows.key_steps import Ran

if TYPE_CHECKING:
    from latecomer.optimistic.settings import Optimistic

VOIDED, RECOMPUTED = "voided", "recomputed"
_FINAL, _FAILED, _MARK = "final_us", "failed", "mark_us"


class Turn(NamedTuple):
    """How far rows were final before a micro-batch, and how far the punctuation is after it."""

    final_us: int
    passed_us: int

    def ends(self, ts_us: Int64s) -> Bools:
        """Which times become final."""
        return np.asarray((ts_us > self.final_us) & (ts_us <= self.passed_us))


class Optimist(Machine):
    """Runs Optimistic settings."""

    def __init__(self, settings: Optimistic, store: ChunkStore, layout: Layout) -> None:
        hashed = settings.goes_on and not settings.derived
        super().__init__(store, replace(layout, order=(*layout.order, HASH)) if hashed else layout)
        self._settings, self._step = settings, settings.key_step
        self._history = History(store.part(0, 3), layout.time, settings.bound_us)
        self._last, self._waiting = KeyStates(store.part(1, 3)), Waiting(store.part(2, 3), self.layout)
        self._counts = {VOIDED: 0, RECOMPUTED: 0}

    @property
    def held(self) -> int:
        """How many rows may still get a late one before them, and retractions wait; not the last states of keys."""
        return self._history.rows + self._waiting.rows

    def counters(self) -> dict[str, int]:
        return self._counts

    def punctuation(self, timeline: Timeline) -> int:
        return timeline.punctuation(self._settings.wait_us)

    def passed(self, timeline: Timeline) -> Int64s:
        return timeline.punctuations(self._settings.wait_us)

    def push(self, batch: EventBatch, timeline: Timeline) -> Iterator[Output]:
        self._counts = {VOIDED: 0, RECOMPUTED: 0}
        passed_us = self.passed(timeline)
        if not self._settings.derived:
            before_us = timeline.before(batch.tick, passed_us)
            too_late = batch.ts_us <= before_us
            if too_late.any():
                yield from refused(batch, too_late, before_us, timeline)
                batch = batch.filter(~too_late)
        rows = widened(batch.rows)
        if HASH in self.layout.order:
            rows = with_hash(rows, users_columns(rows).schema.names)
        batch = EventBatch(rows, self.layout).sorted()
        turn = Turn(self.store.notes.get(_FINAL, NEVER_US), int(passed_us[-1]))
        final = (yield from self._run(batch, turn)) if len(batch) else self._final_stored(None, turn)
        yield from self._finish(final, turn, int(timeline.mark_us[-1]))
        check_held(self.held, self._settings.max_held)

    def finish(self) -> Iterator[Output]:
        turn = Turn(self.store.notes.get(_FINAL, NEVER_US), FOREVER_US)
        yield from self._finish(self._final_stored(None, turn), turn, self.store.notes.get(_MARK, NEVER_US))

    def _run(self, batch: EventBatch, turn: Turn) -> Generator[Output, None, list[RunRows]]:
        """Put rows where they belong, run what follows them, give what changes; returns what has become final."""
        arranged = self._arranged(batch)
        if len(arranged.order) == 0:
            self._last.put(arranged.last)
            return self._final_stored(None, turn)
        from_us = self._history.held_from(turn.passed_us)
        keeping = plan_keeping(arranged, self._history, from_us, self._step.every)
        wanted = wanted_states(arranged, keeping)
        ran = self._step.run(arranged.work(self._step, arranged.run_places, arranged.begin.state, wanted), self.layout)
        before = self._ran_before(arranged)
        yield from self._changes(arranged, ran, before, turn.passed_us)
        final = [*self._final_run(arranged, ran, before, turn), *self._final_stored(arranged, turn)]
        given = given_by_row(arranged, ran) if self._step.checked else None
        if before is not None:
            self._restate(arranged, states_again(arranged, ran, wanted, before), given)
        stored = arranged if given is None else with_given(arranged, given)
        store_rows(stored, ran, wanted, keeping, self._history)
        self._last.put(last_states(arranged, ran))
        return final

    def _arranged(self, batch: EventBatch) -> Arrangement:
        """The rows among those that are stored."""
        states = self._step.state(batch.user_rows.schema, self.layout)
        keys = BatchKeys.of(batch)
        fields = [*(batch.rows.schema.field(name) for name in self.layout.key), pa.field(LAST, pa.int64()), *states]
        last = self._last.take(keys.groups, pa.schema(fields))
        last_keys = keys.with_last(last)
        last_us = last_times(last, last_keys.number, len(last_keys.group))
        past = self._load(batch, keys, last_us[: len(keys.group)])
        matched = self._match(batch, past)
        if past is None and len(matched.batch) == len(batch):
            return Arrangement.of_new(matched.batch, keys, last, last_keys, states)
        return Arrangement.of(matched.batch, past, matched.gone, last, states)

    def _load(self, batch: EventBatch, keys: BatchKeys, last_us: Int64s) -> Past | None:
        """What is stored of the groups of rows that come behind the last of their key, or take others back."""
        retracts = batch.change < 0
        if not retracts.any() and (batch.ts_us[keys.rows.firsts] > last_us).all():
            return None
        touching = retracts | (batch.ts_us <= keys.rows.spread(last_us))
        from_us = np.full(GROUPS, FOREVER_US)
        np.minimum.at(from_us, keys.rows.spread(keys.group)[touching], batch.ts_us[touching])
        late_group = np.flatnonzero(from_us < FOREVER_US)
        return self._history.load(late_group, from_us[late_group])

    def _match(self, batch: EventBatch, past: Past | None) -> Matched:
        """Let retractions void rows; those that find none wait."""
        stored = 0 if past is None else past.rows.num_rows
        waiting = self._waiting.take()
        if waiting is None and not (batch.change < 0).any():
            return Matched(batch.without(EVENT_CHANGE), np.zeros(stored, dtype=np.bool_), None)
        matched = match_retractions(batch, past, waiting, same_tick=self._settings.derived)
        self._waiting.put(matched.waiting)
        return matched

    def _ran_before(self, arranged: Arrangement) -> Ran | None:
        """What the stored rows that are run again gave before."""
        places = arranged.old_places
        if len(places) == 0:
            return None
        work = arranged.work(self._step, places, arranged.begin.old_state, np.arange(len(places)))
        before = self._step.run(work, self.layout)
        check_before(self._step, arranged, before)
        return before

    def _changes(self, arranged: Arrangement, ran: Ran, before: Ran | None, passed_us: int) -> Iterator[Output]:
        """What is void, and what is new."""
        same = first_of_position(arranged) if self._settings.derived and arranged.gone.any() else None
        difference = compare(arranged, ran, before, same, adds=self._step.adds)
        if difference.void is not None and len(difference.void.row):
            self._counts[VOIDED] += len(difference.void.row)
            yield self._output(arranged, difference.void, -1, passed_us)
        if len(difference.given.row):
            yield self._output(arranged, difference.given, 1, passed_us)

    def _output(self, arranged: Arrangement, outputs: Outputs, change: int, passed_us: int) -> Output:
        """Outputs with what they change."""
        if self._settings.goes_on:
            first = not self._settings.derived
            return Output(Lane.RESULTS, as_events(arranged, outputs, change, adds=self._step.adds, first=first))
        rows = outputs.rows(arranged, adds=self._step.adds)
        final = self._are_final(rows, passed_us)
        panes = np.where(final, np.int8(pane_code(Pane.ON_TIME)), np.int8(pane_code(Pane.EARLY)))
        if arranged.past is not None:
            panes[outputs.row < arranged.stored] = pane_code(Pane.REVISED)
        return revisable(rows, change, panes, pa.array(final))

    def _are_final(self, outputs: pa.RecordBatch, passed_us: int) -> Bools:
        """Which outputs cannot change any more."""
        return np.asarray(int64_view(outputs.column(self.layout.time)) <= passed_us)

    def _restate(self, arranged: Arrangement, again: Restated, given: Int64s | None) -> None:
        """Store what has changed before and of stored rows, and no longer what is void."""
        past, states = arranged.past, again.now
        assert past is not None
        differs = ~equal_rows(again.now, again.then)
        changed = again.take(np.flatnonzero(differs))
        ts_us = arranged.ts_us[changed.rows]
        in_force = [self._step.in_force(each, ts_us) for each in (changed.now, changed.then)]
        self._counts[RECOMPUTED] += int((~equal_rows(*in_force)).sum())
        if STATED in past.rows.schema.names:
            stated = past.rows.column(STATED).to_numpy(zero_copy_only=False)[again.rows]
            lost = arranged.lost_a_row[again.rows]  # what follows a void row in its chunk may need a state now
            differs, stated = (differs & stated) | lost, stated | lost
            states = nulled(states, ~stated).append_column(STATED, pa.array(stated))
        if given is not None:
            differs |= given[again.rows] != int64_view(past.rows.column(GIVEN))[again.rows]
            states = states.append_column(GIVEN, pa.array(given[again.rows]))
        chosen = np.flatnonzero(differs)
        gone = np.flatnonzero(arranged.gone[: arranged.stored])
        self._history.change(past, again.rows[chosen], take_rows(states, chosen), gone)

    def _final_run(self, arranged: Arrangement, ran: Ran, before: Ran | None, turn: Turn) -> list[RunRows]:
        """The rows that were run, some of them final; counts those for which a function raised and that are not."""
        row = arranged.order[arranged.run_places]
        ts_us = arranged.ts_us
        failed = int((ts_us[row[ran.skipped]] > turn.passed_us).sum())
        if before is not None:
            failed -= int((ts_us[arranged.order[arranged.old_places[before.skipped]]] > turn.final_us).sum())
        self.store.notes[_FAILED] = self.store.notes.get(_FAILED, 0) + failed
        if not self._settings.barrier and len(ran.skipped) == 0:
            return []
        return [RunRows(take_rows(arranged.rows, row), ran, turn.ends(ts_us[row]), self._step.adds)]

    def _final_stored(self, arranged: Arrangement | None, turn: Turn) -> list[RunRows]:
        """The stored rows that are final and were not run, run again; nothing where nobody wants to know."""
        if turn.passed_us <= turn.final_us or not (self._settings.barrier or self.store.notes.get(_FAILED, 0)):
            return []
        past = self._history.between(turn.final_us, turn.passed_us)
        if past is None:
            return []
        meant = turn.ends(int64_view(past.rows.column(self.layout.time)))
        if arranged is not None and arranged.past is not None:
            row = arranged.order[arranged.run_places]
            changed = np.append(row[row < arranged.stored], np.flatnonzero(arranged.gone))
            meant &= ~np.isin(past.names, arranged.past.names[changed])
        found = run_stored(self._step, past, meant, self.layout)
        self.store.notes[_FAILED] = self.store.notes.get(_FAILED, 0) - found.skipped
        return [found]

    def _finish(self, final: list[RunRows], turn: Turn, mark_us: int) -> Iterator[Output]:
        """What a punctuation makes final: rows behind the barrier, rows that no late one can cure, lost retractions."""
        for part in final:
            yield from quarantined(part, derived=self._settings.derived)
        rows = in_total_order(final, self.layout) if final and self._settings.barrier else None
        if rows is not None:
            yield revisable(rows, None, Pane.ON_TIME, final=True)
        if self._settings.derived and self._waiting.rows:
            rule, advice = "find the row of every retraction in its own micro-batch", "please report it, with the query"
            raise StateError(must("a later step", rule, f"{self._waiting.rows} that wait", advice))
        yield from self._waiting.unmatched(turn.passed_us, mark_us)
        self.store.notes.update({_FINAL: max(turn), _MARK: mark_us})
        self._expire(turn.passed_us)

    def _expire(self, passed_us: int) -> None:
        self._history.expire(passed_us)
        forget_us = self._settings.forget_us
        if passed_us == FOREVER_US:
            self._last.forget(FOREVER_US)
        elif forget_us is not None and passed_us > NEVER_US:
            self._last.forget(passed_us - forget_us + 2)
