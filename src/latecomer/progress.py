"""The progress of time: ticks, marks, punctuations, sources that idle or end.

Every task of a micro-batch sums up what it saw in a Header; every shard merges the headers of all tasks into
the same Timeline, so that all shards agree on the progress of the whole stream with no second source of truth.

Invariants
1. The mark moves between ticks, never inside one: `mark_before(t)` knows only ticks before t.
2. A row whose tick is already closed joins the first open one (`open_ticks`); a micro-batch closes its last tick.
3. Marks and punctuations never go back.
4. Where micro-batches are cut between ticks, the cuts do not change the Timeline: the silence between two
   ticks counts as idle whether or not a batch ended in it. For that a header carries, per source, the spells
   (first tick, last tick) between which no silence was longer than `idle_after`.
5. A stream of which every source is idle is released up to its mark; one whose every source has ended, wholly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from latecomer._jit import kernel
from latecomer.codec import deltas, dump_arrays, integers, load_arrays, undo_deltas
from latecomer.events import FOREVER_US, NEVER_US, Int64s

_NOTHING = np.zeros(0, dtype=np.int64)
_ONE_SOURCE = pa.array([""], pa.large_string())


@dataclass(frozen=True, slots=True)
class Header:
    """What one task saw: per source the ticks at which its latest time rises, its spells, and its end."""

    names: pa.Array = field(default_factory=lambda: _ONE_SOURCE.slice(0, 0))
    rise_source: Int64s = field(default_factory=lambda: _NOTHING)
    rise_tick: Int64s = field(default_factory=lambda: _NOTHING)
    rise_ts_us: Int64s = field(default_factory=lambda: _NOTHING)
    spell_source: Int64s = field(default_factory=lambda: _NOTHING)
    spell_first: Int64s = field(default_factory=lambda: _NOTHING)
    spell_last: Int64s = field(default_factory=lambda: _NOTHING)
    end_source: Int64s = field(default_factory=lambda: _NOTHING)
    end_tick: Int64s = field(default_factory=lambda: _NOTHING)
    now_tick: int = NEVER_US

    def to_bytes(self) -> bytes:
        """Delta-encode for the journey."""
        return dump_arrays(
            {
                "names": self.names,
                "rise_source": deltas(self.rise_source),
                "rise_tick": deltas(self.rise_tick),
                "rise_ts_us": deltas(self.rise_ts_us),
                "spell_source": deltas(self.spell_source),
                "spell_first": self.spell_first,
                "spell_last": self.spell_last,
                "end_source": self.end_source,
                "end_tick": self.end_tick,
                "now_tick": np.array([self.now_tick]),
            }
        )

    @classmethod
    def from_bytes(cls, data: bytes) -> Header:
        """Read what `to_bytes` wrote."""
        arrays = load_arrays(data)
        names = arrays.pop("names")
        numbers = {name: integers(values) for name, values in arrays.items()}
        now_tick = int(numbers.pop("now_tick")[0])
        for name in ("rise_source", "rise_tick", "rise_ts_us", "spell_source"):
            numbers[name] = undo_deltas(numbers[name])
        return cls(names=names, now_tick=now_tick, **numbers)


@kernel
def _latest_per_stretch(source: Int64s, tick: Int64s, ts_us: Int64s, sources: int) -> tuple[Int64s, Int64s, Int64s]:
    """Shrink events to one (source, tick, largest ts) per stretch of one source's events in one tick."""
    current = np.full(sources, -1, dtype=np.int64)
    out_source = np.empty(len(ts_us), dtype=np.int64)
    out_tick = np.empty(len(ts_us), dtype=np.int64)
    out_ts = np.empty(len(ts_us), dtype=np.int64)
    count = 0
    for i in range(len(ts_us)):
        s = source[i]
        at = current[s]
        if at >= 0 and out_tick[at] == tick[i]:
            if ts_us[i] > out_ts[at]:
                out_ts[at] = ts_us[i]
            continue
        out_source[count], out_tick[count], out_ts[count] = s, tick[i], ts_us[i]
        current[s] = count
        count += 1
    return out_source[:count].copy(), out_tick[:count].copy(), out_ts[:count].copy()


