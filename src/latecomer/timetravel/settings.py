"""Time travel: an application written for sorted input gives its results at once, and exactly, when late data comes.

Paper: TinTiN (Van Rooij, Gulisano, Papatriantafilou).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from latecomer.chunks import ChunkStore
from latecomer.contract import Machine, check_max_held
from latecomer.durations import Duration, duration_us
from latecomer.errors import InputError, must
from latecomer.events import CARRIED_PREFIX, NEVER_US, Int64s, Layout
from latecomer.gives import STANDING, Explained, Gives, Line, Verb, revised_views, with_revisions
from latecomer.progress import Timeline
from latecomer.timetravel.holes import Holes
from latecomer.timetravel.machine import TimeTraveller
from latecomer.timetravel.reach import Reach, parts_of, reach_of
from latecomer.timetravel.repairs import Repairs
from latecomer.timetravel.triggers import LAZY, Trigger
from latecomer.windows.aggregation import WindowAggregation
from latecomer.windows.collected import WindowFunction
from latecomer.windows.operators import Operator, Step, operator_lines
from latecomer.windows.window import WINDOW_END, WINDOW_START


@dataclass(frozen=True)
class TimeTravel(Repairs):
    """An application whose results are repaired when late events fill holes, up to a bound.

    operator: WindowAggregation, Step, or a Chain of them; steps leave times and keys as they are. bound: the most an
    event may be late, at least as long as all windows together. holes: how to tell that something is missing. trigger:
    "lazy" (at the key's next event), "eager" (at once) or a function from late events to the times at which to replay
    them. periodicity: where the application treats, say, the hours of a day differently, one day. retract: void
    results that vanish or change; without it a replay gives its results again, and the last one counts. shifted:
    without it every replay runs an application of its own. max_held: the most events one shard may hold. wait: the live
    instance takes events in order when the mark is so far past them, and only those that come later still are late.
    """

    operator: Operator
    bound: Duration
    holes: Holes
    trigger: Trigger = LAZY
    periodicity: Duration | None = None
    retract: bool = True
    shifted: bool = True
    max_held: int | None = None
    wait: Duration | None = None
    name: ClassVar[str] = "timetravel"
    verb: ClassVar[Verb | None] = Verb("app(...).timetravel(...)", "give results at once, and repair them later")

    def __post_init__(self) -> None:
        check_max_held(self.max_held)
        for name, value in (("retract", self.retract), ("shifted", self.shifted)):
            if not isinstance(value, bool):
                raise InputError(must(name, "be True or False", value, "leave it out for True"))
        self.check_repairs()
        if self.wait_us >= self.bound_us:
            rule = f"be shorter than the bound ({self.bound})"
            raise InputError(must("wait", rule, self.wait, "what is later than wait is repaired, up to the bound"))

    @cached_property
    def reach(self) -> Reach:
        """The windows of the application."""
        return reach_of(self.operator, 1 if self.periodicity is None else duration_us(self.periodicity, "periodicity"))

    @property
    def wait_us(self) -> int:
        return 0 if self.wait is None else duration_us(self.wait, "wait", zero=True)

    @property
    def shortest_wait_us(self) -> int | None:
        return self.wait_us or None

    def delayed(self, timeline: Timeline) -> Timeline:
        """The progress of the events that have waited."""
        mark_us = timeline.mark_us
        return replace(timeline, mark_us=np.where(mark_us == NEVER_US, NEVER_US, mark_us - self.wait_us))

    def build(self, store: ChunkStore, layout: Layout) -> Machine:
        return TimeTraveller(self, store, layout)

    def most_held(self, accepted_ts_us: Int64s, timeline: Timeline) -> int:
        return super().most_held(accepted_ts_us, self.delayed(timeline))

    def punctuation(self, timeline: Timeline) -> int:
        return super().punctuation(self.delayed(timeline))

    def gives(self, columns: pa.Schema, layout: Layout) -> Gives:
        lines = [Line("wait", f"{self.wait} for what is late", "then in order")] if self.wait_us else []
        lines += operator_lines(self.operator, "live, and as a replica for replays")
        repairs = f"rows up to {self.bound} late, {self.holes.shown()}"
        lines.append(Line("repairs", repairs, "holds what is near holes"))
        trigger = self.trigger if isinstance(self.trigger, str) else "when your function says"
        lines.append(Line("replays", f"{trigger}, in shifted time" if self.shifted else trigger))
        explained = Explained("no sort: results at once, repaired by replays", tuple(lines), own_windows=True)
        columns = with_revisions(self.output(columns, layout))
        return Gives(columns, explained, revised_views(), STANDING, by_key=True)

    def output(self, columns: pa.Schema, layout: Layout) -> pa.Schema:
        """The columns of the application's results; refuses what it cannot work on."""
        own = pa.schema([field for field in columns if not field.name.startswith(CARRIED_PREFIX)])
        if layout.time not in own.names:
            rule = "be among the columns, unchanged"
            raise InputError(must("time", rule, f"only {', '.join(own.names)}", "select it as it is"))
        if layout.time in layout.key:
            raise InputError(must("key", "not be the time", layout.time, "replays follow a key through time"))
        self.holes.check(own)
        _check_times(self.operator, layout.time, seasonal=self.periodicity is not None)
        _check_ends(self.operator, own.field(layout.time).type)
        return self.operator.output(own, layout)

    def describe(self) -> dict[str, Any]:
        return {
            "strategy": self.name,
            "operator": self.operator.describe(),
            "bound_us": self.bound_us,
            "holes": self.holes.describe(),
            "trigger": self.trigger if isinstance(self.trigger, str) else "function",
            "periodicity": None if self.periodicity is None else duration_us(self.periodicity, "periodicity"),
            "retract": self.retract,
            **({"wait_us": self.wait_us} if self.wait_us else {}),
        }


def _check_times(operator: Operator, time: str, *, seasonal: bool) -> None:
    """Refuse aggregates of times, which replays shift; a user's function may see them if it says what repeats."""
    times: set[str | None] = {time}
    for each in parts_of(operator):
        if isinstance(each, WindowAggregation):
            for name in times & _read_by(each, seasonal=seasonal):
                advice = "read a copy of the event time (with_columns), or say the periodicity of a window function"
                raise InputError(must("aggregates", "not read times, which replays shift", name, advice))
            times = {WINDOW_START, WINDOW_END}


def _check_ends(operator: Operator, kind: pa.DataType) -> None:
    """Refuse steps that call something else the end of a window: replays move it back in time."""
    for each in parts_of(operator):
        if isinstance(each, Step) and WINDOW_END in each.returns.names and each.returns.field(WINDOW_END).type != kind:
            got = each.returns.field(WINDOW_END).type
            raise InputError(must(f"{WINDOW_END} of step {each.name}", f"be of type {kind}", got, "call it otherwise"))


def _read_by(operator: WindowAggregation, *, seasonal: bool) -> set[str | None]:
    """The columns that its aggregates read; with seasons, but for those that a user's function does."""
    read: set[str | None] = set()
    for aggregate in operator.aggregates:
        if not isinstance(aggregate, WindowFunction):
            read.add(aggregate.column)
        elif not seasonal:
            read.update(aggregate.columns)
    return read
