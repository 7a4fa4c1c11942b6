"""Where an event is missing: by a sampling period, by a column that counts, by the user's function, or anywhere.

Two successive events of a key tell whether something is missing between them, and how much. An event that comes late
is repaired only if it falls into such a hole.

Paper: TinTiN, assumption A1 and section 6.5.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from latecomer.durations import Duration, duration_us
from latecomer.errors import InputError, must
from latecomer.events import EventBatch, Int64s, int64_view

UNKNOWN = -1  # any number of events may be missing
ANYWHERE = "anywhere"
INSIDE, TOUCHING, COUNTED, ALWAYS = range(4)  # an event is in a hole: between its ends, at them too, by its number

HoleFunction = Callable[[pa.RecordBatch, pa.RecordBatch], Any]


class Holes(ABC):
    """How to tell whether something is missing between two successive events of a key."""

    kind: ClassVar[int] = INSIDE

    @abstractmethod
    def missing(self, events: EventBatch, before: Int64s, after: Int64s) -> Int64s:
        """For each pair of events, given by positions, how many are missing between them; UNKNOWN for any number."""

    def numbers(self, events: EventBatch) -> Int64s:
        """What events are counted by; their times if nothing else."""
        return events.ts_us

    @property
    def pace_us(self) -> int:
        """How often a key has an event; 0 where that is not known."""
        return 0

    @abstractmethod
    def check(self, columns: pa.Schema) -> None:
        """Refuse columns that it cannot work on."""

    @abstractmethod
    def shown(self) -> str:
        """As text for people."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Name and values: stored with the state and compared on restart."""


def holes_of(
    every: Duration | None, enumerator: str | None, holes: HoleFunction | str | None, tolerance: Duration | None = None
) -> Holes:
    """What the user said of holes, in one of three ways."""
    ways = [way for way in (every, enumerator, holes) if way is not None]
    if len(ways) != 1:
        rule = "be said in one way: every, enumerator or holes"
        raise InputError(must("where events are missing", rule, f"{len(ways)} ways", "e.g. every='1 hour'"))
    if every is not None:
        return Period(every, tolerance)
    if tolerance is not None:
        raise InputError(must("tolerance", "go with every", tolerance, "leave it out, or say every='1 hour' too"))
    if enumerator is not None:
        return Enumerator(enumerator)
    if isinstance(holes, str):
        return named_holes(holes)
    assert holes is not None
    return CustomHoles(holes)


def named_holes(name: str) -> Holes:
    """What has a name: events may be missing anywhere."""
    if name != ANYWHERE:
        rule = f"be '{ANYWHERE}' or a function of two RecordBatches"
        raise InputError(must("holes", rule, name, "or use every= or enumerator="))
    return Anywhere()


