"""`--html`: Figures 9 to 12 as one page without scripts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from latecomer.report.shape import Report
from latecomer_lab.optimistic.buffering_model import DOCUMENT_BUFFER, WORD_BUFFER
from latecomer_lab.optimistic.cluster import CHEAP_MESSAGE_US, MESSAGE_US
from latecomer_lab.optimistic.figures import Point, both_models, compared, points
from latecomer_lab.optimistic.optimistic_model import BARRIER
from latecomer_lab.optimistic.show import LATENCY_HEADINGS, latency_rows, ratio_rows
from latecomer_lab.optimistic.statements import statements
from latecomer_lab.optimistic.template import COLOURS, PAGE
from latecomer_lab.optimistic.trials import BUFFERING, MANY, OPTIMISTIC, SOME, USUAL_LOAD, Measured
from latecomer_lab.page import Heading, Picture, draw_lines, render, slug
from latecomer_lab.pictures import Lines, Place, Series

_LEAST = 0.01  # what a logarithmic scale shows of nothing
_LIMIT = 10.0
_APART = 1.05
_RATE_COLOURS = sum(name.startswith("rate") for name in COLOURS)


def write_page(report: Report, found: Sequence[Measured], path: Path) -> None:
    """Write the page."""
    path.write_text(to_html(report, found), encoding="utf-8")


def to_html(report: Report, found: Sequence[Measured]) -> str:
    """The page."""
    title = "Optimistic processing: what it does twice, and how fast it is"
    return render(
        PAGE,
        Heading("latecomer reproduce optimistic", title, _facts(report)),
        report,
        COLOURS,
        statements=statements(found),
        ratios=[_ratios(found)],
        ratio_table=ratio_rows(found),
        many=_comparison(found, MANY),
        waits=[_waits(found)],
        some=_comparison(found, SOME),
        **_messages(report, found),
    )


def _facts(report: Report) -> list[str]:
    settings = report.settings
    origin = "made after Zipf's law" if settings["texts"] is None else f"from {settings['texts']}"
    return [
        f"Simulated time, {settings['documents']:,} documents a run, {origin},",
        f"{settings['work_ms_per_document']:.1f} ms of work a document,",
        f"seeds {settings['seed']} to {settings['seed'] + settings['seeds'] - 1}",
    ]


def _ratios(found: Sequence[Measured]) -> Picture:
    """Figure 9: a line for each rate."""
    lines: dict[float, list[Place]] = {}
    all_workers = sorted({each.trial.workers for each in found if each.trial.model == OPTIMISTIC})
    for workers in all_workers:
        for point in points(found, OPTIMISTIC, workers, MESSAGE_US):
            if not point.at_load:
                lines.setdefault(point.rate, []).append(Place(workers, max(_LEAST, 100 * (point.ratio - 1))))
    series = [
        Series(f"{rate:g} documents/s", slug(f"rate {number % _RATE_COLOURS}"), places)
        for number, (rate, places) in enumerate(sorted(lines.items()))
    ]
    limit = [Place(workers, _LIMIT) for workers in all_workers]
    ticks = [(float(workers), str(workers)) for workers in all_workers]
    title = "invalid items and tombstones for 100 valid items"
    return draw_lines(Lines(title, "workers", ticks, [*series, Series("10 %", "limit", limit, "dashed")], log=True))


def _comparison(found: Sequence[Measured], workers: int) -> dict[str, Any]:
    """Figures 10 and 12."""
    costs = (MESSAGE_US, CHEAP_MESSAGE_US)
    return {
        "title": f"Figure {'10' if workers == MANY else '12'}: latency with {workers} workers",
        "pictures": [_latencies(found, workers, message_us) for message_us in costs],
        "headings": LATENCY_HEADINGS,
        "tables": [(f"messages of {each:g} us", latency_rows(found, workers, each)) for each in costs],
    }


def _latencies(found: Sequence[Measured], workers: int, message_us: float) -> Picture:
    both = compared(found, workers, message_us)
    series = [
        Series(
            f"{model} p{percent}",
            slug(f"{model} p{percent}"),
            [Place(pair[number].rate, pair[number].latency_ms[at]) for pair in both],
            "solid" if percent == 50 else "dashed",
            percent == 50,
        )
        for number, model in enumerate((OPTIMISTIC, BUFFERING))
        for percent, at in ((50, 0), (99, -1))
    ]
    title = f"latency, ms; {workers} workers, messages of {message_us:g} us"
    return draw_lines(Lines(title, "documents a second", _rate_ticks([ours for ours, _ in both]), series, log=True))


def _rate_ticks(line: Sequence[Point]) -> list[tuple[float, str]]:
    """The rates that were asked for, and others that are not too near."""
    last = max(point.rate for point in line if not point.at_load)
    return [(point.rate, f"{point.rate:.0f}") for point in line if not last < point.rate < _APART * last]


def _waits(found: Sequence[Measured]) -> Picture:
    """Figure 11."""
    both = compared(found, MANY, MESSAGE_US)
    series = [
        Series(
            where,
            slug(where),
            [Place(pair[number].rate, max(_LEAST, pair[number].waits_ms(where)[0])) for pair in both],
            bold=where == BARRIER,
        )
        for number, where in ((0, BARRIER), (1, WORD_BUFFER), (1, DOCUMENT_BUFFER))
    ]
    title = f"median wait, ms; {MANY} workers, messages of {MESSAGE_US:g} us"
    return draw_lines(Lines(title, "documents a second", _rate_ticks([ours for ours, _ in both]), series, log=True))


def _messages(report: Report, found: Sequence[Measured]) -> dict[str, Any]:
    """How much of the time messages take."""
    work_ms, rows = report.settings["work_ms_per_document"], []
    for workers in (SOME, MANY):
        for model in (OPTIMISTIC, BUFFERING):
            count = max(point.messages for point in points(found, model, workers, MESSAGE_US))
            costs = [f"{count * each / 1_000:.2f}" for each in (MESSAGE_US, CHEAP_MESSAGE_US)]
            rows.append([f"{model}, {workers} workers", f"{count:.0f}", *costs, f"{work_ms:.2f}"])
    _, count_many, dear_ms, cheap_ms, _ = rows[-1]
    return {
        "why": f"Every document sends a watermark from every worker to every worker, twice: with {MANY} workers "
        f"{count_many} messages. What the acker needs grows only with the number of workers. With 50 us a message, "
        f"watermarks cost {dear_ms} ms beside {work_ms:.2f} ms of work, and fill the queues. With 10 us they cost "
        f"{cheap_ms} ms, and what is left is the way to the acker and back, two links longer than a watermark's.",
        "message_headings": ["", "most messages a document", "ms at 50 us", "ms at 10 us", "ms of work a document"],
        "message_rows": rows,
        "more_workers": _more_workers(found),
    }


def _more_workers(found: Sequence[Measured]) -> str:
    """What buffering makes of the acker's node."""
    more = points(found, BUFFERING, MANY + 1, MESSAGE_US)
    usual = f"load {USUAL_LOAD:g}"
    ours, theirs = next(pair for pair in both_models(found, MANY, MESSAGE_US) if pair[0].trial.at == usual)
    median_ms = sorted(point.latency_ms[0] for point in more)[len(more) // 2]
    return (
        "Optimistic has a node more, for the acker. It is not what the lead comes from: at "
        f"{ours.rate:.0f} documents a second the median is {ours.latency_ms[0]:.0f} ms, with buffers "
        f"{theirs.latency_ms[0]:.0f} ms, and {median_ms:.0f} ms with buffers and eleven workers."
    )
