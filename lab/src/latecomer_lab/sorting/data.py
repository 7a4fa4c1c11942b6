"""The streams that are sorted: the paper's three data sets, with four integers of 32 bits as payload.

Events whose lateness is not below the latency are taken out beforehand, so that no competitor has to treat them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from latecomer.disorder.measures import lateness
from latecomer.disorder.presets import preset
from latecomer.events import Int64s, int64_view
from latecomer_lab.sorting.buffers import Records

SECOND_US, HOUR_US, DAY_US = 1_000_000, 3_600_000_000, 86_400_000_000
LATENCY_US = {"synthetic": SECOND_US, "cloudlog": HOUR_US, "androidlog": DAY_US}
FIELDS = ("first", "second", "third", "fourth")
PAYLOAD = np.dtype([(field, np.int32) for field in FIELDS])


class Stream(NamedTuple):
    """Events in the order of arrival, the reorder latency, and how many were too late for it."""

    name: str
    ts_us: Int64s
    payload: Records
    latency_us: int
    removed: int


def load(name: str, events: int, seed: int, **settings: float) -> Stream:
    """Make one of the data sets."""
    table = preset(name, events=events, seed=seed, **settings).table()
    ts_us = int64_view(table["ts"].combine_chunks())
    in_time = np.flatnonzero(lateness(ts_us) < LATENCY_US[name])
    payload = _payload(table, in_time)
    return Stream(name, ts_us[in_time], payload, LATENCY_US[name], len(ts_us) - len(in_time))


def _payload(table: pa.Table, in_time: Int64s) -> Records:
    """The four integers as one record per event."""
    payload = np.empty(len(in_time), dtype=PAYLOAD)
    for field, column in zip(FIELDS, table.column_names[2:], strict=True):
        payload[field] = table[column].to_numpy()[in_time]
    return payload
