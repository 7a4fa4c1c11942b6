"""The first page of `latecomer reproduce all`: for every experiment what the paper says, and what we get."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from latecomer.report.shape import Report, versions
from latecomer_lab.page import Heading, render
from latecomer_lab.papers.catalogue import Entry
from latecomer_lab.papers.experiments import Done

TITLE = "Five papers on late data: their numbers, and ours"


def write_contents(done: Sequence[Done], left: Sequence[Entry], folder: Path, *, quick: bool) -> None:
    """Write the page, the pages of what is done, and all figures as JSON."""
    for each in done:
        (folder / f"{each.entry.name}.html").write_text(each.made.page, encoding="utf-8")
        each.made.report.write(folder / f"{each.entry.name}.json")
    whole = together(done, quick=quick)
    whole.write(folder / "all.json")
    (folder / "index.html").write_text(_page(whole, done, left, quick=quick), encoding="utf-8")


def together(done: Sequence[Done], *, quick: bool) -> Report:
    """One report of all: what is said as its results, and all targets by the experiment's name."""
    whole = Report("all", {"quick": quick, "seconds": {each.entry.name: round(each.seconds, 1) for each in done}})
    for each in done:
        name = each.entry.name
        whole.results += [{"experiment": name, **said._asdict()} for said in each.made.statements]
        whole.targets += [replace(target, name=f"{name}: {target.name}") for target in each.made.report.targets]
    return whole


def _page(whole: Report, done: Sequence[Done], left: Sequence[Entry], *, quick: bool) -> str:
    known = versions()
    size = "Small sizes, for a first look; without --quick the papers' own." if quick else "The papers' own sizes."
    facts = [size, f"Python {known['python']}, numpy {known['numpy']}, {known['cores']} cores"]
    return render(
        _PAGE,
        Heading("latecomer reproduce all", TITLE, facts),
        whole,
        {},
        sections=[_section(each) for each in done],
        left=left,
    )


def _section(done: Done) -> dict[str, object]:
    targets = done.made.report.targets
    met = sum(target.met for target in targets)
    return {
        "name": done.entry.name,
        "paper": done.entry.paper,
        "shows": done.entry.shows,
        "statements": done.made.statements,
        "differs": done.entry.differs,
        "met": f"{met} of {len(targets)} targets met",
        "missed": [target for target in targets if not target.met],
        "seconds": f"{done.seconds:,.0f} s",
    }


_PAGE = """{% extends "frame" %}
{% block targets %}{% endblock %}
{% block sections %}
{% for each in sections %}
<section aria-labelledby="{{ each.name }}">
<p class="kind">{{ each.paper }}</p>
<h2 id="{{ each.name }}">{{ each.shows[0]|upper }}{{ each.shows[1:] }}</h2>
{{ beside(each.statements) }}
<p class="read"><b>Not comparable:</b> {{ each.differs }}</p>
<p class="read">{{ each.met }}{% if each.missed %}; missed: {% for target in each.missed %}
{{- target.name }} {{ target.value }} ({{ target.target }}){{ "" if loop.last else "; " }}{% endfor %}{% endif %}.
{{ each.seconds }}. <a href="{{ each.name }}.html">Its figures and tables</a>,
<a href="{{ each.name }}.json">JSON</a>.</p>
</section>
{% endfor %}
{% if left %}<section><h2>Not done yet</h2><p>{% for each in left %}{{ each.name }}{{ "" if loop.last else ", " }}
{%- endfor %}</p></section>{% endif %}
{% endblock %}
{% block footer %}What a paper says is quoted in short. Everything here was measured or simulated in one run, by the
command above.{% endblock %}
"""
