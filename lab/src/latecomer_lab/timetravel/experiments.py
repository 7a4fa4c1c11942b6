"""`latecomer reproduce timetravel`: TinTiN's evaluation (Tables 2 and 3, Figure 5) on made readings of smart meters.

Readings are made day by day and pushed micro-batch by micro-batch, a day each; all forms of some thousand meters run
side by side and are scored, then those of the next: no more than that is in memory. Without Spark, but for `--spark`.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from itertools import islice

import pyarrow as pa

from latecomer.contract import Settings
from latecomer.disorder.presets.meters import Meters
from latecomer.errors import InputError, must
from latecomer.events import EventBatch
from latecomer.report.shape import Report
from latecomer.runner import header_of
from latecomer.timetravel import LAZY
from latecomer_lab.timetravel import on_spark
from latecomer_lab.timetravel.application import HOUR_US, KEY, KNOWN
from latecomer_lab.timetravel.data_statistics import DataStatistics, measure_readings
from latecomer_lab.timetravel.figures import rows_of
from latecomer_lab.timetravel.forms import (
    BOUND,
    FRESH,
    SORTED,
    TRIGGERS,
    alert_forms,
    fresh_form,
    in_order_form,
    latency_us,
    plain_forms,
)
from latecomer_lab.timetravel.machines import Followed, Follower, batch_of, pieces
from latecomer_lab.timetravel.readings import days_arriving, days_sorted
from latecomer_lab.timetravel.scoring import OBSERVED_US, Scores, Touched, alerts_of
from latecomer_lab.timetravel.targets import targets
from latecomer_lab.timetravel.timing import HOURS_TIMED, Piece, Start, Timed, time_forms

_TRUTH, _PLAIN = "truth", ", nothing voided"
FULL = (10_000, 20_000, 30_000, 40_000, 50_000)
LEAST_DAYS = 3

Tell = Callable[[str], None]


@dataclass(frozen=True)
class TimeTravelExperiments:
    """Sizes of a run: numbers of meters, days, runs of what is timed, and how many meters are scored at a time."""

    meters: tuple[int, ...] = (1_000,)
    days: int = 55
    seed: int = 0
    runs: int = 10
    together: int = 10_000
    spark: bool = False

    def __post_init__(self) -> None:
        if self.days < LEAST_DAYS:
            raise InputError(must("--days", f"be at least {LEAST_DAYS}", self.days, "the paper has 55"))


@dataclass(frozen=True)
class Measured:
    """What was found for a number of meters."""

    meters: int
    statistics: DataStatistics
    scores: Scores
    timed: dict[str, Timed]
    seconds: float
    peak_mb: float


@dataclass
class Found:
    """What was found for every number of meters, and on Spark."""

    sizes: list[Measured] = field(default_factory=list)
    spark: on_spark.OnSpark | None = None

    @property
    def largest(self) -> Measured:
        """That of the most meters."""
        return self.sizes[-1]


def run(settings: TimeTravelExperiments, tell: Tell) -> tuple[Report, Found]:
    """All experiments."""
    found = Found()
    for count in settings.meters:
        found.sizes.append(measure(settings, count, tell))
    if settings.spark:
        found.spark = on_spark.run(settings, tell)
    report = Report("timetravel", {**asdict(settings), "bound": BOUND})
    report.results = [row for each in found.sizes for row in rows_of(each)]
    report.targets = list(targets(found.largest))
    if found.spark is not None:
        report.results += found.spark.rows
        report.targets += found.spark.targets
    return report, found


def measure(settings: TimeTravelExperiments, count: int, tell: Tell) -> Measured:
    """Everything for one number of meters."""
    started, meters = time.perf_counter(), Meters(count, settings.days, settings.seed)
    tell(f"{count:,} meters: statistics of the readings")
    statistics, scores, timed = measure_readings(meters), Scores(), dict[str, Timed]()
    for first in range(0, count, settings.together):
        group = Group(meters, first, min(first + settings.together, count), statistics)
        scores.add(group.run(tell))
        if first == 0:
            timed = time_forms(group.starts, settings.runs, tell)
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1_024
    return Measured(count, statistics, scores, timed, time.perf_counter() - started, peak_mb)


class Group:
    """Some meters of a stream, in all forms."""

    def __init__(self, meters: Meters, first: int, stop: int, statistics: DataStatistics) -> None:
        self._meters, self._first, self._stop, self._statistics = meters, first, stop, statistics
        key = statistics.late_readings[KEY].to_numpy()
        self._late = statistics.late_readings.filter(pa.array((key >= first) & (key < stop))).combine_chunks()
        self._touched = Touched(self._late, first, stop - first)
        self.starts: dict[str, Start] = {}

    def run(self, tell: Tell) -> Scores:
        """Push all readings into all forms, and score what they gave."""
        which = f"meters {self._first:,} to {self._stop - 1:,}"
        in_order = {SORTED: in_order_form(), _TRUTH: in_order_form(alerts_only=False)}
        found = self._push(in_order, days_sorted(self._meters), lambda day: tell(f"{which}, sorted, {day}"))
        truth, forms = found.pop(_TRUTH).given, alert_forms()
        arriving = {**forms, **{name + _PLAIN: form for name, form in plain_forms().items()}}
        found |= self._push(arriving, days_arriving(self._meters), lambda day: tell(f"{which}, arriving, {day}"))
        self.starts[FRESH] = self.starts[LAZY]._replace(form=fresh_form())
        return self._scored({SORTED: in_order[SORTED], **forms}, found, truth)

    def _push(self, forms: dict[str, Settings], days: Iterator[pa.Table], tell: Tell) -> dict[str, Followed]:
        """Push readings day by day; before the last day but one, keep what is timed."""
        followers = {name: self._follower(name, form) for name, form in forms.items()}
        for number, readings in enumerate(days, 1):
            tell(f"day {number} of {self._meters.days}")
            day = self._piece(batch_of(readings))
            if number == self._meters.days - 1:
                hours = [self._piece(hour) for hour in islice(pieces(readings, HOUR_US), HOURS_TIMED)]
                for name in (name for name in forms if not _is_known(name)):
                    self.starts[name] = Start(forms[name], followers[name].save(), day, hours)
            for follower in followers.values():
                follower.push(*day)
        return {name: follower.finish() for name, follower in followers.items()}

    def _follower(self, name: str, form: Settings) -> Follower:
        return Follower(form, KNOWN, self._touched.keep) if _is_known(name) else Follower(form)

    def _piece(self, batch: EventBatch) -> Piece:
        """The readings of these meters with the progress of all."""
        meter = batch.rows.column(KEY).to_numpy()
        return Piece(batch.filter((meter >= self._first) & (meter < self._stop)), header_of(batch))

    def _scored(self, forms: dict[str, Settings], found: dict[str, Followed], truth: pa.Table) -> Scores:
        scores, mark_us = Scores(alerts_of(truth).num_rows), self._statistics.mark_us
        for name, form in forms.items():
            scores.score_alerts(name, found[name], truth, mark_us - OBSERVED_US - latency_us(form))
        for name in TRIGGERS:
            scores.score_plain(name, found[name + _PLAIN].given, truth, self._late, mark_us)
        return scores


def _is_known(name: str) -> bool:
    """Whether a form gives what is known of every day, not alerts alone."""
    return name == _TRUTH or name.endswith(_PLAIN)
