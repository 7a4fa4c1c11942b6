"""The slow and obvious twin of optimistic processing (Kuralenok et al., section V): everything is kept and run anew.

1. A position is (ts, source, tick of the root event, order or hash, number among equals, then a child number for each
   `Fold`, `Group` and `Map`). Derived items keep their root's, so that they follow it and precede the next (V-A).
2. What stands after a micro-batch is the chain on all accepted items in order; its changes are the difference.
3. Too late is decided per tick and before the first step: after a tick T = mark - bound - 1 us.
4. Equal is bit for bit: NaN equals NaN; 0.0 and -0.0, 1 and 1.0 are different.
5. No function of the user can change what is kept: states and payloads are copied before each call.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, NamedTuple

NEVER, FOREVER = float("-inf"), float("inf")
Position = tuple[Any, ...]
Bits = tuple[Any, ...]


class Event(NamedTuple):
    """One row as it arrives; `order` is the user's or a hash of the row, `change` is -1 for a retraction."""

    ts_us: int
    source: Any
    tick: int
    order: Any
    key: Any
    payload: Any
    change: int = 1


class Item(NamedTuple):
    """A position, the key that it goes by, and what it says."""

    position: Position
    key: Any
    payload: Any

    @property
    def ts_us(self) -> int:
        """The event time of its root."""
        return int(self.position[0])


@dataclass(frozen=True)
class Fold:
    """Any stateful transformation, `(state, payload) -> (state, outputs)`, per key (section V-C)."""

    step: Callable[[Any, Any], tuple[Any, Iterable[Any]]]
    initial: Any = None


@dataclass(frozen=True)
class Group:
    """Each item with the n - 1 before it, per key, as a tuple (section V-B, Algorithm 1).

    partial, of the short groups at the beginning of a key, where there are less than n items yet:
    keep: they stand, as in the paper. full: there are none. undo: one stands until its key has a next item, so at most
    the one that ends with the key's last item does; with `forget_after_us` an item that starts anew is no next item.
    """

    n: int
    partial: str = "keep"

    def step(self, before: tuple[Any, ...], payload: Any) -> tuple[tuple[Any, ...], list[Any]]:
        """The same as a fold, whose state is the n - 1 payloads before."""
        group = (*before, payload)
        hidden = self.partial == "full" and len(group) < self.n
        return group[max(0, len(group) - self.n + 1) :], [] if hidden else [group]

    @property
    def initial(self) -> tuple[Any, ...]:
        """Nothing came before."""
        return ()


@dataclass(frozen=True)
class Map:
    """Any number of payloads for each, at the same time and of the same key (section V-B)."""

    f: Callable[[Any], Iterable[Any]]


@dataclass(frozen=True)
class By:
    """Another key for the steps that follow; positions stay (section II-D)."""

    key: Callable[[Any], Any]


Step = Fold | Group | Map | By


class Seen(NamedTuple):
    """An item as a step met it in its key, and the state before it: the initial one where it starts anew."""

    item: Item
    before: Any


class Skipped(NamedTuple):
    """An item for which a function of the user raised, in which step (from 1), and what it said."""

    step: int
    item: Item
    reason: str


@dataclass
class Run:
    """What a chain did: what stands, what each step met by key (`bits`), and what was skipped."""

    standing: list[Item] = field(default_factory=list)
    seen: list[dict[Bits, list[Seen]]] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)


def bits(value: Any) -> Bits:
    """Something that is equal, and in order, exactly where two values are the same bit for bit."""
    kind = type(value).__name__
    if isinstance(value, float):
        return kind, struct.pack(">d", value)
    if isinstance(value, tuple | list):
        return kind, tuple(bits(each) for each in value)
    if isinstance(value, dict):
        return kind, tuple(sorted((bits(name), bits(each)) for name, each in value.items()))
    return kind, value if isinstance(value, int | str | bytes | None) else repr(value)


def identity(item: Item) -> tuple[Position, Bits, Bits]:
    """What orders items and tells them apart: the position; where that is tied, key and payload."""
    return item.position, bits(item.key), bits(item.payload)


def in_order(items: Iterable[Item]) -> list[Item]:
    """Items in the total order (section V-A)."""
    return sorted(items, key=identity)


def by_key(items: Iterable[Item]) -> dict[Bits, list[Item]]:
    """The bucket of each key, in order (section V-B)."""
    buckets: dict[Bits, list[Item]] = {}
    for item in in_order(items):
        buckets.setdefault(bits(item.key), []).append(item)
    return buckets


def starts_anew(bucket: Sequence[Item], at: int, forget_after_us: int | None) -> bool:
    """Whether an item is its key's first, or its predecessor, skipped or not, lies that long before it."""
    gap_us = FOREVER if at == 0 else bucket[at].ts_us - bucket[at - 1].ts_us
    return gap_us >= (FOREVER if forget_after_us is None else forget_after_us)


