"""Reorder: a stream in event-time order, its sorted runs held in the state store.

What arrives in a micro-batch is sorted; what the punctuation has passed leaves, merged with the heads of the runs that
are stored (`StoredRuns`).

With windows (`align`) rows leave a window at a time, when the punctuation has passed its end; until then a row of the
window is not too late, however late it is. Ordered by window and then by time is ordered by time, so the sort itself is
the same.

The latency may change while the query runs: shortened, it releases at once what has waited long enough; lengthened, it
holds from now on, and the punctuation stands still until the mark has come so far.

Paper: Impatience (Chandramouli, Goldstein, Li), sections III-D and IV-A2.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from latecomer.chunks import ChunkStore
from latecomer.contract import Machine, Settings, check_held, check_max_held
from latecomer.controls import Control
from latecomer.durations import Duration, duration_us
from latecomer.errors import InputError, must
from latecomer.events import FOREVER_US, NEVER_US, Bools, EventBatch, Int64s, Layout, Stretches
from latecomer.gives import Explained, Gives, Line, Onward, Tally, Verb, own_columns
from latecomer.lateness import BY_WINDOW, check_lateness, too_late
from latecomer.outputs import Output, refused, results_of
from latecomer.progress import Timeline
from latecomer.runs import StoredRuns
from latecomer.sorter.policy import Late, as_policy, stop_at

ADJUSTED = "adjusted_us"
LATENCY, LATE = "latency_us", "late"
_PASSED = "passed_us"
_TRIED = ("1 ms", "8 ms", "1 minute")
_SHOWN = {Late.SIDE: "aside", Late.DROP: "dropped", Late.ADJUST: "moved up", Late.RAISE: "stop the query"}


def _read_latency(value: Duration) -> int:
    return duration_us(value, "latency")


def _read_policy(value: str) -> str:
    return str(as_policy(value))


@dataclass(frozen=True)
class Reorder(Settings):
    """Wait `latency` for what is late, and give events in order.

    late: what happens to an event that is later still: "side" (the lane `late`), "drop", "adjust" (it is moved to
    the first time that is not too late; a column `adjusted_us` says how far), "raise" (the query stops).
    max_held: the most events one shard may hold; past it the query stops with an error.
    align: windows, whose rows leave together. total: the rows of all shards are merged into one order.
    lateness: with windows, "window" takes a row as long as its window is open, "event" only until its own time is
    passed.
    """

    latency: Duration
    late: str = "side"
    max_held: int | None = None
    align: Stretches | None = None
    total: bool = False
    lateness: str = BY_WINDOW
    name: ClassVar[str] = "reorder"
    verb: ClassVar[Verb | None] = Verb("reorder(latency=...)", "wait, then give rows in event-time order", orders=True)
    controls: ClassVar[Mapping[str, Control]] = {
        "latency": Control(LATENCY, _read_latency, "how long to wait: longer from now on, shorter at once", _TRIED),
        "late": Control(
            LATE, _read_policy, "what becomes of later rows: 'side', 'drop' or 'raise'", ("side",), ("adjust",)
        ),
    }

    def __post_init__(self) -> None:
        duration_us(self.latency, "latency")
        as_policy(self.late)
        check_max_held(self.max_held)
        check_lateness(self.lateness)
        if self.align is not None and self.align.length_us <= 0:
            raise InputError(must("align", "have a length above zero", self.align, "or leave it out"))
        if not isinstance(self.total, bool):
            raise InputError(must("total", "be True or False", self.total, "leave it out for False"))

    @property
    def latency_us(self) -> int:
        """The latency in microseconds."""
        return duration_us(self.latency, "latency")

    @property
    def shortest_wait_us(self) -> int | None:
        return self.latency_us

    @property
    def onward(self) -> Onward:
        return Onward.IN_ORDER

    def build(self, store: ChunkStore, layout: Layout) -> Machine:
        return _Reorder(self, store, layout)

    def gives(self, columns: pa.Schema, layout: Layout) -> Gives:
        own, moves = own_columns(columns), self.late == Late.ADJUST
        if moves:
            taken = [each.name for each in own if each.name.lower() == ADJUSTED]
            if taken:
                advice = f"{self.name} adds a column of that name: rename yours before"
                raise InputError(must("columns", f"not be named {ADJUSTED}", taken[0], advice))
            own.append(pa.field(ADJUSTED, pa.int64()))
        return Gives(
            pa.schema(own),
            Explained("the sort", tuple(self._lines()), "the sort", saves=True, held_in=("runs", "sorted run")),
            time=layout.time,
            counters={"runs": Tally.LEVEL},
            in_one_order=self.total,
            moves_times=moves,
            rows=True,
        )

    def _lines(self) -> Iterator[Line]:
        text = f"latency {self.latency}, late rows {_SHOWN[as_policy(self.late)]}"
        if self.max_held is not None:
            text += f", at most {self.max_held:,} held in a shard"
        by_time = "order by {time}" if self.align is None else "by window_start, then {time}"
        yield Line(self.name, text, by_time)
        if self.total:
            yield Line("total", "each micro-batch becomes one partition in total order")

    def most_held(self, accepted_ts_us: Int64s, timeline: Timeline) -> int:
        if self.late == Late.ADJUST:  # who knows to which times events were moved
            return len(accepted_ts_us)
        return int((accepted_ts_us > self.ready(self.punctuation(timeline))).sum())

    def punctuation(self, timeline: Timeline) -> int:
        """The last punctuation that follows from the latency in force; the machine's own is never behind it."""
        return int(timeline.punctuations(timeline.numbers(LATENCY, self.latency_us))[-1])

    def ready(self, punctuation_us: int) -> int:
        """The largest time that may leave."""
        return punctuation_us if self.align is None else self.align.passed(punctuation_us)

    def describe(self) -> dict[str, object]:
        policy = str(as_policy(self.late))
        rules = {LATENCY: self.latency_us, LATE: policy, "lateness": self.lateness}
        return {"strategy": self.name, **rules, "align": None if self.align is None else self.align._asdict()}


