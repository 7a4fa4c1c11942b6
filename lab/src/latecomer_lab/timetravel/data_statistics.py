"""Table 2: what is in the readings that were made, and by Lemma 5 the least that must be held of them.

Late is against the mark, as the machines see it. Holes are jumps between successive on-time readings of a meter;
contexts with holes are on-time readings with such a jump in their last 26 hours (line 5 of Algorithm 1).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from latecomer.disorder.presets.meters import FIRST_US, Meters
from latecomer.disorder.presets.model import TIMESTAMP
from latecomer.events import Bools, EventBatch, Int64s, take_rows
from latecomer.progress import Measure, Progress
from latecomer.quality import MARK
from latecomer.runner import header_of
from latecomer_lab.timetravel.application import HOUR_US, KEY, TIME
from latecomer_lab.timetravel.forms import BOUND_US, REACH
from latecomer_lab.timetravel.machines import batch_of
from latecomer_lab.timetravel.readings import days_arriving

REACH_HOURS = REACH.us // HOUR_US
LATE = pa.schema([(TIME, TIMESTAMP), (KEY, pa.int32()), (MARK, pa.int64())])


@dataclass(frozen=True)
class DataStatistics:
    """Readings, late ones, holes, contexts, the least held at the end; the late readings, and the last mark."""

    readings: int
    late: int
    holes: int
    contexts: int
    least_held: int
    late_readings: pa.Table
    mark_us: int


def measure_readings(meters: Meters) -> DataStatistics:
    """Go through the readings once."""
    progress, late, count = Progress(), list[pa.RecordBatch](), 0
    on_time = np.zeros((meters.meters, meters.hours), dtype=np.bool_)
    for day in days_arriving(meters):
        batch = batch_of(day)
        progress, timeline = progress.advance([header_of(batch)], Measure())
        met_us = timeline.mark_before(batch.tick)
        is_late = batch.ts_us < met_us
        late.append(late_rows(batch, met_us, np.flatnonzero(is_late)))
        meter = batch.rows.column(KEY).to_numpy()[~is_late]
        on_time[meter, (batch.ts_us[~is_late] - FIRST_US) // HOUR_US] = True
        count += len(batch)
    holes, contexts = holes_and_contexts(on_time)
    late_readings = pa.Table.from_batches(late, LATE)
    least = least_held(on_time, BOUND_US // HOUR_US)
    return DataStatistics(count, len(late_readings), holes, contexts, least, late_readings, progress.mark_us)


def late_rows(batch: EventBatch, met_us: Int64s, places: Int64s) -> pa.RecordBatch:
    """Late readings, each with the mark that it met."""
    rows = take_rows(batch.rows.select([TIME, KEY]), places)
    return pa.RecordBatch.from_arrays([*rows.columns, pa.array(met_us[places])], schema=LATE)


def holes_and_contexts(on_time: Bools) -> tuple[int, int]:
    """How many jumps there are between on-time readings, by meter and hour; and how many readings come soon after."""
    meter, hour = np.nonzero(on_time)
    jump = np.append(False, (np.diff(meter) == 0) & (np.diff(hour) > 1))[: len(meter)]
    latest = np.maximum.accumulate(np.where(jump, np.arange(len(jump)), -1))
    context = (latest >= 0) & (meter[latest] == meter) & (hour - hour[latest] < REACH_HOURS)
    return int(jump.sum()), int(context.sum())


def least_held(on_time: Bools, bound_hours: int) -> int:
    """On-time readings within reach of a hole that may still be filled, and the recent ones of each meter, at the end.

    A hole lies between two on-time readings of a meter; what lies before its first one is not counted.
    """
    hours = on_time.shape[1]
    spoken = np.logical_or.accumulate(on_time, axis=1)
    speaks_still = np.logical_or.accumulate(on_time[:, ::-1], axis=1)[:, ::-1]
    hole = ~on_time & spoken & speaks_still
    hole[:, : max(0, hours - bound_hours)] = False
    last = hours - 1 - np.argmax(on_time[:, ::-1], axis=1)
    recent = np.arange(hours) > (last - REACH_HOURS)[:, None]
    return int((on_time & (near(hole, REACH_HOURS - 1) | recent)).sum())


def near(marked: Bools, distance: int) -> Bools:
    """Which places of a row lie within a distance of a marked one."""
    before = np.zeros((marked.shape[0], marked.shape[1] + 1), dtype=np.int32)
    np.cumsum(marked, axis=1, out=before[:, 1:])
    places = np.arange(marked.shape[1])
    low, high = np.maximum(places - distance, 0), np.minimum(places + distance + 1, marked.shape[1])
    found: Bools = before[:, high] > before[:, low]
    return found
