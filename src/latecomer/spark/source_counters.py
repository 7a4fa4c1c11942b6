"""Counters per source, on request: how many events each sent, how many were too late, and how far behind it is.

Spark's progress events have a fixed number of counters, so `SHOWN` sources are shown, those that are furthest behind,
and the others counted. Every shard knows the progress of all sources, so all choose the same ones.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from latecomer.events import NEVER_US
from latecomer.gives import Tally
from latecomer.headers import encode_sources
from latecomer.progress import Progress
from latecomer.spark.waiting import WAITING, Waiting, waiting_in

SHOWN = 16
_NAMES, _HIDDEN = "source_names", "sources_hidden"
SOURCE_COUNTERS: dict[str, Tally] = {
    _NAMES: Tally.TEXT,
    _HIDDEN: Tally.LARGEST,
    **{f"source_{place}_events": Tally.SUM for place in range(SHOWN)},
    **{f"source_{place}_late": Tally.SUM for place in range(SHOWN)},
    **{f"source_{place}_behind_us": Tally.LARGEST for place in range(SHOWN)},
}

ABOUT_SOURCES = (*SOURCE_COUNTERS, WAITING)


class SourceCounts(NamedTuple):
    """A source in a micro-batch: its events, those too late, and how far it is behind the source that is furthest."""

    events: int
    late: int
    behind_us: int


class Sources(dict[str | None, SourceCounts]):
    """The sources of a micro-batch that are furthest behind, the furthest first; `hidden` others are not shown.

    waits_for: the source that holds the others up, where progress is merged or the strategy waits for each source; None
    where none does. unseen: the declared sources that have never been seen.
    """

    def __init__(self, shown: Mapping[str | None, SourceCounts], hidden: int, waiting: Waiting | None = None) -> None:
        super().__init__(shown)
        self.hidden = hidden
        self.waits_for, self.unseen = waiting or Waiting()


class SourceTally:
    """Counts the sources of one shard's micro-batch; `column` says who sent a row, without it nothing is counted."""

    def __init__(self, column: str | None) -> None:
        self._column = column
        self._events, self._late = Counter[str | None](), Counter[str | None]()

    def add(self, rows: pa.RecordBatch, *, late: bool = False) -> None:
        """Take in events, or those of them that came too late."""
        if self._column is None:
            return
        names, codes = encode_sources(rows.column(self._column), rows.num_rows)
        counts = np.bincount(codes, minlength=len(names)).tolist()
        (self._late if late else self._events).update(dict(zip(names.to_pylist(), counts, strict=True)))

    def counters(self, progress: Progress) -> dict[str, Any]:
        """The counters of those that are furthest behind in the whole stream."""
        if self._column is None:
            return {}
        shown, hidden = furthest_behind(progress)
        found: dict[str, Any] = {_NAMES: json.dumps(list(shown)), _HIDDEN: hidden}
        for place, (name, behind_us) in enumerate(shown.items()):
            found[f"source_{place}_events"] = self._events[name]
            found[f"source_{place}_late"] = self._late[name]
            found[f"source_{place}_behind_us"] = behind_us
        return found


def furthest_behind(progress: Progress) -> tuple[dict[str | None, int], int]:
    """Up to `SHOWN` sources and how far each is behind the furthest, and how many others there are.

    Those that have ended come last: they will not move.
    """
    spoke = np.flatnonzero(progress.latest_us > NEVER_US)
    ended = progress.end_tick[spoke] > NEVER_US
    spoke = spoke[np.lexsort((spoke, progress.latest_us[spoke], ended))]
    names = progress.names.take(pa.array(spoke[:SHOWN])).to_pylist()
    behind_us = (progress.largest_us - progress.latest_us[spoke[:SHOWN]]).tolist()
    return dict(zip(names, behind_us, strict=True)), max(0, len(spoke) - SHOWN)


def sources_in(values: Mapping[str, Any]) -> Sources | None:
    """The sources among the counters of a micro-batch; None where they were neither counted nor waited for."""
    waiting = waiting_in(values)
    if not values.get(_NAMES):
        return None if waiting is None else Sources({}, 0, waiting)
    names = json.loads(values[_NAMES])
    fields = SourceCounts._fields
    counts = [
        SourceCounts(*(int(values[f"source_{place}_{field}"]) for field in fields)) for place in range(len(names))
    ]
    return Sources(dict(zip(names, counts, strict=True)), int(values[_HIDDEN]), waiting)
