"""What all pictures share: the look, axes with labels of their own, and the way from a chart to SVG."""

from __future__ import annotations

import json
import re
from typing import Any, Protocol

import altair as alt
import vl_convert

from latecomer.report.curve import Tick

_CONFIG: dict[str, Any] = {
    "background": None,
    "view": {"stroke": None},
    "axis": {"labelFontSize": 13, "titleFontSize": 13, "titleFontWeight": "normal", "labelPadding": 6, "ticks": False},
    "title": {"fontSize": 13, "fontWeight": "normal", "anchor": "start", "frame": "bounds", "offset": 10},
    "aria": False,
}


class Sized(Protocol):
    """Something with a width and a height."""

    @property
    def width(self) -> int:
        """In pixels."""

    @property
    def height(self) -> int:
        """In pixels."""


def scale(low: float, high: float) -> alt.Scale:
    """A scale that ends where it is told to."""
    return alt.Scale(domain=[low, high], nice=False, zero=False)


def axis(ticks: list[Tick], title: str | None, **more: Any) -> alt.Axis:
    """An axis with labels of its own; Vega numbers the labels from 0 to 1."""
    texts = json.dumps([text for _, text in ticks])
    return alt.Axis(
        values=[place for place, _ in ticks],
        labelExpr=f"{texts}[round(datum.index * {max(1, len(ticks) - 1)})]",
        title=title,
        labelFlush=False,
        labelOverlap="greedy",
        **more,
    )


def svg(chart: alt.LayerChart | alt.FacetChart, size: Sized, title: str) -> str:
    """Render a chart; it takes the width of its place on the page."""
    spec = chart.properties(width=size.width, height=size.height, title=title).to_dict()
    drawn = vl_convert.vegalite_to_svg(spec, config=_CONFIG)
    return re.sub(r'^<svg([^>]*?) width="[\d.]+" height="[\d.]+"', r"<svg\1", drawn)