class HeaderBuilder:
    """Collects a task's events, batch by batch, into one Header."""

    def __init__(self, idle_ticks: int | None = None) -> None:
        self._idle_ticks = FOREVER_US if idle_ticks is None else idle_ticks
        self._parts: list[Header] = []

    def add(self, ts_us: Int64s, tick: Int64s | None, source: pa.Array | None = None) -> None:
        """Take in events; without ticks all of them belong to the first open one."""
        if len(ts_us) == 0:
            return
        if tick is None and source is None:
            last = np.array([NEVER_US])
            self._append(_ONE_SOURCE, np.zeros(1, np.int64), last, np.array([ts_us.max()]))
            return
        names, codes = encode_sources(source, len(ts_us))
        ticks = np.full(len(ts_us), NEVER_US) if tick is None else tick
        self._append(names, *_latest_per_stretch(codes, ticks, ts_us, len(names)))

    def add_ends(self, tick: Int64s | None, count: int, source: pa.Array | None = None) -> None:
        """Take in rows that say that their source has ended."""
        if count == 0:
            return
        names, codes = encode_sources(source, count)
        ticks = np.full(count, NEVER_US) if tick is None else tick
        self._parts.append(Header(names=names, end_source=codes, end_tick=ticks))

    def hear(self, now_tick: int) -> None:
        """Take in a heartbeat."""
        self._parts.append(Header(now_tick=now_tick))

    def _append(self, names: pa.Array, source: Int64s, tick: Int64s, ts_us: Int64s) -> None:
        part = Header(names, source, tick, ts_us, source, tick, tick, now_tick=int(tick.max()))
        self._parts.append(_tidy(part, self._idle_ticks))

    def build(self) -> Header:
        """The header of everything taken in."""
        return _tidy(merge_headers(self._parts), self._idle_ticks)


def encode_sources(source: pa.Array | None, count: int) -> tuple[pa.Array, Int64s]:
    """Distinct source names as text, and a code per event; events without a source have one name, empty."""
    if source is None:
        return _ONE_SOURCE, np.zeros(count, dtype=np.int64)
    encoded = source if pa.types.is_dictionary(source.type) else source.dictionary_encode("encode")
    names = pa.array([_source_name(value) for value in encoded.dictionary.to_pylist()], pa.large_string())
    return names, integers(encoded.indices)


def _source_name(value: object) -> str | None:
    return None if value is None else str(value)


def merge_headers(parts: Sequence[Header]) -> Header:
    """Headers of several tasks, or several batches of one task, as one (not yet tidy)."""
    names, codes = _unite_names([part.names for part in parts])

    def gather(column: str, coded: str | None = None) -> Int64s:
        arrays = [getattr(part, column) for part in parts]
        if coded is not None:
            arrays = [code[array] for code, array in zip(codes, arrays, strict=True)]
        return np.concatenate(arrays) if arrays else _NOTHING

    return Header(
        names=names,
        rise_source=gather("rise_source", "names"),
        rise_tick=gather("rise_tick"),
        rise_ts_us=gather("rise_ts_us"),
        spell_source=gather("spell_source", "names"),
        spell_first=gather("spell_first"),
        spell_last=gather("spell_last"),
        end_source=gather("end_source", "names"),
        end_tick=gather("end_tick"),
        now_tick=max((part.now_tick for part in parts), default=NEVER_US),
    )


def _unite_names(all_names: Sequence[pa.Array]) -> tuple[pa.Array, list[Int64s]]:
    """The sorted union of name lists, and for each list the new code of each old one."""
    if not all_names:
        return _ONE_SOURCE.slice(0, 0), []
    together = pa.concat_arrays(all_names)
    encoded = together.dictionary_encode("encode")
    ranks = pc.array_sort_indices(encoded.dictionary).to_numpy()
    new_code = np.empty(len(ranks), dtype=np.int64)
    new_code[ranks] = np.arange(len(ranks))
    codes = new_code[integers(encoded.indices)]
    bounds = np.cumsum([len(names) for names in all_names])[:-1]
    return encoded.dictionary.take(pa.array(ranks)), list(np.split(codes, bounds))


