"""The machine of time travel: a live instance of the application, what is held around holes, and replays.

Per key it holds the recent events (as far back as the application looks), and of older ones those that lie near a hole:
its context. An event that is on time goes to the live instance; a late one that falls into a hole joins the contexts.
It goes to the live instance too, and counts in windows that are open; where it misses some, its replay is pending. A
replay gives anew all results that the late event touches.

Invariants
1. The live instance sees each event once: those on time in order, a late one where its first windows are open.
2. Whatever a late event within the bound needs for its replay is held: recent, in a context, or late itself.
3. What happens depends on ticks, not on micro-batches.

Paper: TinTiN, section 6.5, Algorithm 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from latecomer.chunks import ChunkStore
from latecomer.codec import widened
from latecomer.contract import Machine, check_held
from latecomer.events import FOREVER_US, NEVER_US, Bools, EventBatch, Int64s, Layout, sort_times, take_rows
from latecomer.outputs import Output, Pane, late, refused, revisable
from latecomer.progress import Timeline
from latecomer.runs import StoredRuns
from latecomer.timetravel.comparison import Changes, Comparison, Standing, compare, repeat, standing_results
from latecomer.timetravel.contexts import Contexts, unite_contexts
from latecomer.timetravel.final_results import Finality, live_moments, replay_moments
from latecomer.timetravel.firing import fire
from latecomer.timetravel.key_history import Accepted, KeyHistory, MicroBatch, follow_events
from latecomer.timetravel.key_rows import Buckets, distinct
from latecomer.timetravel.live import LiveInstance
from latecomer.timetravel.pending import Pending, pending_replays, still_pending
from latecomer.timetravel.replay import Replica, Results, held_events
from latecomer.timetravel.state import State, Stored
from latecomer.timetravel.tables import LATE, RECENT, ROLE, Tables, buckets_of
from latecomer.timetravel.ticks import Ticks
from latecomer.windows.operators import Behind

if TYPE_CHECKING:
    from latecomer.timetravel.settings import TimeTravel

LIVE, STATE, WAITING = range(3)
NO_HOLE = "no_hole"

_END_TICK = FOREVER_US - 1


class Arrived(NamedTuple):
    """The events of a micro-batch, sorted; of those on time the ticks in which it is their turn."""

    on_time: EventBatch | None = None
    turn: Int64s = np.zeros(0, dtype=np.int64)
    late: EventBatch | None = None


class TimeTraveller(Machine):
    """Runs TimeTravel settings."""

    def __init__(self, settings: TimeTravel, store: ChunkStore, layout: Layout) -> None:
        super().__init__(store, layout)
        self._settings, self._reach = settings, settings.reach
        self._start = settings.operator.layout_after(layout).time
        self._live = LiveInstance(settings, store.part(LIVE, 3), layout)
        self._state = State(store.part(STATE, 3), settings, layout.time, self._start)
        self._waiting = store.part(WAITING, 3)

    @property
    def held(self) -> int:
        """Events held: those that wait, recent ones, contexts and late ones; not what live holds of its windows."""
        return self._state.events + self._waiting.rows

    def punctuation(self, timeline: Timeline) -> int:
        return self._settings.punctuation(timeline)

    def push(self, batch: EventBatch, timeline: Timeline) -> Iterator[Output]:
        batch, delayed = EventBatch(widened(batch.rows), batch.layout), self._settings.delayed(timeline)
        punctuation_us, mark_us = delayed.punctuation_before(batch.tick, 1), timeline.mark_before(batch.tick)
        too_late = (punctuation_us == FOREVER_US) | (batch.ts_us < mark_us - self._settings.bound_us)
        if too_late.any():
            yield from refused(batch, too_late, punctuation_us, timeline)
        behind = (batch.ts_us <= punctuation_us) & ~too_late
        on_time = self._in_turn(batch.filter(~behind & ~too_late).sorted(), delayed)
        yield from self._run(on_time._replace(late=batch.filter(behind).sorted()), delayed, ending=False)
        if timeline.punctuation(1) == FOREVER_US:  # all sources have ended: nothing can be repaired any more
            yield from self.finish()
        check_held(self.held, self._settings.max_held)

    def finish(self) -> Iterator[Output]:
        timeline = end_of_stream(self._state.mark_us)
        yield from self._run(self._in_turn(None, timeline), timeline, ending=True)
        self._state.clear()

    def _in_turn(self, arrived: EventBatch | None, timeline: Timeline) -> Arrived:
        """The events on time whose turn it is: at once, or where they wait, in the tick in which they have waited."""
        if not self._settings.wait_us:
            return Arrived() if arrived is None else Arrived(arrived, arrived.tick)
        punctuations_us = timeline.punctuations(1)
        on_time = StoredRuns(self._waiting, self.layout).release(arrived, int(punctuations_us[-1]))
        if on_time is None:
            return Arrived()
        return Arrived(on_time, timeline.tick[np.searchsorted(punctuations_us, on_time.ts_us)])

    def _run(self, arrived: Arrived, timeline: Timeline, *, ending: bool) -> Iterator[Output]:
        """A micro-batch, from the state before it to the state after it."""
        settings, reach = self._settings, self._reach
        stored, batch = self._load(arrived, timeline, ending=ending)

        history = follow_events(batch)
        yield from no_hole_output(history.refused, timeline, settings.wait_us)
        given = self._run_live(arrived.on_time, history.accepted, timeline)
        spoke, silent = by_touch(given, stored.touched, self.layout.key, ending=ending)
        batch.tables.add("live", spoke)
        history = history.with_keys(batch.tables.count)

        pending, pending_rows = pending_replays(batch, history.accepted)
        ticks = Ticks(timeline, reach.wait_us, history.arrival_tick)
        firing = fire(settings, pending, history.on_time, ticks, ending=ending)
        contexts = unite_contexts(firing, pending, reach.us)
        results = self._replay(batch, history, contexts)

        finality = Finality(batch, history, ticks)
        yield from self._live_output(batch.tables, finality, ticks, pending)
        yield from self._silent_output(silent, timeline, ticks)
        comparison = self._compare(batch.tables, contexts, results)
        changes = repeat(contexts, results) if comparison is None else comparison.changes
        yield from self._replay_output(changes, contexts, finality)

        pending, pending_rows = still_pending(pending, pending_rows, firing.pending, firing.high_us)
        if comparison is not None:
            self._save_results(stored, comparison, finality, pending, batch.tables.buckets)
        self._state.save_history(batch, history, stored.holes)
        self._state.save_pending(pending, pending_rows, batch.tables.buckets)
        self._state.put(stored.touched)

    def _run_live(
        self, on_time: EventBatch | None, accepted: Accepted | None, timeline: Timeline
    ) -> pa.RecordBatch | None:
        """What the live instance gives for events that are on time and for late ones that were accepted."""
        late = None
        if accepted is not None and len(accepted.events):
            events = accepted.events.take(sort_times(accepted.events.ts_us)[1])
            late = Behind(events.user_rows, timeline.punctuation_before(events.tick, 1))
        rows = None if on_time is None or len(on_time) == 0 else on_time.user_rows
        return self._live.run(rows, late, timeline.punctuation(1))

    def _load(self, arrived: Arrived, timeline: Timeline, *, ending: bool) -> tuple[Stored, MicroBatch]:
        """Read what the micro-batch needs of the state, and number the keys of all its tables."""
        late_us = np.zeros(0, dtype=np.int64) if arrived.late is None else arrived.late.ts_us
        rows = [events.rows for events in (arrived.on_time, arrived.late) if events is not None]
        came = [buckets_of(each, self.layout.key) for each in rows] or [np.zeros(0, dtype=np.uint32)]
        clock_us = max(int(timeline.mark_us[-1]), min(timeline.punctuation(1), FOREVER_US - 1) + 1)
        touched = self._state.touched(np.concatenate(came), FOREVER_US if ending else clock_us)
        stored = self._state.load(touched, late_us, int(timeline.punctuations(1)[0]))
        return stored, self._batch(stored, arrived, timeline)

    def _batch(
        self, stored: Stored, arrived: Arrived, timeline: Timeline, live: pa.RecordBatch | None = None
    ) -> MicroBatch:
        """Tables of what is stored, what has arrived, and what live gave."""
        turn, late = np.argsort(arrived.turn, kind="stable"), arrived.late
        tables = {
            "recent": stored.recent,
            "on_time": with_role(arrived.on_time, turn, RECENT),
            "late": None if late is None else with_role(late, np.argsort(late.tick, kind="stable"), LATE),
            "pending": stored.pending,
            "long_holes": stored.long_holes,
            "young_results": stored.young_results,
            "contexts": stored.contexts.rows,
            "holes": stored.holes.rows,
            "results": stored.results.rows,
            "live": live,
        }
        numbered = Tables(tables, self.layout.key)
        return MicroBatch(numbered, arrived.turn[turn], timeline, self.layout, self._settings)

    def _replay(self, batch: MicroBatch, history: KeyHistory, contexts: Contexts) -> Results | None:
        """What the application makes of the contexts; None if nothing."""
        if len(contexts) == 0:
            return None
        replica = Replica(self._settings.operator, self.layout, self._reach, shifted=self._settings.shifted)
        return replica.run(contexts, held_events(batch, history.accepted, contexts.key))

    def _live_output(self, tables: Tables, finality: Finality, ticks: Ticks, pending: Pending) -> Iterator[Output]:
        """What the live instance gave."""
        rows, key, start_us = tables.get("live"), tables.key("live"), tables.column("live", self._start)
        if rows is None:
            return
        final = finality.final(key, start_us, live_moments(ticks.complete(start_us), ticks))
        final &= ~finality.lacks_late(key, start_us, pending)
        yield from result_outputs(rows, None, Pane.ON_TIME, final)

    def _silent_output(self, rows: pa.RecordBatch | None, timeline: Timeline, ticks: Ticks) -> Iterator[Output]:
        """What the live instance gave of keys that the micro-batch does not touch; what may change of it is stored."""
        if rows is None:
            return
        buckets = distinct(buckets_of(rows, self.layout.key))
        batch = self._batch(self._state.look(buckets, int(timeline.punctuations(1)[0])), Arrived(), timeline, rows)
        pending, _ = pending_replays(batch, None)
        finality = Finality(batch, follow_events(batch), ticks)
        yield from self._live_output(batch.tables, finality, ticks, pending)
        if self._settings.retract:
            standing = Standing(rows, batch.tables.key("live"), batch.tables.column("live", self._start))
            may_change, young = finality.after_batch(standing.key, standing.start_us, pending)
            chosen = np.flatnonzero(may_change)
            self._state.add_results(standing.take(chosen), batch.tables.buckets, young[chosen])

    def _compare(self, tables: Tables, contexts: Contexts, results: Results | None) -> Comparison | None:
        """Replays against the results that stand; None if there is nothing, or nothing is to be voided."""
        if not self._settings.retract:
            return None
        return compare(standing_results(tables, self._start), contexts, results)

    def _replay_output(self, changes: Changes | None, contexts: Contexts, finality: Finality) -> Iterator[Output]:
        """What replays change."""
        if changes is not None and len(changes.context):
            results, context, change = changes
            final = finality.final(results.key, results.start_us, replay_moments(contexts, context))
            yield from result_outputs(results.rows, change, Pane.REVISED, final)

    def _save_results(
        self, stored: Stored, comparison: Comparison, finality: Finality, pending: Pending, buckets: Buckets
    ) -> None:
        """Store the results that stand and may change; those that were loaded come first among them."""
        self._state.count_duplicates(comparison.duplicates)
        standing, loaded = comparison.standing, stored.results.rows
        may_change, young = finality.after_batch(standing.key, standing.start_us, pending)
        stands = comparison.stands[: 0 if loaded is None else loaded.num_rows]
        old = int(stands.sum())
        gone = ~stands
        gone[np.flatnonzero(stands)] |= ~may_change[:old]
        may_change[:old] = False
        chosen = np.flatnonzero(may_change)
        self._state.save_results(stored.results, gone)
        self._state.add_results(standing.take(chosen), buckets, young[chosen])


def end_of_stream(mark_us: int) -> Timeline:
    """The stream is over: nothing comes any more."""
    tick, mark = np.array([NEVER_US, _END_TICK]), np.array([mark_us, mark_us])
    return Timeline(tick, mark, np.array([NEVER_US, FOREVER_US]))


def no_hole_output(events: EventBatch | None, timeline: Timeline, wait_us: int) -> Iterator[Output]:
    """Late events that fall into no hole, for the lane `late`; the timeline is so much behind the stream's own."""
    if events is not None and len(events):
        aside = events.sorted()
        yield late(aside, timeline.mark_before(aside.tick) + wait_us - aside.ts_us, NO_HOLE)


