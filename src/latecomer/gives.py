"""What a strategy gives, said in one object: `Settings.gives` returns it, and whoever runs the strategy reads it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from latecomer.errors import InputError, must
from latecomer.events import CARRIED_PREFIX, Bools
from latecomer.outputs import CHANGE, REVISION_COLUMNS, REVISION_FIELDS, TIER, changes_of

RESULTS = "results"
CHANGES = "changes"


class Tally(StrEnum):
    """How a counter is put together: over the shards of a micro-batch, and over micro-batches."""

    SUM = "sum"  # summed over both
    LEVEL = "level"  # summed over shards; of micro-batches the last one counts
    LARGEST = "largest"
    LEAST = "least"
    TEXT = "text"  # the same in all shards


class Onward(Enum):
    """How the stage after a strategy sees its results."""

    NO = "no"  # not at all: they may change
    AT_ONCE = "at once"  # as they came: each with its own tick, the progress is that of the stream
    IN_ORDER = "in order"  # in order of time, as far as `Machine.passed` says after each tick
    IN_TICKS = "in ticks"  # each in the tick that its row says (`_lc_tick`); `passed` is how far they have come


class Verb(NamedTuple):
    """How users ask for a strategy, for refusals and `explain`: the call as text, and what it does.

    orders: it gives the rows themselves in order, so that what needs order can follow.
    """

    call: str  # "reorder(latency=...)"
    does: str  # "wait, then give rows in event-time order"
    orders: bool = False

    @property
    def of_events(self) -> str | None:
        """The method of a disordered stream that it is, if it is one."""
        name, _, rest = self.call.partition("(")
        return None if ")." in rest else name


class Line(NamedTuple):
    """A line of `explain`: a word, its text, and what it means for the work; there `{time}` is the column of times."""

    word: str
    text: str
    effect: str = ""


@dataclass(frozen=True)
class Explained:
    """What `explain` says of a strategy: a heading and lines.

    place: what stands before and after it ("the sort", "it"). saves: whether steps before it save work, which is shown.
    own_windows: the windows asked for are its own, not a step before it. held_in: the counter of what rows are held in,
    and what that is called.
    """

    heading: str
    lines: tuple[Line, ...]
    place: str = "it"
    saves: bool = False
    own_windows: bool = False
    held_in: tuple[str, str] | None = None


Keep = Callable[[pa.RecordBatch], Bools]


@dataclass(frozen=True)
class View:
    """A named part of the results: the rows that `keep` chooses, all without it; and without some of the columns.

    where: the same choice in SQL, for results that are finished by `Gives.after`.
    """

    keep: Keep | None = None
    without: tuple[str, ...] = ()
    where: str | None = None

    def columns(self, results: pa.Schema) -> pa.Schema:
        """The columns of the view, for results with these."""
        return pa.schema([each for each in results if each.name not in self.without])


class After(Protocol):
    """What is left to do with the rows that a machine gives: whoever writes the lanes does it, micro-batch by
    micro-batch, on a table of its own engine.
    """

    @property
    def columns(self) -> pa.Schema:
        """The columns of the rows that the machine gives, the carried ones included."""

    def __call__(self, rows: Any) -> Any:
        """The results, with the columns of `Gives`, of all rows of a micro-batch."""


@dataclass(frozen=True)
class Gives:
    """What a strategy gives.

    columns: of its results, those that say how they change included. explained: what `explain` says. views: named
    parts of the results besides `results`. results: what that view shows. time: the column with the results' time.
    by_key: whether all rows of a key must meet in one shard; without a key, all rows. counters: its own, by name.
    in_one_order: the rows of all shards are to be merged into the total order. moves_times: rows may be given at
    other times than they came with. rows: its results are its events, with all their columns. in_part: an event may
    come too late for some results and still count in others. how: columns that say how a row was given, besides
    those of results that change. net: changes are those of a micro-batch as a whole, so how often a result changes
    depends on where micro-batches are cut; what stands does not. position: columns that are carried to a further stage
    and order results of one time there, the source first where there is one, the others after the tick. retracts: what
    goes on to a further stage may be retractions. items: what it quarantines may be no rows of the user's, but items
    that were made of them (`outputs.ITEM`). after: what makes the results of the rows that the machine gives.
    """

    columns: pa.Schema
    explained: Explained
    views: Mapping[str, View] = field(default_factory=dict)
    results: View = field(default_factory=View)
    time: str | None = None
    by_key: bool = False
    counters: Mapping[str, Tally] = field(default_factory=dict)
    in_one_order: bool = False
    moves_times: bool = False
    rows: bool = False
    in_part: bool = False
    how: tuple[str, ...] = ()
    net: bool = False
    position: tuple[pa.Field, ...] = ()
    retracts: bool = False
    items: bool = False
    after: After | None = None

    @property
    def all_views(self) -> dict[str, View]:
        """Every view, `results` first."""
        return {RESULTS: self.results, **self.views}

    @property
    def revises(self) -> bool:
        """Whether results may change after they were given."""
        return CHANGE in self.columns.names


def own_columns(columns: pa.Schema) -> list[pa.Field]:
    """The user's columns, without those carried for us."""
    return [each for each in columns if not each.name.startswith(CARRIED_PREFIX)]


def with_revisions(columns: pa.Schema, *, tiers: bool = False) -> pa.Schema:
    """Results with the columns that say how they change; refuses columns that have their names."""
    for each in columns:
        if each.name.lower() in REVISION_COLUMNS:
            advice = "latecomer adds a column of that name to its lanes: rename yours before, or give it an alias"
            raise InputError(must("columns", f"not be named {', '.join(REVISION_COLUMNS)}", each.name, advice))
    return pa.schema([*columns, *(each for each in REVISION_FIELDS if tiers or each.name != TIER)])


def standing(rows: pa.RecordBatch) -> Bools:
    """Of results that may change, those that are no voiding of another."""
    return np.asarray(changes_of(rows) >= 0)


def changing(rows: pa.RecordBatch) -> Bools:
    """Of results that may change, those that change something."""
    return np.asarray(changes_of(rows) != 0)


def of_tier(tier: int, rows: pa.RecordBatch) -> Bools:
    """The answers of one tier."""
    return np.asarray((rows.column(TIER).to_numpy() == tier) & standing(rows))


STANDING = View(standing, (CHANGE,), f"{CHANGE} >= 0")


def revised_views(tiers: int = 0) -> dict[str, View]:
    """The views of results that may change: each tier's answers, if there are tiers, and all changes."""
    each = {f"tier_{tier}": View(partial(of_tier, tier), (CHANGE, TIER)) for tier in range(1, tiers + 1)}
    return {**each, CHANGES: View(changing, where=f"{CHANGE} != 0")}
