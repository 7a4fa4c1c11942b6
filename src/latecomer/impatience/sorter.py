"""Impatience sort in memory: events go in as they arrive and come out in event-time order.

Each event is kept in a sorted run; a punctuation cuts and merges the heads of the runs and touches nothing else.
Payloads wait in a ring until they leave, so that only keys move. With `hardware`, numpy's vectorised sort puts larger
batches in order before they are dealt; without it this is the paper's algorithm. With `carry` it also moves payloads
along with the events, as the paper's engine does.

Paper: Impatience (Chandramouli, Goldstein, Li), section III.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from latecomer.durations import Duration, duration_us
from latecomer.errors import InputError, must
from latecomer.events import FOREVER_US, NEVER_US, Int64s, sort_times
from latecomer.impatience.pile import Pile
from latecomer.impatience.policy import Late, as_policy, stop_at
from latecomer.impatience.release import ANY_MOVES, Switches
from latecomer.impatience.ring import Numbers, Ring
from latecomer.impatience.runs import Cells, Columns

HARDWARE_FROM = 1_500  # so many events at once are sorted by numpy; fewer are dealt one by one

MOST_MOVES = 3  # where merging would move an event more often, sorting anew is faster

_NO_TIMES: Int64s = np.zeros(0, dtype=np.int64)


class Released(NamedTuple):
    """Events that left, in order, and those that came too late (with late="side")."""

    ts_us: Int64s
    payload: Cells | None
    late_ts_us: Int64s
    late_payload: Cells | None


class ImpatienceSorter:
    """Sorts a stream by time, ties by arrival, up to a punctuation.

    With `every`, a punctuation at the largest time so far less the latency follows every so many events; without
    it, punctuations come by hand. Times are integers, of any unit (durations given as text mean microseconds).
    Arrays that were pushed are read until their events have left: don't change them before.

    >>> sorter = ImpatienceSorter()
    >>> _ = sorter.push(np.array([2, 6, 5, 1]))
    >>> sorter.punctuate(2).ts_us.tolist()
    [1, 2]
    >>> _ = sorter.push(np.array([4, 3, 7]))
    >>> sorter.punctuate(4).ts_us.tolist(), sorter.held
    ([3, 4], 3)
    """

    def __init__(
        self,
        latency: Duration | int | None = None,
        *,
        every: int | None = None,
        late: str = "side",
        huffman: bool = True,
        speculative: bool = True,
        drop_empty: bool = True,
        hardware: bool = True,
        carry: bool = False,
    ) -> None:
        self._latency_us = _latency(latency, every)
        self._every = every
        self._late = as_policy(late)
        self._hardware = hardware and not carry
        self._carry = carry
        self._switches = Switches(huffman, speculative, drop_empty, self._late is Late.ADJUST)
        self._pile: Pile | None = None
        self._ring: Ring | None = None
        self._waiting: list[tuple[Int64s, Cells | None]] = []
        self._phase = 0
        self._numbers = Numbers()
        self._floor_us = NEVER_US
        self._dtype: np.dtype[np.generic] | None = None
        self.late = 0

    @property
    def runs(self) -> int:
        """How many sorted runs are held."""
        return 0 if self._pile is None else self._pile.runs

    @property
    def held(self) -> int:
        """How many events are held."""
        waiting = sum(len(ts_us) for ts_us, _ in self._waiting)
        return waiting + (0 if self._pile is None else self._pile.held)

    def run_times(self) -> list[list[int]]:
        """The times held, run by run: to look at. With `hardware`, what waits for a punctuation is in no run yet."""
        return [] if self._pile is None else self._pile.times()

    def push(self, ts_us: Int64s, payload: Cells | None = None) -> Released:
        """Take in events in the order of their arrival, with one element of payload each."""
        ts_us = np.ascontiguousarray(ts_us, dtype=np.int64)
        self._check(ts_us, payload)
        cells = None if payload is None else _plain(payload)
        pile = self._started(cells)
        if self._hardware and (self._every is None or self._every >= HARDWARE_FROM):
            return self._typed(self._wait(pile, ts_us, cells))
        return self._typed(self._feed(pile, ts_us, cells))

    def punctuate(self, punctuation_us: int) -> Released:
        """Give everything up to this time; what comes later and is not after it is too late."""
        return self._typed(self._punctuate(punctuation_us))

    def finish(self) -> Released:
        """Give all that is left."""
        return self.punctuate(FOREVER_US)

    def _check(self, ts_us: Int64s, payload: Cells | None) -> None:
        dtype = None if payload is None else payload.dtype
        if self._pile is None:
            self._dtype = dtype
        if dtype != self._dtype:
            raise InputError(must("payload", f"have the type {self._dtype} it began with", dtype, "convert it"))
        if payload is not None and payload.shape != ts_us.shape:
            raise InputError(must("payload", "have one element per event", payload.shape, f"give {len(ts_us)}"))

    def _typed(self, released: Released) -> Released:
        """Payloads as the user knows them."""
        if self._dtype is None or released.payload is None or released.late_payload is None:
            return released
        given, late = released.payload.view(self._dtype), released.late_payload.view(self._dtype)
        return released._replace(payload=given, late_payload=late)

    def _punctuate(self, punctuation_us: int) -> Released:
        self._floor_us = max(self._floor_us, punctuation_us)
        if self._pile is None:
            return _together([], None)
        if self._waiting:
            return self._sort_waiting(self._pile, punctuation_us)
        return self._merged(self._pile, punctuation_us)

    def _started(self, payload: Cells | None) -> Pile:
        if self._pile is None:
            carried = None if payload is None or not self._carry else payload.dtype
            self._pile = Pile(self._switches, carried)
            self._pile.move_floor(self._floor_us)
            self._ring = Ring() if payload is not None and not self._carry else None
        return self._pile

    def _feed(self, pile: Pile, ts_us: Int64s, payload: Cells | None, *, punctuated: bool = True) -> Released:
        """Deal events one by one, with the punctuations that fall among them."""
        if len(ts_us) == 0:
            return _together([], payload)
        first = self._number(pile, ts_us)
        if self._ring is not None and payload is not None:
            self._ring.put(first, payload, self._numbers.oldest(pile.floor_us))
        every = self._every if self._every is not None and punctuated else FOREVER_US
        given, late = pile.feed(ts_us, first, payload if self._ring is None else None, every, self._latency_us)
        self._floor_us = pile.floor_us
        return self._refuse(self._released(pile, given.events), ts_us, payload, late)

    def _number(self, pile: Pile, ts_us: Int64s) -> int:
        """Number events, and see to it that keys can hold their times and numbers."""
        low_us, high_us = int(ts_us.min()), int(ts_us.max())
        floor_us = pile.floor_us
        if self._late is Late.ADJUST:
            high_us = max(high_us, pile.mark_us, floor_us) + 1
        oldest = self._numbers.oldest(floor_us)
        if self._ring is not None:
            oldest -= oldest % len(self._ring)  # so that places in the ring stay
        stop = self._numbers.next + len(ts_us)
        less = pile.fit(max(low_us, floor_us + 1), max(high_us, floor_us + 1), oldest, stop)
        if less:
            self._numbers.lessen(less)
            if self._ring is not None:
                self._ring.lessen(less)
        return self._numbers.take(len(ts_us), high_us)

    def _released(self, pile: Pile, events: Columns) -> Released:
        """What the pile gave, out of its buffers."""
        key, number, cells = events
        if self._ring is not None and number is None:
            ts_us, cells = self._ring.take_packed(key, pile.packing)
        else:
            ts_us = (key >> pile.packing.bits) + pile.packing.base_us if number is None else key.copy()
            cells = self._ring.take(number) if self._ring is not None else cells
            cells = None if cells is None else cells.copy()
        return Released(ts_us, cells, _NO_TIMES, None if cells is None else cells[:0])

    def _wait(self, pile: Pile, ts_us: Int64s, payload: Cells | None) -> Released:
        """Keep events as they are until a punctuation comes."""
        every = self._every or FOREVER_US
        released = []
        at = 0
        while at < len(ts_us):
            stop = min(len(ts_us), at + every - self._phase)
            self._waiting.append((ts_us[at:stop], None if payload is None else payload[at:stop]))
            pile.see(int(ts_us[at:stop].max()))
            self._phase += stop - at
            at = stop
            if self._phase == every:
                self._phase = 0
                released.append(self._punctuate(max(self._floor_us, pile.mark_us - self._latency_us)))
        return _together(released, payload)

    def _sort_waiting(self, pile: Pile, punctuation_us: int) -> Released:
        """Sort what waits: what may leave goes at once, the rest is dealt onto the runs."""
        ts_us, payload = _united(self._waiting)
        self._waiting = []
        late = np.flatnonzero(ts_us <= pile.floor_us)
        if pile.held == 0 and int(ts_us.max()) <= punctuation_us:
            released = self._sort_whole(ts_us, payload, late, pile.floor_us)
            pile.move_floor(punctuation_us)
            return self._refuse(released, ts_us, payload, late)
        first = self._number(pile, ts_us)
        if not pile.packed:
            fed = self._feed(pile, ts_us, payload, punctuated=False)
            return _together([fed, self._merged(pile, punctuation_us)], payload)
        keys = self._keys(pile, ts_us, late, first)
        keys.sort()
        released = self._cut(pile, keys, first, payload, punctuation_us)
        return self._refuse(released, ts_us, payload, late)

    def _sort_whole(self, ts_us: Int64s, payload: Cells | None, late: Int64s, floor_us: int) -> Released:
        """Sort events all of which may leave."""
        if len(late) and self._late is Late.ADJUST:
            ts_us = np.maximum(ts_us, floor_us + 1)
        elif len(late):
            ts_us, payload = np.delete(ts_us, late), None if payload is None else np.delete(payload, late)
        in_order, order = sort_times(ts_us)
        if payload is None:
            return Released(in_order, None, _NO_TIMES, None)
        return Released(in_order, np.take(payload, order, mode="clip"), _NO_TIMES, payload[:0])

    def _keys(self, pile: Pile, ts_us: Int64s, late: Int64s, first: int) -> Int64s:
        if len(late) and self._late is Late.ADJUST:
            ts_us = np.maximum(ts_us, pile.floor_us + 1)
        keys = ts_us - pile.packing.base_us
        keys <<= pile.packing.bits
        keys |= np.arange(first, first + len(ts_us))
        return np.delete(keys, late) if len(late) and self._late is not Late.ADJUST else keys

    def _cut(self, pile: Pile, keys: Int64s, first: int, payload: Cells | None, punctuation_us: int) -> Released:
        """Give what the punctuation has passed, of these sorted keys and of the runs, and keep the rest."""
        cut = int(np.searchsorted(keys, pile.key_of(punctuation_us), side="right"))
        if self._ring is not None and payload is not None:
            self._ring.put(first, payload, self._numbers.oldest(pile.floor_us))
        if pile.due(punctuation_us):
            released = self._merged(pile, punctuation_us, keys[:cut])
        else:
            released = self._released(pile, Columns(keys[:cut], None, None))
        pile.move_floor(punctuation_us)
        pile.deal(keys[cut:])
        return released

    def _merged(self, pile: Pile, punctuation_us: int, keys: Int64s = _NO_TIMES) -> Released:
        """The heads of the runs and sorted keys, merged; where that takes too many moves, sorted anew."""
        sorting = self._hardware and pile.packed
        given = pile.release(punctuation_us, keys, MOST_MOVES if sorting else ANY_MOVES)
        if not given.in_order:
            given.events.key.sort()
        return self._released(pile, given.events)

    def _refuse(self, released: Released, ts_us: Int64s, payload: Cells | None, late: Int64s) -> Released:
        """Count the late events and add them where the user wants to see them."""
        if len(late) == 0:
            return released
        self.late += len(late)
        if self._late is Late.RAISE:
            raise stop_at(len(late), int(ts_us[late[0]]), self._floor_us)
        if self._late is not Late.SIDE:
            return released
        return released._replace(late_ts_us=ts_us[late], late_payload=None if payload is None else payload[late])


def _latency(latency: Duration | int | None, every: int | None) -> int:
    if every is not None and (isinstance(every, bool) or every < 1):
        raise InputError(must("every", "be a whole number above zero", every, "e.g. every=10_000"))
    if latency is None:
        if every is not None:
            raise InputError(must("latency", "be given with every", None, "e.g. latency='10 seconds'"))
        return 0
    if isinstance(latency, int):
        if latency < 0:
            raise InputError(must("latency", "not be negative", latency, "give microseconds or text"))
        return latency
    return duration_us(latency, "latency", zero=True)


def _plain(payload: Cells) -> Cells:
    """The same bytes as a type without fields: numpy moves it at once."""
    kind = {1: "u1", 2: "u2", 4: "u4", 8: "u8", 16: "c16"}.get(payload.dtype.itemsize)
    whole = np.ascontiguousarray(payload)
    return whole if kind is None or payload.dtype.hasobject else whole.view(kind)


def _united(waiting: list[tuple[Int64s, Cells | None]]) -> tuple[Int64s, Cells | None]:
    if len(waiting) == 1:
        return waiting[0]
    payloads = [payload for _, payload in waiting if payload is not None]
    return np.concatenate([ts_us for ts_us, _ in waiting]), np.concatenate(payloads) if payloads else None


def _together(parts: list[Released], payload: Cells | None) -> Released:
    """Several releases as one."""
    if len(parts) == 1:
        return parts[0]
    if not parts:
        none = None if payload is None else payload[:0]
        return Released(_NO_TIMES, none, _NO_TIMES, none)
    columns = list(zip(*parts, strict=True))
    ts_us, cells, late_us, late_cells = columns
    if payload is None:
        return Released(np.concatenate(ts_us), None, np.concatenate(late_us), None)
    return Released(np.concatenate(ts_us), np.concatenate(cells), np.concatenate(late_us), np.concatenate(late_cells))
