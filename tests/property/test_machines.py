"""Every machine through the five invariants, and proof that the invariants can fail."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pytest

from latecomer.basic import PassThrough
from latecomer.basic.pass_through import _PassThrough
from latecomer.chunks import ChunkStore
from latecomer.contract import Machine, Settings
from latecomer.errors import HeldError, LateError
from latecomer.events import EVENT_CHANGE, NEVER_US, EventBatch, Int64s, Layout, Stretches
from latecomer.outputs import CHANGE, Lane, Output, Pane, consolidate, plain_results, results_of, revisable
from latecomer.progress import Timeline
from latecomer.reorder import Reorder
from latecomer.reorder.reorder import _Reorder
from latecomer.testing import ManualClock, Stream, check_machine, random_stream, run_machine
from latecomer.tiers import Ordered
from latecomer.tiers.ordered import _Ordered
from latecomer.windows import Count, Pattern, Window, WindowAggregation

MACHINES = [
    PassThrough(),
    Reorder("1 ms"),
    Reorder("20 ms"),
    Reorder("10 s"),
    Reorder("20 ms", total=True),
    Reorder("20 ms", align=Stretches(7_000)),
    Reorder("20 ms", align=Stretches(1_000_000)),
]


@pytest.mark.parametrize("settings", MACHINES, ids=str)
def test_machine_keeps_the_five_invariants(settings: Settings) -> None:
    check_machine(settings)


class _Forgetful(_Reorder):
    """Keeps the last batch in a field that a restart loses."""

    def push(self, batch: EventBatch, timeline: Timeline) -> Iterator[Output]:
        kept, self._last = getattr(self, "_last", None), batch
        if kept is not None:
            yield from super().push(kept, timeline)

    def finish(self) -> Iterator[Output]:
        yield from super().finish()
        if getattr(self, "_last", None) is not None:
            yield results_of(self._last.sorted())


class _Losing(_Reorder):
    """Loses what is too late."""

    def push(self, batch: EventBatch, timeline: Timeline) -> Iterator[Output]:
        for output in super().push(batch, timeline):
            if output.lane == 0:
                yield output


class _Hoarding(_Reorder):
    """Never releases before the end."""

    def push(self, batch: EventBatch, timeline: Timeline) -> Iterator[Output]:
        ordered = batch.sorted()
        self.store.append(ordered.rows, ordered.ts_us)
        yield from ()


class _Deaf(_Reorder):
    """Does not hear control values."""

    def push(self, batch: EventBatch, timeline: Timeline) -> Iterator[Output]:
        return super().push(batch, replace(timeline, controls=()))


class _Forever(_Reorder):
    """Does not hear that the stream has ended."""

    def push(self, batch: EventBatch, timeline: Timeline) -> Iterator[Output]:
        return super().push(batch, replace(timeline, floor_us=np.full(len(timeline.tick), NEVER_US)))


@dataclass(frozen=True)
class Broken(Reorder):
    """Settings that build a machine with a fault."""

    machine: type[_Reorder] = _Losing
    name: ClassVar[str] = "broken"

    def build(self, store: ChunkStore, layout: Layout) -> Machine:
        return self.machine(self, store, layout)


@pytest.mark.parametrize(
    ("machine", "invariant"),
    [
        (_Losing, "every event has one door"),
        (_Hoarding, "holds what it promises"),
        (_Deaf, "holds what it promises"),
        (_Forever, "holds what it promises"),
        (_Forgetful, "invariant"),
    ],
)
def test_check_machine_finds_a_broken_machine(machine: type[_Reorder], invariant: str) -> None:
    with pytest.raises(AssertionError, match=invariant):
        check_machine(Broken("5 ms", machine=machine))


class _Pane(_Ordered):
    """Says in every other batch that results are early and not final."""

    def push(self, batch: EventBatch, timeline: Timeline) -> Iterator[Output]:
        self._batches = getattr(self, "_batches", 0) + 1
        for output in super().push(batch, timeline):
            if output.lane is Lane.RESULTS and self._batches % 2 == 0:
                yield revisable(plain_results(output.rows), 1, Pane.EARLY, final=False, tier=1)
            else:
                yield output


class _HoardingOrdered(_Ordered):
    """Never releases before the end."""

    def push(self, batch: EventBatch, timeline: Timeline) -> Iterator[Output]:
        nothing = np.full(len(timeline.tick), NEVER_US)
        return super().push(batch, replace(timeline, mark_us=nothing, floor_us=nothing))


@dataclass(frozen=True)
class BrokenOrdered(Ordered):
    """Settings that build a machine with a fault."""

    machine: type[_Ordered] = _Pane
    name: ClassVar[str] = "broken_ordered"

    def build(self, store: ChunkStore, layout: Layout) -> Machine:
        return self.machine(self, store, layout)


@pytest.mark.parametrize(
    ("machine", "invariant"),
    [(_Pane, "change, pane, final or tier"), (_HoardingOrdered, "holds what it promises|every event|same for all")],
)
def test_check_machine_looks_at_panes_and_at_what_is_held_in_order(machine: type[_Ordered], invariant: str) -> None:
    with pytest.raises(AssertionError, match=invariant):
        check_machine(BrokenOrdered(("5 ms",), machine=machine))


@dataclass(frozen=True)
class Deaf(PassThrough):
    """Takes retractions for events."""

    name: ClassVar[str] = "deaf"

    def build(self, store: ChunkStore, layout: Layout) -> Machine:
        return _TakesAll(store, layout)


class _TakesAll(_PassThrough):
    def push(self, batch: EventBatch, timeline: Timeline) -> Iterator[Output]:
        for output in super().push(batch.without(EVENT_CHANGE), timeline):
            yield Output(output.lane, output.rows.append_column(CHANGE, pa.array(np.ones(len(output), dtype=np.int8))))


def test_check_machine_finds_one_that_takes_retractions_for_events() -> None:
    with pytest.raises(AssertionError, match="every event has one door"):
        check_machine(Deaf())


ORDERED = [
    Ordered(("1 ms", "30 ms")),
    Ordered(("20 ms",), align=Stretches(7_000)),
    Ordered(("1 ms", "30 ms"), WindowAggregation(Window("30 ms", "10 ms"), (Count(),))),
    Ordered(("10 ms",), Pattern("source", 0, 1, "5 ms")),
]


@pytest.mark.parametrize("settings", ORDERED, ids=str)
def test_events_in_order_keep_the_five_invariants(settings: Ordered) -> None:
    check_machine(settings)


def test_max_held_stops_with_a_clear_error() -> None:
    stream = random_stream(3)
    with pytest.raises(HeldError, match="held events per shard must stay within max_held=5; got"):
        run_machine(Reorder("10 s", max_held=5), stream)


def test_the_manual_clock_moves_when_told() -> None:
    clock = ManualClock()
    assert clock.advance("1 s") == clock.advance("1 s") - 1_000_000 == 1_000_000


POLICIES = [
    Reorder("20 ms", late="adjust"),
    Reorder("20 ms", late="drop"),
    Reorder("1 ms", late="adjust", align=Stretches(7_000)),
]


@pytest.mark.parametrize("settings", POLICIES, ids=str)
@pytest.mark.parametrize("seed", range(6))
def test_policies_depend_neither_on_shards_nor_on_cuts(settings: Reorder, seed: int) -> None:
    stream = random_stream(seed)
    whole = run_machine(settings, stream)
    cuts = (np.flatnonzero(np.diff(stream.tick)) + 1).tolist()[:: seed + 1]
    cut = run_machine(settings, stream, cuts=cuts, snapshot=True)
    assert whole.results() == cut.results()
    assert whole.dropped == cut.dropped
    parts = [run_machine(settings, stream, cuts=cuts, member=_third(part)) for part in range(3)]
    assert consolidate(output for part in parts for batch in part.outputs for output in batch) == whole.results()
    assert sum(part.dropped for part in parts) == whole.dropped
    given = whole.rows(Lane.RESULTS)
    assert (0 if given is None else len(given)) + whole.dropped == len(stream)


def _third(part: int) -> Callable[[Int64s], Int64s]:
    return lambda key: np.flatnonzero(key % 3 == part)


@pytest.mark.parametrize("settings", [Reorder("20 ms"), *POLICIES], ids=str)
@pytest.mark.parametrize("seed", range(6))
def test_a_batch_lies_between_two_punctuations(settings: Reorder, seed: int) -> None:
    stream = random_stream(seed)
    cuts = (np.flatnonzero(np.diff(stream.tick)) + 1).tolist()[:: seed + 1]
    run = run_machine(settings, stream, cuts=cuts)
    passed = NEVER_US
    for outputs, timeline in zip(run.outputs, run.timelines, strict=False):
        (ts_us,) = [output.rows["ts"].to_numpy() for output in outputs if output.lane is Lane.RESULTS] or [np.zeros(0)]
        assert (np.diff(ts_us) >= 0).all()
        assert (ts_us > passed).all()
        passed = settings.ready(settings.punctuation(timeline))
        assert (ts_us <= passed).all()


def test_a_late_event_is_moved_to_the_first_open_time() -> None:
    ts_us, tick = np.array([100_000, 50_000, 200_000, 185_000, 90_000]), np.array([1, 2, 2, 3, 3])
    stream = Stream(ts_us, tick, np.zeros(5, dtype=np.int64), np.zeros(5, dtype=np.int64))
    given = run_machine(Reorder("10 ms", late="adjust"), stream).rows(Lane.RESULTS)
    assert given is not None
    assert given.select(["id", "ts", "adjusted_us"]).to_pydict() == {
        "id": [1, 0, 3, 4, 2],
        "ts": [90_001, 100_000, 190_001, 190_001, 200_000],
        "adjusted_us": [40_001, 0, 5_001, 100_001, 0],
    }
    with pytest.raises(LateError, match="1 too late, the first at 50000 us"):
        run_machine(Reorder("10 ms", late="raise"), stream, cuts=[1, 3])
