"""The paper's figures as rows for the report, and what seeds have in common for tables and pictures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from latecomer_lab.optimistic.cluster import MESSAGE_US
from latecomer_lab.optimistic.trials import BUFFERING, MANY, OPTIMISTIC, PERCENTILES, SOME, Measured

_FIGURES = {SOME: "12", MANY: "10"}

Row = dict[str, Any]


def figure_9(found: Iterable[Measured]) -> list[Row]:
    """The ratio by workers and rate."""
    return [
        {"figure": "9", **_trial(each), "ratio": round(each.ratio, 4), "tombstones": each.tombstones}
        for each in of_figure_9(found)
    ]


def of_figure_9(found: Iterable[Measured]) -> Iterator[Measured]:
    """Optimistic runs with messages of the usual cost."""
    return (each for each in found if each.trial.model == OPTIMISTIC and each.trial.message_us == MESSAGE_US)


def figures_10_and_12(found: Iterable[Measured]) -> list[Row]:
    """Latencies of both models with ten and with five workers; with eleven, the acker's node works for buffering."""
    return [
        {
            "figure": _FIGURES.get(each.trial.workers, "ours"),
            **_trial(each),
            **_percentiles("latency", each.latency_ms),
            "messages_per_document": each.messages,
            "busiest_worker": each.busiest,
            "acker": each.acker,
        }
        for each in found
        if each.trial.workers in (SOME, MANY, MANY + 1)
    ]


def figure_11(found: Iterable[Measured]) -> list[Row]:
    """How long items wait, in the barrier and in each buffer."""
    return [
        {"figure": "11", **_trial(each), "where": where, **_percentiles("wait", waits_ms)}
        for each in found
        if each.trial.workers == MANY
        for where, waits_ms in each.waits_ms.items()
    ]


def _trial(each: Measured) -> Row:
    trial = each.trial
    return {
        "model": trial.model,
        "workers": trial.workers,
        "at": trial.at,
        "documents_per_second": trial.rate,
        "load": trial.load,
        "message_us": trial.message_us,
        "seed": trial.seed,
    }


def _percentiles(what: str, values_ms: Sequence[float]) -> Row:
    return {f"{what}_p{percent}_ms": value for percent, value in zip(PERCENTILES, values_ms, strict=True)}


class Point:
    """The trials of one model at one rate or load, with all seeds."""

    def __init__(self, trials: Sequence[Measured]) -> None:
        self.trials = trials
        self.trial = trials[0].trial

    @property
    def at_load(self) -> bool:
        """Whether a load was asked for, not a rate."""
        return self.trial.at.startswith("load")

    @property
    def rate(self) -> float:
        """Documents a second; at a load it differs a little by seed."""
        return float(np.mean([each.trial.rate for each in self.trials]))

    @property
    def load(self) -> float:
        """The load of the busiest worker."""
        return float(np.mean([each.trial.load for each in self.trials]))

    @property
    def ratio(self) -> float:
        """The largest."""
        return max(each.ratio for each in self.trials)

    @property
    def latency_ms(self) -> list[float]:
        """For each percentile the median of the seeds."""
        found: list[float] = np.median([each.latency_ms for each in self.trials], axis=0).tolist()
        return found

    def waits_ms(self, where: str) -> list[float]:
        """For each percentile the median of the seeds."""
        found: list[float] = np.median([each.waits_ms[where] for each in self.trials], axis=0).tolist()
        return found

    @property
    def messages(self) -> float:
        """Messages for each document."""
        return float(np.mean([each.messages for each in self.trials]))


def points(found: Iterable[Measured], model: str, workers: int, message_us: float) -> list[Point]:
    """The points of a line, by rate."""
    together: dict[str, list[Measured]] = {}
    for each in found:
        if (each.trial.model, each.trial.workers, each.trial.message_us) == (model, workers, message_us):
            together.setdefault(each.trial.at, []).append(each)
    return sorted(map(Point, together.values()), key=lambda point: point.rate)


def both_models(found: Sequence[Measured], workers: int, message_us: float) -> list[tuple[Point, Point]]:
    """Optimistic beside buffering, by rate."""
    theirs = {point.trial.at: point for point in points(found, BUFFERING, workers, message_us)}
    line = points(found, OPTIMISTIC, workers, message_us)
    return [(ours, theirs[ours.trial.at]) for ours in line if ours.trial.at in theirs]


def compared(found: Sequence[Measured], workers: int, message_us: float) -> list[tuple[Point, Point]]:
    """Both models at every rate, and at loads beyond the last rate."""
    both = both_models(found, workers, message_us)
    last = max((ours.rate for ours, _ in both if not ours.at_load), default=0.0)
    return [(ours, theirs) for ours, theirs in both if not ours.at_load or ours.rate > last]
