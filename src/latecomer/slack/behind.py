"""Rows that come behind what their own source has given: sources are thought to be in order, and some are not."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow.compute as pc

from latecomer._jit import kernel
from latecomer.codec import integers
from latecomer.events import EventBatch, Int64s
from latecomer.headers import encode_sources
from latecomer.progress import Timeline
from latecomer.search import lower_bound


class _Known(NamedTuple):
    """The steps of all sources, by source: those of source i are from `starts[i]` to `starts[i + 1]`."""

    starts: Int64s
    tick: Int64s
    latest_us: Int64s


def behind_source(batch: EventBatch, timeline: Timeline) -> int:
    """How many rows lie before the latest time that their source had given before their tick."""
    steps, source = timeline.sources, batch.layout.source
    if steps is None or source is None or len(batch) == 0:
        return 0
    names, codes = encode_sources(batch.rows.column(source), len(batch))
    place = pc.index_in(names.cast(steps.names.type), value_set=steps.names)
    order = np.lexsort((steps.tick, steps.source))
    starts = np.searchsorted(steps.source[order], np.arange(len(steps.names) + 1))
    known = _Known(starts, steps.tick[order], steps.latest_us[order])
    return int(_count_behind(known, integers(place)[codes], batch.tick, batch.ts_us))


@kernel
def _count_behind(known: _Known, source: Int64s, tick: Int64s, ts_us: Int64s) -> int:
    count = 0
    for i in range(len(source)):
        first = known.starts[source[i]]
        place = lower_bound(known.tick, first, known.starts[source[i] + 1], tick[i])
        if place > first and ts_us[i] < known.latest_us[place - 1]:
            count += 1
    return count
