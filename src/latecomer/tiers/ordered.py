"""Tiers of events in order: the same stream sorted with several latencies, and whatever is to run on it.

The basic form of the framework: an event goes to the first tier whose latency it keeps and is sorted there; a tier
gives its own events and those of the tiers before it, in order, when its punctuation has passed them. An operator, if
there is one, runs on the rows of every tier. With a `partial` and a `merge` function it is the advanced form with the
user's own logic: `partial` runs on what a tier adds, `merge` on the union with what the tiers before it gave, and only
what they return is held and moves on.

Paper: Impatience (Chandramouli, Goldstein, Li), section V.

Invariants
1. Tier i has exactly the events that came before its punctuation had passed them, or with windows their window; what
   comes too late for the last tier is in the lane `late`.
2. Rows that move on from tier to tier are held by one tier at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from latecomer.chunks import ChunkStore, Store
from latecomer.codec import widened
from latecomer.contract import Machine, Settings, check_held, check_max_held
from latecomer.durations import Duration
from latecomer.errors import InputError, must
from latecomer.events import FOREVER_US, EventBatch, Int64s, Layout, Stretches
from latecomer.gives import (
    STANDING,
    Explained,
    Gives,
    Line,
    Tally,
    Verb,
    own_columns,
    revised_views,
    with_revisions,
)
from latecomer.lateness import BY_WINDOW, check_lateness, due_times
from latecomer.outputs import Output, Pane, pane_codes, refused, revisable
from latecomer.progress import Timeline
from latecomer.runs.merging import merge_events
from latecomer.runs.stored_runs import StoredRuns
from latecomer.tiers.changed import Changing, Function
from latecomer.tiers.latencies import (
    check_latencies,
    latencies_in_us,
    punctuations_before,
    shown_latencies,
    tiers_of,
)
from latecomer.windows.folding import FRESH
from latecomer.windows.operators import (
    Operator,
    Passed,
    check_columns_preserved,
    check_function,
    check_returns,
    operator_lines,
    results_in_order,
)


@dataclass(frozen=True)
class Ordered(Settings):
    """Events in order, once for each latency, and an operator that runs on them.

    latencies: increasing. operator: runs on the rows of every tier. partial, merge: the user's own functions, both or
    none, from rows in order to rows in order, which keep the time and key columns and move no row back in time;
    `returns` are the columns they give. Rows come with their number, `_lc_row`: those that are returned with it keep
    their place among equal times.
    align: windows, whose rows come together, so that functions see whole ones.
    max_held: the most rows one shard may hold. lateness: with windows, "window" takes a row as long as its window is
    open in the tier, "event" only until its own time is passed.
    """

    latencies: tuple[Duration, ...]
    operator: Operator | None = None
    partial: Function | None = None
    merge: Function | None = None
    returns: pa.Schema | None = None
    align: Stretches | None = None
    max_held: int | None = None
    lateness: str = BY_WINDOW
    name: ClassVar[str] = "ordered"
    verb: ClassVar[Verb | None] = Verb("app(...).tiers(...)", "run operators on rows in order, per latency")

    def __post_init__(self) -> None:
        check_latencies(self.latencies)
        check_max_held(self.max_held)
        check_lateness(self.lateness)
        if (self.partial is None) != (self.merge is None) or (self.partial is None) != (self.returns is None):
            raise InputError(must("partial, merge and returns", "be given together", "some of them", "give all three"))
        if self.partial is not None:
            check_function(self.partial, "partial")
            check_function(self.merge, "merge")
            check_returns(self.returns, "partial and merge")

    @property
    def latencies_us(self) -> list[int]:
        """The latencies in microseconds."""
        return latencies_in_us(self.latencies)

    @property
    def shortest_wait_us(self) -> int | None:
        return self.latencies_us[0]

    @property
    def by_key(self) -> bool:
        """Whether all rows of a key must meet."""
        return self.operator is not None or self.merge is not None

    def build(self, store: ChunkStore, layout: Layout) -> Machine:
        return _Ordered(self, store, layout)

    def most_held(self, accepted_ts_us: Int64s, timeline: Timeline) -> int:
        """Each event waits in one tier at a time; operators of all tiers hold what they need.

        What the user's functions make of events is held instead of them: as many rows, if they make no more.
        """
        last_us = self.ready(self.punctuation(timeline))
        waiting = len(accepted_ts_us) if self.partial is not None else int((accepted_ts_us > last_us).sum())
        if self.operator is None:
            return waiting
        readies_us = [self.ready(timeline.punctuation(latency_us)) for latency_us in self.latencies_us]
        return waiting + sum(
            self.operator.most_held(accepted_ts_us[accepted_ts_us <= ready_us], ready_us) for ready_us in readies_us
        )

    def punctuation(self, timeline: Timeline) -> int:
        """The punctuation of the last tier."""
        return timeline.punctuation(self.latencies_us[-1])

    def gives(self, columns: pa.Schema, layout: Layout) -> Gives:
        tiers = len(self.latencies)
        return Gives(
            with_revisions(self._columns(columns, layout), tiers=True),
            Explained("a sort per tier", tuple(self._lines())),
            revised_views(tiers),
            STANDING,
            by_key=self.by_key,
            counters={"runs": Tally.LEVEL},
        )

    def _lines(self) -> Iterator[Line]:
        holds = "holds events" if self.partial is None else "holds partial results"
        yield Line("tiers", shown_latencies(self.latencies), holds)
        if self.partial is not None:
            yield Line("functions", "partial on what a tier adds, merge with the tiers before")
        if self.operator is not None:
            yield from operator_lines(self.operator, "on every tier, in order")

    def _columns(self, columns: pa.Schema, layout: Layout) -> pa.Schema:
        """The columns of a tier's answer."""
        own = pa.schema(own_columns(columns))
        if layout.time not in own.names and (self.operator is not None or self.returns is not None):
            rule = "be among the columns where an operator or a function runs on them"
            raise InputError(must("time", rule, f"only {', '.join(own.names)}", "select it as it is"))
        if self.returns is not None:
            check_columns_preserved(self.returns, columns, layout, "partial and merge")
            own = self.returns
        return own if self.operator is None else self.operator.output(own, layout)

    def ready(self, punctuation_us: int) -> int:
        """The largest time that may leave."""
        return punctuation_us if self.align is None else self.align.passed(punctuation_us)

    def describe(self) -> dict[str, Any]:
        return {
            "strategy": self.name,
            "latencies_us": self.latencies_us,
            "operator": None if self.operator is None else self.operator.describe(),
            "returns": None if self.returns is None else str(self.returns),
            "align": None if self.align is None else self.align._asdict(),
            "lateness": self.lateness,
        }


