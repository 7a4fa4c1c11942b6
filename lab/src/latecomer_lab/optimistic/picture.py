"""The picture of docs/optimistic.md: what a late row takes back and gives anew, and how much is done twice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import altair as alt
import vl_convert

from latecomer_lab.optimistic.cluster import MESSAGE_US
from latecomer_lab.optimistic.figures import points
from latecomer_lab.optimistic.key_history import KeyHistory
from latecomer_lab.optimistic.trials import OPTIMISTIC, Measured

_BOOKINGS = {"09:00": 100, "09:10": 500, "09:20": -30, "09:30": -20}
_ARRIVAL = (("09:00", "09:20", "09:30"), ("09:10",))
_GIVEN, _VOID, _STANDS = "#1f5fa8", "#c8500a", "#3b7d2e"
_FEW_LINES = {2: "#00797f", 5: "#7b4fa0", 10: "#c8500a"}
_LEAST = 0.01
_WIDTH = 460
_CONFIG: dict[str, Any] = {
    "background": "white",
    "view": {"stroke": None},
    "axis": {"labelFontSize": 13, "titleFontSize": 13, "titleFontWeight": "normal", "ticks": False, "labelLimit": 260},
    "title": {"fontSize": 14, "fontWeight": "bold", "anchor": "start", "frame": "bounds", "offset": 10},
    "legend": {"labelFontSize": 13, "titleFontSize": 13, "titleFontWeight": "normal", "orient": "right"},
}

Panel = alt.LayerChart | alt.FacetChart


class Cell(NamedTuple):
    """A balance: in which line, at which time, its colour, and whether it is void."""

    line: str
    time: str
    text: str
    colour: str
    void: bool = False


def draw(found: Sequence[Measured]) -> str:
    """Both parts as SVG."""
    chart = alt.vconcat(_story(story()), _cost(found), spacing=26).resolve_scale(color="independent")
    drawn: str = vl_convert.vegalite_to_svg(chart.to_dict(), config=_CONFIG)
    return drawn + "\n"


def story() -> list[Cell]:
    """The running balance of an account: three bookings, then a late one."""
    history, times = KeyHistory(_add, 0), list(_BOOKINGS)
    stands: dict[str, str] = {}
    cells = []
    for number, arrived in enumerate(_ARRIVAL):
        for time in arrived:
            for place, balance, change in history.insert(times.index(time), _BOOKINGS[time]):
                cells.append(_cell(number, times[place], str(balance), change))
                if change > 0:
                    stands[times[place]] = str(balance)
    return cells + [Cell("what stands", time, text, _STANDS) for time, text in stands.items()]


def _add(total: int, amount: int) -> tuple[int, int]:
    return total + amount, total + amount


def _cell(number: int, time: str, text: str, change: int) -> Cell:
    if number == 0:
        return Cell("at once", time, text, _GIVEN)
    if change < 0:
        return Cell("09:10 comes late: taken back", time, text, _VOID, void=True)
    return Cell("and given anew", time, text, _GIVEN)


def _story(cells: Sequence[Cell]) -> Panel:
    lines = list(dict.fromkeys(cell.line for cell in cells))
    base = alt.Chart(alt.InlineData(values=[cell._asdict() for cell in cells])).encode(
        x=alt.X("time:O", sort=list(_BOOKINGS), axis=alt.Axis(title=None, labelAngle=0, orient="top", domain=False)),
        y=alt.Y("line:O", sort=lines, axis=alt.Axis(title=None, domain=False, labelPadding=10)),
    )
    boxes = base.mark_rect(width=74, height=26, cornerRadius=4, fillOpacity=0.12, strokeWidth=1)
    coloured = alt.Color("colour:N", scale=None)
    layers = [
        boxes.encode(fill=alt.Fill("colour:N", scale=None), stroke=alt.Stroke("colour:N", scale=None)),
        base.mark_text(fontSize=14, fontWeight=600).encode(text="text:N", color=coloured),
        base.transform_filter("datum.void").mark_text(text="\u2014\u2014", fontSize=14).encode(color=coloured),
    ]
    title = "Balance of an account, by event time"
    drawn: Panel = alt.layer(*layers).properties(width=_WIDTH, height=36 * len(lines), title=title)
    return drawn


def _cost(found: Sequence[Measured]) -> Panel:
    """What is done twice, by load."""
    values = [
        {"load": point.load, "extra": max(_LEAST, 100 * (point.ratio - 1)), "workers": f"{workers} workers"}
        for workers in _FEW_LINES
        for point in points(found, OPTIMISTIC, workers, MESSAGE_US)
    ]
    colours = alt.Scale(domain=[f"{workers} workers" for workers in _FEW_LINES], range=list(_FEW_LINES.values()))
    x = alt.X("load:Q", axis=alt.Axis(title="load of the busiest worker", grid=False), scale=alt.Scale(domain=[0, 1]))
    labels = "datum.value == 0.01 ? 'none' : format(datum.value, '~g') + ' %'"
    y_axis = alt.Axis(title=None, values=[_LEAST, 0.1, 1, 10, 100, 1000], labelExpr=labels, gridColor="#ddd")
    line = (
        alt.Chart(alt.InlineData(values=values))
        .mark_line(strokeWidth=2, point=True)
        .encode(
            x=x,
            y=alt.Y("extra:Q", axis=y_axis, scale=alt.Scale(type="log", domain=[_LEAST, 2000])),
            color=alt.Color("workers:N", scale=colours, title=None),
        )
    )
    title = "What is given and taken back for nothing, beside what stays (simulated)"
    drawn: Panel = alt.layer(line).properties(width=_WIDTH, height=170, title=title)
    return drawn
