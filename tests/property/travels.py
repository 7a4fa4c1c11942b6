"""What the tests of time travel share: applications, holes and triggers, each for the machine and for its slow twin."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from latecomer.events import EventBatch, Int64s
from latecomer.testing import LAYOUT, Stream
from latecomer.timetravel import Anywhere, CustomHoles, Enumerator, Holes, Period, TimeTravel, Trigger
from latecomer.windows import (
    AggregateFunction,
    Chain,
    Count,
    First,
    Last,
    Max,
    Min,
    Operator,
    Step,
    Sum,
    Window,
    WindowAggregation,
    WindowFunction,
)
from tests import naive_holes as naive
from tests.naive_holes import Event
from tests.naive_timetravel import NaiveTimeTravel

EVENTS = pa.schema([(name, pa.int64()) for name in ("id", "ts", "key", "source", "n")])
RESULTS = pa.schema([(name, pa.int64()) for name in ("window_start", "window_end", "key", "id")])


@dataclass(frozen=True)
class Numbered(Stream):
    """A stream whose events are numbered."""

    n: Int64s = field(default_factory=lambda: np.zeros(0, dtype=np.int64))

    def batch(self, chosen: Int64s) -> EventBatch:
        return EventBatch(super().batch(chosen).rows.append_column("n", pa.array(self.n[chosen])), LAYOUT)


def as_stream(events: Sequence[Event]) -> Numbered:
    """The events of the twin for the machine."""
    rows = [(event.ts_us, event.tick, event.key, 0, event.n) for event in events]
    ts_us, tick, key, source, n = np.array(rows, dtype=np.int64).reshape(-1, 5).T.copy()
    return Numbered(ts_us, tick, key, source, n=n)


def arriving(events: Sequence[Event]) -> list[Event]:
    """Events in the order of their ticks, each with its place as its id."""
    ordered = sorted(events, key=lambda event: (event.tick, event.id))
    return [event._replace(id=place) for place, event in enumerate(ordered)]


def long_events(seed: int, bound_us: int, span_us: int) -> list[Event]:
    """Many events of a few keys, late by up to the bound; silences too, after which keys are forgotten."""
    rng = random.Random(seed)
    keys, lateness, together = rng.choice([1, 2, 5]), rng.choice([0.1, 0.3, 0.6]), rng.choice([0, 0.3, 0.7])
    longest_us = rng.choice([3, span_us, bound_us + 3 * span_us])
    events: list[Event] = []
    tick, mark_us = 0, rng.randint(-100, 100)
    for number in range(100):
        if events and rng.random() >= together:
            tick, mark_us = tick + rng.choice([1, 1, 5]), max(event.ts_us for event in events)
        if rng.random() < lateness:
            ts_us = mark_us - rng.randint(0, rng.choice([bound_us + 2, 3 * span_us]))
        else:
            ts_us = mark_us + rng.randint(0, rng.choice([1, 1, 1, 1, 3, span_us, longest_us]))
        events.append(Event(ts_us, rng.randrange(keys), tick, number))
    return events


def digest(values: Sequence[int]) -> int:
    """A small number that tells which values there were, and in which order."""
    return hash(tuple(values)) % 10_007


class How(NamedTuple):
    """An aggregate and its twin."""

    aggregate: AggregateFunction
    twin: Callable[[list[int]], int]


HOWS = {
    "count": How(Count(), len),
    "sum": How(Sum("id"), sum),
    "min": How(Min("id"), min),
    "max": How(Max("id"), max),
    "first": How(First("id"), lambda values: values[0]),
    "last": How(Last("id"), lambda values: values[-1]),
    "digest": How(
        WindowFunction(["id"], lambda rows: digest(rows.column("id").to_pylist()), pa.int64(), named="id"), digest
    ),
}


class Level(NamedTuple):
    """A windowed aggregate; `sparse` leaves out some of its results, `season_us` lets it look at the time."""

    size_us: int
    advance_us: int
    how: str = "digest"
    sparse: bool = False
    season_us: int | None = None

    def operators(self, time: str) -> list[Operator]:
        """As the machine runs it."""
        aggregate = HOWS[self.how].aggregate.alias("id")
        if self.season_us is not None:
            aggregate = WindowFunction([time, "id"], lambda rows: self._seen(*rows.columns), pa.int64(), named="id")
        window = Window(f"{self.size_us} us", f"{self.advance_us} us")
        return [WindowAggregation(window, (aggregate,)), *([Step(thinned, RESULTS)] if self.sparse else [])]

    def twin(self, rows: naive.Rows) -> int | None:
        """As the twin runs it."""
        if self.season_us is None:
            value = HOWS[self.how].twin([value for _, value in rows])
        else:
            value = digest([10 * value + ts_us % self.season_us for ts_us, value in rows])
        return None if self.sparse and value % 3 == 0 else value

    def _seen(self, times: pa.Array, ids: pa.Array) -> int:
        seasons = times.to_numpy() % self.season_us
        return digest((10 * ids.to_numpy() + seasons).tolist())


def thinned(rows: pa.RecordBatch) -> pa.RecordBatch:
    """The rows without those of every third id."""
    return rows.filter(pa.array(rows.column("id").to_numpy() % 3 != 0))


class Case(NamedTuple):
    """An application and how it travels."""

    levels: tuple[Level, ...]
    bound_us: int
    thin_first: bool = False
    periodicity_us: int = 1
    retract: bool = True
    shifted: bool = True
    wait_us: int = 0

    @property
    def span_us(self) -> int:
        """The sum of the window sizes."""
        return sum(level.size_us for level in self.levels)

    def machine(self, holes: Holes, trigger: Trigger) -> TimeTravel:
        """What is tested."""
        operators: list[Operator] = [Step(thinned, EVENTS)] if self.thin_first else []
        for number, level in enumerate(self.levels):
            operators += level.operators("window_start" if number else "ts")
        app = operators[0] if len(operators) == 1 else Chain(*operators)
        bound, periodicity = f"{self.bound_us} us", f"{self.periodicity_us} us"
        wait = f"{self.wait_us} us"
        return TimeTravel(app, bound, holes, trigger, periodicity, self.retract, self.shifted, wait=wait)

    def twin(self, holes: naive.Holes, trigger: naive.Trigger) -> NaiveTimeTravel:
        """Its slow twin."""
        levels = tuple((level.size_us, level.advance_us, level.twin) for level in self.levels)
        app = naive.Application(levels, lambda event: not self.thin_first or bool(event.id % 3))
        return NaiveTimeTravel(
            app,
            self.bound_us,
            holes,
            trigger,
            periodicity_us=self.periodicity_us,
            retract=self.retract,
            shifted=self.shifted,
            wait_us=self.wait_us,
        )


@st.composite
def levels_of(draw: st.DrawFn, periodicity_us: int) -> Level:
    size_us = draw(st.integers(1, 9))
    advance_us, how = draw(st.integers(1, size_us)), draw(st.sampled_from(sorted(HOWS)))
    season_us = periodicity_us if periodicity_us > 1 and draw(st.booleans()) else None
    return Level(size_us, advance_us, how, draw(st.booleans()), season_us)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    periodicity_us = draw(st.sampled_from([1, 1, 2, 7]))
    levels = tuple(draw(st.lists(levels_of(periodicity_us), min_size=1, max_size=3)))
    span_us = sum(level.size_us for level in levels)
    bound_us = span_us + draw(st.integers(0, 25) | st.integers(0, 60 * span_us))
    thin_first, retract, shifted = (draw(st.booleans()) for _ in range(3))
    wait_us = draw(st.just(0) | st.integers(1, min(12, max(1, bound_us - 1)))) if bound_us > 1 else 0
    return Case(levels, bound_us, thin_first, periodicity_us, retract, shifted, wait_us)


class Kind(NamedTuple):
    """How holes are told."""

    machine: Holes
    twin: naive.Holes


def period(every_us: int, tolerance_us: int = 0) -> Kind:
    """One event every so often, up to a tolerance before or after its turn."""
    return Kind(Period(f"{every_us} us", f"{tolerance_us} us"), naive.Period(every_us, tolerance_us))


def counted(before: pa.RecordBatch, after: pa.RecordBatch) -> Int64s:
    """Some function of two events."""
    found: Int64s = (before.column("id").to_numpy() + 2 * after.column("id").to_numpy()) % 4 - 1
    return found


ANYWHERE = Kind(Anywhere(), naive.Anywhere())
ALL_TOLD = Kind(CustomHoles(lambda before, after: [True] * len(after)), naive.Anywhere())
COUNTED = Kind(CustomHoles(counted), naive.Anywhere(lambda before, after: (before.id + 2 * after.id) % 4 - 1))
NOWHERE = Kind(
    CustomHoles(lambda before, after: np.zeros(len(after), np.uint8)), naive.Anywhere(lambda before, after: 0)
)
NUMBERED = Kind(Enumerator("n"), naive.Enumerator())
KINDS = st.sampled_from([ANYWHERE, ALL_TOLD, COUNTED, NOWHERE, NUMBERED]) | st.integers(1, 6).map(period)
KINDS |= st.integers(1, 2).flatmap(lambda off: st.integers(4 * off + 1, 12).map(lambda every: period(every, off)))


class When(NamedTuple):
    """A trigger."""

    machine: Trigger
    twin: naive.Trigger


def odd_after(wait_us: int) -> When:
    """Replay odd events so long after their time, the others never."""

    def times(late: pa.RecordBatch) -> pa.Array:
        return pa.array(late.column("ts").to_numpy() + wait_us, mask=late.column("id").to_numpy() % 2 == 0)

    return When(times, lambda event: event.ts_us + wait_us if event.id % 2 else None)


EAGER, LAZY = When("eager", "eager"), When("lazy", "lazy")
TRIGGERS = st.sampled_from([EAGER, LAZY]) | st.integers(-10, 60).map(odd_after)
