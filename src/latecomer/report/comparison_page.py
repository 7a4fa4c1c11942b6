"""A comparison as one HTML file: the scoreboard, and pictures in which one can point; nothing is fetched."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from jinja2 import Environment
from markupsafe import Markup

from latecomer.report.comparison_charts import pictures
from latecomer.report.interactive import on_white, script
from latecomer.report.page import STYLE
from latecomer.report.scoreboard import COLUMNS, NOTE, figures, where
from latecomer.report.stream_notes import stream_facts, stream_notes
from latecomer.report.words import span

if TYPE_CHECKING:
    from latecomer.spark.comparing import Compared, Comparison

_READ = {
    "soon": ("How soon, and how right", "Best is down and to the left: few windows wrong, and the right answer soon."),
    "held": (
        "What is held for it",
        "Further to the right, more is held in Spark's state; down, fewer windows are wrong.",
    ),
    "revised": ("What readers of the results must bear", "How often an answer is given again, because late rows came."),
    "over_time": (
        "How right, over time",
        "After each micro-batch: of the windows that have ended, those whose right answer stands. Late rows that have "
        "not come yet make all ways wrong alike; a gap that stays is what a way has lost.",
    ),
}


def write_comparison(found: Comparison, path: Path) -> None:
    """Write the report of a comparison as one file."""
    path.write_text(comparison_page(found), encoding="utf-8")


def draw_comparison(found: Comparison, path: Path) -> None:
    """Draw how soon and how right each way is, as a picture by itself."""
    path.write_text(on_white(pictures(found)[0]) + "\n", encoding="utf-8")


def comparison_page(found: Comparison) -> str:
    """The report of a comparison as one page."""
    stream, drawn = found.asked.stream, pictures(found)
    facts = [stream_facts(stream, where(found)), span(int(stream.ts_us.min()), int(stream.ts_us.max()))]
    environment = Environment(autoescape=True, trim_blocks=True)
    return environment.from_string(_PAGE).render(
        style=Markup(STYLE + _STYLE),
        title=found.asked.question.shown(),
        facts=facts,
        columns=COLUMNS,
        ways=[(way.way.text, _kind(way), figures(way)) for way in found.ways],
        note=NOTE,
        notes=list(stream_notes(stream, max_ahead=found.asked.max_ahead)),
        pictures=[(picture, *_READ[picture.name]) for picture in drawn],
        script=script(drawn),
    )


def _kind(way: Compared) -> str:
    if way.scores.exact:
        return "every window right"
    return "nothing lost, some windows wrong" if way.doors.gone == 0 else "rows are gone"


_STYLE = """
svg text, svg .role-legend text { fill: var(--muted); }
.point svg { width: auto; max-width: 100%; } .point { overflow-x: auto; }
td.right { font-weight: 600; }
.kind-note { display: block; font-weight: 400; color: var(--muted); font-size: .8125rem; }
tbody th code { font-size: .875rem; }
"""

_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Ways to live with disorder</title>
<style>{{ style }}</style>
</head>
<body>
<main>
<header>
<p class="kind">latecomer compare</p>
<h1>{{ title }}</h1>
<p class="facts">{% for fact in facts %}<span>{{ fact }}</span> {% endfor %}</p>
{% for text in notes %}<p class="read">{{ text }}</p>
{% endfor %}</header>

<section aria-labelledby="board">
<h2 id="board">Scoreboard</h2>
<div class="scroll"><table class="stack">
<thead><tr><th scope="col">way</th>{% for name in columns %}<th scope="col">{{ name }}</th>{% endfor %}</tr></thead>
<tbody>{% for text, kind, values in ways %}<tr><th scope="row"><code>{{ text }}</code>
<span class="kind-note">{{ kind }}</span></th>
{% for value in values %}<td data-name="{{ columns[loop.index0] }}"{% if loop.first %} class="right"{% endif %}>
{{- value }}</td>
{% endfor %}</tr>
{% endfor %}</tbody></table></div>
<p class="read">{{ note }}</p>
</section>

{% for picture, title, read in pictures %}<section aria-labelledby="h-{{ picture.name }}">
<h2 id="h-{{ picture.name }}">{{ title }}</h2>
<p class="read">{{ read }} Point at a mark for its values, click a name to see it alone.</p>
<figure><div class="point" id="{{ picture.name }}" role="img" aria-label="{{ picture.alt }}">
{{ picture.svg }}</div></figure>
</section>
{% endfor %}
</main>
<footer><p>Every way got the same micro-batches. Delays are differences of event time, so they do not depend on how fast
a machine is; they are as fine as micro-batches are. All times are UTC.</p></footer>
{{ script }}
</body>
</html>
"""
