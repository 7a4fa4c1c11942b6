"""Playing a recording: what may be asked for, and which of its rows are due by a clock.

Invariants
1. Nothing is due before its time: the start plus the distance from the first event, divided by the speed.
2. A tick is due, as a whole, when its last event is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from latecomer.disorder.ticks import Ticks
from latecomer.durations import duration_us
from latecomer.errors import InputError, must

_OPTIONS = ("path", "arrival", "speed", "tick", "maxRowsPerBatch", "end", "source", "partitions")


@dataclass(frozen=True)
class Options:
    """What is played, and how; without a speed everything is due at once."""

    path: str
    arrival: str
    speed: Fraction | None
    tick_us: int
    max_rows: int | None
    end: str | None
    source: str | None
    partitions: int


def read_options(given: Mapping[str, str]) -> Options:
    """Read the options of the source as Spark hands them on: as text, in any case."""
    found = {name.lower(): value for name, value in given.items()}
    for name in found:
        if name not in [known.lower() for known in _OPTIONS]:
            raise InputError(must("options of playback", f"be among {', '.join(_OPTIONS)}", name, "correct the name"))
    path = found.get("path", "")
    if not path:
        advice = "give it as .load(path) or .option('path', ...)"
        raise InputError(must("path", "be a Parquet file or a folder of them", path, advice))
    return Options(
        path=path,
        arrival=found.get("arrival", "arrival"),
        speed=_speed(found.get("speed", "1")),
        tick_us=duration_us(found.get("tick", "100 ms"), "tick"),
        max_rows=_count(found, "maxRowsPerBatch"),
        end=found.get("end"),
        source=found.get("source"),
        partitions=_count(found, "partitions") or 1,
    )


def _speed(text: str) -> Fraction | None:
    if text.strip().lower() == "max":
        return None
    try:
        speed = Fraction(text)
    except (ValueError, ZeroDivisionError):
        speed = Fraction(0)
    if speed <= 0:
        raise InputError(must("speed", "be a number above zero, or 'max'", text, "1 is the speed of the recording"))
    return speed


def _count(found: Mapping[str, str], name: str) -> int | None:
    text = found.get(name.lower())
    if text is None:
        return None
    if not re.fullmatch(r"\s*0*[1-9][0-9]{0,17}\s*", text):
        raise InputError(must(name, "be a whole number above zero", text, "give a number such as 10000"))
    return int(text)


class Player:
    """Says how many rows are due.

    The clock (nanoseconds) starts with the first question, at the row asked about: that row is due at once.
    """

    def __init__(self, ticks: Ticks, speed: Fraction | None, clock: Callable[[], int]) -> None:
        self._ticks, self._speed, self._clock = ticks, speed, clock
        self.started_ns: int | None = None
        self.first_us = 0

    def wait(self) -> None:
        """Start the clock anew with the next question."""
        self.started_ns = None

    def play_all(self) -> None:
        """From now on everything is due."""
        self._speed = None

    def due(self, start: int, limit: int | None = None) -> int:
        """The row to play up to, from `start`: whole ticks, at most `limit` rows but at least a tick that is due."""
        if self.started_ns is None and start < self._ticks.rows:
            self.first_us, self.started_ns = self._ticks.arrival_us(start), self._clock()
        stop = self.reached()
        if limit is not None and stop - start > limit:
            cut = self._ticks.border(start + limit)
            stop = cut if cut > start else min(stop, self._ticks.end_of_tick(start))
        return max(start, stop)

    def reached(self) -> int:
        """The row up to which everything is due now."""
        if self._speed is None or self.started_ns is None:
            return self._ticks.rows
        passed_us = (self._clock() - self.started_ns) * self._speed.numerator // (self._speed.denominator * 1_000)
        return self._ticks.border(self._ticks.rows_until(self.first_us + passed_us))
