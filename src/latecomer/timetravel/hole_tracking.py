"""Holes tracked event by event, key by key: where they open and close, and which late events fall into one.

Invariants
1. The holes of a key do not overlap, and come in order; the last may be open to the right (`to_us` is FOREVER_US):
   a late event beyond the key's last one proved it.
2. An event's place in the order of processing is its moment; a hole is full from a moment on, or never.

Paper: TinTiN, Algorithm 1, lines 2 to 8.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from latecomer._jit import bare_kernel, kernel
from latecomer.events import FOREVER_US, NEVER_US, Bools, Int64s
from latecomer.search import lower_bound
from latecomer.timetravel.holes import COUNTED, INSIDE, UNKNOWN

FIRST = -2  # instead of how many are missing before an event: its key has no event before it
NOT_SEEN, STORED = -1, -2  # instead of the place of an equal late event


class Arrivals(NamedTuple):
    """Events in the order of processing: tick by tick, the late ones first."""

    key: Int64s
    ts_us: Int64s
    number: Int64s
    late: Bools
    missing: Int64s  # before an event that is on time
    equal: Int64s  # the place of a late event that is equal to a late one
    mark_us: Int64s  # before its tick


class HoleTable(NamedTuple):
    """Holes; `changed` ones differ from what is stored."""

    key: Int64s
    from_us: Int64s
    to_us: Int64s
    from_number: Int64s
    to_number: Int64s
    missing: Int64s
    filled: Int64s
    full_at: Int64s
    changed: Bools


class KeyHoles(NamedTuple):
    """Holes in the order of keys and times; those of a key begin at `starts[key]`."""

    table: HoleTable
    starts: Int64s


class Tracked(NamedTuple):
    """Per key the last event that was on time, and its holes: `counts[key]` of them from `starts[key]` on.

    There is room for more up to where those of the next key begin.
    """

    latest_us: Int64s
    latest_number: Int64s
    starts: Int64s
    counts: Int64s
    holes: HoleTable


class HoleRules(NamedTuple):
    """When a late event is in a hole (INSIDE, TOUCHING or COUNTED); how long a silent key is remembered."""

    kind: int
    retention_us: int


@kernel
def track_holes(arrivals: Arrivals, tracked: Tracked, rules: HoleRules, accepted: Bools) -> None:
    """Open, fill and close holes as events arrive; which late events are accepted."""
    seen = np.zeros(len(arrivals.key), dtype=np.bool_)  # late events equal to one that was accepted, or accepted
    for i in range(len(arrivals.key)):
        key = arrivals.key[i]
        latest_us = tracked.latest_us[key]
        known = latest_us != NEVER_US and latest_us >= arrivals.mark_us[i] - rules.retention_us
        if not arrivals.late[i]:
            missing = arrivals.missing[i] if known else FIRST
            if missing != 0 or _is_open(tracked, key):
                hole = _open_hole(tracked, key, known)
                _close_hole(tracked.holes, hole, arrivals, i, missing)
            tracked.latest_us[key], tracked.latest_number[key] = arrivals.ts_us[i], arrivals.number[i]
            continue
        seen[i] = arrivals.equal[i] == STORED or (arrivals.equal[i] >= 0 and seen[arrivals.equal[i]])
        if seen[i]:
            continue
        if known and not _is_beyond(arrivals, i, tracked, rules.kind):
            hole = _find_hole(arrivals, i, tracked, rules.kind)
            if hole < 0:
                continue
            _fill_hole(tracked.holes, hole, i)
        else:
            hole = _open_hole(tracked, key, known)
            tracked.holes.filled[hole] += 1
            tracked.holes.changed[hole] = True
        seen[i] = accepted[i] = True


@bare_kernel
def _is_open(tracked: Tracked, key: int) -> bool:
    """Whether the last hole of a key has no end yet."""
    last = tracked.starts[key] + tracked.counts[key] - 1
    return bool(tracked.counts[key] > 0 and tracked.holes.to_us[last] == FOREVER_US)


@bare_kernel
def _open_hole(tracked: Tracked, key: int, known: bool) -> int:
    """The open hole after the last event of a key, a new one if none is; that of a new key begins before all times."""
    hole = tracked.starts[key] + tracked.counts[key]
    if _is_open(tracked, key):
        return int(hole - 1)
    holes = tracked.holes
    tracked.counts[key] += 1
    holes.key[hole] = key
    holes.from_us[hole] = tracked.latest_us[key] if known else NEVER_US
    holes.from_number[hole] = tracked.latest_number[key] if known else NEVER_US
    holes.to_us[hole] = holes.to_number[hole] = holes.full_at[hole] = FOREVER_US
    holes.missing[hole] = holes.filled[hole] = 0
    holes.changed[hole] = True
    return int(hole)


@bare_kernel
def _is_beyond(arrivals: Arrivals, i: int, tracked: Tracked, kind: int) -> bool:
    """Whether a late event comes after the last event of its key that was on time."""
    ts_us, latest_us = arrivals.ts_us[i], tracked.latest_us[arrivals.key[i]]
    if kind == INSIDE:
        return bool(ts_us > latest_us)
    if kind == COUNTED:
        after = arrivals.number[i] > tracked.latest_number[arrivals.key[i]]
        return bool(ts_us > latest_us or (ts_us == latest_us and after))
    return bool(ts_us >= latest_us)


@bare_kernel
def _find_hole(arrivals: Arrivals, i: int, tracked: Tracked, kind: int) -> int:
    """The first hole of its key that a late event falls into and that is not full; -1 if there is none."""
    holes, ts_us, start = tracked.holes, arrivals.ts_us[i], tracked.starts[arrivals.key[i]]
    stop = start + tracked.counts[arrivals.key[i]]
    hole = lower_bound(holes.to_us, start, stop, ts_us)
    while hole < stop and holes.from_us[hole] <= ts_us:
        inside = True
        if kind == INSIDE:
            inside = holes.from_us[hole] < ts_us < holes.to_us[hole]
        elif kind == COUNTED and holes.from_number[hole] < holes.to_number[hole]:
            inside = holes.from_number[hole] < arrivals.number[i] < holes.to_number[hole]
        if inside and holes.to_us[hole] != FOREVER_US and holes.full_at[hole] == FOREVER_US:
            return int(hole)
        hole += 1
    return -1


@bare_kernel
def _fill_hole(holes: HoleTable, hole: int, moment: int) -> None:
    holes.filled[hole] += 1
    holes.changed[hole] = True
    if holes.missing[hole] != UNKNOWN and holes.filled[hole] >= holes.missing[hole]:
        holes.full_at[hole] = moment


@bare_kernel
def _close_hole(holes: HoleTable, hole: int, arrivals: Arrivals, i: int, missing: int) -> None:
    """The hole ends with an event."""
    holes.to_us[hole], holes.to_number[hole] = arrivals.ts_us[i], arrivals.number[i]
    holes.changed[hole] = True
    if missing == FIRST:
        holes.from_us[hole] = holes.from_number[hole] = NEVER_US
    if missing < 0:
        holes.missing[hole] = UNKNOWN
        return
    holes.missing[hole] = max(missing, holes.filled[hole])
    if holes.filled[hole] >= holes.missing[hole]:
        holes.full_at[hole] = i


@kernel
def mark_near(key: Int64s, ts_us: Int64s, holes: KeyHoles, reach_us: int, near: Bools) -> None:
    """Mark the events, in the order of keys and times, that lie within reach of a closed hole of their key."""
    table, hole, last_key = holes.table, 0, -1
    for i in range(len(key)):
        if key[i] != last_key:
            last_key = key[i]
            hole = holes.starts[last_key]
        stop = holes.starts[last_key + 1]
        while hole < stop and table.to_us[hole] != FOREVER_US and table.to_us[hole] + reach_us <= ts_us[i]:
            hole += 1
        at = hole
        while at < stop and table.to_us[at] != FOREVER_US and not near[i]:
            if table.from_us[at] >= ts_us[i] and table.from_us[at] - reach_us >= ts_us[i]:
                break
            after = table.to_us[at] <= ts_us[i] < table.to_us[at] + reach_us
            near[i] = after or table.from_us[at] - reach_us < ts_us[i] <= table.from_us[at]
            at += 1


class Stretches(NamedTuple):
    """Stretches of keys from `low_us` on, each seen at a moment.

    Holes that ended before `oldest_us` are closed for good then; those that end after `latest_us`, the key's last
    event, are not known yet.
    """

    key: Int64s
    low_us: Int64s
    moment: Int64s
    oldest_us: Int64s
    latest_us: Int64s


@kernel
def find_missing(stretches: Stretches, size_us: int, holes: KeyHoles, margin_us: int, found: Bools) -> None:
    """Which stretches [low, low + size) have a time at which an event may be missing still, at their moment.

    An event in a hole lies at least `margin_us` from both its ends.
    """
    table = holes.table
    for i in range(len(stretches.key)):
        low_us, stop = stretches.low_us[i], holes.starts[stretches.key[i] + 1]
        hole = lower_bound(table.to_us, holes.starts[stretches.key[i]], stop, low_us)
        while hole < stop and table.from_us[hole] + margin_us < low_us + size_us and not found[i]:
            touches = table.to_us[hole] - margin_us >= low_us
            touches = touches and table.from_us[hole] + 2 * margin_us <= table.to_us[hole]
            known = stretches.oldest_us[i] <= table.to_us[hole] <= stretches.latest_us[i]
            found[i] = touches and known and table.full_at[hole] > stretches.moment[i]
            hole += 1