def _tidy(header: Header, idle_ticks: int) -> Header:
    """Keep only rises that rise and spells that silence separates."""
    source, tick, ts_us = _rises(header.rise_source, header.rise_tick, header.rise_ts_us)
    spell_source, first, last = _join_spells(header.spell_source, header.spell_first, header.spell_last, idle_ticks)
    return replace(
        header,
        rise_source=source,
        rise_tick=tick,
        rise_ts_us=ts_us,
        spell_source=spell_source,
        spell_first=first,
        spell_last=last,
    )


def _rises(source: Int64s, tick: Int64s, ts_us: Int64s) -> tuple[Int64s, Int64s, Int64s]:
    """Per source, in tick order, the ticks at which the largest time so far rises."""
    if len(source) == 0:
        return source, tick, ts_us
    order = np.lexsort((-ts_us, tick, source))
    source, tick, ts_us = source[order], tick[order], ts_us[order]
    new_source = np.diff(source, prepend=source[0] - 1) != 0
    highest = _running_max_per_group(ts_us, np.cumsum(new_source))
    keep = new_source.copy()
    keep[1:] |= highest[1:] > highest[:-1]
    return source[keep], tick[keep], ts_us[keep]


def _join_spells(source: Int64s, first: Int64s, last: Int64s, idle_ticks: int) -> tuple[Int64s, Int64s, Int64s]:
    """Per source, spells with no more than `idle_ticks` of silence between them become one."""
    if len(source) == 0:
        return source, first, last
    order = np.lexsort((last, first, source))
    source, first, last = source[order], first[order], last[order]
    new_source = np.diff(source, prepend=source[0] - 1) != 0
    reach = _running_max_per_group(last, np.cumsum(new_source))
    breaks = new_source.copy()
    breaks[1:] |= first[1:] - reach[:-1] > idle_ticks
    starts = np.flatnonzero(breaks)
    return source[starts], first[starts], np.maximum.reduceat(last, starts)


def _running_max_per_group(values: Int64s, group: Int64s) -> Int64s:
    """Running maximum that starts anew where the (ascending) group number changes."""
    order = np.argsort(values, kind="stable")
    rank = np.empty(len(values), dtype=np.int64)
    rank[order] = np.arange(len(values))
    lifted = np.maximum.accumulate(rank + group * len(values)) - group * len(values)
    return values[order][lifted]


@dataclass(frozen=True, slots=True)
class Timeline:
    """A step function of ticks: after `tick[i]` the mark is `mark_us[i]` and the floor `floor_us[i]`.

    The floor is a punctuation that needs no latency: set where the stream idled or ended.
    """

    tick: Int64s
    mark_us: Int64s
    floor_us: Int64s

    def _before(self, tick: Int64s, values: Int64s) -> Int64s:
        if len(values) == 1:
            return np.full(len(tick), values[0])
        return values[np.searchsorted(self.tick, tick, side="left") - 1]

    def mark_before(self, tick: Int64s) -> Int64s:
        """The high-water mark an event of each tick meets on arrival."""
        return self._before(tick, self.mark_us)

    def punctuation_before(self, tick: Int64s, latency_us: int) -> Int64s:
        """The last punctuation before each tick, for a reorder latency."""
        return self._before(tick, np.maximum(self._lagging(latency_us), self.floor_us))

    def punctuation(self, latency_us: int) -> int:
        """The punctuation after the last tick, for a reorder latency."""
        return int(max(self._lagging(latency_us)[-1], self.floor_us[-1]))

    def _lagging(self, latency_us: int) -> Int64s:
        return np.where(self.mark_us == NEVER_US, NEVER_US, self.mark_us - latency_us)


