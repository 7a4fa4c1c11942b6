"""The page of the report: its style sheet and its template.

One file, no scripts, nothing fetched. Below 600 px the narrow pictures are shown and tables become lists.
"""

from __future__ import annotations

STYLE = """
:root { color-scheme: light dark; --page: #f6f5f2; --card: #fff; --ink: #1c1f24; --muted: #5a616c; --rule: #e3e2dd;
  --blue: #1f5fa8; --orange: #c8500a; --track: #ecebe6; }
@media (prefers-color-scheme: dark) { :root { --page: #14171b; --card: #1c2026; --ink: #e9e7e2; --muted: #a5acb7;
  --rule: #333941; --blue: #74aeee; --orange: #ff9d57; --track: #2a3038; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); -webkit-text-size-adjust: 100%;
  font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Helvetica Neue", sans-serif; }
main, footer { max-width: 58rem; margin: 0 auto; padding: 0 1rem; }
header { padding: 2.5rem 0 .5rem; }
.kind { margin: 0; color: var(--muted); font-size: .875rem; }
h1 { margin: .1rem 0 .4rem; font-size: clamp(1.5rem, 1.1rem + 2vw, 2.25rem); line-height: 1.2; font-weight: 650;
  letter-spacing: -.015em; overflow-wrap: anywhere; }
h2 { margin: 0 0 .5rem; font-size: 1.2rem; line-height: 1.3; font-weight: 650; }
p { margin: 0 0 .75rem; max-width: 42rem; }
.facts, .read, figcaption, footer, td.note { color: var(--muted); }
.facts { margin: 0; } .facts span { display: inline-block; }
section { background: var(--card); border: 1px solid var(--rule); border-radius: .6rem; margin: 1rem 0;
  padding: 1.25rem 1rem; }
.big { display: grid; grid-template-columns: repeat(3, 1fr); gap: 1rem; margin: 0; }
.big div { min-width: 0; }
.big dt { color: var(--muted); font-size: .875rem; }
.big dd { margin: 0; }
.big .figure { font-size: clamp(1.6rem, 1.1rem + 2.4vw, 2.6rem); line-height: 1.2; font-weight: 600;
  letter-spacing: -.02em; font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
.big .under { color: var(--muted); font-size: .875rem; }
.verdict { margin: 1.1rem 0 0; padding-top: 1rem; border-top: 1px solid var(--rule); font-size: 1.125rem;
  max-width: none; }
figure { margin: 1rem 0; } figure:last-child { margin-bottom: 0; }
svg { display: block; width: 100%; height: auto; overflow: visible; }
.narrow { display: none; }
svg text { fill: var(--muted); font-family: inherit; }
svg .role-axis-grid line { stroke: var(--rule); }
svg .role-axis-domain line { stroke: var(--muted); }
svg .mark-rect path { shape-rendering: crispEdges; }
svg .intime_marks path, svg .area_marks path, svg .rings_marks path { fill: var(--blue); }
svg .late_marks path { fill: var(--orange); }
svg .line_marks path { stroke: var(--blue); }
svg .rings_marks path { stroke: var(--card); stroke-width: 2; }
svg .names_marks text, svg .under_marks text { fill: var(--ink); paint-order: stroke; stroke: var(--card);
  stroke-width: 4px; stroke-linejoin: round; }
figcaption { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; margin-top: .6rem; font-size: .875rem; }
.swatch { display: inline-block; width: .8rem; height: .8rem; margin-right: .4rem; border-radius: 2px;
  vertical-align: -1px; }
.swatch.blue { background: var(--blue); } .swatch.orange { background: var(--orange); }
.swatch.fade { width: 2.4rem; background: linear-gradient(90deg, color-mix(in srgb, var(--blue) 30%, transparent),
  var(--blue)); }
.scroll { overflow-x: auto; }
table { width: 100%; border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .9375rem; }
caption { text-align: left; color: var(--muted); font-size: .875rem; padding-bottom: .3rem; }
th, td { text-align: right; padding: .45rem 0 .45rem 1rem; border-top: 1px solid var(--rule); vertical-align: top; }
thead th { border-top: 0; color: var(--muted); font-weight: 500; font-size: .875rem; }
th:first-child, .note { text-align: left; } th:first-child { padding-left: 0; }
tbody th { font-weight: 600; overflow-wrap: anywhere; } td { white-space: nowrap; } td.note { white-space: normal; }
td.value { font-weight: 600; }
.bar { display: block; height: .5rem; margin-top: .3rem; border-radius: 2px; background: var(--track); }
.bar span { display: block; height: 100%; border-radius: 2px; background: var(--orange); }
td.wide { width: 24%; } .short { max-width: 30rem; } .measures th { white-space: nowrap; }
footer { padding-bottom: 3rem; font-size: .875rem; }
@media (min-width: 40rem) { section { padding: 1.5rem; } }
@media (max-width: 679px) { .wide-only { display: none; } .narrow { display: block; max-width: 27rem; margin: auto; } }
@media (max-width: 599px) {
  .big { grid-template-columns: 1fr 1fr; } .big div:first-child { grid-column: 1 / -1; }
  .stack thead { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
  .stack, .stack tbody { display: block; }
  .stack tr { display: grid; grid-template-columns: 1fr 1fr; gap: 0 1rem; padding: .6rem 0;
    border-top: 1px solid var(--rule); }
  .stack tbody tr:first-child { border-top: 0; }
  .stack th, .stack td { border: 0; padding: .1rem 0; text-align: left; }
  .stack th, .stack td.wide, .stack td.note { grid-column: 1 / -1; width: auto; }
  .stack td[data-name]::before { content: attr(data-name) " "; color: var(--muted); }
  .stack.measures tbody th { grid-column: auto; } .stack.measures td.value { text-align: right; }
}
@media print { body { background: #fff; } section { break-inside: avoid; } }
"""

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Disorder of {{ name }}</title>
<style>{{ style }}</style>
</head>
<body>
{% macro figure(wide, narrow, alt) -%}
<div role="img" aria-label="{{ alt }}">
<div class="wide-only">{{ wide }}</div><div class="narrow">{{ narrow }}</div></div>
{%- endmacro -%}
<main>
<header>
<p class="kind">Disorder profile</p>
<h1>{{ name }}</h1>
<p class="facts">{% for fact in facts %}<span>{{ fact }}</span> {% endfor %}</p>
</header>

