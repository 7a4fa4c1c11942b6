"""Sessions: windows that last until a key is silent for a gap, answered once for each latency.

An event goes to the first tier that can take it: where the session that it joins or founds is open. The events of a
tier and a key that lie closer than the gap are folded into a fragment. When the tier's punctuation has passed a
session, it is given and goes on to the next tier as one fragment that is not fresh; there, late events may lengthen it
or join it to others. So the fragments that are not fresh in a session that closes are what the tier before has said of
it. As in Spark, an event at the last time + gap still joins the session, and one that is near a session that has been
given founds another.

A batch reads the sessions near its punctuations; later ones only wait.

Invariants
1. The answer of tier i is the sessions of exactly the events that it could take.
2. A fragment waits in one tier at a time, in the run of its number, by its first time.
3. Whether a session has ended is judged with the fragments of earlier tiers: one that is open there may reach into it.
4. The note `due<tier>` is at or before the first punctuation that can end a session of the tier.
5. The sessions of a tier lie in those of the next one: what is one session in a tier is never cut in two after it.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from latecomer.chunks import ChunkStore, small_groups
from latecomer.contract import Machine, check_held
from latecomer.events import (
    FOREVER_US,
    NEVER_US,
    EventBatch,
    Int64s,
    Layout,
    concat_rows,
    order_by,
    sort_times,
    take_rows,
)
from latecomer.lateness import BY_EVENT
from latecomer.outputs import Output, refused
from latecomer.progress import Timeline
from latecomer.tiers.latencies import punctuations_before, tier_answer
from latecomer.windows import SessionWindow
from latecomer.windows.folding import Folding, freshness, slices_of
from latecomer.windows.fragments import (
    Came,
    Fragments,
    LastTime,
    Scene,
    Sessions,
    cut_sessions,
    lasts_of,
    session_results,
    together,
)
from latecomer.windows.grouping import Groups
from latecomer.windows.session_joining import Joined

if TYPE_CHECKING:
    from latecomer.tiers.tiers import Tiers


def most_held_sessions(window: SessionWindow, accepted_ts_us: Int64s, punctuation_us: int) -> int:
    """At most as many fragments as events in sessions that are open, had all events one key."""
    gap_us = window.gap_us
    groups = cut_sessions(np.zeros(len(accepted_ts_us), dtype=np.int64), accepted_ts_us, accepted_ts_us, gap_us)
    open_still = accepted_ts_us[groups.lasts] + gap_us > punctuation_us
    return int(groups.sizes[open_still].sum())


class SessionTiers(Machine):
    """Tiers over sessions."""

    def __init__(self, settings: Tiers, window: SessionWindow, store: ChunkStore, layout: Layout) -> None:
        super().__init__(store, layout)
        self._settings = settings
        self._latencies_us = settings.latencies_us
        self._gap_us = window.gap_us
        self._folding = Folding(layout.key, (LastTime(), *settings.aggregates))

    def push(self, batch: EventBatch, timeline: Timeline) -> Iterator[Output]:
        before_us = punctuations_before(batch, timeline, self._latencies_us)
        came = Came(batch.rows, batch.ts_us, batch.tick, before_us)
        tier = yield from self._move(came, [timeline.punctuation(latency_us) for latency_us in self._latencies_us])
        too_late = tier == len(self._latencies_us)
        if too_late.any():
            yield from refused(batch, too_late, before_us[-1], timeline)
        check_held(self.held, self._settings.max_held, "partial results")

    def punctuation(self, timeline: Timeline) -> int:
        return self._settings.punctuation(timeline)

    def finish(self) -> Iterator[Output]:
        nothing, ends_us = np.empty(0, dtype=np.int64), [FOREVER_US] * len(self._latencies_us)
        yield from self._move(Came(None, nothing, nothing, [nothing for _ in ends_us]), ends_us)

    def _move(self, came: Came, ends_us: list[int]) -> Generator[Output, None, Int64s]:
        """Tier by tier, take events in and give the sessions that are passed, which move on; returns events' tiers."""
        tiers, strict = len(ends_us), self._settings.lateness == BY_EVENT
        reach_us = [min(end_us + self._gap_us, FOREVER_US) for end_us in ends_us]
        needed = self._needed(came, ends_us)
        scene = Scene(came, list(self._held(needed, reach_us)), self._folding.keys)
        tier, moved = np.full(len(came), tiers, dtype=np.int64), list[Fragments]()
        for number, end_us in enumerate(ends_us):
            undecided, joined = tier == tiers, None
            if needed[number]:
                joined = scene.joined(number, ~undecided, reach_us[number], self._gap_us, strict=strict)
                undecided &= (joined.session[: len(came)] >= 0) | (came.ts_us > reach_us[number])
            tier[undecided] = number
            arrived = [*self._fold(scene, np.flatnonzero(undecided), joined), *moved]
            moved = []
            if joined is None:
                self._wait(arrived, number)
                continue
            closed = self._passed(number, [*arrived, *scene.held(number)], joined, end_us)
            if closed is not None:
                sessions = closed.reduced(self._folding)
                known = closed.where(0)
                old = self._results(known.fragments.table) if len(known.number) else None
                yield from tier_answer((number, tiers), self._results(sessions.table), old, known.number)
                moved = [Fragments(freshness(sessions.table, 0), sessions.item)]
        return tier

    def _needed(self, came: Came, ends_us: list[int]) -> list[bool]:
        """For each tier whether a session of it may end, or an event have come too late for one."""
        due_us, needed = self._due_us(came.ts_us), []
        for tier, (end_us, before_us) in enumerate(zip(ends_us, came.before_us, strict=True)):
            due_us = min(due_us, self.store.notes.get(_note(tier), FOREVER_US))
            needed.append(due_us <= end_us or bool((came.ts_us <= before_us).any()))
        return needed

    def _held(self, needed: list[bool], reach_us: list[int]) -> Iterator[pa.RecordBatch | None]:
        """Of each tier what it holds up to its reach, if it is needed; or else only what a later one needs to see."""
        for tier, own in enumerate(needed):
            wanted = [reach_us[later] for later in range(tier, len(needed)) if needed[later]]
            upto_us = max(wanted, default=NEVER_US)
            chunks = [chunk for chunk in self.store.chunks if chunk.run == tier and chunk.ts_min_us <= upto_us]
            tables = [self.store.read(chunk) for chunk in chunks]
            if own:
                self.store.drop(chunks)
            yield concat_rows(tables) if tables else None

    def _fold(self, scene: Scene, places: Int64s, joined: Joined | None) -> Iterator[Fragments]:
        """The fragments that events make: of each session, or where that does not matter yet, of those near others."""
        came, near = scene.came, np.zeros(len(places), dtype=np.bool_)
        if joined is not None:
            near = joined.session[places] >= 0
            session, ts_us = joined.session[places[near]], came.ts_us[places[near]]
            order = order_by(session, ts_us)
            yield from self._folded(came, places[near], Groups(order, _starts(session[order])))
        later = places[~near]
        ts_us = came.ts_us[later]
        yield from self._folded(came, later, cut_sessions(scene.owner[later], ts_us, ts_us, self._gap_us))

    def _folded(self, came: Came, places: Int64s, groups: Groups) -> Iterator[Fragments]:
        if came.rows is not None and len(places):
            rows = came.rows if len(places) == len(came) else take_rows(came.rows, places)
            table = self._folding.fold(rows, self.layout.time, came.ts_us[places], groups)
            yield Fragments(table, places[groups.firsts])

    def _wait(self, arrived: list[Fragments], tier: int) -> None:
        """Nothing of a tier ends: what arrives is kept."""
        note = _note(tier)
        dues_us = [self.store.notes.get(note, FOREVER_US), *(self._due_us(lasts_of(each.table)) for each in arrived)]
        self.store.notes[note] = min(dues_us)
        for each in arrived:
            self._keep(each.table, tier)
        self._unite(tier)

    def _passed(self, tier: int, parts: list[Fragments], joined: Joined, end_us: int) -> Sessions | None:
        """The sessions that a tier's punctuation has passed; what is not in one of them is kept, its due time noted."""
        untouched = [chunk.ts_min_us for chunk in self.store.chunks if chunk.run == tier]
        dues_us, ended = [self._due_us(np.array(untouched, dtype=np.int64))], None
        fragments = together(parts)
        if fragments is not None:
            number = joined.session[fragments.item]
            later, near = np.flatnonzero(number < 0), np.flatnonzero(number >= 0)
            self._keep(take_rows(fragments.table, later), tier)
            dues_us.append(self._due_us(lasts_of(fragments.table)[later]))
            ends_us = joined.last_us[number[near]] + self._gap_us
            passed, left = near[ends_us <= end_us], near[ends_us > end_us]
            dues_us.append(int(ends_us[ends_us > end_us].min(initial=FOREVER_US)))
            self._keep(self._merged(Sessions.of(fragments.take(left), number[left])), tier)
            ended = Sessions.of(fragments.take(passed), number[passed]) if len(passed) else None
        self.store.notes[_note(tier)] = min(dues_us)
        self._unite(tier)
        return ended

    def _due_us(self, last_us: Int64s) -> int:
        """The first punctuation that can end a session with one of these last times."""
        return min(int(last_us.min(initial=FOREVER_US)) + self._gap_us, FOREVER_US)

    def _unite(self, tier: int) -> None:
        """Many small chunks become one."""
        for group in small_groups(chunk for chunk in self.store.chunks if chunk.run == tier):
            table = concat_rows(list(self.store.take(group)))
            owners = self._folding.groups(table, ())
            owner = owners.spread(np.arange(len(owners)))
            sessions = cut_sessions(owner, slices_of(table), lasts_of(table), self._gap_us)
            number = sessions.spread(np.arange(len(sessions)))
            self._keep(self._merged(Sessions.of(Fragments(table, number), number)), tier)

    def _merged(self, sessions: Sessions) -> pa.RecordBatch:
        """The fresh fragments of each session as one; what the tier before has given stays apart, to be voided."""
        fresh, known = sessions.where(1).reduced(self._folding), sessions.where(0).fragments
        return concat_rows([fresh.table, known.table])

    def _keep(self, table: pa.RecordBatch, tier: int) -> None:
        if table.num_rows:
            start_us, order = sort_times(slices_of(table))
            self.store.append(take_rows(table, order), start_us, tier)

    def _results(self, table: pa.RecordBatch) -> pa.RecordBatch:
        return session_results(self._folding, table, self._gap_us)


def _note(tier: int) -> str:
    return f"due{tier}"


def _starts(numbers: Int64s) -> Int64s:
    """Where another number begins."""
    return np.flatnonzero(np.diff(numbers, prepend=-1))
