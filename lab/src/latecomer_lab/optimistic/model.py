"""What both models have in common: a source, documents that are split into words, updates, and what came of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

from latecomer_lab.optimistic.barrier import Released
from latecomer_lab.optimistic.cluster import ITEM_US, SECOND_US, WORD_US, Job, Placement
from latecomer_lab.optimistic.inverted_index import Update
from latecomer_lab.optimistic.network import Network


@dataclass
class Outcome:
    """Updates and latencies of all documents; waits of items by buffer; items at the sinks, tombstones among them."""

    updates: list[Update | None]
    latency_us: list[float]
    waits_us: dict[str, list[float]] = field(default_factory=dict)
    items: int = 0
    tombstones: int = 0
    messages: int = 0
    busy: list[float] = field(default_factory=list)  # the share of its time that each node worked

    @property
    def valid(self) -> int:
        """Items that were right in the end."""
        return sum(len(update) for update in self.updates if update is not None)

    @property
    def ratio(self) -> float:
        """(valid + invalid + tombstones) / valid."""
        return self.items / self.valid


class Model(ABC):
    """A pipeline on several workers, of which each does everything; the source and the acker are nodes too."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.source, self.acker = job.workers, job.workers + 1
        self.placement = Placement.by_chance(job.documents, job.workers, job.seed)
        self.network = Network(job.workers + 2, job.seed)
        size = len(job.documents)
        self.outcome = Outcome([None] * size, [0.0] * size)

    def run(self) -> Outcome:
        """Run all documents."""
        for document in range(len(self.job.documents)):
            self.network.at(self.job.issued_us(document), self.issue, self.source, document)
        self.network.run()
        last_us = len(self.job.documents) * SECOND_US / self.job.rate
        until_us = max(last_us, *(self.network.free_at(0.0, node) for node in range(self.acker + 1)))
        self.outcome.busy = [worked_us / until_us for worked_us in self.network.worked_us]
        self.count_items()
        return self.outcome

    @abstractmethod
    def issue(self, now_us: float, node: int, document: int) -> None:
        """A document comes in."""

    @abstractmethod
    def count_items(self) -> None:
        """Count what came to the sinks."""

    def message(self, now_us: float, node: int) -> float:
        """Take a message: when that is done."""
        self.outcome.messages += 1
        return self.network.work(now_us, node, self.job.message_us)

    def split(self, now_us: float, worker: int, document: int) -> tuple[float, dict[int, list[int]]]:
        """Split a document: when that is done, and its words by worker."""
        words, items = self.job.documents[document]
        return self.network.work(now_us, worker, WORD_US * words), self.placement.spread(items)

    def give(self, now_us: float, worker: int, released: Released, buffer: str) -> None:
        """Give the update of a document."""
        free_us = self.network.free_at(now_us, worker)
        self.outcome.waits_us.setdefault(buffer, []).extend(free_us - came_us for came_us in released.came_us)
        done_us = self.network.work(now_us, worker, ITEM_US)
        self.outcome.updates[released.document] = released.update
        self.outcome.latency_us[released.document] = done_us - self.job.issued_us(released.document)
