"""A user's fold as Python: the function is called for every row.

Invariants
1. The function may change its state in place: what is kept of states and outputs is copied before it is called again.
2. A row for which it raises is passed over: the state is as if the row were not there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from latecomer.errors import error_text
from latecomer.windows.fold_states import FoldStates
from latecomer.windows.key_steps import Work
from latecomer.windows.user_rows import UserOutputs, UserRows

Step = Callable[[Any, Any], tuple[Any, Iterable[Any]]]
_FIRST, _WANTED = 1, 2


class PythonFold(NamedTuple):
    """A function with its states and outputs."""

    step: Step
    initial: Any
    states: FoldStates
    outputs: UserOutputs


@dataclass
class Followed:
    """What came of rows; counts: how many outputs each has."""

    outputs: list[tuple[Any, ...]] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    before: list[Any] = field(default_factory=list)
    after: list[Any] = field(default_factory=list)
    failed: list[int] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)

    def fail(self, error: Exception) -> None:
        """The next row is one for which the function raised."""
        self.failed.append(len(self.counts))
        self.reasons.append(error_text(error))
        self.counts.append(0)


def follow_rows(fold: PythonFold, work: Work) -> Followed:
    """Follow the rows of all stretches, in order."""
    marks = np.zeros(work.rows.num_rows, dtype=np.int8)
    marks[work.starts[:-1]] |= _FIRST
    marks[work.wanted] |= _WANTED
    rows = UserRows(work.rows)
    if not fold.states.immutable:
        return _follow_copying(fold, rows, marks.tolist(), _begins(fold, work))
    found = _follow(fold, rows, marks.tolist(), _begins(fold, work))
    if not fold.outputs.are_tuples(found.outputs):  # seen only now, for what is wrong with one is said of its row
        found = _follow(fold, rows, marks.tolist(), _begins(fold, work))
    return found


def _begins(fold: PythonFold, work: Work) -> list[Any]:
    """The state before each stretch; where there is none, the initial one."""
    kept = work.state.column(0)
    states = fold.states.values(kept)
    if kept.null_count:
        initial = fold.states.normal(fold.initial)
        for place in np.flatnonzero(kept.is_null().to_numpy(zero_copy_only=False)).tolist():
            states[place] = fold.states.copy(initial)
    return states


def _follow(fold: PythonFold, rows: UserRows, marks: list[int], begins: list[Any]) -> Followed:
    """States that nobody can change: the one before a row for which the function raises is still there."""
    step, _, states, outputs = fold
    kind, kinds, careful, state, stretches = states.kind, states.kinds, True, None, iter(begins)
    found = Followed()
    give, count = found.outputs.extend, found.counts.append  # looked up once: this loop is run for every row
    for row, mark in zip(rows, marks, strict=True):
        if mark:
            if mark & _FIRST:
                found.after.append(state)
                state, careful = next(stretches), outputs.careful
            if mark & _WANTED:
                found.before.append(state)
        try:
            after, given = step(state, row)
            if careful or type(given) is not list:
                given = outputs.taken(given)
        except MemoryError:
            raise
        except Exception as error:
            found.fail(error)
            continue
        give(given)
        count(len(given))
        if type(after) is not kind or (kinds and tuple(map(type, after)) != kinds):
            after = states.normal(after)
        state = after
    found.after = [*found.after[1:], state] if marks else []
    return found


def _follow_copying(fold: PythonFold, rows: UserRows, marks: list[int], begins: list[Any]) -> Followed:
    """States that the function may change in place: one is copied now and then, and found again from there."""
    copy, found, state, safe, since, stretches = fold.states.copy, Followed(), None, None, 0, iter(begins)
    for place, (row, mark) in enumerate(zip(rows, marks, strict=True)):
        if mark:
            if mark & _FIRST:
                found.after.append(copy(state))
                state = next(stretches)
            safe, since = copy(state), place
            if mark & _WANTED:
                found.before.append(safe)
        try:
            state, given = fold.step(state, row)
            given = fold.outputs.taken(given)
        except MemoryError:
            raise
        except Exception as error:
            found.fail(error)
            state = _state_again(fold, rows, safe, range(since, place))
            safe, since = copy(state), place + 1
            continue
        found.outputs += given
        found.counts.append(len(given))
    found.after = [*found.after[1:], copy(state)] if marks else []
    return found


def _state_again(fold: PythonFold, rows: UserRows, safe: Any, places: range) -> Any:
    """The state before a row for which the function raised, which may have changed it in place."""
    state = fold.states.copy(safe)
    for place in places:
        state, outputs = fold.step(state, rows.row(place))
        for _ in outputs:
            pass
    return state
