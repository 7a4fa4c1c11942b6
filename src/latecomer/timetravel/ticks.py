"""The ticks of a micro-batch: which is the first after which something holds, and how far things are by then."""

from __future__ import annotations

import numpy as np

from latecomer.events import FOREVER_US, NEVER_US, Int64s
from latecomer.progress import Timeline


class Ticks:
    """The ticks of a batch: which is the first after which something holds.

    The live instance gives the results of a time when its input has come `wait_us` beyond it; `arrival_tick` has the
    ticks of all events, in order.
    """

    def __init__(self, timeline: Timeline, wait_us: int, arrival_tick: Int64s) -> None:
        self._timeline, self._wait_us, self._arrival_tick = timeline, wait_us, arrival_tick
        self._punctuation_us = timeline.punctuations(1)

    @property
    def last(self) -> int:
        """The last of them."""
        return int(self._timeline.tick[-1])

    @property
    def passed_us(self) -> int:
        """Up to where the live instance has given results after the last of them."""
        return int(self._passed(self._punctuation_us[-1:])[0])

    @property
    def end(self) -> int:
        """The tick after which nothing comes any more."""
        ended = np.flatnonzero(self._punctuation_us == FOREVER_US)
        return int(self._timeline.tick[ended[0]]) if len(ended) else FOREVER_US

    def complete(self, ts_us: Int64s) -> Int64s:
        """After which tick the live instance has given all results up to a time."""
        return self._first(self._punctuation_us, ts_us + self._wait_us)

    def marked(self, ts_us: Int64s) -> Int64s:
        """After which tick the mark has come so far."""
        return self._first(self._timeline.mark_us, ts_us)

    def passed(self, tick: Int64s) -> Int64s:
        """Up to where the live instance has given results after a tick."""
        return self._passed(self._punctuation_us[self._place(tick)])

    def passed_before(self, tick: Int64s) -> Int64s:
        """The same before it."""
        return self._passed(self._timeline.punctuation_before(tick, 1))

    def last_moment(self, tick: Int64s) -> Int64s:
        """The place of the last event of a tick."""
        return np.searchsorted(self._arrival_tick, tick, side="right") - 1

    def mark_before(self, tick: Int64s) -> Int64s:
        """The mark before a tick."""
        return self._timeline.mark_before(tick)

    def mark_after(self, tick: Int64s) -> Int64s:
        """The mark after a tick."""
        return self._timeline.mark_us[self._place(tick)]

    def _place(self, tick: Int64s) -> Int64s:
        return np.searchsorted(self._timeline.tick, tick, side="right") - 1

    def _first(self, values: Int64s, wanted: Int64s) -> Int64s:
        return np.append(self._timeline.tick, FOREVER_US)[np.searchsorted(values, wanted, side="left")]

    def _passed(self, punctuation_us: Int64s) -> Int64s:
        ends = (punctuation_us == NEVER_US) | (punctuation_us == FOREVER_US)
        return np.where(ends, punctuation_us, punctuation_us - self._wait_us)
