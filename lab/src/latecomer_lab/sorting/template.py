"""The page of `latecomer bench sort`: what it adds to the style sheet of reports, and its template."""

from __future__ import annotations

from collections.abc import Mapping

_COLOURS = {  # by light and by dark; a `from end` shares the colour of what it is a form of
    "latecomer": ("#c8500a", "#ff9d57"),
    "impatience": ("#1f5fa8", "#74aeee"),
    "heap": ("#7b4fa0", "#c39be6"),
    "quicksort": ("#3b7d2e", "#86c97a"),
    "timsort": ("#00797f", "#55c4ca"),
    "patience": ("#6b7785", "#a9b5c2"),
    "numpy": ("#96700a", "#dcb64a"),
    "numpy stable": ("#a8437c", "#e88fc0"),
    "pyarrow": ("#8a5a44", "#cf9f88"),
    "timsort from end": ("#00797f", "#55c4ca"),
    "numpy from end": ("#96700a", "#dcb64a"),
    "carrying": ("#4a6f96", "#8fb0d4"),
    "without HM": ("#6f9fd0", "#4d7fb5"),
    "without HM & SRS": ("#a9c6e4", "#3a5f88"),
    "synthetic": ("#3b7d2e", "#86c97a"),
    "cloudlog": ("#1f5fa8", "#74aeee"),
    "androidlog": ("#c8500a", "#ff9d57"),
}


def slug(name: str) -> str:
    """What the style sheet calls a series.

    >>> slug("without HM & SRS")
    'without_hm_srs'
    """
    return "_".join(name.lower().replace("&", " ").split())


def series_style(colours: Mapping[str, tuple[str, str]]) -> str:
    """The colours of series, by light and by dark, and the rules by which pictures take them."""
    light, dark = (" ".join(f"--{slug(name)}: {pair[at]};" for name, pair in colours.items()) for at in (0, 1))
    rules = "".join(_rules(name) for name in colours)
    return f":root {{ {light} }}\n@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}\n{SHARED_STYLE}{rules}"


def _rules(name: str) -> str:
    style = slug(name)
    colour = f"var(--{style})"
    return (
        f"svg .line_{style}_marks path {{ stroke: {colour}; }}\n"
        f"svg .dot_{style}_marks path, svg .bar_{style}_marks path {{ fill: {colour}; }}\n"
        f"svg .ring_{style}_marks path {{ stroke: {colour}; fill: var(--card); }}\n"
        f"svg .name_{style}_marks text {{ fill: {colour}; }}\n"
    )


SHARED_STYLE = """
svg .leader_marks line { stroke: var(--muted); opacity: .6; }
svg .beside_marks text { fill: var(--ink); }
figure + figure { margin-top: 2rem; }
td.met { color: var(--muted); } td.missed { color: var(--orange); font-weight: 600; }
td .range { display: block; color: var(--muted); font-size: .8125rem; font-weight: 400; }
tr.ours th, tr.ours td { font-weight: 650; }
summary { cursor: pointer; color: var(--muted); }
.rates th:first-child { white-space: nowrap; }
"""

STYLE = series_style(_COLOURS)

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Impatience sort, measured</title>
<style>{{ style }}</style>
</head>
<body>
{% macro figures(pictures) -%}
{% for picture in pictures %}<figure><div role="img" aria-label="{{ picture.alt }}">
<div class="wide-only">{{ picture.wide }}</div><div class="narrow">{{ picture.narrow }}</div></div></figure>
{% endfor %}{%- endmacro -%}
<main>
<header>
<p class="kind">latecomer bench sort</p>
<h1>Impatience sort, measured</h1>
<p class="facts">{% for fact in facts %}<span>{{ fact }}</span> {% endfor %}</p>
</header>

<section aria-labelledby="targets">
<h2 id="targets">What was to be reached</h2>
<p class="read">Every figure is a ratio inside one run. <b>impatience</b> is the paper's algorithm, <b>latecomer</b> the
sorter that the product uses; a lead is taken over the best competitor.</p>
<div class="scroll"><table>
<thead><tr><th scope="col">figure</th><th scope="col">reached</th><th scope="col">wanted</th>
<th scope="col"></th></tr></thead>
<tbody>{% for target in targets %}<tr><th scope="row">{{ target.name }}</th>
<td class="value">{{ "%.2f"|format(target.value) }}</td><td>{{ target.target }}</td>
<td class="{{ 'met' if target.met else 'missed' }}">{{ "met" if target.met else "missed" }}</td></tr>
{% endfor %}</tbody></table></div>
</section>

{% if held %}<section aria-labelledby="held">
<h2 id="held">Figure 5: sorted runs held</h2>
<p class="read">{{ read_held }}</p>
{{ figures(held) }}</section>{% endif %}

{% if offline %}<section aria-labelledby="offline">
<h2 id="offline">Figure 7: everything is sorted at the end</h2>
<p class="read">HM is Huffman merge, SRS is speculative run selection. Below, synthetic data of which p % of the events
are moved back by the absolute value of a normal variable with standard deviation d.</p>
{{ figures(offline) }}</section>{% endif %}

{% if online %}<section aria-labelledby="online">
<h2 id="online">Figure 8: with punctuations</h2>
<p class="read">The further left, the more often events must be given out. Both axes are logarithmic. Solid lines are
the paper's algorithms, dashed ones are today's libraries. Dotted ones are counted in no lead: <b>from end</b> merges
into the sorted buffer from its end, which the paper's competitors do not do; <b>carrying</b> is impatience with
payloads that move along, as in the paper's engine. A hollow point: the run did not get to the end of the stream in its
time, and its rate is that of the beginning.</p>
{{ figures(online) }}</section>{% endif %}

{% if gains %}<section aria-labelledby="gains">
<h2 id="gains">Figure 9: operators before the sort</h2>
<p class="read">How many times faster the paper's algorithm sorts, offline, when the operator runs before the sort
instead of after it. The operator's own time does not count; with it on both sides the gains are in the JSON.
Everything is measured twice: with each field in a column of its own, as in the paper's engine, where every column is
moved with every event; and on records of four fields, which move as one.</p>
{{ figures(gains) }}</section>{% endif %}

<section aria-labelledby="rates">
<h2 id="rates">All rates</h2>
<p class="read">Million events per second, by the number of events from one punctuation to the next: the median of the
rounds, below it the slowest and the fastest round. A star: it did not get to the end.</p>
{% for table in tables %}<details{{ " open" if loop.first else "" }}><summary>{{ table.stream }}</summary>
<div class="scroll"><table class="rates">
<thead><tr><th scope="col"></th>{% for head in table.heads %}<th scope="col">{{ head }}</th>{% endfor %}</tr></thead>
<tbody>{% for name, figures, ours in table.rows %}<tr{{ ' class="ours"'|safe if ours else "" }}>
<th scope="row">{{ name }}</th>
{% for rate, range in figures %}<td>{{ rate }}<span class="range">{{ range }}</span></td>{% endfor %}</tr>
{% endfor %}</tbody></table></div></details>
{% endfor %}</section>
</main>
<footer><p>Impatience sort: Chandramouli, Goldstein, Li, "Impatience is a Virtue: Revisiting Disorder in
High-Performance Log Analytics". The two logs are made after the paper's description; the real ones are not
public.</p></footer>
</body>
</html>
"""
