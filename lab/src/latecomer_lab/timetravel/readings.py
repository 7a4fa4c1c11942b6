"""Readings of meters day by day, as they arrive or sorted: never more than a day, and what is still under way."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from latecomer.disorder.presets.meters import FIRST_US, Meters
from latecomer.disorder.presets.model import arrival_order
from latecomer.events import int64_view
from latecomer_lab.timetravel.forms import DAY_US
from latecomer_lab.timetravel.machines import arriving_in_time

_DAY_HOURS = 24


def days_made(meters: Meters) -> Iterator[pa.Table]:
    """The readings of each day, in the order of their times."""
    day_rows = _DAY_HOURS * meters.meters
    for start in range(0, meters.rows, day_rows):
        yield meters.block(start, min(start + day_rows, meters.rows))


def days_arriving(meters: Meters) -> Iterator[pa.Table]:
    """The readings that arrive on each day, in the order of arrival; what arrives after the last day comes with it."""
    under_way: pa.Table = meters.schema.empty_table()
    for number, made in enumerate(days_made(meters), 1):
        rows = pa.concat_tables([under_way, made]).combine_chunks()
        rows = rows.take(pa.array(arrival_order(rows)))
        arrival_us = int64_view(rows["arrival"].combine_chunks())
        end_us = FIRST_US + number * DAY_US
        stop = int(np.searchsorted(arrival_us, end_us)) if number < meters.days else len(rows)
        under_way = rows.slice(stop)
        if stop:
            yield rows.slice(0, stop).combine_chunks()


def days_sorted(meters: Meters) -> Iterator[pa.Table]:
    """The readings of each day as if none were late."""
    for made in days_made(meters):
        if len(made):
            yield arriving_in_time(made)
