"""Figure 9: what it is worth to run selection, projection and windows before the sort instead of after it.

Offline, as in Figure 7, with the paper's Impatience sort, payloads moving along with the events as in the paper's
engine. As in the paper it is the sort alone that is timed: of all events, and of what the operator leaves to be sorted.
Beside it stands the gain with the operator's own time added to both.

The paper's engine keeps each field in a column of its own, and what a projection saves it is the moves of the other
columns. So everything is measured that way; and once more with payloads that move as one record, the faster way here.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from latecomer.events import FOREVER_US
from latecomer.sorter.keys import look_over
from latecomer.sorter.memory_runs import MemoryRuns
from latecomer.sorter.release import ANY_MOVES
from latecomer.sorter.runs import Switches
from latecomer.sorter.sorter import ImpatienceSorter
from latecomer_lab.sorting.buffers import Events, gather
from latecomer_lab.sorting.data import FIELDS, Stream

SELECTED = (0.05, 0.1, 0.2, 0.4, 0.6, 0.9)
PROJECTED = (1, 2, 3)
OF_RECORDS = " of records"
WINDOWS_US = (10_000, 100_000, 1_000_000, 10_000_000, 60_000_000)

Operator = Callable[[Events], Events]


class Gain(NamedTuple):
    """How many times faster the sort is after an operator; and both together, against the sort before the operator."""

    stream: str
    operator: str
    setting: float
    speedup: float
    with_operator: float


def measure_gains(stream: Stream, rounds: int, tell: Callable[[str], None]) -> list[Gain]:
    """All settings of all operators on one stream."""
    events, found = Events(stream.ts_us, stream.payload), []
    columns = Events(stream.ts_us, np.stack([stream.payload[field] for field in FIELDS]))
    for name, setting, operator in _operators(stream):
        tell(f"{stream.name}, {name} {setting:g} before the sort")
        given = events if name.endswith(OF_RECORDS) else columns
        _speedups(Events(given.ts_us[:1_000], given.payload[..., :1_000]), operator, 1)  # to comruns
        found.append(Gain(stream.name, name, setting, *_speedups(given, operator, rounds)))
    return found


def _operators(stream: Stream) -> list[tuple[str, float, Operator]]:
    sample = np.sort(stream.payload[FIELDS[-1]][:100_000])
    chosen: list[tuple[str, float, Operator]] = []
    bounds = [(share, int(sample[int(share * (len(sample) - 1))])) for share in SELECTED]
    for layout, choose, keep in (("", select_columns, keep_columns), (OF_RECORDS, select, project)):
        chosen += [(f"selection{layout}", share, partial(choose, bound=bound)) for share, bound in bounds]
        chosen += [(f"projection{layout}", float(fields), partial(keep, fields=fields)) for fields in PROJECTED]
        chosen += [(f"window{layout}", float(size_us), partial(window, size_us=size_us)) for size_us in WINDOWS_US]
    return chosen


def _speedups(events: Events, operator: Operator, rounds: int) -> tuple[float, float]:
    """The time of the sort with the operator after it over that with the operator before it; and of the whole."""
    left = operator(events)
    times = []
    for _ in range(rounds):
        after = _seconds(lambda: _sort(events)), _seconds(lambda: operator(_sort(events)))
        before = _seconds(lambda: _sort(left)), _seconds(lambda: _sort(operator(events)))
        times.append((*after, *before))
    alone_after, all_after, alone_before, all_before = (statistics.median(each) for each in zip(*times, strict=True))
    return alone_after / alone_before, all_after / all_before


def _seconds(work: Callable[[], Events]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def _sort(events: Events) -> Events:
    if events.payload.ndim == 2:
        return sort_columns(events)
    sorter = ImpatienceSorter(hardware=False, carry=True)
    sorter.push(events.ts_us, events.payload)
    left = sorter.finish()
    assert left.payload is not None
    return Events(left.ts_us, left.payload)


def sort_columns(events: Events) -> Events:
    """Sort events whose fields stand in columns, each of which moves on its own."""
    switches = Switches(huffman=True, speculative=True, drop_empty=True, adjust=False)
    runs = MemoryRuns(switches, np.int32, len(events.payload))
    span = look_over(events.ts_us)
    runs.fit(span.low_us, span.high_us, 0, len(events.ts_us))
    runs.feed(events.ts_us, 0, events.payload, FOREVER_US, 0)
    left = runs.release(FOREVER_US, ANY_MOVES).events
    return Events((left.key >> runs.packing.bits) + runs.packing.base_us, left.cells.copy())


def select(events: Events, bound: int) -> Events:
    """The records whose last field is below a bound."""
    wanted = np.flatnonzero(events.payload[FIELDS[-1]] < bound)
    payload = np.empty(len(wanted), dtype=events.payload.dtype)
    gather(wanted, events.payload, payload)
    return Events(events.ts_us[wanted], payload)


def project(events: Events, fields: int) -> Events:
    """The first so many fields of records."""
    payload = np.empty(len(events.ts_us), dtype=np.dtype([(name, np.int32) for name in FIELDS[:fields]]))
    for name in FIELDS[:fields]:
        payload[name] = events.payload[name]
    return Events(events.ts_us, payload)


def select_columns(events: Events, bound: int) -> Events:
    """The events whose last column is below a bound."""
    wanted = np.flatnonzero(events.payload[-1] < bound)
    return Events(events.ts_us[wanted], np.ascontiguousarray(events.payload[:, wanted]))


def keep_columns(events: Events, fields: int) -> Events:
    """The first so many columns."""
    return Events(events.ts_us, events.payload[:fields])


def window(events: Events, size_us: int) -> Events:
    """Times floored to the beginning of their window."""
    return Events(events.ts_us // size_us * size_us, events.payload)
