"""Late events that the live instance missed: which results each is to be repaired in, and when at the earliest.

A late event counts at once in those of its first windows that are open. Of those that were closed when it came, `until`
is the last: results that start after that have the event. So it is to be replayed for results in (done, until], where
`done` moves on with every replay; and it is complete when the live instance has given all of them.

Paper: TinTiN, section 6.3, but that there a late event is missing in all its windows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from latecomer.events import FOREVER_US, NEVER_US, Int64s, concat_rows, take_rows
from latecomer.outputs import LATENESS
from latecomer.timetravel.key_history import Accepted, MicroBatch
from latecomer.timetravel.reach import Reach
from latecomer.timetravel.repairs import Repairs
from latecomer.timetravel.tables import DONE, FIRE, FIRED, UNTIL
from latecomer.timetravel.triggers import EAGER, LAZY, times_wanted

COLUMNS = (UNTIL, DONE, FIRE, FIRED)


class Pending(NamedTuple):
    """Late events whose contexts are not replayed for good."""

    key: Int64s
    ts_us: Int64s
    tick: Int64s  # in which it came; NEVER_US if before this batch
    moment: Int64s  # its place among the events of this batch; -1 if before
    until_us: Int64s  # the last result that it may be missing in
    done_us: Int64s  # up to which results are repaired
    fire_us: Int64s  # when the user wants it, by the mark; lazy: when it is not worth while to wait for its key
    fired: Int64s  # 1 if it was, too early

    def take(self, chosen: Int64s) -> Pending:
        """Some of them."""
        return Pending._make(column[chosen] for column in self)


def missed_until(ts_us: Int64s, read_us: Int64s, reach: Reach) -> Int64s:
    """The last result that an event misses in the live instance, which had read so far; NEVER_US if it misses none."""
    first = reach.windows[0]
    closed_us = first.steps.starts(read_us - (first.size_us - 1))
    missed_us = np.minimum(first.steps.starts(ts_us), closed_us)
    until_us = reach.windows[-1].steps.starts(missed_us)
    return np.where(missed_us > ts_us - first.size_us, until_us, NEVER_US)


def pending_replays(batch: MicroBatch, accepted: Accepted | None) -> tuple[Pending, pa.RecordBatch | None]:
    """The late events whose replay is pending, those of before and those accepted now; and their rows for the state."""
    tables, time, rows = batch.tables, batch.layout.time, batch.tables.get("pending")
    before = len(tables.key("pending"))
    old = (tables.key("pending"), tables.column("pending", time), np.full(before, NEVER_US), np.full(before, -1))
    pending = Pending(*old, *(tables.column("pending", name) for name in COLUMNS))
    if accepted is None or len(accepted.events) == 0:
        return pending, rows
    new, new_rows = _new_replays(batch, accepted)
    if new_rows.num_rows:
        rows = new_rows if rows is None else concat_rows([rows, new_rows])
    return Pending._make(np.concatenate(each) for each in zip(pending, new, strict=True)), rows


def _new_replays(batch: MicroBatch, accepted: Accepted) -> tuple[Pending, pa.RecordBatch]:
    """Those of the late events accepted now that the live instance misses, and their rows for the state."""
    events, reach, timeline = accepted.events, batch.settings.reach, batch.timeline
    until_us = missed_until(events.ts_us, timeline.punctuation_before(events.tick, 1), reach)
    chosen = np.flatnonzero(until_us != NEVER_US)
    events, until_us = events.take(chosen), until_us[chosen]
    mark_us = timeline.mark_before(events.tick)
    if batch.settings.trigger == LAZY:
        fire_us = np.maximum(mark_us, until_us + (reach.wait_us + 1)) + batch.settings.pace_us
    else:
        wait_us = batch.settings.wait_us  # the mark here is so much behind the stream's own
        late = events.user_rows.append_column(LATENESS, pa.array(mark_us + wait_us - events.ts_us))
        wanted_us = times_wanted(batch.settings.trigger, late)
        fire_us = np.where(wanted_us == FOREVER_US, FOREVER_US, wanted_us - wait_us)
    values = (until_us, events.ts_us - reach.us, fire_us, np.zeros(len(chosen), dtype=np.int64))
    new = Pending(accepted.key[chosen], events.ts_us, events.tick, accepted.moment[chosen], *values)
    rows = events.rows.select([*batch.layout.key, batch.layout.time])
    for name, column in zip(COLUMNS, values, strict=True):
        rows = rows.append_column(name, pa.array(column))
    return new, rows


def still_pending(
    pending: Pending, rows: pa.RecordBatch | None, fired: Int64s, high_us: Int64s
) -> tuple[Pending, pa.RecordBatch | None]:
    """What is to be replayed later, after replays of some up to these results; and the rows for the state."""
    done_us, was_fired = pending.done_us.copy(), pending.fired.copy()
    np.maximum.at(done_us, fired, high_us)
    was_fired[fired] = 1
    left = np.flatnonzero(done_us < pending.until_us)
    if rows is not None:
        for name, column in ((DONE, done_us), (FIRED, was_fired)):
            rows = rows.set_column(rows.schema.get_field_index(name), name, pa.array(column))
        rows = take_rows(rows, left)
    return pending._replace(done_us=done_us, fired=was_fired).take(left), rows


def next_clock(pending: Pending, settings: Repairs) -> Int64s:
    """Before the clock comes so far, the mark or what live has read plus one, none is replayed if its key is silent."""
    reach, forced_us = settings.reach, pending.ts_us + (settings.bound_us + 1)
    if settings.trigger == LAZY:
        return np.minimum(pending.fire_us, forced_us)
    if settings.trigger == EAGER:
        starts = reach.windows[-1].steps
        return starts.starts(pending.done_us) + (starts.length_us + reach.wait_us + 1)
    wanted_us = np.where(pending.fired > 0, FOREVER_US, pending.fire_us)
    return np.minimum(np.minimum(wanted_us, forced_us), pending.until_us + (reach.wait_us + 1))