class _Ordered(Machine):
    def __init__(self, settings: Ordered, store: ChunkStore, layout: Layout) -> None:
        super().__init__(store, layout)
        self._settings = settings
        self._latencies_us = settings.latencies_us

    def push(self, batch: EventBatch, timeline: Timeline) -> Iterator[Output]:
        batch = EventBatch(widened(batch.rows), batch.layout)
        due_us = due_times(batch.ts_us, self._settings.align, self._settings.lateness)
        before_us = punctuations_before(batch, timeline, self._latencies_us)
        tier = tiers_of(due_us, before_us)
        too_late = tier == len(self._latencies_us)
        if too_late.any():
            yield from refused(batch, too_late, before_us[-1], timeline)
        came = {number: batch.filter(tier == number).sorted() for number in np.unique(tier[~too_late]).tolist()}
        yield from self._move(came, [timeline.punctuation(latency_us) for latency_us in self._latencies_us])
        check_held(self.held, self._settings.max_held)

    def counters(self) -> dict[str, int]:
        parts = (self.store.part(number, len(self._latencies_us)) for number in range(len(self._latencies_us)))
        return {"runs": sum(_Tier(self._settings, part, self.layout).runs for part in parts)}

    def punctuation(self, timeline: Timeline) -> int:
        return self._settings.punctuation(timeline)

    def finish(self) -> Iterator[Output]:
        yield from self._move({}, [FOREVER_US] * len(self._latencies_us))

    def _move(self, came: dict[int, EventBatch], punctuations_us: list[int]) -> Iterator[Output]:
        """Tier by tier, give what has been passed, and move it on to the next tier."""
        moved: EventBatch | None = None
        for number, punctuation_us in enumerate(punctuations_us):
            store, last = self.store.part(number, len(punctuations_us)), number + 1 == len(punctuations_us)
            tier = _Tier(self._settings, store, self.layout)
            ready_us = self._settings.ready(punctuation_us)
            moved = tier.release(came.get(number), moved, ready_us)
            given = tier.given(moved, ready_us)
            if given is None:
                continue
            if self._settings.by_key:
                yield _answer(given, number, last=last)
            elif moved is not None:
                yield _events_of_tier(given, moved.rows.column(FRESH).to_numpy(), number, last=last)


