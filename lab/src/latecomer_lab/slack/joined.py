"""Congestion events: a bus says so and a sensor of its area counts heavy flow, at most 5 s of event time apart.

The paper's join reads rows in the order of the gate and moves an area's window on with every row of the area: rows more
than 5 s behind the latest one read are gone. So a pair is found if no row of its area that was read up to the second of
the two lies more than 5 s after the first. Pairs of the sorted stream that are not found were cut short by slack.
"""

from __future__ import annotations

import numpy as np

from latecomer.events import Int64s
from latecomer_lab.slack.streams import SECOND_US, Reports

WINDOW_US = 5 * SECOND_US


def find_events(reports: Reports, order: Int64s) -> int:
    """How many pairs the join finds that reads reports in this order."""
    rows = reports.take(order)
    latest_us = latest_in_area(rows.area, rows.ts_us)
    bus, sensor = (np.flatnonzero((rows.source == source) & rows.says) for source in (0, 1))
    one, other = pairs_within(rows.area[bus], rows.ts_us[bus], rows.area[sensor], rows.ts_us[sensor])
    first = np.minimum(bus[one], sensor[other])
    second = np.maximum(bus[one], sensor[other])
    return int(np.count_nonzero(latest_us[second] <= rows.ts_us[first] + WINDOW_US))


def latest_in_area(area: Int64s, ts_us: Int64s) -> Int64s:
    """For each row the latest time of its area among the rows up to it."""
    by_area = np.argsort(area, kind="stable")
    least_us = int(ts_us.min(initial=0))
    apart_us = int(ts_us.max(initial=0)) - least_us + 1  # an area's times lie above those of all areas before it
    placed_us = ts_us[by_area] - least_us + area[by_area] * apart_us
    latest_us = np.empty_like(ts_us)
    latest_us[by_area] = np.maximum.accumulate(placed_us) - area[by_area] * apart_us + least_us
    return latest_us


def pairs_within(area: Int64s, ts_us: Int64s, other_area: Int64s, other_us: Int64s) -> tuple[Int64s, Int64s]:
    """All pairs of one area at most a window apart, as positions in the first and in the second."""
    order = np.lexsort((other_us, other_area))
    span_us = 1 << 40  # longer than a stream: areas lie apart, times within an area stay apart as they are
    base_us = int(min(ts_us.min(initial=0), other_us.min(initial=0)))
    places_us = other_area[order] * span_us + (other_us[order] - base_us)
    at_us = area * span_us + (ts_us - base_us)
    low = np.searchsorted(places_us, at_us - WINDOW_US, side="left")
    high = np.searchsorted(places_us, at_us + WINDOW_US, side="right")
    count = high - low
    one = np.repeat(np.arange(len(ts_us)), count)
    within = np.arange(len(one)) - np.repeat(np.cumsum(count) - count, count)
    return one, order[np.repeat(low, count) + within]
