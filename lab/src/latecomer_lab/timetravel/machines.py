"""Machines on the readings of meters, without Spark: what they give at which mark, what they hold, what they cost.

Readings are pushed in the order of arrival, micro-batch by micro-batch, and the machine is built anew for each, as on
Spark. A result has the mark of the tick in which it was given, as far as that is known: what the live instance gives
follows from the mark, and replays say it (`forms.py`). What only the end of the stream brings has FOREVER_US.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from latecomer.contract import Settings
from latecomer.events import FOREVER_US, TICK_FIELD, EventBatch, Int64s, Layout, int64_view
from latecomer.headers import Header
from latecomer.outputs import CHANGE, PANE, Lane, Output, Pane, changes_of, plain_results
from latecomer.progress import Progress, Timeline
from latecomer.quality import MARK, ResultColumns
from latecomer.runner import Between, Runner
from latecomer.timetravel.state import DUPLICATES
from latecomer.windows import WINDOW_START
from latecomer_lab.timetravel.application import ALERTS, KEY, TIME
from latecomer_lab.timetravel.forms import GIVEN_TICK, REACH, latency_us

LAYOUT = Layout(TIME, (KEY,))
TICK_US = 100_000  # as on Spark, if nothing else is said
COLUMNS = [TIME, KEY, "reading", "fuse"]
RESULTS = ResultColumns.of(LAYOUT, WINDOW_START)

Keep = Callable[[pa.RecordBatch], pa.Array]


@dataclass
class Followed:
    """What a machine did; results have their change, the mark at which they were given, and the pane."""

    columns: pa.Schema = ALERTS
    results: list[pa.RecordBatch] = field(default_factory=list)
    refused: int = 0
    repeated: int = 0  # results that replays found as they were
    most_held: int = 0
    last_held: int = 0
    seconds: float = 0.0

    @property
    def given(self) -> pa.Table:
        """All results in the order they came."""
        columns = [*self.columns, (CHANGE, pa.int8()), (MARK, pa.int64()), (PANE, pa.string())]
        return pa.Table.from_batches(self.results, pa.schema(columns))

    @property
    def replayed(self) -> pa.Table:
        """Those of replays alone."""
        given = self.given
        return given.filter(is_replayed(given))


class Saved(NamedTuple):
    """A machine between two micro-batches."""

    state: dict[str, bytes]
    progress: Progress


class Follower:
    """A machine and what it did so far; `keep` says of results which are written down."""

    def __init__(self, form: Settings, columns: pa.Schema = ALERTS, keep: Keep | None = None) -> None:
        self._runner, self._keep = Runner(form, LAYOUT, between=Between.REBUILD), keep
        self._latency_us, self.found = latency_us(form), Followed(columns)

    def push(self, batch: EventBatch, header: Header | None = None) -> float:
        """One micro-batch, with the progress of the whole stream where it is but a part; the processor's seconds."""
        pushed, found = self._runner.push(batch, header), self.found
        found.seconds += pushed.seconds
        found.most_held, found.last_held = max(found.most_held, pushed.held), pushed.held
        for output in pushed.outputs:
            self._note(output, pushed.timeline)
        return pushed.seconds

    def finish(self) -> Followed:
        """The stream is over."""
        for output in self._runner.finish():
            self._note(output, None)
        return self.stop()

    def stop(self) -> Followed:
        """Nothing more comes for now."""
        notes = self._runner.store.notes
        self.found.repeated = sum(count for name, count in notes.items() if name.endswith(DUPLICATES))
        return self.found

    def save(self) -> Saved:
        """The machine as it is."""
        return Saved(self._runner.machine.snapshot(), self._runner.progress)

    def go_back(self, saved: Saved) -> None:
        """The machine as it was."""
        self._runner.machine = self._runner.settings.restore(saved.state, LAYOUT)
        self._runner.progress = saved.progress

    def _note(self, output: Output, timeline: Timeline | None) -> None:
        if output.lane is Lane.LATE:
            self.found.refused += len(output)
            return
        if len(output) == 0:
            return
        marks_us = given_marks(output.rows, timeline, self._latency_us)
        results = stamped(output.rows, self.found.columns, marks_us)
        self.found.results.append(results if self._keep is None else results.filter(self._keep(results)))


def follow(form: Settings, batches: Iterable[EventBatch], *, ending: bool = True) -> Followed:
    """Run a machine over readings in the order of arrival, to the end or not; the clock is the processor's."""
    follower = Follower(form)
    for batch in batches:
        follower.push(batch)
    return follower.finish() if ending else follower.stop()


def given_marks(rows: pa.RecordBatch, timeline: Timeline | None, wait_us: int) -> Int64s:
    """The mark at which each result was given; without a timeline, the stream had ended."""
    if timeline is None:
        return np.full(rows.num_rows, FOREVER_US)
    if GIVEN_TICK in rows.schema.names:
        places = np.searchsorted(timeline.tick, int64_view(rows.column(GIVEN_TICK)), side="right") - 1
    else:
        closed_us = int64_view(rows.column(WINDOW_START)) + REACH.wait_us
        places = np.searchsorted(timeline.punctuations(wait_us), closed_us)
    marks: Int64s = timeline.mark_us[np.minimum(places, len(timeline.tick) - 1)]
    return marks


def stamped(rows: pa.RecordBatch, columns: pa.Schema, mark_us: Int64s) -> pa.RecordBatch:
    """Results with their changes, marks and panes."""
    own, pane = plain_results(rows).select(columns.names), rows.column(PANE).cast(pa.string())
    given = [*own.columns, pa.array(changes_of(rows), pa.int8()), pa.array(mark_us), pane]
    fields = [*columns, (CHANGE, pa.int8()), (MARK, pa.int64()), (PANE, pa.string())]
    return pa.RecordBatch.from_arrays(given, schema=pa.schema(fields))


def is_replayed(given: pa.Table) -> pa.ChunkedArray:
    """Which results a replay gave."""
    return pc.equal(given[PANE], str(Pane.REVISED))


def pieces(readings: pa.Table, piece_us: int) -> Iterator[EventBatch]:
    """Readings in the order of arrival, all that arrive in one stretch of this length together."""
    arrival_us = int64_view(readings["arrival"].combine_chunks())
    starts = np.flatnonzero(np.diff(arrival_us // piece_us, prepend=-1))
    for start, stop in zip(starts.tolist(), [*starts[1:].tolist(), len(readings)], strict=True):
        yield batch_of(readings.slice(start, stop - start))


def batch_of(readings: pa.Table) -> EventBatch:
    """Readings as a machine takes them."""
    rows = readings.combine_chunks().to_batches()[0]
    ticks = pa.array(int64_view(rows.column("arrival")) // TICK_US)
    return EventBatch(rows.select(COLUMNS).append_column(TICK_FIELD, ticks), LAYOUT)


def in_order(readings: pa.Table) -> pa.Table:
    """The same readings as if none were late: sorted, each arriving at its time."""
    return arriving_in_time(readings.sort_by(TIME))


def arriving_in_time(readings: pa.Table) -> pa.Table:
    """Sorted readings as if each arrived at its time."""
    place = readings.schema.get_field_index("arrival")
    return readings.set_column(place, readings.schema.field(place), readings[TIME])
