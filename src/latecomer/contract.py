"""The contract between a disorder strategy and whatever runs it.

A strategy is two classes. `Settings` is what the user writes: frozen, comparable, stored with the state.
`Machine` is what runs: it takes batches of events and the progress of time and gives back batches of results.
`Settings.build` joins them over a ChunkStore, which holds all the machine's state. A machine is built anew for
every micro-batch, so a field that a restart would lose cannot survive a test either.

Every machine keeps five invariants; `latecomer.testing.check_machine` tries them on random streams.
1. Results depend neither on the number of shards nor, where cuts fall between ticks, on the micro-batches.
2. Every event pushed leaves through one door: accepted, dropped, or `late`. Counters add up.
3. Within the bound, after `finish`, the consolidated output equals that of the sorted input.
4. Snapshot anywhere, restore, go on: the same output, byte for byte.
5. What is held stays within what the settings promise (`most_held`); `max_held` stops with an error before that.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from latecomer.chunks import ChunkStore
from latecomer.errors import HeldError, InputError, must
from latecomer.events import CARRIED_PREFIX, FOREVER_US, Bools, EventBatch, Int64s, Layout, users_columns
from latecomer.progress import Timeline

_ROW = "_lc_row"
LATENESS, REASON = "lateness_us", "reason"
CHANGE, PANE, FINAL, TIER = "change", "pane", "final", "tier"
TOO_LATE, AFTER_END = "too_late", "after_end"


class Lane(IntEnum):
    """Where an output row goes."""

    RESULTS = 0
    LATE = 1
    QUARANTINE = 2


class Pane(StrEnum):
    """When a result was given, against the time it speaks of."""

    EARLY = "early"
    ON_TIME = "on_time"
    REVISED = "revised"


@dataclass(frozen=True, slots=True)
class Output:
    """Rows for one lane; `change` is +1 or -1 per row, all +1 where it is None.

    Where there are several tiers, `tier` counts them from one, and a change of 0 says that what an earlier tier gave
    is the tier's answer too. `panes` has the pane of each row, where they differ.
    """

    lane: Lane
    rows: pa.RecordBatch
    change: npt.NDArray[np.int8] | None = None
    pane: Pane = Pane.ON_TIME
    final: bool = True
    tier: int = 0
    panes: pa.Array | None = None

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    @property
    def standing(self) -> int:
        """How many rows are results, and not the voiding of one."""
        return len(self) if self.change is None else int((self.change >= 0).sum())


def results_of(batch: EventBatch) -> Output:
    """Events as results, unchanged."""
    return Output(Lane.RESULTS, batch.user_rows)


def late(batch: EventBatch, lateness_us: Int64s, reason: str) -> Output:
    """Events that came too late, with how late and why."""
    rows = batch.user_rows
    reasons = pa.repeat(pa.scalar(reason, pa.string()), len(batch))
    rows = rows.append_column(LATENESS, pa.array(lateness_us)).append_column(REASON, reasons)
    return Output(Lane.LATE, rows)


def refused(batch: EventBatch, too_late: Bools, punctuation_us: Int64s, timeline: Timeline) -> Iterator[Output]:
    """The events that came too late, for the lane `late`: after the end of the stream, or just later than it waits."""
    ended = punctuation_us == FOREVER_US
    for chosen, reason in ((too_late & ~ended, TOO_LATE), (too_late & ended, AFTER_END)):
        if chosen.any():
            aside = batch.filter(chosen).sorted()
            lateness_us = np.maximum(timeline.mark_before(aside.tick) - aside.ts_us, 0)
            yield late(aside, lateness_us, reason)


class Machine(ABC):
    """A running strategy: fed with batches and progress, it gives results."""

    def __init__(self, store: ChunkStore, layout: Layout) -> None:
        self.store = store
        self.layout = layout
        self.dropped = 0

    @abstractmethod
    def push(self, batch: EventBatch, timeline: Timeline) -> Iterator[Output]:
        """Take in the events of one micro-batch and how time moved while they came."""

    @abstractmethod
    def finish(self) -> Iterator[Output]:
        """The stream is over: give what is left."""

    @property
    def held(self) -> int:
        """How many events are held; in tiers of aggregates, how many partial results."""
        return self.store.rows

    @property
    def runs(self) -> int:
        """How many sorted runs they are held in, where the machine holds them so."""
        return 0

    def snapshot(self) -> dict[str, bytes]:
        """All state, as named chunks of bytes."""
        return self.store.snapshot()


@dataclass(frozen=True)
class Settings(ABC):
    """What the user asks of a strategy."""

    name: ClassVar[str]

    @abstractmethod
    def build(self, store: ChunkStore, layout: Layout) -> Machine:
        """The machine that does it, going on from what the store holds."""

    @abstractmethod
    def most_held(self, accepted_ts_us: Int64s, timeline: Timeline) -> int:
        """How many of the events accepted so far the machine may still hold."""

    def punctuation(self, timeline: Timeline) -> int:
        """The last punctuation, for the counters."""
        return timeline.punctuation(0)

    def added(self) -> dict[str, pa.DataType]:
        """Columns that the machine adds to the user's in the results."""
        return {}

    def output(self, columns: pa.Schema, layout: Layout) -> pa.Schema:
        """The columns of the results, for events with these, the carried ones included."""
        own = [field for field in columns if not field.name.startswith(CARRIED_PREFIX)]
        return pa.schema([*own, *(pa.field(name, kind) for name, kind in self.added().items())])

    @property
    def by_key(self) -> bool:
        """Whether all rows of a key must meet in one shard; without a key, all rows."""
        return False

    @property
    def tiers(self) -> int:
        """How many tiers the results have; 0 where there are none."""
        return 0

    @property
    def revises(self) -> bool:
        """Whether results may change after they were given: they then say how they came about and if they are final."""
        return self.tiers > 0

    def restore(self, snapshot: dict[str, bytes], layout: Layout) -> Machine:
        """The machine as it was when the snapshot was taken."""
        return self.build(ChunkStore.restore(snapshot), layout)

    def describe(self) -> dict[str, Any]:
        """Name and values: stored with the state and compared on restart."""
        return {"strategy": self.name, **dataclasses.asdict(self)}


