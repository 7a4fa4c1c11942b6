"""The slow and obvious twin of time travel (TinTiN, sections 2 to 6.5): per event, with lists and dicts.

1. The mark is the largest time of the ticks before; an event before the mark is late. The live application has given
   the results that start at or before `passed`: those that need no event at or after the mark.
2. An accepted late event counts at once in those of its first windows that are open. It changes no other result than
   those that start in (ts - span, until], `until` being the last of its first windows that are closed; and they need no
   event outside (ts - span, ts + span), where the span is the sum of the window sizes.
3. Of the on-time events only those are held that lie within a span of a hole, or of the key's latest one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import lcm
from typing import Any, NamedTuple

from latecomer.events import FOREVER_US, NEVER_US
from tests.naive_holes import (
    UNKNOWN,
    Application,
    Event,
    Given,
    Hole,
    Holes,
    Live,
    Result,
    Trigger,
    in_order,
    starts_in,
)


@dataclass
class Pending:
    """A late event that the live application missed: in results that start in (done, until].

    since_us: the mark at which it had come and the live application had given all of them. fired: replayed once.
    """

    event: Event
    done_us: int
    until_us: int
    since_us: int
    fired: bool = False

    def touches(self, start_us: int) -> bool:
        """Whether a result is still to be repaired."""
        return self.done_us < start_us <= self.until_us


@dataclass
class Held:
    """What is held of a key. The last of `recent` is its latest on-time event; without one, the key is forgotten."""

    recent: list[Event] = field(default_factory=list)
    context: list[Event] = field(default_factory=list)
    late: list[Event] = field(default_factory=list)
    ahead: list[Event] = field(default_factory=list)
    holes: list[Hole] = field(default_factory=list)

    def events(self) -> set[Event]:
        """Recent ones, those of contexts, and late ones."""
        return {*self.recent, *self.context, *self.late}


class NaiveTimeTravel:
    """The live application, what is held around holes, and a replica in shifted time."""

    def __init__(
        self,
        app: Application,
        bound_us: int,
        holes: Holes,
        trigger: Trigger,
        *,
        periodicity_us: int = 1,
        retract: bool = True,
        shifted: bool = True,
        wait_us: int = 0,
    ) -> None:
        self.wait_us = wait_us
        self._waiting: list[Event] = []
        self._largest_us = NEVER_US
        self.app, self.span_us, self.steps, self.bound_us = app, sum(app.sizes_us), len(app.sizes_us), bound_us
        assert bound_us >= self.span_us
        self.holes, self.trigger, self.retract = holes, trigger, retract
        self.pace_us = holes.pace_us or app.advances_us[-1]
        self.late: list[tuple[int, str]] = []
        self.duplicates = 0
        self.mark_us = NEVER_US
        self.replica = Replica(app, lcm(*app.advances_us, periodicity_us), self.span_us) if shifted else None
        self._live = Live(app)
        self._passed_us = NEVER_US
        self._keys: dict[int, Held] = {}
        self._pending: list[Pending] = []
        self._last: dict[int, dict[int, tuple[Any, ...]]] = {}

    @property
    def held(self) -> int:
        """How many events are held."""
        return sum(len(held.events()) for held in self._keys.values()) + len(self._waiting)

    def tick(self, events: Sequence[Event], tick: int) -> list[Given]:
        """Take all events of a tick: the late ones first, then those on time."""
        assert all(event.tick == tick for event in events)
        given = []
        for event in in_order(events):
            if event.ts_us < self.mark_us:
                given += self._take_late(event)
        on_time = [event for event in in_order(events) if event.ts_us >= self.mark_us]
        if self.wait_us:
            on_time = self._waited(on_time)
        else:
            self.mark_us = max([self.mark_us, *(event.ts_us for event in on_time)])
        for event in on_time:
            self._take_on_time(event)
        if self.mark_us > NEVER_US:
            given += self._give_live(self.mark_us - 1)
        given += self._replay_together([late for late in self._pending if self._is_due(late, on_time)])
        self._remove()
        return given

    def _waited(self, arrived: Sequence[Event]) -> list[Event]:
        """Events wait until the mark, which is so far behind the largest time of all, has passed them."""
        self._waiting += arrived
        self._largest_us = max([self._largest_us, *(event.ts_us for event in arrived)])
        if self._largest_us == NEVER_US:
            return []
        self.mark_us = self._largest_us - self.wait_us
        leaving = in_order(event for event in self._waiting if event.ts_us < self.mark_us)
        self._waiting = [event for event in self._waiting if event.ts_us >= self.mark_us]
        return leaving

    def finish(self) -> list[Given]:
        """The stream is over: all live results, then all replays that are still to come."""
        for event in in_order(self._waiting):
            self._take_on_time(event)
        self._waiting = []
        given = self._give_live(FOREVER_US)
        return given + self._replay_together(list(self._pending))

    def _take_late(self, event: Event) -> list[Given]:
        held = self._keys.setdefault(event.key, Held())
        if event.ts_us < self.mark_us + self.wait_us - self.bound_us:
            self.late.append((event.id, "too_late"))
            return []
        if any(self.holes.same(event, other) for other in held.late) or not self._finds_place(event, held):
            self.late.append((event.id, "no_hole"))
            return []
        held.late.append(event)
        missed = self._live.take(event)
        if not missed:
            return []
        touched = starts_in(event.ts_us - self.span_us, max(missed), self.app.advances_us[-1])
        since_us = max(self.mark_us, touched[-1] + self.span_us - self.steps + 1)
        self._pending.append(Pending(event, event.ts_us - self.span_us, touched[-1], since_us))
        return self._replay_together(self._pending[-1:]) if self.trigger == "eager" else []

    def _finds_place(self, event: Event, held: Held) -> bool:
        """Put a late event beyond the latest on-time one, or into the first hole that has room for it."""
        if not held.recent or self.holes.beyond(event, held.recent[-1]):
            held.ahead.append(event)
            return True
        for hole in held.holes:
            if not hole.full and self.holes.inside(event, hole):
                hole.filled += 1
                return True
        return False

    def _take_on_time(self, event: Event) -> None:
        self._live.take(event)
        held = self._keys.setdefault(event.key, Held())
        before = held.recent[-1] if held.recent else None
        missing = UNKNOWN if before is None else self.holes.missing(before, event)
        if missing != UNKNOWN:
            missing = max(missing, len(held.ahead))
        if missing != 0:
            held.holes.append(Hole(before, event, missing, len(held.ahead)))
            held.context += [other for other in held.recent if other not in held.context]
        held.ahead = []
        if any(hole.to_us <= event.ts_us < hole.to_us + self.span_us for hole in held.holes):
            held.context.append(event)
        held.recent = [other for other in held.recent if other.ts_us > event.ts_us - self.span_us] + [event]

    def _give_live(self, read_us: int) -> list[Given]:
        """The results of the live application when its input has come so far; those to come need nothing before it."""
        passed_us = read_us if read_us == FOREVER_US else read_us - self.span_us + self.steps
        given = []
        for key, start_us, values in self._live.results(read_us):
            if self._passed_us < start_us <= passed_us:
                self._last.setdefault(key, {})[start_us] = values
                given.append(Given(key, start_us, values, 1, self._is_final(key, start_us, live=True), False))
        self._passed_us = max(self._passed_us, passed_us)
        self._live.forget(self._passed_us)
        return given

    def _is_due(self, late: Pending, on_time: Sequence[Event]) -> bool:
        """Whether a late event is to be replayed at the end of a tick with these on-time events."""
        if self.mark_us > late.event.ts_us + self.bound_us:
            return True
        complete = late.until_us <= self._passed_us
        if self.trigger == "lazy":
            spoke = any(event.key == late.event.key for event in on_time)
            return complete and ((spoke and not self._waits_for_others(late)) or self._is_silent(late))
        if self.trigger == "eager":
            return bool(starts_in(late.done_us, min(late.until_us, self._passed_us), self.app.advances_us[-1]))
        if callable(self.trigger) and not late.fired:
            at_us = self.trigger(late.event)
            return at_us is not None and self.mark_us + self.wait_us >= at_us
        return complete

    def _waits_for_others(self, late: Pending) -> bool:
        """Whether a context of the key that overlaps with this one is not complete."""
        near = [
            other
            for other in self._pending
            if other.event.key == late.event.key and abs(other.event.ts_us - late.event.ts_us) < 2 * self.span_us
        ]
        return any(other.until_us > self._passed_us for other in near)

    def _is_silent(self, late: Pending) -> bool:
        """Whether nothing of the key will come on time: a period has passed since it might, and two since it did."""
        recent = self._keys[late.event.key].recent
        latest_us = recent[-1].ts_us if recent else NEVER_US
        return self.mark_us >= max(late.since_us + self.pace_us, latest_us + 2 * self.pace_us)

    def _replay_together(self, due: list[Pending]) -> list[Given]:
        """Replay late events by key and time; those whose contexts overlap are one context."""
        contexts: list[list[Pending]] = []
        if self.trigger == "eager" and not self.retract:
            self._repeat_all(due)
        for late in sorted(due, key=lambda late: (late.event.key, late.event.ts_us, late.event.id)):
            late.fired = True
            last = contexts[-1][-1].event if contexts else None
            if last and last.key == late.event.key and late.event.ts_us - last.ts_us < 2 * self.span_us:
                contexts[-1].append(late)
            else:
                contexts.append([late])
        given = [given for context in contexts for given in self._replay(context)]
        for late in due:
            late.done_us = min(late.until_us, max(late.done_us, self._passed_us))
        self._pending = [late for late in self._pending if late.done_us < late.until_us]
        return given

    def _repeat_all(self, due: list[Pending]) -> None:
        """As in the paper, an eager replay that comes when the context is complete gives everything again."""
        for late in due:
            if late.until_us <= self._passed_us:
                late.done_us = late.event.ts_us - self.span_us

    def _replay(self, late: list[Pending]) -> list[Given]:
        """Run the application on the context of these late events, and give what they affect."""
        key, span_us, events = late[0].event.key, self.span_us, [each.event for each in late]
        held = self._keys[key].events()
        context = in_order(t for t in held if any(m.ts_us - span_us < t.ts_us < m.ts_us + span_us for m in events))
        results = self.app(context) if self.replica is None else self.replica.run(context)
        found = {result.start_us: result.values for result in results}
        last = self._last.setdefault(key, {})
        given = []
        for start_us in sorted({*found, *last}):
            if start_us <= self._passed_us and any(each.touches(start_us) for each in late):
                given += self._changes(key, start_us, last.get(start_us), found.get(start_us))
        return given

    def _changes(
        self, key: int, start_us: int, old: tuple[Any, ...] | None, new: tuple[Any, ...] | None
    ) -> list[Given]:
        """What is given when a replay finds `new` where `old` was given last."""
        final = self._is_final(key, start_us, live=False)
        given = []
        self.duplicates += old == new
        if self.retract and old is not None and old != new:
            del self._last[key][start_us]
            given.append(Given(key, start_us, old, -1, final, True))
        if new is not None and (old != new or not self.retract):
            self._last[key][start_us] = new
            given.append(Given(key, start_us, new, 1, final, True))
        return given

    def _is_final(self, key: int, start_us: int, *, live: bool) -> bool:
        """Whether no late event can change a result any more; the live application may lack some that came already."""
        held, end_us = self._keys.setdefault(key, Held()), start_us + self.span_us
        if live and any(late.event.key == key and late.touches(start_us) for late in self._pending):
            return False
        open_hole = any(not hole.full and self.holes.touches(hole, start_us, end_us) for hole in held.holes)
        if held.recent and held.recent[-1].ts_us >= end_us and not open_hole:
            return True
        return end_us - 1 < self.mark_us - self.bound_us

    def _remove(self) -> None:
        """Forget what no late event can need any more."""
        if self.mark_us == NEVER_US:
            return
        floor_us = self.mark_us - self.bound_us - 2 * self.span_us
        for held in self._keys.values():
            held.recent = [event for event in held.recent if event.ts_us >= floor_us]
            held.context = [event for event in held.context if event.ts_us >= floor_us]
            held.late = [event for event in held.late if event.ts_us >= floor_us]
            held.holes = [hole for hole in held.holes if hole.to_us >= self.mark_us - self.bound_us]


class Replica:
    """The second instance of the application (6.4): contexts of a key, one after the other, in shifted time."""

    def __init__(self, app: Application, step_us: int, span_us: int) -> None:
        self.app, self.step_us, self.span_us = app, step_us, span_us
        self.shifts: list[int] = []
        self._fed: dict[int, list[Event]] = {}

    def run(self, context: list[Event]) -> list[Result]:
        """Shift a context beyond the last one of its key, run the application on both, shift the results back."""
        fed = self._fed.get(context[0].key, [])
        most_us = max((event.ts_us for event in fed), default=0)
        shift_us = self.shift(context[0].ts_us, most_us)
        moved = [event._replace(ts_us=event.ts_us + shift_us) for event in context]
        self.shifts.append(shift_us)
        self._fed[context[0].key] = moved
        results = [result._replace(start_us=result.start_us - shift_us) for result in self.app(fed + moved)]
        return [result for result in results if result.start_us > context[0].ts_us - self.span_us]

    def shift(self, least_us: int, most_us: int) -> int:
        """The smallest multiple of the step that moves `least` more than a span beyond `most`."""
        return ((most_us + self.span_us - least_us) // self.step_us + 1) * self.step_us


def consolidated(given: Sequence[Given]) -> dict[tuple[int, int], tuple[Any, ...]]:
    """The results that stand after all changes, by key and start; each stands once."""
    counts: Counter[Result] = Counter()
    for change in given:
        counts[Result(change.key, change.start_us, change.values)] += change.change
    assert set(counts.values()) <= {0, 1}
    standing = [result for result, count in counts.items() if count]
    found = {(result.key, result.start_us): result.values for result in standing}
    assert len(found) == len(standing)
    return found


def last_given(given: Sequence[Given]) -> dict[tuple[int, int], tuple[Any, ...]]:
    """The last result given for each key and start."""
    return {(result.key, result.start_us): result.values for result in given if result.change > 0}


class Classes(NamedTuple):
    """How many results of each class there are (section 4); `spurious` is ours: not in the sorted run at all."""

    exact: int
    omitted: int
    different: int
    duplicate: int
    spurious: int


def classify(given: Sequence[Given], expected: Sequence[Result]) -> Classes:
    """The classes of the results given, none of them void, against those of the sorted run."""
    right = {(result.key, result.start_us): result.values for result in expected}
    counts: Counter[str] = Counter()
    exact: set[tuple[int, int]] = set()
    for result in given:
        place = (result.key, result.start_us)
        if place not in right:
            counts["spurious"] += 1
        elif result.values != right[place]:
            counts["different"] += 1
        else:
            counts["duplicate" if place in exact else "exact"] += 1
            exact.add(place)
    counts["omitted"] = len(right.keys() - {(result.key, result.start_us) for result in given})
    return Classes(**{name: counts[name] for name in Classes._fields})
