"""`latecomer reproduce optimistic`: Figures 9 to 12 of the paper in simulated time, with several seeds.

Figure 9 has every number of workers at every rate, up to load 1: above it a backlog only grows. Figures 10 to 12 have
both models with ten and with five workers. Some trials are at a load instead of a rate, since targets are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from latecomer.errors import InputError, must
from latecomer.report.shape import Report
from latecomer_lab.optimistic.cluster import CHEAP_MESSAGE_US, ITEM_US, MESSAGE_US, SECOND_US, WORD_US, busiest_us
from latecomer_lab.optimistic.documents import Document, choose_documents, make_documents, read_documents
from latecomer_lab.optimistic.figures import figure_9, figure_11, figures_10_and_12
from latecomer_lab.optimistic.inverted_index import Update, sequential_index
from latecomer_lab.optimistic.targets import targets
from latecomer_lab.optimistic.trials import (
    BUFFERING,
    COMPARED_LOADS,
    FULL_LOAD,
    HIGH_LOAD,
    MANY,
    MODELS,
    OPTIMISTIC,
    SOME,
    USUAL_LOAD,
    Measured,
    Trial,
    measure,
)

_HIGHEST_LOAD = 1.02

Tell = Callable[[str], None]


@dataclass(frozen=True)
class OptimisticExperiments:
    """Sizes of a run."""

    seed: int = 0
    seeds: int = 3
    documents: int = 800
    workers: tuple[int, ...] = tuple(range(1, 11))
    rates: tuple[float, ...] = (100, 200, 300, 400, 500, 600)
    texts: Path | None = None


QUICK = OptimisticExperiments(seeds=2, documents=300, workers=(1, 2, 3, 5, 10), rates=(200, 400, 600))


class Corpus:
    """The documents of each seed, their sequential index, and what load a rate is."""

    def __init__(self, settings: OptimisticExperiments) -> None:
        self._count = settings.documents
        self._texts = None if settings.texts is None else read_documents(settings.texts)
        self.of = cache(self._of)
        self.busiest_us = cache(self._busiest_us)

    def _of(self, seed: int) -> tuple[list[Document], list[Update]]:
        if self._texts is None:
            documents = make_documents(seed, self._count)
        else:
            documents = choose_documents(self._texts, seed, self._count)
        return documents, sequential_index(documents)

    def _busiest_us(self, workers: int, seed: int) -> float:
        return busiest_us(self.of(seed)[0], workers, seed)

    def work_ms(self, seed: int) -> float:
        """What a document costs all workers when nothing is done twice, without messages."""
        documents, _ = self.of(seed)
        spent_us = sum(WORD_US * each.words + ITEM_US * (len(each.items) + 1) for each in documents)
        return spent_us / len(documents) / 1_000.0

    def at_rate(self, model: str, workers: int, rate: float, message_us: float, seed: int) -> Trial:
        """A trial at a rate."""
        load = rate * self.busiest_us(workers, seed) / SECOND_US
        return Trial(model, workers, f"{rate:g}/s", rate, round(load, 3), message_us, seed)

    def at_load(self, model: str, workers: int, load: float, message_us: float, seed: int) -> Trial:
        """A trial at a load."""
        rate = round(load * SECOND_US / self.busiest_us(workers, seed), 1)
        return Trial(model, workers, f"load {load:g}", rate, load, message_us, seed)


def plan(settings: OptimisticExperiments, corpus: Corpus) -> list[Trial]:
    """All trials, each once."""
    seeds = range(settings.seed, settings.seed + settings.seeds)
    found = (each for seed in seeds for part in (_figure_9, _compared) for each in part(settings, corpus, seed))
    return list(dict.fromkeys(found))


def _figure_9(settings: OptimisticExperiments, corpus: Corpus, seed: int) -> Iterator[Trial]:
    for workers in settings.workers:
        yield corpus.at_load(OPTIMISTIC, workers, USUAL_LOAD, MESSAGE_US, seed)
        for rate in settings.rates:
            trial = corpus.at_rate(OPTIMISTIC, workers, rate, MESSAGE_US, seed)
            if trial.load <= _HIGHEST_LOAD:
                yield trial


def _compared(settings: OptimisticExperiments, corpus: Corpus, seed: int) -> Iterator[Trial]:
    for message_us in (MESSAGE_US, CHEAP_MESSAGE_US):
        for model in MODELS:
            for workers in (SOME, MANY):
                at_rates = (corpus.at_rate(model, workers, rate, message_us, seed) for rate in settings.rates)
                yield from (trial for trial in at_rates if trial.load <= _HIGHEST_LOAD)
            yield corpus.at_load(model, SOME, FULL_LOAD, message_us, seed)
            loads = (*COMPARED_LOADS, HIGH_LOAD)
            yield from (corpus.at_load(model, MANY, load, message_us, seed) for load in loads)
    rate = corpus.at_load(BUFFERING, MANY, USUAL_LOAD, MESSAGE_US, seed).rate
    yield corpus.at_rate(BUFFERING, MANY + 1, rate, MESSAGE_US, seed)


def run(settings: OptimisticExperiments, tell: Tell) -> tuple[Report, list[Measured]]:
    """All experiments."""
    tell("documents")
    corpus, found = Corpus(settings), list[Measured]()
    _check_rates(settings, corpus)
    trials = plan(settings, corpus)
    for number, trial in enumerate(trials, 1):
        if number % 10 == 1:
            tell(f"{number} of {len(trials)}: {trial.model}, workers: {trial.workers}, {trial.at}, seed {trial.seed}")
        found.append(measure(trial, *corpus.of(trial.seed)))
    return make_report(settings, corpus.work_ms(settings.seed), found), found


def _check_rates(settings: OptimisticExperiments, corpus: Corpus) -> None:
    """The least rate must be one that five workers can take."""
    trial = corpus.at_rate(OPTIMISTIC, SOME, min(settings.rates), MESSAGE_US, settings.seed)
    if trial.load > 0.9:
        most = int(0.9 * trial.rate / trial.load)
        rule = f"have a rate that {SOME} workers can take, for these documents up to {most}"
        raise InputError(must("--rates", rule, min(settings.rates), "add a lower one"))


def make_report(settings: OptimisticExperiments, work_ms: float, found: list[Measured]) -> Report:
    """All results, and what was to be reached."""
    texts = None if settings.texts is None else str(settings.texts)
    report = Report("optimistic", {**asdict(settings), "texts": texts, "work_ms_per_document": round(work_ms, 3)})
    report.results = [*figure_9(found), *figures_10_and_12(found), *figure_11(found)]
    report.targets = list(targets(found))
    return report
