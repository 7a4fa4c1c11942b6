"""Small disordered inputs for the Spark tests, and what must come of them."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from latecomer.spark.stream_files import age_by_name
from tests import naive

SCHEMA = "id bigint, ts timestamp, key int, source string, arrival timestamp, value double"
START_US = 1_700_000_000_000_000
TICK_US = 100_000
LATENCY_US = 2_000_000


def make_events(count: int, seed: int) -> pa.Table:
    """Events in arrival order, 5 ms apart, up to five seconds late, from three sources."""
    rng = np.random.default_rng(seed)
    arrival_us = START_US + np.arange(count) * 5_000
    delay_us = np.where(rng.random(count) < 0.4, rng.integers(0, 5_000_000, count), 0)
    columns = {
        "id": pa.array(np.arange(count)),
        "ts": pa.array(arrival_us - delay_us, pa.timestamp("us", "UTC")),
        "key": pa.array(rng.integers(0, 50, count), pa.int32()),
        "source": pa.array(np.array(["a", "b", "c"])[rng.integers(0, 3, count)]),
        "arrival": pa.array(arrival_us, pa.timestamp("us", "UTC")),
        "value": pa.array(rng.random(count)),
    }
    return pa.table(columns)


def write_in_parts(events: pa.Table, folder: Path, parts: int, first: int = 0) -> None:
    """Files cut between ticks, which the file source takes one at a time, oldest first."""
    folder.mkdir(exist_ok=True)
    ticks = events["arrival"].cast(pa.int64()).to_numpy() // TICK_US
    starts = np.flatnonzero(np.diff(ticks, prepend=ticks[0] - 1))
    cuts = [int(starts[len(starts) * part // parts]) for part in range(parts)] + [len(events)]
    for number, (start, stop) in enumerate(itertools.pairwise(cuts), start=first):
        pq.write_table(events.slice(start, stop - start), folder / f"{number:03d}.parquet")
    age_by_name(folder)


def lagging(events: pa.Table, source: str, lag_us: int) -> pa.Table:
    """The same events, those of one source so much older."""
    lags = pc.if_else(pc.equal(events["source"], source), lag_us, 0)
    times = pc.subtract(events["ts"].cast(pa.int64()), lags).cast(events["ts"].type)
    return events.set_column(events.schema.get_field_index("ts"), "ts", times)


def expected(events: pa.Table, *, merged: bool = False) -> tuple[list[int], list[int]]:
    """The ids a hold of LATENCY_US gives, in order, and those that are too late."""
    columns = (
        events["ts"].cast(pa.int64()).to_pylist(),
        [ord(name) for name in events["source"].to_pylist()],
        [stamp // TICK_US for stamp in events["arrival"].cast(pa.int64()).to_pylist()],
        events["id"].to_pylist(),
    )
    return naive.hold([naive.Event(*row) for row in zip(*columns, strict=True)], LATENCY_US, merged=merged)