@dataclass(frozen=True, slots=True)
class Progress:
    """Where the stream stands; the same in every shard, kept from batch to batch."""

    names: pa.Array = field(default_factory=lambda: _ONE_SOURCE.slice(0, 0))
    latest_us: Int64s = field(default_factory=lambda: _NOTHING)
    last_tick: Int64s = field(default_factory=lambda: _NOTHING)
    end_tick: Int64s = field(default_factory=lambda: _NOTHING)
    closed_tick: int = NEVER_US
    now_tick: int = NEVER_US
    mark_us: int = NEVER_US
    floor_us: int = NEVER_US

    def open_ticks(self, tick: Int64s) -> Int64s:
        """Move ticks that are closed already to the first open one."""
        return np.maximum(tick, self.closed_tick + 1)

    def advance(self, headers: Sequence[Header], idle_ticks: int | None = None) -> tuple[Progress, Timeline]:
        """Take in the headers of one micro-batch: where the stream stands now, and how it got there."""
        known = Header(names=self.names)
        news = self._opened(merge_headers([known, *headers]))
        idle = FOREVER_US if idle_ticks is None else idle_ticks
        news = _tidy(news, idle)
        moved = self._moved(news)
        return _Steps(self, moved, news, idle).follow()

    def _opened(self, news: Header) -> Header:
        return replace(
            news,
            rise_tick=self.open_ticks(news.rise_tick),
            spell_first=self.open_ticks(news.spell_first),
            spell_last=self.open_ticks(news.spell_last),
            end_tick=self.open_ticks(news.end_tick),
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
        ticks = np.concatenate([news.spell_last, news.end_tick])
        closed = max(self.closed_tick, int(ticks.max(initial=NEVER_US)))
        now = max(self.now_tick, news.now_tick, closed)
        return replace(
            self,
            names=news.names,
            latest_us=latest,
            last_tick=last,
            end_tick=end,
            closed_tick=closed,
            now_tick=now,
        )

    def to_bytes(self) -> bytes:
        """For the state store."""
        return dump_arrays(
            {
                "names": self.names,
                "latest_us": self.latest_us,
                "last_tick": self.last_tick,
                "end_tick": self.end_tick,
                "scalars": np.array([self.closed_tick, self.now_tick, self.mark_us, self.floor_us]),
            }
        )

    @classmethod
    def from_bytes(cls, data: bytes) -> Progress:
        """Read what `to_bytes` wrote."""
        arrays = load_arrays(data)
        names = arrays.pop("names")
        numbers = {name: integers(values) for name, values in arrays.items()}
        closed, now, mark, floor = (int(value) for value in numbers.pop("scalars"))
        return cls(names=names, closed_tick=closed, now_tick=now, mark_us=mark, floor_us=floor, **numbers)


def _places(old: pa.Array, new: pa.Array) -> Int64s:
    """Where the old names stand among the new ones."""
    if len(old) == 0:
        return _NOTHING
    return integers(pc.index_in(old, value_set=new))


class _Steps:
    """Turns the news of one batch into a Timeline."""

    def __init__(self, before: Progress, after: Progress, news: Header, idle_ticks: int) -> None:
        self._before, self._after, self._news, self._idle_ticks = before, after, news, idle_ticks

    def follow(self) -> tuple[Progress, Timeline]:
        tick, mark_us = self._marks()
        floors = self._idle_floors(tick, mark_us) + self._end_floors()
        timeline = _timeline(tick, mark_us, floors, self._before)
        after = replace(self._after, mark_us=int(timeline.mark_us[-1]), floor_us=int(timeline.floor_us[-1]))
        return after, timeline

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
        if not spells:
            return []
        spells = sorted([*spells, (self._after.now_tick, self._after.now_tick)])
        floors, reach = [], spells[0][1]
        for first, last in spells:
            if first - reach > self._idle_ticks:
                at = reach + self._idle_ticks
                mark = mark_us[np.searchsorted(tick, reach, side="right") - 1]
                floors.append((at, int(mark)))
            reach = max(reach, last)
        return floors

    def _end_floors(self) -> list[tuple[int, int]]:
        """After the tick in which the last source ended nothing comes any more."""
        if len(self._news.end_tick) == 0:
            return []
        ends = self._after.end_tick
        return [(int(ends.max()), FOREVER_US)] if bool((ends > NEVER_US).all()) else []


def _timeline(tick: Int64s, mark_us: Int64s, floors: list[tuple[int, int]], before: Progress) -> Timeline:
    floor_tick = np.array([at for at, _ in floors], dtype=np.int64)
    floor_us = np.array([floor for _, floor in floors], dtype=np.int64)
    ticks = np.unique(np.concatenate([tick, floor_tick]))
    marks = mark_us[np.searchsorted(tick, ticks, side="right") - 1]
    steps = np.full(len(ticks), before.floor_us)
    np.maximum.at(steps, np.searchsorted(ticks, floor_tick), floor_us)
    return Timeline(ticks, marks, np.maximum.accumulate(steps))
