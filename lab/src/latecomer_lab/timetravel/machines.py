"""Machines on the readings of meters, without Spark: what they give at which mark, what they hold, what they cost.

Readings are pushed in the order of arrival, cut by their stamps, and the machine is built anew for each piece, as on
Spark. Marks are read once a piece: a result may be up to one piece older than it is said to be.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from latecomer.chunks import ChunkStore
from latecomer.contract import Lane, Output, Pane, Settings
from latecomer.events import TICK_FIELD, EventBatch, Int64s, Layout, int64_view
from latecomer.headers import HeaderBuilder
from latecomer.progress import Progress, Timeline
from latecomer.timetravel.kept import DUPLICATES
from latecomer.windows import WINDOW_START
from latecomer_lab.timetravel.application import KEY, TIME
from latecomer_lab.timetravel.classes import Late, Result

LAYOUT = Layout(TIME, (KEY,))
TICK_US = 100_000  # as on Spark, if nothing else is said
COLUMNS = [TIME, KEY, "reading", "fuse"]


@dataclass
class Followed:
    """What a machine did."""

    given: list[Result] = field(default_factory=list)
    replayed: list[Result] = field(default_factory=list)
    late: list[Late] = field(default_factory=list)
    refused: int = 0
    repeated: int = 0  # results that replays found as they were
    most_held: int = 0
    seconds: float = 0.0


def follow(settings: Settings, batches: Iterable[EventBatch], *, ending: bool = True) -> Followed:
    """Run a machine over readings in the order of arrival, to the end or not; the clock is the processor's."""
    store, progress, found = ChunkStore(), Progress(), Followed()
    for batch in batches:
        builder = HeaderBuilder(None)
        builder.add(batch.ts_us, batch.tick, None)
        opened = _opened(batch, progress)
        progress, timeline = progress.advance([builder.build()], None)
        _note_late(opened, timeline, found)
        started = time.process_time()
        machine = settings.build(store, LAYOUT)
        outputs = list(machine.push(opened, timeline))
        store.flush()
        found.seconds += time.process_time() - started
        found.most_held = max(found.most_held, machine.held)
        _note_given(outputs, progress.mark_us, found)
    if ending:
        _note_given(settings.build(store, LAYOUT).finish(), progress.mark_us, found)
    found.repeated = sum(count for name, count in store.notes.items() if name.endswith(DUPLICATES))
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


def results_of(rows: pa.RecordBatch, mark_us: int, change: Iterable[int]) -> list[Result]:
    """Rows of results, one by one."""
    others = [name for name in rows.schema.names if name not in (WINDOW_START, KEY)]
    columns = [rows.column(name).to_pylist() for name in others]
    keys, times = rows.column(KEY).to_pylist(), int64_view(rows.column(WINDOW_START)).tolist()
    zipped = zip(keys, times, zip(*columns, strict=True), change, strict=True)
    return [Result(key, ts_us, values, mark_us, sign) for key, ts_us, values, sign in zipped]


def _opened(batch: EventBatch, progress: Progress) -> EventBatch:
    """Rows of a tick that the piece before has closed join the next one."""
    place = batch.rows.schema.get_field_index(TICK_FIELD.name)
    ticks = pa.array(progress.open_ticks(batch.tick))
    return EventBatch(batch.rows.set_column(place, TICK_FIELD, ticks), batch.layout)


def _note_late(batch: EventBatch, timeline: Timeline, found: Followed) -> None:
    mark_us: Int64s = timeline.mark_before(batch.tick)
    late = np.flatnonzero(batch.ts_us < mark_us)
    keys = batch.rows.column(KEY).to_numpy()[late]
    found.late += map(Late, keys.tolist(), batch.ts_us[late].tolist(), mark_us[late].tolist())


def _note_given(outputs: Iterable[Output], mark_us: int, found: Followed) -> None:
    for output in outputs:
        if output.lane is Lane.LATE:
            found.refused += len(output)
            continue
        change = np.ones(len(output), dtype=np.int8) if output.change is None else output.change
        results = results_of(output.rows, mark_us, change.tolist())
        found.given += results
        if output.pane is Pane.REVISED:
            found.replayed += results
