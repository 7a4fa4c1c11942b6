"""What is known of every key after the events of a micro-batch: its sequence on time, its holes, its late events."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

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
    take_rows,
    total_order,
)
from latecomer.progress import Timeline
from latecomer.timetravel.buckets import Loaded
from latecomer.timetravel.firing import OnTime, Ticks, latest_times
from latecomer.timetravel.following import (
    FIRST,
    HELD,
    NOT_SEEN,
    Came,
    HoleTable,
    Keys,
    Stretches,
    find_open,
    follow,
    mark_contexts,
)
from latecomer.timetravel.holes import INSIDE, TOUCHING, UNKNOWN
from latecomer.timetravel.kept import (
    CONTEXT,
    FILLED,
    FROM,
    FROM_NUMBER,
    LATE,
    MISSING,
    ROLE,
    TO,
    TO_NUMBER,
    Kept,
)
from latecomer.timetravel.numbering import Tables
from latecomer.windows.grouping import group_rows

if TYPE_CHECKING:
    from latecomer.timetravel.settings import TimeTravel

_HOLE_COLUMNS = (FROM, TO, FROM_NUMBER, TO_NUMBER, MISSING, FILLED)


class Accepted(NamedTuple):
    """Late events that fall into a hole, with the number of the key and the moment of each."""

    events: EventBatch
    key: Int64s
    moment: Int64s


class Past:
    """The past as it is seen after a micro-batch."""

    def __init__(self, settings: TimeTravel, layout: Layout, tables: Tables, timeline: Timeline) -> None:
        self._settings, self._layout, self._tables, self._timeline = settings, layout, tables, timeline
        self._reach_us, self._bound_us = settings.reach.us, settings.bound_us
        self._memory_us = self._bound_us + 2 * self._reach_us
        self._line_up()
        self._follow()

    def _line_up(self) -> None:
        """Put the events that were on time, recent and new, in the order of keys and times."""
        tables = self._tables
        rows = [table for table in (tables.get("recent"), tables.get("on_time")) if table is not None]
        self._sequence = EventBatch(concat_rows(rows), self._layout) if rows else None
        key, order = sort_times(np.concatenate([tables.key("recent"), tables.key("on_time")]))
        starts = np.searchsorted(key, np.arange(tables.count + 1))
        ts_us = key if self._sequence is None else self._sequence.ts_us[order]
        tick = np.append(np.full(len(tables.key("recent")), NEVER_US), tables.column("on_time", TICK))
        self._order = order
        self.on_time = OnTime(key, ts_us, tick[order], starts)

    def _follow(self) -> None:
        """Follow the events in the order in which they came."""
        tables, time = self._tables, self._layout.time
        late_count, on_time_count = len(tables.key("late")), len(tables.key("on_time"))
        tick = np.concatenate([tables.column("late", TICK), tables.column("on_time", TICK)])
        self.came_tick, order = sort_times(tick)
        missing = np.concatenate([np.zeros(late_count, dtype=np.int64), self._missing(on_time_count)])
        equal = np.full(len(tick), NOT_SEEN)
        equal[:late_count] = self._equal(order)
        came = Came(
            np.concatenate([tables.key("late"), tables.key("on_time")])[order],
            np.concatenate([tables.column("late", time), tables.column("on_time", time)])[order],
            np.concatenate([self._numbers("late"), self._numbers("on_time")])[order],
            order < late_count,
            missing[order],
            equal[order],
            self._timeline.mark_before(self.came_tick),
        )
        self._keys = self._known_keys()
        table, before, known = self._old_holes(late_count + int((missing != 0).sum()))
        accepted = np.zeros(len(tick), dtype=np.bool_)
        count = follow(came, self._keys, table, before, known, self._settings.holes.kind, self._memory_us, accepted)
        self._set_holes(table, known, count)
        self._set_late(order, accepted, late_count)

    def _numbers(self, name: str) -> Int64s:
        rows = self._tables.get(name)
        if rows is None:
            return np.zeros(0, dtype=np.int64)
        return self._settings.holes.numbers(EventBatch(rows, self._layout))

    def _missing(self, count: int) -> Int64s:
        """For every new event that was on time how many are missing before it; FIRST too if its key was forgotten."""
        missing = np.full(count, FIRST)
        key, order, old = self.on_time.key, self._order, len(self._order) - count
        follows = np.flatnonzero((key[1:] == key[:-1]) & (order[1:] >= old)) + 1
        if len(follows) and self._sequence is not None:
            before, after = order[follows - 1], order[follows]
            oldest_us = self._timeline.mark_before(self._sequence.tick[after]) - self._memory_us
            told = self._settings.holes.missing(self._sequence, before, after)
            missing[after - old] = np.where(self._sequence.ts_us[before] < oldest_us, FIRST, told)
        return missing

    def _equal(self, order: Int64s) -> Int64s:
        """For every new late event the place of the last one before it that is equal, where only one can be missing."""
        tables, time = self._tables, self._layout.time
        count = len(tables.key("late"))
        equal = np.full(count, NOT_SEEN)
        if count == 0 or self._settings.holes.kind == TOUCHING:
            return equal
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        held = np.flatnonzero(tables.roles("contexts", ROLE) == LATE)
        columns = [
            np.concatenate([tables.key("contexts")[held], tables.key("late")]),
            np.concatenate([tables.column("contexts", time)[held], tables.column("late", time)]),
            np.concatenate([self._numbers("contexts")[held], self._numbers("late")]),
        ]
        groups = group_rows(columns)
        same = np.repeat(groups.starts, groups.sizes)
        for at in np.flatnonzero(np.arange(len(groups.order)) > same).tolist():
            row, previous = int(groups.order[at]) - len(held), int(groups.order[at - 1]) - len(held)
            if row >= 0:
                equal[row] = HELD if groups.order[same[at]] < len(held) else place[previous]
        return equal

    def _known_keys(self) -> Keys:
        tables = self._tables
        latest_us, latest_number = np.full(tables.count, NEVER_US), np.full(tables.count, NEVER_US)
        latest_us[tables.key("recent")] = tables.column("recent", self._layout.time)
        latest_number[tables.key("recent")] = self._numbers("recent")
        return Keys(latest_us, latest_number, np.full(tables.count, -1))

    def _old_holes(self, room: int) -> tuple[HoleTable, Int64s, int]:
        """The holes known before, in the order of keys and times, with room for more; and the one before each."""
        tables = self._tables
        key = np.concatenate([tables.key("holes"), tables.key("long")])
        both = ("holes", "long")
        columns = [np.concatenate([tables.column(name, each) for name in both]) for each in _HOLE_COLUMNS]
        order = np.lexsort((columns[0], columns[1], key))
        self._hole_rows = order
        known, size = len(key), len(key) + room
        key = _longer(key[order], size)
        from_us, to_us, from_number, to_number, missing, filled = (_longer(each[order], size) for each in columns)
        full = (missing != UNKNOWN) & (filled >= missing) & (to_us != FOREVER_US)
        full_at = np.where(full, -1, FOREVER_US)
        changed = np.zeros(size, dtype=np.bool_)
        table = HoleTable(key, from_us, to_us, from_number, to_number, missing, filled, full_at, changed)
        before = np.full(size, -1)
        same = np.flatnonzero(key[1:known] == key[: known - 1]) + 1 if known else key[:0]
        before[same] = same - 1
        self._keys.hole[key[:known]] = np.arange(known)
        return table, before, known

    def _set_holes(self, table: HoleTable, known: int, count: int) -> None:
        """All holes in the order of keys and times."""
        order = np.lexsort((table.from_us[:count], table.to_us[:count], table.key[:count]))
        self._holes = HoleTable._make(column[:count][order] for column in table)
        rows = np.append(self._hole_rows, np.full(count - known, -1))
        self._hole_rows = rows[order]
        self._hole_starts = np.searchsorted(self._holes.key, np.arange(self._tables.count + 1))

    def _set_late(self, order: Int64s, accepted: Bools, late_count: int) -> None:
        """Which late events were accepted, and which not."""
        self.accepted: Accepted | None = None
        self.refused: EventBatch | None = None
        rows = self._tables.get("late")
        if rows is None:
            return
        fits, moment = np.zeros(late_count, dtype=np.bool_), np.zeros(late_count, dtype=np.int64)
        places = np.flatnonzero(order < late_count)
        fits[order[places]], moment[order[places]] = accepted[places], places
        events, chosen = EventBatch(rows, self._layout), np.flatnonzero(fits)
        self.accepted = Accepted(events.take(chosen), self._tables.key("late")[chosen], moment[chosen])
        self.refused = events.filter(~fits)

    def known(self, keys: Int64s) -> tuple[EventBatch, Int64s, Int64s]:
        """All that is held of some keys, in the order of keys and events; the keys; when late ones of now came."""
        wanted = np.zeros(self._tables.count, dtype=np.bool_)
        wanted[keys] = True
        parts, numbers, arrived = [], [], []
        for name in ("contexts", "recent", "on_time"):
            rows = self._tables.get(name)
            if rows is not None:
                chosen = np.flatnonzero(wanted[self._tables.key(name)])
                parts.append(take_rows(rows, chosen))
                numbers.append(self._tables.key(name)[chosen])
                arrived.append(np.full(len(chosen), -1))
        if self.accepted is not None:
            chosen = np.flatnonzero(wanted[self.accepted.key])
            parts.append(self.accepted.events.take(chosen).rows)
            numbers.append(self.accepted.key[chosen])
            arrived.append(self.accepted.moment[chosen])
        events, number = EventBatch(concat_rows(parts), self._layout).without(ROLE), np.concatenate(numbers)
        order = total_order(events)
        order = order[sort_times(number[order])[1]]
        return events.take(order), number[order], np.concatenate(arrived)[order]

    def latest(self, key: Int64s, tick: Int64s) -> Int64s:
        """The time of a key's last event that was on time, up to a tick."""
        found = np.empty(len(key), dtype=np.int64)
        latest_times(key, tick, self.on_time, found)
        return found

    def final(self, key: Int64s, start_us: Int64s, tick: Int64s, moment: Int64s, at_once: Bools, ticks: Ticks) -> Bools:
        """Which results cannot change any more after the moment at which they are given."""
        mark_us = np.where(at_once, ticks.mark_before(tick), ticks.mark_after(tick))
        latest_us, oldest_us = self.latest(key, tick - at_once), ticks.mark_before(tick) - self._bound_us
        stretches = Stretches(key, start_us, moment, oldest_us, latest_us)
        missing, inside = np.zeros(len(key), dtype=np.bool_), self._settings.holes.kind == INSIDE
        find_open(stretches, self._reach_us, self._holes, self._hole_starts, inside, missing)
        passed = latest_us >= start_us + self._reach_us
        return (passed & ~missing) | (start_us + (self._reach_us - 1) < mark_us - self._bound_us)

    def keep(self, kept: Kept, loaded: dict[str, Loaded]) -> None:
        """Keep what a later replay may need, and nothing else."""
        mark_us = int(self._timeline.mark_us[-1])
        kept.note_mark(mark_us)
        self._keep_events(kept, mark_us - self._memory_us)
        self._keep_holes(kept, loaded["holes"], mark_us)
        kept.near.expire(mark_us - self._bound_us - self._reach_us + 1)
        kept.near.unite()

    def _keep_events(self, kept: Kept, oldest_us: int) -> None:
        if self._sequence is not None:
            key, ts_us, order = self.on_time.key, self.on_time.ts_us, self._order
            place = self._sequence.rows.schema.get_field_index(ROLE)
            near = self._sequence.rows.column(place).to_numpy()[order] == CONTEXT
            mark_contexts(key, ts_us, self._holes, self._hole_starts, self._reach_us, near)
            rows = take_rows(self._sequence.rows, order)
            rows = rows.set_column(place, rows.schema.field(place), pa.array((near * CONTEXT).astype(np.int8)))
            recent = ts_us > self._keys.latest_us[key] - self._reach_us
            kept.keep_recent(take_rows(rows, np.flatnonzero(recent & (ts_us >= oldest_us))))
            kept.contexts.append(take_rows(rows, np.flatnonzero(~recent & near & (ts_us >= oldest_us))))
        if self.accepted is not None:
            kept.contexts.append(self.accepted.events.rows)
        kept.contexts.expire(oldest_us)
        kept.contexts.unite()

    def _keep_holes(self, kept: Kept, loaded: Loaded, mark_us: int) -> None:
        holes, stored = self._holes, len(self._tables.key("holes"))
        tail = holes.to_us == FOREVER_US
        over = holes.to_us < mark_us - self._bound_us
        over |= tail & ((holes.from_us == NEVER_US) | (holes.from_us < mark_us - self._memory_us))
        columns = zip(_HOLE_COLUMNS, holes[1:7], strict=True)
        rows = self._tables.with_keys(holes.key, {name: pa.array(values) for name, values in columns})
        of_store = (self._hole_rows >= 0) & (self._hole_rows < stored)
        if stored:
            places = np.flatnonzero(of_store)
            places = places[np.argsort(self._hole_rows[places])]
            kept.holes.update(loaded, take_rows(rows, places), holes.changed[places], over[places])
        kept.keep_holes(take_rows(rows, np.flatnonzero(~of_store & ~over)))
        kept.holes.expire(mark_us - self._bound_us)
        kept.holes.unite()


def _longer(values: Int64s, size: int) -> Int64s:
    longer = np.zeros(size, dtype=np.int64)
    longer[: len(values)] = values
    return longer
