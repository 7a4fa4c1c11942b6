"""`latecomer bench advise`: what `latecomer advise` promises, against what happens on Spark.

For every stream advice is asked for; the recommended way, the two next best and the usual ways of `latecomer compare`
run on Spark, with micro-batches other than those the advice was rehearsed with, as a query would have. With a deadline
they are the same: no answer comes sooner than its micro-batch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

import latecomer as lc
from latecomer.advising import Advice, SinkKind, Wishes
from latecomer.durations import duration_text, duration_us
from latecomer.report.shape import Report, Target
from latecomer.spark.comparing import Compared, usual_ways

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
    """Micro-batches of the advice and of the run, what is wished, and recorded streams besides the presets.

    windows: the deadline, in windows of each stream; None for none.
    """

    rehearsed: int = 24
    run: int = 12
    seed: int = 0
    sink: SinkKind = "any"
    windows: float | None = None
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
        deadline = None if settings.windows is None else settings.windows * duration_us(asked.known["window"], "window")
        wished: dict[str, Any] = {"sink": settings.sink, "deadline": deadline and duration_text(int(deadline))}
        advice = lc.advise(asked.data, **asked.known, batches=settings.rehearsed, **wished)
        tell(f"{asked.name}: on Spark")
        batches = settings.run if deadline is None else settings.rehearsed
        on_spark = lc.compare(asked.data, **asked.known, ways=_ways(advice), batches=batches).ways
        row = {**_row(asked.name, advice, on_spark), "wishes": {name: each for name, each in wished.items() if each}}
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
        "promised": round(100 * said.scores.right_share, 3),
        "right": round(100 * found.scores.right_share, 3),
        "points_apart": 100 * abs(said.scores.right_share - found.scores.right_share),
        "held": found.held,
        "held_apart": max(ratio, 1 / ratio),
        "settled_s": found.scores.right[1],
        "from_best": _from_best(on_spark, advice.wishes),
        "missed": list(advice.wishes.missed(found)),
        "said_to_be_missed": list(advice.missed),
        "tried": [{"way": way.way.text, "right": round(100 * way.scores.right_share, 3)} for way in on_spark],
    }


def _ways(advice: Advice) -> list[str]:
    """The recommended way, the next best, and the usual ones, which no advice has chosen, if the sink can take them."""
    usual = (way for way in usual_ways(advice.asked.stream, advice.asked.question) if not way.is_spark)
    once = [way.text for way in usual if advice.wishes.sink == "any" or not way.revises]
    return list(dict.fromkeys([advice.best.way.text, *(way.way.text for way in advice.others[:_OTHERS]), *once]))


def _from_best(on_spark: list[Compared], wishes: Wishes) -> float:
    """How much better than the recommended way another one is that grants no fewer wishes.

    How many times as many windows are right, or, where as many are, how many times as soon.
    """
    first, most = on_spark[0], len(wishes.missed(on_spark[0]))
    rivals = [way for way in on_spark if len(wishes.missed(way)) <= most]
    share = max(way.scores.right_share for way in rivals)
    if any(len(wishes.missed(way)) < most for way in rivals):
        return inf  # another one grants more
    if share > first.scores.right_share + 1e-9:
        return share / first.scores.right_share if first.scores.right_share else inf
    mine = first.scores.right[1]
    soonest = min((way.scores.right[1] for way in rivals if way.scores.right_share >= share - 1e-9), key=_none_last)
    if mine is None or soonest is None or mine == soonest:
        return 1.0
    return mine / max(soonest, 1e-3)


def _none_last(seconds: float | None) -> float:
    return inf if seconds is None else seconds


def _presets(seed: int) -> list[Asked]:
    return [
        Asked(name, lc.preset(preset, **sizes, seed=seed), {"key": key, "window": window})
        for name, (preset, sizes, key, window) in _PRESETS.items()
    ]


def _file(text: str) -> Asked:
    """A recorded stream: its path, and its columns of time, arrival and key, and a window, with commas between."""
    path, time, arrival, key, window = text.split(",")
    return Asked(Path(path).parent.name, path, {"time": time, "arrival": arrival, "key": key, "window": window})
