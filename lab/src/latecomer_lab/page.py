"""The frame of every report page: head, style, title, targets and pictures; an experiment adds its sections.

One file without scripts. An experiment writes a template that begins with `{% extends "frame" %}` and has the blocks
`targets_note`, `sections` and `footer`; `{{ figures(pictures) }}` draws pictures, the wide or the narrow form, and
`{{ said(statements) }}` puts the paper's words beside ours.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from jinja2 import DictLoader, Environment
from markupsafe import Markup

from latecomer.report.page import STYLE as REPORT_STYLE
from latecomer.report.shape import Report
from latecomer_lab.pictures import NARROW, WIDE, Bar, Lines, Size, bars_svg, lines_svg

Colours = Mapping[str, tuple[str, str]]


class Picture(NamedTuple):
    """A picture in two sizes, and what it says to those who cannot see it."""

    wide: Markup
    narrow: Markup
    alt: str


class Heading(NamedTuple):
    """The command that makes a page, its title, and what was run."""

    command: str
    title: str
    facts: list[str]


def draw_lines(lines: Lines, says: str | None = None) -> Picture:
    """Lines in both sizes; they say their names where nothing else is said."""
    names = says or ", ".join(series.name for series in lines.series)
    return _drawn(lambda size: lines_svg(lines, size), f"{lines.title} against {lines.x_title}: {names}.")


def draw_bars(title: str, bars: list[Bar]) -> Picture:
    """Bars in both sizes."""
    figures = ", ".join(f"{bar.name} {bar.text}" for bar in bars)
    return _drawn(lambda size: bars_svg(title, bars, size), f"{title}: {figures}.")


def _drawn(draw: Callable[[Size], str], alt: str) -> Picture:
    return Picture(Markup(draw(WIDE)), Markup(draw(NARROW)), alt)


def render(template: str, heading: Heading, report: Report, colours: Colours, **sections: Any) -> str:
    """The page of an experiment."""
    environment = Environment(autoescape=True, trim_blocks=True, loader=DictLoader({"frame": _FRAME, "page": template}))
    return environment.get_template("page").render(
        heading=heading, style=Markup(REPORT_STYLE + series_style(colours)), targets=report.targets, **sections
    )


def slug(name: str) -> str:
    """What the style sheet calls a series.

    >>> slug("without HM & SRS")
    'without_hm_srs'
    """
    return "_".join(name.lower().replace("&", " ").split())


def series_style(colours: Colours) -> str:
    """The colours of series, by light and by dark, and the rules by which pictures take them."""
    light, dark = (" ".join(f"--{slug(name)}: {pair[at]};" for name, pair in colours.items()) for at in (0, 1))
    rules = "".join(_rules(name) for name in colours)
    return f":root {{ {light} }}\n@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}\n{_STYLE}{rules}"


def _rules(name: str) -> str:
    style = slug(name)
    colour = f"var(--{style})"
    return (
        f"svg .line_{style}_marks path {{ stroke: {colour}; }}\n"
        f"svg .dot_{style}_marks path, svg .bar_{style}_marks path {{ fill: {colour}; }}\n"
        f"svg .ring_{style}_marks path {{ stroke: {colour}; fill: var(--card); }}\n"
        f"svg .name_{style}_marks text {{ fill: {colour}; }}\n"
    )


_STYLE = """
svg .leader_marks line { stroke: var(--muted); opacity: .6; }
svg .beside_marks text { fill: var(--ink); }
figure + figure { margin-top: 2rem; }
td.met { color: var(--muted); } td.missed { color: var(--orange); font-weight: 600; }
td .range { display: block; color: var(--muted); font-size: .8125rem; font-weight: 400; }
tr.ours th, tr.ours td { font-weight: 650; }
a { color: var(--blue); }
table + .read { margin-top: .75rem; }
summary { cursor: pointer; color: var(--muted); }
.rates th:first-child { white-space: nowrap; }
.scroll th:first-child { min-width: 7rem; }
"""

_FRAME = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{{ heading.title }}</title>
<style>{{ style }}</style>
</head>
<body>
{% macro figures(pictures) -%}
{% for picture in pictures %}<figure><div role="img" aria-label="{{ picture.alt }}">
<div class="wide-only">{{ picture.wide }}</div><div class="narrow">{{ picture.narrow }}</div></div></figure>
{% endfor %}{%- endmacro -%}
{% macro said(statements) -%}
<section aria-labelledby="words">
<h2 id="words">What the paper says, and what we get</h2>
{{ beside(statements) }}</section>
{%- endmacro -%}
{% macro beside(statements) -%}
<table class="stack rates">
<thead><tr><th scope="col">figure</th><th scope="col" class="note">the paper</th>
<th scope="col" class="note">here</th></tr></thead>
<tbody>{% for each in statements %}<tr><th scope="row">{{ each.figure }}</th>
<td class="note" data-name="the paper:">{{ each.paper }}</td>
<td class="note" data-name="here:">{{ each.here }}</td></tr>
{% endfor %}</tbody></table>
{%- endmacro -%}
<main>
<header>
<p class="kind">{{ heading.command }}</p>
<h1>{{ heading.title }}</h1>
<p class="facts">{% for fact in heading.facts %}<span>{{ fact }}</span> {% endfor %}</p>
</header>

{% block targets %}<section aria-labelledby="targets">
<h2 id="targets">What was to be reached</h2>
<p class="read">{% block targets_note %}{% endblock %}</p>
<div class="scroll"><table>
<thead><tr><th scope="col">figure</th><th scope="col">reached</th><th scope="col">wanted</th>
<th scope="col"></th></tr></thead>
<tbody>{% for target in targets %}<tr><th scope="row">{{ target.name }}</th>
<td class="value">{{ target.value }}</td>
<td>{{ "at least" if target.at_least else "at most" }} {{ target.target }}</td>
<td class="{{ 'met' if target.met else 'missed' }}">{{ "met" if target.met else "missed" }}</td></tr>
{% endfor %}</tbody></table></div>
</section>{% endblock %}

{% block sections scoped %}{% endblock %}
</main>
<footer><p>{% block footer %}{% endblock %}</p></footer>
</body>
</html>
"""
