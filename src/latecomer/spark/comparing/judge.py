"""What a way gave, micro-batch by micro-batch, judged: scores against the sorted run, and where its rows are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from latecomer.events import FOREVER_US
from latecomer.outputs import CHANGE
from latecomer.quality import MARK, Scores, score
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
    """All ways on one stream."""

    asked: Asked
    ways: list[Compared] = field(default_factory=list)


class Judge:
    """Knows the truth about one stream and question."""

    def __init__(self, asked: Asked, ways: Sequence[Way]) -> None:
        self._asked, stream, layout = asked, asked.stream, asked.stream.roles.layout
        counted, ts_us = stream.counted
        self._truth, self._columns = asked.question.truth(counted, ts_us, layout), asked.question.columns(layout)
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
        scores = score(table, self._truth, self._columns, size_us, self._stream)
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
        """Strategies count every row; what a way that does not has in no answer is gone."""
        if counters is None:
            answered = round(self._standing_rows(given) / self._asked.question.windows_per_row)
            return Doors(answered, 0, 0, len(self._asked.stream.ts_us) - answered)
        counted = total(counters)
        gone = unaccounted(counted) + counted["dropped"]
        return Doors(counted["accepted"], counted["late"], counted["quarantined"], gone)

    def _standing_rows(self, given: pa.Table) -> int:
        """The rows counted in the last answers of all windows, of a way that takes none back."""
        place: list[Any] = list(self._columns.place)
        last = given.append_column("at", pa.array(np.arange(len(given)))).group_by(place).aggregate([("at", "max")])
        return int(pc.sum(given[ROWS].take(last["at_max"])).as_py() or 0)


def _observed(asked: Asked, ways: Sequence[Way]) -> int:
    """Until when delays count: the longest wait of all ways before the last mark, or half of the stream."""
    marks_us, longest_us = asked.stream.marks_us, max((way.wait_us for way in ways), default=0)
    half_us = (int(marks_us[-1]) - int(asked.stream.counted[1].min())) // 2
    return int(marks_us[-1]) - min(longest_us, half_us)