<section aria-label="Summary">
<dl class="big">
{% for title, figure, under in big %}<div><dt>{{ title }}</dt><dd class="figure">{{ figure }}</dd>
<dd class="under">{{ under }}</dd></div>
{% endfor %}</dl>
<p class="verdict">{{ verdict }}</p>
{% for sentence in advice %}<p class="read">{{ sentence }}</p>
{% endfor %}
</section>

{% if picture %}<section aria-labelledby="picture">
<h2 id="picture">Event time against arrival</h2>
<p class="read">{{ read_picture }}</p>
<figure>{{ figure(picture[0], picture[1], picture_alt) }}
<figcaption><span><span class="swatch blue"></span>in order, as far as a cell can tell</span>
{% if late %}<span><span class="swatch orange"></span>late</span>{% endif %}
{% if densest %}<span><span class="swatch fade"></span>{{ densest }}</span>{% endif %}</figcaption></figure>
</section>{% endif %}

{% if waits %}<section aria-labelledby="waits">
<h2 id="waits">What a wait keeps</h2>
{% if curve %}<p class="read">{{ read_curve }}</p>
<figure>{{ figure(curve[0], curve[1], curve_alt) }}</figure>
{% endif %}
<div class="scroll"><table class="short">
<thead><tr><th scope="col">wait</th><th scope="col">keeps</th><th scope="col">loses</th></tr></thead>
<tbody>{% for wait, keeps, loses in waits %}<tr><th scope="row">{{ wait }}</th><td class="value">{{ keeps }}</td>
<td>{{ loses }}</td></tr>
{% endfor %}</tbody></table></div>
</section>{% endif %}

{% if measures %}<section aria-labelledby="measures">
<h2 id="measures">How disordered it is</h2>
<table class="stack measures">
<thead><tr><th scope="col">measure</th><th scope="col">value</th>
<th scope="col" class="note">what it says</th></tr></thead>
<tbody>{% for title, value, note in measures %}<tr><th scope="row">{{ title }}</th><td class="value">{{ value }}</td>
<td class="note">{{ note }}</td></tr>
{% endfor %}</tbody></table>
</section>{% endif %}

{% if sources %}<section aria-labelledby="sources">
<h2 id="sources">Lateness by source</h2>
<p class="read">{{ read_sources }}</p>
<table class="stack">
<thead><tr><th scope="col">source</th><th scope="col">mean lateness</th><th scope="col">longest</th>
<th scope="col">late</th><th scope="col">events</th><th scope="col">silence</th><th scope="col">at end</th></tr></thead>
<tbody>{% for row in sources %}<tr><th scope="row">{{ row.name }}</th>
<td class="wide" data-name="mean">{{ row.mean }}
<span class="bar" aria-hidden="true"><span style="width:{{ row.part }}%"></span></span></td>
<td data-name="longest">{{ row.longest }}</td><td data-name="late">{{ row.late }}</td>
<td data-name="events">{{ row.events }}</td><td data-name="silence">{{ row.silence }}</td>
<td data-name="at end">{{ row.at_end }}</td></tr>
{% endfor %}</tbody></table>
</section>{% endif %}

{% if holes %}<section aria-labelledby="holes">
<h2 id="holes">Holes</h2>
<p class="read">{{ read_holes }}</p>
<table class="stack measures">
<thead><tr><th scope="col">figure</th><th scope="col">value</th>
<th scope="col" class="note">what it says</th></tr></thead>
<tbody>{% for title, value, note in holes %}<tr><th scope="row">{{ title }}</th><td class="value">{{ value }}</td>
<td class="note">{{ note }}</td></tr>
{% endfor %}</tbody></table>
</section>{% endif %}
</main>
<footer><p>{{ words }}</p></footer>
</body>
</html>
"""
