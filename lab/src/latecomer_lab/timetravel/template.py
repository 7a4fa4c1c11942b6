"""The text of the page, and the colours of its lines."""

from __future__ import annotations

_EAGER, _LAZY, _WAIT = ("#c8500a", "#ff9d57"), ("#1f5fa8", "#74aeee"), ("#96700a", "#dcb64a")
COLOURS = {
    "eager": _EAGER,
    "eager first answer": _EAGER,
    "eager exact": _EAGER,
    "lazy": _LAZY,
    "lazy first answer": _LAZY,
    "lazy exact": _LAZY,
    "fresh": ("#7b4fa0", "#c39be6"),
    "sorted": ("#5a616c", "#a5acb7"),
    "discard": ("#3b7d2e", "#86c97a"),
    "wait": _WAIT,
    "wait exact": _WAIT,
    "lateness": ("#5a616c", "#a5acb7"),
    "least by Lemma 5": ("#00797f", "#55c4ca"),
}

PAGE = """{% extends "frame" %}
{% macro table(shown) -%}
<div class="scroll"><table><thead><tr>{% for heading in shown.headings %}<th scope="col">{{ heading }}</th>{% endfor %}
</tr></thead><tbody>{% for row in shown.rows %}<tr>{% for value in row %}
{% if loop.first %}<th scope="row">{{ value }}</th>{% else %}<td>{{ value }}</td>{% endif %}{% endfor %}</tr>
{% endfor %}</tbody></table></div>
{%- endmacro -%}
{% block targets_note %}Of {{ meters }} meters. A share of late readings counts those that are never answered. Held:
against 1,920 readings per meter, which waiting holds by the paper's count.{% endblock %}
{% block sections %}
{{ said(statements) }}

<section aria-labelledby="ran">
<h2 id="ran">What is run</h2>
<p>Smart meters read every hour; the difference of two readings is what was consumed. What is negative or beyond the
meter's fuse gives an alert, and so do large values before a negative one within 24 hours. The readings are made so
that Table 2 is the paper's; up to 40 days late they come in batches, when a meter's outage is over.</p>
<p><b>eager</b> and <b>lazy</b> give results at once and replay what late readings touch. <b>fresh</b> is lazy with
an application of its own for every replay. <b>discard</b> drops what is late, <b>wait</b> sorts for 40 days,
<b>sorted</b> has the readings in order, as if none were late.</p>
<p class="read"><b>Not comparable with the paper:</b> its seconds (Flink on four cores; here one machine on one core
without Spark, but for what is said to be on Spark), and the number of alerts: ours are more frequent, so that a
thousand meters show some. A result depends on 26 hours, and nothing can be repaired that was not given: this is why
logical latencies begin with 26 hours.</p>
</section>

<section aria-labelledby="data">
<h2 id="data">Table 2: the readings</h2>
{{ table(shown["2"]) }}
</section>

<section aria-labelledby="classes">
<h2 id="classes">Table 3: the alerts</h2>
<p class="read">Exact: places that got the sorted run's alert. Different and duplicate: alerts given that are not
it, or once more; spurious: where it has none. In brackets what of it stands in the end. Both triggers void what is
wrong; here they are counted as the paper does, with every replay given again.</p>
{{ table(shown["3"]) }}
</section>

<section aria-labelledby="speed">
<h2 id="speed">Figures 5a and 5b: throughput and processing latency</h2>
<p class="read">A day's readings as one micro-batch, and an hour's; means of {{ runs }} runs from the state before
the last day but one, by the processor's clock. Wait gives what it has sorted and holds the rest; here it does not
hold windows.</p>
{{ figures(speed) }}
<details><summary>All figures</summary>{{ table(shown["5a"]) }}{{ table(shown["5b"]) }}</details>
{% if shown["spark"] %}
<p class="read">On Spark, two shards, a day's readings a micro-batch; light is an identity mapInArrow.</p>
{{ table(shown["spark"]) }}{% endif %}
</section>

<section aria-labelledby="latency">
<h2 id="latency">Figure 5c: logical latency</h2>
<p class="read">Hours of event time from an alert's own hour to the mark at which it was right, by share of the
alerts; and how late the late readings are. The scale is logarithmic.</p>
{{ figures(latency) }}
<details><summary>All percentiles</summary>{{ table(shown["5c"]) }}</details>
</section>

<section aria-labelledby="responses">
<h2 id="responses">Figure 5d: responsiveness</h2>
<p class="read">Hours from a late reading's arrival to the first answer to it, and until all results that it touches
are right for good. Below 0.01 hours it is drawn there. Left out are readings that come within {{ observed }} hours
of the end of the stream ({{ unobserved }}) or touch no result ({{ touching_none }}).</p>
{{ figures(responses) }}
<details><summary>All percentiles</summary>{{ table(shown["5d"]) }}</details>
</section>

<section aria-labelledby="held">
<h2 id="held">Figure 5e: readings held</h2>
<p class="read">At the end of the stream, per meter; the most at the end of any day is in the table. The least
by Lemma 5: readings within 26 hours of a hole that may still be filled, and the last 26 hours of each meter.</p>
{{ figures(held) }}
<details><summary>All figures</summary>{{ table(shown["5e"]) }}</details>
</section>
{% endblock %}
{% block footer %}Van Rooij, Gulisano, Papatriantafilou: "TinTiN: Travelling in time (if necessary) to deal with
out-of-order data in streaming aggregation", DEBS 2020.{% endblock %}
"""
