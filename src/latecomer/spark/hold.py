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
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark.sql.streaming.stateful_processor import MapState

from latecomer.chunks import ChunkStore
from latecomer.codec import widened
from latecomer.contract import Machine, Settings
from latecomer.controls import of_stage
from latecomer.events import FOREVER_US, NEVER_US, TICK, TICK_FIELD, EventBatch, Layout, concat_rows
from latecomer.gives import Onward, Tally, View
from latecomer.outputs import Lane, Output
from latecomer.progress import Measure, Progress, Timeline
from latecomer.spark.frames import Frame, Kind, Received, read_frames
from latecomer.spark.onward import NextStage, Sender
from latecomer.spark.packed import Packer
from latecomer.spark.source_counters import SourceTally
from latecomer.spark.state import ShardState
from latecomer.spark.units import Units, check_units


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
        machine = plan.settings.build(store, plan.layout)
        yield from self._finished_before(came, counters)
        own = replace(timeline, controls=of_stage(timeline.controls, plan.stage))
        sender = self._sender(machine, timeline, own)
        batch = self._batch(came, before, counters)
        self._count_events(batch, progress, machine.punctuation(own), counters)
        for output in self._outputs(machine, batch, own, counters):
            if sender is not None and output.lane is Lane.RESULTS:
                yield from sender.add(output.rows, self._packer)
            else:
                yield from self._packer.output(output)
        if not plan.finishing:
            self._state.save(progress, store)
        yield self._packer.counts(self._count(came, machine, own, counters) | self._sources.counters(progress))
        if sender is not None:
            yield from sender.close(self._packer)

    def _advance(self, before: Progress, came: Received) -> tuple[Progress, Timeline]:
        """How far the stream has come: by the headers of all tasks, or as the stage before says."""
        if came.timeline is not None:
            return before, came.timeline
        after, timeline = before.advance(came.headers, self._plan.measure)
        if self._plan.units is not None and before.largest_us == NEVER_US < after.largest_us:
            least_us = min(header.least_us for header in came.headers)
            first = min(int(header.spell_first.min(initial=FOREVER_US)) for header in came.headers)
            check_units(self._plan.units, (least_us, after.largest_us), (first, after.closed_tick))
        return after, timeline

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
        in_order = plan.settings.onward is Onward.IN_ORDER
        return Sender(plan.onward, self._key, timeline, machine.passed(own) if in_order else None)

    def _outputs(
        self, machine: Machine, batch: EventBatch | None, timeline: Timeline, counters: Counter[str]
    ) -> Iterator[Output]:
        pushed = iter(()) if batch is None else machine.push(batch, timeline)
        for output in chain(pushed, machine.finish() if self._plan.finishing else ()):
            counters["late" if output.lane is Lane.LATE else "given"] += output.given
            if output.lane is Lane.LATE:
                self._sources.add(output.rows, late=True)
            yield output

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
            "quarantined": counters["quarantined"],
            "late": counters["late"],
            "dropped": machine.dropped,
            "accepted": counters["pushed"] - counters["late"] - machine.dropped,
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
