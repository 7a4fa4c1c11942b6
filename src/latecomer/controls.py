"""Control values: settings that change while a query runs.

A value is in force from one tick on, the same in every shard: it travels in the headers, as heartbeats and ends do, and
stands in Spark's offset log, so that a repeated micro-batch sees it again. Values are JSON, so that they have a type.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from latecomer.events import NEVER_US, Bools, Int64s


class ControlStep(NamedTuple):
    """From a tick on, a control value has this value."""

    tick: int
    name: str
    text: str  # JSON

    @property
    def value(self) -> Any:
        """The value itself."""
        return json.loads(self.text)


class Control(NamedTuple):
    """A setting that a strategy lets its users change while it runs.

    stored: its name in headers and in what `Settings.describe` says. read: from what the user writes to what is stored.
    does: what it means, in half a sentence. tried: values that `check_machine` tries. fixed: stored values that a query
    must begin with, since they change its columns: it can change neither to nor from them. check: raises where a stage
    with these stored settings cannot have a stored value.
    """

    stored: str
    read: Callable[[Any], int | str]
    does: str
    tried: tuple[Any, ...] = ()
    fixed: tuple[int | str, ...] = ()
    check: Callable[[Mapping[str, Any], int | str], None] | None = None

    def can_change(self, before: object, after: object) -> bool:
        """Whether a query that runs can change from one stored value to another."""
        return before not in self.fixed and after not in self.fixed


def stage_control(stage: int, name: str) -> str:
    """The name of a stage's control value in headers; stages are counted from zero.

    >>> stage_control(0, "latency_us")
    '0.latency_us'
    """
    return f"{stage}.{name}"


def of_stage(steps: Iterable[ControlStep], stage: int) -> tuple[ControlStep, ...]:
    """The control values of one stage, by their own names."""
    prefix = stage_control(stage, "")
    return tuple(step._replace(name=step.name.removeprefix(prefix)) for step in steps if step.name.startswith(prefix))


def steps_to_arrays(steps: Iterable[ControlStep]) -> dict[str, Int64s | pa.Array]:
    """For a header or the state store."""
    tick, name, text = zip(*steps, strict=True) if (steps := list(steps)) else ((), (), ())
    return {
        "control_tick": np.array(tick, dtype=np.int64),
        "control_name": pa.array(name, pa.string()),
        "control_value": pa.array(text, pa.string()),
    }


def steps_from_arrays(arrays: dict[str, pa.Array]) -> tuple[ControlStep, ...]:
    """Read what `steps_to_arrays` wrote, and take it out of the arrays."""
    columns = (arrays.pop(name).to_pylist() for name in ("control_tick", "control_name", "control_value"))
    return tuple(ControlStep(*row) for row in zip(*columns, strict=True))


def in_order(steps: Iterable[ControlStep]) -> tuple[ControlStep, ...]:
    """Steps as they come into force."""
    return tuple(sorted(steps, key=lambda step: (step.tick, step.name)))


def in_force(steps: Sequence[ControlStep]) -> tuple[ControlStep, ...]:
    """The last value of each name, as one that has been in force for ever: what the next micro-batch begins with."""
    return tuple(ControlStep(NEVER_US, name, text) for name, text in {step.name: step.text for step in steps}.items())


def numbers_at(steps: Sequence[ControlStep], name: str, default: int, tick: Int64s) -> Int64s:
    """A control value that is a number, at each of some ticks."""
    found = np.full(len(tick), default, dtype=np.int64)
    for step in steps:
        if step.name == name:
            found[tick >= step.tick] = step.value
    return found


def texts_at(steps: Sequence[ControlStep], name: str, default: str, tick: Int64s) -> list[tuple[str, Bools]]:
    """A control value that is text, and at which of some ticks it is in force."""
    own = [step for step in steps if step.name == name]
    number = np.zeros(len(tick), dtype=np.int64)
    for step in own:
        number += tick >= step.tick
    values = [default, *(str(step.value) for step in own)]
    return [(values[each], number == each) for each in np.unique(number).tolist()]
