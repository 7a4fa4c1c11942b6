"""Pictures of experiments as SVG: lines with their names at the end, and bars.

Places are computed here. Colours are left to the page's style sheet by the names of the layers: what a series is called
in it is its `style`. A hollow point says that a run did not get to its end.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import altair as alt

from latecomer.report.curve import Tick
from latecomer.report.drawing import axis, scale, svg

_APART = 16.0  # pixels between two names at least
_NAMES = 142.0  # pixels for the names
_TICK = 44.0  # pixels for the label of a tick
_DASHES = {"solid": [1, 0], "dashed": [6, 3], "dotted": [2, 3]}


class Size(NamedTuple):
    """How large a picture is drawn, without its axes and names."""

    width: int
    height: int


WIDE, NARROW = Size(620, 290), Size(310, 300)


class Place(NamedTuple):
    """A point of a line; `whole` is false where a run did not get to its end."""

    x: float
    y: float
    whole: bool = True


class Series(NamedTuple):
    """A line: its name, what the style sheet calls it, how it is drawn, and its points from left to right."""

    name: str
    style: str
    places: list[Place]
    dash: str = "solid"
    bold: bool = False


class Lines(NamedTuple):
    """A picture of lines; with `log` the numbers up run by powers of ten. Points are drawn where `dots` is true."""

    title: str
    x_title: str
    x_ticks: list[Tick]
    series: list[Series]
    log: bool = False
    dots: bool = True


class Bar(NamedTuple):
    """A bar: its name, what the style sheet calls it, its length and what is written beside it."""

    name: str
    style: str
    length: float
    text: str


def lines_svg(lines: Lines, size: Size) -> str:
    """Draw lines."""
    frame = _Frame.around(lines, size)
    x = alt.X(
        "x:Q", scale=scale(frame.left, frame.right), axis=axis(frame.x_ticks(size), lines.x_title, titleAnchor="start")
    )
    y = alt.Y("y:Q", scale=scale(frame.bottom, frame.top), axis=axis(frame.y_ticks(), None, titleAnchor="start"))
    layers = [_leaders(frame, x, y)]
    for series in sorted(lines.series, key=lambda each: each.bold):
        layers += _line(series, frame, x, y, dots=lines.dots)
    layers += [_name(series, at, frame, x, y) for series, at in frame.names]
    return svg(alt.layer(*layers), size, lines.title)


def bars_svg(title: str, bars: list[Bar], size: Size) -> str:
    """Draw bars, one below the other."""
    x = alt.X("length:Q", scale=scale(0.0, 1.2 * max(bar.length for bar in bars)), axis=None)
    names = alt.Axis(title=None, domain=False, labelLimit=160)
    y = alt.Y("name:N", sort=[bar.name for bar in bars], axis=names, scale=alt.Scale(padding=0.25))
    values = [{"name": bar.name, "length": bar.length, "text": bar.text} for bar in bars]
    layers = []
    for bar, value in zip(bars, values, strict=True):
        chart = alt.Chart(alt.InlineData(values=[value]), name=f"bar_{bar.style}")
        layers.append(chart.mark_bar().encode(x=x, y=y))
    words = alt.Chart(alt.InlineData(values=values), name="beside").mark_text(align="left", dx=5, fontSize=13)
    layers.append(words.encode(x=x, y=y, text="text:N"))
    return svg(alt.layer(*layers), Size(size.width, 24 * len(bars)), title)


class _Frame(NamedTuple):
    """The frame of a picture, and where the names stand."""

    lines: Lines
    left: float
    right: float
    pixel: float
    last: float
    bottom: float
    top: float
    names: list[tuple[Series, float]]

    @classmethod
    def around(cls, lines: Lines, size: Size) -> _Frame:
        """A frame with room for the names on the right."""
        xs = [place.x for series in lines.series for place in series.places]
        left = min(*xs, lines.x_ticks[0][0])
        ys = [up(place.y, lines.log) for series in lines.series for place in series.places]
        bottom, top = (min(ys), max(ys)) if lines.log else (0.0, max(ys))
        margin = 0.04 * max(top - bottom, 1e-9)
        bottom, top = (bottom - margin if lines.log else 0.0), top + margin
        span = max(xs) - left or 1.0
        pixel = span / (size.width - _NAMES)
        ends = [(series, up(series.places[-1].y, lines.log)) for series in lines.series]
        apart = _APART * (top - bottom) / size.height
        return cls(
            lines,
            left,
            max(xs) + _NAMES * pixel,
            pixel,
            max(xs),
            bottom,
            top,
            spread(ends, apart, bottom + apart / 2, top),
        )

    def x_ticks(self, size: Size) -> list[Tick]:
        """As many ticks as there is room for."""
        each = max(1, math.ceil(len(self.lines.x_ticks) * _TICK / (size.width - _NAMES)))
        return self.lines.x_ticks[::each]

    def y_ticks(self) -> list[Tick]:
        """Round numbers."""
        if self.lines.log:
            steps = (1, 2, 5) if self.top - self.bottom < 2 else (1,)
            powers = range(math.floor(self.bottom), math.ceil(self.top) + 1)
            values = [step * 10.0**power for power in powers for step in steps]
            return [(math.log10(v), f"{v:g}") for v in values if self.bottom <= math.log10(v) <= self.top]
        step = next(s * 10.0**p for p in range(-3, 12) for s in (1, 2, 5) if self.top / (s * 10.0**p) <= 6)
        return [(number * step, f"{number * step:,g}") for number in range(int(self.top / step) + 1)]


def up(value: float, log: bool) -> float:
    """Where a value stands."""
    return math.log10(value) if log else value


def spread(ends: list[tuple[Series, float]], apart: float, bottom: float, top: float) -> list[tuple[Series, float]]:
    """Move the names as little apart as they need, from the top down and back up where there is no room."""
    ordered = sorted(ends, key=lambda end: -end[1])
    places: list[float] = []
    for _, wanted in ordered:
        places.append(min(wanted, places[-1] - apart) if places else min(wanted, top))
    lowest = bottom
    for number in range(len(places) - 1, -1, -1):
        places[number] = max(places[number], lowest)
        lowest = places[number] + apart
    return [(series, place) for (series, _), place in zip(ordered, places, strict=True)]


def _line(series: Series, frame: _Frame, x: alt.X, y: alt.Y, *, dots: bool) -> list[alt.Chart]:
    values = [{"x": place.x, "y": up(place.y, frame.lines.log), "whole": place.whole} for place in series.places]
    chart = alt.Chart(alt.InlineData(values=values)).encode(x=x, y=y)
    width = 3.0 if series.bold else 1.5
    line = chart.mark_line(strokeWidth=width, strokeDash=_DASHES[series.dash], strokeJoin="round")
    drawn = [line.properties(name=f"line_{series.style}")]
    if dots:
        size = 50 if series.bold else 26
        whole = chart.transform_filter("datum.whole").mark_point(filled=True, size=size, opacity=1)
        broken = chart.transform_filter("!datum.whole").mark_point(size=size, opacity=1, strokeWidth=1.5)
        drawn += [whole.properties(name=f"dot_{series.style}"), broken.properties(name=f"ring_{series.style}")]
    return drawn


def _leaders(frame: _Frame, x: alt.X, y: alt.Y) -> alt.Chart:
    """Thin lines from the ends of the lines to their names."""
    values = []
    for series, at in frame.names:
        end = series.places[-1]
        values.append({"x": end.x, "y": up(end.y, frame.lines.log), "x2": frame.last + 18 * frame.pixel, "y2": at})
    chart = alt.Chart(alt.InlineData(values=values), name="leader").mark_rule(strokeWidth=0.75)
    leaders: alt.Chart = chart.encode(x=x, y=y, x2="x2:Q", y2="y2:Q")
    return leaders


def _name(series: Series, at: float, frame: _Frame, x: alt.X, y: alt.Y) -> alt.Chart:
    place = {"x": frame.last + 22 * frame.pixel, "y": at, "name": series.name}
    chart = alt.Chart(alt.InlineData(values=[place]), name=f"name_{series.style}")
    text = chart.mark_text(align="left", fontSize=13, fontWeight=700 if series.bold else 400)
    name: alt.Chart = text.encode(x=x, y=y, text="name:N")
    return name
