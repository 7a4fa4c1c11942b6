"""What all kinds of time travel have in common: which late events are repaired, how far back, and when."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from typing import ClassVar

from latecomer.contract import Settings
from latecomer.durations import Duration, duration_text, duration_us
from latecomer.errors import InputError, must
from latecomer.events import FOREVER_US, NEVER_US, Int64s
from latecomer.progress import Timeline
from latecomer.timetravel.holes import Holes
from latecomer.timetravel.reach import Reach
from latecomer.timetravel.triggers import Trigger, check_trigger


class Repairs(Settings):
    """Settings that say which late events are repaired: those in holes, up to a bound, when the trigger says so."""

    latest_only: ClassVar[str | None] = "what sources that lag bring late is repaired"

    bound: Duration
    holes: Holes
    trigger: Trigger

    @property
    @abstractmethod
    def reach(self) -> Reach:
        """The windows of the application."""

    @cached_property
    def bound_us(self) -> int:
        """The bound in microseconds."""
        return duration_us(self.bound, "bound")

    @property
    def wait_us(self) -> int:
        """How long live waits for what is late, in microseconds."""
        return 0

    @cached_property
    def retention_us(self) -> int:
        """How far behind the mark an event may be and still be held: the bound and twice the reach."""
        return self.bound_us + 2 * self.reach.us

    @cached_property
    def removal_us(self) -> int:
        """How much longer what is recent of a silent key may stay, where there is much of it."""
        return max(1, self.retention_us // 16)

    @cached_property
    def pace_us(self) -> int:
        """How often a key has an event: its period, or where that is not known, how often it has a result."""
        return self.holes.pace_us or self.reach.windows[-1].advance_us

    def check_repairs(self) -> None:
        """Refuse what cannot be repaired by."""
        if not isinstance(self.holes, Holes):
            rule = "be a Period, an Enumerator, CustomHoles or Anywhere"
            raise InputError(must("holes", rule, self.holes, "e.g. every='1 hour'"))
        check_trigger(self.trigger)
        if self.bound_us < self.reach.us:
            rule = f"be at least as long as what results depend on ({duration_text(self.reach.us)}, from all windows)"
            raise InputError(must("bound", rule, self.bound, "make it longer"))

    def most_held(self, accepted_ts_us: Int64s, timeline: Timeline) -> int:
        if timeline.punctuation(1) == FOREVER_US:
            return 0
        oldest_us = int(timeline.mark_us[-1]) - self.retention_us - self.removal_us
        return int((accepted_ts_us >= oldest_us).sum())

    def punctuation(self, timeline: Timeline) -> int:
        """The time up to which results are final."""
        passed_us, mark_us = timeline.punctuation(self.bound_us + 1), int(timeline.mark_us[-1])
        if passed_us in (FOREVER_US, NEVER_US) or mark_us == NEVER_US:
            return passed_us
        return mark_us - self.bound_us - 1  # a silence gives results early, and they are repaired still
