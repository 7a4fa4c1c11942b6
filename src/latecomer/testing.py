"""For people who write a strategy: a manual clock, a plain Python runner, and `check_machine`.

`check_machine(settings)` runs a machine through the five invariants of `latecomer.contract` on random streams and
raises an AssertionError that names the invariant, the seed and the difference.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypedDict

import numpy as np
import pyarrow as pa

from latecomer.chunks import ChunkStore
from latecomer.codec import batch_to_bytes
from latecomer.contract import Settings
from latecomer.controls import ControlStep
from latecomer.durations import Duration, duration_us
from latecomer.events import (
    EVENT_CHANGE,
    FOREVER_US,
    NEVER_US,
    TICK,
    EventBatch,
    Int8s,
    Int64s,
    Layout,
    concat_rows,
    take_rows,
    users_columns,
)
from latecomer.gives import Gives
from latecomer.headers import Header, HeaderBuilder
from latecomer.outputs import CHANGE, Lane, Output, changes_of, consolidate
from latecomer.progress import Timeline
from latecomer.runner import Between, Runner

LAYOUT = Layout(time="ts", key=("key",), source="source", order=("id",))


@dataclass
class ManualClock:
    """A clock that moves when it is told to."""

    now_us: int = 0

    def advance(self, by: Duration) -> int:
        """Move on by a duration; returns the new time."""
        self.now_us += duration_us(by, "by")
        return self.now_us


@dataclass(frozen=True)
class Stream:
    """Events in plain arrays, in arrival order.

    id: of each event, its position unless given. change: -1 for a retraction. ends: the ticks and sources of ends.
    controls: control values, each in a tick without events.
    """

    ts_us: Int64s
    tick: Int64s
    key: Int64s
    source: Int64s
    id: Int64s | None = None
    change: Int8s | None = None
    ends: tuple[tuple[int, int], ...] = ()
    controls: tuple[ControlStep, ...] = ()

    def __len__(self) -> int:
        return len(self.ts_us)

    @property
    def ids(self) -> Int64s:
        """The id of each event."""
        return np.arange(len(self)) if self.id is None else self.id

    def batch(self, chosen: Int64s) -> EventBatch:
        """Some of the events, by position; a row's `id` is its position in the stream unless the stream says."""
        columns = {
            "id": pa.array(self.ids[chosen]),
            "ts": pa.array(self.ts_us[chosen]),
            "key": pa.array(self.key[chosen]),
            "source": pa.array(self.source[chosen]),
            TICK: pa.array(self.tick[chosen]),
        }
        if self.change is not None:
            columns[EVENT_CHANGE] = pa.array(self.change[chosen], pa.int8())
        return EventBatch(pa.RecordBatch.from_pydict(columns), LAYOUT)

    def take(self, chosen: Int64s) -> Stream:
        """The stream of some of the events only, by position."""
        ids, change = None if self.id is None else self.id[chosen], None if self.change is None else self.change[chosen]
        ts_us, tick, key, source = (column[chosen] for column in (self.ts_us, self.tick, self.key, self.source))
        return replace(self, ts_us=ts_us, tick=tick, key=key, source=source, id=ids, change=change)

    def header(self, chosen: Int64s, after: int, upto: int, idle_ticks: int | None) -> Header:
        """What a task says of these events, and of the ends and control values after one tick and up to another."""
        builder, batch = HeaderBuilder(idle_ticks), self.batch(chosen)
        builder.add(batch.ts_us, batch.tick, batch.rows.column("source"))
        ends = [end for end in self.ends if after < end[0] <= upto]
        if ends:
            ticks, sources = (np.array(column, dtype=np.int64) for column in zip(*ends, strict=True))
            builder.add_ends(ticks, len(ends), pa.array(sources))
        steps = tuple(step for step in self.controls if after < step.tick <= upto)
        return replace(builder.build(), controls=steps)


