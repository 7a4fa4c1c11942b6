"""`--html`: Figures 5, 7, 8 and 9 of the paper, measured here, as one page without scripts."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from latecomer.report.shape import Report, versions
from latecomer.report.words import duration, number, number_ticks, short_number
from latecomer_lab.page import Heading, Picture, draw_bars, draw_lines, render, slug
from latecomer_lab.pictures import Bar, Lines, Place, Series
from latecomer_lab.sorting.bench import Measured
from latecomer_lab.sorting.cells import Cell
from latecomer_lab.sorting.competitors import COMPETITORS, IMPATIENCE, Kind
from latecomer_lab.sorting.figures import RunsHeld
from latecomer_lab.sorting.operators import OF_RECORDS
from latecomer_lab.sorting.show import in_words, short_rate
from latecomer_lab.sorting.template import COLOURS, PAGE

_DASH = {Kind.MODERN: "dashed", Kind.BEYOND: "dotted", Kind.WITHOUT: "dotted"}
_SWEPT = {"amount": "amount of disorder d (p = 30 %)", "percent": "percentage of disorder p (d = 64)"}
_SETTINGS = {"selection": "events kept", "projection": "fields kept", "window": "size of the window"}


def write_page(report: Report, found: Measured, path: Path) -> None:
    """Write the page."""
    path.write_text(to_html(report, found), encoding="utf-8")


def to_html(report: Report, found: Measured) -> str:
    """The page."""
    return render(
        PAGE,
        Heading("latecomer bench sort", "Impatience sort, measured", _facts(report)),
        report,
        COLOURS,
        held=[] if found.held is None else [_held(found.held)],
        read_held="" if found.held is None else _read_held(found.held),
        offline=_offline(found) + _sweeps(found),
        online=_online(found.cells),
        gains=_gains(found),
        tables=[_table(stream, found.cells) for stream in dict.fromkeys(cell.stream for cell in found.cells)],
    )


def _facts(report: Report) -> list[str]:
    known = versions()
    settings = report.settings
    return [
        f"{number(settings['events'])} events of each data set,",
        f"median of {settings['rounds']} rounds, processor time,",
        f"Python {known['python']}, numpy {known['numpy']}, numba {known['numba']}, pyarrow {known['pyarrow']},",
        f"{known['cores']} cores",
    ]


def _held(held: RunsHeld) -> Picture:
    def series(name: str, style: str, counts: list[int], *, bold: bool) -> Series:
        return Series(name, style, [Place(x, y) for x, y in zip(held.events, counts, strict=True)], bold=bold)

    both = [
        series("Patience", "patience", held.patience, bold=False),
        series("Impatience", slug(IMPATIENCE), held.impatience, bold=False),
    ]
    ticks = [(float(value), text) for value, text in number_ticks(held.events[-1], 8)]
    return draw_lines(Lines("sorted runs held, cloudlog", "events so far", ticks, both, dots=False))


def _read_held(held: RunsHeld) -> str:
    return (
        f"A punctuation every 10,000 events, {duration(held.latency_us)} behind the latest event; the "
        f"{number(held.removed)} events that are later than that were taken out. Patience sort keeps every run it has "
        "ever begun; Impatience sort drops a run when its last event has left."
    )


def _offline(found: Measured) -> list[Picture]:
    """Figure 7(a)."""
    return [_bars(cell) for cell in found.cells if cell.every is None]


def _bars(cell: Cell) -> Picture:
    bars = [
        Bar(each.name, slug(each.name), cell.rate(each.name) / 1e6, short_rate(cell.rate(each.name)))
        for each in COMPETITORS
        if each.name in cell.runs
    ]
    return draw_bars(f"{cell.stream}, million events per second", bars)


def _sweeps(found: Measured) -> list[Picture]:
    """Figure 7(b) and (c)."""
    pictures = []
    for what, title in (
        ("amount", "amount of disorder d (p = 30 %)"),
        ("percent", "percentage of disorder p (d = 64)"),
    ):
        points = [point for point in found.points if point.what == what]
        if points:
            xs = [math.log10(point.value) for point in points]
            ticks = [(x, f"{point.value:g}") for x, point in zip(xs, points, strict=True)]
            series = _series([point.cell for point in points], xs)
            pictures.append(draw_lines(Lines("synthetic, million events per second", title, ticks, series, log=True)))
    return pictures


def _online(cells: list[Cell]) -> list[Picture]:
    """Figure 8."""
    pictures = []
    for stream in dict.fromkeys(cell.stream for cell in cells):
        chosen = [(cell, cell.every) for cell in cells if cell.stream == stream and cell.every is not None]
        xs = [math.log10(every) for _, every in chosen]
        ticks = [(x, short_number(every)) for x, (_, every) in zip(xs, chosen, strict=True)]
        series = _series([cell for cell, _ in chosen], xs)
        title = f"{stream}, million events per second"
        pictures.append(draw_lines(Lines(title, "events per punctuation", ticks, series, log=True)))
    return pictures


def _series(cells: list[Cell], xs: list[float]) -> list[Series]:
    """A line per competitor."""
    found = []
    for each in COMPETITORS:
        if all(each.name in cell.runs for cell in cells):
            places = [
                Place(x, cell.rate(each.name) / 1e6, all(run.whole for run in cell.runs[each.name]))
                for x, cell in zip(xs, cells, strict=True)
            ]
            dash = _DASH.get(each.kind, "solid")
            found.append(Series(each.name, slug(each.name), places, dash, each.kind is Kind.OURS))
    return found


def _gains(found: Measured) -> list[Picture]:
    """Figure 9."""
    pictures = []
    for operator in dict.fromkeys(gain.operator for gain in found.gains):
        chosen = [gain for gain in found.gains if gain.operator == operator]
        settings = list(dict.fromkeys(gain.setting for gain in chosen))
        ticks = [(float(place), _short(in_words(operator, setting))) for place, setting in enumerate(settings)]
        series = [
            Series(
                stream,
                slug(stream),
                [Place(settings.index(gain.setting), gain.speedup) for gain in chosen if gain.stream == stream],
                bold=True,
            )
            for stream in dict.fromkeys(gain.stream for gain in chosen)
        ]
        pictures.append(
            draw_lines(
                Lines(f"{operator} first, times faster", _SETTINGS[operator.removesuffix(OF_RECORDS)], ticks, series)
            )
        )
    return pictures


def _short(words: str) -> str:
    return words.removesuffix(" kept").removesuffix(" fields")


def _table(stream: str, cells: list[Cell]) -> dict[str, Any]:
    chosen = [cell for cell in cells if cell.stream == stream]
    heads = ["offline" if cell.every is None else short_number(cell.every) for cell in chosen]
    rows = [(each.name, [_figures(cell, each.name) for cell in chosen], each.kind is Kind.OURS) for each in COMPETITORS]
    return {"stream": stream, "heads": heads, "rows": rows}


def _figures(cell: Cell, name: str) -> tuple[str, str]:
    """The median and the range of the rounds."""
    if name not in cell.runs:
        return "", ""
    rates = cell.rates(name)
    stopped = "" if all(run.whole for run in cell.runs[name]) else " *"
    spread = f"{short_rate(min(rates))}-{short_rate(max(rates))}" if len(rates) > 1 else ""
    return short_rate(cell.rate(name)) + stopped, spread
