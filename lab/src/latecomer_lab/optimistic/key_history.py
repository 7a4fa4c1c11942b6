"""A fold over the items of one key that come in any order (section V): the slow and obvious form.

Everything is kept. An item is put where its position says; from there on the fold runs again until states meet, what
stood is taken back and what stands instead is given. This is a grouping of two items with a combining map, whose cycle
is closed inside.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from typing import Any

Step = Callable[[Any, Any], tuple[Any, Any]]
Change = tuple[int, Any, int]  # position, output, and +1 or -1: a tombstone


class KeyHistory:
    """The items of a key in order, the state after each, and what was given for it."""

    __slots__ = ("_initial", "_items", "_outputs", "_positions", "_states", "_step")

    def __init__(self, step: Step, initial: Any) -> None:
        self._step, self._initial = step, initial
        self._positions: list[int] = []
        self._items: list[Any] = []
        self._states: list[Any] = []
        self._outputs: list[Any] = []

    def insert(self, position: int, item: Any) -> list[Change]:
        """Take an item: tombstones for what it makes wrong, then what is right now."""
        positions = self._positions
        late = bool(positions) and positions[-1] > position
        at = bisect_left(positions, position) if late else len(positions)
        state, output = self._step(self._states[at - 1] if at else self._initial, item)
        positions.insert(at, position)
        self._items.insert(at, item)
        self._states.insert(at, state)
        self._outputs.insert(at, output)
        own: Change = (position, output, 1)
        if not late:
            return [own]
        voided, given = self._run_again(at + 1, state)
        return [*voided, own, *given]

    def _run_again(self, begin: int, state: Any) -> tuple[list[Change], list[Change]]:
        """Run from an item on, with another state before it: what is void, and what stands instead."""
        voided: list[Change] = []
        given: list[Change] = []
        for at in range(begin, len(self._positions)):
            state, output = self._step(state, self._items[at])
            if output != self._outputs[at]:
                voided.append((self._positions[at], self._outputs[at], -1))
                given.append((self._positions[at], output, 1))
                self._outputs[at] = output
            if state == self._states[at]:
                break
            self._states[at] = state
        return voided, given
