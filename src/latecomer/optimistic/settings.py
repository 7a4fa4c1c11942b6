"""Optimistic processing: answer at once, and take back what a late row makes wrong.

Paper: Optimistic processing (Kuralenok et al., FlameStream).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from latecomer.chunks import ChunkStore
from latecomer.contract import Machine, Settings, check_max_held
from latecomer.durations import Duration, duration_us
from latecomer.errors import InputError, must
from latecomer.events import Bools, Int64s, Layout
from latecomer.gives import (
    Explained,
    Gives,
    Line,
    Onward,
    Tally,
    Verb,
    View,
    own_columns,
    revised_views,
    with_revisions,
)
from latecomer.optimistic.history import History
from latecomer.optimistic.machine import RECOMPUTED, VOIDED, Optimist
from latecomer.optimistic.positions import position_fields
from latecomer.optimistic.undoing import UndoingOptimist
from latecomer.outputs import CHANGE, FINAL, PANE, changes_of
from latecomer.progress import Timeline
from latecomer.windows.forgetting import Forgetting
from latecomer.windows.key_steps import KeyStep, check_goes_on
from latecomer.windows.mapped import Mapped


def _is_given(rows: pa.RecordBatch) -> Bools:
    return np.asarray(changes_of(rows) > 0)


def _is_final(rows: pa.RecordBatch) -> Bools:
    return np.asarray(rows.column(CHANGE).is_null().to_numpy(zero_copy_only=False))


def check_barrier(barrier: bool) -> None:
    """Refuse what is neither true nor false."""
    if not isinstance(barrier, bool):
        raise InputError(must("barrier", "be True or False", barrier, "leave it out for False"))


def views_of_changes(*, barrier: bool) -> dict[str, View]:
    """The views of results that are given at once: all changes; and behind a barrier what is final."""
    return {**revised_views(), **({"final": FINAL_ROWS} if barrier else {})}


GIVEN_ROWS = View(_is_given, (CHANGE,))
FINAL_ROWS = View(_is_final, (CHANGE, PANE, FINAL))


@dataclass(frozen=True)
class Optimistic(Settings):
    """A step on the rows of each key, in order, whose results come at once and are repaired up to a bound.

    bound: the most a row may be late. barrier: give every row once more when it is final, in order (the view `final`).
    forget_after: a row that comes so long after the one before it of its key finds no state; keys that are silent for
    so long are forgotten. max_held: the most rows one shard may hold. In a chain of steps, `goes_on`: another step
    takes the results; `derived`: its rows are the results of another, which has decided what is too late.
    """

    step: KeyStep
    bound: Duration
    barrier: bool = False
    forget_after: Duration | None = None
    max_held: int | None = None
    goes_on: bool = False
    derived: bool = False
    name: ClassVar[str] = "optimistic"
    verb: ClassVar[Verb | None] = Verb("scan(...).optimistic(...)", "give results at once, take back what was wrong")
    takes_changes: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not isinstance(self.step, KeyStep):
            raise InputError(must("step", "be a Scan, a Fold or a Group", self.step, "e.g. Scan(lc.running_sum('n'))"))
        duration_us(self.bound, "bound")
        check_barrier(self.barrier)
        check_max_held(self.max_held)
        if self.forget_after is not None:
            duration_us(self.forget_after, "forget_after")
            if self.step.undoes:
                rule = "be left out where groups are undone: a short one stands until the next row of its key"
                raise InputError(must("forget_after", rule, self.forget_after, "or write partial='full'"))
        if self.goes_on:
            check_goes_on(self.step, "another step")

    @property
    def bound_us(self) -> int:
        """The bound in microseconds."""
        return duration_us(self.bound, "bound")

    @property
    def forget_us(self) -> int | None:
        """After how long a silence a key starts anew."""
        return None if self.forget_after is None else duration_us(self.forget_after, "forget_after")

    @cached_property
    def key_step(self) -> KeyStep:
        """The step, with its memory."""
        return self.step if self.forget_us is None else Forgetting(self.step, self.forget_us)

    @property
    def onward(self) -> Onward:
        return Onward.IN_TICKS if self.goes_on else Onward.NO

    @property
    def wait_us(self) -> int:
        """How far the punctuation is behind the mark: in later steps the mark is the punctuation of the first."""
        return 0 if self.derived else self.bound_us + 1

    def build(self, store: ChunkStore, layout: Layout) -> Machine:
        return (UndoingOptimist if self.step.undoes else Optimist)(self, store, layout)

    def most_held(self, accepted_ts_us: Int64s, timeline: Timeline) -> int:
        history = History(ChunkStore(), "", self.bound_us)
        return int((accepted_ts_us >= history.held_from(timeline.punctuation(self.wait_us))).sum())

    def gives(self, columns: pa.Schema, layout: Layout) -> Gives:
        own = pa.schema(own_columns(columns))
        if layout.time not in own.names:
            rule = "be among the columns, unchanged"
            raise InputError(must("time", rule, f"only {', '.join(own.names)}", "select it as it is"))
        if layout.time in layout.key:
            raise InputError(must("key", "not be the time", layout.time, "rows of a key follow each other in time"))
        results = with_revisions(self.key_step.output(own, layout))
        effect = ", ".join(filter(None, ("per key, in order of {time}", self.step.runs_as(own))))
        lines = [Line("scan", self.step.shown(), effect)]
        lines.append(Line("repairs", f"rows up to {self.bound} late", "holds rows with their states"))
        if self.forget_after is not None:
            lines.append(Line("forgets", f"a key that is silent for {self.forget_after}"))
        return Gives(
            results,
            Explained("no sort: results at once, taken back where they were wrong", tuple(lines)),
            views_of_changes(barrier=self.barrier),
            GIVEN_ROWS,
            time=layout.time,
            by_key=True,
            counters={VOIDED: Tally.SUM, RECOMPUTED: Tally.SUM},
            net=True,
            position=position_fields(columns, layout, first=not self.derived) if self.goes_on else (),
            retracts=self.goes_on,
            items=self.derived or isinstance(self.step, Mapped),
        )

    def describe(self) -> dict[str, Any]:
        step, bound = self.key_step.describe(), {"bound_us": self.bound_us, "barrier": self.barrier}
        return {"strategy": self.name, "step": step, **bound, "goes_on": self.goes_on, "derived": self.derived}
