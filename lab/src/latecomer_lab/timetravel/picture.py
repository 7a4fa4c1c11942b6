"""The picture of docs/timetravel.md: what stands in the end, how soon it is right, and what is held."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import altair as alt
import vl_convert

from latecomer.timetravel import EAGER, LAZY
from latecomer_lab.timetravel.figures import EXACT, FIRST, held, responses
from latecomer_lab.timetravel.forms import DISCARD, WAIT
from latecomer_lab.timetravel.template import COLOURS

if TYPE_CHECKING:
    from latecomer_lab.timetravel.experiments import Measured

_WIDTH, _LINE, _NAMES = 460, 30, 130
_LEAST_H = 0.01
_CONFIG: dict[str, Any] = {
    "background": "white",
    "view": {"stroke": None},
    "axis": {"labelFontSize": 13, "titleFontSize": 13, "titleFontWeight": "normal", "ticks": False, "labelLimit": 260},
    "title": {"fontSize": 14, "fontWeight": "bold", "anchor": "start", "frame": "bounds", "offset": 10},
}

Panel = alt.LayerChart | alt.FacetChart
Row = dict[str, Any]


def draw(found: Measured) -> str:
    """All three parts as SVG."""
    parts = [
        _bars("Alerts of the sorted run that are missing in the end, %", _missing(found)),
        _bars("From a late reading's arrival until 90 % have an answer (logarithmic)", _answers(found), log=True),
        _bars("Readings held per meter", _held(found)),
    ]
    drawn: str = vl_convert.vegalite_to_svg(alt.vconcat(*parts, spacing=26).to_dict(), config=_CONFIG)
    return drawn + "\n"


def _missing(found: Measured) -> list[Row]:
    classes, alerts = found.scores.classes, max(found.scores.alerts, 1)
    shares = {form: 100 * classes[form].omitted / alerts for form in (DISCARD, EAGER, LAZY, WAIT)}
    return [_bar(form, form, share, f"{share:.0f}") for form, share in shares.items()]


def _answers(found: Measured) -> list[Row]:
    wanted = {
        (EAGER, FIRST): "first answer",
        (EAGER, EXACT): "all exact",
        (LAZY, EXACT): "all exact",
        (WAIT, EXACT): "exact",
    }
    rows = {(row["form"], row["to"]): row["p90_h"] for row in responses(found)}
    return [
        _bar(f"{form}, {words}", form, max(_LEAST_H, rows[form, to] or 0.0), _hours(rows[form, to]))
        for (form, to), words in wanted.items()
    ]


def _hours(value: float | None) -> str:
    if value is None or value < _LEAST_H:
        return "less than a minute"
    return f"{value:.0f} h" if value < 100 else f"{value / 24:.0f} days"


def _held(found: Measured) -> list[Row]:
    rows = [(row["form"], row["at_end_per_meter"]) for row in held(found)]
    return [_bar(form, form, count, f"{count:,.0f}") for form, count in rows]


def _bar(name: str, form: str, length: float, text: str) -> Row:
    return {"name": name, "length": length, "text": text, "colour": COLOURS[form][0]}


def _bars(title: str, values: list[Row], *, log: bool = False) -> Panel:
    most = max(row["length"] for row in values) or 1.0
    scale = alt.Scale(type="log", domain=[_LEAST_H / 2, 30 * most]) if log else alt.Scale(domain=[0, 1.3 * most])
    axis = alt.Axis(title=None, domain=False, labelPadding=8, minExtent=_NAMES, maxExtent=_NAMES)
    base = alt.Chart(alt.InlineData(values=values)).encode(
        x=alt.X("length:Q", axis=None, scale=scale),
        y=alt.Y("name:N", sort=[row["name"] for row in values], axis=axis),
    )
    from_left = {"x2": alt.datum(_LEAST_H / 2)} if log else {}
    bars = base.mark_bar(height=18, cornerRadius=2).encode(color=alt.Color("colour:N", scale=None), **from_left)
    words = base.mark_text(align="left", dx=5, fontSize=13).encode(text="text:N")
    chart: Panel = alt.layer(bars, words).properties(width=_WIDTH, height=_LINE * len(values), title=title)
    return chart
