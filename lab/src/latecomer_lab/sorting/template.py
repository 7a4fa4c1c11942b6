"""The page of `latecomer bench sort`: its colours, and what it adds to the frame of reports."""

from __future__ import annotations

COLOURS = {  # by light and by dark; a `from end` shares the colour of what it is a form of
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

PAGE = """{% extends "frame" %}
{% block targets_note %}Every figure is a ratio inside one run. <b>impatience</b> is the paper's algorithm,
<b>latecomer</b> the sorter that the product uses; a lead is taken over the best competitor.{% endblock %}
{% block sections %}
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
{% endblock %}
{% block footer %}Impatience sort: Chandramouli, Goldstein, Li, "Impatience is a Virtue: Revisiting Disorder in
High-Performance Log Analytics". The two logs are made after the paper's description; the real ones are not
public.{% endblock %}
"""
