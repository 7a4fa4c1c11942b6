"""What all forms of tiers share: the latencies, which event goes to which tier, and the answers as outputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa

from latecomer.durations import Duration, duration_us
from latecomer.errors import InputError, must
from latecomer.events import Bools, EventBatch, Int64s, equal_rows, take_rows
from latecomer.outputs import Output, Pane, revisable
from latecomer.progress import Timeline

GIVEN, VOID = 1, -1  # what a tier's answer changes in that of the tier before
SAME = None


def check_latencies(latencies: Sequence[Duration]) -> None:
    """Refuse latencies that are none, or not increasing."""
    if not latencies:
        raise InputError(must("tiers", "be given at least one latency", "none", "e.g. tiers('1 s', '1 min')"))
    for before, after in pairwise(latencies_in_us(latencies)):
        if after <= before:
            raise InputError(must("latencies", "increase", latencies, "give each once, the shortest first"))


def latencies_in_us(latencies: Sequence[Duration]) -> list[int]:
    """Latencies in microseconds."""
    return [duration_us(latency, "latency") for latency in latencies]


def shown_latencies(latencies: Sequence[Duration]) -> str:
    """Latencies as text."""
    return ", ".join(str(latency) for latency in latencies)


def tiers_of(due_us: Int64s, before_us: list[Int64s]) -> Int64s:
    """For each event the first tier that is not too late for it, one past the last if none.

    due_us: the first punctuation that makes it too late. before_us: of each tier the last punctuation before its tick.
    Slices may stand for times.
    """
    tier = np.zeros(len(due_us), dtype=np.int64)
    for punctuation_us in before_us:
        tier += due_us <= punctuation_us
    return tier


def punctuations_before(batch: EventBatch, timeline: Timeline, latencies_us: list[int]) -> list[Int64s]:
    """For each tier the last punctuation before the tick of each event."""
    return [timeline.punctuation_before(batch.tick, latency_us) for latency_us in latencies_us]


def tier_answer(
    place: tuple[int, int], now: pa.RecordBatch, old: pa.RecordBatch | None = None, standing: Int64s | None = None
) -> Iterator[Output]:
    """A tier's answer: what is void of that of the tier before, what is given instead or anew, what is the same.

    old: what the tier before has said; standing: for each of its rows the place of the one that is now.
    """
    another = np.ones(now.num_rows, dtype=np.bool_)
    if old is not None and standing is not None:
        same = equal_rows(old, take_rows(now, standing))
        another[standing[same]] = False
        yield from _output(place, old, VOID, ~same)
    yield from _output(place, now, GIVEN, another)
    yield from _output(place, now, SAME, ~another)


def _output(place: tuple[int, int], rows: pa.RecordBatch, change: int | None, chosen: Bools) -> Iterator[Output]:
    """The chosen results of a tier, counted from zero, of so many; with their change."""
    if not chosen.any():
        return
    tier, tiers = place
    final = tier + 1 == tiers
    pane = Pane.REVISED if tier else Pane.EARLY
    if change is SAME or (final and tier == 0):
        pane = Pane.ON_TIME
    rows = rows if chosen.all() else take_rows(rows, np.flatnonzero(chosen))
    yield revisable(rows, change, pane, final, tier + 1)
