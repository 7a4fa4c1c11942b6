"""How fast the four measures are, and how near the two log presets come to the paper's Tables I and II."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from latecomer.disorder.measures import count_inversions, lateness, measure
from latecomer.disorder.presets import preset
from latecomer.events import Int64s, int64_view
from latecomer.report.shape import Report, Target

PAPER: dict[str, dict[str, int]] = {  # Table I
    "cloudlog": {"inversions": 53_541_688_892, "distance": 13_635_714, "runs": 7_382_495, "interleaved": 387},
    "androidlog": {"inversions": 73_004_914_227_284, "distance": 19_990_056, "runs": 5_560, "interleaved": 227},
}
COMPLETENESS: dict[str, dict[str, tuple[int, float]]] = {  # Table II
    "cloudlog": {"1 s": (1_000_000, 98.1), "1 h": (3_600_000_000, 100.0)},
    "androidlog": {"10 min": (600_000_000, 20.5), "1 d": (86_400_000_000, 92.2)},
}
ALLOWED = {"inversions": 1.5, "distance": 1.1, "runs": 1.1, "interleaved": 1.2}


@dataclass(frozen=True)
class MeasuresBench:
    """Sizes of a run."""

    events: int = 20_000_000
    rounds: int = 3
    seed: int = 0


def _times(name: str, settings: MeasuresBench) -> Int64s:
    """The event times of a preset in order of arrival."""
    table = preset(name, events=settings.events, seed=settings.seed).table()
    return int64_view(table["ts"].combine_chunks()).copy()


def _seconds(work: Callable[[], object], rounds: int) -> float:
    """The fastest of some rounds."""
    found = []
    for _ in range(rounds):
        started = time.perf_counter()
        work()
        found.append(time.perf_counter() - started)
    return min(found)


def run_speed(settings: MeasuresBench, tell: Callable[[str], None]) -> Report:
    """The four measures against numpy's stable argsort of the same array, in the same run."""
    tell("making cloudlog")
    ts_us = _times("cloudlog", settings)
    measure(ts_us[:100_000])
    count_inversions(ts_us[:200_000])
    tell("argsort")
    argsort = _seconds(lambda: np.argsort(ts_us, kind="stable"), settings.rounds)
    tell("four measures")
    measures = _seconds(lambda: measure(ts_us), settings.rounds)
    report = Report("profile", asdict(settings))
    report.results = [
        {"path": "numpy stable argsort", "seconds": round(argsort, 3), "events": len(ts_us)},
        {"path": "four measures", "seconds": round(measures, 3), "events": len(ts_us)},
    ]
    report.targets = [Target("four measures / stable argsort", round(measures / argsort, 2), 5.0, at_least=False)]
    return report


def run_presets(settings: MeasuresBench, tell: Callable[[str], None]) -> Report:
    """The two logs against Table I and Table II."""
    report = Report("presets", asdict(settings))
    for name in PAPER:
        tell(f"making {name}")
        ts_us = _times(name, settings)
        tell(f"measuring {name}")
        found: dict[str, Any] = measure(ts_us)._asdict()
        late_us = lateness(ts_us)
        for what, paper in PAPER[name].items():
            _add(report, name, what, found[what], paper)
            off = max(found[what] / paper, paper / max(1, found[what]))
            report.targets.append(Target(f"{name} {what}, times off", round(off, 3), ALLOWED[what], at_least=False))
        for wait, (wait_us, percent) in COMPLETENESS[name].items():
            share = 100.0 * float(np.count_nonzero(late_us < wait_us)) / len(late_us)
            _add(report, name, f"kept by {wait}, %", round(share, 2), percent)
            points = round(abs(share - percent), 2)
            report.targets.append(Target(f"{name} kept by {wait}, points off", points, 2.0, at_least=False))
    return report


def _add(report: Report, name: str, what: str, found: float, paper: float) -> None:
    report.results.append({"preset": name, "measure": what, "ours": found, "paper": paper})
