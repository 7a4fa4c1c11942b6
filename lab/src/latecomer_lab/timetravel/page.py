"""`--html`: Tables 2 and 3 and Figure 5 as one page without scripts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from latecomer.report.shape import Report
from latecomer_lab.page import Heading, Picture, draw_bars, draw_lines, render, slug
from latecomer_lab.pictures import Bar, Lines, Place, Series
from latecomer_lab.timetravel.application import HOUR_US
from latecomer_lab.timetravel.figures import EXACT, FIRST, NEVER, SHARE_NAMES
from latecomer_lab.timetravel.forms import TRIGGERS
from latecomer_lab.timetravel.scoring import OBSERVED_US
from latecomer_lab.timetravel.show import tables, text
from latecomer_lab.timetravel.statements import statements
from latecomer_lab.timetravel.template import COLOURS, PAGE

_LEAST_H = 0.01  # what a logarithmic scale shows of nothing
_TICKS = [(float(place), name) for place, name in enumerate(("50 %", "90 %", "99 %", "99.8 %", "all"))]

Row = dict[str, Any]


def write_page(report: Report, path: Path) -> None:
    """Write the page."""
    path.write_text(to_html(report), encoding="utf-8")


def to_html(report: Report) -> str:
    """The page; pictures are of the most meters."""
    most = report.settings["meters"][-1]
    rows = [row for row in report.results if row["meters"] == most and "on" not in row]
    of = {figure: [row for row in rows if row.get("figure") == figure] for figure in ("5a", "5b", "5c", "5d", "5e")}
    data = next(row for row in rows if row.get("table") == "2")
    return render(
        PAGE,
        Heading(
            "latecomer reproduce timetravel",
            "Time travel: results at once, repaired when late data comes",
            _facts(report),
        ),
        report,
        COLOURS,
        meters=f"{most:,}",
        runs=report.settings["runs"],
        observed=OBSERVED_US // HOUR_US,
        unobserved=text(data["unobserved"]),
        touching_none=text(data["touching_none"]),
        shown=tables(report),
        statements=statements(report),
        speed=[
            *_by_meters(report, "5a", "readings_per_s", "readings a second"),
            *_by_meters(report, "5b", "batch_ms", "ms of a micro-batch of an hour"),
        ],
        latency=[_percentiles("logical latency, hours", "share of the alerts", of["5c"])],
        responses=[_percentiles("responsiveness, hours", "share of the late readings", _answered(of["5d"]))],
        held=_by_meters(report, "5e", "at_end_per_meter", "readings held per meter in the end"),
    )


def _facts(report: Report) -> list[str]:
    settings = report.settings
    sizes = ", ".join(f"{meters:,}" for meters in settings["meters"])
    readings = max(row["readings"] for row in report.results if row.get("table") == "2")
    return [f"{sizes} meters, {settings['days']} days,", f"{readings:,} readings,", f"seed {settings['seed']}"]


def _by_meters(report: Report, figure: str, name: str, title: str) -> list[Picture]:
    """Bars of one number of meters, or lines of several."""
    rows = [row for row in report.results if row.get("figure") == figure and "on" not in row]
    sizes = report.settings["meters"]
    if len(sizes) == 1:
        return [draw_bars(title, [Bar(row["form"], slug(row["form"]), row[name], text(row[name])) for row in rows])]
    lines: dict[str, list[Place]] = {}
    for row in rows:
        lines.setdefault(row["form"], []).append(Place(row["meters"], row[name]))
    series = [_series(form, places) for form, places in lines.items()]
    return [draw_lines(Lines(title, "meters", [(float(size), f"{size:,}") for size in sizes], series, log=True))]


def _series(name: str, places: list[Place], dash: str = "solid") -> Series:
    return Series(name, slug(name), places, dash, bold=name.startswith(TRIGGERS) and dash == "solid")


def _answered(rows: Sequence[Row]) -> list[Row]:
    """The delays that are drawn, named after what they lead to; the first answers are dashed."""
    dashes = {FIRST: "dashed", EXACT: "solid"}
    drawn = [row for row in rows if row["to"] in dashes]
    return [{**row, "dash": dashes[row["to"]], "form": f"{row['form']} {row['to']}"} for row in drawn]


def _percentiles(title: str, x_title: str, rows: Sequence[Row]) -> Picture:
    """A line for each form, from one share to the next, as far as it comes."""
    series = []
    for row in rows:
        values = [row[name] for name in SHARE_NAMES]
        places = [Place(at, max(_LEAST_H, value)) for at, value in enumerate(values) if value not in (None, NEVER)]
        if places:
            series.append(_series(row["form"], places, row.get("dash", "solid")))
    return draw_lines(Lines(title, x_title, _TICKS, series, log=True))
