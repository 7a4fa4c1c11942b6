"""The paper's statements on Figure 5, and beside each what was found here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from latecomer.report.shape import Report
from latecomer.timetravel import EAGER, LAZY
from latecomer_lab.statements import Statement
from latecomer_lab.timetravel.figures import EXACT, FIRST, LEAST
from latecomer_lab.timetravel.forms import DISCARD, FRESH, WAIT
from latecomer_lab.timetravel.paper import FIGURE_5
from latecomer_lab.timetravel.show import text

Row = dict[str, Any]


def statements(report: Report) -> list[Statement]:
    """All of them, for the most meters."""
    most = report.settings["meters"][-1]
    found = {
        (row["figure"], row["form"], row.get("to")): row
        for row in report.results
        if row["meters"] == most and "figure" in row and "on" not in row
    }
    texts = {"5a": _throughput, "5b": _latency, "5c": _logical, "5d": _responsiveness, "5e": _held}
    return [Statement(f"Figure {figure}", paper, texts[figure](found)) for figure, paper in FIGURE_5]


Found = Mapping[tuple[str, str, str | None], Row]


def _throughput(found: Found) -> str:
    rates = {form: found["5a", form, None]["readings_per_s"] for form in (EAGER, LAZY, DISCARD)}
    eager, lazy = (rates[form] / rates[DISCARD] for form in (EAGER, LAZY))
    return (
        f"Without Spark, eager {eager:.2f} and lazy {lazy:.2f} of discard's {rates[DISCARD]:,} readings a second on "
        "one core. Spark's own windows that wait are compared by --spark."
    )


def _latency(found: Found) -> str:
    eager, lazy = (text(found["5b", form, None]["added_ms"]) for form in (EAGER, LAZY))
    fresh_s, lazy_s = (text(found["5a", form, None]["day_s"]) for form in (FRESH, LAZY))
    return (
        f"A micro-batch of an hour takes {eager} ms (eager) and {lazy} ms (lazy) more than with discard. One of a day "
        f"takes {fresh_s} s with a fresh replica for every replay, without it {lazy_s} s."
    )


def _logical(found: Found) -> str:
    eager, lazy, wait = (text(found["5c", form, None]["p99_h"]) for form in (EAGER, LAZY, WAIT))
    return (
        f"99 % of the alerts are right within {eager or 'no'} hours (eager) and {lazy or 'no'} (lazy); with wait "
        f"{wait or 'none before the end'}."
    )


def _responsiveness(found: Found) -> str:
    first = {share: hours(found["5d", EAGER, FIRST][f"p{share}_h"]) for share in (90, 99.8)}
    eager, lazy = (text(found["5d", form, EXACT]["p90_h"]) for form in (EAGER, LAZY))
    days = round(found["5d", WAIT, EXACT]["p50_h"] / 24, 1)
    return (
        f"Eager's first answer: 90 % within {first[90]}, 99.8 % within {first[99.8]}. All "
        f"that a reading touches is exact for 90 % within {eager} hours (eager) and {lazy} (lazy): its last windows "
        f"close 26 hours after it. Wait: half after {days} days or more."
    )


def hours(value: float | str | None) -> str:
    """Hours in words.

    >>> hours(0.001), hours(2.5), hours("never")
    ('a minute', '2.5 hours', 'never')
    """
    if isinstance(value, float) and value < 0.016:
        return "a minute"
    return f"{text(value)} hours" if isinstance(value, float) else text(value)


def _held(found: Found) -> str:
    lazy, least = (found["5e", form, None] for form in (LAZY, LEAST))
    return (
        f"{text(lazy['at_end_per_meter'])} readings per meter in the end, {text(lazy['less_at_end'])} times fewer; at "
        f"most {text(lazy['per_meter'])}, when the holes before all first readings are open still. Lemma 5 allows "
        f"{text(least['less'])} times: patchy meters, a seventh of all, lie near a hole nearly always."
    )
