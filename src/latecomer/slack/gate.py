"""SlackGate: the paper's structure in plain Python, shared by writers (sources) and readers (threads of an operator).

A reader gets a tuple when it is ready (no source is behind it), or when it has been overtaken by more than the slack
(slack-ready). What comes behind a reader goes to that reader's own queue, so it is read once and never lost.

Two corrections to the paper's algorithms. Tuples are compared in the total order, not by time alone: otherwise ties
are lost. A reader stands at the frontier up to which it has read, not at the last tuple that it was given: otherwise
what it is given depends on tuples that happen to lie there, once the slack is raised.

Paper: Maximizing Determinism in Stream Processing Under Latency Constraints, sections 4.1 and 5.1, Algorithms 1 to 3.

>>> gate = SlackGate(["bus", "scats"], slack=3)
>>> for ts, writer in [(1, "bus"), (2, "scats"), (4, "bus")]:
...     gate.insert(ts, writer)
>>> [(read.ts, read.slack_ready) for read in gate.drain()]
[(1, False), (2, False)]
"""

from __future__ import annotations

import heapq
from bisect import insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from latecomer.errors import InputError, must
from latecomer.events import FOREVER_US, NEVER_US


class GateTuple(NamedTuple):
    """A tuple in its place in the total order: time, writer, then whatever breaks ties."""

    ts: int
    writer: int
    order: tuple[Any, ...]
    number: int
    value: Any


class Read(NamedTuple):
    """What a reader was given.

    slack_ready: some source was still behind it. out_of_order: the reader had passed its time before it came.
    """

    ts: int
    writer: str
    value: Any
    slack_ready: bool
    out_of_order: bool


@dataclass
class _Reader:
    """Where a reader stands: the place of its next tuple, the frontier that it has read up to, what came behind it."""

    place: int = 0
    last: GateTuple | None = None
    frontier: int = NEVER_US
    behind: list[GateTuple] = field(default_factory=list)

    def overtook(self, given: GateTuple) -> bool:
        """Whether it has read past a tuple."""
        return given.ts <= self.frontier or (self.last is not None and given[:4] < self.last[:4])


class SlackGate:
    """Tuples of several writers, read in order by several readers, each of which is given every tuple once.

    slack: None waits for every source, which is plain ScaleGate. merge: False looks at the slack alone, which is
    K-slack. A writer that has not written yet holds the merge back.
    """

    def __init__(
        self, writers: Sequence[str], readers: int = 1, *, slack: int | None = None, merge: bool = True
    ) -> None:
        if len(set(writers)) < max(1, len(writers)):
            raise InputError(must("writers", "have a name each", writers, "give at least one, each once"))
        if readers < 1:
            raise InputError(must("readers", "be at least one", readers, "give a whole number"))
        self._names, self._numbers = list(writers), {name: number for number, name in enumerate(writers)}
        self._latest = [NEVER_US] * len(writers)
        self._readers = [_Reader() for _ in range(readers)]
        self._tuples: list[GateTuple] = []
        self._inserted, self._removed, self._merge = 0, 0, merge
        self.set_slack(slack)

    def set_slack(self, slack: int | None) -> None:
        """How far a tuple may be overtaken before it is read all the same; None: it waits until it is ready."""
        if slack is not None and slack < 0:
            raise InputError(must("slack", "not be negative", slack, "give 0 or more, or None"))
        self._slack = FOREVER_US if slack is None else slack

    @property
    def merge_ts(self) -> int:
        """The least of the writers' latest times: nothing at or before it is missing."""
        return min(self._latest) if self._merge else NEVER_US

    @property
    def frontier(self) -> int:
        """What may be read now: up to the merge time, and what the slack allows."""
        largest = max(self._latest)
        overtaken = NEVER_US if NEVER_US in (largest, -self._slack) else largest - self._slack - 1
        return max(self.merge_ts, overtaken)

    def insert(self, ts: int, writer: str, value: Any = None, *, order: tuple[Any, ...] = ()) -> None:
        """Take a tuple in; `order` breaks ties between tuples of one time and writer."""
        number = self._numbers.get(writer)
        if number is None:
            raise InputError(must("writer", f"be one of {', '.join(self._names)}", writer, "name it at the beginning"))
        given = GateTuple(ts, number, order, self._inserted, value)
        self._inserted += 1
        overtaken = [reader for reader in self._readers if reader.overtook(given)]
        for reader in overtaken:
            heapq.heappush(reader.behind, given)
        if len(overtaken) < len(self._readers):
            insort(self._tuples, given)
            for reader in overtaken:
                reader.place += 1
        self._latest[number] = max(self._latest[number], ts)

    def get(self, reader: int = 0) -> Read | None:
        """The next tuple for a reader; None where none may be read yet."""
        own = self._readers[reader]
        if own.behind:
            given = heapq.heappop(own.behind)
            stood = own.frontier if own.last is None else max(own.frontier, own.last.ts)
            return self._given(given, out_of_order=given.ts < stood)
        frontier = max(own.frontier, self.frontier)
        place = own.place - self._removed
        if place < len(self._tuples) and self._tuples[place].ts <= frontier:
            own.last = self._tuples[place]
            own.place += 1
            return self._given(own.last, out_of_order=False)
        own.frontier = frontier
        self._forget()
        return None

    def drain(self, reader: int = 0) -> Iterator[Read]:
        """All that a reader may read now."""
        while (read := self.get(reader)) is not None:
            yield read

    def __len__(self) -> int:
        return len(self._tuples) + sum(len(reader.behind) for reader in self._readers)

    def _given(self, given: GateTuple, *, out_of_order: bool) -> Read:
        writer = self._names[given.writer]
        return Read(given.ts, writer, given.value, given.ts > self.merge_ts, out_of_order)

    def _forget(self) -> None:
        """Remove what all readers have read, once it is worth it."""
        passed = min(reader.place for reader in self._readers) - self._removed
        if passed > len(self._tuples) // 2:
            del self._tuples[:passed]
            self._removed += passed
