"""Tiers: one windowed question with several latencies, early answers that get better.

An event goes to the first tier whose latency it keeps. Each tier folds its events into partial results, a row per slice
and key. When its punctuation has passed a slice, the slice's partial results are united with those of the tiers before,
which gives the tier's answer, and go on to the next tier. So events are never held, only partial results, and each
event is folded once. Every tier gives an answer; against that of the tier before it is new, another, or the same.

Paper: Impatience (Chandramouli, Goldstein, Li), section V-B.

Invariants
1. The answer of tier i has exactly the events whose lateness is below latency i.
2. A partial result waits in one tier at a time: it moves on when its slice closes.
3. Later than the last latency is too late; such events are in the lane `late`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from latecomer.chunks import ChunkStore
from latecomer.contract import Machine, Settings, check_held, check_max_held
from latecomer.durations import Duration
from latecomer.errors import InputError, must
from latecomer.events import FOREVER_US, NEVER_US, EventBatch, Int64s, Layout, concat_rows, equal_rows, take_rows
from latecomer.gives import STANDING, Explained, Gives, Line, Onward, Verb, revised_views, with_revisions
from latecomer.outputs import Output
from latecomer.progress import Timeline
from latecomer.tiers.latencies import (
    GIVEN,
    SAME,
    VOID,
    check_latencies,
    latencies_in_us,
    refuse_late,
    shown_latencies,
    tier_output,
)
from latecomer.tiers.sessions import SessionTiers, most_held_sessions
from latecomer.windows import WINDOW_START, AggregateFunction, SessionWindow, Window, as_aggregates
from latecomer.windows.folding import FRESH, SLICE, Folding, freshness, slices_of
from latecomer.windows.grouping import group_rows
from latecomer.windows.slices import RUNS, Slices, last_slice_of, results_schema, window_results


@dataclass(frozen=True)
class Tiers(Settings):
    """Aggregates per key and window, answered once for each latency.

    latencies: increasing. window: tumbling or hopping windows, or sessions. aggregates: what to say of each.
    max_held: the most partial results one shard may hold; past it the query stops with an error.
    """

    latencies: tuple[Duration, ...]
    window: Window | SessionWindow
    aggregates: tuple[AggregateFunction, ...]
    max_held: int | None = None
    name: ClassVar[str] = "tiers"
    verb: ClassVar[Verb | None] = Verb("aggregate(...).tiers(...)", "answer windowed questions early, and better later")

    def __post_init__(self) -> None:
        check_latencies(self.latencies)
        check_max_held(self.max_held)
        object.__setattr__(self, "aggregates", as_aggregates(self.aggregates))
        if not isinstance(self.window, Window | SessionWindow):
            raise InputError(must("window", "be a Window or a SessionWindow", self.window, "e.g. lc.Window('1 hour')"))

    @property
    def latencies_us(self) -> list[int]:
        """The latencies in microseconds."""
        return latencies_in_us(self.latencies)

    @property
    def shortest_wait_us(self) -> int | None:
        return self.latencies_us[0]

    @property
    def onward(self) -> Onward:
        """With one latency windows come once, in order."""
        once = len(self.latencies) == 1 and isinstance(self.window, Window)
        return Onward.IN_ORDER if once else Onward.NO

    def build(self, store: ChunkStore, layout: Layout) -> Machine:
        if isinstance(self.window, SessionWindow):
            return SessionTiers(self, self.window, store, layout)
        return _Tiers(self, self.window, store, layout)

    def most_held(self, accepted_ts_us: Int64s, timeline: Timeline) -> int:
        window = self.window
        if isinstance(window, SessionWindow):
            return most_held_sessions(window, accepted_ts_us, self.punctuation(timeline))
        last_us = last_slice_of(self.punctuation(timeline), window) * window.slice_us
        if window.slices == 1:
            return int((accepted_ts_us > last_us).sum())
        each = 1 + 2 * len(self.latencies) * (window.slices + 2)
        return each * int((accepted_ts_us > last_us - 2 * window.size_us).sum())

    def punctuation(self, timeline: Timeline) -> int:
        """The punctuation of the last tier."""
        return timeline.punctuation(self.latencies_us[-1])

    def gives(self, columns: pa.Schema, layout: Layout) -> Gives:
        tiers = len(self.latencies)
        results = with_revisions(results_schema(columns, layout, self.aggregates), tiers=True)
        lines = (
            Line("tiers", shown_latencies(self.latencies), "holds partial results"),
            Line("windows", self.window.shown()),
            Line("results", ", ".join(aggregate.name for aggregate in self.aggregates)),
        )
        explained = Explained("no sort: partial results are folded as they come", lines, own_windows=True)
        return Gives(results, explained, revised_views(tiers), STANDING, WINDOW_START, by_key=True)

    def describe(self) -> dict[str, Any]:
        return {
            "strategy": self.name,
            "latencies_us": self.latencies_us,
            "window": self.window.describe(),
            "aggregates": [aggregate.describe() for aggregate in self.aggregates],
        }


class _Tiers(Machine):
    def __init__(self, settings: Tiers, window: Window, store: ChunkStore, layout: Layout) -> None:
        super().__init__(store, layout)
        self._settings = settings
        self._latencies_us = settings.latencies_us
        self._window = window
        self._folding = Folding(layout.key, settings.aggregates)

    def push(self, batch: EventBatch, timeline: Timeline) -> Iterator[Output]:
        batch, tier = yield from refuse_late(batch, timeline, self._latencies_us)
        came: dict[int, pa.RecordBatch] = {}
        if len(batch):
            layout = self.layout
            came = dict(self._folding.partials(batch.rows, layout.time, self._window.slice_us, tier))
        yield from self._close(came, [timeline.punctuation(latency_us) for latency_us in self._latencies_us])
        check_held(self.held, self._settings.max_held, "partial results")

    def punctuation(self, timeline: Timeline) -> int:
        return self._settings.punctuation(timeline)

    def passed(self, timeline: Timeline) -> Int64s:
        """Windows are given when they have ended, and their time is their start."""
        punctuation_us = timeline.punctuations(self._latencies_us[-1])
        ends = (punctuation_us == FOREVER_US) | (punctuation_us == NEVER_US)
        return np.where(ends, punctuation_us, punctuation_us - self._window.size_us + 1)

    def finish(self) -> Iterator[Output]:
        yield from self._close({}, [FOREVER_US] * len(self._latencies_us))

    def _close(self, came: dict[int, pa.RecordBatch], punctuations_us: list[int]) -> Iterator[Output]:
        """Tier by tier, close the slices that are passed; what they hold moves on to the next tier."""
        moved: pa.RecordBatch | None = None
        for tier, punctuation_us in enumerate(punctuations_us):
            arrived = [table for table in (came.get(tier), moved) if table is not None]
            slices = Slices(self._folding, self._window, self.store, RUNS * tier)
            closed = slices.close(arrived, punctuation_us)
            moved = None if closed is None else self._known(closed)
            windows = slices.slide(None if closed is None or moved is None else _both(closed, moved), punctuation_us)
            if windows is not None:
                yield from self._answers(tier, windows)

    def _known(self, closed: pa.RecordBatch) -> pa.RecordBatch:
        """What closed slices hold, as the next tier knows it; all fresh or none, it is merged already."""
        fresh = closed.column(FRESH).to_numpy()
        known = freshness(closed, 0)
        return known if bool((fresh == fresh[0]).all()) else self._folding.merge([known])

    def _answers(self, tier: int, windows: pa.RecordBatch) -> Iterator[Output]:
        """A tier's answer: what is void of that of the tier before, what is given instead or anew, what is the same."""
        folding, place = self._folding, (tier, len(self._latencies_us))
        groups = folding.groups(windows, (SLICE,))
        fresh = windows.column(FRESH).to_numpy() == 1
        if bool(fresh.all()):
            now = window_results(folding, self._window, folding.reduced(windows, groups))
            yield from tier_output(place, now, GIVEN, np.ones(now.num_rows, dtype=np.bool_))
            return
        number = groups.spread(np.arange(len(groups)))
        now, _ = self._results(windows, number, np.flatnonzero(fresh))
        another = np.ones(now.num_rows, dtype=np.bool_)
        old, standing = self._results(windows, number, np.flatnonzero(~fresh))
        same = equal_rows(old, take_rows(now, standing))
        another[standing[same]] = False
        yield from tier_output(place, old, VOID, ~same)
        yield from tier_output(place, now, GIVEN, another)
        yield from tier_output(place, now, SAME, ~another)

    def _results(self, windows: pa.RecordBatch, number: Int64s, chosen: Int64s) -> tuple[pa.RecordBatch, Int64s]:
        """What the user sees of the windows that some rows make up, and the numbers of those."""
        groups = group_rows([number[chosen]])
        table = self._folding.reduced(take_rows(windows, chosen), groups)
        return window_results(self._folding, self._window, table), number[chosen][groups.firsts]


def _both(closed: pa.RecordBatch, now: pa.RecordBatch) -> pa.RecordBatch:
    """What the tiers before said of slices, as not fresh, and what is to be said now, as fresh.

    Two whole versions, not one and what was added: the next tier computes from `now` what it has to void, and sums of
    floats must come out the same to the bit.
    """
    known = np.flatnonzero(closed.column(FRESH).to_numpy() == 0)
    if len(known) == 0:
        return freshness(now, 1)
    both = concat_rows([take_rows(closed, known), freshness(now, 1)])
    return take_rows(both, np.argsort(slices_of(both), kind="stable"))