@dataclass(frozen=True)
class Period(Holes):
    """Every key has an event once in so long; where two lie further apart, some are missing.

    Each event may come up to `tolerance` before or after its turn, so two that follow each other may be off by twice
    that. It must be less than a quarter of the period: else a gap does not tell how many periods it has.
    """

    every: Duration
    tolerance: Duration | None = None

    def __post_init__(self) -> None:
        if 4 * self.tolerance_us >= self.every_us:
            rule = f"be less than a quarter of every ({self.every})"
            raise InputError(must("tolerance", rule, self.tolerance, "or say holes='anywhere'"))

    @property
    def every_us(self) -> int:
        """The period in microseconds."""
        return duration_us(self.every, "every")

    @property
    def pace_us(self) -> int:
        return self.every_us

    @property
    def tolerance_us(self) -> int:
        """The tolerance in microseconds."""
        return 0 if self.tolerance is None else duration_us(self.tolerance, "tolerance", zero=True)

    def missing(self, events: EventBatch, before: Int64s, after: Int64s) -> Int64s:
        apart: Int64s = events.ts_us[after] - events.ts_us[before] - 2 * self.tolerance_us
        return np.maximum(-(-apart // self.every_us) - 1, 0)

    def check(self, columns: pa.Schema) -> None:
        """A period needs no column but the time."""

    def shown(self) -> str:
        shown = f"where one is missing every {self.every}"
        return f"{shown}, give or take {self.tolerance}" if self.tolerance_us else shown

    def describe(self) -> dict[str, Any]:
        off = {"tolerance_us": self.tolerance_us} if self.tolerance_us else {}
        return {"holes": "period", "every_us": self.every_us, **off}


@dataclass(frozen=True)
class Enumerator(Holes):
    """A column counts the events of a key, one by one; where it jumps, some are missing."""

    column: str
    kind: ClassVar[int] = COUNTED

    def missing(self, events: EventBatch, before: Int64s, after: Int64s) -> Int64s:
        numbers = self.numbers(events)
        jump = numbers[after] - numbers[before] - 1
        return np.where(jump < 0, UNKNOWN, jump)

    def numbers(self, events: EventBatch) -> Int64s:
        column = events.rows.column(self.column)
        if column.null_count:
            rule, advice = f"have a number in {self.column}", "filter them out before"
            raise InputError(must("events", rule, f"{column.null_count} without", advice))
        return int64_view(column.cast(pa.int64()))

    def check(self, columns: pa.Schema) -> None:
        if self.column not in columns.names:
            rule = f"be one of {', '.join(columns.names)}"
            raise InputError(must("enumerator", rule, self.column, "check the name"))
        kind = columns.field(self.column).type
        if not pa.types.is_integer(kind):
            raise InputError(must("enumerator", "be a column of whole numbers", f"{self.column}, a {kind}", "cast it"))

    def shown(self) -> str:
        return f"where {self.column} jumps"

    def describe(self) -> dict[str, Any]:
        return {"holes": "enumerator", "column": self.column}


@dataclass(frozen=True)
class CustomHoles(Holes):
    """The user's function: from events and their successors, row by row, to how many are missing between them.

    It may return whole numbers (UNKNOWN, that is -1, for any number) or true and false.
    """

    function: HoleFunction
    kind: ClassVar[int] = TOUCHING

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise InputError(must("holes", "be a function of two RecordBatches", self.function, "or use every="))

    def missing(self, events: EventBatch, before: Int64s, after: Int64s) -> Int64s:
        given = self.function(events.take(before).user_rows, events.take(after).user_rows)
        if isinstance(given, pa.Array | pa.ChunkedArray):
            given = given.to_numpy(zero_copy_only=False)
        missing = np.asarray(given)
        if missing.shape != after.shape or missing.dtype.kind not in "biu":
            rule = "return one whole number, or true or false, per row"
            raise InputError(
                must("holes", rule, f"{missing.dtype} of shape {missing.shape}", "e.g. np.full(after.num_rows, -1)")
            )
        if missing.dtype.kind == "b":
            return np.where(missing, UNKNOWN, 0)
        return np.maximum(missing.astype(np.int64), UNKNOWN)

    def check(self, columns: pa.Schema) -> None:
        """The user's function must know its columns."""

    def shown(self) -> str:
        return "where your function sees a hole"

    def describe(self) -> dict[str, Any]:
        return {"holes": "function", "name": getattr(self.function, "__name__", "function")}


@dataclass(frozen=True)
class Anywhere(Holes):
    """Any number of events may be missing anywhere: every late one is accepted, and all are held within the bound."""

    kind: ClassVar[int] = ALWAYS

    def missing(self, events: EventBatch, before: Int64s, after: Int64s) -> Int64s:
        return np.full(len(after), UNKNOWN)

    def check(self, columns: pa.Schema) -> None:
        """It needs no column."""

    def shown(self) -> str:
        return "wherever they belong"

    def describe(self) -> dict[str, Any]:
        return {"holes": ANYWHERE}
