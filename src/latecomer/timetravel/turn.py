"""One turn of time travel: what the events of a micro-batch change in what is kept, and what is replayed for them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from latecomer.events import FOREVER_US, NEVER_US, Bools, EventBatch, Int64s, Layout, concat_rows, take_rows
from latecomer.outputs import LATENESS, Output, Pane, late, revisable
from latecomer.progress import Timeline
from latecomer.timetravel.buckets import Loaded
from latecomer.timetravel.firing import Firing, Ticks, Waiting, fire, times_wanted
from latecomer.timetravel.kept import FIRE, FIRED, LATE, RECENT, ROLE, Kept
from latecomer.timetravel.numbering import Tables
from latecomer.timetravel.past import Past
from latecomer.timetravel.replay import Contexts, Replica, Results, find_stretches, unite
from latecomer.timetravel.revising import Changes, Standing, repeat, revise

if TYPE_CHECKING:
    from latecomer.timetravel.settings import TimeTravel

NO_HOLE = "no_hole"
_END_TICK = FOREVER_US - 1

_ANY_HOLE = -2  # a moment at which no hole is full
_AT_LAST = FOREVER_US - 1  # a moment after all others


class Turn:
    """What one micro-batch does. Made anew for each; what remains is in `kept`."""

    def __init__(self, settings: TimeTravel, layout: Layout, kept: Kept, timeline: Timeline | None) -> None:
        self._settings, self._layout, self._kept = settings, layout, kept
        self._reach, self._ending = settings.reach, timeline is None
        self._timeline = _end_of_time(kept.mark_us) if timeline is None else timeline
        self._time = settings.operator.layout_after(layout).time

    def run(
        self, on_time: EventBatch | None, behind: EventBatch | None, given: pa.RecordBatch | None
    ) -> Iterator[Output]:
        """Follow events that came, in order; replay what is to be replayed; keep what may be needed."""
        tables, loaded = self._load(on_time, behind, given)
        past = Past(self._settings, self._layout, tables, self._timeline)
        yield from self._refused(past)
        waiting, waiting_rows = self._waiting(tables, past)
        ticks = Ticks(self._timeline, self._reach, past.came_tick)
        trigger, bound_us = self._settings.trigger, self._settings.bound_us
        firing, wait_on = fire(trigger, waiting, past.on_time, ticks, bound_us, ending=self._ending)
        contexts = unite(firing, waiting, self._reach.us)
        results = None
        if len(contexts):
            replica = Replica(self._settings.operator, self._layout, self._reach, shifted=self._settings.shifted)
            results = replica.run(contexts, *past.known(contexts.key))
        yield from self._live(tables, past, ticks, waiting)
        still = Waiting._make(column[wait_on] for column in waiting)
        if self._settings.retract:
            yield from self._revised(tables, past, ticks, contexts, results, still, loaded["near"])
        else:
            yield from self._changes(repeat(contexts, results), contexts, past, ticks)
        past.keep(self._kept, loaded)
        self._keep_waiting(waiting_rows, firing, wait_on)

    def _load(
        self, on_time: EventBatch | None, behind: EventBatch | None, given: pa.RecordBatch | None
    ) -> tuple[Tables, dict[str, Loaded]]:
        """The tables of this turn, and which of them were read in part."""
        kept, reach_us = self._kept, self._reach.us
        waiting, undecided = kept.waiting(), kept.undecided()
        points = [_times(waiting, self._layout.time), np.zeros(0, np.int64) if behind is None else behind.ts_us]
        points_us = np.concatenate(points)
        near = kept.near.load(points_us, reach_us, 0)
        near_us = np.concatenate([points_us, _times(undecided, self._time), _times(near.rows, self._time)])
        since_us = int(self._timeline.punctuations(1)[0]) - 2 * reach_us
        loaded = {
            "contexts": kept.contexts.load(points_us, reach_us, reach_us),
            "holes": kept.holes.load(near_us, reach_us, reach_us + kept.width_us, since_us),
            "near": near,
        }
        tables = {
            "recent": kept.recent(),
            "on_time": None if on_time is None else _with_role(on_time, RECENT),
            "late": None if behind is None else _with_role(behind, LATE),
            "waiting": waiting,
            "long": kept.long_holes(),
            "undecided": undecided,
            "given": given,
            **{name: each.rows for name, each in loaded.items()},
        }
        return Tables(tables, self._layout.key), loaded

    def _refused(self, past: Past) -> Iterator[Output]:
        refused = past.refused
        if refused is not None and len(refused):
            aside = refused.sorted()
            yield late(aside, self._timeline.mark_before(aside.tick) - aside.ts_us, NO_HOLE)

    def _waiting(self, tables: Tables, past: Past) -> tuple[Waiting, pa.RecordBatch | None]:
        """The late events that wait, those of before and those that came; and their rows as they are kept."""
        names, rows = (*self._layout.key, self._layout.time), []
        key, ts_us = [tables.key("waiting")], [tables.column("waiting", self._layout.time)]
        fire_us, fired = [tables.column("waiting", FIRE)], [tables.column("waiting", FIRED)]
        old = tables.get("waiting")
        before = 0 if old is None else old.num_rows
        if old is not None:
            rows.append(old)
        tick, moment = [np.full(before, NEVER_US)], [np.full(before, -1)]
        came = past.accepted
        if came is not None and len(came.events):
            lateness = pa.array(self._timeline.mark_before(came.events.tick) - came.events.ts_us)
            wanted_us = times_wanted(self._settings.trigger, came.events.user_rows.append_column(LATENESS, lateness))
            new = came.events.rows.select(list(names))
            rows.append(_with(new, {FIRE: wanted_us, FIRED: np.zeros(len(wanted_us), dtype=np.int64)}))
            key.append(came.key)
            ts_us.append(came.events.ts_us)
            tick.append(came.events.tick)
            moment.append(came.moment)
            fire_us.append(wanted_us)
            fired.append(np.zeros(len(wanted_us), dtype=np.int64))
        waiting = Waiting._make(np.concatenate(each) for each in (key, ts_us, tick, moment, fire_us, fired))
        return waiting, concat_rows(rows) if rows else None

    def _live(self, tables: Tables, past: Past, ticks: Ticks, waiting: Waiting) -> Iterator[Output]:
        """What the live instance gave."""
        given = tables.get("given")
        if given is None:
            return
        start_us = tables.column("given", self._time)
        tick = ticks.complete(start_us)
        moment, at_once = np.full(len(tick), _ANY_HOLE), np.zeros(len(tick), dtype=np.bool_)
        final = past.final(tables.key("given"), start_us, tick, moment, at_once, ticks)
        final &= ~_any_within(waiting, tables.key("given"), start_us, self._reach.us)
        yield from _told(given, None, Pane.ON_TIME, final)

    def _revised(
        self,
        tables: Tables,
        past: Past,
        ticks: Ticks,
        contexts: Contexts,
        results: Results | None,
        waiting: Waiting,
        loaded: Loaded,
    ) -> Iterator[Output]:
        """What replays change in the results that stand, and which of those are kept."""
        names = [name for name in ("near", "undecided", "given") if tables.get(name) is not None]
        if not names and results is None:
            return
        parts = [_standing(tables, name, self._time) for name in names]
        if not parts:
            assert results is not None
            parts = [Standing(results.rows.slice(0, 0), contexts.key[:0], results.start_us[:0])]
        standing = parts[0]
        for part in parts[1:]:
            standing = standing.joined(part)
        revised = revise(standing, contexts, results, self._reach.us)
        yield from self._changes(revised.changes, contexts, past, ticks)
        self._kept.note_duplicates(revised.duplicates)
        near = len(tables.key("near"))
        stands = revised.standing
        may_change, undecided = self._may_change(stands, past, ticks, waiting)
        old = int(revised.kept[:near].sum())
        if near:
            gone = ~revised.kept[:near]
            gone[np.flatnonzero(revised.kept[:near])] |= ~may_change[:old]
            self._kept.near.update(loaded, tables.get("near"), np.zeros(near, dtype=np.bool_), gone)
        new = np.arange(len(may_change)) >= old
        self._kept.near.append(stands.take(np.flatnonzero(new & may_change & ~undecided)).rows)
        self._kept.keep_undecided(stands.take(np.flatnonzero(new & may_change & undecided)).rows)

    def _may_change(self, standing: Standing, past: Past, ticks: Ticks, waiting: Waiting) -> tuple[Bools, Bools]:
        """Which results may change still; and of which the key's own events have not come so far."""
        size = len(standing.key)
        tick, moment = np.full(size, self._timeline.tick[-1]), np.full(size, _AT_LAST)
        at_once = np.zeros(size, dtype=np.bool_)
        final = past.final(standing.key, standing.start_us, tick, moment, at_once, ticks)
        undecided = past.latest(standing.key, tick) < standing.start_us + self._reach.us
        return ~final | _any_within(waiting, standing.key, standing.start_us, self._reach.us), undecided

    def _changes(self, changes: Changes | None, contexts: Contexts, past: Past, ticks: Ticks) -> Iterator[Output]:
        if changes is None or len(changes.context) == 0:
            return
        results, context, change = changes
        tick, moment, at_once = contexts.tick[context], contexts.moment[context], contexts.at_once[context]
        final = past.final(results.key, results.start_us, tick, moment, at_once, ticks)
        yield from _told(results.rows, change, Pane.REVISED, final)

    def _keep_waiting(self, rows: pa.RecordBatch | None, firing: Firing, wait_on: Bools) -> None:
        if rows is None:
            return
        place = rows.schema.get_field_index(FIRED)
        fired = rows.column(place).to_numpy().copy()
        fired[firing.waiting] = 1
        rows = rows.set_column(place, FIRED, pa.array(fired))
        self._kept.keep_waiting(take_rows(rows, np.flatnonzero(wait_on)))


