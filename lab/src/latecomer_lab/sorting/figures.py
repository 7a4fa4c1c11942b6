"""What Figures 5 and 7 of the paper show beside the cells: runs held over time, and sweeps over the disorder."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from latecomer.disorder.measures import Dealer, lateness
from latecomer.sorter.sorter import ImpatienceSorter
from latecomer_lab.sorting.cells import Cell, Limits, Tell, run_cell
from latecomer_lab.sorting.data import Stream, load

PUNCTUATED = 10_000  # Figure 5: a punctuation every so many events
SHOWN_LATENCY_US = 60_000_000  # of Figure 5: an hour is more than half of the log, after a minute runs can empty
AMOUNTS = (1.0, 4.0, 16.0, 64.0, 256.0, 1_024.0)  # d of Figure 7(b), at p = 30 %
PERCENTS = (1.0, 3.0, 10.0, 30.0, 60.0, 100.0)  # p of Figure 7(c), at d = 64


class RunsHeld(NamedTuple):
    """How many sorted runs are held after so many events."""

    events: list[int]
    patience: list[int]
    impatience: list[int]
    latency_us: int
    removed: int


class Point(NamedTuple):
    """A cell of a sweep: `what` is `amount` or `percent`."""

    what: str
    value: float
    cell: Cell


def count_runs(stream: Stream, latency_us: int = SHOWN_LATENCY_US) -> RunsHeld:
    """Figure 5: Patience sort keeps its runs, Impatience sort drops those it has emptied."""
    ts_us = stream.ts_us[lateness(stream.ts_us) < latency_us]
    dealer = Dealer()
    sorter = ImpatienceSorter(latency_us, every=PUNCTUATED, hardware=False)
    held = RunsHeld([], [], [], latency_us, len(stream.ts_us) - len(ts_us))
    for start in range(0, len(ts_us), PUNCTUATED):
        piece = ts_us[start : start + PUNCTUATED]
        sorter.push(piece)
        held.events.append(start + len(piece))
        held.patience.append(dealer.deal(piece))
        held.impatience.append(sorter.runs)
    return held


def sweep(events: int, seed: int, limits: Limits, tell: Tell) -> list[Point]:
    """Figure 7(b) and (c): synthetic data, offline, with the amount and the percentage of disorder varied."""
    points = []
    for what, values in (("amount", AMOUNTS), ("percent", PERCENTS)):
        for value in values:
            stream = load("synthetic", events, seed, **{what: value})
            stream = stream._replace(name=f"synthetic, {what} {value:g}")
            points.append(Point(what, value, run_cell(stream, None, limits, tell)))
    return points


def thinned(values: list[int], most: int = 400) -> list[int]:
    """Some of the values, evenly chosen."""
    chosen = np.unique(np.linspace(0, len(values) - 1, min(most, len(values))).astype(np.int64))
    return [values[place] for place in chosen]
