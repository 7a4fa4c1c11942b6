"""`latecomer bench sort`: the paper's sections VI-B and VI-C, and the same against today's libraries.

Memory is taken from the system once and kept: where a virtual machine gives pages back to its host, touching them
again costs a sort up to four times its own time, and a different one in each round.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from latecomer.report.shape import Report
from latecomer_lab.sorting.cells import Cell, Limits, Tell, run_cell
from latecomer_lab.sorting.competitors import COMPETITORS
from latecomer_lab.sorting.data import LATENCY_US, load
from latecomer_lab.sorting.figures import Point, RunsHeld, count_runs, sweep, thinned
from latecomer_lab.sorting.operators import Gain, measure_gains
from latecomer_lab.sorting.targets import targets

FREQUENCIES: tuple[int | None, ...] = (None, 10, 100, 1_000, 10_000, 100_000, 1_000_000)
_SWEEP_EVENTS, _GAIN_EVENTS = 2_000_000, 5_000_000
_WARM_UP = 6_000
_ROOM = 160  # bytes per event that the hungriest competitor takes
_MMAP_MAX, _TRIM_THRESHOLD = -4, -1  # of mallopt, see malloc.h
_KINDS = {each.name: str(each.kind) for each in COMPETITORS}


@dataclass(frozen=True)
class SortBench:
    """Sizes of a run; the sweeps take a fifth of the events and Figure 9 a quarter, up to a bound."""

    events: int = 20_000_000
    rounds: int = 3
    cell_seconds: float = 30.0
    seed: int = 0
    only: tuple[str, ...] = tuple(LATENCY_US)

    @property
    def limits(self) -> Limits:
        """When a run ends."""
        return Limits(self.cell_seconds, self.rounds)

    @property
    def sweep_events(self) -> int:
        """For each point of Figure 7(b) and (c)."""
        return min(_SWEEP_EVENTS, max(1_000, self.events // 5))

    @property
    def gain_events(self) -> int:
        """For Figure 9."""
        return min(_GAIN_EVENTS, max(1_000, self.events // 4))


QUICK = SortBench(events=1_000_000, rounds=1, cell_seconds=2.0)


@dataclass
class Measured:
    """All that was measured."""

    cells: list[Cell] = field(default_factory=list)
    points: list[Point] = field(default_factory=list)
    gains: list[Gain] = field(default_factory=list)
    held: RunsHeld | None = None
    removed: dict[str, int] = field(default_factory=dict)


def run(settings: SortBench, tell: Tell) -> tuple[Report, Measured]:
    """Measure all cells and figures."""
    found = Measured()
    _keep_memory()
    _warm_up(tell)
    for name in settings.only:
        tell(f"making {name}")
        stream = load(name, settings.events, settings.seed)
        found.removed[name] = stream.removed
        _touch(_ROOM * len(stream.ts_us))
        for every in FREQUENCIES:
            if every is None or every <= len(stream.ts_us):
                found.cells.append(run_cell(stream, every, settings.limits, tell))
        if name == "cloudlog":
            tell("counting runs")
            found.held = count_runs(stream)
        less = load(name, settings.gain_events, settings.seed)
        found.gains += measure_gains(less, settings.rounds, tell)
    if "synthetic" in settings.only:
        found.points = sweep(settings.sweep_events, settings.seed, settings.limits, tell)
    return _report(settings, found), found


def _keep_memory() -> None:
    """Let the C library keep what is freed; a library without such a switch is left alone."""
    switch = getattr(ctypes.CDLL(None), "mallopt", None)
    if switch is not None:
        switch(_MMAP_MAX, 0)
        switch(_TRIM_THRESHOLD, -1)


def _touch(size: int) -> None:
    """Have the system give out so many bytes now."""
    np.ones(size, dtype=np.int8)


def _warm_up(tell: Tell) -> None:
    """Let everything be compiled before it is measured."""
    tell("compiling")
    stream = load("synthetic", _WARM_UP, 0)
    for every in (None, 10, 2_000):
        run_cell(stream, every, Limits(rounds=1), lambda _: None)


def _report(settings: SortBench, found: Measured) -> Report:
    report = Report("sort", asdict(settings))
    report.settings |= {"sweep_events": settings.sweep_events, "gain_events": settings.gain_events}
    report.settings["removed_as_too_late"] = found.removed
    report.results = [row for cell in found.cells for row in _rows(cell)]
    for point in found.points:
        report.results += [{**row, point.what: point.value} for row in _rows(point.cell)]
    report.results += [gain._asdict() for gain in found.gains]
    if found.held is not None:
        report.results.append(_runs_row(found.held))
    report.targets = targets(found.cells, found.points, found.gains)
    return report


def _rows(cell: Cell) -> Iterable[dict[str, Any]]:
    """One row per competitor."""
    for name, runs in cell.runs.items():
        rates = cell.rates(name)
        done = min(run.done for run in runs)
        yield {
            "stream": cell.stream,
            "every": cell.every,
            "algorithm": name,
            "kind": _KINDS[name],
            "events_per_s": round(cell.rate(name)),
            "slowest": round(min(rates)),
            "fastest": round(max(rates)),
            "rounds": len(runs),
            "stopped_at": None if all(run.whole for run in runs) else done,
        }


def _runs_row(held: RunsHeld) -> dict[str, Any]:
    curves = {name: thinned(getattr(held, name)) for name in ("events", "patience", "impatience")}
    return {"stream": "cloudlog", "latency_us": held.latency_us, "removed": held.removed, **curves}
