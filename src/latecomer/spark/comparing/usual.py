"""The ways that are compared where none is named: chosen by how late the stream's events are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from latecomer.disorder.measures import lateness
from latecomer.durations import duration_text, duration_us
from latecomer.spark.comparing.question import Question
from latecomer.spark.comparing.recorded import RecordedStream
from latecomer.spark.comparing.ways import Way, read_way

_DAY_US = 86_400_000_000
_MOST_DAYS = 36_500  # the longest wait that a query takes
_STEPS = {
    1_000: (1, 2, 5, 10, 20, 50, 100, 200, 500),
    1_000_000: (1, 2, 5, 10, 20, 30),
    60_000_000: (1, 2, 5, 10, 20, 30),
    3_600_000_000: (1, 2, 6, 12),
    _DAY_US: (1, 2, 5, 10, 20, 50),
}
_ROUND = [step * unit for unit, steps in _STEPS.items() for step in steps]


def usual_ways(stream: RecordedStream, question: Question, holes: str = "holes='anywhere'") -> list[Way]:
    """Spark's watermark and every strategy, with a wait for nine of ten late events and one for all of them."""
    short, long = round_waits(stream, (0.9, 1.0))
    bound = bound_of(stream, question)
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


def round_waits(stream: RecordedStream, shares: Sequence[float]) -> list[str]:
    """Round waits that are longer than these shares of the late events are late, and at least a tick."""
    late_us = lateness(stream.counted[1], stream.tick[~stream.aside])
    late_us = np.sort(late_us[late_us > 0])
    if len(late_us) == 0:
        return [rounded(stream.tick_us)] * len(shares)
    last = len(late_us) - 1
    return [rounded(max(stream.tick_us, int(late_us[int(np.ceil(share * last))]) + 1)) for share in shares]


def bound_of(stream: RecordedStream, question: Question) -> str:
    """A round bound that no event is later than, and that is at least a window."""
    (longest,) = round_waits(stream, (1.0,))
    return rounded(max(duration_us(longest, "wait"), question.window.size_us))


def rounded(us: int) -> str:
    """The shortest round duration that is not shorter; beyond the longest, in days, a century at most."""
    rung = next((rung for rung in _ROUND if us <= rung), min(-(-us // _DAY_US), _MOST_DAYS) * _DAY_US)
    return duration_text(rung)
