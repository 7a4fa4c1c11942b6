"""Sessions: windows that last until a key is silent for a gap, answered once for each latency.

An event goes to the first tier whose latency it keeps, as in `tiers`. The events of a tier and a key that lie closer
than the gap are folded into a fragment: its first time (`_lc_slice`), its last, and the states of the aggregates. When
the tier's punctuation has passed a session, the session is given and goes on to the next tier as one row that is not
fresh; there, late events may lengthen it or join it to others. So the rows that are not fresh in a session that closes
are what the tier before has said of it. As in Spark, an event at the last time + gap still joins the session.

A batch reads the sessions that its punctuations lie in and those that close; later ones only wait.

Invariants
1. The answer of tier i is the sessions of exactly the events whose lateness is below latency i.
2. A fragment waits in one tier at a time, in the run of its number, by its first time.
3. Whether a session has ended is judged with the fragments of earlier tiers: one that is open there may reach into it.
4. The note `due<tier>` is at or before the first punctuation that can end a session of the tier.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
import pyarrow as pa

from latecomer.chunks import ChunkStore, small_groups
from latecomer.contract import Machine, check_held
from latecomer.events import (
    FOREVER_US,
    Bools,
    EventBatch,
    Int64s,
    Layout,
    concat_rows,
    equal_rows,
    int64_view,
    sort_times,
    take_rows,
)
from latecomer.outputs import Output
from latecomer.progress import Timeline
from latecomer.tiers.latencies import GIVEN, SAME, VOID, refuse_late, tier_output
from latecomer.windows import WINDOW_END, WINDOW_START, AggregateFunction, SessionWindow
from latecomer.windows.aggregates import States
from latecomer.windows.folding import FRESH, SLICE, Folding, freshness, slices_of, split_parts, state_name
from latecomer.windows.grouping import Groups, group_rows

if TYPE_CHECKING:
    from latecomer.tiers.tiers import Tiers


def most_held_sessions(window: SessionWindow, accepted_ts_us: Int64s, punctuation_us: int) -> int:
    """At most as many fragments as events in sessions that are open, had all events one key."""
    gap_us = window.gap_us
    groups = cut_sessions(np.zeros(len(accepted_ts_us), dtype=np.int64), accepted_ts_us, accepted_ts_us, gap_us)
    open_still = accepted_ts_us[groups.lasts] + gap_us > punctuation_us
    return int(groups.sizes[open_still].sum())


def cut_sessions(owner: Int64s, start_us: Int64s, last_us: Int64s, gap_us: int) -> Groups:
    """Stretches of one owner that overlap or lie no further apart than the gap; by owner (from zero on), then start."""
    _, by_start = sort_times(start_us)
    _, by_owner = sort_times(owner[by_start])
    order = by_start[by_owner]
    owner, start_us = owner[order], start_us[order]
    reach_us = _reach(owner, last_us[order])
    begins = np.ones(len(order), dtype=np.bool_)
    begins[1:] = (owner[1:] != owner[:-1]) | (start_us[1:] - reach_us[:-1] > gap_us)
    return Groups(order, np.flatnonzero(begins))


def _reach(owner: Int64s, last_us: Int64s) -> Int64s:
    """How far the stretches of an owner up to each one reach; owners ascend."""
    if not ((last_us[1:] < last_us[:-1]) & (owner[1:] == owner[:-1])).any():
        return last_us
    ranked, order = sort_times(last_us)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    base = owner * len(order)  # above all ranks of the owners before, so that a maximum starts anew with each owner
    reach_us: Int64s = ranked[np.maximum.accumulate(base + rank) - base]
    return reach_us


class _LastTime(AggregateFunction):
    """The last time: a state that every fragment has."""

    kind: ClassVar[str] = "last_time"

    def state_types(self, kind: pa.DataType) -> list[pa.DataType]:
        return [pa.int64()]

    def result_type(self, kind: pa.DataType) -> pa.DataType:
        return pa.int64()

    def prepare(self, values: pa.Array, ts_us: Int64s) -> States:
        return [pa.array(ts_us)]

    def reduce(self, states: States, groups: Groups) -> States:
        return [pa.array(groups.reduce(np.maximum, states[0].to_numpy()))]

    def result(self, states: States) -> pa.Array:
        return states[0]


def _lasts_of(table: pa.RecordBatch) -> Int64s:
    return int64_view(table.column(state_name(0, 0)))


class _Fragments(NamedTuple):
    """Fragments in the order of their sessions, and the number of each one's session."""

    table: pa.RecordBatch
    number: Int64s

    @classmethod
    def of(cls, table: pa.RecordBatch, groups: Groups, chosen: Bools) -> _Fragments:
        """Chosen sessions of those that a table has; `chosen` has a value for each place in their order."""
        number = np.repeat(np.arange(len(groups)), groups.sizes)[chosen]
        return cls(take_rows(table, groups.order[chosen]), np.cumsum(_begins(number)) - 1)

    @property
    def groups(self) -> Groups:
        """The fragments of each session."""
        return Groups(np.arange(len(self.number)), np.flatnonzero(_begins(self.number)))

    def where(self, fresh: int) -> _Fragments:
        """Those that are fresh, or those that are not; the sessions keep their numbers."""
        chosen = np.flatnonzero(self.table.column(FRESH).to_numpy() == fresh)
        return _Fragments(take_rows(self.table, chosen), self.number[chosen])


