"""What each source did in a micro-batch: how far it came, when it went idle, when it ended, when it came back.

A source idles when it has been silent for longer than `idle_after` by the ticks of the whole stream, or when the whole
stream is; it comes back when it speaks. So does one that has ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from latecomer._jit import kernel
from latecomer.codec import integers
from latecomer.events import FOREVER_US, NEVER_US, Int64s
from latecomer.headers import Header, running_max_per_group

SPEAKING, SILENT, IDLE, ENDED = range(4)  # SILENT: it has not spoken yet

Known = tuple[Int64s, ...]  # per source before the batch: latest time, last tick, end tick, whether it idles


class SourceSteps(NamedTuple):
    """After `tick[i]`, source number `source[i]` has come to `latest_us[i]` and is in `state[i]`; by tick."""

    names: pa.Array
    source: Int64s
    tick: Int64s
    latest_us: Int64s
    state: Int64s

    def idle(self) -> Int64s:
        """Which sources idle in the end, 1 or 0 for each."""
        last = np.zeros(len(self.names), dtype=np.int64)
        last[self.source] = self.state  # of several, the last one stays
        idle: Int64s = (last == IDLE).astype(np.int64)
        return idle

    def least(self, tick: Int64s, declared: Sequence[str] = ()) -> Int64s:
        """The least latest time of the sources that speak, after each tick; FOREVER_US where none does."""
        wanted = pa.array(declared, self.names.type)
        missing = len(declared) > 0 and not bool(pc.all(pc.is_in(wanted, value_set=self.names)).as_py())
        held_back = integers(pc.is_in(self.names, value_set=wanted)) > 0
        waits = (self.state == SILENT) & held_back[self.source]
        value = np.where(self.state == SPEAKING, self.latest_us, np.where(waits, NEVER_US, FOREVER_US))
        least_us = np.empty(len(self.tick), dtype=np.int64)
        running_least(self.source, value, len(self.names), least_us)
        place = np.searchsorted(self.tick, tick, side="right") - 1
        found = np.where(place < 0, FOREVER_US, least_us[place]) if len(least_us) else np.full(len(tick), FOREVER_US)
        return np.full(len(tick), NEVER_US) if missing else found


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


def follow_sources(known: Known, news: Header, idle_ticks: int, clock: int, quiet: int | None) -> SourceSteps:
    """The steps of all sources in a micro-batch whose news are tidy; `clock` is its last tick.

    quiet: the tick after which the whole stream idles, by the wall clock.
    """
    latest_us, last_tick, end_tick, idle = known
    number = np.arange(len(news.names))
    begin = np.where(idle > 0, IDLE, np.where(latest_us == NEVER_US, SILENT, SPEAKING))
    begin = np.where((end_tick > NEVER_US) & (last_tick <= end_tick), ENDED, begin)
    parts = [
        _Part.of(number, np.full(len(number), NEVER_US), begin, latest_us),
        _Part.of(news.spell_source, news.spell_first, SPEAKING),
        _Part.of(news.rise_source, news.rise_tick, SPEAKING, news.rise_ts_us),
        *_idle_parts(known, news, idle_ticks, clock),
        _Part.of(news.end_source, news.end_tick, ENDED),
        *_back_after_end(news),
    ]
    if quiet is not None:
        speaks = number[begin == SPEAKING]
        parts.append(_Part.of(speaks, np.full(len(speaks), quiet), IDLE))
    return _in_order(news.names, parts)


class _Part(NamedTuple):
    """Steps of one kind; a source's latest time is at least `latest_us` from then on."""

    source: Int64s
    tick: Int64s
    state: Int64s
    latest_us: Int64s

    @classmethod
    def of(cls, source: Int64s, tick: Int64s, state: int | Int64s, latest_us: Int64s | None = None) -> _Part:
        unknown = np.full(len(source), NEVER_US)
        states = np.full(len(source), state) if isinstance(state, int) else state.astype(np.int64)
        return cls(source, tick, states, unknown if latest_us is None else latest_us)


def _idle_parts(known: Known, news: Header, idle_ticks: int, clock: int) -> list[_Part]:
    """Where sources go idle: between two spells that lie too far apart, and after the last."""
    if idle_ticks == FOREVER_US:
        return []
    spoke = np.flatnonzero(known[1] > NEVER_US)
    source = np.concatenate([spoke, news.spell_source])
    first = np.concatenate([known[1][spoke], news.spell_first])
    last = np.concatenate([known[1][spoke], news.spell_last])
    order = np.lexsort((last, first, source))
    source, first, last = source[order], first[order], last[order]
    until = np.full(len(source), clock + 1)  # when it speaks again, or may
    same = source[1:] == source[:-1]
    until[:-1] = np.where(same, first[1:], until[:-1])
    chosen = np.flatnonzero(until - last > idle_ticks)
    return [_Part.of(source[chosen], last[chosen] + idle_ticks, IDLE)]


def _back_after_end(news: Header) -> list[_Part]:
    """Sources that went on in the same spell after they had ended: a header does not say when, so at once."""
    ends = np.full(len(news.names), NEVER_US)
    np.maximum.at(ends, news.end_source, news.end_tick)
    end = ends[news.spell_source]
    back = np.flatnonzero((end > NEVER_US) & (news.spell_first <= end) & (end < news.spell_last))
    return [_Part.of(news.spell_source[back], end[back] + 1, SPEAKING)]


def _in_order(names: pa.Array, parts: Sequence[_Part]) -> SourceSteps:
    """All steps by tick; of one source and tick, the later part counts."""
    source, tick, state, latest_us = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    rank = np.repeat(np.arange(len(parts)), [len(part.source) for part in parts])
    order = np.lexsort((rank, tick, source))
    source, tick, state, latest_us = source[order], tick[order], state[order], latest_us[order]
    latest_us = running_max_per_group(latest_us, source) if len(source) else latest_us
    last = np.ones(len(source), dtype=np.bool_)
    last[:-1] = (source[1:] != source[:-1]) | (tick[1:] != tick[:-1])
    chosen = np.flatnonzero(last)
    chosen = chosen[np.argsort(tick[chosen], kind="stable")]
    return SourceSteps(names, source[chosen], tick[chosen], latest_us[chosen], state[chosen])
