"""The progress of time: ticks, marks, punctuations, sources that idle or end.

Every task of a micro-batch sums up what it saw in a Header; every shard merges the headers of all tasks into
the same Timeline, so that all shards agree on the progress of the whole stream with no second source of truth.

Invariants
1. The mark moves between ticks, never inside one: `mark_before(t)` knows only ticks before t.
2. A row whose tick is already closed joins the first open one (`open_ticks`); a micro-batch closes its last tick.
3. Marks and punctuations never go back.
4. Where micro-batches are cut between ticks, the cuts do not change the Timeline: the silence between two
   ticks counts as idle whether or not a batch ended in it. While nothing comes at all, and where there are no stamps,
   heartbeats count silence: in time for which the query has run, so that a restart or a clock that is set adds nothing.
5. A stream of which every source is idle is released up to its largest time; one whose every source has ended, wholly.
6. A control value is in force from the first open tick of its micro-batch on, and closes that tick.
7. Merged, the mark is the least of the latest times of the sources that neither idle nor have ended, the largest time
   of all where there are none. A declared source counts before it has spoken; it idles as if it had spoken when the
   stream began, and the stream has not ended before it has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from latecomer.codec import dump_arrays, integers, load_arrays
from latecomer.controls import ControlStep, in_force, in_order, steps_from_arrays, steps_to_arrays
from latecomer.events import FOREVER_US, NEVER_US, Bools, Int64s
from latecomer.headers import NOTHING, ONE_SOURCE, Header, merge_headers, tidy
from latecomer.jumps import Jump
from latecomer.sources import Known, SourceSteps, follow_sources
from latecomer.timeline import Timeline as Timeline


@dataclass(frozen=True, slots=True)
class Measure:
    """How the progress of a stream is measured.

    idle_ticks: a longer silence is idle. stamped: rows say when they came; if not, a micro-batch is one tick, and
    silence is counted in time for which the query has run. merged: the mark is that of the source furthest behind.
    per_source: the strategy wants to know of every source by itself. declared: sources known before they speak.
    tick_us: how long a tick is, for what is shown.
    """

    idle_ticks: int | None = None
    stamped: bool = True
    merged: bool = False
    per_source: bool = False
    declared: tuple[str, ...] = ()
    tick_us: int = 1

    @property
    def follows_sources(self) -> bool:
        """Whether every source is followed by itself."""
        return self.merged or self.per_source

    @property
    def longest_silence(self) -> int:
        """What a silence must exceed to count, in ticks."""
        return FOREVER_US if self.idle_ticks is None else self.idle_ticks


@dataclass(frozen=True, slots=True)
class Progress:
    """Where the stream stands; the same in every shard, kept from batch to batch.

    quiet_tick: per source the first heartbeat since which it has not spoken, by `ran_tick`, the ticks for which the
    query has run. idle, ended: 1 or 0 per source, where sources are followed. begun_tick: of the first row of all.
    own_floor_us: the floor of the sources that the stage takes, where it passes others on.
    """

    names: pa.Array = field(default_factory=lambda: ONE_SOURCE.slice(0, 0))
    latest_us: Int64s = field(default_factory=lambda: NOTHING)
    last_tick: Int64s = field(default_factory=lambda: NOTHING)
    end_tick: Int64s = field(default_factory=lambda: NOTHING)
    quiet_tick: Int64s = field(default_factory=lambda: NOTHING)
    idle: Int64s = field(default_factory=lambda: NOTHING)
    ended: Int64s = field(default_factory=lambda: NOTHING)
    closed_tick: int = NEVER_US
    ran_tick: int = 0
    mark_us: int = NEVER_US
    floor_us: int = NEVER_US
    begun_tick: int = NEVER_US
    own_floor_us: int = NEVER_US
    controls: tuple[ControlStep, ...] = ()  # those in force
    jump: Jump = field(default_factory=Jump)  # the last large one of the mark

    @property
    def largest_us(self) -> int:
        """The largest time of all sources."""
        return int(self.latest_us.max(initial=NEVER_US))

    def open_ticks(self, tick: Int64s) -> Int64s:
        """Move ticks that are closed already to the first open one."""
        return np.maximum(tick, self.closed_tick + 1)

    def advance(self, headers: Sequence[Header], measure: Measure | None = None) -> tuple[Progress, Timeline]:
        """Take in the headers of one micro-batch: where the stream stands now, and how it got there."""
        measure = Measure() if measure is None else measure
        known = [Header(names=self.names), Header(names=pa.array(measure.declared, self.names.type))]
        news = self._opened(merge_headers([*known, *headers]))
        news = tidy(news, measure.longest_silence)
        moved = self._moved(news)
        after, timeline = _Steps(self._among(news.names), moved, news, measure).follow()
        return replace(after, jump=self._begun(news, timeline).after(timeline)), timeline

    def _begun(self, news: Header, timeline: Timeline) -> Jump:
        """The jump that stands; in a stream's first micro-batch, from its least time to the mark of its first tick."""
        known = np.flatnonzero(timeline.mark_us > NEVER_US)
        if self.largest_us > NEVER_US or len(known) == 0:
            return self.jump
        return Jump(int(timeline.tick[known[0]]), news.least_us, int(timeline.mark_us[known[0]]))

    def _among(self, names: pa.Array) -> Progress:
        """The same with sources that are new: nothing is known of them."""
        places = _places(self.names, names)

        def placed(values: Int64s, nothing: int) -> Int64s:
            found = np.full(len(names), nothing)
            found[places] = values
            return found

        known: dict[str, Any] = {name: placed(getattr(self, name), NEVER_US) for name in _TIMES}
        known |= {name: placed(getattr(self, name), 0) for name in _FLAGS}
        return replace(self, names=names, **known)

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
        known = self._among(news.names)
        latest, last, end, quiet = (getattr(known, name).copy() for name in _TIMES)
        np.maximum.at(latest, news.rise_source, news.rise_ts_us)
        np.maximum.at(last, news.spell_source, news.spell_last)
        np.maximum.at(end, news.end_source, news.end_tick)
        end[self._back(known, news, end)] = NEVER_US
        ran, begun = self.ran_tick + news.ran_ticks, self._begun_tick(news)
        if news.ran_ticks and begun > NEVER_US:
            quiet[quiet == NEVER_US] = ran
        quiet[news.spell_source] = NEVER_US
        control_tick = np.array([step.tick for step in news.controls], dtype=np.int64)
        ticks = np.concatenate([news.spell_last, news.end_tick, control_tick])
        return replace(
            known,
            latest_us=latest,
            last_tick=last,
            end_tick=end,
            quiet_tick=quiet,
            ran_tick=ran,
            begun_tick=begun,
            closed_tick=max(self.closed_tick, int(ticks.max(initial=NEVER_US))),
            controls=in_force(in_order([*self.controls, *news.controls])),
        )

    def _back(self, known: Progress, news: Header, end: Int64s) -> Int64s:
        """The sources that ended and came back with a later time; not after all had ended, for then it is too late."""
        over = int(end.max()) if bool((end > NEVER_US).all()) and len(end) else FOREVER_US
        later = (news.rise_tick > end[news.rise_source]) & (news.rise_tick <= over)
        return news.rise_source[later & (news.rise_ts_us > known.latest_us[news.rise_source])]

    def _begun_tick(self, news: Header) -> int:
        """The tick in which the stream began; NEVER_US before it has."""
        first = int(np.append(news.spell_first, news.end_tick).min(initial=FOREVER_US))
        return first if self.begun_tick == NEVER_US and first < FOREVER_US else self.begun_tick

    def to_bytes(self) -> bytes:
        """For the state store."""
        return dump_arrays(
            {
                "names": self.names,
                **{name: getattr(self, name) for name in (*_TIMES, *_FLAGS)},
                **steps_to_arrays(self.controls),
                "scalars": np.array([getattr(self, name) for name in _SCALARS]),
                "jump": np.array(self.jump, dtype=np.int64),
            }
        )

    @classmethod
    def from_bytes(cls, data: bytes) -> Progress:
        """Read what `to_bytes` wrote."""
        arrays = load_arrays(data)
        names, controls = arrays.pop("names"), steps_from_arrays(arrays)
        scalars = zip(_SCALARS, integers(arrays.pop("scalars")).tolist(), strict=False)  # older ones have fewer
        jump = Jump(*integers(arrays.pop("jump")).tolist())
        numbers: dict[str, Any] = {name: integers(values) for name, values in arrays.items()}
        return cls(names=names, controls=controls, jump=jump, **numbers, **dict(scalars))


