"""A machine run over a stream in a plain Python process, cut into micro-batches as one likes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypedDict

import numpy as np
import pyarrow as pa

from latecomer.contract import Settings
from latecomer.events import FOREVER_US, NEVER_US, Int64s, concat_rows, take_rows, users_columns
from latecomer.outputs import Lane, Output, changes_of, consolidate
from latecomer.progress import Timeline
from latecomer.runner import Between, Runner
from latecomer.testing.streams import LAYOUT, Stream


class Measured(TypedDict):
    """How the progress of a stream is measured."""

    idle_ticks: int | None
    merged: bool
    declared: tuple[str, ...]


@dataclass
class Run:
    """What came out of a run, batch by batch, and what was held after each."""

    outputs: list[list[Output]] = field(default_factory=list)
    held: list[int] = field(default_factory=list)
    timelines: list[Timeline] = field(default_factory=list)
    counters: list[Mapping[str, int]] = field(default_factory=list)
    dropped: int = 0

    def rows(self, lane: Lane, batches: int | None = None) -> pa.RecordBatch | None:
        """All rows of a lane in the order they came, or those of the first so many batches."""
        chosen = (output for batch in self.outputs[:batches] for output in batch if output.lane is lane)
        pieces = [users_columns(output.rows) for output in chosen]
        return concat_rows(pieces) if pieces else None

    def given(self) -> pa.RecordBatch | None:
        """The rows of the lane `results` that were given anew, in the order they came."""
        outputs = [output for batch in self.outputs for output in batch if output.lane is Lane.RESULTS]
        pieces = [take_rows(users_columns(o.rows), np.flatnonzero(changes_of(o.rows) > 0)) for o in outputs]
        return concat_rows(pieces) if pieces else None

    def results(self, how: Sequence[str] = ()) -> pa.Table | None:
        """The consolidated `results` lane, without the columns that say how a row was given."""
        return consolidate((output for batch in self.outputs for output in batch), how)

    def late_ids(self, batches: int | None = None) -> list[int]:
        """The ids in the `late` lane, sorted; of all batches, or of the first so many."""
        rows = self.rows(Lane.LATE, batches)
        return [] if rows is None else sorted(rows.column("id").to_pylist())


def run_machine(
    settings: Settings,
    stream: Stream,
    *,
    cuts: Sequence[int] = (),
    member: Callable[[Int64s], Int64s] | None = None,
    snapshot: bool = False,
    idle_ticks: int | None = None,
    merged: bool = False,
    declared: tuple[str, ...] = (),
) -> Run:
    """Run a machine over a stream cut into micro-batches at these positions.

    `member` picks the positions that belong to one shard; the progress is that of the whole stream all the same.
    With `snapshot`, the machine is thrown away and restored from its snapshot after every batch. `merged`: the mark is
    that of the source furthest behind. declared: sources that are known before they speak.
    """
    between = Between.RESTORE if snapshot else Between.KEEP
    measured: Measured = {"idle_ticks": idle_ticks, "merged": merged, "declared": declared}
    run, runner = Run(), Runner(settings, LAYOUT, between=between, **measured)
    after, batches = NEVER_US, np.split(np.arange(len(stream)), np.asarray(cuts, dtype=np.int64))
    for number, positions in enumerate(batches):
        mine = positions if member is None else positions[member(stream.key[positions])]
        upto = int(stream.tick[positions].max(initial=after)) if number + 1 < len(batches) else FOREVER_US
        pushed = runner.push(stream.batch(mine), stream.header(positions, after, upto, idle_ticks))
        after = upto
        run.outputs.append(pushed.outputs)
        run.held.append(pushed.held)
        run.timelines.append(pushed.timeline)
        run.counters.append(pushed.counters)
    run.outputs.append(runner.finish())
    run.dropped = runner.dropped
    return run
