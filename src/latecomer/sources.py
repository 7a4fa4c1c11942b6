"""What each source did in a micro-batch: how far it came, when it went idle, when it ended, when it came back.

A source idles when it has been silent for longer than `idle_after` by the ticks of the whole stream, or when the whole
stream is; where there are no stamps, by the time for which the query has run. It comes back when it speaks. One that
has ended comes back when it gives a time later than all it gave before: a header says exactly when that was.

A declared source holds the others back before it has spoken, until it idles or ends; its silence is counted as if it
had spoken when the stream began.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from latecomer._jit import kernel
from latecomer.codec import deltas, integers, undo_deltas
from latecomer.events import FOREVER_US, NEVER_US, Bools, Int64s
from latecomer.headers import Header, running_max_per_group


class Known(NamedTuple):
    """Per source, before a micro-batch: its latest time, its last tick, and, 1 or 0, whether it idles and has ended.

    A declared source that has not spoken has the tick in which the stream began.
    """

    latest_us: Int64s
    last_tick: Int64s
    idle: Int64s
    ended: Int64s


class SourceSteps(NamedTuple):
    """After `tick[i]`, source number `source[i]` has come to `latest_us[i]`, and idles or has ended or not; by tick.

    declared: the names of the sources that the stream was declared with, spoken or not.
    """

    names: pa.Array
    source: Int64s
    tick: Int64s
    latest_us: Int64s
    idle: Int64s
    ended: Int64s
    declared: tuple[str, ...] = ()

    def last(self) -> tuple[Int64s, Int64s]:
        """Which sources idle, and which have ended, after the last step: 1 or 0 for each."""
        idle, ended = (np.zeros(len(self.names), dtype=np.int64) for _ in range(2))
        idle[self.source], ended[self.source] = self.idle, self.ended  # of several, the last one stays
        return idle, ended

    def least(self, tick: Int64s, declared: Sequence[str] = ()) -> Int64s:
        """The least latest time of the sources that speak, after each tick; FOREVER_US where none does.

        declared: sources that are to be waited for besides those that the stream was declared with.
        """
        declared = (*self.declared, *declared)
        wanted = pa.array(declared, self.names.type)
        missing = len(declared) > 0 and not bool(pc.all(pc.is_in(wanted, value_set=self.names)).as_py())
        held_back = integers(pc.is_in(self.names, value_set=wanted)) > 0
        silent = self.latest_us == NEVER_US  # it has not spoken yet
        there = (self.idle == 0) & (self.ended == 0)
        waits, speaks = silent & there & held_back[self.source], ~silent & there
        value = np.where(speaks, self.latest_us, np.where(waits, NEVER_US, FOREVER_US))
        least_us = np.empty(len(self.tick), dtype=np.int64)
        running_least(self.source, value, len(self.names), least_us)
        return np.full(len(tick), NEVER_US) if missing else self._after(tick, least_us, FOREVER_US)

    def largest(self, tick: Int64s) -> Int64s:
        """The largest time of all sources, after each tick."""
        return self._after(tick, np.maximum.accumulate(self.latest_us), NEVER_US)

    def over(self, tick: Int64s) -> Bools:
        """Whether all sources have ended, after each tick; false where there are none."""
        order = np.argsort(self.source, kind="stable")
        ended, source = self.ended[order], self.source[order]
        before = np.append(0, ended[:-1])
        before[np.diff(source, prepend=-1) != 0] = 0
        more = np.zeros(len(self.tick), dtype=np.int64)
        more[order] = ended - before
        all_ended: Bools = self._after(tick, np.cumsum(more), 0) == max(1, len(self.names))
        return all_ended

    def only(self, names: Sequence[str]) -> SourceSteps:
        """The steps of some sources."""
        return self._chosen(integers(pc.is_in(self.names, value_set=pa.array(names, self.names.type))) > 0)

    def without(self, names: Sequence[str]) -> SourceSteps:
        """The steps of all sources but some."""
        return self._chosen(integers(pc.is_in(self.names, value_set=pa.array(names, self.names.type))) == 0)

    def joined_by(self, name: str, other: SourceSteps) -> SourceSteps:
        """These steps and those of one more source, declared, with a name of its own."""
        names = pa.concat_arrays([self.names, pa.array([name], self.names.type)])
        pairs = zip(self[1:6], other._replace(source=other.source + len(self.names))[1:6], strict=True)
        columns = [np.concatenate(pair) for pair in pairs]
        order = np.argsort(columns[1], kind="stable")
        source, tick, latest_us, idle, ended = (column[order] for column in columns)
        return SourceSteps(names, source, tick, latest_us, idle, ended, (*self.declared, name))

    def to_arrays(self) -> dict[str, Int64s | pa.Array]:
        """For the next stage."""
        arrays = {f"source_{each}": deltas(getattr(self, each)) for each in _NUMBERS}
        return {"sources": self.names, "declared": pa.array(self.declared, self.names.type), **arrays}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, pa.Array]) -> SourceSteps:
        """Read what `to_arrays` wrote."""
        source, tick, latest_us, idle, ended = (undo_deltas(integers(arrays[f"source_{each}"])) for each in _NUMBERS)
        declared = tuple(arrays["declared"].to_pylist())
        return cls(arrays["sources"], source, tick, latest_us, idle, ended, declared)

    def _chosen(self, keep: Bools) -> SourceSteps:
        mine, number = keep[self.source], np.cumsum(keep) - 1
        names = self.names.filter(pa.array(keep))
        left, (source, *others) = set(names.to_pylist()), (column[mine] for column in self[1:6])
        tick, latest_us, idle, ended = others
        declared = tuple(name for name in self.declared if name in left)
        return SourceSteps(names, number[source], tick, latest_us, idle, ended, declared)

    def _after(self, tick: Int64s, values: Int64s, nothing: int) -> Int64s:
        """Of values that hold after each step, those that hold after some ticks."""
        if len(values) == 0:
            return np.full(len(tick), nothing)
        place = np.searchsorted(self.tick, tick, side="right") - 1
        return np.where(place < 0, nothing, values[place])


_NUMBERS = ("source", "tick", "latest_us", "idle", "ended")


@kernel
def running_least(source: Int64s, value: Int64s, sources: int, least: Int64s) -> None:
    """After each step, by which a source's value becomes another, the least of all values; they begin at FOREVER_US.

    A tournament: every node of a binary tree has the smaller of its two children.
    """
    size = 1
    while size < sources:
        size *= 2
    tree = np.full(2 * size, FOREVER_US)
    for i in range(len(source)):
        node = size + source[i]
        tree[node] = value[i]
        while node > 1:
            node >>= 1
            tree[node] = min(tree[2 * node], tree[2 * node + 1])
        least[i] = tree[1]


def follow_sources(known: Known, news: Header, idle_ticks: int, clock: int, quiet: Int64s) -> SourceSteps:
    """The steps of all sources in a micro-batch whose news are tidy; `clock` is its last tick.

    quiet: the sources that idle after it by the time for which the query has run.
    """
    number = np.arange(len(news.names))
    higher = np.flatnonzero(news.rise_ts_us > known.latest_us[news.rise_source])
    rise_source, rise_tick, rise_ts_us = news.rise_source[higher], news.rise_tick[higher], news.rise_ts_us[higher]
    parts = [
        _Part.of(number, np.full(len(number), NEVER_US), known.latest_us, known.idle, known.ended),
        _Part.of(news.spell_source, news.spell_first, idle=0),
        _Part.of(rise_source, rise_tick, rise_ts_us, ended=0),
        *_idle_parts(known, news, idle_ticks, clock),
        _Part.of(quiet, np.full(len(quiet), clock), idle=1),
        _Part.of(news.end_source, news.end_tick, ended=1),
    ]
    return _in_order(news.names, parts)


_AS_BEFORE = -1


class _Part(NamedTuple):
    """Steps of one kind: a source's latest time is at least `latest_us` from then on, and what is said otherwise."""

    source: Int64s
    tick: Int64s
    latest_us: Int64s
    idle: Int64s
    ended: Int64s

    @classmethod
    def of(
        cls,
        source: Int64s,
        tick: Int64s,
        latest_us: Int64s | int = NEVER_US,
        idle: Int64s | int = _AS_BEFORE,
        ended: Int64s | int = _AS_BEFORE,
    ) -> _Part:
        like = np.zeros(len(source), dtype=np.int64)
        return cls(source, tick, like + latest_us, like + idle, like + ended)


