"""Slack: rows of several sources in order, as long as they need not wait longer than the slack.

After each tick all rows up to the frontier are read, in the total order. Rows that every source has passed are ready;
others are read because they were overtaken by more than the slack, and are marked `slack_ready`. A row that comes
behind the frontier is read at once, marked `out_of_order`: nothing is refused. Without slack this is ScaleGate, without
the merge time K-slack.

An operator reads the rows in that order, with two clocks: what was read, and what is certain. Each operator says from
which time it still takes rows that come out of order; others are in the lane `late`. A result is `final` when all that
it is made of was certain as it was given.

Invariants
1. Rows are read in the order (tick of release, total order), whatever the micro-batches and shards.
2. Every row is read once; rows of an operator that does not take them any more are in the lane `late`.
3. The slack may change while the query runs; the frontier never goes back.

Paper: Maximizing Determinism in Stream Processing Under Latency Constraints.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from latecomer.chunks import ChunkStore
from latecomer.codec import integers
from latecomer.contract import Machine, Settings, Steering, check_held, check_max_held
from latecomer.controls import Control
from latecomer.durations import Duration, duration_us
from latecomer.errors import InputError, must
from latecomer.events import FOREVER_US, NEVER_US, TICK, TICK_FIELD, Bools, EventBatch, Int64s, Layout, order_by
from latecomer.gives import Explained, Gives, Line, Onward, Tally, Verb, own_columns
from latecomer.headers import encode_sources
from latecomer.outputs import FINAL, Output, late, refused, results_of
from latecomer.progress import Timeline
from latecomer.runs import StoredRuns
from latecomer.slack.behind import behind_source
from latecomer.slack.controller import Policy
from latecomer.slack.frontier import Frontier
from latecomer.slack.reading import Reading, read_columns
from latecomer.slack.steering import (
    ARRIVED,
    FIRST_RELEASE,
    LONGEST_WAIT,
    MERGE,
    OLDEST,
    PASSED,
    RELEASED,
    RELEASED_TO,
    SLACK,
    SLACK_READY,
    SlackSteering,
    SteeredStage,
)
from latecomer.slack.tuner import SlackTuner
from latecomer.windows.operators import Clocks, Operator, operator_lines

OUT_OF_ORDER = "out_of_order"
OTHER_SOURCE = "other_source"
_FLAGS = (SLACK_READY, OUT_OF_ORDER)
_READ, _CERTAIN = "read_us", "certain_us"
_BEHIND = "behind_source"
_COUNTERS = {
    SLACK_READY: Tally.SUM,
    OUT_OF_ORDER: Tally.SUM,
    _BEHIND: Tally.SUM,
    RELEASED: Tally.SUM,
    RELEASED_TO: Tally.LARGEST,
    OLDEST: Tally.LEAST,
    FIRST_RELEASE: Tally.LEAST,
    LONGEST_WAIT: Tally.LARGEST,
    MERGE: Tally.LARGEST,
    PASSED: Tally.LARGEST,
    ARRIVED: Tally.LARGEST,
    SLACK: Tally.LARGEST,
}
_TRIED = ("0 s", "1 ms", "20 ms", "1 minute")


def read_slack(value: Duration | None) -> int:
    """A slack in microseconds; FOREVER_US where rows wait for every source."""
    return FOREVER_US if value is None else duration_us(value, "slack", zero=True)


def check_slack(stored: Mapping[str, Any], slack_us: int | str) -> None:
    """Refuse to wait for every source where sources are not waited for: no row would ever be read."""
    if slack_us == FOREVER_US and not stored["merge"]:
        raise InputError(must("slack", "be given where sources are not waited for (merge=False)", None, "e.g. '5 s'"))


@dataclass(frozen=True)
class Slack(Settings):
    """Read rows in order; wait for sources that lag, but let no row be overtaken by more than `slack`.

    slack: None waits for every source (ScaleGate). operator: what runs on the rows. sources: those that are declared,
    which hold the others back until they speak. merge: False looks at the slack alone (K-slack).
    max_held: the most rows one shard may hold; past it the query stops with an error.
    deadline: how soon after its arrival a row is to be written: `tuner` then changes the slack while the query runs.
    named: what the results are called where they are a source of a further stage.
    """

    slack: Duration | None = None
    operator: Operator | None = None
    sources: tuple[str, ...] = ()
    merge: bool = True
    max_held: int | None = None
    deadline: Duration | None = None
    tuner: Policy | None = None
    named: str | None = None
    name: ClassVar[str] = "slack"
    latest_only: ClassVar[str | None] = "slack waits for sources that lag by itself"
    verb: ClassVar[Verb | None] = Verb("slack(...)", "wait for sources that lag, as long as slack allows", orders=True)
    per_source: ClassVar[bool] = True
    controls: ClassVar[Mapping[str, Control]] = {
        "slack": Control(
            SLACK,
            read_slack,
            "how far rows may be overtaken: more from now on, less at once",
            _TRIED,
            check=check_slack,
        )
    }

    def __post_init__(self) -> None:
        read_slack(self.slack)
        check_max_held(self.max_held)
        check_slack({"merge": self.merge}, self.slack_us)
        if self.tuner is not None and self.deadline is None:
            raise InputError(must("tuner", "come with a deadline", None, "e.g. slack(deadline='6 s', tuner=...)"))
        if self.deadline is not None and self.slack_us >= duration_us(self.deadline, "deadline"):
            advice = "leave slack out: it begins with half the deadline"
            raise InputError(must("slack", f"be below the deadline ({self.deadline})", self.slack, advice))

    @property
    def slack_us(self) -> int:
        """The slack in microseconds: with a deadline, the one to begin with."""
        if self.slack is None and self.deadline is not None:
            return duration_us(self.deadline, "deadline") // 2
        return read_slack(self.slack)

    def steering(self, stages: Mapping[str, Settings], tick_us: int) -> Steering | None:
        if self.deadline is None:
            return None
        found: list[SteeredStage] = []
        for name, settings in stages.items():
            if isinstance(settings, Slack):
                window_us = 0 if settings.operator is None else settings.operator.reach_us
                found.append(SteeredStage(name, found[-1].name if found else None, window_us))
        policy = SlackTuner() if self.tuner is None else self.tuner
        return SlackSteering(policy, tuple(found), duration_us(self.deadline, "deadline"), tick_us)

    @property
    def onward(self) -> Onward:
        return Onward.IN_TICKS

    @property
    def steers(self) -> bool:
        return self.deadline is not None

    @property
    def at_work(self) -> Settings:
        return self if self.tuner is None else replace(self, tuner=None)

    @property
    def results_as(self) -> str | None:
        return self.named

    @property
    def passes_on(self) -> tuple[str, ...]:
        taken = None if self.operator is None else self.operator.sources
        return () if taken is None else tuple(name for name in self.sources if name not in map(str, taken))

    def build(self, store: ChunkStore, layout: Layout) -> Machine:
        return _Slack(self, store, layout)

    def frontier(self, timeline: Timeline, slack_us: Int64s, before: Clocks) -> Frontier:
        """How far rows are read after each tick, with the slack in force; what is passed on is not waited for."""
        awaited = [name for name in self.sources if name not in self.passes_on]
        return Frontier.of(timeline, slack_us, awaited if self.merge else None, before)

    def gives(self, columns: pa.Schema, layout: Layout) -> Gives:
        if layout.source is None:
            advice = "name the column that says who sent a row, or give a dict of DataFrames"
            raise InputError(must("slack", "know the source of every row (source=)", None, advice))
        if len(self.sources) == 1:
            advice = "with one source there is nothing to wait for: call .reorder(latency)"
            raise InputError(must("slack", "have at least two sources", self.sources[0], advice))
        own = pa.schema(own_columns(columns))
        added = [pa.field(name, pa.bool_()) for name in (_FLAGS if self.operator is None else (FINAL,))]
        results = (
            own if self.operator is None else self.operator.output(read_columns(columns, layout, self.operator), layout)
        )
        _check_free(results, [each.name for each in added])
        return Gives(
            pa.schema([*results, *added]),
            Explained("the gate", tuple(self._lines()), "the gate"),
            time=layout.time if self.operator is None else self.operator.layout_after(layout).time,
            by_key=self.operator is not None,
            in_part=self.operator is not None and self.operator.in_part,
            counters={**_COUNTERS, **({} if self.operator is None else self.operator.counters)},
            how=tuple(each.name for each in added),
        )

    def _lines(self) -> Iterator[Line]:
        waits = "waits for every source" if self.slack is None else f"overtaken by {self.slack} at most"
        if self.deadline is not None:
            waits = f"as large as a deadline of {self.deadline} allows"
        yield Line(self.name, waits if self.merge else f"{waits}, sources are not waited for", "order by {time}")
        if self.sources:
            yield Line("sources", ", ".join(map(str, self.sources)))
        if self.operator is not None:
            yield from operator_lines(self.operator, "as rows are read")

    def most_held(self, accepted_ts_us: Int64s, timeline: Timeline) -> int:
        frontier = self.frontier(timeline, timeline.numbers(SLACK, self.slack_us), Clocks.both(NEVER_US))
        read_us = int(frontier.read_us[-1])
        waiting = int((accepted_ts_us > read_us).sum())
        return waiting if self.operator is None else waiting + self.operator.most_held(accepted_ts_us, read_us)

    def describe(self) -> dict[str, Any]:
        return {
            "strategy": self.name,
            SLACK: self.slack_us if self.deadline is None else FOREVER_US,  # then it is the tuner's, not the user's
            "sources": list(self.sources),
            "merge": self.merge,
            "operator": None if self.operator is None else self.operator.describe(),
        }


def _check_free(columns: pa.Schema, added: list[str]) -> None:
    for each in columns:
        if each.name.lower() in added:
            advice = "slack adds a column of that name: rename yours before"
            raise InputError(must("columns", f"not be named {', '.join(added)}", each.name, advice))


class _Slack(Machine):
    def __init__(self, settings: Slack, store: ChunkStore, layout: Layout) -> None:
        super().__init__(store, layout)
        self._settings, operator = settings, settings.operator
        waiting, working = store.part(0, 2), store.part(1, 2)
        self._stored = StoredRuns(waiting, layout)
        self._reading = None if operator is None else Reading(operator, working, layout)
        self._counts: dict[str, int] = {}

    def counters(self) -> dict[str, int]:
        return self._counts if self._reading is None else {**self._counts, **self._reading.counters()}

    def push(self, batch: EventBatch, timeline: Timeline) -> Iterator[Output]:
        frontier = self._frontier(timeline)
        self._counts = {_BEHIND: behind_source(batch, timeline)}
        others = self._of_others(batch)
        if others.any():
            aside = batch.filter(others).sorted()
            yield late(aside, np.maximum(timeline.mark_before(aside.tick) - aside.ts_us, 0), OTHER_SOURCE)
            batch = batch.filter(~others)
        if self._reading is not None:
            too_late = self._reading.refuses(batch, frontier)
            if too_late.any():
                yield from refused(batch, too_late, frontier.before(batch.tick, frontier.read_us), timeline)
                batch = batch.filter(~too_late)
        leaving = self._stored.release(batch.sorted(), int(frontier.read_us[-1]))
        yield from self._read(leaving, frontier)
        notes, slacks_us = self.store.notes, self._slacks(timeline)
        notes[_READ], notes[_CERTAIN], notes[SLACK] = (
            int(each[-1]) for each in (frontier.read_us, frontier.certain_us, slacks_us)
        )
        passed_us = self._passed(frontier)
        self._counts |= {MERGE: int(frontier.ready_us[-1]), PASSED: int(passed_us[-1]), SLACK: notes[SLACK]}
        self._counts[ARRIVED] = int(timeline.tick[-1])
        check_held(self.held, self._settings.max_held)

    def finish(self) -> Iterator[Output]:
        leaving = self._stored.release(None, FOREVER_US)
        if self._reading is not None:
            yield from self._reading.finish(leaving)
        elif leaving is not None:
            yield results_of(_flagged(leaving, np.zeros(len(leaving), np.bool_), np.zeros(len(leaving), np.bool_)))

    def punctuation(self, timeline: Timeline) -> int:
        return int(self._frontier(timeline).read_us[-1])

    def passed(self, timeline: Timeline) -> Int64s:
        return self._passed(self._frontier(timeline))

    def certain(self, timeline: Timeline) -> Int64s:
        certain_us, operator = self._frontier(timeline).certain_us, self._settings.operator
        return certain_us if operator is None else operator.passed(certain_us)

    def _passed(self, frontier: Frontier) -> Int64s:
        operator = self._settings.operator
        return frontier.read_us if operator is None else operator.passed(frontier.read_us)

    def _slacks(self, timeline: Timeline) -> Int64s:
        """The slack in force after each tick: what was in force before, whatever the query is started with now."""
        return timeline.numbers(SLACK, self.store.notes.get(SLACK, self._settings.slack_us))

    def _frontier(self, timeline: Timeline) -> Frontier:
        before = Clocks(*(self.store.notes.get(name, NEVER_US) for name in (_READ, _CERTAIN)))
        return self._settings.frontier(timeline, self._slacks(timeline), before)

    def _of_others(self, batch: EventBatch) -> Bools:
        """Which rows are of sources that the operator does not take."""
        operator, source = self._settings.operator, batch.layout.source
        if operator is None or operator.sources is None or source is None:
            return np.zeros(len(batch), dtype=np.bool_)
        names, codes = encode_sources(batch.rows.column(source), len(batch))
        known = pa.array([str(each) for each in operator.sources], names.type)
        return np.asarray(~(integers(pc.is_in(names, value_set=known)) > 0)[codes])

    def _read(self, leaving: EventBatch | None, frontier: Frontier) -> Iterator[Output]:
        """Give what is read, in the order in which it is read, or what the operator makes of it."""
        if leaving is None:
            if self._reading is not None:
                yield from self._reading.push(None, frontier)
            return
        out_of_order = frontier.out_of_order(leaving.ts_us, leaving.tick)
        tick = frontier.release_ticks(leaving.ts_us, leaving.tick)
        slack_ready = frontier.slack_ready(leaving.ts_us, tick)
        self._counts |= {
            SLACK_READY: int(slack_ready.sum()),
            OUT_OF_ORDER: int(out_of_order.sum()),
            RELEASED: len(leaving),
            RELEASED_TO: int(leaving.ts_us.max()),
            OLDEST: int(leaving.tick.min()),
            FIRST_RELEASE: int(tick.min()),
            LONGEST_WAIT: int((tick - leaving.tick).max()),
        }
        leaving = with_ticks(leaving, tick)
        if (tick[1:] < tick[:-1]).any():
            order = order_by(tick)
            leaving, out_of_order, slack_ready = leaving.take(order), out_of_order[order], slack_ready[order]
        if self._reading is None:
            yield results_of(_flagged(leaving, slack_ready, out_of_order))
        else:
            yield from self._reading.push(leaving, frontier)


def _flagged(batch: EventBatch, slack_ready: Bools, out_of_order: Bools) -> EventBatch:
    """The rows with how they were read."""
    rows = batch.rows.append_column(SLACK_READY, pa.array(slack_ready))
    return EventBatch(rows.append_column(OUT_OF_ORDER, pa.array(out_of_order)), batch.layout)


def with_ticks(batch: EventBatch, tick: Int64s) -> EventBatch:
    """The same rows with other ticks: those after which they were read."""
    place = batch.rows.schema.get_field_index(TICK)
    return EventBatch(batch.rows.set_column(place, TICK_FIELD, pa.array(tick)), batch.layout)
