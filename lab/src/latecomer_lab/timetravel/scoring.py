"""What the forms give, scored for some meters at a time: meters are independent but for the mark, which is everyone's.

Classes are those of section 4: what was given (exact, different, duplicate, spurious) is counted where nothing is
voided and every replay gives its results again; what is left in the end (omitted, different, spurious), where they are.

Delays are differences of marks, of late readings that come long enough before the end of the stream. A reading touches
the results within reach before it; of those the sorted run must have one. Its first answer is a replay of any of them,
or a result of the live instance that is right. Exact is when all of them are right for good. That cannot be before all
late readings that touch them have come and the live instance has given them: from then on the third delay counts. For
lazy, which replays once for all contexts that overlap, from when all of those that have come are complete.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from latecomer._jit import kernel
from latecomer.events import FOREVER_US, NEVER_US, Bools, Int64s, int64_view
from latecomer.quality import (
    MARK,
    Classes,
    ResultColumns,
    classify,
    exact_marks,
    exact_rows,
    latest_marks,
    logical_latencies,
    responsiveness,
)
from latecomer.timetravel import LAZY
from latecomer.windows import WINDOW_START
from latecomer_lab.timetravel.application import ALERTS, HOUR_US, KEY, TIME, is_alert
from latecomer_lab.timetravel.forms import DAY_US, REACH
from latecomer_lab.timetravel.machines import RESULTS, Followed, is_replayed

OBSERVED_US = REACH.us + DAY_US  # between a reading's arrival and the end of the stream
_REACH_HOURS = REACH.us // HOUR_US
_CLOSES_AT, _LATE = "closes_at", ResultColumns(TIME, (KEY,))

T = TypeVar("T")


class Held(NamedTuple):
    """Readings held: the most at the end of a day, and at the end of the last."""

    most: int
    at_end: int


class Delays(NamedTuple):
    """Of late readings: from arrival to the first answer and to exact results, and to those from when they can be."""

    first_us: Int64s
    exact_us: Int64s
    after_us: Int64s


@dataclass
class Scores:
    """All figures by form; late readings that touch no result, and those that came too near the end, are counted."""

    alerts: int = 0
    touching_none: int = 0
    unobserved: int = 0
    classes: dict[str, Classes] = field(default_factory=dict)
    latencies_us: dict[str, Int64s] = field(default_factory=dict)
    delays: dict[str, Delays] = field(default_factory=dict)
    held: dict[str, Held] = field(default_factory=dict)
    refused: dict[str, int] = field(default_factory=dict)

    def add(self, other: Scores) -> None:
        """Those of other meters."""
        self.alerts += other.alerts
        self.touching_none += other.touching_none
        self.unobserved += other.unobserved
        _merge(self.classes, other.classes, lambda one, two: Classes(*map(sum, zip(one, two, strict=True))))
        _merge(self.latencies_us, other.latencies_us, lambda one, two: np.concatenate([one, two]))
        _merge(self.delays, other.delays, lambda one, two: Delays(*map(np.concatenate, zip(one, two, strict=True))))
        _merge(self.held, other.held, lambda one, two: Held(one.most + two.most, one.at_end + two.at_end))
        _merge(self.refused, other.refused, lambda one, two: one + two)

    def score_alerts(self, name: str, found: Followed, truth: pa.Table, before_us: int) -> None:
        """A form that voids what is wrong, or has no replays; `before_us`: latencies count of alerts before that."""
        wanted, given = alerts_of(truth), found.given
        self.classes[name] = classify(given, wanted, RESULTS)
        self.held[name], self.refused[name] = Held(found.most_held, found.last_held), found.refused
        early = pc.less(wanted[WINDOW_START].cast(pa.int64()), before_us)
        in_time = given.filter(pc.less(given[MARK], FOREVER_US))
        self.latencies_us[name] = logical_latencies(in_time, wanted.filter(early), RESULTS)

    def score_plain(self, name: str, plain: pa.Table, truth: pa.Table, late: pa.Table, mark_us: int) -> None:
        """The same form where every replay gives its results again: what is counted as given, and delays."""
        given = classify(alerts_of(plain, MARK), alerts_of(truth), RESULTS)
        kept = self.classes[name]
        self.classes[name] = given._replace(
            omitted=kept.omitted, different_left=kept.different_left, spurious_left=kept.spurious_left
        )
        waited_for = united_marks(late) if name == LAZY else int64_view(late[MARK].combine_chunks())
        delays, touches = delays_of(plain, truth, late, waited_for)
        observed = int64_view(late[MARK].combine_chunks()) + OBSERVED_US <= mark_us
        chosen = np.flatnonzero(touches & observed)
        self.delays[name] = Delays(*(each[chosen] for each in delays))
        self.unobserved = int((~observed).sum())
        self.touching_none = int((observed & ~touches).sum())


def alerts_of(rows: pa.Table, *others: str) -> pa.Table:
    """The alerts among what is known of days."""
    return rows.filter(is_alert(rows)).select([*ALERTS.names, *others])


def delays_of(plain: pa.Table, truth: pa.Table, late: pa.Table, waited_for_us: Int64s) -> tuple[Delays, Bools]:
    """The delays of late readings, and which of them touch a result of the sorted run."""
    met_us = int64_view(late[MARK].combine_chunks())
    answering = pc.or_(is_replayed(plain), pa.array(exact_rows(plain, truth, RESULTS)))
    answers = plain.filter(pc.and_(answering, pc.less(plain[MARK], FOREVER_US)))
    first_us = responsiveness(late, answers, RESULTS, REACH.us, late_time=TIME, first=True)
    exact_us, ready_us = (
        latest_marks(late, with_marks(truth, marks_us), RESULTS, REACH.us, late_time=TIME)
        for marks_us in (exact_marks(plain, truth, RESULTS), ready_marks(truth, late, waited_for_us))
    )
    touches = exact_us != NEVER_US
    since = (
        np.where(exact_us == FOREVER_US, FOREVER_US, exact_us - np.minimum(from_us, exact_us))
        for from_us in (met_us, ready_us)
    )
    return Delays(first_us, *since), touches


def ready_marks(truth: pa.Table, late: pa.Table, waited_for_us: Int64s) -> Int64s:
    """For each result the mark by which it can be right: what is waited for has come, and its windows are over."""
    start_us = int64_view(truth[WINDOW_START].combine_chunks())
    closes = pa.table({KEY: truth[KEY], _CLOSES_AT: start_us + (REACH.us - 1), MARK: start_us})
    waited_for = late.select([TIME, KEY]).append_column(MARK, pa.array(waited_for_us))
    arrived_us = latest_marks(closes, waited_for, _LATE, REACH.us, late_time=_CLOSES_AT)
    return np.maximum(arrived_us, start_us + REACH.wait_us)


def united_marks(late: pa.Table) -> Int64s:
    """For each late reading the mark by which it and all that have come and overlap with it are complete."""
    key, ts_us, met_us = (int64_view(late[name].combine_chunks().cast(pa.int64())) for name in (KEY, TIME, MARK))
    order = np.lexsort((ts_us, key))
    found = np.empty(len(order), dtype=np.int64)
    unite_marks(key[order], ts_us[order], met_us[order], (REACH.wait_us, 2 * REACH.us), found)
    marks_us = np.empty(len(order), dtype=np.int64)
    marks_us[order] = found
    return marks_us


@kernel
def unite_marks(key: Int64s, ts_us: Int64s, met_us: Int64s, wait_and_apart_us: tuple[int, int], found: Int64s) -> None:
    """The loop of `united_marks`: readings by key and time; wait until none that overlaps is incomplete."""
    wait_us, apart_us = wait_and_apart_us
    for i in range(len(key)):
        mark_us = max(met_us[i], ts_us[i] + wait_us)
        j = i + 1  # those before it are complete before it
        while j < len(key) and key[j] == key[i] and ts_us[j] - ts_us[i] < apart_us:
            if met_us[j] <= mark_us:
                mark_us = max(mark_us, ts_us[j] + wait_us)
            j += 1
        found[i] = mark_us


def with_marks(results: pa.Table, mark_us: Int64s) -> pa.Table:
    """The places of results with marks."""
    return results.select([WINDOW_START, KEY]).append_column(MARK, pa.array(mark_us))


class Touched:
    """Which days' results late readings touch, by meter and hour."""

    def __init__(self, late: pa.Table, first_meter: int, meters: int) -> None:
        hour = int64_view(late[TIME].combine_chunks()) // HOUR_US
        self._first_hour, self._first_meter = int(hour.min(initial=FOREVER_US)) - _REACH_HOURS, first_meter
        hour = hour - self._first_hour
        edges = np.zeros((meters, int(hour.max(initial=0)) + 2), dtype=np.int16)
        meter = late[KEY].to_numpy() - first_meter
        np.add.at(edges, (meter, hour - (_REACH_HOURS - 1)), 1)
        np.add.at(edges, (meter, hour + 1), -1)
        self._touched: Bools = np.cumsum(edges, axis=1) > 0

    def keep(self, rows: pa.RecordBatch) -> pa.Array:
        """Which results are alerts or touched by a late reading."""
        hour = int64_view(rows.column(WINDOW_START)) // HOUR_US - self._first_hour
        inside = (hour >= 0) & (hour < self._touched.shape[1])
        meter = rows.column(KEY).to_numpy() - self._first_meter
        touched = inside & self._touched[meter, np.where(inside, hour, 0)]
        return pc.or_(is_alert(rows), pa.array(touched))


def _merge(into: dict[str, T], other: dict[str, T], join: Callable[[T, T], T]) -> None:
    for name, value in other.items():
        into[name] = join(into[name], value) if name in into else value