def _end_of_time(mark_us: int) -> Timeline:
    """The stream is over: nothing comes any more."""
    tick, mark = np.array([NEVER_US, _END_TICK]), np.array([mark_us, mark_us])
    return Timeline(tick, mark, np.array([NEVER_US, FOREVER_US]))


def _times(rows: pa.RecordBatch | None, name: str) -> Int64s:
    return np.zeros(0, dtype=np.int64) if rows is None else rows.column(name).view(pa.int64()).to_numpy()


def _with(rows: pa.RecordBatch, columns: dict[str, Int64s]) -> pa.RecordBatch:
    for name, values in columns.items():
        rows = rows.append_column(name, pa.array(values))
    return rows


def _with_role(events: EventBatch, role: int) -> pa.RecordBatch:
    """Events in the order of processing: tick by tick."""
    order = np.argsort(events.tick, kind="stable")
    rows = events.rows if bool((np.diff(order) == 1).all()) else take_rows(events.rows, order)
    return rows.append_column(ROLE, pa.array(np.full(len(events), role, dtype=np.int8)))


def _any_within(waiting: Waiting, key: Int64s, start_us: Int64s, reach_us: int) -> Bools:
    """Whether a late event of the key that waits lies in [start, start + reach)."""
    order = np.lexsort((waiting.ts_us, waiting.key))
    first, stop = np.empty(len(key), dtype=np.int64), np.empty(len(key), dtype=np.int64)
    find_stretches(waiting.key[order], waiting.ts_us[order], key, start_us, first)
    find_stretches(waiting.key[order], waiting.ts_us[order], key, start_us + reach_us, stop)
    return first < stop


def _standing(tables: Tables, name: str, time: str) -> Standing:
    rows = tables.get(name)
    assert rows is not None
    return Standing(rows, tables.key(name), tables.column(name, time))


def _told(rows: pa.RecordBatch, change: npt.NDArray[np.int8] | None, pane: Pane, final: Bools) -> Iterator[Output]:
    """Results, those that are final after the others: of one point, they come last."""
    for chosen, is_final in ((~final, False), (final, True)):
        if chosen.any():
            places = np.flatnonzero(chosen)
            changes = 1 if change is None else pa.array(change[places])
            yield revisable(rows if chosen.all() else take_rows(rows, places), changes, pane, is_final)
