"""What is known of every key after the events of a micro-batch: its events in order, its holes, its late events.

`follow_events` derives it from the tables of the micro-batch; nothing here reads or writes the state.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from latecomer.events import (
    FOREVER_US,
    NEVER_US,
    TICK,
    Bools,
    EventBatch,
    Int64s,
    Layout,
    concat_rows,
    sort_times,
)
from latecomer.progress import Timeline
from latecomer.timetravel.hole_tracking import (
    FIRST,
    NOT_SEEN,
    STORED,
    Arrivals,
    HoleRules,
    HoleTable,
    KeyHoles,
    Tracked,
    track_holes,
)
from latecomer.timetravel.holes import ALWAYS, TOUCHING, UNKNOWN
from latecomer.timetravel.repairs import Repairs
from latecomer.timetravel.tables import HOLE_COLUMNS, LATE, Tables, group_starts
from latecomer.windows.grouping import group_rows


class MicroBatch(NamedTuple):
    """A micro-batch: its tables and those of the state, and how time moved while it came.

    turn: the ticks in which the events on time are processed, in order.
    """

    tables: Tables
    turn: Int64s
    timeline: Timeline
    layout: Layout
    settings: Repairs


class OnTime(NamedTuple):
    """The events that were on time, recent and new, in the order of keys and times.

    Those of a key begin at `starts[key]`.
    """

    key: Int64s
    ts_us: Int64s
    tick: Int64s  # NEVER_US if before this batch
    starts: Int64s


class Accepted(NamedTuple):
    """Late events that fall into a hole, with the number of the key and the moment of each."""

    events: EventBatch
    key: Int64s
    moment: Int64s


class KeyHistory(NamedTuple):
    """What is known of every key. `events` taken in `order` are those of `on_time`.

    `stored_as` has the place of each hole in the tables of stored holes, -1 for new ones; `latest_us` the time of each
    key's last event that was on time; `arrival_tick` the tick of each event of the batch in the order of processing.
    """

    events: EventBatch | None
    order: Int64s
    on_time: OnTime
    holes: KeyHoles
    stored_as: Int64s
    latest_us: Int64s
    arrival_tick: Int64s
    accepted: Accepted | None
    refused: EventBatch | None

    def with_keys(self, count: int) -> KeyHistory:
        """The same where there are so many keys, the last of which are new."""
        more = count - len(self.latest_us)
        on_time = self.on_time._replace(starts=_longer(self.on_time.starts, more))
        holes = self.holes._replace(starts=_longer(self.holes.starts, more))
        latest_us = np.append(self.latest_us, np.full(more, NEVER_US))
        return self._replace(on_time=on_time, holes=holes, latest_us=latest_us)


class Arrived(NamedTuple):
    """The order of processing: tick by tick, the late events first; `order` are places among late ones, then others."""

    tick: Int64s
    order: Int64s


def follow_events(batch: MicroBatch) -> KeyHistory:
    """Follow the events of a micro-batch in the order in which they came."""
    tables = batch.tables
    events, order, on_time = _events_on_time(batch)
    tick, arrival_order = sort_times(np.append(tables.column("late", TICK), batch.turn))
    arrived = Arrived(tick, arrival_order)
    if batch.settings.holes.kind == ALWAYS:
        tracked, stored_as, accepted = _untracked(batch, on_time)
    else:
        tracked, stored_as, accepted = _tracked(batch, arrived, _missing_before(batch, events, order, on_time))
    holes, stored_as = _holes_found(tracked, stored_as)
    late = _split_late(batch, arrival_order, accepted)
    return KeyHistory(events, order, on_time, holes, stored_as, tracked.latest_us, tick, *late)


def _tracked(batch: MicroBatch, arrived: Arrived, missing: Int64s) -> tuple[Tracked, Int64s, Bools]:
    """The holes after the micro-batch, where each is stored, and which events in the order of arrival are accepted."""
    tracked, stored_as = _stored_holes(batch, missing)
    rules = HoleRules(batch.settings.holes.kind, batch.settings.retention_us)
    accepted = np.zeros(len(arrived.tick), dtype=np.bool_)
    track_holes(_arrivals(batch, arrived, missing), tracked, rules, accepted)
    return tracked, stored_as, accepted


def _untracked(batch: MicroBatch, on_time: OnTime) -> tuple[Tracked, Int64s, Bools]:
    """The same where every late event is accepted: there are no holes to follow."""
    none, keys = np.zeros(0, dtype=np.int64), batch.tables.count
    holes = HoleTable(none, none, none, none, none, none, none, none, none.astype(np.bool_))
    latest_us = np.full(keys, NEVER_US)
    latest_us[on_time.key] = on_time.ts_us
    tracked = Tracked(latest_us, latest_us, np.zeros(keys + 1, dtype=np.int64), np.zeros(keys, dtype=np.int64), holes)
    return tracked, none, np.ones(len(batch.tables.key("late")) + len(batch.tables.key("on_time")), dtype=np.bool_)


def _arrivals(batch: MicroBatch, arrived: Arrived, missing: Int64s) -> Arrivals:
    """The events of a micro-batch, the late ones and those on time, in this order of processing."""
    tables, time, late_count = batch.tables, batch.layout.time, len(batch.tables.key("late"))
    tick, order = arrived
    missing = np.append(np.zeros(late_count, dtype=np.int64), missing)
    equal = np.append(_equal_late(batch, order), np.full(len(order) - late_count, NOT_SEEN))
    return Arrivals(
        np.append(tables.key("late"), tables.key("on_time"))[order],
        np.append(tables.column("late", time), tables.column("on_time", time))[order],
        np.append(_numbers(batch, "late"), _numbers(batch, "on_time"))[order],
        order < late_count,
        missing[order],
        equal[order],
        batch.timeline.mark_before(tick),
    )


def _events_on_time(batch: MicroBatch) -> tuple[EventBatch | None, Int64s, OnTime]:
    """The events that were on time, recent and new; the order of keys and times; and what is known of each."""
    tables = batch.tables
    rows = [table for table in (tables.get("recent"), tables.get("on_time")) if table is not None]
    events = EventBatch(concat_rows(rows), batch.layout) if rows else None
    key, order = sort_times(np.append(tables.key("recent"), tables.key("on_time")))
    ts_us = key if events is None else events.ts_us[order]
    tick = np.append(np.full(len(tables.key("recent")), NEVER_US), batch.turn)
    return events, order, OnTime(key, ts_us, tick[order], group_starts(key, tables.count))


def _numbers(batch: MicroBatch, name: str) -> Int64s:
    """What the events of a table are counted by."""
    rows = batch.tables.get(name)
    if rows is None:
        return np.zeros(0, dtype=np.int64)
    return batch.settings.holes.numbers(EventBatch(rows, batch.layout))


def _missing_before(batch: MicroBatch, events: EventBatch | None, order: Int64s, on_time: OnTime) -> Int64s:
    """For every new event that was on time how many are missing before it; FIRST too if its key was forgotten."""
    count, key = len(batch.tables.key("on_time")), on_time.key
    missing, old = np.full(count, FIRST), len(order) - count
    follows = np.flatnonzero((key[1:] == key[:-1]) & (order[1:] >= old)) + 1
    if len(follows) and events is not None:
        before, after = order[follows - 1], order[follows]
        oldest_us = batch.timeline.mark_before(batch.turn[after - old]) - batch.settings.retention_us
        between = batch.settings.holes.missing(events, before, after)
        missing[after - old] = np.where(events.ts_us[before] < oldest_us, FIRST, between)
    return missing


def _equal_late(batch: MicroBatch, arrival_order: Int64s) -> Int64s:
    """For every new late event the place of the last one before it that is equal, where only one can be missing."""
    tables, time = batch.tables, batch.layout.time
    equal = np.full(len(tables.key("late")), NOT_SEEN)
    if len(equal) == 0 or batch.settings.holes.kind == TOUCHING:
        return equal
    place = np.empty(len(arrival_order), dtype=np.int64)
    place[arrival_order] = np.arange(len(arrival_order))
    stored = np.flatnonzero(tables.roles("contexts") == LATE)
    columns = [
        np.append(tables.key("contexts")[stored], tables.key("late")),
        np.append(tables.column("contexts", time)[stored], tables.column("late", time)),
        np.append(_numbers(batch, "contexts")[stored], _numbers(batch, "late")),
    ]
    groups = group_rows(columns)
    same = np.repeat(groups.starts, groups.sizes)
    for at in np.flatnonzero(np.arange(len(groups.order)) > same).tolist():
        row, previous = int(groups.order[at]) - len(stored), int(groups.order[at - 1]) - len(stored)
        if row >= 0:
            equal[row] = STORED if groups.order[same[at]] < len(stored) else place[previous]
    return equal


def _stored_holes(batch: MicroBatch, missing_before: Int64s) -> tuple[Tracked, Int64s]:
    """What was known of every key before, its holes with room for more; and where each hole is stored, -1 if new."""
    tables, both = batch.tables, ("holes", "long_holes")
    key = np.concatenate([tables.key(name) for name in both])
    columns = [np.concatenate([tables.column(name, each) for name in both]) for each in HOLE_COLUMNS]
    order = np.lexsort((columns[0], columns[1], key))
    key, new = key[order], np.append(tables.key("late"), tables.key("on_time")[missing_before != 0])
    counts, room = (np.bincount(each, minlength=tables.count) for each in (key, new))
    starts = np.append(0, np.cumsum(counts + room))
    place, size = np.arange(len(key)) + (np.cumsum(room) - room)[key], int(starts[-1])
    from_us, to_us, from_number, to_number, missing, filled = (_placed(each[order], place, size) for each in columns)
    full = (missing != UNKNOWN) & (filled >= missing) & (to_us != FOREVER_US)
    full_at, changed = np.where(full, -1, FOREVER_US), np.zeros(size, dtype=np.bool_)
    key = _placed(key, place, size)
    table = HoleTable(key, from_us, to_us, from_number, to_number, missing, filled, full_at, changed)
    stored_as = np.full(size, -1)
    stored_as[place] = order
    return Tracked(*_latest_events(batch), starts, counts, table), stored_as


def _latest_events(batch: MicroBatch) -> tuple[Int64s, Int64s]:
    """Per key the time and the number of its last event before this batch."""
    tables = batch.tables
    latest_us, latest_number = np.full(tables.count, NEVER_US), np.full(tables.count, NEVER_US)
    latest_us[tables.key("recent")] = tables.column("recent", batch.layout.time)
    latest_number[tables.key("recent")] = _numbers(batch, "recent")
    return latest_us, latest_number


def _holes_found(tracked: Tracked, stored_as: Int64s) -> tuple[KeyHoles, Int64s]:
    """All holes without the room between them, and where each is stored."""
    counts = tracked.counts
    room = np.diff(tracked.starts) - counts
    places = np.arange(int(counts.sum())) + np.repeat(np.cumsum(room) - room, counts)
    holes = HoleTable._make(column[places] for column in tracked.holes)
    return KeyHoles(holes, np.append(0, np.cumsum(counts))), stored_as[places]


def _split_late(batch: MicroBatch, arrival_order: Int64s, accepted: Bools) -> tuple[Accepted | None, EventBatch | None]:
    """The late events that fall into a hole, and the others."""
    rows, key = batch.tables.get("late"), batch.tables.key("late")
    if rows is None:
        return None, None
    fits, moment = np.zeros(len(key), dtype=np.bool_), np.zeros(len(key), dtype=np.int64)
    places = np.flatnonzero(arrival_order < len(key))
    fits[arrival_order[places]], moment[arrival_order[places]] = accepted[places], places
    events, chosen = EventBatch(rows, batch.layout), np.flatnonzero(fits)
    return Accepted(events.take(chosen), key[chosen], moment[chosen]), events.filter(~fits)


def _placed(values: Int64s, place: Int64s, size: int) -> Int64s:
    placed = np.zeros(size, dtype=np.int64)
    placed[place] = values
    return placed


def _longer(starts: Int64s, more: int) -> Int64s:
    """Where groups begin, with so many empty ones more."""
    return np.append(starts, np.full(more, starts[-1]))
