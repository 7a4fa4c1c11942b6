"""`--html`: the figures as one page without scripts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from latecomer.report.shape import Report, versions
from latecomer_lab.page import Heading, Picture, draw_bars, draw_lines, render
from latecomer_lab.pictures import Bar, Lines, Place, Series
from latecomer_lab.slack.experiments import Found
from latecomer_lab.slack.prediction import HALVES, MOVED, OTHER_DAYS, Score
from latecomer_lab.slack.streams import SECOND_US
from latecomer_lab.slack.template import COLOURS, PAGE, style_of
from latecomer_lab.slack.tuning import BEST, POLICIES, TUNER, Day

_DRAWN = (TUNER, BEST, *POLICIES)
_TITLES = {
    "zipf": "Figure 12: the bus source lags in turns (zipf)",
    "constant": "Figure 13: the bus source lags more and more (constant)",
    "rush": "Rush: results take 3.3 s instead of 0.4 s in 30 of 120 s",
    "graph": "Two stages, a slack each",
    "fast": "Event time passes four times as fast in between",
}


def write_page(report: Report, found: Found, path: Path) -> None:
    """Write the page."""
    path.write_text(to_html(report, found), encoding="utf-8")


def to_html(report: Report, found: Found) -> str:
    """The page."""
    known = versions()
    scenarios = [{"title": _TITLES[name], "pictures": _day(days[0])} for name, days in found.days.items()]
    fact = f"Simulated time, seed {report.settings['seed']}, numpy {known['numpy']}, {known['cores']} cores"
    return render(
        PAGE,
        Heading("latecomer reproduce slack", "Slack and its tuner", [fact]),
        report,
        COLOURS,
        stamps=[_stamps(found.curves, figure) for figure in ("1", "11")],
        thresholds=_thresholds(found.curves),
        scenarios=scenarios,
        structures=_structures(found.structures),
        scores=_scores(found.scores["zipf"]),
        tests=(HALVES, OTHER_DAYS, MOVED),
    )


def _lines(title: str, x_title: str, named: Iterable[tuple[str, Sequence[float]]]) -> Picture:
    """Values second by second."""
    series = [
        Series(
            name,
            style_of(name),
            [Place(second + 1, value) for second, value in enumerate(values)],
            "dashed" if name == "deadline" else "solid",
            name == TUNER,
        )
        for name, values in named
    ]
    seconds = len(series[0].places)
    ticks = [(float(second), str(second)) for second in range(0, seconds + 1, 30)]
    return draw_lines(Lines(title, x_title, ticks, series, dots=False))


def _bars(title: str, values: Iterable[tuple[str, int]]) -> Picture:
    bars = [Bar(name, style_of(name), float(max(value, 1)), f"{value:,}") for name, value in values]
    return draw_bars(title, bars)


def _stamps(curves: list[dict[str, Any]], figure: str) -> Picture:
    chosen = [row for row in curves if row["figure"] == figure]
    title = f"Figure {figure}: time reported so far in {chosen[0]['scenario']}, s"
    return _lines(title, "seconds", [(row["source"], row["reported_s"]) for row in chosen])


def _thresholds(curves: list[dict[str, Any]]) -> list[Picture]:
    by_figure = {figure: [row for row in curves if row["figure"] == figure] for figure in ("2", "3", "4")}
    return [
        _lines("Figure 2: latency, s", "seconds", [(row["slack"], row["latency_s"]) for row in by_figure["2"]]),
        _bars("Figure 3: events found", [(row["slack"], row["events"]) for row in by_figure["3"]]),
        _lines(
            "Figure 4: out-of-order rows", "seconds", [(row["slack"], row["out_of_order"]) for row in by_figure["4"]]
        ),
    ]


def _structures(rows: list[dict[str, Any]]) -> list[Picture]:
    """Figures 8 to 10."""
    reads = [row for row in rows if row["figure"] == "8"]
    nodes = [row for row in rows if row["figure"] == "9 and 10"]
    return [
        _curve("Figure 8: a read, ns", [Place(row["readers"], 1e6 * row["read_ms"]) for row in reads], "readers"),
        _curve("Figure 9: rows a second", [Place(row["nodes"], row["rows_per_second"]) for row in nodes], "nodes"),
        _curve(
            "Figure 10: comparisons a second",
            [Place(row["nodes"], row["comparisons_per_second"]) for row in nodes],
            "nodes",
        ),
    ]


def _curve(title: str, places: list[Place], x_title: str) -> Picture:
    """One quantity against a number."""
    ticks = [(place.x, f"{place.x:g}") for place in places]
    lines = Lines(title, x_title, ticks, [Series(x_title, style_of(TUNER), places)])
    return draw_lines(lines, ", ".join(f"{place.y:,.0f}" for place in places))


def _day(day: Day) -> list[Picture]:
    chosen = [day.tuned[name] for name in _DRAWN]
    latency = [(each.policy, _in_seconds(each.intervals.latency_us)) for each in chosen]
    deadline = ("deadline", [day.deadline_us / SECOND_US] * len(latency[0][1]))
    stage = next(iter(chosen[0].slack_us))
    slack = [(each.policy, _in_seconds(each.slack_us[stage])) for each in chosen]
    return [
        _lines("latency, s", "seconds", [*latency, deadline]),
        _lines("slack, s" if len(chosen[0].slack_us) == 1 else "slack of the first stage, s", "seconds", slack),
        _bars("slack-ready rows", [(each.policy, each.slack_ready) for each in chosen]),
        _bars("events found", [(each.policy, each.events) for each in chosen]),
    ]


def _in_seconds(values_us: Any) -> list[float]:
    seconds: list[float] = (values_us / SECOND_US).round(3).tolist()
    return seconds


def _scores(scores: Sequence[Score]) -> list[dict[str, Any]]:
    """A row for each model, with the errors of each test."""
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for each in scores:
        row = rows.setdefault(
            (each.model, each.features), {"model": each.model, "features": each.features, "errors": []}
        )
        row["errors"].append(f"{each.latency_error:.1f} / {each.ready_error:.1f}")
        row["seconds"] = f"{each.seconds_a_fit:.2f}"
    return list(rows.values())
