"""Tiers: one windowed question with several latencies, early answers that get better.

An event goes to the first tier whose latency it keeps. Each tier folds its events into partial results, a row per pane
and key. When its punctuation has passed a pane, the pane's partial results are united with those of the tiers before,
which gives the tier's answer, and go on to the next tier. So events are never held, only partial results, and each
event is folded once. Every tier gives an answer; against that of the tier before it is new, another, or the same.

Paper: Impatience (Chandramouli, Goldstein, Li), section V-B.

Invariants
1. The answer of tier i has exactly the events whose lateness is below latency i.
2. A partial result waits in one tier at a time: it moves on when its pane closes.
3. Later than the last latency is too late; such events are in the lane `late`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from latecomer.chunks import ChunkStore
from latecomer.contract import Lane, Machine, Output, Pane, Settings, check_held, check_max_held, refused
from latecomer.durations import Duration, duration_us
from latecomer.errors import InputError, must
from latecomer.events import FOREVER_US, EventBatch, Int64s, Layout, equal_rows, take_rows
from latecomer.progress import Timeline
from latecomer.windows import WINDOW_END, WINDOW_START, Aggregate, Window, check_aggregates
from latecomer.windows.folding import FRESH, PANE, Folding, freshness
from latecomer.windows.grouping import group_rows
from latecomer.windows.panes import RUNS, Panes, last_pane_of, results_schema, window_results

_GIVEN, _SAME, _VOID = 1, 0, -1


@dataclass(frozen=True)
class Tiers(Settings):
    """Aggregates per key and window, answered once for each latency.

    latencies: increasing. window: tumbling or hopping windows. aggregates: what to say of each.
    max_held: the most partial results one shard may hold; past it the query stops with an error.
    """

    latencies: tuple[Duration, ...]
    window: Window
    aggregates: tuple[Aggregate, ...]
    max_held: int | None = None
    name: ClassVar[str] = "tiers"
    by_key: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_latencies(self.latencies)
        check_max_held(self.max_held)
        for aggregate in self.aggregates:
            if not aggregate.mergeable:
                advice = "give it a merge, or use one latency with reorder"
                raise InputError(must(f"aggregate {aggregate.name}", "have a merge", "none", advice))

    @property
    def latencies_us(self) -> list[int]:
        """The latencies in microseconds."""
        return latencies_in_us(self.latencies)

    @property
    def tiers(self) -> int:
        return len(self.latencies)

    def build(self, store: ChunkStore, layout: Layout) -> Machine:
        return _Tiers(self, store, layout)

    def most_held(self, accepted_ts_us: Int64s, timeline: Timeline) -> int:
        window = self.window
        last_us = last_pane_of(self.punctuation(timeline), window) * window.pane_us
        if window.panes == 1:
            return int((accepted_ts_us > last_us).sum())
        each = 1 + len(self.latencies) * (window.panes + 2)
        return each * int((accepted_ts_us > last_us - 2 * window.size_us).sum())

    def punctuation(self, timeline: Timeline) -> int:
        return timeline.punctuation(self.latencies_us[-1])

    def output(self, columns: pa.Schema, layout: Layout) -> pa.Schema:
        check_aggregates(self.aggregates, columns, (WINDOW_START, WINDOW_END, *layout.key))
        return results_schema(columns, layout.time, Folding(layout.key, self.aggregates))

    def describe(self) -> dict[str, Any]:
        window = self.window
        return {
            "strategy": self.name,
            "latencies_us": self.latencies_us,
            "window_us": [window.size_us, window.advance_us],
            "aggregates": [aggregate.describe() for aggregate in self.aggregates],
        }


def check_latencies(latencies: tuple[Duration, ...]) -> None:
    """Refuse latencies that are none, or not increasing."""
    if not latencies:
        raise InputError(must("tiers", "be given at least one latency", "none", "e.g. tiers('1 s', '1 min')"))
    values = latencies_in_us(latencies)
    for before, after in pairwise(values):
        if after <= before:
            raise InputError(must("latencies", "increase", latencies, "give each once, the shortest first"))


def latencies_in_us(latencies: tuple[Duration, ...]) -> list[int]:
    """Latencies in microseconds."""
    return [duration_us(latency, "latency") for latency in latencies]


def tiers_of(batch: EventBatch, timeline: Timeline, latencies_us: list[int]) -> tuple[Int64s, Int64s]:
    """For each event the first tier whose latency it keeps, one past the last if none; and the last punctuation."""
    tier = np.zeros(len(batch), dtype=np.int64)
    punctuation_us = tier
    for latency_us in latencies_us:
        punctuation_us = timeline.punctuation_before(batch.tick, latency_us)
        tier += batch.ts_us <= punctuation_us
    return tier, punctuation_us


class _Tiers(Machine):
    def __init__(self, settings: Tiers, store: ChunkStore, layout: Layout) -> None:
        super().__init__(store, layout)
        self._settings = settings
        self._latencies_us = settings.latencies_us
        self._window = settings.window
        self._folding = Folding(layout.key, settings.aggregates)

    def push(self, batch: EventBatch, timeline: Timeline) -> Iterator[Output]:
        tier, punctuation_us = tiers_of(batch, timeline, self._latencies_us)
        too_late = tier == len(self._latencies_us)
        if too_late.any():
            yield from refused(batch, too_late, punctuation_us, timeline)
            batch, tier = batch.filter(~too_late), tier[~too_late]
        came: dict[int, pa.RecordBatch] = {}
        if len(batch):
            layout = self.layout
            came = dict(self._folding.partials(batch.rows, layout.time, self._window.pane_us, tier))
        yield from self._close(came, [timeline.punctuation(latency_us) for latency_us in self._latencies_us])
        check_held(self.held, self._settings.max_held)

    def finish(self) -> Iterator[Output]:
        yield from self._close({}, [FOREVER_US] * len(self._latencies_us))

    def _close(self, came: dict[int, pa.RecordBatch], punctuations_us: list[int]) -> Iterator[Output]:
        """Tier by tier, close the panes that are passed; what they hold moves on to the next tier."""
        moved: pa.RecordBatch | None = None
        for tier, punctuation_us in enumerate(punctuations_us):
            arrived = [table for table in (came.get(tier), moved) if table is not None]
            panes = Panes(self._folding, self._window, self.store, RUNS * tier)
            closed = panes.close(arrived, punctuation_us)
            if closed.windows is not None:
                yield from self._answers(tier, closed.windows)
            moved = None
            if closed.panes is not None and tier + 1 < len(punctuations_us):
                moved = self._folding.merge([freshness(closed.panes, 0)])

    def _answers(self, tier: int, windows: pa.RecordBatch) -> Iterator[Output]:
        """A tier's answer: what is void of that of the tier before, what is given instead or anew, what is the same."""
        folding, final = self._folding, tier + 1 == len(self._latencies_us)
        groups = folding.groups(windows, (PANE,))
        now = self._results(folding.reduced(windows, groups))
        known = np.flatnonzero(windows.column(FRESH).to_numpy() == 0)
        if len(known) == 0:
            pane = Pane.REVISED if tier else Pane.ON_TIME if final else Pane.EARLY
            yield Output(Lane.DOWN, now, _changes(_GIVEN, now), pane, final, tier + 1)
            return
        number = groups.spread(np.arange(len(groups)))[known]
        before = group_rows([number])
        old = self._results(folding.reduced(take_rows(windows, known), before))
        standing = number[before.firsts]
        same = equal_rows(old, take_rows(now, standing))
        another = np.ones(len(groups), dtype=np.bool_)
        another[standing[same]] = False
        for rows, chosen, change in ((old, ~same, _VOID), (now, another, _GIVEN), (now, ~another, _SAME)):
            if chosen.any():
                rows = take_rows(rows, np.flatnonzero(chosen))
                pane = Pane.ON_TIME if change == _SAME else Pane.REVISED
                yield Output(Lane.DOWN, rows, _changes(change, rows), pane, final, tier + 1)

    def _results(self, table: pa.RecordBatch) -> pa.RecordBatch:
        return window_results(self._folding, self._window, table)


def _changes(change: int, rows: pa.RecordBatch) -> npt.NDArray[np.int8]:
    return np.full(rows.num_rows, change, dtype=np.int8)