class _Tier:
    """One tier: its own events, what came from the tier before, and the operator, each in a part of its store."""

    def __init__(self, settings: Ordered, store: Store, layout: Layout) -> None:
        own, before, operator = (store.part(number, 3) for number in range(3))
        self._settings, self._passed = settings, Passed(store)
        changing = None if settings.returns is None else Changing(settings.returns, layout, settings.operator)
        layout_after = layout if changing is None else changing.layout
        self._changing, self._fresh, self._moved = changing, StoredRuns(own, layout), StoredRuns(before, layout_after)
        self._operator = None if settings.operator is None else settings.operator.build(operator, layout_after)

    @property
    def runs(self) -> int:
        """How many sorted runs it holds."""
        return len(self._fresh) + len(self._moved)

    def release(self, came: EventBatch | None, moved: EventBatch | None, ready_us: int) -> EventBatch | None:
        """The rows of the tier up to a time, in order."""
        fresh = self._fresh.release(came, ready_us)
        if fresh is not None:
            fresh = self._changed(self._settings.partial, fresh, "partial")
        own = None if fresh is None else _marked(fresh, 1)
        known = self._moved.release(None if moved is None else _marked(moved, 0), ready_us)
        parts = [part for part in (own, known) if part is not None and len(part)]
        together = merge_events(parts) if parts else None
        if self._settings.merge is not None:
            if together is not None:
                together = _marked(self._changed(self._settings.merge, together, "merge"), 0)
            self._passed.move(ready_us)
        return together

    def given(self, rows: EventBatch | None, ready_us: int) -> pa.RecordBatch | None:
        """The tier's answer."""
        if self._operator is not None:
            own = results_in_order(self._operator, None if rows is None else rows.user_rows, ready_us)
        else:
            own = None if rows is None else rows.user_rows
        return own if own is not None and own.num_rows else None

    def _changed(self, function: Function | None, events: EventBatch, name: str) -> EventBatch:
        """What the user's function makes of events."""
        if function is None or self._changing is None:
            return events
        return self._changing.run(function, events, self._passed, name)


def _answer(rows: pa.RecordBatch, tier: int, *, last: bool) -> Output:
    """What an operator or functions give: early answers change nothing yet."""
    return revisable(rows, 1 if last else None, Pane.ON_TIME if last else Pane.EARLY, last, tier + 1)


def _events_of_tier(rows: pa.RecordBatch, fresh: npt.NDArray[np.int8], tier: int, *, last: bool) -> Output:
    """Events of a tier, in order: those that it adds are revised, those of the tiers before it are on time."""
    if tier == 0:
        return revisable(rows, 1, Pane.ON_TIME if last else Pane.EARLY, last, 1)
    change = pa.array(fresh, mask=fresh == 0)
    return revisable(rows, change, pane_codes(fresh > 0), last, tier + 1)


def _marked(events: EventBatch, fresh: int) -> EventBatch:
    """The same events, all fresh or none."""
    marks = pa.array(np.full(len(events), fresh, dtype=np.int8))
    return EventBatch(events.without(FRESH).rows.append_column(FRESH, marks), events.layout)
