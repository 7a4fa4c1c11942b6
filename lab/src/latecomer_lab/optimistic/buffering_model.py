"""What the paper compares with (sections IV-B and VI-C): a buffer before every step that needs order, and watermarks.

After each document the source sends a watermark to every worker. A worker sends one on to every worker when it has
split what came before it, and again when its buffer has given the words before it to the fold. What a worker sends to
itself is no message.
"""

from __future__ import annotations

from latecomer_lab.optimistic.barrier import Barrier, Entry, Watermarks
from latecomer_lab.optimistic.cluster import ITEM_US, Job
from latecomer_lab.optimistic.inverted_index import post
from latecomer_lab.optimistic.model import Model
from latecomer_lab.optimistic.network import Take

WORD_BUFFER, DOCUMENT_BUFFER = "buffer of words", "buffer of documents"

Mark = tuple[int, int]  # the worker that sends it, and a document: no more of it or any before


class BufferingModel(Model):
    """Wait before the fold and before the updates until nothing earlier can come."""

    def __init__(self, job: Job) -> None:
        super().__init__(job)
        workers = range(job.workers)
        self._waiting: list[dict[int, list[tuple[float, list[int]]]]] = [{} for _ in workers]
        self._folded = [-1 for _ in workers]
        self._lengths: list[dict[int, int]] = [{} for _ in workers]
        self._word_marks = [Watermarks(job.workers) for _ in workers]
        self._document_marks = [Watermarks(job.workers) for _ in workers]
        self._updates = [Barrier(worker, job.workers) for worker in workers]

    def issue(self, now_us: float, node: int, document: int) -> None:
        """Send a document to its worker, and a watermark to all."""
        self.network.send(now_us, node, self.placement.splitters[document], self._take_document, document)
        self._send_marks(now_us, node, self._take_source_mark, document)

    def _send_marks(self, at_us: float, node: int, take: Take, document: int) -> None:
        for worker in range(self.job.workers):
            self.network.send(at_us, node, worker, take, (node, document))

    def _take_mark(self, now_us: float, worker: int, sender: int) -> float:
        return self.network.free_at(now_us, worker) if sender == worker else self.message(now_us, worker)

    def _take_document(self, now_us: float, worker: int, document: int) -> None:
        done_us, words = self.split(now_us, worker, document)
        for node, part in words.items():
            self.network.send(done_us, worker, node, self._take_words, (document, part))

    def _take_source_mark(self, now_us: float, worker: int, mark: Mark) -> None:
        self._send_marks(self._take_mark(now_us, worker, mark[0]), worker, self._take_word_mark, mark[1])

    def _take_words(self, now_us: float, worker: int, packet: tuple[int, list[int]]) -> None:
        document, words = packet
        at_us = self.network.free_at(now_us, worker)
        self._waiting[worker].setdefault(document, []).append((at_us, words))

    def _take_word_mark(self, now_us: float, worker: int, mark: Mark) -> None:
        """Fold the documents that all watermarks have passed, in order, and send a watermark on."""
        done_us = self._take_mark(now_us, worker, mark[0])
        marks = self._word_marks[worker]
        if marks.advance(*mark):
            for document in range(self._folded[worker] + 1, marks.least + 1):
                done_us = self._fold(now_us, worker, document)
            self._folded[worker] = marks.least
            self._send_marks(done_us, worker, self._take_document_mark, marks.least)

    def _fold(self, now_us: float, worker: int, document: int) -> float:
        """Fold the words of a document: when that is done."""
        at_us, entries = self.network.free_at(now_us, worker), list[Entry]()
        lengths, waits_us = self._lengths[worker], self.outcome.waits_us.setdefault(WORD_BUFFER, [])
        for came_us, words in self._waiting[worker].pop(document, ()):
            waits_us.extend([at_us - came_us] * len(words))
            for word in words:
                lengths[word], place = post(lengths.get(word, 0), None)
                entries.append((word, place, 1))
        done_us = self.network.work(now_us, worker, ITEM_US * len(entries))
        if entries:
            self.network.send(done_us, worker, self.placement.sink(document), self._take_entries, (document, entries))
        return done_us

    def _take_entries(self, now_us: float, worker: int, packet: tuple[int, list[Entry]]) -> None:
        self._updates[worker].take(*packet, self.network.free_at(now_us, worker))

    def _take_document_mark(self, now_us: float, worker: int, mark: Mark) -> None:
        self._take_mark(now_us, worker, mark[0])
        marks = self._document_marks[worker]
        if marks.advance(*mark):
            for released in self._updates[worker].release(marks.least + 1):
                self.give(now_us, worker, released, DOCUMENT_BUFFER)

    def count_items(self) -> None:
        """Count what came to the buffers of documents."""
        self.outcome.items = sum(buffer.items for buffer in self._updates)
        self.outcome.tombstones = sum(buffer.tombstones for buffer in self._updates)
