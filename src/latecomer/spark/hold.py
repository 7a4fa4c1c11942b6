"""Hold: what happens in a shard of a stage. It gathers the shard's frames, lets the machine act and keeps its state.

Invariants
1. Nothing happens before all frames of the micro-batch are read: blobs are put in order and progress merged first.
2. Only state that changed is written.
3. A stage after another does not open ticks anew: its rows come with the ticks and the progress of the one before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain, repeat
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.streaming.stateful_processor import MapState

from latecomer.chunks import ChunkStore
from latecomer.codec import integers, widened
from latecomer.contract import Machine, Settings
from latecomer.controls import of_stage
from latecomer.events import FOREVER_US, NEVER_US, TICK, TICK_FIELD, EventBatch, Layout, concat_rows, take_rows
from latecomer.gives import Onward, Tally, View
from latecomer.headers import encode_sources
from latecomer.outputs import ITEM, Lane, Output
from latecomer.progress import Measure, Progress, Timeline
from latecomer.spark.frames import Frame, Kind, Received, read_frames
from latecomer.spark.onward import NextStage, Sender, timeline_after
from latecomer.spark.packed import QUARANTINED_ITEMS, Packer
from latecomer.spark.source_counters import SourceTally
from latecomer.spark.state import ShardState
from latecomer.spark.units import Units, check_units
from latecomer.spark.waiting import waiting_after, waiting_at


@dataclass(frozen=True)
class HoldPlan:
    """What a shard of a stage must know.

    stage: its number, from zero. counters: of all stages. columns: of the rows that come from the stage before.
    measure: how the progress of the stream is measured. units: what to make sure of when its first rows come.
    senders: how many shards the stage before has. carried: results keep what is carried for us. finishing: in batch,
    where the stream is over after its one batch. onward: the stage that takes the results, if there is one.
    """

    settings: Settings
    layout: Layout
    fingerprint: str
    counters: Mapping[str, Tally]
    views: tuple[View, ...] = (View(),)
    measure: Measure = field(default_factory=Measure)
    units: Units | None = None
    count_sources: bool = False
    stage: int = 0
    columns: pa.Schema | None = None
    senders: int | None = None
    carried: bool = False
    finishing: bool = False
    onward: NextStage | None = None


_DOORS = {Lane.RESULTS: "given", Lane.LATE: "late", Lane.QUARANTINE: "unusable"}


def _door(output: Output) -> str:
    """As what the rows of an output are counted: items in quarantine are no rows of the stage's input."""
    items = output.lane is Lane.QUARANTINE and ITEM in output.rows.schema.names
    return "items" if items else _DOORS[output.lane]


