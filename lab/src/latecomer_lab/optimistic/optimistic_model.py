"""The paper's model (section V): words are folded as they come, one barrier at the sinks, and an acker.

Words of a document that go to one worker travel as one packet, and so do the changes that a packet makes at one sink.
Each packet has a number for each document that it speaks of; the acker sees the numbers that were sent and handled. A
task's numbers leave in one message: so no document seems complete while an earlier one is still changing it.
"""

from __future__ import annotations

from random import Random

from latecomer_lab.optimistic.acker import AckBatch, Acker
from latecomer_lab.optimistic.barrier import Barrier, Entry
from latecomer_lab.optimistic.cluster import ITEM_US, Job
from latecomer_lab.optimistic.inverted_index import post
from latecomer_lab.optimistic.key_history import KeyHistory
from latecomer_lab.optimistic.model import Model

BARRIER = "barrier"
_BITS = 62

Words = tuple[int, int, list[int]]  # document, number of the packet, words
Changes = list[tuple[int, int, list[Entry]]]  # by document: its number of the packet, and what changes


class OptimisticModel(Model):
    """Answer at once, take back what was wrong, and give updates that are final."""

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        self._tracker = Acker(len(job.documents))
        self._number = Random(~job.seed)
        self._histories: list[dict[int, KeyHistory]] = [{} for _ in range(job.workers)]
        self._barriers = [Barrier(worker, job.workers) for worker in range(job.workers)]
        self._batches = [AckBatch() for _ in range(job.workers)]

    def issue(self, now_us: float, node: int, document: int) -> None:
        """Send a document to its worker, and tell the acker."""
        number = self._number.getrandbits(_BITS)
        splitter = self.placement.splitters[document]
        self.network.send(now_us, node, splitter, self._take_document, (document, number))
        self.network.send(now_us, node, self.acker, self._take_issued, (document, number))

    def _take_document(self, now_us: float, worker: int, packet: tuple[int, int]) -> None:
        document, acks = packet
        done_us, words = self.split(now_us, worker, document)
        for node, part in words.items():
            number = self._number.getrandbits(_BITS)
            acks ^= number
            self.network.send(done_us, worker, node, self._take_words, (document, number, part))
        self._acknowledge(worker, done_us, {document: acks})

    def _take_words(self, now_us: float, worker: int, packet: Words) -> None:
        """Fold the words of a document, and all that they change."""
        document, number, words = packet
        changes = self._fold(worker, document, words)
        items = sum(len(entries) for entries in changes.values())
        done_us = self.network.work(now_us, worker, ITEM_US * items)
        acks, packets = {document: number}, dict[int, Changes]()
        for changed, entries in changes.items():
            number = self._number.getrandbits(_BITS)
            acks[changed] = acks.get(changed, 0) ^ number
            packets.setdefault(self.placement.sink(changed), []).append((changed, number, entries))
        for node, part in packets.items():
            self.network.send(done_us, worker, node, self._take_changes, part)
        self._acknowledge(worker, done_us, acks)

    def _fold(self, worker: int, document: int, words: list[int]) -> dict[int, list[Entry]]:
        """What changes, by document."""
        histories, changes = self._histories[worker], dict[int, list[Entry]]()
        for word in words:
            history = histories.get(word)
            if history is None:
                history = histories[word] = KeyHistory(post, 0)
            for changed, place, change in history.insert(document, None):
                changes.setdefault(changed, []).append((word, place, change))
        return changes

    def _take_changes(self, now_us: float, worker: int, packet: Changes) -> None:
        at_us = self.network.free_at(now_us, worker)
        for document, _, entries in packet:
            self._barriers[worker].take(document, entries, at_us)
        self._acknowledge(worker, at_us, {document: number for document, number, _ in packet})

    def _acknowledge(self, worker: int, at_us: float, acks: dict[int, int]) -> None:
        """Let a worker say with its next message what it has sent and handled."""
        batch = self._batches[worker]
        if batch.sent or at_us > batch.leaves_us:
            batch = self._batches[worker] = batch.next_after(at_us)
            self.network.at(batch.leaves_us, self._send_acks, worker, batch)
        for document, value in acks.items():
            batch.values[document] = batch.values.get(document, 0) ^ value

    def _send_acks(self, now_us: float, worker: int, batch: AckBatch) -> None:
        batch.sent = True
        self.network.send(now_us, worker, self.acker, self._take_acks, batch.values)

    def _take_issued(self, now_us: float, node: int, packet: tuple[int, int]) -> None:
        document, number = packet
        self._tracker.issue(document)
        self._take_acks(now_us, node, {document: number})

    def _take_acks(self, now_us: float, node: int, acks: dict[int, int]) -> None:
        """The acker tells all workers when its front moves."""
        done_us = self.message(now_us, node)
        if self._tracker.acknowledge(acks):
            for worker in range(self.job.workers):
                self.network.send(done_us, node, worker, self._take_punctuation, self._tracker.front)

    def _take_punctuation(self, now_us: float, worker: int, front: int) -> None:
        self.message(now_us, worker)
        for released in self._barriers[worker].release(front):
            self.give(now_us, worker, released, BARRIER)

    def count_items(self) -> None:
        """Count what came to the barriers."""
        self.outcome.items = sum(barrier.items for barrier in self._barriers)
        self.outcome.tombstones = sum(barrier.tombstones for barrier in self._barriers)
