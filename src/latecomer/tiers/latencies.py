"""What all forms of tiers share: the latencies, which event goes to which tier, and the answers as outputs."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa

from latecomer.durations import Duration, duration_us
from latecomer.errors import InputError, must
from latecomer.events import Bools, EventBatch, Int64s, take_rows
from latecomer.outputs import Output, Pane, refused, revisable
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


def tiers_of(batch: EventBatch, timeline: Timeline, latencies_us: list[int]) -> tuple[Int64s, Int64s]:
    """For each event the first tier whose latency it keeps, one past the last if none; and the last punctuation."""
    tier = np.zeros(len(batch), dtype=np.int64)
    punctuation_us = tier
    for latency_us in latencies_us:
        punctuation_us = timeline.punctuation_before(batch.tick, latency_us)
        tier += batch.ts_us <= punctuation_us
    return tier, punctuation_us


def refuse_late(
    batch: EventBatch, timeline: Timeline, latencies_us: list[int]
) -> Generator[Output, None, tuple[EventBatch, Int64s]]:
    """Give what is later than the last latency to the lane `late`; returns the other events and the tier of each."""
    tier, punctuation_us = tiers_of(batch, timeline, latencies_us)
    too_late = tier == len(latencies_us)
    if not too_late.any():
        return batch, tier
    yield from refused(batch, too_late, punctuation_us, timeline)
    return batch.filter(~too_late), tier[~too_late]


def tier_output(place: tuple[int, int], rows: pa.RecordBatch, change: int | None, chosen: Bools) -> Iterator[Output]:
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
