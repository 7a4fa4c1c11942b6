"""The acker: it learns of every item that is sent and handled, and says which documents are complete.

Sent and handled items of a document are put together by exclusive or, so that its value is zero when everything that
was sent was handled. A document that is complete may be touched again by an earlier one that is not; the front, the
first document that is not complete, passes neither before both are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

ACKS_EVERY_US = 1_000.0  # the local ackers of FlameStream send as often


class Acker:
    """The value of every document, and the first that is not complete."""

    def __init__(self, documents: int) -> None:
        self._values = [0] * documents
        self._issued = [False] * documents
        self.front = 0

    def issue(self, document: int) -> None:
        """A document has come in; until then none after it is passed."""
        self._issued[document] = True

    def acknowledge(self, acks: Mapping[int, int]) -> bool:
        """Take what a worker has sent and handled; whether the front has moved."""
        values, before = self._values, self.front
        for document, value in acks.items():
            values[document] ^= value
        while self.front < len(values) and self._issued[self.front] and not values[self.front]:
            self.front += 1
        return self.front > before


@dataclass
class AckBatch:
    """What a worker has sent and handled by the time at which it says so."""

    leaves_us: float = -ACKS_EVERY_US
    sent: bool = True
    values: dict[int, int] = field(default_factory=dict)

    def next_after(self, at_us: float) -> AckBatch:
        """The batch after this one: at once, but not more often than once in a while."""
        return AckBatch(max(at_us, self.leaves_us + ACKS_EVERY_US), sent=False)
