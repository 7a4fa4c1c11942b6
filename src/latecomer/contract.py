"""The contract between a disorder strategy and whatever runs it.

A strategy is two classes. `Settings` is what the user writes: frozen, comparable, stored with the state.
`Machine` is what runs: it takes batches of events and the progress of time and gives back batches of results.
`Settings.build` joins them over a ChunkStore, which holds all the machine's state. A machine is built anew for
every micro-batch, so a field that a restart would lose cannot survive a test either. What a strategy gives (columns,
views, counters, ...) it says in one object, `Gives`: whatever runs it needs to know nothing else of it.

Every machine keeps five invariants; `latecomer.testing.check_machine` tries them on random streams.
1. Results depend neither on the number of shards nor, where cuts fall between ticks, on the micro-batches.
2. Every event pushed leaves through one door: accepted, dropped, or `late`. Counters add up.
3. Within the bound, after `finish`, the consolidated output equals that of the sorted input.
4. Snapshot anywhere, restore, go on: the same output, byte for byte.
5. What is held stays within what the settings promise (`most_held`); `max_held` stops with an error before that.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any, ClassVar

import pyarrow as pa

from latecomer.chunks import ChunkStore
from latecomer.controls import Control
from latecomer.errors import HeldError, InputError, StateError, error_text, must
from latecomer.events import EventBatch, Int64s, Layout
from latecomer.gives import Gives, Onward, Verb
from latecomer.outputs import Output
from latecomer.progress import Timeline


class Machine(ABC):
    """A running strategy: fed with batches and progress, it gives results. After an error it takes nothing more."""

    failed: BaseException | None = None

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for name in ("push", "finish"):
            if name in cls.__dict__:
                setattr(cls, name, _until_it_fails(cls.__dict__[name]))

    def __init__(self, store: ChunkStore, layout: Layout) -> None:
        self.store = store
        self.layout = layout
        self.dropped = 0

    @abstractmethod
    def push(self, batch: EventBatch, timeline: Timeline) -> Iterator[Output]:
        """Take in the events of one micro-batch and how time moved while they came.

        Rows of results may bring carried columns (`_lc_*`), which no user sees.
        """

    @abstractmethod
    def finish(self) -> Iterator[Output]:
        """The stream is over: give what is left."""

    @property
    def held(self) -> int:
        """How many events are held; in tiers of aggregates, how many partial results."""
        return self.store.rows

    def punctuation(self, timeline: Timeline) -> int:
        """The last punctuation, for the counters."""
        return timeline.punctuation(0)

    def counters(self) -> Mapping[str, int]:
        """The strategy's own counters, after a push: those that `Gives.counters` names."""
        return {}

    def passed(self, timeline: Timeline) -> Int64s:
        """After each tick of a push, the time up to which results have come: in order all that there will be."""
        raise NotImplementedError(f"{type(self).__name__} does not say how far its results have come")

    def certain(self, timeline: Timeline) -> Int64s:
        """After each tick of a push, the time up to which no result is missing that may still come."""
        return self.passed(timeline)

    def snapshot(self) -> dict[str, bytes]:
        """All state, as named chunks of bytes."""
        return self.store.snapshot()


def _until_it_fails(work: Callable[..., Iterator[Output]]) -> Callable[..., Iterator[Output]]:
    """The same method, refused once one has failed: what that had taken in may be lost."""

    @wraps(work)
    def guarded(self: Machine, *given: Any) -> Iterator[Output]:
        if self.failed is not None:
            found = error_text(self.failed)
            advice = "restore a machine from the snapshot before it, and push again from there"
            raise StateError(must(type(self).__name__, "not go on after an error: events may be lost", found, advice))
        try:
            yield from work(self, *given)
        except GeneratorExit:
            raise
        except BaseException as error:
            self.failed = error
            raise

    return guarded


Seen = Mapping[str, Mapping[str, int]]


