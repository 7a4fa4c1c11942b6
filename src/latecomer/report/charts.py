"""The two pictures as SVG, drawn by Vega-Lite without a browser or a network.

Places are computed here and axes carry their own labels, so that time reads as people write it. Colours are left to
the page's style sheet, by the names of the layers (`intime_marks`, `late_marks`): a picture turns dark with its page.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import altair as alt
import numpy as np

from latecomer.disorder.profile import Picture, Profile
from latecomer.events import Bools, Int64s
from latecomer.report.curve import Curve, Tick, curve
from latecomer.report.drawing import axis, scale, svg
from latecomer.report.words import duration, instant, number_ticks, time_ticks

_FAINT = 0.4
_FEW_CELLS, _GROWN = 500, 0.6  # a few cells alone would hardly be seen: they are drawn larger
_MOST_CELLS = 12_000  # beyond, cells are joined: a page of 4 MB shows no more than one of 1 MB


class Size(NamedTuple):
    """How large a picture is drawn, and how many labels its axes bear at most."""

    width: int
    height: int
    columns: int
    rows: int
    across: int
    up: int


WIDE = Size(700, 380, 240, 160, 8, 8)
NARROW = Size(240, 260, 120, 80, 3, 6)


@dataclass(frozen=True)
class Cells:
    """The filled cells of a grid, and by how much of a cell each is drawn larger on every side."""

    across: Int64s
    up: Int64s
    count: Int64s
    grow: float = 0.0


def picture_svg(profile: Profile, size: Size) -> str:
    """Event time against arrival."""
    picture = profile.picture
    joined = 2 if len(picture.count) > _MOST_CELLS else 1
    wide = max(joined, -(-picture.columns // size.columns))
    high = max(joined, -(-picture.rows // size.rows))
    grow = _GROWN if len(picture.count) < _FEW_CELLS else 0.0
    cells = coarsen(Cells(picture.across, picture.up, picture.count, grow), wide, high)
    late = surely_late(cells)
    columns, rows = picture.columns / wide, picture.rows / high
    x = alt.X("x:Q", scale=scale(0, columns), axis=axis(_arrival_ticks(profile, size, columns), _arrival(picture)))
    y = alt.Y("y:Q", scale=scale(0, rows), axis=axis(_event_ticks(picture, size, rows), None))
    layers = [_rects(cells, ~late, "intime", x, y), _rects(cells, late, "late", x, y)]
    return svg(alt.layer(*layers), size, _titled("event time", picture.first_ts_us, picture.last_ts_us))


def coarsen(cells: Cells, wide: int, high: int) -> Cells:
    """Join neighbouring cells, so many across and so many up."""
    if len(cells.across) == 0:
        return cells
    across, up = cells.across // wide, cells.up // high
    rows = int(up.max()) + 1
    places, which = np.unique(across * rows + up, return_inverse=True)
    count = np.bincount(which, weights=cells.count).astype(np.int64)
    return Cells(places // rows, places % rows, count, cells.grow)


def surely_late(cells: Cells) -> Bools:
    """Which cells hold late events only: those below a row that an earlier column has reached."""
    if len(cells.across) == 0:
        return np.zeros(0, dtype=np.bool_)
    highest = np.full(int(cells.across.max()) + 2, -1, dtype=np.int64)
    np.maximum.at(highest, cells.across + 1, cells.up)
    late: Bools = cells.up < np.maximum.accumulate(highest)[cells.across]
    return late


def _rects(cells: Cells, chosen: Bools, name: str, x: alt.X, y: alt.Y) -> alt.Chart:
    """Cells as rectangles; the more events, the stronger, on a logarithmic scale."""
    most, grow = int(cells.count.max(initial=0)), cells.grow
    strength = np.ones(len(cells.count))
    if most > 1:
        strength = np.round(_FAINT + (1 - _FAINT) * np.log(cells.count) / np.log(most), 2)
    drawn = (each[chosen].tolist() for each in (cells.across, cells.up, strength))
    values = [
        {"x": across - grow, "x2": across + 1 + grow, "y": up - grow, "y2": up + 1 + grow, "o": strong}
        for across, up, strong in zip(*drawn, strict=True)
    ]
    chart = alt.Chart(alt.InlineData(values=values), name=name).mark_rect()
    opacity = alt.Opacity("o:Q", scale=None, legend=None)
    rects: alt.Chart = chart.encode(x=x, x2="x2:Q", y=y, y2="y2:Q", opacity=opacity)
    return rects


def _arrival(picture: Picture) -> str:
    return "order of arrival" if picture.arrival_us is None else _titled("arrival", *picture.arrival_us)


def _titled(what: str, first_us: int, last_us: int) -> str:
    """The title of an axis of time, with the day if it is one."""
    days = {instant(us).split(" ")[0] for us in (first_us, last_us)}
    return f"{what} (UTC{', ' + days.pop() if len(days) == 1 else ''})"


def _arrival_ticks(profile: Profile, size: Size, columns: float) -> list[Tick]:
    if profile.picture.arrival_us is None:
        scale = columns / max(1, profile.events)
        return [(value * scale, text) for value, text in number_ticks(profile.events, size.across)]
    return _placed(*profile.picture.arrival_us, size.across, columns)


def _event_ticks(picture: Picture, size: Size, rows: float) -> list[Tick]:
    return _placed(picture.first_ts_us, picture.last_ts_us, size.up, rows)


def _placed(first_us: int, last_us: int, most: int, cells: float) -> list[Tick]:
    scale = cells / max(1, last_us - first_us)
    return [((us - first_us) * scale, text) for us, text in time_ticks(first_us, last_us, most)]


def curve_svg(profile: Profile, size: Size) -> str | None:
    """The share kept against the wait; None where nothing is late."""
    drawn = curve(profile)
    if drawn is None:
        return None
    margin = (drawn.right - drawn.left) / 30
    ticks = drawn.x_ticks((drawn.right - drawn.left) * 64 / size.width)
    x = alt.X("x:Q", scale=scale(drawn.left - margin, drawn.right), axis=axis(ticks, "wait"))
    y = alt.Y("y:Q", scale=scale(drawn.bottom, drawn.top), axis=axis(drawn.y_ticks(), None))
    points = [{"x": point.x, "y": point.y, "base": drawn.bottom} for point in drawn.points]
    line = alt.Chart(alt.InlineData(values=points)).encode(x=x, y=y)
    area = line.mark_area(opacity=0.15).encode(y2="base:Q").properties(name="area")
    line = line.mark_line(strokeWidth=2).properties(name="line")
    return svg(alt.layer(area, line, *_quantiles(drawn, x, y)), size, "events kept")


def _quantiles(drawn: Curve, x: alt.X, y: alt.Y) -> list[alt.Chart]:
    """Dots with names: to the left of the curve, or below it where there is no room."""
    dots = alt.Chart(alt.InlineData(values=_marks(drawn))).encode(x=x, y=y)
    names = dots.encode(text="name:N")
    room = f"datum.x > {drawn.left + 0.35 * (drawn.right - drawn.left)}"
    return [
        dots.mark_point(size=60, filled=True, opacity=1).properties(name="rings"),
        names.transform_filter(room).mark_text(align="right", dx=-9, dy=-7, fontSize=13).properties(name="names"),
        names.transform_filter(f"!({room})").mark_text(align="left", dx=9, dy=9, fontSize=13).properties(name="under"),
    ]


def _marks(drawn: Curve) -> list[dict[str, Any]]:
    """The quantiles; those that stand at the same place share a dot."""
    names: dict[tuple[float, float], list[str]] = {}
    for point in drawn.points:
        if point.mark:
            names.setdefault((point.x, point.y), [duration(point.wait_us)]).append(point.mark)
    return [
        {"x": x, "y": y, "name": f"{' to '.join(dict.fromkeys((marks[0], marks[-1])))} {wait}"}
        for (x, y), (wait, *marks) in names.items()
    ]
