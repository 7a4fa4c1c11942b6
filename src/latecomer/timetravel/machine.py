"""The machine of time travel: a live instance of the application, what is kept around holes, and replays.

Per key it keeps the recent events (as far back as the application looks), and of older ones those that lie near a hole:
its context. An event that is on time goes to the live instance; a late one that falls into a hole joins the contexts
and waits for its replay. A replay says anew all results that the late event touches.

Invariants
1. The live instance sees events in order, each once, and never a late one.
2. Whatever a late event within the bound needs for its replay is held: recent, in a context, or late itself.
3. What happens depends on ticks, not on micro-batches.

Paper: TinTiN, section 6.5, Algorithm 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from latecomer.chunks import ChunkStore
from latecomer.codec import widened
from latecomer.contract import Machine, check_held
from latecomer.events import FOREVER_US, EventBatch, Layout
from latecomer.outputs import Output, refused
from latecomer.progress import Timeline
from latecomer.timetravel.kept import Kept
from latecomer.timetravel.reach import with_checked_steps
from latecomer.timetravel.turn import Turn

if TYPE_CHECKING:
    from latecomer.timetravel.settings import TimeTravel

LIVE, KEPT = range(2)


class TimeTraveller(Machine):
    """Runs TimeTravel settings."""

    def __init__(self, settings: TimeTravel, store: ChunkStore, layout: Layout) -> None:
        super().__init__(store, layout)
        self._settings = settings
        checked = with_checked_steps(settings.operator, layout, settings.reach.step_us)
        self._live = checked.build(store.part(LIVE, 2), layout)
        self._kept = Kept(store.part(KEPT, 2), settings, layout)

    @property
    def held(self) -> int:
        """Events kept: recent ones, contexts and late ones; not what the live instance keeps of its windows."""
        return self._kept.events

    def punctuation(self, timeline: Timeline) -> int:
        return self._settings.punctuation(timeline)

    def push(self, batch: EventBatch, timeline: Timeline) -> Iterator[Output]:
        batch = EventBatch(widened(batch.rows), batch.layout)
        punctuation_us, mark_us = timeline.punctuation_before(batch.tick, 1), timeline.mark_before(batch.tick)
        too_late = (punctuation_us == FOREVER_US) | (batch.ts_us < mark_us - self._settings.bound_us)
        if too_late.any():
            yield from refused(batch, too_late, punctuation_us, timeline)
        behind = (batch.ts_us <= punctuation_us) & ~too_late
        on_time = batch.filter(~behind & ~too_late).sorted()
        given, _ = self._live.push(on_time.user_rows if len(on_time) else None, timeline.punctuation(1))
        turn = Turn(self._settings, self.layout, self._kept, timeline)
        yield from turn.run(on_time, batch.filter(behind).sorted(), given)
        check_held(self.held, self._settings.max_held)

    def finish(self) -> Iterator[Output]:
        given, _ = self._live.push(None, FOREVER_US)
        yield from Turn(self._settings, self.layout, self._kept, None).run(None, None, given)
        self._kept.clear()