class Shard:
    """A machine at work on one shard's micro-batch; `key` is what Spark groups the shard's frames by."""

    def __init__(self, plan: HoldPlan, state: MapState, key: int) -> None:
        self._plan, self._key = plan, key
        self._state = ShardState(state, plan.fingerprint)
        self._frame = None if plan.onward is None else Frame(key, key, -1, int(Kind.FINISHED), 0, None)
        self._packer = Packer(plan.stage, plan.counters, plan.views, plan.carried, self._frame)
        self._sources = SourceTally(plan.layout.source if plan.count_sources else None)

    def run(self, rows: Iterable[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        """Take in the frames of one micro-batch; gives packed rows, or frames for the next stage."""
        plan, counters = self._plan, Counter[str]()
        came = read_frames(rows, plan.senders)
        before, store = (Progress(), ChunkStore()) if plan.finishing else self._state.load()
        progress, timeline = self._advance(before, came)
        progress, own = self._own(progress, timeline)
        machine = plan.settings.build(store, plan.layout)
        yield from self._finished_before(came, counters)
        sender = self._sender(machine, timeline, own)
        batch = self._batch(came, before, counters)
        self._count_events(batch, progress, machine.punctuation(own), counters)
        if sender is not None and batch is not None and plan.settings.passes_on:
            batch, passing = self._split(batch)
            counters["given"] += passing.num_rows
            yield from sender.pass_on(passing, self._packer)
        yield from self._sent(self._outputs(machine, batch, own, counters), sender)
        if not plan.finishing:
            self._state.save(progress, store)
        sources = self._sources.counters(progress) | self._waiting(progress, own)
        yield self._packer.counts(self._count(came, machine, own, counters) | sources)
        if sender is not None:
            yield from sender.close(self._packer)

    def _advance(self, before: Progress, came: Received) -> tuple[Progress, Timeline]:
        """How far the stream has come: by the headers of all tasks, or as the stage before says."""
        if came.timeline is not None:
            timeline = came.timeline.not_below(before.floor_us)
            return replace(before, floor_us=int(timeline.floor_us[-1])), timeline
        after, timeline = before.advance(came.headers, self._plan.measure)
        if self._plan.units is not None and before.largest_us == NEVER_US < after.largest_us:
            least_us = min(header.least_us for header in came.headers)
            first = min(int(header.spell_first.min(initial=FOREVER_US)) for header in came.headers)
            check_units(self._plan.units, (least_us, after.largest_us), (first, after.closed_tick))
        return after, timeline

    def _own(self, progress: Progress, timeline: Timeline) -> tuple[Progress, Timeline]:
        """How far the sources have come that the stage takes, with the control values that are its own."""
        own, passes_on = timeline, self._plan.settings.passes_on
        if passes_on:
            own = timeline.without(passes_on, progress.own_floor_us)
            progress = replace(progress, own_floor_us=int(own.floor_us[-1]))
        return progress, replace(own, controls=of_stage(own.controls, self._plan.stage))

    def _split(self, batch: EventBatch) -> tuple[EventBatch, pa.RecordBatch]:
        """The events that the machine takes, and the rows of sources that are passed on."""
        assert batch.layout.source is not None
        names, codes = encode_sources(batch.rows.column(batch.layout.source), len(batch))
        passing = pa.array(self._plan.settings.passes_on, names.type)
        passes = integers(pc.is_in(names, value_set=passing))[codes] > 0
        return batch.filter(~passes), take_rows(batch.rows, np.flatnonzero(passes))

    def _finished_before(self, came: Received, counters: Counter[str]) -> Iterator[pd.DataFrame]:
        """What pack or an earlier stage has finished."""
        for count, blob in came.quarantine:
            counters["quarantined"] += count
            yield self._packer.pieces(Lane.QUARANTINE, [count], [blob])
        for rows in came.finished:
            yield self._packer.again(rows)

    def _sender(self, machine: Machine, timeline: Timeline, own: Timeline) -> Sender | None:
        plan = self._plan
        if plan.onward is None:
            return None
        onward = plan.settings.onward
        passed_us = None if onward is Onward.AT_ONCE else machine.passed(own)
        certain_us = None if passed_us is None else machine.certain(own)
        return Sender(
            plan.onward, self._key, timeline_after(plan.onward, timeline, passed_us, certain_us), onward, passed_us
        )

    def _sent(self, outputs: Iterator[tuple[Output, bool]], sender: Sender | None) -> Iterator[pd.DataFrame]:
        """Results on their way to the next stage, if there is one; all else to the end."""
        for output, finished in outputs:
            if sender is not None and output.lane is Lane.RESULTS:
                yield from sender.add(output.rows, self._packer, finished=finished)
            else:
                yield from self._packer.output(output)

    def _outputs(
        self, machine: Machine, batch: EventBatch | None, timeline: Timeline, counters: Counter[str]
    ) -> Iterator[tuple[Output, bool]]:
        """What the machine gives, and whether it gives it at the end of the stream."""
        pushed = iter(()) if batch is None else machine.push(batch, timeline)
        finished = machine.finish() if self._plan.finishing else iter(())
        for output, over in chain(zip(pushed, repeat(False)), zip(finished, repeat(True))):
            counters[_door(output)] += output.given
            if output.lane is Lane.LATE:
                self._sources.add(output.rows, late=True)
            yield output, over

    def _count_events(
        self, batch: EventBatch | None, progress: Progress, punctuation_us: int, counters: Counter[str]
    ) -> None:
        """What is counted of events as they come: how many, on which side of the last jump, of which source."""
        if self._plan.stage == 0:
            counters["jump_us"] = progress.jump.us
        if batch is None:
            return
        counters["pushed"] = len(batch)
        if self._plan.stage == 0:
            counters["behind_jump"], counters["beyond_jump"] = progress.jump.sides(batch, punctuation_us)
            self._sources.add(batch.rows)

    def _waiting(self, progress: Progress, timeline: Timeline) -> dict[str, Any]:
        """What the stage waits for, where it knows its sources."""
        measure, passes_on = self._plan.measure, self._plan.settings.passes_on
        if self._plan.stage:
            return {} if timeline.sources is None else waiting_after(timeline.sources).counters()
        return waiting_at(progress, measure, passes_on).counters() if measure.follows_sources else {}

    def _batch(self, came: Received, before: Progress, counters: Counter[str]) -> EventBatch | None:
        """The events of the micro-batch; None where not even an empty blob came."""
        plan, rows = self._plan, None
        if came.events:
            rows = concat_rows(came.events)
            came.events.clear()
        if plan.columns is not None:
            empty = pa.RecordBatch.from_pylist([], schema=plan.columns)
            return EventBatch(widened(empty) if rows is None else rows, plan.layout)
        if rows is None:
            return None
        rows, moved = _with_open_ticks(rows, before)
        counters["stamps_back"] = moved if plan.measure.stamped else 0
        return EventBatch(rows, plan.layout)

    def _count(self, came: Received, machine: Machine, timeline: Timeline, counters: Counter[str]) -> dict[str, Any]:
        first = self._plan.stage == 0
        return {
            **machine.counters(),
            "seen": came.counts[Kind.SEEN] if first else counters["pushed"],
            "control": came.counts[Kind.CONTROL],
            "filtered": came.counts[Kind.FILTERED],
            "quarantined": counters["quarantined"] + counters["unusable"],
            QUARANTINED_ITEMS: counters["items"],
            "late": counters["late"],
            "dropped": machine.dropped,
            "accepted": counters["pushed"] - counters["late"] - counters["unusable"] - machine.dropped,
            "given": counters["given"],
            "held": machine.held,
            **{name: counters[name] for name in ("stamps_back", "behind_jump", "beyond_jump", "jump_us")},
            "mark_us": int(timeline.mark_us[-1]),
            "punctuation_us": machine.punctuation(timeline),
        }


def _with_open_ticks(rows: pa.RecordBatch, progress: Progress) -> tuple[pa.RecordBatch, int]:
    """Give every row an open tick, and say how many had one that was closed."""
    if TICK not in rows.schema.names:
        ticks = np.full(rows.num_rows, progress.closed_tick + 1)
        return rows.append_column(TICK_FIELD, pa.array(ticks)), 0
    stamped = rows.column(TICK).to_numpy()
    moved = int((stamped <= progress.closed_tick).sum())
    place = rows.schema.get_field_index(TICK)
    return rows.set_column(place, TICK_FIELD, pa.array(progress.open_ticks(stamped))), moved