_TIMES = ("latest_us", "last_tick", "end_tick", "quiet_tick")
_FLAGS = ("idle", "ended")
_SCALARS = ("closed_tick", "ran_tick", "mark_us", "floor_us", "begun_tick", "own_floor_us")


def _places(old: pa.Array, new: pa.Array) -> Int64s:
    """Where the old names stand among the new ones."""
    if len(old) == 0:
        return NOTHING
    return integers(pc.index_in(old, value_set=new))


class _Steps:
    """Turns the news of one batch into a Timeline; `before` and `after` know the same sources."""

    def __init__(self, before: Progress, after: Progress, news: Header, measure: Measure) -> None:
        self._before, self._after, self._news, self._measure = before, after, news, measure

    def follow(self) -> tuple[Progress, Timeline]:
        largest = self._largest()
        floors = self._idle_floors(*largest) + self._end_floors()
        sources = self._sources() if self._measure.follows_sources else None
        marks = largest if sources is None or not self._measure.merged else self._merged(largest, sources)
        also = np.array([step.tick for step in self._news.controls], dtype=np.int64)
        if sources is not None:
            also = np.append(also, sources.tick)
        timeline = _timeline(marks, floors, also, self._before)
        controls = (*self._before.controls, *self._news.controls)
        timeline = replace(timeline, controls=controls, sources=sources if self._measure.per_source else None)
        after = replace(self._after, mark_us=int(timeline.mark_us[-1]), floor_us=int(timeline.floor_us[-1]))
        if sources is not None:
            idle, ended = sources.last()
            after = replace(after, idle=idle, ended=ended)
        return after, timeline

    def _sources(self) -> SourceSteps:
        """What every source did."""
        before = self._before
        last_tick = np.where(self._unheard(before), self._after.begun_tick, before.last_tick)
        known = Known(before.latest_us, last_tick, before.idle, before.ended)
        silence = self._measure.longest_silence if self._measure.stamped else FOREVER_US
        steps = follow_sources(known, self._news, silence, self._after.closed_tick, self._quiet())
        return steps._replace(declared=self._measure.declared)

    def _unheard(self, progress: Progress) -> Bools:
        """Which sources are declared and have not spoken."""
        declared = integers(pc.is_in(progress.names, value_set=pa.array(self._measure.declared, progress.names.type)))
        unheard: Bools = (declared > 0) & (progress.last_tick == NEVER_US)
        return unheard

    def _largest(self) -> tuple[Int64s, Int64s]:
        """The largest time so far, after each tick in which it rises."""
        news = self._news
        order = np.argsort(news.rise_tick, kind="stable")
        tick = np.concatenate([[NEVER_US], news.rise_tick[order]])
        largest_us = np.maximum.accumulate(np.concatenate([[self._before.largest_us], news.rise_ts_us[order]]))
        last_of_tick = np.append(tick[1:] != tick[:-1], True)
        return tick[last_of_tick], largest_us[last_of_tick]

    def _merged(self, largest: tuple[Int64s, Int64s], sources: SourceSteps) -> tuple[Int64s, Int64s]:
        """The least of the latest times of the sources that speak; it never goes back."""
        tick, largest_us = largest
        ticks = np.union1d(tick, sources.tick)
        least_us = sources.least(ticks)
        all_us = largest_us[np.searchsorted(tick, ticks, side="right") - 1]
        mark_us = np.where(least_us == FOREVER_US, all_us, least_us)
        return ticks, np.maximum.accumulate(np.maximum(mark_us, self._before.mark_us))

    def _idle_floors(self, tick: Int64s, largest_us: Int64s) -> list[tuple[int, int]]:
        """Where the whole stream was silent for longer than `idle_after`, its largest time is a punctuation."""
        silence = self._measure.longest_silence
        floors = self._quiet_floors()
        if silence == FOREVER_US or not self._measure.stamped:
            return floors
        heard = int(self._before.last_tick.max(initial=NEVER_US))
        spells = [(heard, heard)] if heard > NEVER_US else []
        spells += zip(self._news.spell_first.tolist(), self._news.spell_last.tolist(), strict=True)
        reach = FOREVER_US
        for first, last in sorted(spells):
            if first - reach > silence:
                until_us = largest_us[np.searchsorted(tick, reach, side="right") - 1]
                floors.append((reach + silence, int(until_us)))
            reach = last if reach == FOREVER_US else max(reach, last)
        return floors

    def _awaited(self) -> Bools:
        """Which sources have spoken, or are declared."""
        return (self._after.last_tick > NEVER_US) | self._unheard(self._after)

    def _quiet(self) -> Int64s:
        """The sources that were silent for longer than `idle_after` while the query ran; with stamps all or none."""
        after = self._after
        awaited = np.flatnonzero(self._awaited())
        since = after.quiet_tick[awaited]
        quiet = (since > NEVER_US) & (after.ran_tick - since > self._measure.longest_silence)
        return awaited[quiet] if quiet.all() or not self._measure.stamped else NOTHING

    def _quiet_floors(self) -> list[tuple[int, int]]:
        """Heartbeats alone, long enough."""
        spoke = self._after.last_tick > NEVER_US
        if not spoke.any() or len(self._quiet()) < int(self._awaited().sum()):
            return []
        return [(self._after.closed_tick, self._before.largest_us)]

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