def by_touch(
    given: pa.RecordBatch | None, touched: Buckets, key: tuple[str, ...], *, ending: bool
) -> tuple[pa.RecordBatch | None, pa.RecordBatch | None]:
    """What live gave of keys in the buckets that a micro-batch touches, and the rest; at the end it touches all."""
    if given is None or given.num_rows == 0 or ending:
        return given, None
    spoke = np.isin(buckets_of(given, key), touched)
    if spoke.all():
        return given, None
    silent = take_rows(given, np.flatnonzero(~spoke))
    return (take_rows(given, np.flatnonzero(spoke)) if spoke.any() else None), silent


def result_outputs(
    rows: pa.RecordBatch, change: npt.NDArray[np.int8] | None, pane: Pane, final: Bools
) -> Iterator[Output]:
    """Results, those that are final after the others: of one key and time, they come last."""
    for chosen, is_final in ((~final, False), (final, True)):
        if chosen.any():
            places = np.flatnonzero(chosen)
            some = rows if chosen.all() else take_rows(rows, places)
            yield revisable(some, 1 if change is None else pa.array(change[places]), pane, is_final)


def with_role(events: EventBatch | None, order: Int64s, role: int) -> pa.RecordBatch | None:
    """Events in the order of processing, tick by tick, with why they are stored."""
    if events is None:
        return None
    rows = events.rows if bool((np.diff(order) == 1).all()) else take_rows(events.rows, order)
    return rows.append_column(ROLE, pa.array(np.full(len(events), role, dtype=np.int8)))