def random_stream(seed: int, events: int = 200) -> Stream:
    """A small stream with late, equal and far-off times, several keys and sources, and silences."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(0, events + 1))
    steps = rng.choice([0, 0, 0, 1, 1, 2, 40], size=count)
    tick = np.cumsum(steps).astype(np.int64) + 1_000
    delay = rng.choice([0, 0, 1, 5, 30, 500], size=count) * rng.integers(0, 1_000, size=count)
    ts_us = tick * 1_000 - delay
    keys, sources = rng.integers(1, 8), rng.integers(1, 4)
    return Stream(ts_us, tick, rng.integers(0, keys, size=count), rng.integers(0, sources, size=count))


def _stream_for(settings: Settings, seed: int, events: int) -> Stream:
    """A random stream with sources that end; with what the strategy takes of control values and retractions."""
    stream, rng = random_stream(seed, events), np.random.default_rng([seed, 2])
    if len(stream) == 0:
        return stream
    if settings.takes_changes and rng.random() < 0.5:
        stream = _with_retractions(stream, rng)
    if rng.random() < 0.5:
        stream = replace(stream, ends=_random_ends(stream, rng))
    steps = []
    for tick in _ticks_between(stream, rng, most=4):
        for control in settings.controls.values():
            value = control.read(control.tried[int(rng.integers(len(control.tried)))])
            steps.append(ControlStep(tick, control.stored, json.dumps(value)))
    return replace(stream, controls=tuple(steps))


def _with_retractions(stream: Stream, rng: np.random.Generator) -> Stream:
    """Some of the events are taken back at the end of the stream."""
    void = np.sort(rng.choice(len(stream), size=int(rng.integers(0, len(stream) // 2 + 1)), replace=False))
    chosen = np.append(np.arange(len(stream)), void)
    tick = np.append(stream.tick, stream.tick[-1] + 1 + np.arange(len(void)) // 3)
    change = np.repeat(np.array([1, -1], dtype=np.int8), [len(stream), len(void)])
    return Stream(stream.ts_us[chosen], tick, stream.key[chosen], stream.source[chosen], chosen, change)


def _random_ends(stream: Stream, rng: np.random.Generator) -> tuple[tuple[int, int], ...]:
    """Some or all sources end, after all of them have spoken: one that nobody knows yet has not ended."""
    _, first = np.unique(stream.source, return_index=True)
    last, sources = int(stream.tick[-1]), np.unique(stream.source).tolist()
    start = int(stream.tick[first.max()])
    ending = sources if rng.random() < 0.5 else sources[1:]
    return tuple((int(rng.integers(start, last + 3)), source) for source in ending)


def _ticks_between(stream: Stream, rng: np.random.Generator, most: int) -> list[int]:
    """Some ticks without events, in order."""
    free = np.setdiff1d(np.arange(stream.tick[0], stream.tick[-1]), stream.tick)
    free = free[~np.isin(free, [tick for tick, _ in stream.ends])]
    count = min(len(free), int(rng.integers(0, most + 1)))
    return sorted(rng.choice(free, size=count, replace=False).tolist()) if count else []


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
    measured: _Measured = {"idle_ticks": idle_ticks, "merged": merged, "declared": declared}
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


class _Measured(TypedDict):
    """How the progress of a stream is measured."""

    idle_ticks: int | None
    merged: bool
    declared: tuple[str, ...]


def _random_measure(seed: int, rng: np.random.Generator) -> _Measured:
    """With and without silence that counts; merged or not; with a declared source that may never speak, or none."""
    idle, merged, declared = *(rng.random(2) < 0.5), np.random.default_rng([seed, 3]).random() < 0.5
    return {"idle_ticks": 20 if idle else None, "merged": bool(merged), "declared": ("0", "1") if declared else ()}


def check_machine(settings: Settings, *, runs: int = 12, seed: int = 0, events: int = 200) -> None:
    """Try the five invariants of a machine on random streams."""
    for number in range(seed, seed + runs):
        stream = _stream_for(settings, number, events)
        rng = np.random.default_rng([number, 1])
        measured = _random_measure(number, rng)
        whole = run_machine(settings, stream, **measured)
        for name, check in _CHECKS.items():
            try:
                check(settings, stream, whole, rng, measured)
            except AssertionError as error:
                raise AssertionError(f"{settings} breaks invariant '{name}' at seed {number}: {error}") from None


def _cuts_between_ticks(stream: Stream, rng: np.random.Generator) -> list[int]:
    places = np.flatnonzero(np.diff(stream.tick)) + 1
    count = min(len(places), int(rng.integers(0, 9)))
    return sorted(int(place) for place in rng.choice(places, size=count, replace=False))


def _same_for_all_shards_and_cuts(
    settings: Settings, stream: Stream, whole: Run, rng: np.random.Generator, measured: _Measured
) -> None:
    cuts = _cuts_between_ticks(stream, rng)
    cut = run_machine(settings, stream, cuts=cuts, **measured)
    _assert_equal(whole.results(), cut.results(), f"results when cut at {cuts}")
    _assert_equal(whole.late_ids(), cut.late_ids(), f"late events when cut at {cuts}")
    once = cut if _gives(settings, stream).net else whole
    _assert_equal(_as_given([once]), _as_given([cut]), f"change, pane, final or tier of results when cut at {cuts}")
    shards = int(rng.integers(2, 5))
    parts = [
        run_machine(settings, stream, cuts=cuts, member=_member(shard, shards), **measured) for shard in range(shards)
    ]
    together = consolidate(output for part in parts for batch in part.outputs for output in batch)
    _assert_equal(whole.results(), together, f"results of {shards} shards")
    _assert_equal(whole.late_ids(), sorted(i for part in parts for i in part.late_ids()), "late in shards")
    _assert_equal(_as_given([once]), _as_given(parts), f"change, pane, final or tier of results of {shards} shards")


def _gives(settings: Settings, stream: Stream) -> Gives:
    """What a strategy gives for events of a stream."""
    return settings.gives(stream.batch(np.arange(0)).rows.schema, LAYOUT)


def _as_given(runs: Sequence[Run]) -> list[str]:
    """Every row of the results with all that it says of itself, in an order of their own."""
    outputs = [output for run in runs for batch in run.outputs for output in batch if output.lane is Lane.RESULTS]
    return sorted(repr(row) for output in outputs for row in users_columns(output.rows).to_pylist())


def _member(shard: int, shards: int) -> Callable[[Int64s], Int64s]:
    return lambda key: np.flatnonzero(key % shards == shard)


def _every_event_has_one_door(
    settings: Settings, stream: Stream, whole: Run, rng: np.random.Generator, measured: _Measured
) -> None:
    late = whole.late_ids()
    assert set(late) <= set(range(len(stream))), "a late event that never came"
    assert Counter(late) <= Counter(stream.ids.tolist()), "an event is late twice"
    left = _accepted(stream, late)
    accepted = (len(left) if stream.change is None else int((stream.change[left] > 0).sum())) - whole.dropped
    assert accepted >= 0, f"{len(stream)} events, but {len(late)} late and {whole.dropped} dropped"
    results = whole.given()
    own = stream.batch(np.arange(0)).user_rows.schema.names
    how = _gives(settings, stream).how
    if results is not None and set(results.schema.names) - {CHANGE, *how} == set(own):
        ids = results.column("id").to_pylist()
        assert len(ids) == accepted == len(set(ids)), f"{accepted} events accepted, {len(ids)} given"
        assert not set(ids) & set(late), "an event is both given and late"


def _equals_the_sorted_run(
    settings: Settings, stream: Stream, whole: Run, rng: np.random.Generator, measured: _Measured
) -> None:
    cuts = _cuts_between_ticks(stream, rng)
    run = run_machine(settings, stream, cuts=cuts, **measured)
    gives = _gives(settings, stream)
    if run.dropped or gives.moves_times:  # nobody knows which events were dropped; moved ones differ from the input
        return
    if gives.in_part:
        stream = _within_the_bound(settings, stream)
        run = run_machine(settings, stream, cuts=_cuts_between_ticks(stream, rng))
    accepted = _accepted(stream, run.late_ids())
    order = np.lexsort((accepted, stream.tick[accepted], stream.source[accepted], stream.ts_us[accepted]))
    chosen = accepted[order]
    ts_us = stream.ts_us[chosen]
    ids = stream.ids[chosen]
    change = None if stream.change is None else stream.change[chosen]
    in_order = Stream(ts_us, ts_us, stream.key[chosen], stream.source[chosen], ids, change)
    sorted_run = run_machine(settings, in_order)
    _assert_equal(run.results(gives.how), sorted_run.results(gives.how), "results against sorted input")


def _accepted(stream: Stream, late: Sequence[int]) -> Int64s:
    """The positions that were not late: of an event and its retraction, one is late alone only if it is the latter."""
    gone, left = Counter(late), np.ones(len(stream), dtype=np.bool_)
    for position in range(len(stream) - 1, -1, -1):  # a retraction comes after its event
        number = int(stream.ids[position])
        if gone[number]:
            gone[number] -= 1
            left[position] = False
    return np.flatnonzero(left)


def _within_the_bound(settings: Settings, stream: Stream) -> Stream:
    """The events that were not passed yet when they came: the others may count in some results and not in others.

    Without those the stream may have been passed sooner, so it is asked again until all are left.
    """
    while True:
        starts = [0, *(np.flatnonzero(np.diff(stream.tick)) + 1).tolist()]
        run, machine = run_machine(settings, stream, cuts=starts[1:]), settings.build(ChunkStore(), LAYOUT)
        passed_us = [NEVER_US, *(machine.punctuation(timeline) for timeline in run.timelines[:-1])]
        before_us = np.repeat(passed_us, np.diff(starts, append=len(stream)))
        left = np.flatnonzero(stream.ts_us > before_us)
        if len(left) == len(stream):
            return stream
        stream = stream.take(left)


def _restored_goes_on_alike(
    settings: Settings, stream: Stream, whole: Run, rng: np.random.Generator, measured: _Measured
) -> None:
    cuts = sorted(int(place) for place in rng.integers(0, len(stream) + 1, size=rng.integers(0, 9)))
    kept = run_machine(settings, stream, cuts=cuts, **measured)
    restored = run_machine(settings, stream, cuts=cuts, **measured, snapshot=True)
    for number, (left, right) in enumerate(zip(kept.outputs, restored.outputs, strict=True)):
        _assert_equal([_bytes(o) for o in left], [_bytes(o) for o in right], f"batch {number}, cut at {cuts}")
    _assert_equal(kept.held, restored.held, "events held")


def _bytes(output: Output) -> tuple[Lane, bytes]:
    return output.lane, batch_to_bytes(output.rows)


def _holds_what_it_promises(
    settings: Settings, stream: Stream, whole: Run, rng: np.random.Generator, measured: _Measured
) -> None:
    cuts = _cuts_between_ticks(stream, rng)
    run = run_machine(settings, stream, cuts=cuts, **measured)
    ends = [*cuts, len(stream)]
    for number, (end, held, timeline) in enumerate(zip(ends, run.held, run.timelines, strict=True)):
        accepted = _accepted(stream.take(np.arange(end)), run.late_ids(number + 1))
        most = settings.most_held(stream.ts_us[accepted], timeline)
        assert held <= most, f"{held} events held where at most {most} are promised"


_CHECKS: dict[str, Callable[[Settings, Stream, Run, np.random.Generator, _Measured], None]] = {
    "same for all shards and cuts": _same_for_all_shards_and_cuts,
    "every event has one door": _every_event_has_one_door,
    "equals the sorted run": _equals_the_sorted_run,
    "restored goes on alike": _restored_goes_on_alike,
    "holds what it promises": _holds_what_it_promises,
}


def _assert_equal(left: object, right: object, what: str) -> None:
    same = left.equals(right) if isinstance(left, pa.Table) and right is not None else left == right
    assert same, f"{what} differ:\n{left}\n{right}"
