"""A small strategy that waits for every source, and its slow twin over two stages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import pyarrow as pa

from latecomer.chunks import ChunkStore
from latecomer.contract import Machine, Settings
from latecomer.events import FOREVER_US, NEVER_US, TICK, TICK_FIELD, EventBatch, Int64s, Layout
from latecomer.gives import Explained, Gives, Onward
from latecomer.outputs import Lane, Output
from latecomer.progress import Timeline
from latecomer.runs import StoredRuns

AT_THE_END = -1


@dataclass(frozen=True)
class Gate(Settings):
    """Give a row when every source has passed it, and one that comes behind at once; `given_<name>` is the tick."""

    called: str
    passing: tuple[str, ...] = ()
    keep: tuple[str, ...] = ("ts", "key", "id")
    name: ClassVar[str] = "gate"
    per_source: ClassVar[bool] = True

    @property
    def results_as(self) -> str | None:
        return self.called

    @property
    def passes_on(self) -> tuple[str, ...]:
        return self.passing

    @property
    def onward(self) -> Onward:
        return Onward.IN_TICKS

    def build(self, store: ChunkStore, layout: Layout) -> Machine:
        return _Gate(self, store, layout)

    def gives(self, columns: pa.Schema, layout: Layout) -> Gives:
        own = [columns.field(name) for name in self.kept(columns.names)]
        given = pa.field(f"given_{self.called}", pa.int64())
        return Gives(pa.schema([*own, given]), Explained("the gate", ()), time=layout.time)

    def kept(self, names: Sequence[str]) -> list[str]:
        """The columns of rows that results have too."""
        return [name for name in names if name in self.keep or name.startswith("given_")]

    def most_held(self, accepted_ts_us: Int64s, timeline: Timeline) -> int:
        return len(accepted_ts_us)


class _Gate(Machine):
    def __init__(self, settings: Gate, store: ChunkStore, layout: Layout) -> None:
        super().__init__(store, layout)
        self._settings, self._runs = settings, StoredRuns(store, layout)

    def push(self, batch: EventBatch, timeline: Timeline) -> Iterator[Output]:
        passed_us = self.passed(timeline)
        leaving = self._runs.release(batch.sorted(), int(passed_us[-1]))
        self.store.notes["passed"] = int(passed_us[-1])
        if leaving is not None:
            reached = timeline.tick[np.minimum(np.searchsorted(passed_us, leaving.ts_us), len(passed_us) - 1)]
            yield self._output(leaving, np.maximum(reached, leaving.tick), TICK_FIELD)

    def finish(self) -> Iterator[Output]:
        leaving = self._runs.release(None, FOREVER_US)
        if leaving is not None:
            yield self._output(leaving, np.full(len(leaving), AT_THE_END), None)

    def passed(self, timeline: Timeline) -> Int64s:
        before = self.store.notes.get("passed", NEVER_US)
        reached = np.maximum(timeline.merge_us(), timeline.floor_us)
        return np.maximum.accumulate(np.maximum(reached, before))

    def _output(self, leaving: EventBatch, ticks: Int64s, field: pa.Field | None) -> Output:
        rows = leaving.rows.select(self._settings.kept(leaving.rows.schema.names))
        rows = rows.append_column(f"given_{self._settings.called}", pa.array(ticks))
        return Output(Lane.RESULTS, rows if field is None else rows.append_column(TICK, pa.array(ticks)))


class Said(NamedTuple):
    """A row of a source, or its end, where it has no time."""

    tick: int
    source: str
    ts: int | None
    id: int


class Group:
    """Some sources, as they stand after a tick; by the definition."""

    def __init__(self, said: Sequence[Said], declared: Sequence[str], begun: int, idle: int | None) -> None:
        self._said, self._declared, self._begun, self._idle = said, declared, begun, idle

    def latest(self, tick: int) -> dict[str, int]:
        """The latest time of each source that neither idles nor has ended; NEVER_US where it is declared and waits."""
        found: dict[str, int] = {}
        for source in {*self._declared, *(each.source for each in self._said if each.tick <= tick)}:
            own = [each for each in self._said if each.source == source and each.tick <= tick]
            times = [each.ts for each in own if each.ts is not None]
            if any(each.ts is None for each in own):
                continue
            heard = max((each.tick for each in own), default=self._begun)
            if self._idle is None or tick - heard < self._idle:
                found[source] = max(times, default=NEVER_US)
        return found

    def largest(self, tick: int) -> int:
        return max((each.ts for each in self._said if each.ts is not None and each.tick <= tick), default=NEVER_US)

    def over(self, tick: int) -> bool:
        """Whether all have ended; whoever speaks later is known already, since one micro-batch or none brings it."""
        names = {*self._declared, *(each.source for each in self._said)}
        ended = {each.source for each in self._said if each.ts is None and each.tick <= tick}
        return names <= ended

    def floor(self, tick: int) -> int:
        if self.over(tick):
            return FOREVER_US
        return NEVER_US if self.latest(tick) else self.largest(tick)


def released(rows: Sequence[tuple[int, int, int]], reached: dict[int, int]) -> dict[int, int]:
    """The tick in which each row (its tick, time, id) is given, of those that are."""
    found = {}
    for tick, ts, number in rows:
        at = [each for each, until in reached.items() if each >= tick and until >= ts]
        if at:
            found[number] = min(at)
    return found


def two_gates(said: Sequence[Said], passing: str, idle: int | None) -> tuple[dict[int, int], dict[int, int]]:
    """The ticks in which rows leave the first gate, and the second, which `passing` joins; all others are declared."""
    names = sorted({"a", "b", passing})
    ticks = range(min(each.tick for each in said), max(each.tick for each in said) + 1)
    own = Group([each for each in said if each.source != passing], [n for n in names if n != passing], ticks[0], idle)
    third = Group([each for each in said if each.source == passing], [passing], ticks[0], idle)
    whole = Group(said, names, ticks[0], idle)
    first, second, floor = {}, {}, NEVER_US
    reached, all_floor, reached_2 = NEVER_US, NEVER_US, NEVER_US
    for tick in ticks:
        speaking = own.latest(tick)
        reached = max(reached, min(speaking.values(), default=own.largest(tick)), own.floor(tick))
        first[tick] = reached
        came = own.largest(tick) if reached == FOREVER_US else reached
        latest = third.latest(tick)
        if speaking and reached < FOREVER_US:
            latest = {**latest, "results": came}
        all_floor = max(all_floor, whole.floor(tick))
        done = not speaking and reached >= own.largest(tick)
        floor = max(floor, all_floor if done else min(reached, all_floor))
        least = min(latest.values(), default=max(came, third.largest(tick)))
        reached_2 = max(reached_2, least, floor)
        second[tick] = reached_2
    given = released([(r.tick, r.ts, r.id) for r in said if r.source != passing and r.ts is not None], first)
    times = {each.id: each.ts for each in said if each.ts is not None}
    rows = [(tick, times[number], number) for number, tick in given.items()]
    rows += [(r.tick, r.ts, r.id) for r in said if r.source == passing and r.ts is not None]
    return given, released(rows, second)
