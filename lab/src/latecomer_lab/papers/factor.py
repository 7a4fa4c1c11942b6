"""`latecomer reproduce disorder`: the poster's generator, asked for shares of late events, by law of delay.

The poster has no table to repeat. What can be shown is what it promises: the share that was asked for, and the same
stream again for the same seed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import latecomer as lc
from latecomer.disorder.generate import Outcome
from latecomer.report.shape import Report, Target

FACTORS = (5, 20, 50, 80)
LAWS = ("uniform", "half-normal", "exponential", "pareto", "zipf", "constant")
POINTS = 0.5
_STEP_US, _MAX_DELAY = 1_000, "20 ms"


@dataclass(frozen=True)
class FactorBench:
    """How many events there are, and what is asked: shares of late events in per cent, and laws of delay."""

    events: int = 200_000
    seed: int = 0
    factors: tuple[int, ...] = FACTORS
    laws: tuple[str, ...] = LAWS


def run(settings: FactorBench, tell: Callable[[str], None]) -> Report:
    """Make every experiment twice."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        _write_source(settings.events, folder / "source.parquet")
        config = _config(settings)
        tell(f"{len(config['experiments'])} experiments")
        first = lc.generate(config | {"source": _source(folder)}, folder / "first")
        tell("the same once more")
        second = lc.generate(config | {"source": _source(folder)}, folder / "second")
        differ = sum(not _same(folder, one.name) for one in first) + sum(
            a != b for a, b in zip(first, second, strict=True)
        )
    report = Report("disorder", asdict(settings))
    report.results = [_row(each) for each in first]
    hit = [abs(each.late_percent - each.asked_percent) for each in first if each.reachable]
    report.targets = [
        Target("share of late events, points off what was asked, largest", round(max(hit), 3), POINTS, at_least=False),
        Target("experiments of the same seed that differ", differ, 0, at_least=False),
    ]
    return report


def _write_source(events: int, path: Path) -> None:
    """Events in order, a millisecond apart."""
    ts = pa.array(np.arange(events, dtype=np.int64) * _STEP_US).cast(pa.timestamp("us", "UTC"))
    pq.write_table(pa.table({"ts": ts, "id": np.arange(events)}), path)


def _config(settings: FactorBench) -> dict[str, Any]:
    asked = [{"factor": factor, "distribution": law} for law in settings.laws for factor in settings.factors]
    return {"experiments": [{**each, "max_delay": _MAX_DELAY, "seed": settings.seed} for each in asked]}


def _source(folder: Path) -> dict[str, Any]:
    return {"path": str(folder / "source.parquet"), "time": {"field": "ts"}}


def _same(folder: Path, name: str) -> bool:
    return bool(pq.read_table(folder / "first" / name).equals(pq.read_table(folder / "second" / name)))


def _row(made: Outcome) -> dict[str, Any]:
    return {
        "distribution": made.distribution,
        "asked_percent": made.asked_percent,
        "late_percent": round(made.late_percent, 2),
        "delayed_percent": round(100 * made.delayed / made.events, 2),
        "reach": str(made.reach),
    }
