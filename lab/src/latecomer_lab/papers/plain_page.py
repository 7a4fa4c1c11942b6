"""The page of an experiment that draws no pictures: what the paper says, what was reached, and all results."""

from __future__ import annotations

from typing import Any

from latecomer.report.shape import Report, versions
from latecomer_lab.page import Heading, render
from latecomer_lab.statements import Statement


def plain_page(command: str, title: str, report: Report, statements: list[Statement]) -> str:
    """The page."""
    known = versions()
    facts = [f"{name} {value:,}," for name, value in report.settings.items() if isinstance(value, int)]
    facts.append(f"Python {known['python']}, numpy {known['numpy']}, {known['cores']} cores")
    heads = list(report.results[0])
    rows = [[_text(row[head]) for head in heads] for row in report.results]
    return render(_PAGE, Heading(command, title, facts), report, {}, statements=statements, heads=heads, rows=rows)


def _text(value: Any) -> str:
    """A value of a report in a table.

    >>> _text(1234567), _text(0.25), _text("hit")
    ('1,234,567', '0.25', 'hit')
    """
    return f"{value:,}" if isinstance(value, int | float) else str(value)


_PAGE = """{% extends "frame" %}
{% block sections %}
{{ said(statements) }}
<section aria-labelledby="all">
<h2 id="all">All results</h2>
<div class="scroll"><table><thead><tr>{% for head in heads %}<th scope="col">{{ head.replace("_", " ") }}</th>
{% endfor %}</tr></thead><tbody>{% for row in rows %}<tr>{% for value in row %}
{% if loop.first %}<th scope="row">{{ value }}</th>{% else %}<td>{{ value }}</td>{% endif %}{% endfor %}</tr>
{% endfor %}</tbody></table></div>
</section>
{% endblock %}
"""