def _idle_parts(known: Known, news: Header, idle_ticks: int, clock: int) -> list[_Part]:
    """Where sources go idle: between two spells that lie too far apart, and after the last."""
    if idle_ticks == FOREVER_US:
        return []
    spoke = np.flatnonzero(known.last_tick > NEVER_US)
    source = np.concatenate([spoke, news.spell_source])
    first = np.concatenate([known.last_tick[spoke], news.spell_first])
    last = np.concatenate([known.last_tick[spoke], news.spell_last])
    order = np.lexsort((last, first, source))
    source, first, last = source[order], first[order], last[order]
    until = np.full(len(source), clock + 1)  # when it speaks again, or may
    same = source[1:] == source[:-1]
    until[:-1] = np.where(same, first[1:], until[:-1])
    chosen = np.flatnonzero(until - last > idle_ticks)
    return [_Part.of(source[chosen], last[chosen] + idle_ticks, idle=1)]


def _in_order(names: pa.Array, parts: Sequence[_Part]) -> SourceSteps:
    """All steps by tick; of one source and tick, the later part counts."""
    columns = [np.concatenate(each) for each in zip(*parts, strict=True)]
    rank = np.repeat(np.arange(len(parts)), [len(part.source) for part in parts])
    order = np.lexsort((rank, columns[1], columns[0]))
    source, tick, latest_us, idle, ended = (column[order] for column in columns)
    latest_us = running_max_per_group(latest_us, source) if len(source) else latest_us
    idle, ended = _filled(idle), _filled(ended)
    last = np.ones(len(source), dtype=np.bool_)
    last[:-1] = (source[1:] != source[:-1]) | (tick[1:] != tick[:-1])
    chosen = np.flatnonzero(last)
    chosen = chosen[np.argsort(tick[chosen], kind="stable")]
    return SourceSteps(names, source[chosen], tick[chosen], latest_us[chosen], idle[chosen], ended[chosen])


def _filled(flag: Int64s) -> Int64s:
    """What is not said is as before; the first step of every source says all."""
    said = np.where(flag == _AS_BEFORE, 0, np.arange(len(flag)))
    return flag[np.maximum.accumulate(said)] if len(flag) else flag
