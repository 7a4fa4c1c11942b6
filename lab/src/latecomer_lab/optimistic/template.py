"""The page of `latecomer reproduce optimistic`: its colours, and what it adds to the frame of reports."""

from __future__ import annotations

COLOURS = {
    "optimistic p50": ("#c8500a", "#ff9d57"),
    "optimistic p99": ("#c8500a", "#ff9d57"),
    "buffering p50": ("#1f5fa8", "#74aeee"),
    "buffering p99": ("#1f5fa8", "#74aeee"),
    "barrier": ("#c8500a", "#ff9d57"),
    "buffer of words": ("#1f5fa8", "#74aeee"),
    "buffer of documents": ("#00797f", "#55c4ca"),
    "limit": ("#5a616c", "#a5acb7"),
    "rate 0": ("#00797f", "#55c4ca"),
    "rate 1": ("#3b7d2e", "#86c97a"),
    "rate 2": ("#96700a", "#dcb64a"),
    "rate 3": ("#c8500a", "#ff9d57"),
    "rate 4": ("#a8437c", "#e88fc0"),
    "rate 5": ("#7b4fa0", "#c39be6"),
}

PAGE = """{% extends "frame" %}
{% macro table(headings, rows) -%}
<div class="scroll"><table><thead><tr>{% for heading in headings %}<th scope="col">{{ heading }}</th>{% endfor %}</tr>
</thead><tbody>{% for row in rows %}<tr>{% for value in row %}
{% if loop.first %}<th scope="row">{{ value }}</th>{% else %}<td>{{ value }}</td>{% endif %}{% endfor %}</tr>
{% endfor %}</tbody></table></div>
{%- endmacro -%}
{% macro latency(each) -%}
<section>
<h2>{{ each.title }}</h2>
<p class="read">From a document's arrival to its update: half of all documents take longer than p50, one in a hundred
longer than p99. The median of the seeds, on a logarithmic scale. Where latencies are above 100 ms a backlog grows as
long as documents come: a longer run would have larger ones.</p>
{{ figures(each.pictures) }}
<details><summary>All percentiles: optimistic / buffering, ms</summary>
{% for caption, rows in each.tables %}<p class="read">{{ caption }}</p>{{ table(each.headings, rows) }}{% endfor %}
</details></section>
{%- endmacro -%}
{% block targets_note %}Of several seeds the worst counts; a latency is compared percentile by percentile (50, 75, 95,
99). The last line compares every document of every run, in both models.{% endblock %}
{% block sections %}
{{ said(statements) }}

<section aria-labelledby="simulated">
<h2 id="simulated">What is simulated</h2>
<p>An inverted index. Documents come at a fixed rate to random workers, which split them into words (20 us a word).
Words go to the worker that has their posting list (100 us an item, a tombstone too), their places to the worker that
gives the document's update (100 us). Links take 0.5 ms and an exponential 0.2 ms, and keep order; what a task sends to
one worker travels as one packet. To lie in a buffer or barrier costs nothing.</p>
<p><b>optimistic</b> folds words as they come, takes back what was wrong, and holds results at one barrier until the
acker says that a document is complete. <b>buffering</b> waits for watermarks before the fold and again before the
update. A message (watermark, acknowledgement, punctuation) costs the one who takes it 50 us, or 10 us. Workers send
acknowledgements at most once a millisecond.</p>
<p>Load is the share of its time that the busiest worker needs when nothing is done twice.</p>
<p class="read"><b>Not comparable with the paper:</b> its milliseconds and rates (ten small cloud machines, whole
articles, FlameStream against Flink; here both models have the same costs and run in simulated time). The paper gives
no numbers for its curves, so only their shape can be compared. The acker has a node of its own here; the paper does not
say where it ran.</p>
</section>

<section aria-labelledby="ratio">
<h2 id="ratio">Figure 9: what is done twice</h2>
<p class="read">Invalid items and tombstones for 100 valid items at the barrier, the largest of all seeds. The scale is
logarithmic; what is below 0.01 is drawn there. Lines begin with the fewest workers whose load is not above 1.</p>
{{ figures(ratios) }}
<details><summary>The ratio by workers and rate</summary>{{ table(*ratio_table) }}</details>
</section>

{{ latency(many) }}
<section aria-labelledby="waits">
<h2 id="waits">Figure 11: how long items wait</h2>
<p class="read">Medians: half of all items wait longer. The barrier waits for the acker: two links and a message.
Buffers wait for the slowest watermark, which is long when watermarks fill the queues.</p>
{{ figures(waits) }}
</section>

{{ latency(some) }}
<section aria-labelledby="why">
<h2 id="why">Why the lead vanishes with cheap messages</h2>
<p>{{ why }}</p>
{{ table(message_headings, message_rows) }}
<p class="read">{{ more_workers }}</p>
</section>
{% endblock %}
{% block footer %}Kuralenok, Marshalkin, Trofimov, Novikov: "An optimistic approach to handle out-of-order events within
analytical stream processing".{% endblock %}
"""
