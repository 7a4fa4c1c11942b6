"""Tiers: one windowed question with several latencies, early answers that get better.

A tier gives its answer for a window when its punctuation, the mark less its latency, has passed the window's end. An
event counts in a tier as long as the answer that it belongs to has not been given, so each answer has every event that
had come when it was given. With `lateness="event"` it is split by its own lateness, as in the paper's experiments: it
counts in the tiers whose latency is larger than that. Events are never held, only partial results. Every tier gives
an answer; against that of the tier before it is new, another, or the same.

Paper: Impatience (Chandramouli, Goldstein, Li), section V-B. One machine for each kind of window: `tumbling`,
`overlapping`, `sessions`. In all of them what no tier can take is in the lane `late`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa

from latecomer.chunks import ChunkStore
from latecomer.contract import Machine, Settings, check_max_held
from latecomer.durations import Duration
from latecomer.errors import InputError, must
from latecomer.events import Int64s, Layout
from latecomer.gives import STANDING, Explained, Gives, Line, Onward, Tally, Verb, revised_views, with_revisions
from latecomer.lateness import BY_WINDOW, check_lateness
from latecomer.progress import Timeline
from latecomer.tiers.latencies import check_latencies, latencies_in_us, shown_latencies
from latecomer.tiers.overlapping import MISSED, OverlappingTiers, most_held_overlapping
from latecomer.tiers.sessions import SessionTiers, most_held_sessions
from latecomer.tiers.tumbling import TumblingTiers
from latecomer.windows import WINDOW_START, AggregateFunction, SessionWindow, Window, as_aggregates
from latecomer.windows.slices import most_held_slices, results_schema


@dataclass(frozen=True)
class Tiers(Settings):
    """Aggregates per key and window, answered once for each latency.

    latencies: increasing. window: tumbling or hopping windows, or sessions. aggregates: what to say of each.
    max_held: the most partial results one shard may hold; past it the query stops with an error.
    lateness: "window": an event counts as long as its window is open in the tier; "event": as long as its own lateness
    is below the tier's latency.
    """

    latencies: tuple[Duration, ...]
    window: Window | SessionWindow
    aggregates: tuple[AggregateFunction, ...]
    max_held: int | None = None
    lateness: str = BY_WINDOW
    name: ClassVar[str] = "tiers"
    verb: ClassVar[Verb | None] = Verb("aggregate(...).tiers(...)", "answer windowed questions early, and better later")

    def __post_init__(self) -> None:
        check_latencies(self.latencies)
        check_max_held(self.max_held)
        check_lateness(self.lateness)
        object.__setattr__(self, "aggregates", as_aggregates(self.aggregates))
        if not isinstance(self.window, Window | SessionWindow):
            raise InputError(must("window", "be a Window or a SessionWindow", self.window, "e.g. lc.Window('1 hour')"))
        if isinstance(self.window, Window):
            self.window.check_slices()

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
        machine = TumblingTiers if self.window.slices == 1 else OverlappingTiers
        return machine(self, self.window, store, layout)

    def most_held(self, accepted_ts_us: Int64s, timeline: Timeline) -> int:
        window, punctuation_us = self.window, self.punctuation(timeline)
        if isinstance(window, SessionWindow):
            return most_held_sessions(window, accepted_ts_us, punctuation_us)
        if window.slices == 1:
            return most_held_slices(window, accepted_ts_us, punctuation_us)
        return most_held_overlapping(window, len(self.latencies), accepted_ts_us, punctuation_us)

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
        overlap = isinstance(self.window, Window) and self.window.slices > 1
        return Gives(
            results,
            explained,
            revised_views(tiers),
            STANDING,
            WINDOW_START,
            by_key=True,
            counters={MISSED: Tally.SUM} if overlap else {},
            in_part=self.lateness == BY_WINDOW and (overlap or isinstance(self.window, SessionWindow)),
        )

    def describe(self) -> dict[str, Any]:
        return {
            "strategy": self.name,
            "latencies_us": self.latencies_us,
            "window": self.window.describe(),
            "aggregates": [aggregate.describe() for aggregate in self.aggregates],
            "lateness": self.lateness,
        }
