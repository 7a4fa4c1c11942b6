"""Every machine through the five invariants, and proof that the invariants can fail."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import pytest

from latecomer.basic import PassThrough
from latecomer.chunks import ChunkStore
from latecomer.contract import Machine, Output, Settings, down
from latecomer.errors import HeldError
from latecomer.events import EventBatch, Layout
from latecomer.impatience import Reorder
from latecomer.impatience.reorder import _Reorder
from latecomer.progress import Timeline
from latecomer.testing import ManualClock, check_machine, random_stream, run_machine

MACHINES = [
    PassThrough(),
    Reorder("1 ms"),
    Reorder("20 ms"),
    Reorder("10 s"),
    Reorder("20 ms", total=True),
    Reorder("20 ms", align_us=7_000),
    Reorder("20 ms", align_us=1_000_000),
]


@pytest.mark.parametrize("settings", MACHINES, ids=str)
def test_machine_keeps_the_five_invariants(settings: Settings) -> None:
    check_machine(settings)


class _Forgetful(_Reorder):
    """Keeps the last batch in a field that a restart loses."""

    def push(self, batch: EventBatch, timeline: Timeline) -> Iterator[Output]:
        kept, self._kept = getattr(self, "_kept", None), batch
        if kept is not None:
            yield from super().push(kept, timeline)

    def finish(self) -> Iterator[Output]:
        yield from super().finish()
        if getattr(self, "_kept", None) is not None:
            yield down(self._kept.sorted())


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
        self._keep(ordered, 0)
        yield from ()


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
        (_Forgetful, "invariant"),
    ],
)
def test_check_machine_finds_a_broken_machine(machine: type[_Reorder], invariant: str) -> None:
    with pytest.raises(AssertionError, match=invariant):
        check_machine(Broken("5 ms", machine=machine))


def test_max_held_stops_with_a_clear_error() -> None:
    stream = random_stream(3)
    with pytest.raises(HeldError, match="held events per shard must stay within max_held=5; got"):
        run_machine(Reorder("10 s", max_held=5), stream)


def test_the_manual_clock_moves_when_told() -> None:
    clock = ManualClock()
    assert clock.advance("1 s") == clock.advance("1 s") - 1_000_000 == 1_000_000
