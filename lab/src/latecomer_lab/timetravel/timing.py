"""How fast each form is on a stream that has run for long: from one state, over and over.

Before the last day but one the state of every form is saved; from it that day's readings are pushed as one micro-batch
(throughput) and its first hours hour by hour (latency: how long a micro-batch takes). Forms take turns in every run.
One machine, one core, and the processor's clock: other work on a machine does not count.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from latecomer.contract import Settings
from latecomer.events import EventBatch
from latecomer.headers import Header
from latecomer_lab.timetravel.machines import Follower, Saved

HOURS_TIMED = 4


class Piece(NamedTuple):
    """Readings of some meters, and the progress of the whole stream."""

    batch: EventBatch
    header: Header


class Start(NamedTuple):
    """A form, its state, and what comes next: a day, and the first hours of it one by one."""

    form: Settings
    saved: Saved
    day: Piece
    hours: list[Piece]


@dataclass
class Timed:
    """Of each run the readings a second, the seconds of the day, and the mean of a micro-batch of an hour."""

    days_s: list[float] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)
    latencies_s: list[float] = field(default_factory=list)

    @property
    def rate(self) -> float:
        """Readings a second, the mean of all runs."""
        return statistics.mean(self.rates)

    @property
    def day_s(self) -> float:
        """Seconds of a micro-batch of a day, the mean of all runs."""
        return statistics.mean(self.days_s)

    @property
    def latency_s(self) -> float:
        """Seconds of a micro-batch of an hour, the mean of all runs."""
        return statistics.mean(self.latencies_s)


def time_forms(starts: Mapping[str, Start], runs: int, tell: Callable[[str], None]) -> dict[str, Timed]:
    """Every form, run after run; one more run before them is not counted."""
    timed = {name: Timed() for name in starts}
    for number in range(runs + 1):
        tell(f"speed, run {number} of {runs}")
        for name, start in starts.items():
            follower = Follower(start.form)
            follower.go_back(start.saved)
            day_s = follower.push(*start.day)
            follower.go_back(start.saved)
            hours_s = [follower.push(*hour) for hour in start.hours]
            if number:
                timed[name].days_s.append(day_s)
                timed[name].rates.append(len(start.day.batch) / day_s)
                timed[name].latencies_s.append(statistics.mean(hours_s))
    return timed
