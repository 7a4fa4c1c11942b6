"""Machines on the readings of meters, without Spark: what they give at which mark, what they hold, what they cost.

Readings are pushed in the order of arrival, cut by their stamps, and the machine is built anew for each piece, as on
Spark. Marks are read once a piece: a result may be up to one piece older than it is said to be.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from latecomer.contract import Settings
from latecomer.disorder.presets.model import TIMESTAMP
from latecomer.events import TICK_FIELD, EventBatch, Layout, int64_view, take_rows
from latecomer.outputs import CHANGE, PANE, Lane, Output, Pane, changes_of, plain_results
from latecomer.progress import Timeline
from latecomer.quality import MARK, ResultColumns
from latecomer.runner import Between, Runner
from latecomer.timetravel.state import DUPLICATES
from latecomer.windows import WINDOW_START
from latecomer_lab.timetravel.application import ALERTS, KEY, TIME

LAYOUT = Layout(TIME, (KEY,))
TICK_US = 100_000  # as on Spark, if nothing else is said
COLUMNS = [TIME, KEY, "reading", "fuse"]
RESULTS = ResultColumns.of(LAYOUT, WINDOW_START)
GIVEN = pa.schema([*ALERTS, (CHANGE, pa.int8()), (MARK, pa.int64())])
LATE = pa.schema([(TIME, TIMESTAMP), (KEY, pa.int32()), (MARK, pa.int64())])


@dataclass
class Followed:
    """What a machine did; results come with their change and the mark at which they were given."""

    results: list[pa.RecordBatch] = field(default_factory=list)
    replays: list[pa.RecordBatch] = field(default_factory=list)
    late_events: list[pa.RecordBatch] = field(default_factory=list)
    refused: int = 0
    repeated: int = 0  # results that replays found as they were
    most_held: int = 0
    seconds: float = 0.0

    @property
    def given(self) -> pa.Table:
        """All results in the order they came."""
        return pa.Table.from_batches(self.results, GIVEN)

    @property
    def replayed(self) -> pa.Table:
        """Those of replays alone."""
        return pa.Table.from_batches(self.replays, GIVEN)

    @property
    def late(self) -> pa.Table:
        """Late readings, each with the mark that it met."""
        return pa.Table.from_batches(self.late_events, LATE)


def follow(settings: Settings, batches: Iterable[EventBatch], *, ending: bool = True) -> Followed:
    """Run a machine over readings in the order of arrival, to the end or not; the clock is the processor's."""
    runner, found = Runner(settings, LAYOUT, between=Between.REBUILD), Followed()
    for batch in batches:
        pushed = runner.push(batch)
        _note_late(pushed.events, pushed.timeline, found)
        found.seconds += pushed.seconds
        found.most_held = max(found.most_held, pushed.held)
        _note_given(pushed.outputs, pushed.mark_us, found)
    if ending:
        _note_given(runner.finish(), runner.progress.mark_us, found)
    found.repeated = sum(count for name, count in runner.store.notes.items() if name.endswith(DUPLICATES))
    return found


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
    rows = readings.sort_by(TIME)
    return rows.set_column(rows.schema.get_field_index("arrival"), rows.schema.field("arrival"), rows[TIME])


def results_of(rows: pa.RecordBatch, mark_us: int, change: Iterable[int]) -> pa.RecordBatch:
    """Rows of results with their changes and the mark."""
    columns = [*rows.columns, pa.array(change, pa.int8()), pa.repeat(pa.scalar(mark_us, pa.int64()), rows.num_rows)]
    return pa.RecordBatch.from_arrays(columns, schema=GIVEN)


def _note_late(batch: EventBatch, timeline: Timeline, found: Followed) -> None:
    mark_us = timeline.mark_before(batch.tick)
    late = np.flatnonzero(batch.ts_us < mark_us)
    rows = take_rows(batch.rows.select([TIME, KEY]), late)
    found.late_events.append(pa.RecordBatch.from_arrays([*rows.columns, pa.array(mark_us[late])], schema=LATE))


def _note_given(outputs: Iterable[Output], mark_us: int, found: Followed) -> None:
    for output in outputs:
        if output.lane is Lane.LATE:
            found.refused += len(output)
            continue
        if len(output) == 0:
            continue
        results = results_of(plain_results(output.rows), mark_us, changes_of(output.rows))
        found.results.append(results)
        if output.rows.column(PANE)[0].as_py() == Pane.REVISED:  # an output is of one pane
            found.replays.append(results)
