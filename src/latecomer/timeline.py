"""How time moved in one micro-batch, as a step function of ticks; the same in every shard."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from latecomer._jit import kernel
from latecomer.codec import deltas, dump_arrays, integers, load_arrays, undo_deltas
from latecomer.controls import ControlStep, numbers_at, steps_from_arrays, steps_to_arrays, texts_at
from latecomer.events import FOREVER_US, NEVER_US, Bools, Int64s
from latecomer.headers import ONE_SOURCE
from latecomer.search import lower_bound
from latecomer.sources import SourceSteps

_MANY = 1_000  # ticks for which it is worth to make a table of the steps
_LONGEST_SPAN = 1 << 62


@kernel
def _find_steps(steps: Int64s, tick: Int64s, values: Int64s, found: Int64s) -> None:
    """The value of the last step before each tick; the first step is before all ticks.

    A table tells where to look: for as many stretches of ticks as there are steps, the first step in each.
    """
    first, last = steps[1], steps[-1]
    width = (last - first) // len(steps) + 1
    table = np.empty(len(steps) + 1, dtype=np.int64)
    at = 1
    for stretch in range(len(table)):
        while at < len(steps) and (steps[at] - first) // width < stretch:
            at += 1
        table[stretch] = at
    for i in range(len(tick)):
        low = high = 1 if tick[i] <= first else len(steps)
        if first < tick[i] <= last:
            stretch = (tick[i] - first) // width
            low, high = table[stretch], table[stretch + 1]
        found[i] = values[lower_bound(steps, low, high, tick[i]) - 1]


@dataclass(frozen=True, slots=True)
class Timeline:
    """A step function of ticks: after `tick[i]` the mark is `mark_us[i]` and the floor `floor_us[i]`.

    The floor is a punctuation that needs no latency: set where the stream idled or ended. `controls` are the control
    values, as they come into force. `sources` is known to strategies that ask for it (`Settings.per_source`).
    """

    tick: Int64s
    mark_us: Int64s
    floor_us: Int64s
    controls: tuple[ControlStep, ...] = ()
    sources: SourceSteps | None = None

    def before(self, tick: Int64s, values: Int64s) -> Int64s:
        """Of values that hold after each tick of the timeline, those that hold before some ticks."""
        if len(values) == 1:
            return np.full(len(tick), values[0])
        if len(tick) < _MANY or int(self.tick[-1]) - int(self.tick[1]) >= _LONGEST_SPAN:
            return values[np.searchsorted(self.tick, tick, side="left") - 1]
        found = np.empty(len(tick), dtype=np.int64)
        _find_steps(self.tick, tick, values, found)
        return found

    def mark_before(self, tick: Int64s) -> Int64s:
        """The high-water mark an event of each tick meets on arrival."""
        return self.before(tick, self.mark_us)

    def punctuation_before(self, tick: Int64s, latency_us: int) -> Int64s:
        """The last punctuation before each tick, for a reorder latency."""
        return self.before(tick, self.punctuations(latency_us))

    def punctuations(self, latency_us: int | Int64s) -> Int64s:
        """The punctuation after each tick, for a reorder latency, or one for each tick."""
        return np.maximum(self._lagging(latency_us), self.floor_us)

    def punctuation(self, latency_us: int) -> int:
        """The punctuation after the last tick, for a reorder latency."""
        return int(max(self._lagging(latency_us)[-1], self.floor_us[-1]))

    def merge_us(self, declared: Sequence[str] = ()) -> Int64s:
        """After each tick the least of the latest times of the sources that speak: no source is behind it.

        A source that idles or has ended is left out until it speaks again. A declared one that has not spoken yet holds
        it back; others count from their first event on. Where no source speaks it is the mark.
        """
        assert self.sources is not None, "the strategy must say per_source"
        least_us = self.sources.least(self.tick, declared)
        return np.where(least_us == FOREVER_US, self.mark_us, least_us)

    def numbers(self, name: str, default: int) -> Int64s:
        """A control value that is a number, after each tick."""
        return numbers_at(self.controls, name, default, self.tick)

    def texts_at(self, name: str, default: str, tick: Int64s) -> list[tuple[str, Bools]]:
        """A control value that is text, and in which of some ticks it is in force."""
        return texts_at(self.controls, name, default, tick)

    def without(self, names: Sequence[str], floor_us: int = NEVER_US) -> Timeline:
        """The progress of the other sources alone; `floor_us` is where their floor stood before.

        Where none of them speaks or is waited for, their largest time is a punctuation.
        """
        assert self.sources is not None, "the strategy must say per_source"
        sources = self.sources.without(names)
        largest_us, resting = sources.largest(self.tick), sources.least(self.tick) == FOREVER_US
        floors_us = np.where(resting, largest_us, NEVER_US)
        floors_us[sources.over(self.tick)] = FOREVER_US
        return Timeline(self.tick, largest_us, floors_us, self.controls, sources).not_below(floor_us)

    def not_below(self, floor_us: int) -> Timeline:
        """The same with a floor that never goes back, nor below where it stood before."""
        return replace(self, floor_us=np.maximum.accumulate(np.maximum(self.floor_us, floor_us)))

    def passed_on(self, passed_us: Int64s) -> Timeline:
        """The progress of results that came up to `passed_us` after each tick, for the stage that takes them.

        Where the stream idled or ended, they too will bring nothing more.
        """
        over = passed_us == FOREVER_US
        mark_us = np.where(over, self.mark_us, passed_us)
        return Timeline(self.tick, mark_us, np.minimum(passed_us, self.floor_us), self.controls)

    def passed_on_as(
        self, name: str, passed_us: Int64s, passing: Sequence[str] = (), certain_us: Int64s | None = None
    ) -> Timeline:
        """The same where the stage that takes the results knows every source: they are one, by this name.

        certain_us: up to where no result is missing, which is how far that source has come; all that were given, unless
        some may come behind.
        passing: sources that the results are not made of, and that go on by themselves. The results idle where none of
        the others speaks or is waited for, and have ended where all results were given for good.
        """
        assert self.sources is not None, "the strategy must say per_source"
        own, passing_steps = self.without(passing), self.sources.only(passing)
        assert own.sources is not None
        over, resting = passed_us == FOREVER_US, own.sources.least(self.tick) == FOREVER_US
        came_us = np.where(over, own.mark_us, passed_us)
        latest_us = came_us if certain_us is None else np.minimum(came_us, certain_us)
        results = _steps_of_one(self.tick, latest_us, resting, over)
        mark_us = np.maximum(came_us, passing_steps.largest(self.tick))
        nothing_left = resting & (passed_us >= own.mark_us)
        floor_us = np.where(nothing_left, self.floor_us, np.minimum(passed_us, self.floor_us))
        return Timeline(self.tick, mark_us, floor_us, self.controls, passing_steps.joined_by(name, results))

    def to_bytes(self) -> bytes:
        """For the next stage."""
        arrays = {"tick": deltas(self.tick), "mark_us": deltas(self.mark_us), "floor_us": deltas(self.floor_us)}
        sources = {} if self.sources is None else self.sources.to_arrays()
        return dump_arrays({**arrays, **steps_to_arrays(self.controls), **sources})

    @classmethod
    def from_bytes(cls, data: bytes) -> Timeline:
        """Read what `to_bytes` wrote."""
        arrays = load_arrays(data)
        controls = steps_from_arrays(arrays)
        tick, mark_us, floor_us = (undo_deltas(integers(arrays[name])) for name in ("tick", "mark_us", "floor_us"))
        sources = SourceSteps.from_arrays(arrays) if "sources" in arrays else None
        return cls(tick, mark_us, floor_us, controls, sources)

    def _lagging(self, latency_us: int | Int64s) -> Int64s:
        return np.where(self.mark_us == NEVER_US, NEVER_US, self.mark_us - latency_us)


def _steps_of_one(tick: Int64s, latest_us: Int64s, idle: Bools, ended: Bools) -> SourceSteps:
    """The steps of a single source, from where it stands after each tick."""
    moved = np.any([column[1:] != column[:-1] for column in (latest_us, idle, ended)], axis=0)
    at = np.flatnonzero(np.append(True, moved))
    source = np.zeros(len(at), dtype=np.int64)
    return SourceSteps(
        ONE_SOURCE, source, tick[at], latest_us[at], idle[at].astype(np.int64), ended[at].astype(np.int64)
    )
