"""The README's picture: of the readings of one stream, how many are in the answers, set aside and gone, way by way."""

from __future__ import annotations

from pathlib import Path

import altair as alt
import vl_convert

_COLOURS = ("#4c78a8", "#f2b134", "#d1495b")  # in the answers, set aside, gone
_AROUND = {"left": 48, "right": 24, "top": 12, "bottom": 12}  # browsers have wider letters than those it is drawn with


def draw(rows: dict[str, dict[str, int]], file: Path) -> None:
    """A bar for each way to ask; rows: how many readings came to which end, named in this order."""
    ends = list(next(iter(rows.values())))
    bars = [
        {"way": way, "what": what, "n": n, "place": place}
        for way, parts in rows.items()
        for place, (what, n) in enumerate(parts.items())
    ]
    labels = [{"way": way, "n": sum(parts.values()), "text": _label(*parts.values())} for way, parts in rows.items()]
    ways = alt.Y("way:N", title=None, sort=list(rows), axis=alt.Axis(labelLimit=400, ticks=False, domain=False))
    shown = alt.Color("what:N", title=None, scale=alt.Scale(domain=ends, range=list(_COLOURS)))
    drawn = (
        alt.Chart(alt.InlineData(values=bars))
        .mark_bar()
        .encode(
            x=alt.X("n:Q", title="readings", axis=alt.Axis(format=",d", tickCount=5)),
            y=ways,
            color=shown.legend(orient="top"),
            order="place:O",
        )
    )
    texts = alt.Chart(alt.InlineData(values=labels)).mark_text(align="left", dx=8, fontSize=13)
    chart = (
        (drawn + texts.encode(x="n:Q", y=ways, text="text:N"))
        .properties(width=380, height=36 * len(rows))
        .configure(background="white", padding=_AROUND)
        .configure_view(stroke=None)
        .configure_axis(labelFontSize=13, titleFontSize=13, titleFontWeight="normal", labelPadding=6)
        .configure_legend(labelFontSize=13, columnPadding=36)
    )
    file.write_text(vl_convert.vegalite_to_svg(chart.to_dict()), encoding="utf-8")


def _label(_: int, aside: int, gone: int) -> str:
    return f"{gone:,} gone" if gone else f"{aside:,} set aside"
