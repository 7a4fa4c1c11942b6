"""The pictures of a comparison: how soon against how right, what it costs, and how right over time."""

from __future__ import annotations

import json
from math import inf
from typing import TYPE_CHECKING, Any

import altair as alt
import numpy as np

from latecomer.report.interactive import Pointed, pointed
from latecomer.report.scoreboard import delay
from latecomer.report.words import instant, number, share

if TYPE_CHECKING:
    from latecomer.spark.comparing import Compared, Comparison

_SECONDS = (0, 1, 10, 60, 600, 3_600, 21_600, 86_400, 604_800, 2_592_000, 31_536_000)
_LEAST_WRONG = 1e-3  # per cent: below it all is drawn as none
_SIZE = {"width": 560, "height": 320}


def pictures(found: Comparison) -> list[Pointed]:
    """All pictures of a comparison."""
    rows = [_row(way, _never(found)) for way in found.ways]
    texts = [row["way"] for row in rows]
    return [
        _tradeoff(
            "soon", rows, texts, ("x", "from a window's end to its right answer, for nine of ten"), _time_axis(found)
        ),
        _tradeoff(
            "held", rows, texts, ("held", "held at most: events or partial results"), alt.Axis(format="~s", tickCount=6)
        ),
        _tradeoff(
            "revised",
            rows,
            texts,
            ("revisions", "answers after the first, per window"),
            alt.Axis(format=".2~f", tickCount=6),
        ),
        _over_time(found, texts),
    ]


def _row(way: Compared, never_s: float) -> dict[str, Any]:
    scores, right_s = way.scores, way.scores.right[1]
    late = never_s if right_s in (None, inf) else right_s
    return {
        "way": way.way.text,
        "x": late,
        "y": 100 * (1 - scores.right_share),
        "held": way.held,
        "revisions": round(scores.revisions, 4),
        "right": share(scores.right_share),
        "soon": delay(right_s),
        "first": delay(scores.first[1]),
        "held events": number(way.held),
        "gone": number(way.doors.gone),
        "rows/s": "-" if way.speed is None else number(round(way.speed.rows_per_s)),
    }


def _never(found: Comparison) -> float:
    """Where `never` stands on an axis of seconds: beyond all that came."""
    known = [s for way in found.ways for s in (way.scores.right[1], way.scores.first[1]) if s is not None and s != inf]
    longest = max([1.0, *known])
    return next((second for second in _SECONDS if second >= 6 * longest), 10 * longest)


def _time_axis(found: Comparison) -> alt.Axis:
    never_s = _never(found)
    ticks = [second for second in _SECONDS if second < never_s / 2] + [never_s]
    texts = json.dumps([*(delay(second) for second in ticks[:-1]), "never"])
    return alt.Axis(
        values=ticks, labelExpr=f"{texts}[indexof({json.dumps(ticks)}, datum.value)]", labelOverlap="greedy"
    )


def _tradeoff(name: str, rows: list[dict[str, Any]], ways: list[str], x: tuple[str, str], axis: alt.Axis) -> Pointed:
    """A dot for each way; lower is better, and so is further to the left."""
    field, title = x
    chosen = alt.selection_point(fields=["way"], bind="legend")
    least = _LEAST_WRONG
    drawn = alt.Chart(alt.InlineData(values=rows)).mark_point(size=150, filled=False, strokeWidth=2.5)
    tooltip = [f"{each}:N" for each in ("way", "right", "first", "soon", "revisions", "held events", "gone", "rows/s")]
    chart = drawn.encode(
        x=alt.X(f"{field}:Q", title=title, axis=axis, scale=_scale(field)),
        y=alt.Y(
            "y:Q",
            title=None,
            axis=alt.Axis(values=[0, 0.001, 0.01, 0.1, 1, 10, 100], labelExpr="datum.value + ' %'"),
            scale=alt.Scale(type="symlog", constant=least, zero=True),
        ),
        color=alt.Color("way:N", sort=ways, scale=alt.Scale(scheme="tableau10"), legend=_legend()),
        shape=alt.Shape("way:N", sort=ways, legend=_legend()),
        opacity=alt.condition(chosen, alt.value(0.95), alt.value(0.12)),
        tooltip=tooltip,
    )
    says = "; ".join(f"{row['way']}: {row['right']} right, {title} {row[field]:g}" for row in rows)
    return pointed(name, chart.add_params(chosen).properties(title="windows wrong in the end", **_SIZE), says)


def _scale(field: str) -> alt.Scale:
    """Delays reach from seconds to weeks."""
    return alt.Scale(type="symlog", constant=1, zero=True) if field == "x" else alt.Scale(zero=True)


def _over_time(found: Comparison, ways: list[str]) -> Pointed:
    """A line for each way: the share of ended windows that are right, after each micro-batch."""
    chosen = alt.selection_point(fields=["way"], bind="legend")
    marks_us = found.asked.stream.marks_us
    stamps = [instant(int(us)).replace(" ", "T") + "Z" for us in marks_us]
    values = [
        {"way": way.way.text, "at": at, "y": round(100 * part, 4), "right": share(part)}
        for way in found.ways
        for at, part in zip(stamps, way.scores.completeness, strict=True)
    ]
    lines = alt.Chart(alt.InlineData(values=values)).mark_line(point=alt.OverlayMarkDef(size=40), strokeWidth=2)
    parts = [part for way in found.ways for part in way.scores.completeness]
    least = min(float(np.floor(100 * min(parts, default=0.0))), 99.0)
    chart = lines.encode(
        x=alt.X("at:T", title="high-water mark (UTC)", scale=alt.Scale(type="utc")),
        y=alt.Y(
            "y:Q",
            title=None,
            scale=alt.Scale(domain=[least, 100], nice=False),
            axis=alt.Axis(labelExpr="datum.value + ' %'"),
        ),
        color=alt.Color("way:N", sort=ways, scale=alt.Scale(scheme="tableau10"), legend=_legend()),
        opacity=alt.condition(chosen, alt.value(0.95), alt.value(0.12)),
        tooltip=["way:N", "right:N", alt.Tooltip("at:T", title="mark", format="%Y-%m-%d %H:%M")],
    )
    says = "; ".join(f"{way.way.text}: {share(way.scores.completeness[-1])} in the end" for way in found.ways)
    return pointed(
        "over_time", chart.add_params(chosen).properties(title="windows that have ended and are right", **_SIZE), says
    )


def _legend() -> alt.Legend:
    return alt.Legend(title=None, orient="bottom", columns=1)
