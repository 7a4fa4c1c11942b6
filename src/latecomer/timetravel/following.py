"""Events followed one by one, key by key: which late ones fall into a hole, which holes there are, what lies near one.

Invariants
1. The holes of a key do not overlap, and come in order; the last may be open to the right (`to_us` is FOREVER_US):
   a late event beyond the key's last one proved it.
2. An event's place in the order of processing is its moment; a hole is full from a moment on, or never.

Paper: TinTiN, Algorithm 1, lines 2 to 8.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from latecomer._jit import bare_kernel, kernel
from latecomer.events import FOREVER_US, NEVER_US, Bools, Int64s
from latecomer.timetravel.holes import COUNTED, INSIDE, UNKNOWN

FIRST = -2  # instead of how many are missing before an event: its key has no event before it
NOT_SEEN, HELD = -1, -2  # instead of the place of an equal late event

Int8s = npt.NDArray[np.int8]


class Came(NamedTuple):
    """Events in the order of processing: tick by tick, the late ones first."""

    key: Int64s
    ts_us: Int64s
    number: Int64s
    late: Bools
    missing: Int64s  # before an event that is on time
    equal: Int64s  # the place of a late event that is equal to a late one
    mark_us: Int64s  # before its tick


class HoleTable(NamedTuple):
    """Holes, in the order of keys and times; `changed` ones differ from what is stored."""

    key: Int64s
    from_us: Int64s
    to_us: Int64s
    from_number: Int64s
    to_number: Int64s
    missing: Int64s
    filled: Int64s
    full_at: Int64s
    changed: Bools


class Keys(NamedTuple):
    """Per key: the last event that was on time, and the last hole."""

    latest_us: Int64s
    latest_number: Int64s
    hole: Int64s


@kernel
def follow(
    came: Came, keys: Keys, holes: HoleTable, before: Int64s, count: int, kind: int, memory_us: int, accepted: Bools
) -> int:
    """Follow events; gives how many holes there are now. `before` is the hole before each in its key.

    A key of which nothing came for `memory_us` is forgotten.
    """
    seen = np.zeros(len(came.key), dtype=np.bool_)  # late events equal to one that was accepted, or accepted
    for i in range(len(came.key)):
        key = came.key[i]
        known = keys.latest_us[key] != NEVER_US and keys.latest_us[key] >= came.mark_us[i] - memory_us
        if not came.late[i]:
            missing = came.missing[i] if known else FIRST
            if missing != 0 or _is_open(holes, keys.hole[key]):
                count = _tail(holes, before, count, keys, key, known)
                _close(holes, keys.hole[key], came, i, missing)
            keys.latest_us[key], keys.latest_number[key] = came.ts_us[i], came.number[i]
            continue
        seen[i] = came.equal[i] == HELD or (came.equal[i] >= 0 and seen[came.equal[i]])
        if seen[i]:
            continue
        if known and not _is_beyond(came, i, keys, key, kind):
            hole = _find(came, i, holes, before, keys.hole[key], kind)
            if hole < 0:
                continue
            _fill(holes, hole, i)
        else:
            count = _tail(holes, before, count, keys, key, known)
            holes.filled[keys.hole[key]] += 1
            holes.changed[keys.hole[key]] = True
        seen[i] = accepted[i] = True
    return count


@bare_kernel
def _is_open(holes: HoleTable, hole: int) -> bool:
    """Whether this is a hole that has no end yet."""
    return bool(hole >= 0 and holes.to_us[hole] == FOREVER_US)


@bare_kernel
def _tail(holes: HoleTable, before: Int64s, count: int, keys: Keys, key: int, known: bool) -> int:
    """See to it that the last hole of a key has no end yet: after its last event; of a new key, since ever."""
    hole = keys.hole[key]
    if _is_open(holes, hole):
        return count
    before[count] = hole
    keys.hole[key] = count
    holes.key[count] = key
    holes.from_us[count] = keys.latest_us[key] if known else NEVER_US
    holes.from_number[count] = keys.latest_number[key] if known else NEVER_US
    holes.to_us[count] = holes.to_number[count] = holes.full_at[count] = FOREVER_US
    holes.missing[count] = holes.filled[count] = 0
    holes.changed[count] = True
    return count + 1


@bare_kernel
def _is_beyond(came: Came, i: int, keys: Keys, key: int, kind: int) -> bool:
    """Whether a late event comes after the last event of its key that was on time."""
    ts_us, latest_us = came.ts_us[i], keys.latest_us[key]
    if kind == INSIDE:
        return bool(ts_us > latest_us)
    if kind == COUNTED:
        return bool(ts_us > latest_us or (ts_us == latest_us and came.number[i] > keys.latest_number[key]))
    return bool(ts_us >= latest_us)


@bare_kernel
def _find(came: Came, i: int, holes: HoleTable, before: Int64s, hole: int, kind: int) -> int:
    """The first hole of its key that a late event falls into and that is not full; -1 if there is none."""
    ts_us, found = came.ts_us[i], -1
    while hole >= 0 and ts_us <= holes.to_us[hole]:
        inside = holes.from_us[hole] <= ts_us
        if kind == INSIDE:
            inside = holes.from_us[hole] < ts_us < holes.to_us[hole]
        elif kind == COUNTED and holes.from_number[hole] < holes.to_number[hole]:
            inside = inside and holes.from_number[hole] < came.number[i] < holes.to_number[hole]
        if inside and holes.to_us[hole] != FOREVER_US and holes.full_at[hole] == FOREVER_US:
            found = hole
        hole = before[hole]
    return found


@bare_kernel
def _fill(holes: HoleTable, hole: int, moment: int) -> None:
    holes.filled[hole] += 1
    holes.changed[hole] = True
    if holes.missing[hole] != UNKNOWN and holes.filled[hole] >= holes.missing[hole]:
        holes.full_at[hole] = moment


@bare_kernel
def _close(holes: HoleTable, hole: int, came: Came, i: int, missing: int) -> None:
    """The hole ends with an event."""
    holes.to_us[hole], holes.to_number[hole] = came.ts_us[i], came.number[i]
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
def mark_contexts(key: Int64s, ts_us: Int64s, holes: HoleTable, starts: Int64s, reach_us: int, near: Bools) -> None:
    """Mark the events, in the order of keys and times, that lie within reach of a hole of their key.

    `holes` are in that order too; those of a key begin at `starts[key]`.
    """
    hole, last_key = 0, -1
    for i in range(len(key)):
        if key[i] != last_key:
            last_key = key[i]
            hole = starts[last_key]
        stop = starts[last_key + 1]
        while hole < stop and holes.to_us[hole] != FOREVER_US and holes.to_us[hole] + reach_us <= ts_us[i]:
            hole += 1
        at = hole
        while at < stop and holes.to_us[at] != FOREVER_US and not near[i]:
            if holes.from_us[at] >= ts_us[i] and holes.from_us[at] - reach_us >= ts_us[i]:
                break
            after = holes.to_us[at] <= ts_us[i] < holes.to_us[at] + reach_us
            near[i] = after or holes.from_us[at] - reach_us < ts_us[i] <= holes.from_us[at]
            at += 1


class Stretches(NamedTuple):
    """Stretches of keys from `lo_us` on, each seen at a moment: holes that ended before `oldest_us` are no more then,
    and those that end after `latest_us`, the key's last event, are not known yet.
    """

    key: Int64s
    lo_us: Int64s
    moment: Int64s
    oldest_us: Int64s
    latest_us: Int64s


@kernel
def find_open(
    stretches: Stretches, reach_us: int, holes: HoleTable, starts: Int64s, inside: bool, found: Bools
) -> None:
    """Which stretches [lo, lo + reach) have a time at which an event may be missing still, at their moment."""
    for i in range(len(stretches.key)):
        lo_us = stretches.lo_us[i]
        low, stop = starts[stretches.key[i]], starts[stretches.key[i] + 1]
        high = stop
        while low < high:
            middle = (low + high) >> 1
            if holes.to_us[middle] < lo_us:
                low = middle + 1
            else:
                high = middle
        ends = 1 if inside else 0
        while low < stop and holes.from_us[low] + ends < lo_us + reach_us and not found[i]:
            touches = holes.to_us[low] - ends >= lo_us and holes.from_us[low] + 2 * ends <= holes.to_us[low]
            known = stretches.oldest_us[i] <= holes.to_us[low] <= stretches.latest_us[i]
            found[i] = touches and known and holes.full_at[low] > stretches.moment[i]
            low += 1