class _Reorder(Machine):
    def __init__(self, settings: Reorder, store: ChunkStore, layout: Layout) -> None:
        super().__init__(store, layout)
        self._settings = settings
        self._stored = StoredRuns(store, layout)

    def counters(self) -> dict[str, int]:
        return {"runs": len(self._stored)}

    def push(self, batch: EventBatch, timeline: Timeline) -> Iterator[Output]:
        settings, punctuations_us = self._settings, self._punctuations(timeline)
        punctuation_us = timeline.before(batch.tick, punctuations_us)
        passed = too_late(batch.ts_us, punctuation_us, settings.align, settings.lateness)
        if settings.late == Late.ADJUST:
            batch = self._adjusted(batch, passed, punctuation_us)
            passed &= punctuation_us == FOREVER_US
        if passed.any():
            yield from self._refuse(batch, passed, punctuation_us, timeline)
            batch = batch.filter(~passed)
        yield from self._release(batch.sorted(), settings.ready(int(punctuations_us[-1])))
        self.store.notes[_PASSED] = int(punctuations_us[-1])
        self.store.notes[LATENCY] = int(self._latencies(timeline)[-1])
        check_held(self.held, settings.max_held)

    def finish(self) -> Iterator[Output]:
        yield from self._release(None, FOREVER_US)

    def punctuation(self, timeline: Timeline) -> int:
        return int(self._punctuations(timeline)[-1])

    def passed(self, timeline: Timeline) -> Int64s:
        punctuations_us = self._punctuations(timeline).tolist()
        return np.array([self._settings.ready(each) for each in punctuations_us], dtype=np.int64)

    def _punctuations(self, timeline: Timeline) -> Int64s:
        """The punctuation after each tick: it never goes back, also where the latency becomes longer."""
        wanted_us = timeline.punctuations(self._latencies(timeline))
        passed_us = self.store.notes.get(_PASSED, NEVER_US)
        return np.maximum(np.maximum.accumulate(wanted_us), passed_us)

    def _latencies(self, timeline: Timeline) -> Int64s:
        """The latency in force after each tick: what was in force before, whatever the query is started with now."""
        return timeline.numbers(LATENCY, self.store.notes.get(LATENCY, self._settings.latency_us))

    def _refuse(
        self, batch: EventBatch, too_late: Bools, punctuation_us: Int64s, timeline: Timeline
    ) -> Iterator[Output]:
        """What happens to events that came too late, by the policy in force in their ticks."""
        for policy, ticks in timeline.texts_at(LATE, self._settings.late, batch.tick):
            chosen = too_late & ticks
            if not chosen.any():
                continue
            if policy == Late.RAISE:
                first = int(np.flatnonzero(chosen)[0])
                raise stop_at(int(chosen.sum()), int(batch.ts_us[first]))
            if policy == Late.DROP:
                self.dropped += int(chosen.sum())
            else:
                yield from refused(batch.without(ADJUSTED), chosen, punctuation_us, timeline)

    def _release(self, arrived: EventBatch | None, ready_us: int) -> Iterator[Output]:
        leaving = self._stored.release(arrived, ready_us)
        if leaving is not None:
            yield results_of(leaving)

    def _adjusted(self, batch: EventBatch, too_late: Bools, punctuation_us: Int64s) -> EventBatch:
        """Events moved to the first time that is not too late, with a column that says how far; windows follow."""
        align, earliest_us = self._settings.align, punctuation_us + 1
        if align is not None and self._settings.lateness == BY_WINDOW:
            earliest_us = align.starts(earliest_us)
        moved_us = np.where(too_late & (punctuation_us < FOREVER_US), earliest_us, batch.ts_us)
        far = pa.array(moved_us - batch.ts_us)
        rows = _with_times(batch.rows, batch.layout.time, pa.array(moved_us))
        if align is not None:
            rows = _with_windows(rows, batch, moved_us, align)
        return EventBatch(rows.append_column(ADJUSTED, far), batch.layout)


def _with_windows(rows: pa.RecordBatch, batch: EventBatch, moved_us: Int64s, align: Stretches) -> pa.RecordBatch:
    """The windows of events that were moved: start and end move alike."""
    starts_us, layout = align.starts(moved_us), batch.layout
    if layout.window is not None:
        rows = _with_times(rows, layout.window, pa.array(starts_us))
    if layout.window_end is not None:
        far_us = pa.array(starts_us - align.starts(batch.ts_us))
        rows = _with_times(rows, layout.window_end, pc.add(rows.column(layout.window_end).view(pa.int64()), far_us))
    return rows


def _with_times(rows: pa.RecordBatch, name: str, times_us: pa.Int64Array) -> pa.RecordBatch:
    place = rows.schema.get_field_index(name)
    field = rows.schema.field(place)
    return rows.set_column(place, field, times_us.view(field.type))
