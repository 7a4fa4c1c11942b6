"""Headers: what one task saw of the progress of time, small enough to be sent to every shard.

A header carries, per source, the ticks at which its latest time rises, its spells (first tick, last tick) between
which no silence was longer than `idle_after`, and its end; and control values. Headers of several tasks merge exactly,
in any order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from latecomer._jit import kernel
from latecomer.codec import deltas, dump_arrays, integers, load_arrays, undo_deltas
from latecomer.controls import ControlStep, in_order, steps_from_arrays, steps_to_arrays
from latecomer.events import FOREVER_US, NEVER_US, Int64s

NOTHING = np.zeros(0, dtype=np.int64)
ONE_SOURCE = pa.array([""], pa.large_string())


@dataclass(frozen=True, slots=True)
class Header:
    """What one task saw: per source the ticks at which its latest time rises, its spells, and its end."""

    names: pa.Array = field(default_factory=lambda: ONE_SOURCE.slice(0, 0))
    rise_source: Int64s = field(default_factory=lambda: NOTHING)
    rise_tick: Int64s = field(default_factory=lambda: NOTHING)
    rise_ts_us: Int64s = field(default_factory=lambda: NOTHING)
    spell_source: Int64s = field(default_factory=lambda: NOTHING)
    spell_first: Int64s = field(default_factory=lambda: NOTHING)
    spell_last: Int64s = field(default_factory=lambda: NOTHING)
    end_source: Int64s = field(default_factory=lambda: NOTHING)
    end_tick: Int64s = field(default_factory=lambda: NOTHING)
    least_us: int = FOREVER_US  # of all times
    ran_ticks: int = 0  # how long the query has run since the last heartbeat, where one was heard
    controls: tuple[ControlStep, ...] = ()

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
                "scalars": np.array([self.least_us, self.ran_ticks]),
                **steps_to_arrays(self.controls),
            }
        )

    @classmethod
    def from_bytes(cls, data: bytes) -> Header:
        """Read what `to_bytes` wrote."""
        arrays = load_arrays(data)
        names, controls = arrays.pop("names"), steps_from_arrays(arrays)
        numbers = {name: integers(values) for name, values in arrays.items()}
        least_us, ran_ticks = numbers.pop("scalars").tolist()
        for name in ("rise_source", "rise_tick", "rise_ts_us", "spell_source"):
            numbers[name] = undo_deltas(numbers[name])
        return cls(names=names, least_us=least_us, ran_ticks=ran_ticks, controls=controls, **numbers)


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
        self._parts.append(Header(least_us=int(ts_us.min())))
        if tick is None and source is None:
            last = np.array([NEVER_US])
            self._append(ONE_SOURCE, np.zeros(1, np.int64), last, np.array([ts_us.max()]))
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

    def hear(self, ran_ticks: int) -> None:
        """Take in a heartbeat: for how many ticks the query has run since the last one."""
        self._parts.append(Header(ran_ticks=ran_ticks))

    def control(self, name: str, text: str) -> None:
        """Take in a control value, as JSON, in force from the first open tick on."""
        self._parts.append(Header(controls=(ControlStep(NEVER_US, name, text),)))

    def _append(self, names: pa.Array, source: Int64s, tick: Int64s, ts_us: Int64s) -> None:
        part = Header(names, source, tick, ts_us, source, tick, tick)
        self._parts.append(tidy(part, self._idle_ticks))

    def build(self) -> Header:
        """The header of everything taken in."""
        return tidy(merge_headers(self._parts), self._idle_ticks)


def encode_sources(source: pa.Array | None, count: int) -> tuple[pa.Array, Int64s]:
    """Distinct source names as text, and a code per event; events without a source have one name, empty."""
    if source is None:
        return ONE_SOURCE, np.zeros(count, dtype=np.int64)
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
        return np.concatenate(arrays) if arrays else NOTHING

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
        least_us=min((part.least_us for part in parts), default=FOREVER_US),
        ran_ticks=max((part.ran_ticks for part in parts), default=0),
        controls=in_order(step for part in parts for step in part.controls),
    )


def _unite_names(all_names: Sequence[pa.Array]) -> tuple[pa.Array, list[Int64s]]:
    """The sorted union of name lists, and for each list the new code of each old one."""
    if not all_names:
        return ONE_SOURCE.slice(0, 0), []
    together = pa.concat_arrays(all_names)
    encoded = together.dictionary_encode("encode")
    ranks = pc.array_sort_indices(encoded.dictionary).to_numpy()
    new_code = np.empty(len(ranks), dtype=np.int64)
    new_code[ranks] = np.arange(len(ranks))
    codes = new_code[integers(encoded.indices)]
    bounds = np.cumsum([len(names) for names in all_names])[:-1]
    return encoded.dictionary.take(pa.array(ranks)), list(np.split(codes, bounds))


def tidy(header: Header, idle_ticks: int) -> Header:
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
    highest = running_max_per_group(ts_us, np.cumsum(new_source))
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
    reach = running_max_per_group(last, np.cumsum(new_source))
    breaks = new_source.copy()
    breaks[1:] |= first[1:] - reach[:-1] > idle_ticks
    starts = np.flatnonzero(breaks)
    return source[starts], first[starts], np.maximum.reduceat(last, starts)


def running_max_per_group(values: Int64s, group: Int64s) -> Int64s:
    """Running maximum that starts anew where the (ascending) group number changes."""
    order = np.argsort(values, kind="stable")
    rank = np.empty(len(values), dtype=np.int64)
    rank[order] = np.arange(len(values))
    lifted = np.maximum.accumulate(rank + group * len(values)) - group * len(values)
    return values[order][lifted]
