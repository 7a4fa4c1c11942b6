"""Optimistic processing of windows: every window that gets a row is given at once, and taken back when it changes.

Paper: Optimistic processing (Kuralenok et al., FlameStream), sections III and V-D.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from latecomer.chunks import ChunkStore
from latecomer.contract import Machine, Settings, check_max_held
from latecomer.durations import Duration, duration_us
from latecomer.errors import InputError, must
from latecomer.events import FOREVER_US, NEVER_US, Int64s, Layout
from latecomer.gives import Explained, Gives, Line, Tally, Verb, with_revisions
from latecomer.optimistic.history import History
from latecomer.optimistic.machine import RECOMPUTED, VOIDED
from latecomer.optimistic.session_machine import SessionsAtOnce
from latecomer.optimistic.settings import GIVEN_ROWS, check_barrier, views_of_changes
from latecomer.optimistic.window_machine import MISSED, FixedWindowsAtOnce
from latecomer.optimistic.window_rows import rows_due
from latecomer.progress import Timeline
from latecomer.windows import WINDOW_START, AggregateFunction, SessionWindow, Window, as_aggregates
from latecomer.windows.fragments import cut_sessions
from latecomer.windows.slices import results_schema

_VERB = Verb("aggregate(...).optimistic(...)", "give windows at once, take back what was wrong")


@dataclass(frozen=True)
class WindowsAtOnceSettings(Settings):
    """Aggregates per key and window, given in every micro-batch that brings a row of the window.

    bound: the most a row may be late, counted from the end of its window. barrier: give every window once more when
    it is final, in order (the view `final`). max_held: the most partial results and rows one shard may hold.
    """

    window: Window | SessionWindow
    aggregates: tuple[AggregateFunction, ...]
    bound: Duration
    barrier: bool = False
    max_held: int | None = None

    def __post_init__(self) -> None:
        duration_us(self.bound, "bound")
        check_barrier(self.barrier)
        check_max_held(self.max_held)

    @property
    def wait_us(self) -> int:
        """How far the punctuation is behind the mark."""
        return duration_us(self.bound, "bound") + 1

    @property
    @abstractmethod
    def length_us(self) -> int:
        """How long a window can be changed after the time by which it is stored, but for the bound."""

    @property
    def history(self) -> History:
        """How time is cut where windows, or their rows, are stored."""
        return History(ChunkStore(), "", self.wait_us + self.length_us)

    @abstractmethod
    def due_us(self, punctuation_us: int) -> int:
        """The time by which windows are stored, of the last that is final when a punctuation has come so far."""

    def gives(self, columns: pa.Schema, layout: Layout) -> Gives:
        lines = (
            Line("windows", self.window.shown()),
            Line("results", ", ".join(aggregate.name for aggregate in self.aggregates)),
            Line("repairs", f"windows up to {self.bound} after their end", "holds partial results"),
        )
        explained = Explained("no sort: windows at once, taken back where they change", lines, own_windows=True)
        overlap = isinstance(self.window, Window) and self.window.slices > 1
        return Gives(
            with_revisions(results_schema(columns, layout, self.aggregates)),
            explained,
            views_of_changes(barrier=self.barrier),
            GIVEN_ROWS,
            time=WINDOW_START,
            by_key=True,
            counters={VOIDED: Tally.SUM, RECOMPUTED: Tally.SUM, **({MISSED: Tally.SUM} if overlap else {})},
            in_part=overlap or isinstance(self.window, SessionWindow),
            net=True,
        )

    def describe(self) -> dict[str, Any]:
        asked = {"window": self.window.describe(), "aggregates": [each.describe() for each in self.aggregates]}
        return {"strategy": self.name, **asked, "bound_us": self.wait_us - 1, "barrier": self.barrier}


@dataclass(frozen=True)
class OptimisticWindows(WindowsAtOnceSettings):
    """Aggregates over windows of one size, tumbling or hopping, at once."""

    window: Window
    name: ClassVar[str] = "optimistic_windows"
    verb: ClassVar[Verb | None] = _VERB
    takes_changes: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.window, Window):
            raise InputError(must("window", "be a Window", self.window, "e.g. lc.Window('1 hour')"))
        self.window.check_slices()
        object.__setattr__(self, "aggregates", as_aggregates(self.aggregates, in_parts=False))

    @property
    def length_us(self) -> int:
        return self.window.size_us

    def due_us(self, punctuation_us: int) -> int:
        """Windows are stored by their start, less the windows' offset."""
        if punctuation_us in (NEVER_US, FOREVER_US):
            return punctuation_us
        return punctuation_us - self.window.size_us + 1 - self.window.offset_us

    def build(self, store: ChunkStore, layout: Layout) -> Machine:
        return FixedWindowsAtOnce(self, self.window, store, layout)

    def most_held(self, accepted_ts_us: Int64s, timeline: Timeline) -> int:
        """At most a partial result for each window of each row, and the row; stretches of time leave as a whole."""
        window, punctuation_us = self.window, timeline.punctuation(self.wait_us)
        back_us = np.arange(0, window.size_us, window.advance_us)
        starts_us = window.steps.starts(accepted_ts_us)[:, None] - back_us[None, :] - window.offset_us
        windows = starts_us >= self.history.held_from(self.due_us(punctuation_us))
        rows = accepted_ts_us >= self.history.held_from(rows_due(punctuation_us, window))
        return int(windows.sum() + rows.sum())


@dataclass(frozen=True)
class OptimisticSessions(WindowsAtOnceSettings):
    """Aggregates over sessions, at once. A row cannot be taken back: it may have made one session of several."""

    window: SessionWindow
    name: ClassVar[str] = "optimistic_sessions"
    verb: ClassVar[Verb | None] = _VERB

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.window, SessionWindow):
            raise InputError(must("window", "be a SessionWindow", self.window, "e.g. lc.SessionWindow('1 hour')"))
        object.__setattr__(self, "aggregates", as_aggregates(self.aggregates))

    @property
    def length_us(self) -> int:
        return self.window.gap_us

    def due_us(self, punctuation_us: int) -> int:
        """Sessions are stored by the time of their last row."""
        return punctuation_us if punctuation_us in (NEVER_US, FOREVER_US) else punctuation_us - self.window.gap_us

    def build(self, store: ChunkStore, layout: Layout) -> Machine:
        return SessionsAtOnce(self, self.window, store, layout)

    def most_held(self, accepted_ts_us: Int64s, timeline: Timeline) -> int:
        """At most as many as rows in sessions that may be held, had all rows one key."""
        owner, gap_us = np.zeros(len(accepted_ts_us), dtype=np.int64), self.window.gap_us
        groups = cut_sessions(owner, accepted_ts_us, accepted_ts_us, gap_us)
        held_us = self.history.held_from(self.due_us(timeline.punctuation(self.wait_us)))
        return int(groups.sizes[accepted_ts_us[groups.lasts] >= held_us].sum())