def children(item: Item, payloads: Iterable[Any]) -> list[Item]:
    """What an item turns into: its position, and a number for each (section V-A)."""
    return [Item((*item.position, number), item.key, payload) for number, payload in enumerate(payloads)]


def run_stateless(step: Map | By, number: int, items: Sequence[Item], run: Run) -> list[Item]:
    """One step that knows each item alone; where its function raises the item is skipped."""
    given: list[Item] = []
    for item in in_order(items):
        try:
            if isinstance(step, Map):
                given += children(item, list(step.f(deepcopy(item.payload))))
            else:
                given.append(item._replace(key=step.key(deepcopy(item.payload))))
        except Exception as error:
            run.skipped.append(Skipped(number, item, repr(error)))
    return given


def run_stateful(step: Fold | Group, number: int, items: Sequence[Item], run: Run, forget: int | None) -> list[Item]:
    """One step with a state for each key; where its function raises the item is skipped and the state stays."""
    given: list[Item] = []
    for key, bucket in by_key(items).items():
        run.seen[-1][key] = seen = list[Seen]()
        state: Any = None
        for at, item in enumerate(bucket):
            state = deepcopy(step.initial) if starts_anew(bucket, at, forget) else state
            seen.append(Seen(item, state))
            try:
                after, outputs = step.step(deepcopy(state), deepcopy(item.payload))
                derived, state = children(item, list(outputs)), deepcopy(after)
            except Exception as error:
                run.skipped.append(Skipped(number, item, repr(error)))
                continue
            has_next = at + 1 < len(bucket) and not starts_anew(bucket, at + 1, forget)
            given += [each for each in derived if not (has_next and is_undone(step, each))]
    return given


def is_undone(step: Step, group: Item) -> bool:
    """Whether the next item of its key voids an output."""
    return isinstance(step, Group) and step.partial == "undo" and len(group.payload) < step.n


def trace(steps: Sequence[Step], items: Sequence[Item], forget_after_us: int | None = None) -> Run:
    """The chain on the complete input, and how it came to what stands."""
    if any(isinstance(step, Group) and step.partial == "undo" for step in steps[:-1]):
        raise ValueError("a group with partial 'undo' must be the last step")
    run = Run(standing=list(items))
    for number, step in enumerate(steps, 1):
        run.seen.append({})
        if isinstance(step, Map | By):
            run.standing = run_stateless(step, number, run.standing, run)
        else:
            run.standing = run_stateful(step, number, run.standing, run, forget_after_us)
    run.standing = in_order(run.standing)
    return run


def run_sorted(steps: Sequence[Step], items: Sequence[Item], forget_after_us: int | None = None) -> list[Item]:
    """What stands when the whole chain has run on the complete, sorted input (section V-B and V-C)."""
    return trace(steps, items, forget_after_us).standing


def minus(left: Iterable[Item], right: Iterable[Item]) -> list[Item]:
    """Of two multisets of items what is in the first only, in order."""
    taken, rest = Counter(identity(item) for item in right), []
    for item in in_order(left):
        if taken[identity(item)]:
            taken[identity(item)] -= 1
        else:
            rest.append(item)
    return rest


def net(stood: Sequence[Item], stands: Sequence[Item]) -> tuple[list[Item], list[Item]]:
    """The changes that lead from what stood to what stands, and no others: tombstones, and new outputs."""
    return minus(stood, stands), minus(stands, stood)


def depth(before: Sequence[Seen], after: Sequence[Seen]) -> int:
    """How many items of a key one step has to run again because of one micro-batch (section V-D).

    Those that it had met before the micro-batch and still meets after it, with another state before them: from an
    inserted or deleted item on, up to the first before which the state is again what it was. An item whose payload has
    changed is a new one: it is run, but not again.
    """
    stood, now = states(before), states(after)
    return sum(now[item] != state for item, state in stood.items() if item in now)


def states(seen: Sequence[Seen]) -> dict[Bits, Bits]:
    """The state before each item; equal items are numbered."""
    count: Counter[Bits] = Counter()
    found: dict[Bits, Bits] = {}
    for item, before in seen:
        count[identity(item)] += 1
        found[identity(item), count[identity(item)]] = bits(before)
    return found


def equals(event: Event) -> Bits:
    """What a retraction and its item have in common: all but the tick, and the number among equals."""
    return event.ts_us, event.source, event.order, bits(event.key), bits(event.payload)


def numbered(events: Iterable[Event]) -> list[tuple[Event, Item]]:
    """Events of one tick with their positions: equals in time, source, order and key are numbered by payload."""
    count: Counter[Bits] = Counter()
    found = []
    for event in sorted(events, key=equals):
        alike = event.ts_us, event.source, event.order, bits(event.key)
        position = (event.ts_us, event.source, event.tick, event.order, count[alike])
        found.append((event, Item(position, event.key, deepcopy(event.payload))))
        count[alike] += 1
    return found


