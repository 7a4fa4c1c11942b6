"""Pictures in which one can point: drawn once as SVG, for readers without scripts, and again by Vega where there are.

Vega and what it needs are written into the page, so it works without a network.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple, cast

import altair as alt
import vl_convert
from markupsafe import Markup

CONFIG: dict[str, Any] = {
    "background": None,
    "view": {"stroke": None},
    "axis": {"labelFontSize": 13, "titleFontSize": 13, "titleFontWeight": "normal", "labelPadding": 6, "ticks": False},
    "legend": {"labelFontSize": 13, "labelLimit": 480, "symbolSize": 90},
    "title": {"fontSize": 13, "fontWeight": "normal", "anchor": "start"},
    "aria": True,
}


class Pointed(NamedTuple):
    """A picture: its place on the page, drawn, and as Vega-Lite."""

    name: str
    svg: Markup
    spec: dict[str, Any]
    alt: str


def pointed(name: str, chart: alt.Chart | alt.LayerChart, says: str) -> Pointed:
    """Draw a chart once for all; `says`: what it shows, for those who cannot see it."""
    spec = chart.to_dict()
    return Pointed(name, Markup(vl_convert.vegalite_to_svg(spec, config=CONFIG)), spec, says)


def on_white(picture: Pointed) -> str:
    """A picture for a page that has no style of its own for it."""
    drawn: str = vl_convert.vegalite_to_svg(picture.spec, config={**CONFIG, "background": "white"})
    return drawn


def script(pictures: list[Pointed]) -> Markup:
    """What lets the pictures of a page answer to pointing; no `<` of a text can end a script early."""
    specs = json.dumps({picture.name: picture.spec for picture in pictures}).replace("<", "\\u003c")
    config = json.dumps(CONFIG)
    bundle = cast(Any, vl_convert).javascript_bundle().replace("</script", "<\\/script")
    return Markup(f"<script>{bundle}</script>\n<script>{_EMBED % (specs, config)}</script>")


_EMBED = """
const specs = %s, config = %s;
const theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
for (const [name, spec] of Object.entries(specs)) {
  const place = document.getElementById(name);
  const room = place.clientWidth;
  if (spec.width > room) { spec.width = Math.max(200, room - 90); }
  const options = {config, renderer: "svg", actions: false, tooltip: {theme}};
  const drawn = document.createElement("div");
  vegaEmbed(drawn, spec, options).then(() => { place.replaceChildren(drawn); place.dataset.ready = "yes"; });
}
"""