def check_max_held(max_held: int | None) -> None:
    """Refuse a limit that is none."""
    whole = isinstance(max_held, int) and not isinstance(max_held, bool)
    if max_held is not None and not (whole and max_held > 0):
        raise InputError(must("max_held", "be a whole number above zero", max_held, "or leave it out"))


def check_held(held: int, max_held: int | None, what: str = "events") -> None:
    """Stop before memory does."""
    if max_held is not None and held > max_held:
        advice = "wait less (a shorter latency or bound), raise max_held, or use more shards"
        raise HeldError(must(f"held {what} per shard", f"stay within max_held={max_held}", held, advice))


def consolidate(outputs: Iterable[Output]) -> pa.Table | None:
    """Sum the changes of the `results` lane: the rows that stand in the end, in a canonical order."""
    pieces = [_with_change(output) for output in outputs if output.lane is Lane.RESULTS and len(output)]
    if not pieces:
        return None
    table = pa.Table.from_batches(pieces)
    rows = table.drop_columns([CHANGE])
    compared = pa.table([_comparable(column) for column in rows.columns], names=rows.column_names)
    numbered = compared.append_column(CHANGE, table.column(CHANGE)).append_column(_ROW, pa.array(range(len(rows))))
    summed = numbered.group_by(rows.column_names).aggregate([(CHANGE, "sum"), (_ROW, "min")])
    summed = summed.sort_by([(name, "ascending") for name in rows.column_names])
    counts = summed.column(f"{CHANGE}_sum").to_numpy()
    if (counts < 0).any():
        raise ValueError(must("changes", "void only results that were given", counts.min(), "report it"))
    return rows.take(pa.array(np.repeat(summed.column(f"{_ROW}_min").to_numpy(), counts)))


def _comparable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Values that Arrow can group and sort by."""
    if not pa.types.is_nested(column.type):
        return column
    return pa.chunked_array([pa.array([repr(value) for value in column.to_pylist()])])


def _with_change(output: Output) -> pa.RecordBatch:
    change = np.ones(len(output), dtype=np.int8) if output.change is None else output.change
    return users_columns(output.rows).append_column(CHANGE, pa.array(change))
