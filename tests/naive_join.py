"""A slow and obvious account of which pairs a join of two sources gives, to check faster code against.

Rows are read one by one. A row that is read meets the kept rows of its key and the other source, and is then kept
itself, unless rows of its time have left already. At the end of a push, rows leave.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

NEVER = -(2**62)


@dataclass(frozen=True)
class Row:
    """One row of a source; `number` tells it from the others."""

    ts: int
    key: Any
    source: str
    number: int


@dataclass(frozen=True)
class Pair:
    """Two rows, the first of which was read before the second."""

    first: Row
    then: Row

    @property
    def time(self) -> int:
        return max(self.first.ts, self.then.ts)

    def of(self, source: str) -> Row:
        return self.first if self.first.source == source else self.then


@dataclass
class Push:
    """What a push gives: pairs in order, and rows for quarantine with the reason."""

    pairs: list[Pair] = field(default_factory=list)
    quarantined: list[tuple[Row, str]] = field(default_factory=list)


@dataclass
class NaiveJoin:
    """Pairs of rows of two sources and one key, at most `within` apart, of which `when` is true.

    Without `keep` a row is there for a row that is read only if it is not older than `within` before the latest time
    that was read of its key. With `keep` it is there until it leaves.
    """

    within: int
    keep: int | None = None
    when: Callable[[Row, Row], bool] | None = None
    comparisons: int = 0
    cut_short: int = 0
    kept: list[tuple[int, Row]] = field(default_factory=list)
    latest: dict[Any, int] = field(default_factory=dict)
    gone: int = NEVER
    numbers: int = 0

    def push(self, rows: Sequence[Row], read_us: int, certain_us: int) -> Push:
        """Read rows, and let go what need not be kept."""
        found: list[tuple[tuple[int, ...], Pair]] = []
        given = Push()
        for row in rows:
            number = self.numbers
            self.numbers += 1
            self.latest[row.key] = max(row.ts, self.latest.get(row.key, row.ts))
            self.cut_short += self._may_have_missed(row)
            partners = [(place, other) for place, other in self.kept if self._meets(other, row)]
            self.comparisons += len(partners)
            try:
                pairs = [(place, Pair(other, row)) for place, other in partners if self._holds(other, row)]
            except ArithmeticError as error:
                given.quarantined.append((row, f"when: {type(error).__name__}: {error}"))
                continue
            found += [((pair.time, number, pair.first.ts, place), pair) for place, pair in pairs]
            if row.ts > self.gone:
                self.kept.append((number, row))
        given.pairs = [pair for _, pair in sorted(found, key=lambda each: each[0])]
        self._leave(read_us, certain_us)
        return given

    def _meets(self, other: Row, row: Row) -> bool:
        in_reach = other.key == row.key and other.source != row.source and abs(other.ts - row.ts) <= self.within
        return in_reach and (self.keep is not None or other.ts >= self.latest[row.key] - self.within)

    def _holds(self, other: Row, row: Row) -> bool:
        return self.when is None or self.when(*sorted([other, row], key=lambda each: each.source))

    def _may_have_missed(self, row: Row) -> bool:
        behind = self.keep is None and self.latest[row.key] > row.ts
        return behind or row.ts - self.within <= self.gone

    def _leave(self, read_us: int, certain_us: int) -> None:
        self.gone = certain_us - self.within
        if self.keep is not None:
            self.gone = max(self.gone, read_us - self.keep)
        self.kept = [(place, row) for place, row in self.kept if row.ts > self.gone]