class Steering(ABC):
    """Changes settings of a query while it runs: asked on the driver when a micro-batch has been written."""

    @property
    @abstractmethod
    def counters(self) -> Mapping[str, tuple[str, ...]]:
        """The counters that it wants to see, by the names of stages."""

    @abstractmethod
    def check_every(self, every_us: int) -> None:
        """Refuse micro-batches that come so seldom; 0 where they come as they can."""

    @abstractmethod
    def decide(self, seen: Seen, written_us: int) -> Mapping[str, Mapping[str, int | str]]:
        """New control values, by stage and stored name, after a micro-batch that was written at a time of the clock."""


VERBS: dict[str, type[Settings]] = {}


@dataclass(frozen=True)
class Settings(ABC):
    """What the user asks of a strategy.

    name: of the strategy, in stored settings and `explain`. verb: how users ask for it; a strategy with a verb that is
    asked of events (`events.name(...)`) can be called by it as soon as the class exists.
    per_source: it wants to know of every source by itself (`Timeline.sources`). takes_changes: it can be fed
    retractions. onward: how a stage after it sees its results. controls: what can be changed while it runs.
    latest_only: why it cannot be asked of progress='merged', if it cannot.
    """

    name: ClassVar[str]
    verb: ClassVar[Verb | None] = None
    per_source: ClassVar[bool] = False
    takes_changes: ClassVar[bool] = False
    latest_only: ClassVar[str | None] = None
    controls: ClassVar[Mapping[str, Control]] = {}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if cls.__dict__.get("verb") is not None:
            VERBS[cls.name] = cls

    @abstractmethod
    def build(self, store: ChunkStore, layout: Layout) -> Machine:
        """The machine that does it, going on from what the store holds."""

    @abstractmethod
    def gives(self, columns: pa.Schema, layout: Layout) -> Gives:
        """What it gives for events with these columns, the carried ones included; refuses what it cannot work on."""

    @abstractmethod
    def most_held(self, accepted_ts_us: Int64s, timeline: Timeline) -> int:
        """How many of the events accepted so far the machine may still hold."""

    @property
    def onward(self) -> Onward:
        """How the stage after this one sees its results."""
        return Onward.NO

    @property
    def results_as(self) -> str | None:
        """The name that its results have as a source, where a stage after it is to know every source by itself."""
        return None

    @property
    def passes_on(self) -> tuple[str, ...]:
        """Sources that it does not take: their rows go on to the next stage as they came, beside its results.

        Its machine sees neither them nor their progress.
        """
        return ()

    @property
    def shortest_wait_us(self) -> int | None:
        """The shortest time it waits for late events, if it waits; a query warns where that is below a tick."""
        return None

    @property
    def steers(self) -> bool:
        """Whether it changes settings of the query's stages while it runs; only a last stage may."""
        return False

    @property
    def at_work(self) -> Settings:
        """As shards need it: without what is for the driver alone, which need not travel."""
        return self

    def steering(self, stages: Mapping[str, Settings], tick_us: int) -> Steering | None:
        """What changes settings of the query's stages while it runs, if anything does; asked of the last stage."""
        return None

    def restore(self, snapshot: dict[str, bytes], layout: Layout) -> Machine:
        """The machine as it was when the snapshot was taken."""
        return self.build(ChunkStore.restore(snapshot), layout)

    def describe(self) -> dict[str, Any]:
        """Name and values: stored with the state and compared on restart."""
        return {"strategy": self.name, **dataclasses.asdict(self)}


def forget_verb(settings: type[Settings]) -> None:
    """Users cannot call a strategy by its verb any more: for tests that add one."""
    VERBS.pop(settings.name, None)


def check_max_held(max_held: int | None) -> None:
    """Refuse a limit that is none."""
    whole = isinstance(max_held, int) and not isinstance(max_held, bool)
    if max_held is not None and not (whole and max_held > 0):
        raise InputError(must("max_held", "be a whole number above zero", max_held, "or leave it out"))


def check_held(held: int, max_held: int | None, what: str = "events") -> None:
    """Stop before memory does."""
    if max_held is not None and held > max_held:
        advice = "wait less (a shorter latency or bound), raise max_held, or use more shards"
        raise HeldError(must(f"held {what} per shard", f"stay within max_held={max_held}", held, advice))
