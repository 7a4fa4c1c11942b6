"""The smart-meter application: hourly consumption from two readings, and alerts on what cannot be.

Two readings of a meter, an hour apart, give its consumption; one that is negative or beyond what the meter's fuse lets
through is marked. Over the 24 hours from each hour on, marks that follow each other make a pattern: large values, and
then a negative one. An alert says what the first hour of its window is, and how many large values stand before the
last negative one.

A mark is a bit, the hour of the day its place: 24 hours in a row have 24 places, so the sum of the marks of a window
has them all, and turned by the hour at which the window begins they stand in order. So plain sums tell the pattern.

Paper: TinTiN, section 7, and the running example of section 2.1.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from latecomer.disorder.presets.model import TIMESTAMP
from latecomer.events import Int64s, int64_view, take_rows
from latecomer.windows import WINDOW_START, Chain, Count, First, Last, Max, Step, Sum, Window, WindowAggregation

HOUR_US = 3_600_000_000
HOURS = 24  # of the second window
TIME, KEY, EVERY = "ts", "meter", "1 hour"
SEASON = "1 day"  # a mark's place is the hour of the day

_ALL = (1 << HOURS) - 1
CONSUMED = pa.schema(
    [
        (WINDOW_START, TIMESTAMP),
        (KEY, pa.int32()),
        ("consumption", pa.int64()),
        ("fuse", pa.int32()),
        ("large", pa.int64()),
        ("negative", pa.int64()),
    ]
)
ALERTS = pa.schema(
    [
        (WINDOW_START, TIMESTAMP),
        (KEY, pa.int32()),
        ("too_large", pa.bool_()),
        ("negative", pa.bool_()),
        ("pattern", pa.int64()),
    ]
)
KNOWN = pa.schema([*ALERTS, ("hours", pa.int64()), ("consumption", pa.int64())])


def application(*, alerts_only: bool = True) -> Chain:
    """The chain from readings to alerts; without `alerts_only`, to what is known of the day from every hour on.

    That is what an alert would say, how many hours of the day are known, and what was consumed in them: all readings
    of the day show in it.
    """
    readings = (First("reading"), Last("reading"), Count(), Max("fuse", named="fuse"))
    marks = (Sum("large"), Sum("negative"))
    known = (*marks, Count(), Sum("consumption"))
    return Chain(
        WindowAggregation(Window("2 hours", "1 hour"), readings),
        Step(consume, CONSUMED, "consumption"),
        WindowAggregation(Window(f"{HOURS} hours", "1 hour"), marks if alerts_only else known),
        Step(alert, ALERTS, "alerts") if alerts_only else Step(know, KNOWN, "days"),
    )


def consume(rows: pa.RecordBatch) -> pa.RecordBatch:
    """The consumption of an hour where there are two readings, and the marks on it."""
    rows = take_rows(rows, np.flatnonzero(int64_view(rows.column("count")) == 2))
    fuse, hour = rows.column("fuse"), rows.column(WINDOW_START)
    consumption = pc.subtract(rows.column("last_reading"), rows.column("first_reading"))
    used, place = int64_view(consumption), _hour_of_day(hour)
    large = (used > fuse.to_numpy()).astype(np.int64) << place
    negative = (used < 0).astype(np.int64) << place
    columns = [hour, rows.column(KEY), consumption, fuse, pa.array(large), pa.array(negative)]
    return pa.RecordBatch.from_arrays(columns, schema=CONSUMED)


def alert(rows: pa.RecordBatch) -> pa.RecordBatch:
    """What is wrong in windows, of those in which something is."""
    marked = int64_view(rows.column("sum_large")) | int64_view(rows.column("sum_negative"))
    judged = judge(take_rows(rows, np.flatnonzero(marked)))
    return judged.filter(is_alert(judged))


def is_alert(rows: pa.RecordBatch | pa.Table) -> pa.Array:
    """Which rows say that something is wrong."""
    return pc.or_(pc.or_(rows.column("too_large"), rows.column("negative")), pc.greater(rows.column("pattern"), 0))


def know(rows: pa.RecordBatch) -> pa.RecordBatch:
    """What the marks of windows say, and how much is known."""
    columns = [*judge(rows).columns, rows.column("count"), rows.column("sum_consumption")]
    return pa.RecordBatch.from_arrays(columns, schema=KNOWN)


def judge(rows: pa.RecordBatch) -> pa.RecordBatch:
    """What the marks of windows say."""
    start = _hour_of_day(rows.column(WINDOW_START))
    large, negative = (_in_order(int64_view(rows.column(f"sum_{name}")), start) for name in ("large", "negative"))
    columns = [
        rows.column(WINDOW_START),
        rows.column(KEY),
        pa.array((large & 1) > 0),
        pa.array((negative & 1) > 0),
        pa.array(count_before_last(large, negative)),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=ALERTS)


def count_before_last(large: Int64s, negative: Int64s) -> Int64s:
    """How many bits of one mask lie below the highest of the other."""
    _, places = np.frexp(negative.astype(np.float64))
    below = (np.int64(1) << np.maximum(places.astype(np.int64) - 1, 0)) - 1
    counts: Int64s = np.bitwise_count(large & below).astype(np.int64)
    return counts


def _hour_of_day(times: pa.Array) -> Int64s:
    hours: Int64s = int64_view(times) // HOUR_US % HOURS
    return hours


def _in_order(marks: Int64s, start: Int64s) -> Int64s:
    """Marks by their distance from the first hour of the window."""
    turned: Int64s = ((marks >> start) | (marks << (HOURS - start))) & _ALL
    return turned
