"""The progress of time: ticks, marks, punctuations, sources that idle or end.

Every task of a micro-batch sums up what it saw in a Header; every shard merges the headers of all tasks into
the same Timeline, so that all shards agree on the progress of the whole stream with no second source of truth.

Invariants
1. The mark moves between ticks, never inside one: `mark_before(t)` knows only ticks before t.
2. A row whose tick is already closed joins the first open one (`open_ticks`); a micro-batch closes its last tick.
3. Marks and punctuations never go back.
4. Where micro-batches are cut between ticks, the cuts do not change the Timeline: the silence between two
   ticks counts as idle whether or not a batch ended in it. While nothing comes at all, heartbeats tell the time.
5. A stream of which every source is idle is released up to its mark; one whose every source has ended, wholly.
6. A control value is in force from the first open tick of its micro-batch on, and closes that tick.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from latecomer._jit import kernel
from latecomer.codec import deltas, dump_arrays, integers, load_arrays, undo_deltas
from latecomer.controls import (
    ControlStep,
    in_force,
    in_order,
    numbers_at,
    steps_from_arrays,
    steps_to_arrays,
    texts_at,
)
from latecomer.events import FOREVER_US, NEVER_US, Bools, Int64s
from latecomer.headers import NOTHING, ONE_SOURCE, Header, merge_headers, tidy
from latecomer.search import lower_bound
from latecomer.sources import SourceSteps, follow_sources

_MANY = 1_000  # ticks for which it is worth to make a table of the steps
_LONGEST_SPAN = 1 << 62


@kernel
def _find_steps(steps: Int64s, tick: Int64s, values: Int64s, found: Int64s) -> None:
    """The value of the last step before each tick; the first step is before all ticks.

    A table tells where to look: for as many stretches of ticks as there are steps, the first step in each.
    """
    first, last = steps[1], steps[-1]
    width = (last - first) // len(steps) + 1
    table = np.empty(len(steps) + 1, dtype=np.int64)
    at = 1
    for stretch in range(len(table)):
        while at < len(steps) and (steps[at] - first) // width < stretch:
            at += 1
        table[stretch] = at
    for i in range(len(tick)):
        low = high = 1 if tick[i] <= first else len(steps)
        if first < tick[i] <= last:
            stretch = (tick[i] - first) // width
            low, high = table[stretch], table[stretch + 1]
        found[i] = values[lower_bound(steps, low, high, tick[i]) - 1]


@dataclass(frozen=True, slots=True)
class Timeline:
    """A step function of ticks: after `tick[i]` the mark is `mark_us[i]` and the floor `floor_us[i]`.

    The floor is a punctuation that needs no latency: set where the stream idled or ended. `controls` are the control
    values, as they come into force. `sources` is known to strategies that ask for it (`Settings.per_source`).
    """

    tick: Int64s
    mark_us: Int64s
    floor_us: Int64s
    controls: tuple[ControlStep, ...] = ()
    sources: SourceSteps | None = None

    def before(self, tick: Int64s, values: Int64s) -> Int64s:
        """Of values that hold after each tick of the timeline, those that hold before some ticks."""
        if len(values) == 1:
            return np.full(len(tick), values[0])
        if len(tick) < _MANY or int(self.tick[-1]) - int(self.tick[1]) >= _LONGEST_SPAN:
            return values[np.searchsorted(self.tick, tick, side="left") - 1]
        found = np.empty(len(tick), dtype=np.int64)
        _find_steps(self.tick, tick, values, found)
        return found

    def mark_before(self, tick: Int64s) -> Int64s:
        """The high-water mark an event of each tick meets on arrival."""
        return self.before(tick, self.mark_us)

    def punctuation_before(self, tick: Int64s, latency_us: int) -> Int64s:
        """The last punctuation before each tick, for a reorder latency."""
        return self.before(tick, self.punctuations(latency_us))

    def punctuations(self, latency_us: int | Int64s) -> Int64s:
        """The punctuation after each tick, for a reorder latency, or one for each tick."""
        return np.maximum(self._lagging(latency_us), self.floor_us)

    def punctuation(self, latency_us: int) -> int:
        """The punctuation after the last tick, for a reorder latency."""
        return int(max(self._lagging(latency_us)[-1], self.floor_us[-1]))

    def merge_us(self, declared: Sequence[str] = ()) -> Int64s:
        """After each tick the least of the latest times of the sources that speak: no source is behind it.

        A source that idles or has ended is left out until it speaks again. A declared one that has not spoken yet holds
        it back; others count from their first event on. Where no source speaks it is the mark.
        """
        assert self.sources is not None, "the strategy must say per_source"
        least_us = self.sources.least(self.tick, declared)
        return np.where(least_us == FOREVER_US, self.mark_us, least_us)

    def numbers(self, name: str, default: int) -> Int64s:
        """A control value that is a number, after each tick."""
        return numbers_at(self.controls, name, default, self.tick)

    def texts_at(self, name: str, default: str, tick: Int64s) -> list[tuple[str, Bools]]:
        """A control value that is text, and in which of some ticks it is in force."""
        return texts_at(self.controls, name, default, tick)

    def passed_on(self, passed_us: Int64s) -> Timeline:
        """The progress of results that came up to `passed_us` after each tick, for the stage that takes them.

        Where the stream idled or ended, they too will bring nothing more.
        """
        over = passed_us == FOREVER_US
        mark_us = np.where(over, self.mark_us, passed_us)
        return Timeline(self.tick, mark_us, np.minimum(passed_us, self.floor_us), self.controls)

    def to_bytes(self) -> bytes:
        """For the next stage."""
        arrays = {"tick": deltas(self.tick), "mark_us": deltas(self.mark_us), "floor_us": deltas(self.floor_us)}
        return dump_arrays({**arrays, **steps_to_arrays(self.controls)})

    @classmethod
    def from_bytes(cls, data: bytes) -> Timeline:
        """Read what `to_bytes` wrote."""
        arrays = load_arrays(data)
        controls = steps_from_arrays(arrays)
        tick, mark_us, floor_us = (undo_deltas(integers(arrays[name])) for name in ("tick", "mark_us", "floor_us"))
        return cls(tick, mark_us, floor_us, controls)

    def _lagging(self, latency_us: int | Int64s) -> Int64s:
        return np.where(self.mark_us == NEVER_US, NEVER_US, self.mark_us - latency_us)


@dataclass(frozen=True, slots=True)
class Progress:
    """Where the stream stands; the same in every shard, kept from batch to batch."""

    names: pa.Array = field(default_factory=lambda: ONE_SOURCE.slice(0, 0))
    latest_us: Int64s = field(default_factory=lambda: NOTHING)
    last_tick: Int64s = field(default_factory=lambda: NOTHING)
    end_tick: Int64s = field(default_factory=lambda: NOTHING)
    closed_tick: int = NEVER_US
    quiet_tick: int = NEVER_US  # the first heartbeat since which nothing came, by the wall clock
    mark_us: int = NEVER_US
    floor_us: int = NEVER_US
    controls: tuple[ControlStep, ...] = ()  # those in force
    idle: Int64s = field(default_factory=lambda: NOTHING)  # per source, where a strategy asks for sources

    def open_ticks(self, tick: Int64s) -> Int64s:
        """Move ticks that are closed already to the first open one."""
        return np.maximum(tick, self.closed_tick + 1)

    def advance(
        self, headers: Sequence[Header], idle_ticks: int | None = None, *, per_source: bool = False
    ) -> tuple[Progress, Timeline]:
        """Take in the headers of one micro-batch: where the stream stands now, and how it got there."""
        known = Header(names=self.names)
        news = self._opened(merge_headers([known, *headers]))
        idle = FOREVER_US if idle_ticks is None else idle_ticks
        news = tidy(news, idle)
        moved = self._moved(news)
        return _Steps(self, moved, news, idle).follow(per_source=per_source)

    def _opened(self, news: Header) -> Header:
        return replace(
            news,
            rise_tick=self.open_ticks(news.rise_tick),
            spell_first=self.open_ticks(news.spell_first),
            spell_last=self.open_ticks(news.spell_last),
            end_tick=self.open_ticks(news.end_tick),
            controls=tuple(step._replace(tick=max(step.tick, self.closed_tick + 1)) for step in news.controls),
        )

    def _moved(self, news: Header) -> Progress:
        """Per-source facts after the batch."""
        places = _places(self.names, news.names)
        size = len(news.names)
        latest, last, end = (np.full(size, NEVER_US) for _ in range(3))
        latest[places], last[places], end[places] = self.latest_us, self.last_tick, self.end_tick
        np.maximum.at(latest, news.rise_source, news.rise_ts_us)
        np.maximum.at(last, news.spell_source, news.spell_last)
        np.maximum.at(end, news.end_source, news.end_tick)
        control_tick = np.array([step.tick for step in news.controls], dtype=np.int64)
        ticks = np.concatenate([news.spell_last, news.end_tick, control_tick])
        closed = max(self.closed_tick, int(ticks.max(initial=NEVER_US)))
        quiet = NEVER_US
        if len(news.spell_last) == 0:
            quiet = self.quiet_tick if self.quiet_tick > NEVER_US else news.now_tick
        return replace(
            self,
            names=news.names,
            latest_us=latest,
            last_tick=last,
            end_tick=end,
            closed_tick=closed,
            quiet_tick=quiet,
            controls=in_force(in_order([*self.controls, *news.controls])),
        )

    def to_bytes(self) -> bytes:
        """For the state store."""
        return dump_arrays(
            {
                "names": self.names,
                "latest_us": self.latest_us,
                "last_tick": self.last_tick,
                "end_tick": self.end_tick,
                "idle": self.idle,
                **steps_to_arrays(self.controls),
                "scalars": np.array([self.closed_tick, self.quiet_tick, self.mark_us, self.floor_us]),
            }
        )

    @classmethod
    def from_bytes(cls, data: bytes) -> Progress:
        """Read what `to_bytes` wrote."""
        arrays = load_arrays(data)
        names, controls = arrays.pop("names"), steps_from_arrays(arrays)
        numbers = {name: integers(values) for name, values in arrays.items()}
        closed, quiet, mark, floor = (int(value) for value in numbers.pop("scalars"))
        latest_us, last_tick, end_tick, idle = (
            numbers[name] for name in ("latest_us", "last_tick", "end_tick", "idle")
        )
        return cls(names, latest_us, last_tick, end_tick, closed, quiet, mark, floor, controls, idle)


def _places(old: pa.Array, new: pa.Array) -> Int64s:
    """Where the old names stand among the new ones."""
    if len(old) == 0:
        return NOTHING
    return integers(pc.index_in(old, value_set=new))


class _Steps:
    """Turns the news of one batch into a Timeline."""

    def __init__(self, before: Progress, after: Progress, news: Header, idle_ticks: int) -> None:
        self._before, self._after, self._news, self._idle_ticks = before, after, news, idle_ticks

    def follow(self, *, per_source: bool) -> tuple[Progress, Timeline]:
        tick, mark_us = self._marks()
        floors = self._idle_floors(tick, mark_us) + self._end_floors()
        sources = self._sources() if per_source else None
        controls = (*self._before.controls, *self._news.controls)
        also = np.array([step.tick for step in self._news.controls], dtype=np.int64)
        if sources is not None:
            also = np.append(also, sources.tick)
        timeline = _timeline((tick, mark_us), floors, also, self._before)
        timeline = replace(timeline, controls=controls, sources=sources)
        after = replace(self._after, mark_us=int(timeline.mark_us[-1]), floor_us=int(timeline.floor_us[-1]))
        return (after if sources is None else replace(after, idle=sources.idle())), timeline

    def _sources(self) -> SourceSteps:
        """What every source did."""
        before, news = self._before, self._news
        places, size = _places(before.names, news.names), len(news.names)
        known = np.full((4, size), NEVER_US)
        known[3] = 0
        idle = before.idle if len(before.idle) == len(places) else np.zeros(len(places), dtype=np.int64)
        known[:, places] = before.latest_us, before.last_tick, before.end_tick, idle
        clock = self._after.closed_tick
        quiet = clock if self._quiet_floors() else None
        return follow_sources(tuple(known), news, self._idle_ticks, clock, quiet)

    def _marks(self) -> tuple[Int64s, Int64s]:
        news = self._news
        order = np.argsort(news.rise_tick, kind="stable")
        tick = np.concatenate([[NEVER_US], news.rise_tick[order]])
        mark_us = np.maximum.accumulate(np.concatenate([[self._before.mark_us], news.rise_ts_us[order]]))
        last_of_tick = np.append(tick[1:] != tick[:-1], True)
        return tick[last_of_tick], mark_us[last_of_tick]

    def _idle_floors(self, tick: Int64s, mark_us: Int64s) -> list[tuple[int, int]]:
        """Where the whole stream was silent for longer than `idle_after`, its mark is a punctuation."""
        if self._idle_ticks == FOREVER_US:
            return []
        heard = int(self._before.last_tick.max(initial=NEVER_US))
        spells = [(heard, heard)] if heard > NEVER_US else []
        spells += zip(self._news.spell_first.tolist(), self._news.spell_last.tolist(), strict=True)
        floors, reach = self._quiet_floors(), FOREVER_US
        for first, last in sorted(spells):
            if first - reach > self._idle_ticks:
                mark = mark_us[np.searchsorted(tick, reach, side="right") - 1]
                floors.append((reach + self._idle_ticks, int(mark)))
            reach = last if reach == FOREVER_US else max(reach, last)
        return floors

    def _quiet_floors(self) -> list[tuple[int, int]]:
        """Heartbeats alone, long enough. Wall time is compared with wall time: stamps may lag far behind it."""
        after = self._after
        if after.quiet_tick == NEVER_US or self._news.now_tick - after.quiet_tick <= self._idle_ticks:
            return []
        return [(after.closed_tick, self._before.mark_us)]

    def _end_floors(self) -> list[tuple[int, int]]:
        """After the tick in which the last source ended nothing comes any more."""
        if len(self._news.end_tick) == 0:
            return []
        ends = self._after.end_tick
        return [(int(ends.max()), FOREVER_US)] if bool((ends > NEVER_US).all()) else []


def _timeline(marks: tuple[Int64s, Int64s], floors: list[tuple[int, int]], also: Int64s, before: Progress) -> Timeline:
    """Marks and floors as one step function, with a step at the ticks `also`."""
    tick, mark_us = marks
    floor_tick = np.array([at for at, _ in floors], dtype=np.int64)
    floor_us = np.array([floor for _, floor in floors], dtype=np.int64)
    ticks = np.unique(np.concatenate([tick, floor_tick, also]))
    steps = np.full(len(ticks), before.floor_us)
    np.maximum.at(steps, np.searchsorted(ticks, floor_tick), floor_us)
    marks_us = mark_us[np.searchsorted(tick, ticks, side="right") - 1]
    return Timeline(ticks, marks_us, np.maximum.accumulate(steps))
