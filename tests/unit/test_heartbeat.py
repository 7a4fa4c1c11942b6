"""Heartbeats count the time for which a query runs and asks its sources."""

from __future__ import annotations

from dataclasses import dataclass

from latecomer.spark.compat import ReadAllAvailable
from latecomer.spark.heartbeat import MOST_AT_ONCE, HeartbeatReader, most_at_once

SECOND = 1_000_000_000


@dataclass
class Clock:
    """A clock that never goes back, in nanoseconds; each process has its own zero."""

    now: int = 0

    def __call__(self) -> int:
        return self.now


class Asked:
    """A reader that Spark asks again and again; `ran` is the sum of its beats, in ticks of 100 ms."""

    def __init__(self, clock: Clock, beat: int = 0, every_us: int = 0) -> None:
        self.clock, self.offset, self.ran = clock, {"beat": beat}, 0
        self.reader = HeartbeatReader(10_000_000, 100_000, clock, most_at_once(10_000_000, every_us))
        self.after(0)

    def after(self, seconds: float) -> int:
        """The beat after so many more seconds."""
        self.clock.now += int(seconds * SECOND)
        start, self.offset = self.offset, self.reader.latestOffset(self.offset, ReadAllAvailable())
        if self.offset != start:
            self.ran += sum(
                row[0] for part in self.reader.partitions(start, self.offset) for row in self.reader.read(part)
            )
        return self.offset["beat"]


def test_a_beat_is_a_period_that_the_query_has_run() -> None:
    asked = Asked(Clock(77))
    assert [asked.after(seconds) for seconds in (9, 0.9, 0.1, 5, 5, 19, 1)] == [0, 0, 1, 1, 2, 3, 4]
    assert asked.ran == 400


def test_a_restart_goes_on_counting_where_it_was() -> None:
    first = Asked(Clock(5_000 * SECOND))
    first.after(10)
    again = Asked(Clock(3 * SECOND), first.offset["beat"])  # another machine, an hour later: its clock has another zero
    assert [again.after(seconds) for seconds in (9.9, 0.1)] == [1, 2]
    assert again.ran == 100


def test_a_process_that_stood_still_has_asked_nobody() -> None:
    asked = Asked(Clock())
    assert asked.after(3_600) == MOST_AT_ONCE
    assert asked.after(0) == MOST_AT_ONCE
    assert asked.after(10) == MOST_AT_ONCE + 1


def test_a_query_whose_micro_batches_are_rare_counts_all_of_its_time() -> None:
    asked = Asked(Clock(), every_us=600_000_000)
    assert [asked.after(600), asked.after(605), asked.after(595)] == [60, 120, 180]
    assert asked.after(24 * 3_600) == 180 + 61, "and no more where it stood still"


def test_with_available_now_no_silence_is_counted() -> None:
    asked = Asked(Clock(), 7)
    asked.reader.prepareForTriggerAvailableNow()
    assert asked.after(100) == 7


def test_periods_shorter_than_a_tick_are_not_lost() -> None:
    reader = HeartbeatReader(30_000, 100_000, Clock())
    beats = [reader.partitions({"beat": n}, {"beat": n + 1}) for n in range(100)]
    assert sum(row[0] for parts in beats for part in parts for row in reader.read(part)) == 30


def test_an_offset_that_goes_back_is_no_beat() -> None:
    reader = HeartbeatReader(10_000_000, 100_000, Clock())
    assert [row for part in reader.partitions({"beat": 9}, {"beat": 0}) for row in reader.read(part)] == [(0,)]
