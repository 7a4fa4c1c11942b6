"""The task of the paper's experiments: for each word of a document its place in the word's posting list.

The positions inside a document ride along with an item and change nothing: they are left out. An update of a document
is all its words with their places.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from latecomer_lab.optimistic.documents import Document

Update = list[tuple[int, int]]  # word and place, by word


def post(length: int, _: object) -> tuple[int, int]:
    """Append to a posting list of some length: the new length, and the place."""
    return length + 1, length + 1


def update_of(entries: Iterable[tuple[int, int]]) -> Update:
    """One update from the entries of a document."""
    return sorted(entries)


def sequential_index(documents: Sequence[Document]) -> list[Update]:
    """The updates of all documents, one after the other, in order.

    >>> sequential_index([Document(3, [7, 9]), Document(1, [9])])
    [[(7, 1), (9, 1)], [(9, 2)]]
    """
    lengths: dict[int, int] = {}
    updates = []
    for document in documents:
        entries = []
        for word in document.items:
            lengths[word], place = post(lengths.get(word, 0), None)
            entries.append((word, place))
        updates.append(update_of(entries))
    return updates
