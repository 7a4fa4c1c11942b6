"""What holds items back at the sinks: the barrier of the optimistic model, and buffers with watermarks.

Both have the documents of one worker, and both say how long items waited.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from latecomer_lab.optimistic.inverted_index import Update, update_of

Entry = tuple[int, int, int]  # word, place, and +1 or -1: a tombstone


class Released(NamedTuple):
    """The update of a document, and when each of its items came."""

    document: int
    update: Update
    came_us: list[float]


class Barrier:
    """Algorithm 3: tombstones cancel their items; a punctuation releases documents before it, in order."""

    def __init__(self, first: int, apart: int) -> None:
        self._next, self._apart = first, apart
        self._standing: dict[int, dict[tuple[int, int], float]] = {}
        self.items = self.tombstones = 0

    def take(self, document: int, entries: Sequence[Entry], at_us: float) -> None:
        """Take items and tombstones of a document."""
        standing = self._standing.setdefault(document, {})
        for word, place, change in entries:
            if change > 0:
                standing[word, place] = at_us
            else:
                standing.pop((word, place), None)
                self.tombstones += 1
        self.items += len(entries)

    def release(self, end: int) -> Iterator[Released]:
        """Give the documents before one."""
        while self._next < end:
            standing = self._standing.pop(self._next, {})
            yield Released(self._next, update_of(standing), list(standing.values()))
            self._next += self._apart


class Watermarks:
    """The least watermark of several inputs (section IV-B)."""

    def __init__(self, inputs: int) -> None:
        self._marks = [-1] * inputs
        self.least = -1

    def advance(self, source: int, mark: int) -> bool:
        """Take a watermark of an input; whether the least one has moved."""
        moved = self._marks[source] == self.least
        self._marks[source] = mark
        if moved:
            least = min(self._marks)
            moved, self.least = least > self.least, least
        return moved
