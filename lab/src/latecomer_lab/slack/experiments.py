"""`latecomer reproduce slack`: Slack-ScaleGate's evaluation in simulated time, its tuner on days that it never saw.

Every scenario is calibrated on nine days with fixed slacks, and then tuned on others. Days and models are worked on in
two processes with one thread each, so that fits and decisions can be timed. With `live` a query runs on Spark too, when
everything else is done.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field

from latecomer.report.shape import Report
from latecomer.slack.observation import History
from latecomer_lab.slack.calibration import FIRST_DAY, RUNS, calibrate
from latecomer_lab.slack.figures import (
    Row,
    figure_1,
    figure_2,
    figure_3,
    figure_4,
    figure_12,
    figure_12_curves,
    run_thresholds,
    table_1,
)
from latecomer_lab.slack.prediction import Score, score_models
from latecomer_lab.slack.simulation import INTERVAL_US
from latecomer_lab.slack.streams import NAMES, TICK_US, scenario
from latecomer_lab.slack.structures import figure_8, figures_9_and_10
from latecomer_lab.slack.targets import day_targets, live_targets, score_targets, structure_targets
from latecomer_lab.slack.tuning import Day, run_day

FASTER = "fast"
_QUICK_SECONDS = {"zipf": 140, "constant": 140, "rush": 240, "graph": 140}
_PROCESSES = 2
_ONE_THREAD = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")

Tell = Callable[[str], None]


@dataclass(frozen=True)
class SlackExperiments:
    """Sizes of a run; a day is a seed."""

    seed: int = 0
    days: int = 3
    quick: bool = False
    live: bool = False

    def seconds(self, name: str) -> int | None:
        """How long a scenario lasts, if not as long as usual."""
        return _QUICK_SECONDS.get(name) if self.quick else None

    @property
    def calibrated_from(self) -> int:
        """The first day that models learn from."""
        return self.seed + FIRST_DAY


@dataclass
class Found:
    """All that was found, for tables and pictures."""

    days: dict[str, list[Day]] = field(default_factory=dict)
    scores: dict[str, list[Score]] = field(default_factory=dict)
    curves: list[Row] = field(default_factory=list)  # Figures 1 to 4 and 11
    structures: list[Row] = field(default_factory=list)  # Figures 8 to 10
    live: list[Row] = field(default_factory=list)


def run(settings: SlackExperiments, tell: Tell) -> tuple[Report, Found]:
    """All experiments."""
    tell("Figures 1 to 4 and 8 to 11")
    found = Found(curves=_curves(settings), structures=_structures(settings))
    with _workers() as pool:
        tell(f"calibrating on {RUNS} days for each of {', '.join(NAMES)}")
        histories = dict(zip(NAMES, pool.map(_history, NAMES, [settings] * len(NAMES)), strict=True))
        days = {job: pool.submit(_day, *job, histories[job[0]], settings) for job in _jobs(settings)}
        scores = {name: pool.submit(_scores, name, histories[name], settings) for name in NAMES}
        if not settings.quick:
            days[FASTER, 1] = pool.submit(_day, FASTER, 1, histories["zipf"], settings)
        for (name, number), day in days.items():
            tell(f"{name}, day {number}")
            found.days.setdefault(name, []).append(day.result())
        for name, score in scores.items():
            tell(f"Table 1 on {name}")
            found.scores[name] = score.result()
    if settings.live:
        found.live = _live(tell)
    return make_report(settings, found), found


def _structures(settings: SlackExperiments) -> list[Row]:
    if settings.quick:
        return [*figure_8(2_000), *figures_9_and_10(5_000, 2, settings.seed)]
    return [*figure_8(), *figures_9_and_10(seed=settings.seed)]


def _live(tell: Tell) -> list[Row]:
    from latecomer_lab.slack.live import Live, live_rows, run_live  # with Spark

    return live_rows(Live(), run_live(Live(), tell))


def _jobs(settings: SlackExperiments) -> list[tuple[str, int]]:
    """Scenarios and days, the longest first."""
    return [(name, number) for name in reversed(NAMES) for number in range(1, settings.days + 1)]


def _history(name: str, settings: SlackExperiments) -> History:
    return calibrate(name, settings.calibrated_from, seconds=settings.seconds(name))


def _day(name: str, number: int, history: History, settings: SlackExperiments) -> Day:
    others = number == 1 and not settings.quick
    return run_day(name, settings.seed + number, history, others=others, seconds=settings.seconds(name))


def _scores(name: str, history: History, settings: SlackExperiments) -> list[Score]:
    return score_models(name, history, settings.seed, seconds=settings.seconds(name))


def _curves(settings: SlackExperiments) -> list[Row]:
    zipf, constant = (scenario(name, settings.seed + 1, settings.seconds(name)) for name in ("zipf", "constant"))
    runs = run_thresholds(zipf)
    return figure_1(zipf) + figure_1(constant) + figure_2(runs) + figure_3(runs) + figure_4(runs)


@contextmanager
def _workers() -> Iterator[ProcessPoolExecutor]:
    """Processes whose arithmetic has one thread each."""
    before = {name: os.environ.get(name) for name in _ONE_THREAD}
    os.environ.update(dict.fromkeys(_ONE_THREAD, "1"))
    try:
        with ProcessPoolExecutor(_PROCESSES, multiprocessing.get_context("spawn")) as pool:
            yield pool
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def make_report(settings: SlackExperiments, found: Found) -> Report:
    """All results, and what was to be reached."""
    report = Report("slack", {**asdict(settings), "tick_us": TICK_US, "interval_us": INTERVAL_US})
    report.settings["calibrated_days"] = [settings.calibrated_from, settings.calibrated_from + RUNS - 1]
    report.results = figure_12(day for days in found.days.values() for day in days)
    report.results += table_1(score for scores in found.scores.values() for score in scores)
    report.results += [*found.curves, *found.structures, *found.live]
    for days in found.days.values():
        report.results += figure_12_curves(days[0])
    wanted = {name: days for name, days in found.days.items() if name in NAMES}
    report.targets = [*day_targets(wanted), *score_targets(found.scores)]
    report.targets += [*structure_targets(found.structures), *live_targets(found.live)]
    return report
