"""How time moved in one micro-batch, as a step function of ticks; the same in every shard."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from latecomer._jit import kernel
from latecomer.codec import deltas, dump_arrays, integers, load_arrays, undo_deltas
from latecomer.controls import ControlStep, numbers_at, steps_from_arrays, steps_to_arrays, texts_at
from latecomer.events import FOREVER_US, NEVER_US, Bools, Int64s
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

    def passed_on(self, passed_us: Int64s) -> Timeline:
        """The progress of results that came up to `passed_us` after each tick, for the stage that takes them.

        Where the stream idled or ended, they too will bring nothing more.
        """
        over = passed_us == FOREVER_US
        mark_us = np.where(over, self.mark_us, passed_us)
        return Timeline(self.tick, mark_us, np.minimum(passed_us, self.floor_us), self.controls)

    def to_bytes(self) -> bytes:
        """For the next stage."""
        arrays = {"tick": deltas(self.tick), "mark_us": deltas(self.mark_us), "floor_us": deltas(self.floor_us)}
        return dump_arrays({**arrays, **steps_to_arrays(self.controls)})

    @classmethod
    def from_bytes(cls, data: bytes) -> Timeline:
        """Read what `to_bytes` wrote."""
        arrays = load_arrays(data)
        controls = steps_from_arrays(arrays)
        tick, mark_us, floor_us = (undo_deltas(integers(arrays[name])) for name in ("tick", "mark_us", "floor_us"))
        return cls(tick, mark_us, floor_us, controls)

    def _lagging(self, latency_us: int | Int64s) -> Int64s:
        return np.where(self.mark_us == NEVER_US, NEVER_US, self.mark_us - latency_us)