class Optimistic:
    """The chain fed with micro-batches: changes at once, final rows behind one barrier (section V-D, Algorithm 3).

    given, voided: how many outputs and tombstones. recomputed: for each step the sum of its depths. late: events with
    the reason, `too_late` or `unmatched`. quarantined: what was skipped, once it is final.
    """

    def __init__(self, steps: Sequence[Step], bound_us: int, *, forget_after_us: int | None = None) -> None:
        self.steps, self.bound_us, self.forget_after_us = steps, bound_us, forget_after_us
        self.given = self.voided = self.stamps_back = 0
        self.recomputed = [0 for _ in steps]
        self.late: list[tuple[Event, str]] = []
        self.quarantined: list[Skipped] = []
        self.released: list[Item] = []
        self.punctuation_us = NEVER
        self._mark_us = NEVER
        self._closed_tick: int | None = None
        self._accepted: list[tuple[Event, Item]] = []
        self._waiting: list[Event] = []
        self._run = trace(steps, [], forget_after_us)

    @property
    def accepted(self) -> list[Item]:
        """The items that came in time and were not voided, in order."""
        return in_order(item for _, item in self._accepted)

    @property
    def standing(self) -> list[Item]:
        """What stands, in order."""
        return self._run.standing

    def push(self, batch: Sequence[Event]) -> tuple[list[Item], list[Item]]:
        """Take a micro-batch, which closes its last tick: tombstones and new outputs, each in order."""
        opened = [event._replace(tick=self._open_tick(event.tick)) for event in batch]
        self.stamps_back += sum(now.tick != event.tick for now, event in zip(opened, batch, strict=True))
        for tick in sorted({event.tick for event in opened}):
            self._take([event for event in opened if event.tick == tick])
            self._closed_tick = tick
        return self._recompute()

    def barrier(self) -> list[Item]:
        """The outputs that have become final since the last call, in order (Algorithm 3)."""
        final = [item for item in self.standing if self._final_at(item) <= self.punctuation_us]
        fresh = minus(final, self.released)
        self.released += fresh
        return fresh

    def finish(self) -> list[Item]:
        """Nothing more comes: what was waiting is unmatched, and all that stands is final."""
        self._punctuate(FOREVER)
        self._quarantine()
        return self.barrier()

    def _open_tick(self, tick: int) -> int:
        return tick if self._closed_tick is None else max(tick, self._closed_tick + 1)

    def _take(self, events: Sequence[Event]) -> None:
        """Events of one tick: first what came, then retractions, then time moves on."""
        in_time = [event for event in events if event.ts_us > self.punctuation_us]
        self.late += [(event, "too_late") for event in events if event.ts_us <= self.punctuation_us]
        self._accepted += numbered(event for event in in_time if event.change > 0)
        self._waiting += [event for event in in_time if event.change < 0]
        self._waiting = [event for event in self._waiting if not self._void(event)]
        self._mark_us = max(self._mark_us, *(event.ts_us for event in events))
        self._punctuate(self._mark_us - self.bound_us - 1)

    def _void(self, retraction: Event) -> bool:
        """Take out the last item that is equal to a retraction, if there is one (Algorithm 2)."""
        alike = [pair for pair in self._accepted if equals(pair[0]) == equals(retraction)]
        last = max(alike, key=lambda pair: pair[1].position, default=None)
        self._accepted = [pair for pair in self._accepted if pair is not last]
        return last is not None

    def _punctuate(self, time_us: float) -> None:
        """Nothing at or before this time will come any more."""
        self.punctuation_us = time_us
        self.late += [(event, "unmatched") for event in self._waiting if event.ts_us <= time_us]
        self._waiting = [event for event in self._waiting if event.ts_us > time_us]

    def _recompute(self) -> tuple[list[Item], list[Item]]:
        """Run the whole chain anew, and compare."""
        before, self._run = self._run, trace(self.steps, self.accepted, self.forget_after_us)
        tombstones, new = net(before.standing, self._run.standing)
        self.voided += len(tombstones)
        self.given += len(new)
        for number, (stood, now) in enumerate(zip(before.seen, self._run.seen, strict=True)):
            self.recomputed[number] += sum(depth(seen, now.get(key, [])) for key, seen in stood.items())
        self._quarantine()
        return tombstones, new

    def _quarantine(self) -> None:
        """Report what is skipped and can no longer be cured, once."""
        reported = {(each.step, identity(each.item)) for each in self.quarantined}
        final = [each for each in self._run.skipped if each.item.ts_us <= self.punctuation_us]
        self.quarantined += [each for each in final if (each.step, identity(each.item)) not in reported]

    def _final_at(self, item: Item) -> float:
        """The punctuation that makes an output final: its time; of a short group to undo, no next item."""
        if not self.steps or not is_undone(self.steps[-1], item):
            return item.ts_us
        return FOREVER if self.forget_after_us is None else item.ts_us + self.forget_after_us - 1
