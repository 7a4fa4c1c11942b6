"""The cluster of an experiment: what things cost, where documents and words are worked on, and what load that is.

Load is the share of its time that the busiest worker needs when nothing is done twice: its share of splitting, the
items of its words, its updates, and a punctuation for each document. Words fall to workers by chance, so the busiest
has some hot words more than others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from latecomer.disorder.chance import draws
from latecomer_lab.optimistic.documents import Document

WORD_US, ITEM_US = 20.0, 100.0
MESSAGE_US, CHEAP_MESSAGE_US = 50.0, 10.0
SECOND_US = 1e6


class Job(NamedTuple):
    """Documents at a fixed rate, and the number of workers."""

    documents: Sequence[Document]
    workers: int
    rate: float
    seed: int
    message_us: float = MESSAGE_US

    def issued_us(self, document: int) -> float:
        """When a document comes in."""
        return document * SECOND_US / self.rate


@dataclass(frozen=True)
class Placement:
    """Which worker splits each document, and which one has each word."""

    workers: int
    splitters: list[int]
    words: list[int]

    @classmethod
    def by_chance(cls, documents: Sequence[Document], workers: int, seed: int) -> Placement:
        """Both by chance."""
        last = max(max(document.items) for document in documents)
        splitters, words = (
            (draws(seed, f"optimistic/{what}", np.arange(size)) * workers).astype(int).tolist()
            for what, size in (("splitters", len(documents)), ("words", last + 1))
        )
        return cls(workers, splitters, words)

    def sink(self, document: int) -> int:
        """The worker that gives a document's update."""
        return document % self.workers

    def spread(self, items: Sequence[int]) -> dict[int, list[int]]:
        """The items of a document by worker."""
        found: dict[int, list[int]] = {}
        for word in items:
            found.setdefault(self.words[word], []).append(word)
        return found


def busiest_us(documents: Sequence[Document], workers: int, seed: int) -> float:
    """What a document costs the busiest worker."""
    placement = Placement.by_chance(documents, workers, seed)
    items = np.bincount([placement.words[word] for document in documents for word in document.items], minlength=workers)
    split_us = WORD_US * sum(document.words for document in documents) / workers
    each_us = (ITEM_US * int(items.max()) + split_us) / len(documents)
    return each_us + ITEM_US / workers + MESSAGE_US
