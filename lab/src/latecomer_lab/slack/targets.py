"""What is to be reached, on days that the models never saw."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from latecomer.report.shape import Target
from latecomer_lab.slack.prediction import HALVES, MOVED, OTHER_DAYS, Score, of_table
from latecomer_lab.slack.structures import READ_MS
from latecomer_lab.slack.tuning import TUNER, Day

_VIOLATED = 1.0  # per cent of the intervals
_TIMES_BEST = {"rush": 0.35}
_LATENCY_ERROR, _READY_ERROR = 5.0, 15.0
_FIT_SECONDS, _DECISION_MS = 2.0, 10.0


def day_targets(days: Mapping[str, Sequence[Day]]) -> Iterator[Target]:
    """For each scenario the worst of its days."""
    for name, each in days.items():
        worst = max(day.tuned[TUNER].violated for day in each)
        yield Target(f"{name}: deadline violated, % of intervals", round(100 * worst, 2), _VIOLATED, at_least=False)
        ratio, most = max(day.times_best(TUNER) for day in each), _TIMES_BEST.get(name, 1.1)
        yield Target(f"{name}: slack-ready rows / best fixed slack", round(ratio, 3), most, at_least=False)
        ratio = max(day.times_policies(TUNER) for day in each)
        yield Target(f"{name}: slack-ready rows / best policy that holds", round(ratio, 3), 0.999, at_least=False)
        ratio = min(day.times_events(TUNER) for day in each)
        yield Target(f"{name}: events / best policy that holds", round(ratio, 3), 1.0)
    took = max(day.tuned[TUNER].decision_ms for name, each in days.items() if name != "graph" for day in each)
    yield Target("a decision for one stage, median ms", took, _DECISION_MS, at_least=False)


def score_targets(scores: Mapping[str, Sequence[Score]]) -> Iterator[Target]:
    """The errors of the Gaussian process, and that it is the best of the four, and fast."""
    for name, each in scores.items():
        tests = (HALVES, OTHER_DAYS, MOVED) if name == "zipf" else (HALVES, OTHER_DAYS)
        for tested_on in tests:
            by_model = of_table(each, tested_on)
            found = by_model["gaussian"]
            where = f"{name}, {tested_on}: error of"
            yield Target(f"{where} latency, %", found.latency_error, _LATENCY_ERROR, at_least=False)
            yield Target(f"{where} slack-ready rows, %", found.ready_error, _READY_ERROR, at_least=False)
            if name == "zipf":
                others = [score for model, score in by_model.items() if model != "gaussian"]
                ratio = found.latency_error / min(score.latency_error for score in others)
                yield Target(f"{where} latency / best other model", round(ratio, 3), 1.0, at_least=False)
                ratio = found.ready_error / min(score.ready_error for score in others)
                yield Target(f"{where} slack-ready rows / best other model", round(ratio, 3), 1.0, at_least=False)
    slowest = max(score.seconds_a_fit for each in scores.values() for score in each if score.model == "gaussian")
    yield Target("a fit of a Gaussian process, s", slowest, _FIT_SECONDS, at_least=False)


def structure_targets(rows: Sequence[Mapping[str, Any]]) -> Iterator[Target]:
    """Figure 8: how long a read takes, with the number of readers where it takes longest."""
    taken = [row["read_ms"] for row in rows if row["figure"] == "8"]
    if taken:
        yield Target("a read from the gate, ms", max(taken), READ_MS, at_least=False)


def live_targets(rows: Sequence[Mapping[str, Any]]) -> Iterator[Target]:
    """The live run: the tuner holds the deadline, the time of micro-batches counted."""
    for row in rows:
        if row["policy"] == TUNER:
            name = "live on Spark: deadline violated, % of micro-batches after warm-up"
            yield Target(name, row["violated_percent"], _VIOLATED, at_least=False)
