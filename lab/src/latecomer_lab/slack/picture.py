"""The picture of docs/slack.md: latency and deadline, slack, and the share of certain rows, second by second."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np
import vl_convert

from latecomer.events import Int64s
from latecomer_lab.slack.streams import SECOND_US
from latecomer_lab.slack.tuning import BEST, TUNER, Day, Tuned

_DRAWN = {TUNER: "tuner", BEST: "best slack that never changes"}
_DEADLINE = "deadline"
_COLOURS = {"tuner": "#c8500a", "best slack that never changes": "#1f5fa8", _DEADLINE: "#5a616c"}
_DASHES = {"tuner": [1, 0], "best slack that never changes": [1, 0], _DEADLINE: [6, 3]}
_WIDTH, _HEIGHT = 640, 110
_CONFIG: dict[str, Any] = {
    "background": "white",
    "view": {"stroke": None},
    "axis": {
        "labelFontSize": 13,
        "titleFontSize": 13,
        "titleFontWeight": "normal",
        "ticks": False,
        "gridColor": "#ddd",
    },
    "title": {"fontSize": 13, "fontWeight": "normal", "anchor": "start", "offset": 6},
    "legend": {"labelFontSize": 13, "symbolStrokeWidth": 2, "symbolSize": 500, "orient": "top", "labelLimit": 300},
}

Curves = Mapping[str, Sequence[float]]


def draw_day(day: Day) -> str:
    """A day as SVG."""
    chosen = {shown: day.tuned[policy] for policy, shown in _DRAWN.items()}
    latency = {name: _seconds(each.intervals.latency_us) for name, each in chosen.items()}
    deadline = {_DEADLINE: [day.deadline_us / SECOND_US] * len(latency["tuner"])}
    slack = {name: _seconds(next(iter(each.slack_us.values()))) for name, each in chosen.items()}
    certain = {name: _certain(each) for name, each in chosen.items()}
    panels = [
        _panel("latency of results, s", {**latency, **deadline}, last=False),
        _panel("slack, s", slack, last=False),
        _panel("rows that are certain when they are read, %", certain, last=True),
    ]
    spec = alt.vconcat(*panels, spacing=14).to_dict()
    drawn: str = vl_convert.vegalite_to_svg(spec, config=_CONFIG)
    return drawn + "\n"


def _panel(title: str, curves: Curves, *, last: bool) -> alt.Chart:
    values = [
        {"second": second, "value": value, "name": name}
        for name, curve in curves.items()
        for second, value in enumerate(curve)
    ]
    axis = alt.Axis(title="seconds" if last else None, labels=last, tickCount=8, grid=False)
    colours = alt.Scale(domain=list(_COLOURS), range=list(_COLOURS.values()))
    dashes = alt.Scale(domain=list(_DASHES), range=list(_DASHES.values()))
    chart = alt.Chart(alt.InlineData(values=values), width=_WIDTH, height=_HEIGHT, title=title)
    drawn: alt.Chart = chart.mark_line(strokeWidth=2, interpolate="step-after").encode(
        x=alt.X("second:Q", axis=axis, scale=alt.Scale(nice=False)),
        y=alt.Y("value:Q", axis=alt.Axis(title=None, tickCount=4), scale=alt.Scale(zero=True)),
        color=alt.Color("name:N", scale=colours, title=None),
        strokeDash=alt.StrokeDash("name:N", scale=dashes, title=None),
    )
    return drawn


def _seconds(values_us: Int64s) -> list[float]:
    found: list[float] = np.round(values_us / SECOND_US, 3).tolist()
    return found


def _certain(each: Tuned) -> list[float]:
    """The share of rows, in per cent, that every source had passed when they were read; all where none was read."""
    rows = each.intervals.rows
    found: list[float] = np.round(100.0 - 100.0 * each.intervals.slack_ready / np.maximum(rows, 1), 1).tolist()
    return found
