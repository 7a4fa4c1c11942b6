"""What a way gave, micro-batch by micro-batch, judged: scores against the sorted run, and where its rows are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from latecomer.events import FOREVER_US
from latecomer.outputs import CHANGE
from latecomer.quality import MARK, Scores, score, snapped
from latecomer.spark.comparing.question import ROWS
from latecomer.spark.comparing.ways import Asked, Way
from latecomer.spark.counters import total, unaccounted

Counters = Mapping[str, int]


@dataclass(frozen=True)
class Doors:
    """Where the rows of the stream are in the end: in answers, set aside with a reason, or gone."""

    answered: int
    late: int
    quarantined: int
    gone: int


@dataclass(frozen=True)
class Speed:
    """Rows in a second, and the seconds of the median and of the longest micro-batch."""

    rows_per_s: float
    median_s: float
    longest_s: float


@dataclass(frozen=True)
class Compared:
    """One way: how good it was, where its rows are, what it held at most, and how fast it was, if that was measured."""

    way: Way
    scores: Scores
    doors: Doors
    held: int
    speed: Speed | None = None


@dataclass
class Comparison:
    """All ways on one stream; whether they ran on Spark."""

    asked: Asked
    on_spark: bool = True
    ways: list[Compared] = field(default_factory=list)


class Judge:
    """Knows the truth about one stream and question."""

    def __init__(self, asked: Asked, ways: Sequence[Way]) -> None:
        self._asked, stream, layout = asked, asked.stream, asked.stream.roles.layout
        counted, ts_us = stream.counted
        self._truth, self._columns = asked.question.truth(counted, ts_us, layout), asked.question.columns(layout)
        self._rounding = asked.question.rounding(counted, ts_us, layout)
        self._stream = stream.stream()._replace(observed_us=_observed(asked, ways))

    @property
    def schema(self) -> pa.Schema:
        """The columns of results that are judged."""
        return self._truth.schema

    def judge(
        self,
        way: Way,
        given: Mapping[int, pa.Table],
        counters: Sequence[Counters] | None,
        held: int,
        speed: Speed | None = None,
    ) -> Compared:
        """Judge the results of each micro-batch; `counters` of each, where the way counts its rows."""
        table, size_us = self._stamped(given), self._asked.question.window.size_us
        rows = [len(given[batch]) if batch in given else 0 for batch in range(self._asked.stream.batches)]
        near = snapped(table, self._truth, self._columns, self._rounding)
        scores = score(near, self._truth, self._columns, size_us, self._stream._replace(cuts=np.cumsum(rows)))
        return Compared(way, scores, self._doors(table, counters), held, speed)

    def _stamped(self, given: Mapping[int, pa.Table]) -> pa.Table:
        """All rows in order, with their changes and marks; those after the last event have FOREVER_US."""
        marks_us, parts = self._asked.stream.marks_us, []
        for batch, rows in sorted(given.items()):
            changes = rows[CHANGE] if CHANGE in rows.schema.names else pa.array(np.ones(len(rows), np.int8))
            mark_us = int(marks_us[batch]) if batch < len(marks_us) else FOREVER_US
            own = rows.select(self.schema.names).cast(self.schema)
            parts.append(own.append_column(CHANGE, changes).append_column(MARK, pa.array(np.full(len(rows), mark_us))))
        fields = [*self.schema, pa.field(CHANGE, pa.int8()), pa.field(MARK, pa.int64())]
        return pa.concat_tables(
            [pa.schema(fields).empty_table(), *parts], promote_options="permissive"
        ).combine_chunks()

    def _doors(self, given: pa.Table, counters: Sequence[Counters] | None) -> Doors:
        """Strategies count every row; what a way that does not has in no answer is gone.

        Of windows that overlap only the lost places are known: they are so many rows as have that many.
        """
        if counters is None:
            ts_us, all_rows = self._asked.stream.counted[1], len(self._asked.stream.ts_us)
            places = int(self._asked.question.windows_of(ts_us).sum())
            lost = places - self._standing_rows(given)
            gone = ceil(lost * len(ts_us) / max(1, places)) + all_rows - len(ts_us)
            return Doors(all_rows - gone, 0, 0, gone)
        counted = total(counters)
        gone = unaccounted(counted) + counted["dropped"]
        return Doors(counted["accepted"], counted["late"], counted["quarantined"], gone)

    def _standing_rows(self, given: pa.Table) -> int:
        """The rows counted in the last answers of all windows, of a way that takes none back."""
        place: list[Any] = list(self._columns.place)
        last = given.append_column("at", pa.array(np.arange(len(given)))).group_by(place).aggregate([("at", "max")])
        return int(pc.sum(given[ROWS].take(last["at_max"])).as_py() or 0)


def _observed(asked: Asked, ways: Sequence[Way]) -> int:
    """Until when delays count: the longest wait of all ways before the last mark, or the middle of its events."""
    last_us, longest_us = int(asked.stream.marks_us[-1]), max((way.wait_us for way in ways), default=0)
    return max(last_us - longest_us, int(np.median(asked.stream.counted[1])))
