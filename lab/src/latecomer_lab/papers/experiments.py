"""The experiments of `latecomer reproduce all`: how each is run, quickly or at the paper's size, and what it says."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from latecomer.report.shape import Report
from latecomer_lab.papers import sayings
from latecomer_lab.papers.catalogue import Entry
from latecomer_lab.papers.plain_page import plain_page
from latecomer_lab.statements import Statement

Tell = Callable[[str], None]


class Made(NamedTuple):
    """What an experiment gave: its report, its page, and what the paper says beside it."""

    report: Report
    page: str
    statements: list[Statement]


class Done(NamedTuple):
    """An experiment that has ended."""

    entry: Entry
    made: Made
    seconds: float


def run(chosen: Sequence[Entry], *, quick: bool, tell: Tell) -> Iterator[Done]:
    """One experiment after the other."""
    for each in chosen:
        began = time.perf_counter()
        made = MAKERS[each.name](quick, _within(each.name, tell))
        yield Done(each, made, time.perf_counter() - began)


def _within(name: str, tell: Tell) -> Tell:
    return lambda text: tell(f"{name}: {text}")


def _disorder(quick: bool, tell: Tell) -> Made:
    from latecomer_lab.papers.factor import FactorBench
    from latecomer_lab.papers.factor import run as run_factors

    report = run_factors(FactorBench(events=20_000 if quick else 200_000), tell)
    said = sayings.of_disorder(report)
    return Made(report, plain_page("latecomer reproduce disorder", "Disorder, made to measure", report, said), said)


def _logs(quick: bool, tell: Tell) -> Made:
    """Counts of 20 million events cannot be had from fewer: quick is the same."""
    from latecomer_lab.measures import MeasuresBench, run_presets

    report = run_presets(MeasuresBench(), tell)
    said = sayings.of_logs(report)
    return Made(report, plain_page("latecomer reproduce table1", "Two logs, and their disorder", report, said), said)


def _sort(quick: bool, tell: Tell) -> Made:
    from latecomer_lab.sorting.bench import QUICK, SortBench
    from latecomer_lab.sorting.bench import run as run_sort
    from latecomer_lab.sorting.page import to_html

    report, found = run_sort(QUICK if quick else SortBench(), tell)
    return Made(report, to_html(report, found), sayings.of_sort(report))


def _tiers(quick: bool, tell: Tell) -> Made:
    from latecomer_lab.tiers import TiersBench
    from latecomer_lab.tiers import run as run_tiers

    report = run_tiers(TiersBench(events=4_000_000, rounds=1) if quick else TiersBench(), tell)
    said = sayings.of_tiers(report)
    return Made(report, plain_page("latecomer reproduce figure10", "Several latencies at once", report, said), said)


def _slack(quick: bool, tell: Tell) -> Made:
    from latecomer_lab.slack.experiments import SlackExperiments
    from latecomer_lab.slack.experiments import run as run_slack
    from latecomer_lab.slack.page import to_html

    report, found = run_slack(SlackExperiments(days=1, quick=True) if quick else SlackExperiments(), tell)
    return Made(report, to_html(report, found), sayings.of_slack(report))


def _optimistic(quick: bool, tell: Tell) -> Made:
    from latecomer_lab.optimistic.experiments import QUICK, OptimisticExperiments
    from latecomer_lab.optimistic.experiments import run as run_optimistic
    from latecomer_lab.optimistic.page import to_html
    from latecomer_lab.optimistic.statements import statements

    report, found = run_optimistic(QUICK if quick else OptimisticExperiments(), tell)
    return Made(report, to_html(report, found), statements(found))


def _timetravel(quick: bool, tell: Tell) -> Made:
    from latecomer_lab.timetravel.experiments import FULL, TimeTravelExperiments
    from latecomer_lab.timetravel.experiments import run as run_timetravel
    from latecomer_lab.timetravel.page import to_html
    from latecomer_lab.timetravel.statements import statements

    settings = TimeTravelExperiments(meters=(300,), runs=2) if quick else TimeTravelExperiments(meters=FULL)
    report, _ = run_timetravel(settings, tell)
    return Made(report, to_html(report), statements(report))


MAKERS: dict[str, Callable[[bool, Tell], Made]] = {
    "disorder": _disorder,
    "table1": _logs,
    "figure7": _sort,
    "figure10": _tiers,
    "slack": _slack,
    "optimistic": _optimistic,
    "timetravel": _timetravel,
}
