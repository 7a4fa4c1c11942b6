"""`latecomer bench advise`: what `latecomer advise` promises, against what happens on Spark.

For every stream advice is asked for, and the recommended way and the two next best run on Spark, with micro-batches
other than those the advice was rehearsed with, as a query would have.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

import latecomer as lc
from latecomer.advising import Advice, SinkKind
from latecomer.report.shape import Report, Target
from latecomer.spark.comparing import Compared

_OTHERS = 2
_PRESETS: dict[str, tuple[str, dict[str, Any], str, str]] = {
    "synthetic": ("synthetic", {"events": 60_000}, "key", "1 second"),
    "cloudlog": ("cloudlog", {"events": 60_000}, "server", "10 seconds"),
    "androidlog": ("androidlog", {"events": 60_000}, "phone", "1 hour"),
    "meters": ("meters", {"meters": 100, "days": 20}, "meter", "6 hours"),
    "traffic, zipf": ("traffic", {"seconds": 60, "policy": "zipf"}, "area", "5 seconds"),
    "traffic, constant": ("traffic", {"seconds": 60, "policy": "constant"}, "area", "5 seconds"),
}


@dataclass(frozen=True)
class AdviseBench:
    """Micro-batches of the advice and of the run, what the sink takes, and recorded streams besides the presets."""

    rehearsed: int = 24
    run: int = 12
    seed: int = 0
    sink: SinkKind = "any"
    files: tuple[str, ...] = field(default=())


class Asked(NamedTuple):
    """A stream, and what is asked of it."""

    name: str
    data: Any
    known: dict[str, Any]


def run(settings: AdviseBench, tell: Callable[[str], None]) -> Report:
    """Ask for advice on every stream, and try it."""
    report = Report("advise", asdict(settings))
    points, held, apart = 0.0, 1.0, 1.0
    for asked in [*_presets(settings.seed), *map(_file, settings.files)]:
        tell(f"{asked.name}: advice")
        advice = lc.advise(asked.data, **asked.known, batches=settings.rehearsed, sink=settings.sink)
        tell(f"{asked.name}: on Spark")
        tried = [advice.best, *advice.others[:_OTHERS]]
        ways = [way.way.text for way in tried]
        on_spark = lc.compare(asked.data, **asked.known, ways=ways, batches=settings.run).ways
        row = _row(asked.name, advice, on_spark)
        report.results.append(row)
        points = max(points, row["points_apart"])
        held = max(held, row["held_apart"])
        apart = max(apart, row["from_best"])
    report.targets = [
        Target("predicted completeness, points apart at most", round(points, 3), 1.0, at_least=False),
        Target("predicted events held, times apart at most", round(held, 3), 1.25, at_least=False),
        Target("recommended way against the best, times at most", round(apart, 3), 1.1, at_least=False),
    ]
    return report


def _row(name: str, advice: Advice, on_spark: list[Compared]) -> dict[str, Any]:
    said, found = advice.best, on_spark[0]
    ratio = max(found.held, 1) / max(said.held, 1)
    return {
        "stream": name,
        "recommended": said.way.text,
        "right": round(100 * found.scores.right_share, 3),
        "points_apart": 100 * abs(said.scores.right_share - found.scores.right_share),
        "held": found.held,
        "held_apart": max(ratio, 1 / ratio),
        "settled_s": found.scores.right[1],
        "from_best": _from_best(on_spark),
    }


def _from_best(on_spark: list[Compared]) -> float:
    """How many times as long the recommended way takes to be right as the soonest that is as right as it."""
    first = on_spark[0]
    mine = first.scores.right[1]
    as_right = [way.scores.right[1] for way in on_spark if way.scores.right_share >= first.scores.right_share - 1e-9]
    soonest = min((each for each in as_right if each is not None), default=None)
    if any(way.scores.right_share > first.scores.right_share + 1e-9 for way in on_spark):
        return inf  # another one has more windows right
    if mine is None or soonest is None or mine == soonest:
        return 1.0
    return inf if mine == inf else mine / max(soonest, 1e-3)


def _presets(seed: int) -> list[Asked]:
    return [
        Asked(name, lc.preset(preset, **sizes, seed=seed), {"key": key, "window": window})
        for name, (preset, sizes, key, window) in _PRESETS.items()
    ]


def _file(text: str) -> Asked:
    """A recorded stream: its path, and its columns of time, arrival and key, and a window, with commas between."""
    path, time, arrival, key, window = text.split(",")
    return Asked(Path(path).parent.name, path, {"time": time, "arrival": arrival, "key": key, "window": window})
