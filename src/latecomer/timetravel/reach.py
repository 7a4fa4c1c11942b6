"""How far an application looks: the windows of its aggregates, and what follows from them.

A result with time s depends on events in [s, s + reach), reach being the sum of the window sizes; so an event at m
touches the results in (m - reach, m]. A shift of time by a multiple of `step_us` changes nothing else.

Paper: TinTiN (Van Rooij, Gulisano, Papatriantafilou), sections 6.1, 6.2 and 6.4.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import lcm

from latecomer.errors import InputError, must
from latecomer.events import FOREVER_US, NEVER_US
from latecomer.windows.operators import Aggregation, Chain, Operator, Step
from latecomer.windows.window import Window


@dataclass(frozen=True)
class Reach:
    """The windows of an application, from the first aggregate to the last."""

    sizes_us: tuple[int, ...]
    advances_us: tuple[int, ...]
    periodicity_us: int = 1

    @property
    def us(self) -> int:
        """The sum of the window sizes."""
        return sum(self.sizes_us)

    @property
    def step_us(self) -> int:
        """Times may be shifted by a multiple of this."""
        return lcm(*self.advances_us, self.periodicity_us)

    def passed(self, punctuation_us: int) -> int:
        """The last time of which the live instance has given the results, when its input has come so far."""
        if punctuation_us in (NEVER_US, FOREVER_US):
            return punctuation_us
        return punctuation_us - self.us + len(self.sizes_us)

    def needed(self, ts_us: int) -> int:
        """How far its input must have come to give the results of a time: the inverse of `passed`."""
        return ts_us + self.us - len(self.sizes_us)


def reach_of(operator: Operator, periodicity_us: int = 1) -> Reach:
    """The windows of an application; refuses one whose windows are not known."""
    windows = list(_windows_of(operator))
    if not windows:
        advice = "e.g. lc.Aggregation(lc.Window('2 hours', '1 hour'), (lc.last('value'),))"
        raise InputError(must("application", "have at least one windowed aggregate", "none", advice))
    sizes_us = tuple(window.size_us for window in windows)
    return Reach(sizes_us, tuple(window.advance_us for window in windows), periodicity_us)


def _windows_of(operator: Operator) -> Iterator[Window]:
    if isinstance(operator, Chain):
        for each in operator.operators:
            yield from _windows_of(each)
    elif isinstance(operator, Aggregation):
        yield operator.window
    elif not isinstance(operator, Step):
        rule = "be made of operators whose windows are known: Aggregation and Step"
        raise InputError(must("application", rule, type(operator).__name__, "write it as an Aggregation"))
