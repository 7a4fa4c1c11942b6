"""Impatience sort in memory: events go in as they arrive and come out in event-time order.

Each event is held in a sorted run; a punctuation cuts and merges the heads of the runs and touches nothing else.
Payloads wait in a ring until they leave, so that only keys move. With `hardware`, numpy's vectorised sort puts larger
batches in order before they are dealt; without it this is the paper's algorithm. With `carry` it also moves payloads
along with the events, as the paper's engine does.

Paper: Impatience (Chandramouli, Goldstein, Li), section III.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from typing import Any, NamedTuple, SupportsIndex

import numpy as np
import numpy.typing as npt

from latecomer.durations import Duration
from latecomer.errors import InputError, error_text, must
from latecomer.events import FOREVER_US, NEVER_US, Int64s
from latecomer.sorter.arguments import as_bytes, check_span, latency_of, payload_of, plain, punctuation_of, times_of
from latecomer.sorter.keys import SPREAD_FROM, Span, look_over, pack_keys, sort_keys, spread_keys
from latecomer.sorter.memory_runs import Leaving, MemoryRuns
from latecomer.sorter.policy import Late, as_policy, stop_at
from latecomer.sorter.release import ANY_MOVES, MOST_MOVES, SortedKeys
from latecomer.sorter.ring import Fresh, Numbers, Ring
from latecomer.sorter.runs import Cells, Columns, Switches

HARDWARE_FROM = 8_000  # so many events at once are sorted by numpy; fewer are dealt one by one
LONG_RUN = 8  # where stretches in order are longer on average, dealing is faster than sorting

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
    Arrays that were pushed are read until their events have left: don't change them before. Payloads are held from
    the oldest event that is held on, so one event far in the future keeps the memory of all that follow it.
    Late events are reported by the push that brings them. After an error that is not about arguments a sorter is of no
    more use: events may be missing.

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
        self._latency_us = latency_of(latency, every)
        self._every = every
        self._late = as_policy(late)
        self._hardware = hardware and not carry
        self._carry = carry
        self._switches = Switches(huffman, speculative, drop_empty, self._late is Late.ADJUST)
        self._runs: MemoryRuns | None = None
        self._ring: Ring | None = None
        self._waiting: list[tuple[Int64s, Cells | None, Span]] = []
        self._phase = 0
        self._numbers = Numbers()
        self._floor_us = NEVER_US
        self._dtype: np.dtype[np.generic] | None = None
        self._failed: BaseException | None = None
        self.late = 0

    @property
    def runs(self) -> int:
        """How many sorted runs are held."""
        return 0 if self._runs is None else self._runs.runs

    @property
    def held(self) -> int:
        """How many events are held."""
        waiting = sum(len(ts_us) for ts_us, _, _ in self._waiting)
        return waiting + (0 if self._runs is None else self._runs.held)

    def run_times(self) -> list[list[int]]:
        """The times held, run by run: to look at. With `hardware`, what waits for a punctuation is in no run yet."""
        return [] if self._runs is None else self._runs.times()

    def push(self, times: npt.ArrayLike, payload: npt.ArrayLike | None = None) -> Released:
        """Take in events in the order of their arrival, with one element of payload each."""
        self._check_whole()
        if self._floor_us == FOREVER_US:
            raise InputError(must("push", "come before finish", "a push after it", "make a new sorter"))
        ts_us = times_of(times)
        given = None if payload is None else payload_of(payload, len(ts_us))
        dtype = None if given is None else given.dtype
        if self._runs is None:
            self._dtype = dtype
        if dtype != self._dtype:
            raise InputError(must("payload", f"have the type {self._dtype} it began with", dtype, "convert it"))
        cells = None if given is None else plain(given)
        if len(ts_us) == 0:
            return self._typed(_together([], cells))
        span = look_over(ts_us)
        check_span(span.low_us, span.high_us)
        with self._to_the_end():
            runs = self._started(cells)
            if self._hardware and (self._every is None or self._every >= HARDWARE_FROM):
                return self._typed(self._wait(runs, ts_us, cells, span))
            return self._typed(self._feed(runs, ts_us, cells, span))

    def punctuate(self, punctuation_us: SupportsIndex) -> Released:
        """Give everything up to this time; what comes later and is not after it is too late."""
        self._check_whole()
        punctuation = punctuation_of(punctuation_us)
        with self._to_the_end():
            return self._typed(self._punctuate(punctuation))

    def finish(self) -> Released:
        """Give all that is left; nothing can be pushed after it."""
        self._check_whole()
        with self._to_the_end():
            return self._typed(self._punctuate(FOREVER_US))

    def _check_whole(self) -> None:
        if self._failed is not None:
            found = error_text(self._failed)
            rule = "not go on after an error: events may be missing"
            raise InputError(must("sorter", rule, found, "make a new one and push all events again"))

    @contextmanager
    def _to_the_end(self) -> Iterator[None]:
        """What fails on the way has been done in part."""
        try:
            yield
        except BaseException as error:
            self._failed = error
            raise

    def _typed(self, released: Released) -> Released:
        """Payloads as the user knows them."""
        if self._dtype is None or released.payload is None or released.late_payload is None:
            return released
        payload, late = released.payload.view(self._dtype), released.late_payload.view(self._dtype)
        return Released(released.ts_us, payload, released.late_ts_us, late)

    def _punctuate(self, punctuation_us: int) -> Released:
        self._floor_us = max(self._floor_us, punctuation_us)
        if self._runs is None:
            return _together([], None)
        return self._sort_waiting(self._runs, punctuation_us)

    def _started(self, payload: Cells | None) -> MemoryRuns:
        if self._runs is None:
            carried = None if payload is None or not self._carry else payload.dtype
            self._runs = MemoryRuns(self._switches, carried)
            self._runs.move_floor(self._floor_us)
            self._ring = Ring(payload.dtype) if payload is not None and not self._carry else None
        return self._runs

    def _feed(self, runs: MemoryRuns, ts_us: Int64s, payload: Cells | None, span: Span) -> Released:
        """Deal events one by one, with the punctuations that fall among them."""
        first = self._number(runs, len(ts_us), span)
        released = self._deal(runs, ts_us, payload, first, self._every or FOREVER_US)
        self._floor_us = runs.floor_us
        return released

    def _deal(self, runs: MemoryRuns, ts_us: Int64s, payload: Cells | None, first: int, every: int) -> Released:
        if self._ring is not None and payload is not None:
            self._ring.put(first, payload, self._numbers.oldest(runs.floor_us))
        events, late = runs.feed(ts_us, first, payload if self._ring is None else None, every, self._latency_us)
        return self._refuse(self._released(runs, events), ts_us, payload, late)

    def _number(self, runs: MemoryRuns, count: int, span: Span) -> int:
        """Number events, and see to it that keys can hold their times and numbers."""
        floor_us, high_us = runs.floor_us, span.high_us
        if self._late is Late.ADJUST:
            high_us = max(high_us, runs.mark_us, floor_us) + 1
        oldest = self._numbers.oldest(floor_us)
        if self._ring is not None:
            oldest -= oldest % len(self._ring)  # so that places in the ring stay
        low_us, stop = max(span.low_us, floor_us + 1), self._numbers.next + count
        less = runs.fit(low_us, max(high_us, floor_us + 1), oldest, stop)
        if less:
            self._numbers.lessen(less)
            if self._ring is not None:
                self._ring.lessen(less)
        return self._numbers.take(count, high_us)

    def _released(
        self, runs: MemoryRuns, events: Columns, after: Int64s = _NO_TIMES, fresh: Fresh | None = None
    ) -> Released:
        """What the runs gave, out of their buffers, and packed keys that come after that."""
        key, number, cells = events
        if self._ring is not None and number is None:
            ts_us, cells = self._ring.take_packed((key, after), runs.packing, fresh)
        else:
            key = np.concatenate((key, after)) if len(after) else key
            ts_us = (key >> runs.packing.bits) + runs.packing.base_us if number is None else key.copy()
            cells = self._ring.take(number) if self._ring is not None else cells
            cells = None if cells is None else as_bytes(cells).copy().view(cells.dtype)
        return Released(ts_us, cells, _NO_TIMES, None if cells is None else cells[:0])

    def _wait(self, runs: MemoryRuns, ts_us: Int64s, payload: Cells | None, span: Span) -> Released:
        """Keep events as they are until a punctuation comes."""
        every = self._every or FOREVER_US
        released = []
        at = 0
        while at < len(ts_us):
            stop = min(len(ts_us), at + every - self._phase)
            part = span if (at, stop) == (0, len(ts_us)) else look_over(ts_us[at:stop])
            released += self._put_aside(runs, ts_us[at:stop], None if payload is None else payload[at:stop], part)
            self._phase += stop - at
            at = stop
            if self._phase == every:
                self._phase = 0
                released.append(self._sort_waiting(runs, None))
        return _together(released, payload)

    def _put_aside(self, runs: MemoryRuns, ts_us: Int64s, payload: Cells | None, span: Span) -> list[Released]:
        """Let events wait, those that are not too late; the others are refused at once, or moved."""
        runs.see(span.high_us)
        refused: list[Released] = []
        if span.low_us <= runs.floor_us:
            late = np.flatnonzero(ts_us <= runs.floor_us)
            refused.append(self._refuse(_together([], payload), ts_us, payload, late))
            if self._late is Late.ADJUST:
                ts_us = np.maximum(ts_us, runs.floor_us + 1)
            else:
                ts_us, payload = np.delete(ts_us, late), None if payload is None else np.delete(payload, late)
            span = look_over(ts_us) if len(ts_us) else span
        if len(ts_us):
            self._waiting.append((ts_us, payload, span))
        return refused

    def _sort_waiting(self, runs: MemoryRuns, punctuation_us: int | None) -> Released:
        """Put what waits in order, up to a punctuation: by hand, or the mark less the latency."""
        if punctuation_us is None:
            punctuation_us = max(self._floor_us, runs.mark_us - self._latency_us)
            self._floor_us = punctuation_us
        if not self._waiting:
            return self._release(runs, punctuation_us)
        ts_us, payload, span = _united(self._waiting)
        self._waiting = []
        first = self._number(runs, len(ts_us), span)
        if runs.packed and self._worth_sorting(runs, len(ts_us), span, punctuation_us):
            keys = self._sorted_keys(runs, ts_us, first, span)
            return self._cut(runs, keys, first, payload, punctuation_us)
        dealt = self._deal(runs, ts_us, payload, first, FOREVER_US)
        return _together([dealt, self._release(runs, punctuation_us)], payload)

    def _worth_sorting(self, runs: MemoryRuns, count: int, span: Span, punctuation_us: int) -> bool:
        """Whether numpy puts events in order faster than dealing them: they are many, and in short stretches.

        Where all of them leave at once there is nothing to deal.
        """
        if runs.held == 0 and span.high_us <= punctuation_us:
            return True
        return count >= HARDWARE_FROM and count < LONG_RUN * span.descents

    def _sorted_keys(self, runs: MemoryRuns, ts_us: Int64s, first: int, span: Span) -> Int64s:
        """Events as packed keys in order."""
        local = span.local(len(ts_us))
        if len(ts_us) >= SPREAD_FROM and not local:
            return spread_keys(ts_us, first, runs.packing, span)
        keys = pack_keys(ts_us, first, runs.packing)
        sort_keys(keys, local)
        return keys

    def _cut(self, runs: MemoryRuns, keys: Int64s, first: int, payload: Cells | None, punctuation_us: int) -> Released:
        """Give what the punctuation has passed, of these sorted keys and of the runs, and keep the rest."""
        cut = int(keys.searchsorted(runs.key_of(punctuation_us), "right"))
        fresh, oldest = None if payload is None else Fresh(payload, first), self._numbers.oldest(runs.floor_us)
        leaving = runs.release_and_deal(punctuation_us, SortedKeys(keys, cut), self._most_moves(runs))
        released = self._released(runs, _in_order(leaving), keys[leaving.merged : cut], fresh)
        if self._ring is not None and payload is not None:
            self._ring.put_some(keys[cut:], runs.packing, first, payload, oldest)
        return released

    def _release(self, runs: MemoryRuns, punctuation_us: int) -> Released:
        """Give what the punctuation has passed of the runs, where nothing else waits."""
        return self._released(runs, _in_order(runs.release(punctuation_us, self._most_moves(runs))))

    def _most_moves(self, runs: MemoryRuns) -> int:
        """How often an event may be moved by merging; where that takes more moves, all are sorted anew."""
        return MOST_MOVES if self._hardware and runs.packed else ANY_MOVES

    def _refuse(self, released: Released, ts_us: Int64s, payload: Cells | None, late: Int64s) -> Released:
        """Count the late events and add them where the user wants to see them."""
        if len(late) == 0:
            return released
        self.late += len(late)
        if self._late is Late.RAISE:
            raise stop_at(len(late), int(ts_us[late[0]]))
        if self._late is not Late.SIDE:
            return released
        return released._replace(late_ts_us=ts_us[late], late_payload=None if payload is None else payload[late])


def _in_order(leaving: Leaving) -> Columns:
    """The events that leave, sorted where they were not merged."""
    if not leaving.in_order:
        leaving.events.key.sort()
    return leaving.events


def _united(waiting: list[tuple[Int64s, Cells | None, Span]]) -> tuple[Int64s, Cells | None, Span]:
    if len(waiting) == 1:
        return waiting[0]
    times, payloads, spans = zip(*waiting, strict=True)
    payload = None if payloads[0] is None else np.concatenate(payloads)
    return np.concatenate(times), payload, reduce(Span.joined, spans)


def _together(parts: list[Released], payload: Cells | None) -> Released:
    """Several releases as one."""
    if not parts:
        none = None if payload is None else payload[:0]
        return Released(_NO_TIMES, none, _NO_TIMES, none)
    if len(parts) == 1:
        return parts[0]
    ts_us, cells, late_us, late_cells = zip(*parts, strict=True)
    if payload is None:
        return Released(_joined(ts_us), None, _joined(late_us), None)
    return Released(_joined(ts_us), _joined(cells), _joined(late_us), _joined(late_cells))


def _joined(arrays: Sequence[Any]) -> Any:
    """Arrays one after the other; a single one that is not empty is not copied."""
    full = [array for array in arrays if len(array)] or [arrays[0]]
    return full[0] if len(full) == 1 else np.concatenate(full)
