"""What the tests of tiers share: streams, where to cut them, what to ask, and what was told."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from latecomer.outputs import Lane, Output
from latecomer.testing import Stream
from latecomer.windows import Count, Max, Min, Sum
from tests.naive import Keyed
from tests.outputs import changes, plain

ASKED = (Count(), Sum("id"), Min("id"), Max("id"))


def answer(ids: Sequence[int]) -> tuple[int, ...]:
    """The slow twin of `ASKED`."""
    return len(ids), sum(ids), min(ids), max(ids)


def latencies_up_to(most_ms: int) -> st.SearchStrategy[tuple[str, ...]]:
    """One to four latencies, increasing."""
    numbers = st.lists(st.integers(1, most_ms), min_size=1, max_size=4, unique=True)
    return numbers.map(lambda found: tuple(f"{latency} ms" for latency in sorted(found)))


def stream_of(*events: tuple[int, int]) -> Stream:
    """Events of one key as (ts, tick)."""
    ts_us, tick = (np.array(column, dtype=np.int64) for column in zip(*events, strict=True))
    same = np.zeros(len(events), dtype=np.int64)
    return Stream(ts_us, tick, same, same)


def keyed(stream: Stream) -> list[Keyed]:
    """The events as the slow twins take them; the value is the id."""
    columns = stream.ts_us.tolist(), stream.tick.tolist(), stream.key.tolist(), range(len(stream))
    return [Keyed(*row) for row in zip(*columns, strict=True)]


def between_ticks(stream: Stream) -> list[int]:
    """Where a tick begins: the places at which a cut changes nothing."""
    return [0, *(np.flatnonzero(np.diff(stream.tick)) + 1).tolist()]


def draw_cuts(data: st.DataObject, stream: Stream, most: int) -> list[int]:
    """Some of the places between ticks."""
    return sorted(data.draw(st.lists(st.sampled_from(between_ticks(stream)), max_size=most, unique=True)))


def result_rows(outputs: Sequence[Sequence[Output]]) -> Iterator[tuple[dict[str, Any], int, Output]]:
    """Every row of the lane `results` with its change."""
    for output in (output for batch in outputs for output in batch if output.lane is Lane.RESULTS):
        for row, change in zip(plain(output).to_pylist(), changes(output), strict=True):
            yield row, change, output
