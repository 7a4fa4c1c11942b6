"""How far an application looks: the windows of its aggregates, and what follows from them.

A result with time s depends on events in [s, s + reach), reach being the sum of the window sizes; so an event at m
touches the results in (m - reach, m]. A shift of time by a multiple of `step_us` changes nothing else.

Paper: TinTiN (Van Rooij, Gulisano, Papatriantafilou), sections 6.1, 6.2 and 6.4.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from math import lcm

import pyarrow as pa

from latecomer.codec import widened
from latecomer.errors import InputError, must
from latecomer.events import Layout, concat_rows, equal_rows, int64_view
from latecomer.timetravel.tables import shift_times
from latecomer.windows.aggregates import Mean, Sum, Variance
from latecomer.windows.aggregation import WindowAggregation
from latecomer.windows.collected import Custom
from latecomer.windows.grouping import group_rows
from latecomer.windows.operators import Chain, Operator, Step
from latecomer.windows.window import WINDOW_END, WINDOW_START, Window

RESULT_TIMES = (WINDOW_START, WINDOW_END)
_LONGEST_EXACT_US = 366 * 86_400_000_000
_LONGEST_STEP_US = 10_000 * 366 * 86_400_000_000  # a few contexts of a key must fit into all times there are
_SAMPLE, _OTHER_TIMES = 64, 13  # rows of each batch that are tried so many steps away


@dataclass(frozen=True)
class Reach:
    """The windows of an application, from the first aggregate to the last."""

    windows: tuple[Window, ...]
    periodicity_us: int = 1
    adds_up: bool = False  # in an order that may show in the last bit

    @cached_property
    def sizes_us(self) -> tuple[int, ...]:
        """Their sizes."""
        return tuple(window.size_us for window in self.windows)

    @cached_property
    def us(self) -> int:
        """The sum of the window sizes."""
        return sum(self.sizes_us)

    @property
    def step_us(self) -> int:
        """Times may be shifted by a multiple of this.

        For applications that add up, windows' sizes are among its parts too, if that does not get too long: a replay
        then adds up floats in the same order as the live instance, and what did not change is the same to the last bit.
        """
        least = lcm(*(window.advance_us for window in self.windows), self.periodicity_us)
        exact = lcm(least, *self.sizes_us)
        return exact if self.adds_up and exact <= _LONGEST_EXACT_US else least

    @property
    def wait_us(self) -> int:
        """How far beyond a time the input must have come for the live instance to give the results of that time."""
        return self.us - len(self.sizes_us)


def reach_of(operator: Operator, periodicity_us: int = 1) -> Reach:
    """The windows of an application; refuses one whose windows are not known."""
    windows = tuple(_windows_of(operator))
    if not windows:
        advice = "e.g. lc.WindowAggregation(lc.Window('2 hours', '1 hour'), (lc.last('value'),))"
        raise InputError(must("application", "have at least one windowed aggregate", "none", advice))
    check_step(windows, periodicity_us)
    return Reach(windows, periodicity_us, _adds_up(operator))


def check_step(windows: tuple[Window, ...], periodicity_us: int) -> None:
    """Refuse windows of which nothing repeats within reason."""
    least_us = lcm(*(window.advance_us for window in windows), periodicity_us)
    if least_us > _LONGEST_STEP_US:
        got = f"{[window.advance_us for window in windows]} us, periodicity {periodicity_us} us"
        rule = "have advances and a periodicity that meet again within 10,000 years"
        raise InputError(must("application", rule, got, "make them multiples of each other, e.g. of an hour"))


def _adds_up(operator: Operator) -> bool:
    aggregations = [each for each in parts_of(operator) if isinstance(each, WindowAggregation)]
    adding = (Sum, Mean, Variance, Custom)
    return any(isinstance(aggregate, adding) for each in aggregations for aggregate in each.aggregates)


def _windows_of(operator: Operator) -> Iterator[Window]:
    for each in parts_of(operator):
        if isinstance(each, WindowAggregation):
            yield each.window
        elif not isinstance(each, Step):
            rule = "be made of operators whose windows are known: WindowAggregation and Step"
            raise InputError(must("application", rule, type(each).__name__, "write it as a WindowAggregation"))


def parts_of(operator: Operator) -> Iterator[Operator]:
    """The operators that an application is made of, one after the other."""
    if isinstance(operator, Chain):
        for each in operator.operators:
            yield from parts_of(each)
    else:
        yield operator


def with_checked_steps(operator: Operator, layout: Layout, step_us: int) -> Operator:
    """The application, but for steps that a replay, of one key and at other times, would not run alike: they stop it.

    They must not give a row at a time, or of a key, that they were not given, nor let anything else depend on times.
    """
    parts: list[Operator] = []
    times: tuple[str, ...] = (layout.time,)
    for each in parts_of(operator):
        parts.append(_checked(each, layout, times, step_us) if isinstance(each, Step) else each)
        layout = each.layout_after(layout)
        times = RESULT_TIMES if isinstance(each, WindowAggregation) else times
    return Chain(*parts) if isinstance(operator, Chain) else parts[0]


def _checked(step: Step, layout: Layout, times: tuple[str, ...], step_us: int) -> Step:
    where, shift_us = f"step {step.name}", _OTHER_TIMES * step_us

    def checked(rows: pa.RecordBatch) -> pa.RecordBatch:
        given = step.function(rows)
        if isinstance(given, pa.RecordBatch) and {layout.time, *layout.key} <= set(given.schema.names):
            _check_fixed(rows, given, layout, where)
            some = rows.slice(0, _SAMPLE)
            moved = step.function(shift_times(some, times, shift_us))
            _check_timeless(step.function(some), shift_times(moved, times, -shift_us), where)
        return given

    return replace(step, function=checked)


def _check_fixed(rows: pa.RecordBatch, given: pa.RecordBatch, layout: Layout, where: str) -> None:
    """Refuse rows that have no counterpart among those before; other columns or types, the step itself refuses."""
    names = [layout.time, *layout.key]
    before, after = (widened(each.select(names)) for each in (rows, given))
    if after.num_rows == 0 or after.schema.types != before.schema.types or after.column(0).null_count:
        return
    together = concat_rows([before, after.cast(before.schema)])
    groups = group_rows([int64_view(together.column(0)), *together.columns[1:]])
    if bool((groups.firsts >= before.num_rows).any()):
        advice = "change times and keys before the application"
        got = "rows at other times or of other keys"
        raise InputError(must(where, "leave times and keys as they are", got, advice))


def _check_timeless(given: pa.RecordBatch, moved: pa.RecordBatch, where: str) -> None:
    """Refuse what differs for the same rows at other times."""
    same = given.schema.equals(moved.schema) and given.num_rows == moved.num_rows
    if not (same and bool(equal_rows(given, moved).all())):
        advice = "say the periodicity, e.g. '1 day', or read and copy times before the application or after it"
        raise InputError(must(where, "give the same at other times, where replays run", "something else", advice))
