"""The page of `latecomer reproduce slack`: its colours, and what it adds to the frame of reports."""

from __future__ import annotations

from latecomer_lab.slack.tuning import BEST, HIGH, LOW, MAX, TCP, TUNER

_STYLES = {
    TUNER: "tuner",
    BEST: "best",
    LOW: "low",
    HIGH: "high",
    MAX: "most",
    TCP: "tcp",
    "deadline": "deadline",
    "bus": "high",
    "scats": "best",
    "1 s": "low",
    "3 s": "tcp",
    "5 s": "tuner",
    "7 s": "best",
    "9 s": "high",
}
COLOURS = {
    "tuner": ("#c8500a", "#ff9d57"),
    "best": ("#1f5fa8", "#74aeee"),
    "low": ("#3b7d2e", "#86c97a"),
    "high": ("#7b4fa0", "#c39be6"),
    "most": ("#96700a", "#dcb64a"),
    "tcp": ("#00797f", "#55c4ca"),
    "deadline": ("#5a616c", "#a5acb7"),
}


def style_of(name: str) -> str:
    """What the style sheet calls a series."""
    return _STYLES[name]


PAGE = """{% extends "frame" %}
{% block targets_note %}Of several days the worst counts. The models have seen none of them.{% endblock %}
{% block sections %}
<section aria-labelledby="stamps">
<h2 id="stamps">Figures 1 and 11: two sources, one of which lags</h2>
{{ figures(stamps) }}</section>

<section aria-labelledby="thresholds">
<h2 id="thresholds">Figures 2 to 4: fixed slacks</h2>
<p class="read">A small slack keeps results fast and reads many rows out of order, so that the join finds fewer
events.</p>
{{ figures(thresholds) }}</section>

{% for each in scenarios %}<section>
<h2>{{ each.title }}</h2>
{{ figures(each.pictures) }}</section>
{% endfor %}
<section aria-labelledby="structures">
<h2 id="structures">Figures 8 to 10: the structure, and a join on several nodes</h2>
<p class="read">A node is a shard here; the one that takes longest counts.</p>
{{ figures(structures) }}</section>

<section aria-labelledby="scores">
<h2 id="scores">Table 1: errors of latency / slack-ready rows on zipf, %</h2>
<div class="scroll"><table>
<thead><tr><th scope="col">model</th><th scope="col">features</th>
{% for test in tests %}<th scope="col">{{ test }}</th>{% endfor %}<th scope="col">s a fit</th></tr></thead>
<tbody>{% for row in scores %}<tr><th scope="row">{{ row.model }}</th><td>{{ row.features }}</td>
{% for error in row.errors %}<td>{{ error }}</td>{% endfor %}<td>{{ row.seconds }}</td></tr>
{% endfor %}</tbody></table></div>
</section>
{% endblock %}
{% block footer %}Slack-ScaleGate: deterministic stream processing under latency constraints. The streams of Dublin
are made after the paper's description.{% endblock %}
"""