def _begins(number: Int64s) -> Bools:
    """Where another number begins."""
    begins = np.ones(len(number), dtype=np.bool_)
    begins[1:] = number[1:] != number[:-1]
    return begins


class SessionTiers(Machine):
    """Tiers over sessions."""

    def __init__(self, settings: Tiers, window: SessionWindow, store: ChunkStore, layout: Layout) -> None:
        super().__init__(store, layout)
        self._settings = settings
        self._latencies_us = settings.latencies_us
        self._gap_us = window.gap_us
        self._folding = Folding(layout.key, (_LastTime(), *settings.aggregates))

    def push(self, batch: EventBatch, timeline: Timeline) -> Iterator[Output]:
        batch, tier = yield from refuse_late(batch, timeline, self._latencies_us)
        came = self._fold(batch, tier) if len(batch) else {}
        yield from self._close(came, [timeline.punctuation(latency_us) for latency_us in self._latencies_us])
        check_held(self.held, self._settings.max_held, "partial results")

    def punctuation(self, timeline: Timeline) -> int:
        return self._settings.punctuation(timeline)

    def finish(self) -> Iterator[Output]:
        yield from self._close({}, [FOREVER_US] * len(self._latencies_us))

    def _fold(self, batch: EventBatch, tier: Int64s) -> dict[int, pa.RecordBatch]:
        """The fragments that a batch's events make, by tier."""
        rows, ts_us, keys = batch.rows, batch.ts_us, self._folding.keys
        owners = group_rows([tier, *(rows.column(key) for key in keys)])
        groups = cut_sessions(owners.spread(np.arange(len(owners))), ts_us, ts_us, self._gap_us)
        return dict(split_parts(self._folding.fold(rows, self.layout.time, ts_us, groups), tier[groups.firsts]))

    def _close(self, came: dict[int, pa.RecordBatch], punctuations_us: list[int]) -> Iterator[Output]:
        """Tier by tier, close the sessions that are passed; they move on to the next tier."""
        moved: pa.RecordBatch | None = None
        for tier, punctuation_us in enumerate(punctuations_us):
            arrived = [table for table in (came.get(tier), moved) if table is not None]
            closed = self._passed(tier, arrived, punctuation_us)
            self._unite(tier)
            moved = None
            if closed is not None:
                sessions = self._reduced(closed)
                yield from self._answers(tier, closed, sessions)
                moved = freshness(sessions, 0)

    def _passed(self, tier: int, arrived: list[pa.RecordBatch], punctuation_us: int) -> _Fragments | None:
        """The fragments of the sessions that a tier's punctuation has passed; the others are kept."""
        notes, note, store = self.store.notes, f"due{tier}", self.store
        due_us = min([notes.get(note, FOREVER_US), *(self._due_us(_lasts_of(table)) for table in arrived)])
        if due_us > punctuation_us:
            for table in arrived:
                self._keep(table, tier)
            notes[note] = due_us
            return None
        waiting = [chunk for chunk in store.chunks if chunk.run == tier]
        tables = [*arrived, *store.take(chunk for chunk in waiting if chunk.ts_min_us <= punctuation_us)]
        untouched = np.array([chunk.ts_min_us for chunk in waiting if chunk.ts_min_us > punctuation_us], dtype=np.int64)
        notes[note] = self._due_us(untouched)
        return self._split(tier, concat_rows(tables), punctuation_us) if tables else None

    def _split(self, tier: int, table: pa.RecordBatch, punctuation_us: int) -> _Fragments | None:
        """Give the fragments of the sessions that have ended, keep the rest, and note when it is due."""
        begun = slices_of(table) <= punctuation_us  # what begins later cannot join a session that has ended
        later, mine = (take_rows(table, np.flatnonzero(chosen)) for chosen in (~begun, begun))
        self._keep(later, tier)
        together = concat_rows([mine, *self._open_before(tier, punctuation_us)])
        groups = self._sessions(together)
        ends_us = np.repeat(groups.reduce(np.maximum, _lasts_of(together)) + self._gap_us, groups.sizes)
        ended = ends_us <= punctuation_us  # never so where a tier before has it open: its punctuation is no earlier
        left = ~ended & (groups.order < mine.num_rows)
        self._keep(self._merged(_Fragments.of(together, groups, left)), tier)
        note = f"due{tier}"
        dues_us = (self.store.notes[note], self._due_us(_lasts_of(later)), int(ends_us[left].min(initial=FOREVER_US)))
        self.store.notes[note] = min(dues_us)
        return _Fragments.of(together, groups, ended) if ended.any() else None

    def _open_before(self, tier: int, punctuation_us: int) -> Iterator[pa.RecordBatch]:
        """The fragments that wait in earlier tiers and begin up to a punctuation."""
        for chunk in self.store.chunks:
            if chunk.run < tier and chunk.ts_min_us <= punctuation_us:
                table = self.store.read(chunk)
                yield table.slice(0, int(np.searchsorted(slices_of(table), punctuation_us, side="right")))

    def _due_us(self, last_us: Int64s) -> int:
        """The first punctuation that can end a session with one of these last times."""
        return min(int(last_us.min(initial=FOREVER_US)) + self._gap_us, FOREVER_US)

    def _sessions(self, table: pa.RecordBatch) -> Groups:
        """Fragments that are in one session."""
        owners = self._folding.groups(table, ())
        owner = owners.spread(np.arange(len(owners)))
        return cut_sessions(owner, slices_of(table), _lasts_of(table), self._gap_us)

    def _unite(self, tier: int) -> None:
        """Many small chunks become one."""
        for group in small_groups(chunk for chunk in self.store.chunks if chunk.run == tier):
            table = concat_rows(list(self.store.take(group)))
            everything = np.ones(table.num_rows, dtype=np.bool_)
            self._keep(self._merged(_Fragments.of(table, self._sessions(table), everything)), tier)

    def _merged(self, fragments: _Fragments) -> pa.RecordBatch:
        """The fresh fragments of each session as one; what the tier before has given stays apart, to be voided."""
        return concat_rows([self._reduced(fragments.where(1)), fragments.where(0).table])

    def _reduced(self, fragments: _Fragments) -> pa.RecordBatch:
        """A row for each session."""
        groups = fragments.groups
        alone = len(groups) == len(fragments.number)
        return fragments.table if alone else self._folding.reduced(fragments.table, groups)

    def _keep(self, table: pa.RecordBatch, tier: int) -> None:
        if table.num_rows:
            start_us, order = sort_times(slices_of(table))
            self.store.append(take_rows(table, order), start_us, tier)

    def _answers(self, tier: int, closed: _Fragments, sessions: pa.RecordBatch) -> Iterator[Output]:
        """A tier's answer: what is void of that of the tier before, what is given instead or anew, what is the same."""
        now, place = self._results(sessions), (tier, len(self._latencies_us))
        another = np.ones(now.num_rows, dtype=np.bool_)
        known = closed.where(0)
        if known.table.num_rows:
            old = self._results(known.table)
            same = equal_rows(old, take_rows(now, known.number))
            another[known.number[same]] = False
            yield from tier_output(place, old, VOID, ~same)
        yield from tier_output(place, now, GIVEN, another)
        yield from tier_output(place, now, SAME, ~another)

    def _results(self, table: pa.RecordBatch) -> pa.RecordBatch:
        """What the user sees of sessions."""
        folding, start = self._folding, table.column(SLICE)
        end = pa.array(_lasts_of(table) + self._gap_us).view(start.type)
        names = [WINDOW_START, WINDOW_END, *folding.keys, *(aggregate.name for aggregate in folding.aggregates[1:])]
        columns = [start, end, *(table.column(key) for key in folding.keys), *folding.results(table)[1:]]
        return pa.RecordBatch.from_arrays(columns, names=names)
