"""A comparison as a table on the terminal, and as rows for JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from math import inf
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape

from latecomer.quality import QUANTILES
from latecomer.report.shape import Report, Target
from latecomer.report.stream_notes import stream_facts, stream_notes
from latecomer.report.words import S, duration, number, share

if TYPE_CHECKING:
    from latecomer.spark.comparing import Asked, Compared, Comparison

COLUMNS = ("right", "first", "settled", "revised", "held", "aside", "gone", "rows/s")
_WIDTH = 10
NOTE = (
    "right: windows whose right result stands in the end. first, settled: from a window's end to its first answer "
    "and to the right one, for nine of ten. revised: answers after the first, per window. held: events, or partial "
    "results, at most. aside: rows in the lanes late and quarantine, with the reason. gone: rows in no answer and no "
    "lane."
)


def show_comparison(found: Comparison, console: Console) -> None:
    """One line for each way."""
    show_question(found.asked, where(found), console)
    for note in stream_notes(found.asked.stream, max_ahead=found.asked.max_ahead):
        console.print(note, style="yellow", highlight=False, markup=False)
    console.print()
    show_ways(found.ways, console)
    console.print(f"\n{NOTE}", style="dim", highlight=False)


def show_question(asked: Asked, ran: str, console: Console) -> None:
    """What was asked, of which stream, and where it ran."""
    console.print(f"\n[bold]{escape(asked.question.shown())}[/]\n{stream_facts(asked.stream, ran)}", highlight=False)


def show_ways(ways: Sequence[Compared], console: Console) -> None:
    """A heading, and figures for each way: beside its text where there is room."""
    widest = max((len(way.way.text) for way in ways), default=0)
    beside = console.width >= widest + _WIDTH * len(COLUMNS)
    console.print(f"{'way' if beside else '':{widest if beside else 0}}{_line(COLUMNS)}", highlight=False)
    for way in ways:
        if beside:
            console.print(f"{_coloured(way)}{' ' * (widest - len(way.way.text))}{_line(figures(way))}", highlight=False)
        else:
            console.print(f"{_coloured(way)}\n{_line(figures(way))}", highlight=False)


def _line(figures: Sequence[str]) -> str:
    return "".join(f"{figure:>{_WIDTH}}" for figure in figures)


def where(found: Comparison) -> str:
    """Where it was run."""
    return "on Spark" if found.on_spark else "in this process, without Spark"


def _coloured(way: Compared) -> str:
    colour = "green" if way.scores.exact else "yellow" if way.doors.gone == 0 else "red"
    return f"[{colour}]{escape(way.way.text)}[/]"


def figures(way: Compared) -> list[str]:
    """What the columns say of a way."""
    scores, doors = way.scores, way.doors
    return [
        share(scores.right_share),
        delay(scores.first[1]),
        delay(scores.right[1]),
        f"{scores.revisions:.2f}",
        number(way.held),
        number(doors.late + doors.quarantined),
        number(doors.gone),
        "-" if way.speed is None else number(round(way.speed.rows_per_s)),
    ]


def delay(seconds: float | None) -> str:
    """A delay in seconds as people read it."""
    if seconds is None:
        return "-"
    return "never" if seconds == inf else duration(round(seconds * S))


def comparison_report(found: Comparison, settings: dict[str, Any]) -> Report:
    """In the shape of all experiments; its targets are promises: every row has a door, and what is exact is exact."""
    report = Report("compare", settings)
    for way in found.ways:
        scores = way.scores
        row: dict[str, Any] = {"way": way.way.text, "windows": scores.windows, "given": scores.given}
        row |= {"right_share": scores.right_share, "revisions": scores.revisions, **scores.classes._asdict()}
        for name in ("first", "right", "repaired"):
            values = ("never" if value == inf else value for value in getattr(scores, name))
            row[f"{name}_s"] = dict(zip(map(str, QUANTILES), values, strict=True))
        row |= {"completeness": list(scores.completeness), **asdict(way.doors), "held": way.held}
        row["speed"] = None if way.speed is None else asdict(way.speed)
        report.results.append(row)
        report.targets += _targets(way)
    return report


def _targets(way: Compared) -> list[Target]:
    if way.way.is_spark:
        return []
    found = [Target(f"{way.way.text}: rows without a door", way.doors.gone, 0, at_least=False)]
    if way.way.exact and way.doors.late == 0:
        classes = way.scores.classes
        left = {"omitted": classes.omitted, "different": classes.different_left, "spurious": classes.spurious_left}
        found += [
            Target(f"{way.way.text}: {name} in the end", count, 0, at_least=False) for name, count in left.items()
        ]
    return found
