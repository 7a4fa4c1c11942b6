"""One run of one model, and what is kept of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from latecomer_lab.optimistic.buffering_model import BufferingModel
from latecomer_lab.optimistic.cluster import Job
from latecomer_lab.optimistic.documents import Document
from latecomer_lab.optimistic.inverted_index import Update
from latecomer_lab.optimistic.model import Model, Outcome
from latecomer_lab.optimistic.optimistic_model import OptimisticModel

OPTIMISTIC, BUFFERING = "optimistic", "buffering"
MODELS: dict[str, type[Model]] = {OPTIMISTIC: OptimisticModel, BUFFERING: BufferingModel}
PERCENTILES = (50, 75, 95, 99)
SOME, MANY = 5, 10  # workers of Figure 12, and of Figures 10 and 11
USUAL_LOAD, HIGH_LOAD, FULL_LOAD = 0.6, 0.8, 1.0  # up to the first, load is taken to be "non-extreme"
COMPARED_LOADS = (0.2, 0.4, USUAL_LOAD)


@dataclass(frozen=True)
class Trial:
    """A model, its workers, the rate of documents, what a message costs, and a seed; `at` names the rate or load."""

    model: str
    workers: int
    at: str
    rate: float
    load: float
    message_us: float
    seed: int


@dataclass(frozen=True)
class Measured:
    """What came of a trial; times are percentiles 50, 75, 95 and 99."""

    trial: Trial
    ratio: float
    tombstones: int
    latency_ms: list[float]
    waits_ms: dict[str, list[float]]
    messages: float  # for each document
    busiest: float
    acker: float
    differ: int  # updates that are not those of the sequential index


def measure(trial: Trial, documents: Sequence[Document], expected: Sequence[Update]) -> Measured:
    """Run a trial."""
    job = Job(documents, trial.workers, trial.rate, trial.seed, trial.message_us)
    outcome = MODELS[trial.model](job).run()
    return Measured(
        trial,
        outcome.ratio,
        outcome.tombstones,
        _percentiles_ms(outcome.latency_us),
        {name: _percentiles_ms(waits_us) for name, waits_us in outcome.waits_us.items()},
        round(outcome.messages / len(documents), 2),
        round(max(outcome.busy[: trial.workers]), 3),
        round(outcome.busy[-1], 3),
        count_different(outcome, expected),
    )


def count_different(outcome: Outcome, expected: Sequence[Update]) -> int:
    """How many updates are missing or not as in the sequential index."""
    return sum(update != right for update, right in zip(outcome.updates, expected, strict=True))


def _percentiles_ms(values_us: Sequence[float]) -> list[float]:
    found: list[float] = np.round(np.percentile(values_us, PERCENTILES) / 1_000.0, 3).tolist()
    return found
