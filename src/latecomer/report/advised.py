"""Advice on the terminal: what to write, what will happen, what today's query loses, and what else was tried."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Console

from latecomer.report.scoreboard import NOTE, comparison_report, delay, show_question, show_ways
from latecomer.report.shape import Report
from latecomer.report.stream_notes import stream_notes
from latecomer.report.words import counted, number, share

if TYPE_CHECKING:
    from latecomer.advising import Advice
    from latecomer.spark.comparing import Compared

_SHOWN = 5  # of the others
_WISHES = {
    "deadline": "an answer within the deadline for nine of ten windows",
    "complete": "so many windows right in the end",
    "memory": "no more held than that",
}


def show_advice(found: Advice, console: Console) -> None:
    """Print the advice."""
    stream = found.asked.stream
    show_question(found.asked, "rehearsed without Spark", console)
    for note in stream_notes(stream, found.wishes.deadline_us, found.asked.max_ahead):
        console.print(note, style="yellow", highlight=False, markup=False)
    if found.today is not None:
        console.print(f"\n{today_text(found.today, len(stream.ts_us))}", highlight=False, markup=False)
    console.print("\nWrite")
    for line in found.code.splitlines():
        console.print(f"    {line}", style="bold green", highlight=False, markup=False, soft_wrap=True)
    console.print(f"\n{promise(found.best, len(stream.ts_us))}", highlight=False)
    for wish in found.missed:
        text = f"No way that was tried gives {_WISHES[wish]} together with your other wishes; this one is nearest."
        console.print(text, style="yellow", highlight=False)
    console.print("\nAlso tried\n")
    show_ways(found.others[:_SHOWN], console)
    console.print(f"\n{NOTE}", style="dim", highlight=False)
    console.print("`latecomer compare` with the same arguments runs them on Spark.", style="dim", highlight=False)


def today_text(way: Compared, rows: int) -> str:
    """What the query in use loses."""
    wrong = way.scores.classes.omitted + way.scores.classes.different_left
    text = f"{way.way.text} loses {number(way.doors.gone)} of {counted(rows, 'row')} without a word"
    return f"{text}; {number(wrong)} of {counted(way.scores.windows, 'window')} are wrong in the end."


def promise(way: Compared, rows: int) -> str:
    """What will happen, if the stream stays as it was recorded."""
    scores, doors = way.scores, way.doors
    aside = doors.late + doors.quarantined
    doors_text = ", every row counted." if aside == 0 else f"; {counted(aside, 'row')} of {number(rows)} go to `late`."
    soon, settled = delay(scores.first[1]), delay(scores.right[1])
    lines = [
        f"{share(scores.right_share)} of the windows are right in the end{doors_text}",
        f"Nine of ten have an answer {soon} after their end, and the right one after {settled}.",
        f"{scores.revisions:.2f} more answers per window; at most {number(way.held)} events or partial results held.",
    ]
    return "\n".join(lines)


def advice_report(found: Advice, settings: dict[str, Any]) -> Report:
    """In the shape of all experiments: the recommended way first."""
    from latecomer.spark.comparing import Comparison

    today = [] if found.today is None else [found.today]
    report = comparison_report(
        Comparison(found.asked, on_spark=False, ways=[found.best, *found.others, *today]), settings
    )
    report.name = "advise"
    report.settings |= {"recommended": found.best.way.text, "code": found.code, "missed": list(found.missed)}
    notes = stream_notes(found.asked.stream, found.wishes.deadline_us, found.asked.max_ahead)
    report.settings["notes"] = list(notes)
    return report
