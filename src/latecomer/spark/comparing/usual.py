"""The ways that are compared where none is named: chosen by how late the stream's events are."""

from __future__ import annotations

import numpy as np

from latecomer.disorder.measures import lateness
from latecomer.spark.comparing.question import Question
from latecomer.spark.comparing.recorded import RecordedStream
from latecomer.spark.comparing.ways import Way, read_way

_ROUND = [step * unit for unit in (1_000, 1_000_000, 60_000_000) for step in (1, 2, 5, 10, 20, 30)] + [
    step * unit
    for unit, steps in ((3_600_000_000, (1, 2, 6, 12)), (86_400_000_000, (1, 2, 5, 10, 20, 50)))
    for step in steps
]
_UNITS = (
    ("day", 86_400_000_000),
    ("hour", 3_600_000_000),
    ("minute", 60_000_000),
    ("second", 1_000_000),
    ("ms", 1_000),
)


def usual_ways(stream: RecordedStream, question: Question, holes: str = "holes='anywhere'") -> list[Way]:
    """Spark's watermark and every strategy, with a wait for nine of ten late events and one for all of them."""
    late_us = lateness(stream.counted[1], stream.tick[~stream.aside])
    late_us = np.sort(late_us[late_us > 0])
    short, long = (
        _rounded(int(late_us[int(share * (len(late_us) - 1))]) + 1 if len(late_us) else 1) for share in (0.9, 1.0)
    )
    bound = _rounded(max(_us(long), question.window.size_us))
    waits = f"'{short}'" if short == long else f"'{short}', '{long}'"
    texts = [
        f"withWatermark('{short}')",
        f"withWatermark('{short}', mode='update')",
        f"withWatermark('{long}')",
        f"reorder('{short}')",
        f"tiers({waits})",
        *([f"slack('{short}')"] if stream.roles.source is not None else []),
        f"optimistic('{bound}')",
        f"timetravel('{bound}', {holes}, trigger='eager')",
        f"timetravel('{bound}', {holes})",
    ]
    return [read_way(text) for text in dict.fromkeys(texts)]


def _rounded(us: int) -> str:
    """The shortest round duration that is not shorter; beyond the longest, in days."""
    for rung in _ROUND:
        if us <= rung:
            return _text(rung)
    return f"{-(-us // 86_400_000_000)} days"


def _text(us: int) -> str:
    unit, size = next((unit, size) for unit, size in _UNITS if us % size == 0)
    count = us // size
    return f"{count} {unit}" if count == 1 or unit == "ms" else f"{count} {unit}s"


def _us(text: str) -> int:
    from latecomer.durations import duration_us

    return duration_us(text, "wait")
